/* From the arrays of a file to a vocabulary. Every length and id is checked against the file before it is used. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "text/alphabet.h"
#include "text/vocab_internal.h"

#define TOKENS "tokenizer.ggml.tokens"
#define TYPES  "tokenizer.ggml.token_type"
#define SCORES "tokenizer.ggml.scores"

enum { MAX_TOKENS = 1 << 24 };

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

/* ---- pieces ---- */

static bool is_special(unsigned type) {
    return type == HTH_TOKEN_CONTROL || type == HTH_TOKEN_UNKNOWN || type == HTH_TOKEN_USER;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that "<0xE2>" names, or -1. */
static int named_byte(hth_string text) {
    if (text.size != 6 || memcmp(text.data, "<0x", 3) != 0 || text.data[5] != '>') return -1;
    int high = hex_digit(text.data[3]), low = hex_digit(text.data[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

size_t hth_vocab_copy_raw(hth_string text, char *out) {
    const char *from = text.data, *end = from + text.size;
    char *to = out;
    while (from < end) {
        bool mark = *from == '\xE2' && end - from >= 3 && from[1] == '\x96' && from[2] == '\x81';
        *to++ = mark ? ' ' : *from;
        from += mark ? 3 : 1;
    }
    return (size_t)(to - out);
}

/* Write a token's piece; *merges tells whether merging may produce the token. */
static hearth_status write_piece(hth_vocab *v, const hth_alphabet *alphabet, uint32_t id, hth_string text, char *out,
                                 size_t *size, bool *merges, hearth_error *err) {
    unsigned type = v->types[id];
    int byte = named_byte(text);
    *merges = false;
    *size = 0;
    if (v->raw && byte >= 0 && type == HTH_TOKEN_NORMAL) type = v->types[id] = HTH_TOKEN_BYTE;
    if (type == HTH_TOKEN_BYTE && byte < 0)
        return hth_fail(err, HEARTH_BAD_FILE, "key \"%s\": token %" PRIu32 " has type byte and is not <0x00> to <0xFF>",
                        TOKENS, id);
    if (type == HTH_TOKEN_BYTE && v->raw) v->byte_token[byte] = (hearth_token)id;
    if (type == HTH_TOKEN_BYTE) {
        out[0] = (char)byte;
        *size = 1;
    } else if (type == HTH_TOKEN_UNUSED || text.size == 0) {
        *size = 0;
    } else if (is_special(type)) {
        memcpy(out, text.data, text.size);
        *size = text.size;
        /* Its text must mean the same to merging as it does here. */
        *merges = type == HTH_TOKEN_USER && memchr(text.data, ' ', text.size) == NULL;
        for (size_t i = 0; i < text.size && *merges; i++)
            *merges =
                v->raw || ((unsigned char)text.data[i] < 0x80 && hth_alphabet_is_plain((unsigned char)text.data[i]));
        if (v->raw && *merges && memmem(text.data, text.size, "\xE2\x96\x81", 3) != NULL) *merges = false;
    } else if (v->raw) {
        *size = hth_vocab_copy_raw(text, out);
        *merges = memchr(text.data, ' ', text.size) == NULL;
    } else {
        *merges = hth_alphabet_decode(alphabet, text.data, text.size, out, size);
        if (!*merges) {
            memcpy(out, text.data, text.size);
            *size = text.size;
        }
    }
    return HEARTH_OK;
}

/* ---- tables ---- */

/* The last bytes of a text, at most 8, as a number that differs where they do. */
static inline uint64_t load_tail(const char *text, size_t size) {
    uint32_t low, high;
    if (size < 4) {
        if (size == 0) return 0;
        return (uint64_t)(unsigned char)text[0] | (uint64_t)(unsigned char)text[size / 2] << 8 |
               (uint64_t)(unsigned char)text[size - 1] << 16;
    }
    memcpy(&low, text, 4);
    memcpy(&high, text + size - 4, 4);
    return (uint64_t)high << 32 | low;
}

uint64_t hth_vocab_hash(uint64_t key, const char *text, size_t size) {
    uint64_t hash = key ^ size;
    for (; size > 8; size -= 8, text += 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        hash = hth_vocab_mix(hash ^ word, 0x9E3779B97F4A7C15u ^ key);
    }
    return hth_vocab_mix(hash ^ load_tail(text, size), 0xD1B54A32D192ED03u ^ key);
}

static bool is_token(const hth_vocab *v, hearth_token id, const char *text, size_t size) {
    uint32_t at = v->offsets[id];
    return v->offsets[id + 1] - at == size && memcmp(v->bytes + at, text, size) == 0;
}

size_t hth_vocab_text_slot(const hth_vocab *v, const char *text, size_t size, uint64_t hash) {
    uint32_t tag = (uint32_t)(hash >> 32);
    for (size_t i = (size_t)hash;; i++) {
        const hth_text_slot *slot = &v->texts[i & v->text_mask];
        if (slot->id == HTH_NO_TOKEN || (slot->tag == tag && is_token(v, slot->id, text, size)))
            return i & v->text_mask;
    }
}

hearth_token hth_vocab_find(const hth_vocab *v, const char *text, size_t size) {
    if (size > v->longest) return HTH_NO_TOKEN;
    return v->texts[hth_vocab_text_slot(v, text, size, hth_vocab_hash(v->key, text, size))].id;
}

size_t hth_vocab_slot_mask(size_t count) {
    size_t slots = 16;
    while (slots / 3 * 2 < count) slots *= 2;
    return slots - 1;
}

static bool space_behind_other(const char *text, size_t size) {
    for (size_t i = 1; i < size; i++)
        if (text[i] == ' ' && text[i - 1] != ' ') return true;
    return false;
}

/* Slots to be filled soon: each is on its way into the cache while others are filled. */
typedef struct pending_texts {
    struct {
        uint64_t hash;
        hearth_token id;
    } list[HTH_VOCAB_BATCH];
    unsigned count;
} pending_texts;

static void fill_texts(hth_vocab *v, pending_texts *p, bool *findable) {
    for (unsigned i = 0; i < p->count; i++) {
        hearth_token id = p->list[i].id;
        uint64_t hash = p->list[i].hash;
        uint32_t at = v->offsets[id];
        /* Of several tokens with one text, the last. */
        size_t slot = hth_vocab_text_slot(v, v->bytes + at, v->offsets[id + 1] - at, hash);
        if (v->texts[slot].id != HTH_NO_TOKEN) findable[v->texts[slot].id] = false;
        v->texts[slot] = (hth_text_slot){(uint32_t)(hash >> 32), id};
        findable[id] = true;
    }
    p->count = 0;
}

static void add_text(hth_vocab *v, pending_texts *p, hearth_token id, bool *findable) {
    const char *text = v->bytes + v->offsets[id];
    size_t size = v->offsets[id + 1] - v->offsets[id];
    uint64_t hash = hth_vocab_hash(v->key, text, size);
    __builtin_prefetch(&v->texts[hash & v->text_mask], 1);
    p->list[p->count].hash = hash;
    p->list[p->count].id = id;
    if (++p->count == HTH_VOCAB_BATCH) fill_texts(v, p, findable);
}

/* Reserve the tables from an arena, which counts or is mapped. */
static void carve_texts(hth_vocab *v, hth_arena *arena, uint64_t text_bytes) {
    v->texts = HTH_ARENA_NEW(arena, hth_text_slot, v->text_mask + 1);
    v->offsets = HTH_ARENA_NEW(arena, uint32_t, v->size + 1u);
    v->bytes = HTH_ARENA_NEW(arena, char, text_bytes + 1);
}

static hearth_status map_texts(hth_vocab *v, const hth_gguf_kv *tokens, hearth_error *err) {
    uint64_t text_bytes = tokens->size - tokens->count * sizeof(uint64_t); /* every string follows its length */
    if (text_bytes >= UINT32_MAX)
        return hth_fail(err, HEARTH_UNSUPPORTED, "key \"%s\" has %" PRIu64 " bytes of text; 4 GiB is the most", TOKENS,
                        text_bytes);
    hth_arena counting = hth_arena_counting();
    v->text_mask = hth_vocab_slot_mask(v->size);
    carve_texts(v, &counting, text_bytes);
    HTH_TRY(hth_arena_map(&v->tables, counting.used, "the tokenizer's vocabulary", err));
    carve_texts(v, &v->tables, text_bytes);
    memset(v->texts, 0xFF, (v->text_mask + 1) * sizeof *v->texts); /* all HTH_NO_TOKEN */
    return HEARTH_OK;
}

/* findable[id], false before: the token is the one that its text finds. */
static hearth_status build_texts(hth_vocab *v, const hth_gguf_kv *tokens, bool *findable, hearth_error *err) {
    hth_alphabet alphabet;
    pending_texts pending = {.count = 0};
    uint32_t at = 0;
    hth_alphabet_init(&alphabet);
    HTH_TRY(map_texts(v, tokens, err));
    v->cuts_words = true;
    for (uint32_t id = 0; id < v->size; id++) {
        hth_string text;
        size_t size;
        bool merges;
        HTH_TRY(hth_gguf_string_at(tokens, id, &text, err));
        HTH_TRY(write_piece(v, &alphabet, id, text, v->bytes + at, &size, &merges, err));
        v->offsets[id] = at;
        v->offsets[id + 1] = at + (uint32_t)size;
        if (size > v->longest) v->longest = (uint32_t)size;
        if (merges) {
            add_text(v, &pending, (hearth_token)id, findable);
            if (v->raw && v->cuts_words) v->cuts_words = !space_behind_other(v->bytes + at, size);
        }
        at += (uint32_t)size;
    }
    fill_texts(v, &pending, findable);
    for (unsigned byte = 0; byte < 256 && !v->raw; byte++) {
        char c = (char)byte;
        v->byte_token[byte] = hth_vocab_find(v, &c, 1);
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
            count += is_special(type);
        }
    return count * sizeof(hth_special);
}

static hearth_status build_tables(hth_vocab *v, const hth_gguf *g, const hth_gguf_kv *tokens, hearth_error *err) {
    bool *findable = calloc(v->size, sizeof *findable);
    if (findable == NULL) return hth_vocab_no_memory("texts", v->size, err);
    hearth_status status = build_texts(v, tokens, findable, err);
    if (status == HEARTH_OK)
        status =
            v->kind == HTH_VOCAB_LLAMA ? read_scores(v, g, err) : hth_vocab_read_merges(v, g, tokens, findable, err);
    free(findable);
    return status;
}

uint64_t hth_vocab_bytes(const hth_gguf *g, hth_vocab_kind kind) {
    const hth_gguf_kv *tokens, *merges = NULL;
    if (hth_vocab_array(g, TOKENS, true, UINT64_MAX, &tokens, NULL) != HEARTH_OK || !tokens) return 0;
    if (tokens->count > MAX_TOKENS) return 0;
    hth_vocab v = {.size = (uint32_t)tokens->count, .text_mask = hth_vocab_slot_mask((size_t)tokens->count)};
    hth_arena counting = hth_arena_counting();
    carve_texts(&v, &counting, tokens->size - tokens->count * sizeof(uint64_t));
    uint64_t bytes = counting.used + tokens->count * (sizeof *v.types + sizeof *v.ends + sizeof(bool));
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
    for (uint32_t id = 0; id < v->size; id++) count += is_special(v->types[id]);
    v->specials.list = calloc(count + 1u, sizeof *v->specials.list);
    if (v->specials.list == NULL) return hth_vocab_no_memory("special tokens", count, err);
    for (uint32_t id = 0; id < v->size; id++) {
        hth_string text;
        if (!is_special(v->types[id])) continue;
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

hearth_status hth_vocab_load(hth_vocab *v, const hth_gguf *g, hth_vocab_kind kind, const hth_pre_row *pre,
                             hearth_error *err) {
    const hth_gguf_kv *tokens;
    v->kind = kind;
    v->raw = kind != HTH_VOCAB_GPT2 || (pre->flags & HTH_PRE_RAW) != 0;
    v->key = hth_hash_new_key().k0;
    for (unsigned byte = 0; byte < 256; byte++) v->byte_token[byte] = HTH_NO_TOKEN;
    HTH_TRY(read_tokens(v, g, &tokens, err));
    HTH_TRY(read_types(v, g, err));
    HTH_TRY(hth_vocab_find_roles(v, g, tokens, pre, err));
    HTH_TRY(build_tables(v, g, tokens, err));
    return build_specials(v, g, tokens, pre, err);
}
