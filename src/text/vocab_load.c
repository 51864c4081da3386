/* From the arrays of a file to a vocabulary. Every length and id is checked against the file before it is used. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "text/alphabet.h"
#include "text/vocab.h"

#define TOKENS "tokenizer.ggml.tokens"
#define TYPES  "tokenizer.ggml.token_type"
#define SCORES "tokenizer.ggml.scores"
#define MERGES "tokenizer.ggml.merges"

enum { MAX_TOKENS = 1 << 24, MAX_MERGES = 1 << 26 };

static hearth_status no_memory(const char *what, uint64_t count, hearth_error *err) {
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

/* The array with this key, checked for its element type and length; *out is NULL when it is absent and may be. */
static hearth_status find_array(const hth_gguf *g, const char *key, bool strings, uint64_t count,
                                const hth_gguf_kv **out, hearth_error *err) {
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
    HTH_TRY(find_array(g, TOKENS, true, UINT64_MAX, tokens, err));
    if (*tokens == NULL) return hth_fail(err, HEARTH_BAD_FILE, "key \"%s\" is missing", TOKENS);
    uint64_t count = (*tokens)->count;
    if (count == 0 || count > MAX_TOKENS)
        return hth_fail(err, HEARTH_BAD_FILE, "key \"%s\" has %" PRIu64 " elements; 1 to %d are possible", TOKENS,
                        count, MAX_TOKENS);
    v->size = (uint32_t)count;
    v->types = malloc(count);
    v->ends = calloc(count, sizeof *v->ends);
    return v->types != NULL && v->ends != NULL ? HEARTH_OK : no_memory("types", count, err);
}

static hearth_status read_types(hth_vocab *v, const hth_gguf *g, hearth_error *err) {
    const hth_gguf_kv *kv;
    memset(v->types, HTH_TOKEN_NORMAL, v->size);
    HTH_TRY(find_array(g, TYPES, false, v->size, &kv, err));
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

/* Copy a text with each U+2581 as a space. */
static size_t copy_with_spaces(hth_string text, char *out) {
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        bool mark = text.data[i] == '\xE2' && text.size - i >= 3 && memcmp(text.data + i, "\xE2\x96\x81", 3) == 0;
        out[size++] = mark ? ' ' : text.data[i];
        if (mark) i += 2;
    }
    return size;
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
        *size = copy_with_spaces(text, out);
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

static uint64_t load_tail(const char *text, size_t size) {
    uint64_t word = 0;
    memcpy(&word, text, size);
    return word;
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

/* The slot of a text: its own, or the free one where it belongs. */
static size_t text_slot(const hth_vocab *v, const char *text, size_t size, uint64_t hash) {
    uint32_t tag = (uint32_t)(hash >> 32);
    for (size_t i = (size_t)hash;; i++) {
        const hth_text_slot *slot = &v->texts[i & v->text_mask];
        if (slot->id == HTH_NO_TOKEN || (slot->tag == tag && is_token(v, slot->id, text, size)))
            return i & v->text_mask;
    }
}

hearth_token hth_vocab_find(const hth_vocab *v, const char *text, size_t size) {
    if (size > v->longest) return HTH_NO_TOKEN;
    return v->texts[text_slot(v, text, size, hth_vocab_hash(v->key, text, size))].id;
}

/* The number of slots for `count` entries, less one: a power of two of which at most two thirds are taken. */
static size_t slot_mask(size_t count) {
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
enum { PENDING = 32 };

typedef struct pending_texts {
    struct {
        uint64_t hash;
        hearth_token id;
    } list[PENDING];
    unsigned count;
} pending_texts;

static void fill_texts(hth_vocab *v, pending_texts *p) {
    for (unsigned i = 0; i < p->count; i++) {
        hearth_token id = p->list[i].id;
        uint64_t hash = p->list[i].hash;
        uint32_t at = v->offsets[id];
        /* Of several tokens with one text, the last. */
        size_t slot = text_slot(v, v->bytes + at, v->offsets[id + 1] - at, hash);
        v->texts[slot] = (hth_text_slot){(uint32_t)(hash >> 32), id};
    }
    p->count = 0;
}

static void add_text(hth_vocab *v, pending_texts *p, hearth_token id, const char *text, size_t size) {
    uint64_t hash = hth_vocab_hash(v->key, text, size);
    __builtin_prefetch(&v->texts[hash & v->text_mask], 1);
    p->list[p->count].hash = hash;
    p->list[p->count].id = id;
    if (++p->count == PENDING) fill_texts(v, p);
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
    v->text_mask = slot_mask(v->size);
    carve_texts(v, &counting, text_bytes);
    HTH_TRY(hth_arena_map(&v->tables, counting.used, "the tokenizer's vocabulary", err));
    carve_texts(v, &v->tables, text_bytes);
    memset(v->texts, 0xFF, (v->text_mask + 1) * sizeof *v->texts); /* all HTH_NO_TOKEN */
    return HEARTH_OK;
}

static hearth_status build_texts(hth_vocab *v, const hth_gguf_kv *tokens, hearth_error *err) {
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
            add_text(v, &pending, (hearth_token)id, v->bytes + at, size);
            if (v->raw && v->cuts_words) v->cuts_words = !space_behind_other(v->bytes + at, size);
        }
        at += (uint32_t)size;
    }
    fill_texts(v, &pending);
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
    HTH_TRY(find_array(g, SCORES, false, v->size, &kv, err));
    v->order = calloc(v->size, sizeof *v->order);
    if (v->order == NULL) return no_memory("scores", v->size, err);
    for (uint32_t i = 0; kv != NULL && i < v->size; i++) {
        double score;
        HTH_TRY(hth_gguf_float_at(kv, i, &score, err));
        if (score != score)
            return hth_fail(err, HEARTH_BAD_FILE, "key \"%s\": score %" PRIu32 " is no number", SCORES, i);
        v->order[i] = order_of((float)score);
    }
    return HEARTH_OK;
}

/* ---- merges ---- */

/* Merges are read some at a time: what one needs from memory is fetched while others are worked on. */
typedef struct lookup {
    const char *text;
    size_t size;
    uint64_t hash;
    hearth_token found;
} lookup;

typedef struct merge_block {
    unsigned count;
    hth_string text[PENDING];
    lookup left[PENDING], right[PENDING], whole[PENDING];
} merge_block;

typedef struct merge_reader {
    hth_vocab *v;
    hth_alphabet alphabet;
    char *buffer; /* the texts of a block: for each merge, room for two of four times the longest piece */
    merge_block block;
    uint32_t rank; /* of the first merge of the block */
} merge_reader;

static void find_all(const hth_vocab *v, lookup *list, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        list[i].hash = hth_vocab_hash(v->key, list[i].text, list[i].size);
        __builtin_prefetch(&v->texts[list[i].hash & v->text_mask]);
    }
    for (unsigned i = 0; i < count; i++) {
        list[i].found = v->texts[list[i].hash & v->text_mask].id;
        if (list[i].found != HTH_NO_TOKEN) __builtin_prefetch(&v->offsets[list[i].found]);
    }
    for (unsigned i = 0; i < count; i++)
        if (list[i].found != HTH_NO_TOKEN) __builtin_prefetch(v->bytes + v->offsets[list[i].found]);
    for (unsigned i = 0; i < count; i++)
        list[i].found = list[i].size > v->longest ? HTH_NO_TOKEN
                                                  : v->texts[text_slot(v, list[i].text, list[i].size, list[i].hash)].id;
}

