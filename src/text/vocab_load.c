/* From the arrays of a file to a vocabulary. Every length and id is checked against the file before it is used. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/hash.h"
#include "text/vocab_internal.h"

#define TOKENS HTH_VOCAB_TOKENS
#define TYPES  "tokenizer.ggml.token_type"
#define SCORES "tokenizer.ggml.scores"

enum {
    MAX_TOKENS = 1 << 24,
    FEW_TOKENS = 1 << 14 /* fewer are loaded before a second thread has started */
};

hearth_status hth_vocab_no_memory(const char *what, uint64_t count, hearth_error *err) {
    return hth_fail(err, HEARTH_NO_MEMORY, "no memory for %" PRIu64 " %s of the tokenizer", count, what);
}

void hth_vocab_free(hth_vocab *v) {
    free(v->types);
    free(v->ends);
    free(v->order);
    free(v->specials.list);
    hth_arena_unmap(&v->tables);
    hth_arena_unmap(&v->merges);
    *v = (hth_vocab){0};
}

hearth_status hth_vocab_array(const hth_gguf *g, const char *key, bool strings, uint64_t count, const hth_gguf_kv **out,
                              hearth_error *err) {
    const hth_gguf_kv *kv = *out = hth_gguf_find(g, key);
    if (kv == NULL) return HEARTH_OK;
    if (kv->type != HTH_GGUF_ARRAY || (kv->element == HTH_GGUF_STRING) != strings || kv->element == HTH_GGUF_ARRAY)
        return hth_fail(err, HEARTH_BAD_FILE, "key \"%s\" is not an array of %s", key, strings ? "strings" : "numbers");
    if (count != UINT64_MAX && kv->count != count)
        return hth_fail(err, HEARTH_BAD_FILE, "key \"%s\" has %" PRIu64 " elements for %" PRIu64 " tokens", key,
                        kv->count, count);
    return HEARTH_OK;
}

static hearth_status read_tokens(hth_vocab *v, const hth_gguf *g, const hth_gguf_kv **tokens, hearth_error *err) {
    HTH_TRY(hth_vocab_array(g, TOKENS, true, UINT64_MAX, tokens, err));
    if (*tokens == NULL) return hth_fail(err, HEARTH_BAD_FILE, "key \"%s\" is missing", TOKENS);
    uint64_t count = (*tokens)->count;
    if (count == 0 || count > MAX_TOKENS)
        return hth_fail(err, HEARTH_BAD_FILE, "key \"%s\" has %" PRIu64 " elements; 1 to %d are possible", TOKENS,
                        count, MAX_TOKENS);
    v->size = (uint32_t)count;
    v->types = malloc(count);
    v->ends = calloc(count, sizeof *v->ends);
    return v->types != NULL && v->ends != NULL ? HEARTH_OK : hth_vocab_no_memory("types", count, err);
}

static hearth_status read_types(hth_vocab *v, const hth_gguf *g, hearth_error *err) {
    const hth_gguf_kv *kv;
    memset(v->types, HTH_TOKEN_NORMAL, v->size);
    HTH_TRY(hth_vocab_array(g, TYPES, false, v->size, &kv, err));
    if (kv == NULL) return HEARTH_OK;
    if (kv->element != HTH_GGUF_I32 && kv->element != HTH_GGUF_U32)
        return hth_fail(err, HEARTH_BAD_FILE, "key \"%s\" has elements of type %s, not i32", TYPES,
                        hth_gguf_type_name(kv->element));
    for (uint32_t i = 0; i < v->size; i++) {
        int32_t type;
        memcpy(&type, kv->value + i * sizeof type, sizeof type);
        if (type > HTH_TOKEN_NORMAL && type <= HTH_TOKEN_BYTE) v->types[i] = (uint8_t)type;
    }
    return HEARTH_OK;
}

/* A score as a number that is lower for higher scores. */
static uint32_t order_of(float score) {
    uint32_t bits;
    score += 0.0f; /* one zero */
    memcpy(&bits, &score, sizeof bits);
    return bits & UINT32_C(0x80000000) ? bits : ~(bits | UINT32_C(0x80000000));
}

