/* What constrained output costs: compiling, and the mask of each token, beside a decode step of the model whose
 * vocabulary it is.
 *
 * usage: constraint_bench MODEL.gguf [GRAMMAR-OR-SCHEMA...]
 *
 * Each constraint is walked along by texts of tokens drawn at random from what it allows (a fixed seed), which visits
 * more of it than a model's own text would. A name that ends in .json is a schema, any other file a grammar. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "hearth/constraint.h"
#include "hearth/engine.h"

enum { STEPS = 4000, DECODES = 24 };

static const char json_grammar[] =
    "root ::= ws value ws\n"
    "value ::= object | array | string | number | \"true\" | \"false\" | \"null\"\n"
    "object ::= \"{\" ws ( member ( \",\" ws member )* )? \"}\"\n"
    "member ::= string ws \":\" ws value ws\n"
    "array ::= \"[\" ws ( value ws ( \",\" ws value ws )* )? \"]\"\n"
    "string ::= \"\\\"\" ( [^\"\\\\\\x00-\\x1F] | \"\\\\\" ( [\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4} ) )* \"\\\"\"\n"
    "number ::= \"-\"? ( \"0\" | [1-9] [0-9]* ) ( \".\" [0-9]+ )? ( [eE] [-+]? [0-9]+ )?\n"
    "ws ::= [ \\t\\n]*\n";

/* Words in brackets, each word readable as many; and an exponential automaton if it were made deterministic. */
static const char ambiguous_grammar[] = "root ::= ( item | pair | \" \" )*\n"
                                        "item ::= [a-z] | [a-z] [a-z] | \"(\" item \")\" | [^()]\n"
                                        "pair ::= [a-z]* \"a\" [a-z]{16} | \"(\" pair \",\" item \")\"\n";

static const char medium_schema[] =
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":64},\"age\":{\"type\":"
    "\"integer\","
    "\"minimum\":0,\"maximum\":150},\"email\":{\"type\":\"string\",\"pattern\":\"^[a-z0-9.]+@[a-z0-9]+\\\\.[a-z]{2,6}$"
    "\"},"
    "\"born\":{\"type\":\"string\",\"format\":\"date\"},\"status\":{\"enum\":[\"active\",\"inactive\",\"banned\"]},"
    "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"maxItems\":8},\"address\":{\"type\":\"object\","
    "\"properties\":{\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"},\"zip\":{\"type\":\"string\","
    "\"pattern\":\"^[0-9]{5}$\"}},\"required\":[\"street\",\"city\",\"zip\"],\"additionalProperties\":false},"
    "\"children\":{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}},\"required\":[\"name\",\"age\",\"status\"],"
    "\"additionalProperties\":false}";

