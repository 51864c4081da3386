/* What the files that load a vocabulary share. */
#ifndef HTH_TEXT_VOCAB_INTERNAL_H
#define HTH_TEXT_VOCAB_INTERNAL_H

#include "text/vocab.h"

#define HTH_VOCAB_MERGES "tokenizer.ggml.merges"

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

/* The slot of a text: its own, or the free one where it belongs. */
size_t hth_vocab_text_slot(const hth_vocab *v, const char *text, size_t size, uint64_t hash);

/* vocab_merges.c: the bytes of a table of so many merges. */
uint64_t hth_vocab_merge_bytes(uint64_t count);

/* vocab_merges.c: fill the pairs from the merges of the file. findable[id]: merging may produce the token, and it is
 * the one that its text finds. */
hearth_status hth_vocab_read_merges(hth_vocab *v, const hth_gguf *g, const hth_gguf_kv *tokens, const bool *findable,
                                    hearth_error *err);

#endif
