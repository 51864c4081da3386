/* From the characters of a piece to its tokens: as long as two neighbours can merge, the two that rank first do, the
 * leftmost of equals.
 *
 * Short pieces keep the rank of every pair in an array and look for the least. Long ones keep the pairs in a heap and
 * their symbols in a linked list, so that a piece of n characters takes n log n steps.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "text/encoder.h"

#define NO_RANK UINT32_MAX

enum { SHORT_PIECE = 40 }; /* bytes */

struct hth_symbol {
    uint32_t begin, size; /* bytes of the piece; size 0: it was merged into its left neighbour */
    uint32_t previous, next;
    hearth_token id; /* or HTH_NO_TOKEN */
};

struct hth_candidate {
    uint64_t order; /* rank, then the index of the left symbol */
    uint32_t size;  /* of both symbols when this was noted: neighbours only grow, so another size means it is stale */
    hearth_token merged;
};

#define END_OF_LIST UINT32_MAX

/* ---- what pairs there are ---- */

/* The rank of two neighbours and the token they make; NO_RANK when they do not merge. */
static inline uint32_t rank_of(const hth_vocab *v, const char *left_text, size_t size, hearth_token left,
                               hearth_token right, hearth_token *merged) {
    if (v->order != NULL) {
        *merged = hth_vocab_find(v, left_text, size);
        return *merged == HTH_NO_TOKEN ? NO_RANK : v->order[*merged];
    }
    if (left == HTH_NO_TOKEN || right == HTH_NO_TOKEN) return NO_RANK;
    const hth_pair_slot *slot = hth_vocab_pair(v, left, right);
    if (slot == NULL) return NO_RANK;
    *merged = atomic_load_explicit(&slot->merged, memory_order_relaxed);
    return atomic_load_explicit(&slot->rank, memory_order_relaxed);
}

/* The length of the character at the start of a raw piece, from its first byte alone: so a malformed byte comes out as
 * itself. */
static inline size_t character_size(const char *text, size_t size) {
    unsigned char c = (unsigned char)*text;
    size_t length = c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    return length < size ? length : size;
}

/* The first symbol of the rest of a piece: its size and token. */
static inline size_t first_symbol(const hth_vocab *v, const char *text, size_t size, hearth_token *id) {
    if (!v->raw) {
        *id = v->byte_token[(unsigned char)*text];
        return 1;
    }
    size_t length = character_size(text, size);
    *id = hth_vocab_find(v, text, length);
    return length;
}

/* Write the tokens of a symbol, at most one a byte: one that is no token comes out byte by byte. */
static inline unsigned write_symbol(const hth_vocab *v, hearth_token id, const char *text, size_t size,
                                    hearth_token *out) {
    unsigned count = 0;
    if (id != HTH_NO_TOKEN) {
        out[0] = id;
        return 1;
    }
    for (size_t i = 0; i < size; i++) {
        id = v->byte_token[(unsigned char)text[i]];
        if (id == HTH_NO_TOKEN) id = v->unknown;
        if (id != HTH_NO_TOKEN) out[count++] = id;
    }
    return count;
}

static void put_all(hth_encoder *e, const hearth_token *ids, unsigned count) {
    for (unsigned i = 0; i < count; i++) hth_encoder_put(e, ids[i]);
}

/* ---- short pieces ---- */

typedef struct short_piece {
    unsigned count;
    uint32_t rank[SHORT_PIECE]; /* of symbol i and the one behind it */
    hearth_token merged[SHORT_PIECE];
    hearth_token id[SHORT_PIECE];
    uint8_t begin[SHORT_PIECE + 1];
} short_piece;

static inline void rank_short(const hth_vocab *v, short_piece *s, const char *piece, unsigned i) {
    s->rank[i] = i + 1 >= s->count ? NO_RANK
                                   : rank_of(v, piece + s->begin[i], (size_t)(s->begin[i + 2] - s->begin[i]), s->id[i],
                                             s->id[i + 1], &s->merged[i]);
}