/* A text in the notation of the file as a lookup; `out` has room for three times the longest piece. */
static lookup as_lookup(const merge_reader *r, const char *text, size_t size, char *out) {
    lookup l = {.text = "", .found = HTH_NO_TOKEN};
    if (size > 3 * (size_t)r->v->longest) return l; /* notation makes a text at most three times as long */
    if (r->v->raw) l.size = copy_with_spaces((hth_string){text, size}, out);
    else if (!hth_alphabet_decode(&r->alphabet, text, size, out, &l.size)) return l;
    l.text = out;
    return l;
}

static hearth_status bad_merge(const merge_reader *r, unsigned k, const char *what, hearth_error *err) {
    hth_string text = r->block.text[k];
    return hth_fail(err, HEARTH_BAD_FILE, "key \"%s\": merge %" PRIu32 " (\"%.*s\") %s", MERGES, r->rank + k,
                    (int)(text.size < 60 ? text.size : 60), text.data, what);
}

/* The texts of all parts of the block, and which tokens they are. */
static hearth_status find_parts(merge_reader *r, hearth_error *err) {
    merge_block *b = &r->block;
    size_t longest = r->v->longest;
    for (unsigned k = 0; k < b->count; k++) {
        hth_string text = b->text[k];
        const char *space = text.size < 2 ? NULL : memchr(text.data + 1, ' ', text.size - 1);
        if (space == NULL) return bad_merge(r, k, "is not two texts with a space between", err);
        size_t split = (size_t)(space - text.data);
        char *out = r->buffer + 8 * longest * k;
        b->left[k] = as_lookup(r, text.data, split, out);
        b->right[k] = as_lookup(r, space + 1, text.size - split - 1, out + 4 * longest);
    }
    find_all(r->v, b->left, b->count);
    find_all(r->v, b->right, b->count);
    return HEARTH_OK;
}

