/* The pre-tokenizers that files name, as regular expressions in the notation of pattern.h.
 *
 * They are the models' own expressions as their Hugging Face tokenizers state them, so tests can hand each line to
 * other engines. A step that is one of the three expressions of digits.c is run there.
 */
#include <string.h>

#include "text/pretokenizer.h"
#include "text/tokenizer.h"

/* Parts that many expressions share. */
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LEAD        "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPER       "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER       "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define SPACES      "\\s+(?!\\S)|\\s+"
#define TAIL        "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|" SPACES
#define SLASH_TAIL  "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|" SPACES
#define ASCII_WORD  "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
#define CASED       LEAD UPPER "*" LOWER "+|" LEAD UPPER "+" LOWER "*"
#define CASED_WORD  LEAD UPPER "*" LOWER "+" CONTRACTION "?|" LEAD UPPER "+" LOWER "*" CONTRACTION "?"
#define KANA_HAN    "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{30FF}]+"
#define MARK_WORD   "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"

/* Whole expressions that serve several families. */
#define GPT2_WORDS   "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|" SPACES
#define LLAMA3_WORDS CONTRACTION "|" LEAD "\\p{L}+|\\p{N}{1,3}" TAIL
#define QWEN2_WORDS  CONTRACTION "|" LEAD "\\p{L}+|\\p{N}" TAIL
#define GPT4O_WORDS  CASED_WORD "|\\p{N}{1,3}" SLASH_TAIL
#define MARK_WORDS   ASCII_WORD "|" MARK_WORD "| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|" SPACES
#define BLOOM_WORDS  "[ ]?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}\\x{60C})]+"

#define STEPS(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

