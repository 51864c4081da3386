#include "kernels/limits.h"

#include <stdlib.h>
#include <string.h>

enum { READ_BYTES = 256 << 20 };

#if defined(__x86_64__)
#include <immintrin.h>

typedef struct reading {
    const uint8_t *p;
    int threads;
    long long sink[64];
} reading;

__attribute__((target("avx2"))) static void read_part(void *arg, int thread) {
    reading *r = arg;
    size_t part = READ_BYTES / (size_t)r->threads / 256 * 256;
    const uint8_t *p = r->p + part * (size_t)thread;
    __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
    for (size_t i = 0; i < part; i += 128) {
        a = _mm256_xor_si256(a, _mm256_loadu_si256((const __m256i *)(p + i)));
        b = _mm256_xor_si256(b, _mm256_loadu_si256((const __m256i *)(p + i + 32)));
        c = _mm256_xor_si256(c, _mm256_loadu_si256((const __m256i *)(p + i + 64)));
        d = _mm256_xor_si256(d, _mm256_loadu_si256((const __m256i *)(p + i + 96)));
    }
    a = _mm256_xor_si256(_mm256_xor_si256(a, b), _mm256_xor_si256(c, d));
    r->sink[thread] ^= _mm256_extract_epi64(a, 0) ^ _mm256_extract_epi64(a, 2);
}

enum { ITERATIONS = 100000, MACS_AVX2 = 12 * 32, MACS_VNNI256 = 12 * 32, MACS_VNNI512 = 12 * 64 };

/* Twelve independent chains, written out so that nothing is hoisted. */
#define AVX2_STEP(r) "vpmaddubsw %7, %6, %%ymm12\n\tvpmaddwd %8, %%ymm12, %%ymm12\n\tvpaddd %%ymm12, " r ", " r "\n\t"
__attribute__((target("avx2"))) static void multiply_avx2(void *arg, int thread) {
    (void)arg;
    (void)thread;
    __m256i a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(5), one = _mm256_set1_epi16(1);
    __m256i r0 = _mm256_setzero_si256(), r1 = r0, r2 = r0, r3 = r0, r4 = r0, r5 = r0;
    for (int i = 0; i < ITERATIONS; i++)
        __asm__ volatile(AVX2_STEP("%0") AVX2_STEP("%1") AVX2_STEP("%2") AVX2_STEP("%3") AVX2_STEP("%4") AVX2_STEP("%5")
                             AVX2_STEP("%0") AVX2_STEP("%1") AVX2_STEP("%2") AVX2_STEP("%3") AVX2_STEP("%4")
                                 AVX2_STEP("%5")
                         : "+x"(r0), "+x"(r1), "+x"(r2), "+x"(r3), "+x"(r4), "+x"(r5)
                         : "x"(a), "x"(b), "x"(one)
                         : "xmm12");
}

#define VNNI_STEPS(R, E)                                                                                               \
    __asm__ volatile(                                                                                                  \
        E "vpdpbusd %%" R "14, %%" R "15, %%" R "0\n\t" E "vpdpbusd %%" R "14, %%" R "15, %%" R "1\n\t" E              \
          "vpdpbusd %%" R "14, %%" R "15, %%" R "2\n\t" E "vpdpbusd %%" R "14, %%" R "15, %%" R "3\n\t" E              \
          "vpdpbusd %%" R "14, %%" R "15, %%" R "4\n\t" E "vpdpbusd %%" R "14, %%" R "15, %%" R "5\n\t" E              \
          "vpdpbusd %%" R "14, %%" R "15, %%" R "6\n\t" E "vpdpbusd %%" R "14, %%" R "15, %%" R "7\n\t" E              \
          "vpdpbusd %%" R "14, %%" R "15, %%" R "8\n\t" E "vpdpbusd %%" R "14, %%" R "15, %%" R "9\n\t" E              \
          "vpdpbusd %%" R "14, %%" R "15, %%" R "10\n\t" E "vpdpbusd %%" R "14, %%" R "15, %%" R "11\n\t" ::           \
              : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11")

static void multiply_avxvnni(void *arg, int thread) {
    (void)arg;
    (void)thread;
    for (int i = 0; i < ITERATIONS; i++) VNNI_STEPS("ymm", "%{vex%} ");
}

static void multiply_avx512(void *arg, int thread) {
    (void)arg;
    (void)thread;
    for (int i = 0; i < ITERATIONS; i++) VNNI_STEPS("zmm", "");
}

double limit_read_gbs(check *c) {
    static double known[2];
    double *rate = &known[c->threads > 1];
    if (*rate > 0) return *rate;
    uint8_t *p = aligned_alloc(64, READ_BYTES);
    memset(p, 1, READ_BYTES);
    reading r = {.p = p, .threads = c->threads};
    *rate = READ_BYTES / check_time(c, read_part, &r) * 1e-9;
    free(p);
    return *rate;
}

double limit_int8_gops(check *c) {
    static const struct {
        const char *tier;
        void (*work)(void *arg, int thread);
        int macs;
    } loops[] = {{"avx2", multiply_avx2, MACS_AVX2},
                 {"avxvnni", multiply_avxvnni, MACS_VNNI256},
                 {"avx512", multiply_avx512, MACS_VNNI512}};
    static double known[3][2];
    for (int i = 0; i < 3; i++) {
        if (strcmp(c->tier->name, loops[i].tier) != 0) continue;
        double *rate = &known[i][c->threads > 1];
        if (*rate == 0)
            *rate = 2.0 * ITERATIONS * loops[i].macs * c->threads / check_time(c, loops[i].work, NULL) * 1e-9;
        return *rate;
    }
    return 0;
}
#else
double limit_read_gbs(check *c) {
    (void)c;
    return 0;
}

double limit_int8_gops(check *c) {
    (void)c;
    return 0;
}
#endif