/* The tokens that the merges of the block make. */
static hearth_status find_wholes(merge_reader *r, hearth_error *err) {
    merge_block *b = &r->block;
    for (unsigned k = 0; k < b->count; k++) {
        const lookup *left = &b->left[k], *right = &b->right[k];
        if (left->found == HTH_NO_TOKEN || right->found == HTH_NO_TOKEN)
            return bad_merge(r, k, "is about no tokens", err);
        char *out = r->buffer + 8 * (size_t)r->v->longest * k; /* where the left text lies; both fit behind it */
        memmove(out + left->size, right->text, right->size);
        b->whole[k] = (lookup){.text = out, .size = left->size + right->size};
    }
    find_all(r->v, b->whole, b->count);
    for (unsigned k = 0; k < b->count; k++)
        if (b->whole[k].found == HTH_NO_TOKEN) return bad_merge(r, k, "makes no token", err);
    return HEARTH_OK;
}

static hearth_status read_block(merge_reader *r, hearth_error *err) {
    hth_vocab *v = r->v;
    merge_block *b = &r->block;
    HTH_TRY(find_parts(r, err));
    HTH_TRY(find_wholes(r, err));
    for (unsigned k = 0; k < b->count; k++)
        __builtin_prefetch(&v->pairs[hth_vocab_pair_hash(v->key, b->left[k].found, b->right[k].found) & v->pair_mask],
                           1);
    for (unsigned k = 0; k < b->count; k++) {
        hearth_token left = b->left[k].found, right = b->right[k].found;
        size_t i = hth_vocab_pair_hash(v->key, left, right);
        hth_pair_slot *slot = &v->pairs[i & v->pair_mask];
        while (slot->left != HTH_NO_TOKEN && (slot->left != left || slot->right != right))
            slot = &v->pairs[++i & v->pair_mask];
        if (slot->left == HTH_NO_TOKEN) /* else an earlier merge of the two counts */
            *slot = (hth_pair_slot){left, right, r->rank + k, b->whole[k].found};
    }
    r->rank += b->count;
    b->count = 0;
    return HEARTH_OK;
}

static hearth_status map_pairs(hth_vocab *v, size_t count, hearth_error *err) {
    hth_arena counting = hth_arena_counting();
    v->pair_mask = slot_mask(count);
    HTH_ARENA_NEW(&counting, hth_pair_slot, v->pair_mask + 1);
    HTH_TRY(hth_arena_map(&v->merges, counting.used, "the tokenizer's merges", err));
    v->pairs = HTH_ARENA_NEW(&v->merges, hth_pair_slot, v->pair_mask + 1);
    memset(v->pairs, 0xFF, (v->pair_mask + 1) * sizeof *v->pairs); /* all free */
    return HEARTH_OK;
}

static hearth_status read_merges(hth_vocab *v, const hth_gguf *g, hearth_error *err) {
    const hth_gguf_kv *kv;
    HTH_TRY(find_array(g, MERGES, true, UINT64_MAX, &kv, err));
    if (kv == NULL) return hth_fail(err, HEARTH_BAD_FILE, "key \"%s\" is missing", MERGES);
    if (kv->count > MAX_MERGES)
        return hth_fail(err, HEARTH_BAD_FILE, "key \"%s\" has %" PRIu64 " elements; %d is the most", MERGES, kv->count,
                        MAX_MERGES);
    HTH_TRY(map_pairs(v, (size_t)kv->count, err));
    /* Texts are a few hundred bytes at most; where a file has longer ones, blocks are of one merge. */
    unsigned block = v->longest <= 4096 ? PENDING : 1;
    merge_reader *r = calloc(1, sizeof *r);
    if (r != NULL) r->buffer = malloc(8 * (size_t)v->longest * block + 1);
    hearth_status status = r != NULL && r->buffer != NULL ? HEARTH_OK : no_memory("merges", kv->count, err);
    if (status == HEARTH_OK) {
        r->v = v;
        hth_alphabet_init(&r->alphabet);
    }
    for (uint64_t i = 0; i < kv->count && status == HEARTH_OK; i++) {
        status = hth_gguf_string_at(kv, i, &r->block.text[r->block.count], err);
        if (status == HEARTH_OK && (++r->block.count == block || i + 1 == kv->count)) status = read_block(r, err);
    }
    if (r != NULL) free(r->buffer);
    free(r);
    return status;
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
    if (v->specials.list == NULL) return no_memory("special tokens", count, err);
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
    HTH_TRY(build_texts(v, tokens, err));
    if (kind == HTH_VOCAB_LLAMA) HTH_TRY(read_scores(v, g, err));
    else HTH_TRY(read_merges(v, g, err));
    return build_specials(v, g, tokens, pre, err);
}
