#include "kernels/check.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/half.h"

/* ---- Cases ---- */

bool check_begin(check *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(c->label, sizeof c->label, format, args);
    va_end(args);
    if (c->filter && !strstr(c->label, c->filter)) return false;
    uint64_t h = c->seed * UINT64_C(0x9E3779B97F4A7C15);
    for (const char *s = c->label; *s; s++) h = (h ^ (uint8_t)*s) * UINT64_C(0x100000001B3);
    c->random = h;
    return true;
}

void check_fail(check *c, const char *format, ...) {
    c->failures++;
    fprintf(stderr, "FAIL tier %s: %s: ", c->tier->name, c->label);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, " (--seed %" PRIu64 ")\n", c->seed);
    if (c->failures >= 20) {
        fprintf(stderr, "too many failures\n");
        exit(1);
    }
}

/* ---- Random data ---- */

/* splitmix64 */
static uint64_t next(check *c) {
    uint64_t z = c->random += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

uint32_t check_u32(check *c) {
    return (uint32_t)(next(c) >> 32);
}

int64_t check_below(check *c, int64_t n) {
    return (int64_t)(next(c) % (uint64_t)n);
}

float check_float(check *c, float lo, float hi) {
    return lo + (hi - lo) * ((float)(check_u32(c) >> 8) * 0x1p-24f);
}

float check_any_float(check *c) {
    return hth_f32_from_bits(check_u32(c));
}

void check_bytes(check *c, void *p, size_t n) {
    uint8_t *at = p;
    for (; n >= 8; n -= 8, at += 8) {
        uint64_t v = next(c);
        memcpy(at, &v, 8);
    }
    for (; n; n--) *at++ = (uint8_t)next(c);
}

/* ---- Buffers ---- */

check_buffer check_alloc(size_t n, bool front) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), inner = (n + page - 1) / page * page;
    check_buffer b = {.map_bytes = inner + 2 * page, .n = n};
    b.map = mmap(NULL, b.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b.map == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    uint8_t *first = (uint8_t *)b.map + page;
    mprotect(b.map, page, PROT_NONE);
    mprotect(first + inner, page, PROT_NONE);
    memset(first, 0xA5, inner);
    b.at = front ? first : first + inner - n;
    return b;
}

void check_free(check_buffer *b) {
    if (b->map) munmap(b->map, b->map_bytes);
    b->map = NULL;
}

/* ---- Comparison ---- */

static bool same_float(float a, float b) {
    return hth_f32_bits(a) == hth_f32_bits(b) || (a != a && b != b);
}

bool check_floats(check *c, const float *want, const float *got, int64_t n, int64_t columns) {
    if (memcmp(want, got, (size_t)n * sizeof *want) == 0) return true;
    for (int64_t i = 0; i < n; i++)
        if (!same_float(want[i], got[i])) {
            check_fail(c, "row %" PRId64 " column %" PRId64 ": want %a (%08x), got %a (%08x)", i / columns, i % columns,
                       (double)want[i], hth_f32_bits(want[i]), (double)got[i], hth_f32_bits(got[i]));
            return false;
        }
    return true;
}

bool check_same(check *c, const char *what, const void *want, const void *got, size_t n) {
    if (memcmp(want, got, n) == 0) return true;
    size_t i = 0;
    while (((const uint8_t *)want)[i] == ((const uint8_t *)got)[i]) i++;
    check_fail(c, "%s: byte %zu: want %02x, got %02x", what, i, ((const uint8_t *)want)[i], ((const uint8_t *)got)[i]);
    return false;
}

/* ---- Time ---- */

typedef struct timed {
    void (*work)(void *arg, int thread);
    void *arg;
    int thread;
    pthread_barrier_t *barrier;
    int calls;
} timed;

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *run_thread(void *p) {
    timed *t = p;
    for (int i = 0; i < t->calls; i++) {
        pthread_barrier_wait(t->barrier);
        t->work(t->arg, t->thread);
        pthread_barrier_wait(t->barrier);
    }
    return NULL;
}