static hearth_status read_scores(hth_vocab *v, const hth_gguf *g, hearth_error *err) {
    const hth_gguf_kv *kv;
    HTH_TRY(hth_vocab_array(g, SCORES, false, v->size, &kv, err));
    v->order = calloc(v->size, sizeof *v->order);
    if (v->order == NULL) return hth_vocab_no_memory("scores", v->size, err);
    for (uint32_t i = 0; kv != NULL && i < v->size; i++) {
        float score;
        if (kv->element == HTH_GGUF_F32) {
            memcpy(&score, kv->value + i * sizeof score, sizeof score);
        } else {
            double wide;
            HTH_TRY(hth_gguf_float_at(kv, i, &wide, err));
            score = (float)wide;
        }
        if (score != score)
            return hth_fail(err, HEARTH_BAD_FILE, "key \"%s\": score %" PRIu32 " is no number", SCORES, i);
        v->order[i] = order_of(score);
    }
    return HEARTH_OK;
}

/* Room for the special tokens: those of the types that make them, and those that are known by their texts. */
static uint64_t special_bytes(const hth_gguf *g) {
    enum { KNOWN = 256 };
    const hth_gguf_kv *kv;
    uint64_t count = KNOWN;
    if (hth_vocab_array(g, TYPES, false, UINT64_MAX, &kv, NULL) == HEARTH_OK && kv &&
        (kv->element == HTH_GGUF_I32 || kv->element == HTH_GGUF_U32))
        for (uint64_t i = 0; i < kv->count; i++) {
            uint32_t type;
            memcpy(&type, kv->value + i * sizeof type, sizeof type);
            count += hth_token_is_special(type);
        }
    return count * sizeof(hth_special);
}

static hearth_status build_tables(hth_vocab *v, const hth_gguf *g, const hth_gguf_kv *tokens, hth_pool *pool,
                                  hearth_error *err) {
    atomic_bool *findable = calloc(v->size, sizeof *findable);
    if (findable == NULL) return hth_vocab_no_memory("texts", v->size, err);
    hearth_status status = hth_vocab_read_texts(v, tokens, pool, findable, err);
    if (status == HEARTH_OK)
        status = v->kind == HTH_VOCAB_LLAMA ? read_scores(v, g, err)
                                            : hth_vocab_read_merges(v, g, tokens, pool, findable, err);
    free(findable);
    return status;
}

uint64_t hth_vocab_bytes(const hth_gguf *g, hth_vocab_kind kind) {
    const hth_gguf_kv *tokens, *merges = NULL;
    if (hth_vocab_array(g, TOKENS, true, UINT64_MAX, &tokens, NULL) != HEARTH_OK || !tokens) return 0;
    if (tokens->count > MAX_TOKENS) return 0;
    hth_vocab v = {.size = (uint32_t)tokens->count, .text_mask = hth_vocab_slot_mask((size_t)tokens->count)};
    hth_arena counting = hth_arena_counting();
    hth_vocab_carve_texts(&v, &counting, tokens);
    uint64_t bytes = counting.used + tokens->count * (sizeof *v.types + sizeof *v.ends + sizeof(atomic_bool));
    if (kind == HTH_VOCAB_LLAMA) return bytes + tokens->count * sizeof *v.order + special_bytes(g);
    if (hth_vocab_array(g, HTH_VOCAB_MERGES, true, UINT64_MAX, &merges, NULL) != HEARTH_OK || !merges) return bytes;
    return bytes + hth_vocab_merge_bytes(merges->count) + special_bytes(g);
}

/* ---- special tokens ---- */

/* Files do not say which tokens swallow the white space around them; these models are known to have such. */
typedef struct strips {
    bool phi3, jina, modern_bert;
} strips;