/* Write the tokens of a piece, at most one a byte. */
static unsigned merge_short(hth_encoder *e, const char *piece, size_t size, hearth_token *out) {
    const hth_vocab *v = e->vocab;
    short_piece s;
    s.count = 0;
    for (size_t at = 0, length; at < size; at += length) {
        length = first_symbol(v, piece + at, size - at, &s.id[s.count]);
        if (!v->raw && s.id[s.count] == HTH_NO_TOKEN) continue; /* no token for this byte: as if it were not there */
        s.begin[s.count++] = (uint8_t)at;
    }
    s.begin[s.count] = (uint8_t)size;
    for (unsigned i = 0; i < s.count; i++) rank_short(v, &s, piece, i);
    e->work += s.count;
    for (;;) {
        unsigned best = 0;
        for (unsigned i = 1; i < s.count; i++)
            if (s.rank[i] < s.rank[best]) best = i;
        if (s.count < 2 || s.rank[best] == NO_RANK) break;
        s.id[best] = s.merged[best];
        size_t behind = s.count - best - 2;
        memmove(&s.id[best + 1], &s.id[best + 2], behind * sizeof *s.id);
        memmove(&s.begin[best + 1], &s.begin[best + 2], behind + 1);
        memmove(&s.rank[best + 1], &s.rank[best + 2], behind * sizeof *s.rank);
        memmove(&s.merged[best + 1], &s.merged[best + 2], behind * sizeof *s.merged);
        s.count--;
        rank_short(v, &s, piece, best);
        if (best > 0) rank_short(v, &s, piece, best - 1);
        e->work += 2;
    }
    unsigned count = 0;
    for (unsigned i = 0; i < s.count; i++)
        count += write_symbol(v, s.id[i], piece + s.begin[i], (size_t)(s.begin[i + 1] - s.begin[i]), out + count);
    return count;
}

/* ---- long pieces ---- */

typedef struct long_piece {
    hth_encoder *e;
    const char *text;
    size_t heap_count;
} long_piece;

static void sift_up(hth_candidate *heap, size_t at) {
    hth_candidate moving = heap[at];
    for (; at > 0 && heap[(at - 1) / 2].order > moving.order; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = moving;
}

static void sift_down(hth_candidate *heap, size_t count, size_t at) {
    hth_candidate moving = heap[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child + 1].order < heap[child].order) child++;
        if (heap[child].order >= moving.order) break;
        heap[at] = heap[child];
    }
    heap[at] = moving;
}

/* The pair of a symbol and the one behind it, if it merges. */
static bool candidate_at(const long_piece *p, uint32_t left, hth_candidate *out) {
    const hth_symbol *symbols = p->e->symbols;
    uint32_t right = symbols[left].next;
    p->e->work++;
    if (right == END_OF_LIST) return false;
    const hth_symbol *a = &symbols[left], *b = &symbols[right];
    out->size = a->size + b->size;
    uint32_t rank = rank_of(p->e->vocab, p->text + a->begin, out->size, a->id, b->id, &out->merged);
    out->order = (uint64_t)rank << 32 | left;
    return rank != NO_RANK;
}

/* The heap has room for every pair there is at the start, and for one more for each merge: a merge takes one candidate
 * out and puts at most two in. */
static void add_candidate(long_piece *p, uint32_t left) {
    hth_candidate candidate;
    if (!candidate_at(p, left, &candidate)) return;
    assert(p->heap_count < p->e->heap_capacity);
    p->e->heap[p->heap_count] = candidate;
    sift_up(p->e->heap, p->heap_count++);
}

static void merge_at(long_piece *p, uint32_t left, hearth_token merged) {
    hth_symbol *symbols = p->e->symbols, *a = &symbols[left], *b = &symbols[a->next];
    a->id = merged;
    a->size += b->size;
    b->size = 0;
    a->next = b->next;
    if (a->next != END_OF_LIST) symbols[a->next].previous = left;
    add_candidate(p, left);
    if (a->previous != END_OF_LIST) add_candidate(p, a->previous);
}

/* An array of at least `count` elements in place of a smaller one, whose contents are not kept. */
static void *reserve(void *array, size_t *capacity, size_t count, size_t size) {
    if (*capacity >= count) return array;
    free(array);
    array = count > SIZE_MAX / size ? NULL : malloc(count * size);
    *capacity = array == NULL ? 0 : count;
    return array;
}

static uint32_t list_symbols(hth_encoder *e, const char *piece, size_t size) {
    const hth_vocab *v = e->vocab;
    uint32_t count = 0;
    for (size_t at = 0, length; at < size; at += length) {
        hth_symbol *symbol = &e->symbols[count];
        length = first_symbol(v, piece + at, size - at, &symbol->id);
        if (!v->raw && symbol->id == HTH_NO_TOKEN) continue;
        symbol->begin = (uint32_t)at;
        symbol->size = (uint32_t)length;
        symbol->previous = count == 0 ? END_OF_LIST : count - 1;
        symbol->next = ++count;
    }
    if (count > 0) e->symbols[count - 1].next = END_OF_LIST;
    return count;
}

