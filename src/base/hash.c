#include "base/hash.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

hth_hash_key hth_hash_new_key(void) {
    hth_hash_key key;
    if (getrandom(&key, sizeof key, GRND_NONBLOCK) == (ssize_t)sizeof key) return key;
    /* Early boot or an old kernel: the clock and the stack's address are still unknown to whoever wrote the file. */
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    key.k0 = (uint64_t)now.tv_nsec * 0x9E3779B97F4A7C15u ^ (uint64_t)now.tv_sec;
    key.k1 = (uint64_t)(uintptr_t)&now * 0xD1B54A32D192ED03u;
    return key;
}

static uint64_t rotl(uint64_t x, int n) {
    return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4]) {
    v[0] += v[1], v[2] += v[3];
    v[1] = rotl(v[1], 13) ^ v[0], v[3] = rotl(v[3], 16) ^ v[2];
    v[0] = rotl(v[0], 32);
    v[2] += v[1], v[0] += v[3];
    v[1] = rotl(v[1], 17) ^ v[2], v[3] = rotl(v[3], 21) ^ v[0];
    v[2] = rotl(v[2], 32);
}

static void absorb(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

uint64_t hth_hash(hth_hash_key key, const void *data, size_t size) {
    uint64_t v[4] = {key.k0 ^ 0x736F6D6570736575u, key.k1 ^ 0x646F72616E646F6Du, key.k0 ^ 0x6C7967656E657261u,
                     key.k1 ^ 0x7465646279746573u};
    const unsigned char *p = data;
    size_t left = size;
    for (; left >= 8; left -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        absorb(v, word);
    }
    uint64_t last = (uint64_t)size << 56;
    for (size_t i = 0; i < left; i++) last |= (uint64_t)p[i] << (8 * i);
    absorb(v, last);
    v[2] ^= 0xFF;
    for (int i = 0; i < 3; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
