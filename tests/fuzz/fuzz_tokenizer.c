/* Two kinds of input, told apart by the first byte. Odd: a GGUF file whose vocabulary is opened and used. Even: two
 * bytes of options and a text for one of three small vocabularies; then what must hold of every text is checked. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/alphabet.h"
#include "text/tokenizer_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { IMAGE = 1 << 16, MAX_PRE = 128, WORK_PER_BYTE = 64 };

#define NEVER(condition)                                                                                               \
    do {                                                                                                               \
        if (condition) {                                                                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* ---- small vocabularies ---- */

typedef struct image {
    unsigned char data[IMAGE];
    size_t size;
} image;

static void put(image *im, const void *data, size_t size) {
    NEVER(size > IMAGE - im->size);
    memcpy(im->data + im->size, data, size);
    im->size += size;
}

static void put_u32(image *im, uint32_t n) {
    put(im, &n, sizeof n);
}

static void put_u64(image *im, uint64_t n) {
    put(im, &n, sizeof n);
}

static void put_string(image *im, const char *text) {
    put_u64(im, strlen(text));
    put(im, text, strlen(text));
}

static void put_key(image *im, const char *key, uint32_t type) {
    put_string(im, key);
    put_u32(im, type);
}

static void put_array(image *im, const char *key, uint32_t element, uint64_t count) {
    put_key(im, key, 9);
    put_u32(im, element);
    put_u64(im, count);
}

/* Pairs to merge; each makes a token. */
static const char *const pairs[][2] = {{"t", "h"}, {"th", "e"},  {"_", "t"}, {"_", "the"}, {"1", "2"},  {"12", "3"},
                                       {"_", "_"}, {"__", "__"}, {"a", "a"}, {"aa", "aa"}, {"aa", "a"}, {"'", "s"}};
static const char *const specials[] = {"<|s|>", "<|s|><|t|>", "<u>", "<u><v>"}; /* two control, two user-defined */

enum { PAIRS = sizeof pairs / sizeof *pairs, SPECIALS = 4 };

/* A pair's text with `space` for each '_'. */
static void spell(char *out, const char *text, const char *space) {
    size_t at = 0, size = strlen(space);
    for (; *text != 0; text++) {
        if (*text == '_') {
            memcpy(out + at, space, size);
            at += size;
        } else {
            out[at++] = *text;
        }
    }
    out[at] = 0;
}

static void put_byte_token(image *im, hth_vocab_kind kind, unsigned byte) {
    char text[8];
    if (kind != HTH_VOCAB_GPT2) {
        snprintf(text, sizeof text, "<0x%02X>", byte);
    } else {
        hth_alphabet alphabet;
        hth_alphabet_init(&alphabet);
        unsigned c = 0;
        while (alphabet.byte_of[c] != (int)byte) c++;
        if (c < 0x80) snprintf(text, sizeof text, "%c", (int)c);
        else snprintf(text, sizeof text, "%c%c", (int)(0xC0 | c >> 6), (int)(0x80 | (c & 0x3F)));
    }
    put_string(im, text);
}

static void build(image *im, hth_vocab_kind kind) {
    static const char *const models[] = {"gpt2", "llama", "gemma4"};
    static const char letters[] = "the123as'";
    bool raw = kind != HTH_VOCAB_GPT2;
    const char *space = raw ? "\xE2\x96\x81" : "\xC4\xA0";
    size_t singles = raw ? sizeof letters : 0; /* the letters, and the space */
    size_t count = 256 + singles + PAIRS + SPECIALS;
    char left[64], right[64], both[130];
    put(im, "GGUF\3\0\0\0", 8);
    put_u64(im, 0);
    put_u64(im, 6);
    put_key(im, "general.architecture", 8);
    put_string(im, "llama");
    put_key(im, "tokenizer.ggml.model", 8);
    put_string(im, models[kind]);
    put_array(im, "tokenizer.ggml.tokens", 8, count);
    for (unsigned byte = 0; byte < 256; byte++) put_byte_token(im, kind, byte);
    for (size_t i = 0; i < singles; i++) {
        char letter[2] = {letters[i], 0};
        put_string(im, letter[0] == 0 ? space : letter);
    }
    for (size_t i = 0; i < PAIRS; i++) {
        spell(left, pairs[i][0], space);
        spell(right, pairs[i][1], space);
        snprintf(both, sizeof both, "%s%s", left, right);
        put_string(im, both);
    }
    for (size_t i = 0; i < SPECIALS; i++) put_string(im, specials[i]);
    put_array(im, "tokenizer.ggml.token_type", 5, count);
    for (size_t i = 0; i < count; i++)
        put_u32(im, i < 256 && raw ? 6 : i < count - SPECIALS ? 1 : i < count - 2 ? 3 : 4);
    put_array(im, "tokenizer.ggml.scores", 6, count);
    for (size_t i = 0; i < count; i++) {
        float score = -(float)i;
        put(im, &score, sizeof score);
    }
    put_array(im, "tokenizer.ggml.merges", 8, PAIRS);
    for (size_t i = 0; i < PAIRS; i++) {
        spell(left, pairs[i][0], space);
        spell(right, pairs[i][1], space);
        snprintf(both, sizeof both, "%s %s", left, right);
        put_string(im, both);
    }
    while (im->size % 32 != 0) put(im, "", 1);
}