static void die(const hearth_error *err) {
    fprintf(stderr, "constraint_bench: %s\n", err->text);
    exit(1);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* A random token of a mask. */
static hearth_token draw(const uint64_t *mask, int32_t vocab, uint64_t *state) {
    int32_t allowed = 0;
    for (int32_t w = 0; w <= vocab / 64; w++) allowed += __builtin_popcountll(mask[w]);
    int32_t left = (int32_t)(next_random(state) % (uint64_t)allowed);
    for (int32_t w = 0;; w++) {
        uint64_t bits = mask[w];
        int32_t count = __builtin_popcountll(bits);
        if (left >= count) {
            left -= count;
            continue;
        }
        while (left-- > 0) bits &= bits - 1;
        return w * 64 + __builtin_ctzll(bits);
    }
}

static void bench(const hearth_tokenizer *tokenizer, const hearth_token_index *index, const char *name,
                  const char *text, size_t size, int schema, double decode_ms) {
    static double masks[STEPS], accepts[STEPS];
    hearth_constraint *c;
    hearth_matcher *m;
    hearth_error err;
    uint64_t start = hth_now_ns(), state = 1;
    if ((schema ? hearth_constraint_schema : hearth_constraint_grammar)(index, text, size, NULL, &c, &err) != HEARTH_OK)
        die(&err);
    double compile_ms = hth_ms_since(start), sum = 0, accepted = 0;
    if (hearth_matcher_create(c, &m, &err) != HEARTH_OK) die(&err);
    for (int i = 0; i < STEPS; i++) {
        const uint64_t *mask;
        hearth_match match;
        start = hth_now_ns();
        if (hearth_matcher_mask(m, &mask, &match, &err) != HEARTH_OK) die(&err);
        sum += masks[i] = hth_ms_since(start);
        hearth_token token = match == HEARTH_MATCH_OPEN ? draw(mask, hearth_tokenizer_size(tokenizer), &state) : 0;
        start = hth_now_ns();
        if (match != HEARTH_MATCH_OPEN || hearth_tokenizer_ends_generation(tokenizer, token)) hearth_matcher_reset(m);
        else if (hearth_matcher_accept(m, token, &err) != HEARTH_OK) hearth_matcher_reset(m); /* too deep */
        accepted += accepts[i] = hth_ms_since(start);
    }
    qsort(masks, STEPS, sizeof *masks, by_value);
    qsort(accepts, STEPS, sizeof *accepts, by_value);
    hearth_constraint_info info;
    hearth_constraint_get_info(c, &info);
    printf("%-12s %8.1f %7u %6u %6u %7.1f | %7.4f %7.4f %7.4f | %7.4f %7.4f", name, compile_ms, info.states, info.rules,
           info.masks, (double)info.bytes / 1048576, sum / STEPS, masks[STEPS * 99 / 100], masks[STEPS - 1],
           accepted / STEPS, accepts[STEPS - 1]);
    if (decode_ms > 0) printf(" | %5.2f %%", 100 * (sum + accepted) / STEPS / decode_ms);
    printf("\n");
    hearth_matcher_free(&m);
    hearth_constraint_free(&c);
}

/* Milliseconds of a decode step with one thread. */
static double decode_time(const char *path) {
    hearth_options *options;
    hearth_engine *engine;
    hearth_session *session;
    hearth_error err;
    if (hearth_options_create(&options, &err) != HEARTH_OK ||
        hearth_options_set(options, "threads", "1", &err) != HEARTH_OK ||
        hearth_options_set(options, "ctx", "128", &err) != HEARTH_OK ||
        hearth_engine_open(path, options, &engine, &err) != HEARTH_OK ||
        hearth_session_create(engine, &session, &err) != HEARTH_OK)
        die(&err);
    double times[DECODES];
    for (int i = 0; i < DECODES; i++) {
        hearth_token token = 100 + i;
        hearth_item item = {.session = session, .tokens = &token, .count = 1, .outputs = HEARTH_OUTPUT_LAST};
        uint64_t start = hth_now_ns();
        if (hearth_engine_run(engine, &item, 1, &err) != HEARTH_OK) die(&err);
        times[i] = hth_ms_since(start);
    }
    qsort(times, DECODES, sizeof *times, by_value);
    hearth_session_free(&session);
    hearth_engine_close(&engine);
    hearth_options_free(&options);
    return times[DECODES / 2];
}

static void bench_file(const hearth_tokenizer *t, const hearth_token_index *x, const char *path, double decode_ms) {
    static char text[1 << 20];
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        perror(path);
        exit(1);
    }
    size_t size = fread(text, 1, sizeof text, f), length = strlen(path);
    fclose(f);
    const char *slash = strrchr(path, '/');
    bench(t, x, slash ? slash + 1 : path, text, size, length > 5 && strcmp(path + length - 5, ".json") == 0, decode_ms);
}

int main(int argc, char **argv) {
    hearth_tokenizer *tokenizer;
    hearth_token_index *index;
    hearth_error err;
    if (argc < 2) {
        fprintf(stderr, "usage: constraint_bench MODEL.gguf [GRAMMAR-OR-SCHEMA...]\n");
        return 2;
    }
    if (hearth_tokenizer_open(argv[1], NULL, &tokenizer, &err) != HEARTH_OK) die(&err);
    uint64_t start = hth_now_ns();
    if (hearth_token_index_create(tokenizer, &index, &err) != HEARTH_OK) die(&err);
    double index_ms = hth_ms_since(start), decode_ms = decode_time(argv[1]);
    printf("%d tokens, index %.1f ms; decode step, one thread: %.2f ms\n", (int)hearth_tokenizer_size(tokenizer),
           index_ms, decode_ms);
    printf("%-12s %8s %7s %6s %6s %7s | %-23s | %-15s | of decode\n", "ms", "compile", "states", "rules", "masks",
           "MiB", "mask mean / p99 / max", "accept mean/max");
    bench(tokenizer, index, "json", json_grammar, sizeof json_grammar - 1, 0, decode_ms);
    bench(tokenizer, index, "ambiguous", ambiguous_grammar, sizeof ambiguous_grammar - 1, 0, decode_ms);
    bench(tokenizer, index, "schema", medium_schema, sizeof medium_schema - 1, 1, decode_ms);
    for (int i = 2; i < argc; i++) bench_file(tokenizer, index, argv[i], decode_ms);
    hearth_token_index_free(&index);
    hearth_tokenizer_close(&tokenizer);
    return 0;
}
