/* The merges of a file as a table from pairs of tokens to what they make.
 *
 * A merge is written as two texts with a space between. Vocabularies are made merge by merge, so the token that one
 * makes nearly always follows the token of the one before: that is tried first, and then its bytes, which are decoded
 * already, are those of both parts. Only the other merges are decoded themselves and looked up by what they make.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text/alphabet.h"
#include "text/vocab_internal.h"

enum { MAX_MERGES = 1 << 26 };

typedef struct lookup {
    const char *text;
    size_t size;
    uint64_t hash;
    hearth_token found;
} lookup;

typedef struct merge_batch {
    unsigned count;
    hth_string text[HTH_VOCAB_BATCH];
    bool decoded[HTH_VOCAB_BATCH]; /* the parts lie in the buffer; else in the bytes of the token they make */
    lookup left[HTH_VOCAB_BATCH], right[HTH_VOCAB_BATCH], whole[HTH_VOCAB_BATCH];
} merge_batch;

/* One worker's way through its share of the merges. */
typedef struct merge_reader {
    hth_vocab *v;
    const hth_gguf_kv *tokens, *merges;
    const atomic_bool *findable;
    const hth_alphabet *alphabet;
    uint64_t end;  /* the first merge behind its share */
    unsigned most; /* merges in a batch */
    char *buffer;  /* for each merge of a batch, room for two of four times the longest piece */
    merge_batch batch;
    uint32_t rank;      /* of the first merge of the batch */
    hearth_token next;  /* what the next merge is likely to make */
    hearth_error error; /* status OK: none */
} merge_reader;

static void find_all(const hth_vocab *v, lookup *list, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        list[i].hash = hth_vocab_hash(v->key, list[i].text, list[i].size);
        __builtin_prefetch(&v->texts[list[i].hash & v->text_mask]);
    }
    for (unsigned i = 0; i < count; i++) {
        list[i].found =
            hth_text_slot_id(atomic_load_explicit(&v->texts[list[i].hash & v->text_mask], memory_order_relaxed));
        if (list[i].found != HTH_NO_TOKEN) __builtin_prefetch(&v->offsets[list[i].found]);
    }
    for (unsigned i = 0; i < count; i++)
        if (list[i].found != HTH_NO_TOKEN) __builtin_prefetch(v->bytes + v->offsets[list[i].found]);
    for (unsigned i = 0; i < count; i++) {
        const lookup *l = &list[i];
        list[i].found = l->size > v->longest ? HTH_NO_TOKEN : hth_vocab_find_hashed(v, l->text, l->size, l->hash);
    }
}

/* A text in the notation of the file as a lookup; `out` has room for three times the longest piece. */
static lookup as_lookup(const merge_reader *r, const char *text, size_t size, char *out) {
    lookup l = {.text = "", .found = HTH_NO_TOKEN};
    if (size > 3 * (size_t)r->v->longest) return l; /* notation makes a text at most three times as long */
    if (r->v->raw) l.size = hth_vocab_copy_raw((hth_string){text, size}, out);
    else if (!hth_alphabet_decode(r->alphabet, text, size, out, &l.size)) return l;
    l.text = out;
    return l;
}

static hearth_status bad_merge(const merge_reader *r, unsigned k, const char *what, hearth_error *err) {
    hth_string text = r->batch.text[k];
    return hth_fail(err, HEARTH_BAD_FILE, "key \"%s\": merge %" PRIu32 " (\"%.*s\") %s", HTH_VOCAB_MERGES, r->rank + k,
                    (int)(text.size < 60 ? text.size : 60), text.data, what);
}

static bool begins_character(char c) {
    return ((unsigned char)c & 0xC0) != 0x80;
}

/* How many bytes a text in the notation of the file stands for, its characters being whole. */
static size_t decoded_size(const hth_vocab *v, const char *text, size_t size) {
    size_t count = 0;
    if (v->raw) {
        for (size_t i = 0; i + 3 <= size; i++) count += memcmp(text + i, "\xE2\x96\x81", 3) == 0;
        return size - 2 * count;
    }
    for (size_t i = 0; i < size; i++) count += begins_character(text[i]);
    return count;
}