static int by_time(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double check_time(check *c, void work(void *arg, int thread), void *arg) {
    enum { MAX_CALLS = 2000, MAX_THREADS = 64 };
    static double took[MAX_CALLS];
    clockid_t clock = c->threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
    double t0 = seconds(clock);
    work(arg, 0);
    int calls = (int)(0.25 / (seconds(clock) - t0 + 1e-6));
    calls = calls < 5 ? 5 : calls > MAX_CALLS ? MAX_CALLS : calls;
    pthread_barrier_t barrier;
    pthread_t threads[MAX_THREADS];
    timed t[MAX_THREADS];
    pthread_barrier_init(&barrier, NULL, (unsigned)c->threads);
    for (int i = 1; i < c->threads; i++) {
        t[i] = (timed){work, arg, i, &barrier, calls};
        if (pthread_create(&threads[i], NULL, run_thread, &t[i])) abort();
    }
    for (int i = 0; i < calls; i++) {
        pthread_barrier_wait(&barrier);
        t0 = seconds(clock);
        work(arg, 0);
        pthread_barrier_wait(&barrier);
        took[i] = seconds(clock) - t0;
    }
    for (int i = 1; i < c->threads; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    qsort(took, (size_t)calls, sizeof *took, by_time);
    return took[calls / 20];
}

/* ---- Tiers ---- */

typedef struct tier {
    const char *name;
    void (*fill)(hth_kernels *t);
    int below; /* index of the tier it stands on; -1 for ref */
    bool present;
} tier;

#if defined(__x86_64__)
enum { TIERS = 4 };
static void tiers_init(tier *t) {
    hth_cpu cpu;
    hth_cpu_probe(&cpu);
#ifdef HEARTH_EMULATED
    cpu.avxvnni = cpu.avx512 = cpu.avx2;
#endif
    t[0] = (tier){"ref", hth_kernels_ref, -1, true};
    t[1] = (tier){"avx2", hth_kernels_avx2, 0, cpu.avx2};
    t[2] = (tier){"avxvnni", hth_kernels_avxvnni, 1, cpu.avxvnni};
    t[3] = (tier){"avx512", hth_kernels_avx512, 1, cpu.avx512};
}
#else
enum { TIERS = 1 };
static void tiers_init(tier *t) {
    t[0] = (tier){"ref", hth_kernels_ref, -1, true};
}
#endif

static bool required(const char *name) {
    const char *list = getenv("HEARTH_REQUIRE_TIER");
    return list && strstr(list, name);
}

static void usage(const char *program) {
    fprintf(stderr, "usage: %s [--seed N] [--filter TEXT] [--tier NAME] [--bench] [--threads N]\n", program);
    exit(2);
}

int check_main(int argc, char **argv, const char *family, void run(check *c)) {
    check c = {.seed = 1, .threads = 1};
    const char *only = NULL;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--bench") == 0) c.bench = true;
        else if (strcmp(argv[i], "--seed") == 0 && more) c.seed = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--filter") == 0 && more) c.filter = argv[++i];
        else if (strcmp(argv[i], "--tier") == 0 && more) only = argv[++i];
        else if (strcmp(argv[i], "--threads") == 0 && more) c.threads = (int)strtol(argv[++i], NULL, 10);
        else usage(argv[0]);
    }
    if (c.threads < 1 || c.threads > 64) usage(argv[0]);

    tier tiers[TIERS];
    static hth_kernels tables[TIERS];
    tiers_init(tiers);
    bool used[TIERS] = {false}; /* those asked for, and what they stand on */
    for (int i = 0; i < TIERS; i++)
        for (int j = i; j >= 0 && (!only || strcmp(only, tiers[i].name) == 0); j = tiers[j].below) used[j] = true;
    int failures = 0;
    for (int i = 0; i < TIERS; i++) {
        if (tiers[i].below >= 0) tables[i] = tables[tiers[i].below];
        if (tiers[i].present && used[i]) tiers[i].fill(&tables[i]); /* which, too, takes the tier's instructions */
        if (only && strcmp(only, tiers[i].name) != 0) continue;
        if (!tiers[i].present) {
            bool fail = required(tiers[i].name);
            printf("%s: tier %s: not on this machine%s\n", family, tiers[i].name, fail ? ", but required: FAIL" : "");
            failures += fail;
            continue;
        }
        c.ref = &tables[0];
        c.base = &tables[tiers[i].below < 0 ? 0 : tiers[i].below];
        c.tier = &tables[i];
        c.failures = 0;
        if (!c.bench) printf("%s: tier %s, seed %" PRIu64 "\n", family, tiers[i].name, c.seed);
        fflush(stdout);
        run(&c);
        failures += c.failures;
    }
    if (failures) printf("%s: %d failures\n", family, failures);
    return failures ? 1 : 0;
}