STEPS(gpt2, GPT2_WORDS);
STEPS(llama3, LLAMA3_WORDS);
STEPS(qwen2, QWEN2_WORDS);
STEPS(qwen35, CONTRACTION "|" LEAD "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|" SPACES);
STEPS(single_digits, "\\p{N}", GPT2_WORDS);
STEPS(falcon, "[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2_WORDS, "[0-9][0-9][0-9]");
STEPS(fallback, "[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2_WORDS, "\\p{N}+", "[0-9][0-9][0-9]");
STEPS(deepseek3, "\\p{N}{1,3}", KANA_HAN, MARK_WORDS);
STEPS(tekken, CASED "|\\p{N}" SLASH_TAIL);
STEPS(gpt4o, GPT4O_WORDS);
STEPS(bloom, BLOOM_WORDS);
STEPS(viking, BLOOM_WORDS, "\\p{N}");
STEPS(lines, "[^\\n]+|\\n+");
STEPS(lines_qwen2, "[^\\n]+|\\n+", QWEN2_WORDS);
STEPS(ufakzeka, LEAD "\\p{L}+|\\p{N}" TAIL);
STEPS(minicpm5, "\\p{N}{1,3}", CONTRACTION "|" LEAD "\\p{L}+|\\p{N}+" TAIL);
STEPS(aya, "\\d{1,3}(?=(?:\\d{3})*\\b)", GPT4O_WORDS);
STEPS(superbpe, "\\p{N}+", "(?=(\\d{3})+(?!\\d))");

STEPS(bailing, "'(?i:[sdmt]|ll|ve|re)|" LEAD "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]|" SPACES);

STEPS(seed, CONTRACTION "|" LEAD "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|" SPACES);

STEPS(jais2, CONTRACTION "|" LEAD "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]|"
                         "\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)|"
                         "\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s");

STEPS(spark, "\\p{N}{1,3}", KANA_HAN, ASCII_WORD "|" MARK_WORD "| ?[\\p{P}\\p{S}]+|[\\r\\n]|" SPACES, "\\p{N}");

STEPS(youtu,
      "[\\x{AC00}-\\x{D7A3}\\x{3131}-\\x{318E}]+|"
      "[\\x{FF01}\\x{2026}\\x{201C}\\x{201D}\\x{2018}\\x{2019}\\x{2014}\\x{FF1A}\\x{FF1B}\\x{FF0C}\\x{3001}-\\x{303F}"
      "\\x{FE30}-\\x{FE4F}]+|[\\x{3105}-\\x{312F}]+|" KANA_HAN,
      CASED_WORD "|\\p{N}" SLASH_TAIL);

STEPS(exaone_moe, CONTRACTION "|" LEAD "(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|"
                              "\\s*[\\r\\n]|" SPACES);

/* From U+F900, where the file of the model has it; the text of some copies begins the range at U+8C48. */
STEPS(afmoe, "\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))",
      "[\\x{4E00}-\\x{9FFF}\\x{3400}-\\x{4DBF}\\x{F900}-\\x{FAFF}\\x{3040}-\\x{30FF}\\x{FF65}-\\x{FF9F}"
      "\\x{2F00}-\\x{2FDF}\\x{E40}-\\x{EFF}\\x{1780}-\\x{17FF}\\x{1000}-\\x{109F}\\x{AA60}-\\x{AA7F}"
      "\\x{A9E0}-\\x{A9FF}\\x{AC00}-\\x{D7AF}\\x{1100}-\\x{11FF}]+",
      MARK_WORDS);

#define HAN                                                                                                            \
    "\\x{4E00}-\\x{9FFF}\\x{3400}-\\x{4DBF}\\x{20000}-\\x{2A6DF}\\x{2A700}-\\x{2EBEF}\\x{F900}-\\x{FAFF}"              \
    "\\x{2F800}-\\x{2FA1F}"
#define KIMI_UPPER "(?:(?![" HAN "])" UPPER ")"
#define KIMI_LOWER "(?:(?![" HAN "])" LOWER ")"
STEPS(kimi, "[" HAN "]+|" LEAD KIMI_UPPER "*" KIMI_LOWER "+" CONTRACTION "?|" LEAD KIMI_UPPER "+" KIMI_LOWER
            "*" CONTRACTION "?|\\p{N}{1,3}" TAIL);

STEPS(chameleon, "<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\\t\\n]|    |  )", "\\p{N}",
      "[\\p{P}!-/:-@\\[-`{-~]", GPT2_WORDS);

/* The letters of scripts that have case. */
#define CASED_SCRIPTS                                                                                                  \
    "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}"                    \
    "\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}\\x{388}-\\x{38A}"             \
    "\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}"                    \
    "\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}"                  \
    "\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}"                  \
    "\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}"          \
    "\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}"         \
    "\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}"                   \
    "\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}\\x{2128}\\x{212A}-\\x{212D}"                    \
    "\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}"                    \
    "\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}"                   \
    "\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}"                  \
    "\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}"                \
    "\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}"                             \
    "\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}"
#define EAST_ASIAN "[\\x{800}-\\x{9FA5}\\x{AC00}-\\x{D7FF}]+"
STEPS(deepseek_llm, "[\\r\\n]", "\\s?[" CASED_SCRIPTS "]+",
      "\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+", "\\s+$", EAST_ASIAN,
      "\\p{N}+");
STEPS(deepseek_coder, "[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", EAST_ASIAN, "\\p{N}");

enum {
    WHOLE = HTH_PRE_IGNORE_MERGES,
    BOS = HTH_PRE_ADD_BOS,
    UNBOS = HTH_PRE_NO_BOS,
    NFC = HTH_PRE_NFC,
    RAW = HTH_PRE_RAW | BOS
};

/* name, flags, steps; in the order of names, for bisection */
#define ROWS(X)                                                                                                        \
    X("a.x-4.0", 0, gpt2)                                                                                              \
    X("afmoe", 0, afmoe)                                                                                               \
    X("bailingmoe", 0, bailing)                                                                                        \
    X("bailingmoe2", 0, bailing)                                                                                       \
    X("bloom", 0, bloom)                                                                                               \
    X("chameleon", BOS, chameleon)                                                                                     \
    X("chatglm-bpe", UNBOS, llama3)                                                                                    \
    X("codeshell", 0, single_digits)                                                                                   \
    X("cohere2moe", NFC, aya)                                                                                          \
    X("command-r", NFC, single_digits)                                                                                 \
    X("dbrx", 0, llama3)                                                                                               \
    X("deepseek-coder", 0, deepseek_coder)                                                                             \
    X("deepseek-llm", 0, deepseek_llm)                                                                                 \
    X("deepseek-r1-qwen", NFC, qwen2)                                                                                  \
    X("deepseek-v3", 0, deepseek3)                                                                                     \
    X("default", 0, fallback)                                                                                          \
    X("exaone", 0, single_digits)                                                                                      \
    X("exaone-moe", 0, exaone_moe)                                                                                     \
    X("exaone4", 0, gpt2)                                                                                              \
    X("f2llmv2", NFC, qwen2)                                                                                           \
    X("falcon", 0, falcon)                                                                                             \
    X("falcon-h1", WHOLE | BOS, llama3)                                                                                \
    X("falcon3", WHOLE | BOS, llama3)                                                                                  \
    X("gemma4", RAW | HTH_PRE_NEWLINES, lines)                                                                         \
    X("gigachat", 0, gpt2)                                                                                             \
    X("glm4", WHOLE | UNBOS, llama3)                                                                                   \
    X("glm5", WHOLE | UNBOS, llama3)                                                                                   \
    X("gpt-2", 0, gpt2)                                                                                                \
    X("gpt-4o", 0, gpt4o)                                                                                              \
    X("gpt3-finnish", 0, bloom)                                                                                        \
    X("granite-docling", 0, gpt2)                                                                                      \
    X("granite-embed-multi-311m", RAW | HTH_PRE_NEWLINES, lines)                                                       \
    X("granite-embed-multi-97m", WHOLE, gpt4o)                                                                         \
    X("grok-2", 0, qwen2)                                                                                              \
    X("hunyuan", 0, qwen2)                                                                                             \
    X("hunyuan-dense", 0, deepseek3)                                                                                   \
    X("hy_v4", 0, deepseek3)                                                                                           \
    X("jais", 0, gpt2)                                                                                                 \
    X("jais-2", 0, jais2)                                                                                              \
    X("jina-de", 0, gpt2)                                                                                              \
    X("jina-es", 0, gpt2)                                                                                              \
    X("jina-v1-en", 0, gpt2)                                                                                           \
    X("jina-v2-code", 0, gpt2)                                                                                         \
    X("jina-v2-de", 0, gpt2)                                                                                           \
    X("jina-v2-es", 0, gpt2)                                                                                           \
    X("jina-v5-nano", WHOLE | BOS, llama3)                                                                             \
    X("joyai-llm", 0, deepseek3)                                                                                       \
    X("kanana2", 0, gpt4o)                                                                                             \
    X("kimi-k2", 0, kimi)                                                                                              \
    X("kormo", 0, qwen2)                                                                                               \
    X("laguna", 0, lines_qwen2)                                                                                        \
    X("lfm2", WHOLE | BOS, llama3)                                                                                     \
    X("llada-moe", 0, bailing)                                                                                         \
    X("llama-bpe", WHOLE | BOS, llama3)                                                                                \
    X("llama-v3", WHOLE | BOS, llama3)                                                                                 \
    X("llama3", WHOLE | BOS, llama3)                                                                                   \
    X("llama4", 0, gpt4o)                                                                                              \
    X("megrez", 0, qwen2)                                                                                              \
    X("mellum", 0, gpt2)                                                                                               \
    X("mellum2", 0, single_digits)                                                                                     \
    X("midm-2.0", WHOLE | BOS, llama3)                                                                                 \
    X("minerva-7b", 0, single_digits)                                                                                  \
    X("minicpm5", WHOLE, minicpm5)                                                                                     \
    X("minimax-m2", 0, gpt4o)                                                                                          \
    X("modern-bert", NFC, gpt2)                                                                                        \
    X("mpt", NFC, gpt2)                                                                                                \
    X("olmo", NFC, gpt2)                                                                                               \
    X("phi-2", 0, gpt2)                                                                                                \
    X("pixtral", WHOLE | BOS, llama3)                                                                                  \
    X("poro-chat", 0, bloom)                                                                                           \
    X("qwen2", NFC, qwen2)                                                                                             \
    X("qwen35", NFC, qwen35)                                                                                           \
    X("refact", 0, single_digits)                                                                                      \
    X("roberta-bpe", 0, gpt2)                                                                                          \
    X("sarvam-moe", RAW, lines)                                                                                        \
    X("seed-coder", 0, seed)                                                                                           \
    X("smaug-bpe", 0, llama3)                                                                                          \
    X("smollm", 0, single_digits)                                                                                      \
    X("solar-open", 0, qwen2)                                                                                          \
    X("spark2_5", 0, spark)                                                                                            \
    X("stablelm2", NFC, qwen2)                                                                                         \
    X("starcoder", 0, single_digits)                                                                                   \
    X("superbpe", 0, superbpe)                                                                                         \
    X("talkie", 0, gpt4o)                                                                                              \
    X("tekken", WHOLE | BOS, tekken)                                                                                   \
    X("tiny_aya", NFC, aya)                                                                                            \
    X("trillion", 0, gpt2)                                                                                             \
    X("ufakzeka", 0, ufakzeka)                                                                                         \
    X("viking", 0, viking)                                                                                             \
    X("youtu", WHOLE, youtu)

static const hth_pre_row rows[] = {
#define X(name, flags, steps) {name, flags, steps},
    ROWS(X)
#undef X
};

const char *hth_tokenizer_pre_names(void) {
#define X(name, flags, steps) " " name
    static const char names[] = ROWS(X);
    return names + 1;
#undef X
}

const hth_pre_row *hth_pre_rows(size_t *count) {
    *count = sizeof rows / sizeof *rows;
    return rows;
}

const hth_pre_row *hth_pre_find(const char *name, size_t size) {
    size_t low = 0, high = sizeof rows / sizeof *rows;
    while (low < high) {
        size_t middle = (low + high) / 2;
        size_t length = strlen(rows[middle].name);
        int order = memcmp(name, rows[middle].name, size < length ? size : length);
        if (order == 0) order = (size > length) - (size < length);
        if (order == 0) return &rows[middle];
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}