/* Whether merge k, split at `split`, makes the likely token; then its parts are those of the token's bytes. */
static bool is_likely(merge_reader *r, unsigned k, size_t split) {
    const hth_vocab *v = r->v;
    merge_batch *b = &r->batch;
    hth_string text = b->text[k], whole;
    if ((uint32_t)r->next >= v->size || !atomic_load_explicit(&r->findable[r->next], memory_order_relaxed))
        return false;
    if (hth_gguf_string_at(r->tokens, (uint64_t)r->next, &whole, NULL) != HEARTH_OK) return false;
    if (whole.size + 1 != text.size || split == whole.size || !begins_character(whole.data[split])) return false;
    if (memcmp(whole.data, text.data, split) != 0 ||
        memcmp(whole.data + split, text.data + split + 1, whole.size - split) != 0)
        return false;
    uint32_t begin = v->offsets[r->next], end = v->offsets[r->next + 1];
    size_t left = decoded_size(v, text.data, split);
    b->left[k] = (lookup){.text = v->bytes + begin, .size = left};
    b->right[k] = (lookup){.text = v->bytes + begin + left, .size = end - begin - left};
    b->whole[k].found = r->next++;
    return true;
}

/* The texts of all parts of the batch, and which tokens they are. */
static hearth_status find_parts(merge_reader *r, hearth_error *err) {
    merge_batch *b = &r->batch;
    size_t longest = r->v->longest;
    for (unsigned k = 0; k < b->count; k++) {
        hth_string text = b->text[k];
        const char *space = text.size < 2 ? NULL : memchr(text.data + 1, ' ', text.size - 1);
        if (space == NULL) return bad_merge(r, k, "is not two texts with a space between", err);
        size_t split = (size_t)(space - text.data);
        b->decoded[k] = !is_likely(r, k, split);
        if (!b->decoded[k]) continue;
        char *out = r->buffer + 8 * longest * k;
        b->left[k] = as_lookup(r, text.data, split, out);
        b->right[k] = as_lookup(r, space + 1, text.size - split - 1, out + 4 * longest);
    }
    find_all(r->v, b->left, b->count);
    find_all(r->v, b->right, b->count);
    return HEARTH_OK;
}

/* The tokens that the merges of the batch make, where they are not known yet. */
static hearth_status find_wholes(merge_reader *r, hearth_error *err) {
    merge_batch *b = &r->batch;
    for (unsigned k = 0; k < b->count; k++) {
        const lookup *left = &b->left[k], *right = &b->right[k];
        if (left->found == HTH_NO_TOKEN || right->found == HTH_NO_TOKEN)
            return bad_merge(r, k, "is about no tokens", err);
        if (!b->decoded[k]) continue;
        char *out = r->buffer + 8 * (size_t)r->v->longest * k; /* where the left text lies; both fit behind it */
        memmove(out + left->size, right->text, right->size);
        b->whole[k].found = hth_vocab_find(r->v, out, left->size + right->size);
        if (b->whole[k].found == HTH_NO_TOKEN) return bad_merge(r, k, "makes no token", err);
    }
    return HEARTH_OK;
}

/* Enter a merge. Of several merges of the same two the earliest counts; all of them make the same token. */
static void enter(hth_vocab *v, hearth_token left, hearth_token right, uint32_t rank, hearth_token merged) {
    const uint64_t pair = hth_pair_of(left, right);
    for (size_t i = hth_vocab_pair_hash(v->key, left, right);; i++) {
        hth_pair_slot *slot = &v->pairs[i & v->pair_mask];
        uint64_t seen = atomic_load(&slot->pair);
        if (seen == HTH_FREE_SLOT && atomic_compare_exchange_strong(&slot->pair, &seen, pair)) seen = pair;
        if (seen != pair) continue;
        uint32_t least = atomic_load_explicit(&slot->rank, memory_order_relaxed);
        while (rank < least && !atomic_compare_exchange_weak(&slot->rank, &least, rank)) continue;
        atomic_store_explicit(&slot->merged, merged, memory_order_relaxed);
        return;
    }
}

static hearth_status read_batch(merge_reader *r, hearth_error *err) {
    hth_vocab *v = r->v;
    merge_batch *b = &r->batch;
    HTH_TRY(find_parts(r, err));
    HTH_TRY(find_wholes(r, err));
    for (unsigned k = 0; k < b->count; k++)
        __builtin_prefetch(&v->pairs[hth_vocab_pair_hash(v->key, b->left[k].found, b->right[k].found) & v->pair_mask],
                           1);
    for (unsigned k = 0; k < b->count; k++)
        enter(v, b->left[k].found, b->right[k].found, r->rank + k, b->whole[k].found);
    r->rank += b->count;
    r->next = b->count > 0 ? b->whole[b->count - 1].found + 1 : 0;
    b->count = 0;
    return HEARTH_OK;
}