static strips find_strips(const hth_gguf *g, const hth_pre_row *pre) {
    hth_string name = {0}, architecture = {0};
    char lower[64] = {0};
    if (hth_gguf_get_string(g, "general.name", &name, NULL) != HEARTH_OK) name.size = 0;
    if (hth_gguf_get_string(g, "general.architecture", &architecture, NULL) != HEARTH_OK) architecture.size = 0;
    for (size_t i = 0; i < name.size && i + 1 < sizeof lower; i++)
        lower[i] = (char)(name.data[i] >= 'A' && name.data[i] <= 'Z' ? name.data[i] + 32 : name.data[i]);
    return (strips){
        .phi3 = strstr(lower, "phi-3") != NULL || strstr(lower, "phi3") != NULL,
        .jina =
            (pre != NULL && strncmp(pre->name, "jina-v2-", 8) == 0) || hth_string_equals(architecture, "jina-bert-v3"),
        .modern_bert = strstr(lower, "modern-bert") != NULL,
    };
}

static hearth_status build_specials(hth_vocab *v, const hth_gguf *g, const hth_gguf_kv *tokens, const hth_pre_row *pre,
                                    hearth_error *err) {
    strips strip = find_strips(g, pre);
    uint32_t count = 0;
    for (uint32_t id = 0; id < v->size; id++) count += hth_token_is_special(v->types[id]);
    v->specials.list = calloc(count + 1u, sizeof *v->specials.list);
    if (v->specials.list == NULL) return hth_vocab_no_memory("special tokens", count, err);
    for (uint32_t id = 0; id < v->size; id++) {
        hth_string text;
        if (!hth_token_is_special(v->types[id])) continue;
        HTH_TRY(hth_gguf_string_at(tokens, id, &text, err));
        if (text.size == 0) continue;
        bool keeps = hth_string_equals(text, "<unk>") || hth_string_equals(text, "<s>") ||
                     hth_string_equals(text, "<|endoftext|>");
        v->specials.list[v->specials.count++] = (hth_special){
            .text = text.data,
            .size = (uint32_t)text.size,
            .id = (hearth_token)id,
            .control = v->types[id] != HTH_TOKEN_USER,
            .strip_before = (strip.jina && hth_string_equals(text, "<mask>")) ||
                            (strip.modern_bert && hth_string_equals(text, "[MASK]")),
            .strip_after = strip.phi3 && !keeps,
        };
    }
    hth_specials_index(&v->specials);
    return HEARTH_OK;
}

/* How many threads build the tables. The machine is asked only where more than one would help. */
static int worker_count(uint32_t tokens, int threads) {
    if (tokens < FEW_TOKENS) return 1;
    if (threads == 0) {
        hth_cpu cpu;
        hth_cpu_probe(&cpu);
        threads = cpu.threads;
    }
    return threads < HTH_VOCAB_WORKERS ? threads : HTH_VOCAB_WORKERS;
}

hearth_status hth_vocab_load(hth_vocab *v, const hth_gguf *g, hth_vocab_kind kind, const hth_pre_row *pre, int threads,
                             hearth_error *err) {
    const hth_gguf_kv *tokens;
    hth_pool *pool;
    v->kind = kind;
    v->raw = kind != HTH_VOCAB_GPT2 || (pre->flags & HTH_PRE_RAW) != 0;
    v->key = hth_hash_new_key().k0;
    for (unsigned byte = 0; byte < 256; byte++) v->byte_token[byte] = HTH_NO_TOKEN;
    HTH_TRY(read_tokens(v, g, &tokens, err));
    HTH_TRY(read_types(v, g, err));
    HTH_TRY(hth_vocab_find_roles(v, g, tokens, pre, err));
    const hth_pool_options options = {.threads = worker_count(v->size, threads), .spin_us = HTH_POOL_SPIN_US};
    HTH_TRY(hth_pool_create(&pool, &options, err));
    hearth_status status = build_tables(v, g, tokens, pool, err);
    hth_pool_free(&pool);
    HTH_TRY(status);
    return build_specials(v, g, tokens, pre, err);
}