static hearth_status merge_long(hth_encoder *e, const char *piece, size_t size, hearth_error *err) {
    long_piece p = {.e = e, .text = piece};
    size_t characters = 0;
    for (size_t at = 0; at < size; at += e->vocab->raw ? character_size(piece + at, size - at) : 1) characters++;
    e->symbols = reserve(e->symbols, &e->symbol_capacity, characters, sizeof *e->symbols);
    e->heap = reserve(e->heap, &e->heap_capacity, 2 * characters, sizeof *e->heap);
    if (e->symbols == NULL || e->heap == NULL)
        return hth_fail(err, HEARTH_NO_MEMORY, "no memory to merge a piece of %zu bytes of text", size);

    uint32_t count = list_symbols(e, piece, size);
    for (uint32_t i = 0; i < count; i++)
        if (candidate_at(&p, i, &e->heap[p.heap_count])) p.heap_count++;
    for (size_t i = p.heap_count / 2; i-- > 0;) sift_down(e->heap, p.heap_count, i);
    while (p.heap_count > 0) {
        hth_candidate top = e->heap[0];
        e->heap[0] = e->heap[--p.heap_count];
        if (p.heap_count > 0) sift_down(e->heap, p.heap_count, 0);
        uint32_t left = (uint32_t)top.order;
        const hth_symbol *a = &e->symbols[left];
        if (a->size == 0 || a->next == END_OF_LIST || a->size + e->symbols[a->next].size != top.size) continue;
        merge_at(&p, left, top.merged);
    }
    for (uint32_t i = count == 0 ? END_OF_LIST : 0; i != END_OF_LIST; i = e->symbols[i].next) {
        const hth_symbol *symbol = &e->symbols[i];
        hearth_token bytes[4]; /* a symbol that is no token was never merged: it is one character */
        put_all(e, bytes, write_symbol(e->vocab, symbol->id, piece + symbol->begin, symbol->size, bytes));
    }
    return HEARTH_OK;
}

/* ---- pieces that come again ---- */

enum { CACHE_SLOTS = 4096, CACHED_BYTES = 15, CACHED_TOKENS = 4 };

typedef struct cached_piece {
    char piece[CACHED_BYTES + 1]; /* the size in the last byte; 0: free */
    hearth_token ids[CACHED_TOKENS];
    uint32_t count;
} cached_piece;

struct hth_piece_cache {
    cached_piece slots[CACHE_SLOTS];
};

void hth_encoder_use_cache(hth_encoder *e) {
    if (e->cache == NULL) e->cache = calloc(1, sizeof *e->cache);
}

static void encode_cached(hth_encoder *e, const char *piece, size_t size) {
    char name[CACHED_BYTES + 1] = {0};
    uint64_t words[2];
    memcpy(name, piece, size);
    name[CACHED_BYTES] = (char)size;
    memcpy(words, name, sizeof words);
    uint64_t hash = hth_vocab_mix(words[0] ^ e->vocab->key, words[1] ^ 0x9E3779B97F4A7C15u);
    cached_piece *slot = &e->cache->slots[hash % CACHE_SLOTS];
    if (memcmp(slot->piece, name, sizeof name) != 0) {
        hearth_token ids[SHORT_PIECE];
        unsigned count = merge_short(e, piece, size, ids);
        if (count > CACHED_TOKENS) {
            put_all(e, ids, count);
            return;
        }
        memcpy(slot->piece, name, sizeof name);
        memcpy(slot->ids, ids, count * sizeof *ids);
        slot->count = count;
    }
    e->work++;
    put_all(e, slot->ids, slot->count);
}

hearth_status hth_encode_piece(hth_encoder *e, const char *piece, size_t size, hearth_error *err) {
    if (e->whole_pieces) {
        hearth_token id = hth_vocab_find(e->vocab, piece, size);
        if (id != HTH_NO_TOKEN) {
            e->work++;
            hth_encoder_put(e, id);
            return HEARTH_OK;
        }
    }
    if (size > SHORT_PIECE) return merge_long(e, piece, size, err);
    if (size <= CACHED_BYTES && e->cache != NULL) {
        encode_cached(e, piece, size);
    } else {
        hearth_token ids[SHORT_PIECE];
        put_all(e, ids, merge_short(e, piece, size, ids));
    }
    return HEARTH_OK;
}

void hth_encoder_free(hth_encoder *e) {
    free(e->symbols);
    free(e->heap);
    free(e->cache);
}