/* The tokenizer of a kind, with one of the known pre-tokenizers; each is opened once and kept. */
static const hearth_tokenizer *small(hth_vocab_kind kind, unsigned pre, int nfc) {
    static image images[3];
    static hth_gguf *files[3];
    static hearth_tokenizer *kept[3][MAX_PRE][2];
    size_t count;
    const hth_pre_row *rows = hth_pre_rows(&count);
    NEVER(count > MAX_PRE);
    pre = kind == HTH_VOCAB_GPT2 ? pre % (unsigned)count : 0;
    while (rows[pre].flags & HTH_PRE_RAW && kind == HTH_VOCAB_GPT2)
        pre = (pre + 1) % (unsigned)count; /* other tokens */
    hearth_tokenizer **t = &kept[kind][pre][nfc];
    hearth_error err;
    if (files[kind] == NULL) {
        build(&images[kind], kind);
        if (hth_gguf_open_memory(images[kind].data, images[kind].size, &files[kind], &err) != HEARTH_OK) {
            fprintf(stderr, "%s\n", err.text);
            abort();
        }
    }
    hearth_tokenizer_options options = {.pre = kind == HTH_VOCAB_GPT2 ? rows[pre].name : NULL, .nfc = nfc};
    if (*t == NULL && hth_tokenizer_from_gguf(files[kind], &options, t, &err) != HEARTH_OK) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    return *t;
}

/* ---- what holds of every text ---- */

/* Feeding the ids one by one gives whole characters, and the same ones in any case. */
static void check_stream(const hearth_tokenizer *t, const hearth_token *ids, size_t count) {
    hearth_detokenizer *d;
    const char *piece, *stop = "th", *shown;
    const size_t stop_size = 2;
    size_t size, shown_size;
    int stopped = 0;
    hearth_stop_matcher *m;
    NEVER(hearth_detokenizer_create(t, 1, &d, NULL) != HEARTH_OK);
    NEVER(hearth_stop_matcher_create(&stop, &stop_size, 1, &m, NULL) != HEARTH_OK);
    for (size_t i = 0; i < count && !stopped; i++) {
        NEVER(hearth_detokenizer_feed(d, ids[i], &piece, &size, NULL) != HEARTH_OK);
        NEVER(hearth_stop_matcher_feed(m, piece, size, &shown, &shown_size, &stopped, NULL) != HEARTH_OK);
        NEVER(memmem(shown, shown_size, stop, stop_size) != NULL);
    }
    hearth_detokenizer_finish(d, &piece, &size);
    hearth_stop_matcher_finish(m, &shown, &shown_size);
    hearth_stop_matcher_free(&m);
    hearth_detokenizer_free(&d);
}

static void check_text(const hearth_tokenizer *t, const char *text, size_t size, unsigned flags, bool exact) {
    size_t capacity = 2 * size + 8, count, again, back_size;
    uint64_t work;
    hearth_token *ids = malloc(capacity * sizeof *ids);
    char *back = malloc(6 * size + 64); /* normalisation may make a text three times as long */
    NEVER(ids == NULL || back == NULL);
    hearth_status status = hth_tokenizer_encode(t, text, size, flags, ids, capacity, &count, &work, NULL);
    NEVER(status != HEARTH_OK && (exact || status != HEARTH_TOO_LONG));
    if (exact) NEVER(work > (uint64_t)WORK_PER_BYTE * (size + 1));
    if (count > capacity) count = capacity;
    status = hearth_tokenizer_encode(t, text, size, flags, NULL, 0, &again, NULL);
    NEVER(exact && (again != count || status != (count > 0 ? HEARTH_TOO_LONG : HEARTH_OK)));
    status = hearth_tokenizer_decode(t, ids, count, 1, back, 6 * size + 64, &back_size, NULL);
    NEVER(exact && status != HEARTH_OK);
    bool ambiguous = t->nfc || (t->vocab.raw && memmem(text, size, "\xE2\x96\x81", 3) != NULL);
    NEVER(exact && !ambiguous && (back_size != size || memcmp(back, text, size) != 0));
    check_stream(t, ids, count);
    free(back);
    free(ids);
}

/* ---- a file ---- */

static void check_file(const uint8_t *data, size_t size) {
    static const char text[] =
        "the 123 <|s|>\xE4\xB8\xAD \xFF  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n\n<u>";
    hth_gguf *g;
    hearth_tokenizer *t;
    hearth_error err = {HEARTH_OK, ""};
    if (hth_gguf_open_memory(data, size, &g, NULL) != HEARTH_OK) return;
    hearth_status status = hth_tokenizer_from_gguf(g, NULL, &t, &err);
    NEVER((status == HEARTH_OK) != (t != NULL));
    NEVER(status != HEARTH_OK && (err.status != status || err.text[0] == 0));
    if (t != NULL) {
        check_text(t, text, sizeof text - 1, HEARTH_ENCODE_SPECIAL | HEARTH_ENCODE_ADD, false);
        for (hearth_token id = -1; id <= hearth_tokenizer_size(t); id++) hearth_tokenizer_ends_generation(t, id);
    }
    hearth_tokenizer_close(&t);
    hth_gguf_close(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3) return 0;
    if (data[0] % 2 == 1) {
        check_file(data + 1, size - 1);
        return 0;
    }
    hth_vocab_kind kind = (hth_vocab_kind)(data[0] / 2 % 3);
    const hearth_tokenizer *t = small(kind, data[1], data[2] & 1);
    check_text(t, (const char *)data + 3, size - 3, data[2] & 2 ? HEARTH_ENCODE_SPECIAL : 0, true);
    return 0;
}
