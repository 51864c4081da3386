/* SHA-256 (FIPS 180-4), so that a report of bytes can be compared without the bytes. */
#ifndef HTH_CLI_SHA256_H
#define HTH_CLI_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct hth_sha256 {
    uint32_t state[8];
    uint64_t size; /* bytes added */
    unsigned char block[64];
} hth_sha256;

void hth_sha256_begin(hth_sha256 *hash);
void hth_sha256_add(hth_sha256 *hash, const void *data, size_t size);
/* The digest as 64 hexadecimal digits; the hash is then used up. */
void hth_sha256_end(hth_sha256 *hash, char hex[65]);
/* The digest of size bytes at once. */
void hth_sha256_digest(const void *data, size_t size, char hex[65]);

#endif
