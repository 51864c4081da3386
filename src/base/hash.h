/* Keyed hashing of byte strings that may have been chosen by an adversary: SipHash-1-3 (J.-P. Aumasson and
 * D. J. Bernstein, "SipHash: a fast short-input PRF") under a key that a file cannot know, so that no file can make a
 * hash table quadratic. */
#ifndef HTH_BASE_HASH_H
#define HTH_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct hth_hash_key {
    uint64_t k0, k1;
} hth_hash_key;

/* A fresh key from the system's random source. */
hth_hash_key hth_hash_new_key(void);

uint64_t hth_hash(hth_hash_key key, const void *data, size_t size);

#endif
