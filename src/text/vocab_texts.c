/* The pieces of all tokens, and the table that finds a token by its piece.
 *
 * Workers first write the pieces of their shares of the tokens, each to where the texts of its share could reach at
 * most; then the gaps between them are closed; then they enter their tokens into the table. */
#include <inttypes.h>
#include <string.h>

#include "text/alphabet.h"
#include "text/vocab_internal.h"

/* The tokens of one worker. */
typedef struct text_share {
    uint32_t first, end;          /* ids */
    uint32_t at, bytes;           /* where its pieces lie, and how many bytes they are */
    uint32_t longest;             /* piece */
    bool cuts_words;              /* as in the vocabulary, of these tokens */
    hearth_token byte_token[256]; /* of these tokens; HTH_NO_TOKEN: none */
    hearth_error error;           /* status OK: none */
} text_share;

typedef struct text_job {
    hth_vocab *v;
    const hth_gguf_kv *tokens;
    atomic_bool *findable;
    hth_alphabet alphabet;
    text_share shares[HTH_VOCAB_WORKERS];
} text_job;

/* ---- pieces ---- */

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
static hearth_status write_piece(hth_vocab *v, const hth_alphabet *alphabet, text_share *share, uint32_t id,
                                 hth_string text, char *out, size_t *size, bool *merges, hearth_error *err) {
    unsigned type = v->types[id];
    int byte = named_byte(text);
    *merges = false;
    *size = 0;
    if (v->raw && byte >= 0 && type == HTH_TOKEN_NORMAL) type = v->types[id] = HTH_TOKEN_BYTE;
    if (type == HTH_TOKEN_BYTE && byte < 0)
        return hth_fail(err, HEARTH_BAD_FILE, "key \"%s\": token %" PRIu32 " has type byte and is not <0x00> to <0xFF>",
                        HTH_VOCAB_TOKENS, id);
    if (type == HTH_TOKEN_BYTE && v->raw) share->byte_token[byte] = (hearth_token)id;
    if (type == HTH_TOKEN_BYTE) {
        out[0] = (char)byte;
        *size = 1;
    } else if (type == HTH_TOKEN_UNUSED || text.size == 0) {
        *size = 0;
    } else if (hth_token_is_special(type)) {
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

static bool space_behind_other(const char *text, size_t size) {
    for (size_t i = 1; i < size; i++)
        if (text[i] == ' ' && text[i - 1] != ' ') return true;
    return false;
}

static hearth_status write_share(text_job *job, text_share *share, hearth_error *err) {
    hth_vocab *v = job->v;
    uint32_t at = share->at;
    for (uint32_t id = share->first; id < share->end; id++) {
        hth_string text;
        size_t size;
        bool merges;
        HTH_TRY(hth_gguf_string_at(job->tokens, id, &text, err));
        HTH_TRY(write_piece(v, &job->alphabet, share, id, text, v->bytes + at, &size, &merges, err));
        v->offsets[id] = at;
        if (size > share->longest) share->longest = (uint32_t)size;
        if (merges) {
            atomic_store_explicit(&job->findable[id], true, memory_order_relaxed);
            if (v->raw && share->cuts_words) share->cuts_words = !space_behind_other(v->bytes + at, size);
        }
        at += (uint32_t)size;
    }
    share->bytes = at - share->at;
    return HEARTH_OK;
}

static void write_pieces(void *arg, int w) {
    text_job *job = arg;
    (void)write_share(job, &job->shares[w], &job->shares[w].error);
}

/* Divide the tokens among the workers. A piece is at most as long as the text it is written from. */
static void share_tokens(text_job *job, int workers) {
    for (int w = 0; w < workers; w++) {
        text_share *share = &job->shares[w];
        *share = (text_share){.first = (uint32_t)hth_vocab_share(job->v->size, workers, w),
                              .end = (uint32_t)hth_vocab_share(job->v->size, workers, w + 1),
                              .cuts_words = true};
        share->at = (uint32_t)(job->tokens->offsets[share->first] - share->first * sizeof(uint64_t));
        for (unsigned byte = 0; byte < 256; byte++) share->byte_token[byte] = HTH_NO_TOKEN;
    }
}

/* Put the shares together: pieces side by side, and of several tokens for a byte the last. */
static hearth_status join_shares(text_job *job, int workers, hearth_error *err) {
    hth_vocab *v = job->v;
    uint32_t at = 0;
    v->cuts_words = true;
    for (int w = 0; w < workers; w++) {
        const text_share *share = &job->shares[w];
        HTH_TRY(hth_raise(&share->error, err));
        const uint32_t gap = share->at - at;
        memmove(v->bytes + at, v->bytes + share->at, share->bytes);
        for (uint32_t id = share->first; id < share->end; id++) v->offsets[id] -= gap;
        at += share->bytes;
        if (share->longest > v->longest) v->longest = share->longest;
        v->cuts_words &= share->cuts_words;
        for (unsigned byte = 0; byte < 256; byte++)
            if (share->byte_token[byte] != HTH_NO_TOKEN) v->byte_token[byte] = share->byte_token[byte];
    }
    v->offsets[v->size] = at;
    return HEARTH_OK;
}

/* ---- slots ---- */

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

/* Whether a taken slot is that of a text with this hash. */
static bool holds(const hth_vocab *v, uint64_t slot, const char *text, size_t size, uint64_t hash) {
    return slot >> 32 == hash >> 32 && is_token(v, hth_text_slot_id(slot), text, size);
}

hearth_token hth_vocab_find_hashed(const hth_vocab *v, const char *text, size_t size, uint64_t hash) {
    for (size_t i = (size_t)hash;; i++) {
        const uint64_t slot = atomic_load_explicit(&v->texts[i & v->text_mask], memory_order_relaxed);
        if (slot == HTH_FREE_SLOT || holds(v, slot, text, size, hash)) return hth_text_slot_id(slot);
    }
}

hearth_token hth_vocab_find(const hth_vocab *v, const char *text, size_t size) {
    if (size > v->longest) return HTH_NO_TOKEN;
    return hth_vocab_find_hashed(v, text, size, hth_vocab_hash(v->key, text, size));
}

size_t hth_vocab_slot_mask(size_t count) {
    size_t slots = 16;
    while (slots / 3 * 2 < count) slots *= 2;
    return slots - 1;
}

/* ---- filling the table ---- */

/* Enter a token. Of several tokens with one text, the last is found; the others are not. */
static void enter(text_job *job, hearth_token id, uint64_t hash) {
    hth_vocab *v = job->v;
    const uint32_t at = v->offsets[id], size = v->offsets[id + 1] - at;
    const uint64_t entry = hash >> 32 << 32 | (uint32_t)id;
    for (size_t i = (size_t)hash;; i++) {
        hth_text_slot *slot = &v->texts[i & v->text_mask];
        uint64_t seen = atomic_load(slot);
        if (seen == HTH_FREE_SLOT && atomic_compare_exchange_strong(slot, &seen, entry)) return;
        while (holds(v, seen, v->bytes + at, size, hash)) {
            const hearth_token other = hth_text_slot_id(seen), hidden = other < id ? other : id;
            atomic_store_explicit(&job->findable[hidden], false, memory_order_relaxed);
            if (hidden == id || atomic_compare_exchange_strong(slot, &seen, entry)) return;
        }
    }
}

/* Slots are asked for some tokens ahead, so that they are on their way into the cache while others are filled. */
static void enter_share(void *arg, int w) {
    text_job *job = arg;
    const hth_vocab *v = job->v;
    const text_share *share = &job->shares[w];
    struct {
        uint64_t hash;
        hearth_token id;
    } ahead[HTH_VOCAB_BATCH];
    unsigned count = 0;
    for (uint32_t id = share->first; id < share->end; id++) {
        if (!atomic_load_explicit(&job->findable[id], memory_order_relaxed)) continue;
        const uint64_t hash = hth_vocab_hash(v->key, v->bytes + v->offsets[id], v->offsets[id + 1] - v->offsets[id]);
        __builtin_prefetch(&v->texts[hash & v->text_mask], 1);
        ahead[count].hash = hash;
        ahead[count].id = (hearth_token)id;
        if (++count < HTH_VOCAB_BATCH) continue;
        for (unsigned i = 0; i < count; i++) enter(job, ahead[i].id, ahead[i].hash);
        count = 0;
    }
    for (unsigned i = 0; i < count; i++) enter(job, ahead[i].id, ahead[i].hash);
}

/* ---- the whole ---- */

static uint64_t text_bytes(const hth_gguf_kv *tokens) {
    return tokens->size - tokens->count * sizeof(uint64_t); /* every string follows its length */
}

void hth_vocab_carve_texts(hth_vocab *v, hth_arena *arena, const hth_gguf_kv *tokens) {
    v->texts = HTH_ARENA_NEW(arena, hth_text_slot, v->text_mask + 1);
    v->offsets = HTH_ARENA_NEW(arena, uint32_t, v->size + 1u);
    v->bytes = HTH_ARENA_NEW(arena, char, text_bytes(tokens) + 1);
}

static hearth_status map_texts(hth_vocab *v, const hth_gguf_kv *tokens, hearth_error *err) {
    if (text_bytes(tokens) >= UINT32_MAX)
        return hth_fail(err, HEARTH_UNSUPPORTED, "key \"%s\" has %" PRIu64 " bytes of text; 4 GiB is the most",
                        HTH_VOCAB_TOKENS, text_bytes(tokens));
    hth_arena counting = hth_arena_counting();
    v->text_mask = hth_vocab_slot_mask(v->size);
    hth_vocab_carve_texts(v, &counting, tokens);
    HTH_TRY(hth_arena_map(&v->tables, counting.used, "the tokenizer's vocabulary", err));
    hth_vocab_carve_texts(v, &v->tables, tokens);
    memset(v->texts, 0xFF, (v->text_mask + 1) * sizeof *v->texts); /* all free */
    return HEARTH_OK;
}

hearth_status hth_vocab_read_texts(hth_vocab *v, const hth_gguf_kv *tokens, hth_pool *pool, atomic_bool *findable,
                                   hearth_error *err) {
    text_job job = {.v = v, .tokens = tokens, .findable = findable};
    const int workers = hth_pool_threads(pool);
    HTH_TRY(map_texts(v, tokens, err));
    hth_alphabet_init(&job.alphabet);
    share_tokens(&job, workers);
    hth_pool_run(pool, write_pieces, &job);
    HTH_TRY(join_shares(&job, workers, err));
    hth_pool_run(pool, enter_share, &job);
    for (unsigned byte = 0; byte < 256 && !v->raw; byte++) {
        char c = (char)byte;
        v->byte_token[byte] = hth_vocab_find(v, &c, 1);
    }
    return HEARTH_OK;
}