uint64_t hth_vocab_merge_bytes(uint64_t count) {
    if (count > MAX_MERGES) return 0;
    hth_arena counting = hth_arena_counting();
    HTH_ARENA_NEW(&counting, hth_pair_slot, hth_vocab_slot_mask((size_t)count) + 1);
    return counting.used;
}

static hearth_status map_pairs(hth_vocab *v, size_t count, hearth_error *err) {
    v->pair_mask = hth_vocab_slot_mask(count);
    HTH_TRY(hth_arena_map(&v->merges, hth_vocab_merge_bytes(count), "the tokenizer's merges", err));
    v->pairs = HTH_ARENA_NEW(&v->merges, hth_pair_slot, v->pair_mask + 1);
    memset(v->pairs, 0xFF, (v->pair_mask + 1) * sizeof *v->pairs); /* all free */
    return HEARTH_OK;
}

static hearth_status read_share(merge_reader *r, hearth_error *err) {
    for (uint64_t i = r->rank; i < r->end; i++) {
        HTH_TRY(hth_gguf_string_at(r->merges, i, &r->batch.text[r->batch.count], err));
        if (++r->batch.count == r->most || i + 1 == r->end) HTH_TRY(read_batch(r, err));
    }
    return HEARTH_OK;
}

static void read_merges(void *arg, int w) {
    merge_reader *r = (merge_reader *)arg + w;
    (void)read_share(r, &r->error);
}

/* Read all merges with one reader a worker. */
static hearth_status read_all(merge_reader *readers, const merge_reader *plan, hth_pool *pool, hearth_error *err) {
    const int workers = hth_pool_threads(pool);
    for (int w = 0; w < workers; w++) {
        merge_reader *r = &readers[w];
        char *buffer = r->buffer;
        *r = *plan;
        r->buffer = buffer;
        r->rank = (uint32_t)hth_vocab_share(plan->merges->count, workers, w);
        r->end = hth_vocab_share(plan->merges->count, workers, w + 1);
    }
    hth_pool_run(pool, read_merges, readers);
    for (int w = 0; w < workers; w++) HTH_TRY(hth_raise(&readers[w].error, err));
    return HEARTH_OK;
}

hearth_status hth_vocab_read_merges(hth_vocab *v, const hth_gguf *g, const hth_gguf_kv *tokens, hth_pool *pool,
                                    const atomic_bool *findable, hearth_error *err) {
    const hth_gguf_kv *kv;
    const int workers = hth_pool_threads(pool);
    HTH_TRY(hth_vocab_array(g, HTH_VOCAB_MERGES, true, UINT64_MAX, &kv, err));
    if (kv == NULL) return hth_fail(err, HEARTH_BAD_FILE, "key \"%s\" is missing", HTH_VOCAB_MERGES);
    if (kv->count > MAX_MERGES)
        return hth_fail(err, HEARTH_BAD_FILE, "key \"%s\" has %" PRIu64 " elements; %d is the most", HTH_VOCAB_MERGES,
                        kv->count, MAX_MERGES);
    HTH_TRY(map_pairs(v, (size_t)kv->count, err));
    hth_alphabet alphabet;
    hth_alphabet_init(&alphabet);
    /* Texts are a few hundred bytes at most; where a file has longer ones, batches are of one merge. */
    const merge_reader plan = {.v = v,
                               .tokens = tokens,
                               .merges = kv,
                               .findable = findable,
                               .alphabet = &alphabet,
                               .most = v->longest <= 4096 ? HTH_VOCAB_BATCH : 1};
    merge_reader *readers = calloc((size_t)workers, sizeof *readers);
    bool good = readers != NULL;
    for (int w = 0; w < workers && good; w++) {
        readers[w].buffer = malloc(8 * (size_t)v->longest * plan.most + 1);
        good = readers[w].buffer != NULL;
    }
    hearth_status status = good ? read_all(readers, &plan, pool, err) : hth_vocab_no_memory("merges", kv->count, err);
    for (int w = 0; readers != NULL && w < workers; w++) free(readers[w].buffer);
    free(readers);
    return status;
}
