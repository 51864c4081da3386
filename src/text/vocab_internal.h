/* What the files that load a vocabulary share. */
#ifndef HTH_TEXT_VOCAB_INTERNAL_H
#define HTH_TEXT_VOCAB_INTERNAL_H

#include <stdatomic.h>

#include "base/thread.h"
#include "text/vocab.h"

#define HTH_VOCAB_TOKENS "tokenizer.ggml.tokens"
#define HTH_VOCAB_MERGES "tokenizer.ggml.merges"

/* The tables are built by a pool of threads, each of which reads a share of the file's arrays, one run of entries after
 * the other. They put what they read into one table; which slot an entry gets depends on who comes first, what the
 * table says does not. */
#define HTH_VOCAB_WORKERS 4

/* The first of `count` entries that is worker w's; those up to the next worker's first are its share. */
static inline uint64_t hth_vocab_share(uint64_t count, int workers, int w) {
    return count / (uint64_t)workers * (uint64_t)w +
           (count % (uint64_t)workers < (uint64_t)w ? count % (uint64_t)workers : (uint64_t)w);
}

/* Entries worked on together: what one needs from memory is fetched while the others are worked on. */
enum { HTH_VOCAB_BATCH = 32 };

hearth_status hth_vocab_no_memory(const char *what, uint64_t count, hearth_error *err);

/* The array with this key, checked for its element type and, unless `count` is UINT64_MAX, its length; *out is NULL
 * when it is absent, which is no error. */
hearth_status hth_vocab_array(const hth_gguf *g, const char *key, bool strings, uint64_t count, const hth_gguf_kv **out,
                              hearth_error *err);

/* Copy a text with each U+2581 as a space; `out` has room for all of it. The answer is the size of the copy. */
size_t hth_vocab_copy_raw(hth_string text, char *out);

/* The number of slots for `count` entries, less one: a power of two of which at most two thirds are taken. */
size_t hth_vocab_slot_mask(size_t count);

/* As hth_vocab_find, for a text whose hash is known and that is not longer than the longest piece. */
hearth_token hth_vocab_find_hashed(const hth_vocab *v, const char *text, size_t size, uint64_t hash);

/* Whether a token of this type is found in any text before merging. */
static inline bool hth_token_is_special(unsigned type) {
    return type == HTH_TOKEN_CONTROL || type == HTH_TOKEN_UNKNOWN || type == HTH_TOKEN_USER;
}

/* vocab_texts.c: reserve the tables of texts from an arena, which counts or is mapped. */
void hth_vocab_carve_texts(hth_vocab *v, hth_arena *arena, const hth_gguf_kv *tokens);

/* vocab_texts.c: fill the tables of texts, and correct the types of byte tokens. findable[id], false before: merging
 * may produce the token, and it is the one that its text finds. */
hearth_status hth_vocab_read_texts(hth_vocab *v, const hth_gguf_kv *tokens, hth_pool *pool, atomic_bool *findable,
                                   hearth_error *err);

/* vocab_merges.c: the bytes of a table of so many merges. */
uint64_t hth_vocab_merge_bytes(uint64_t count);

/* vocab_merges.c: fill the pairs from the merges of the file. */
hearth_status hth_vocab_read_merges(hth_vocab *v, const hth_gguf *g, const hth_gguf_kv *tokens, hth_pool *pool,
                                    const atomic_bool *findable, hearth_error *err);

#endif
