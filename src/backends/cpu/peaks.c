/* What this machine can do at most, in a tier's instructions and on the pool's threads: the best of a few rounds. */
#include <stdio.h>

#include "backends/cpu/executable.h"
#include "base/clock.h"

enum {
    ROUNDS = 5,
    READ_NS = 20 * 1000 * 1000, /* a round */
    PEAK_NS = 6 * 1000 * 1000,
    READ_PIECE = 1 << 20, /* bytes between two looks at the clock */
    PEAK_PIECE = 1 << 14  /* rounds of a peak */
};

/* ---- A round: some threads repeat a piece of work for as long as the round takes ---- */

typedef struct trial {
    hth_pool *pool;
    int threads;
    uint64_t length_ns;
    const hth_peak *peak; /* NULL: read */
    hth_read_fn *read;
    const unsigned char *base; /* part `thread` of what is read starts at base + thread * part */
    size_t part;               /* a multiple of HTH_READ_UNIT */
    double rates[HTH_POOL_MAX];
    _Atomic uint64_t sink; /* keeps the results in use */
} trial;

/* Read the next piece of a thread's part, which follows its end with its start. Bytes. */
static double read_piece(trial *t, int thread, size_t *at) {
    size_t bytes = t->part - *at < READ_PIECE ? t->part - *at : READ_PIECE;
    t->sink ^= t->read(t->base + (size_t)thread * t->part + *at, bytes);
    *at = *at + bytes == t->part ? 0 : *at + bytes;
    return (double)bytes;
}

static double multiply_piece(trial *t) {
    t->sink ^= t->peak->run(PEAK_PIECE);
    return PEAK_PIECE * t->peak->ops;
}

static void work_trial(void *arg, int thread) {
    trial *t = arg;
    hth_pool_barrier(t->pool); /* all are awake */
    if (thread >= t->threads) return;
    double done = 0;
    size_t at = 0;
    uint64_t start = hth_now_ns(), took;
    do {
        done += t->peak ? multiply_piece(t) : read_piece(t, thread, &at);
        took = hth_now_ns() - start;
    } while (took < t->length_ns);
    t->rates[thread] = done * 1e9 / (double)took;
}

static double best_rate(trial *t) {
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double sum = 0;
        hth_pool_run(t->pool, work_trial, t);
        for (int i = 0; i < t->threads; i++) sum += t->rates[i];
        if (sum > best) best = sum;
    }
    return best;
}

/* ---- What is read ---- */

/* The last cache of the first core, or 0 where the system does not say. A machine may have several, each for some
 * cores. (sysconf names what the processor's package has, which may be many times as much.) */
static uint64_t cache_bytes(void) {
    static const char *const levels[] = {"/sys/devices/system/cpu/cpu0/cache/index3/size",
                                         "/sys/devices/system/cpu/cpu0/cache/index2/size"};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        FILE *f = fopen(levels[i], "re");
        unsigned kib = 0;
        if (!f) continue;
        int found = fscanf(f, "%uK", &kib);
        fclose(f);
        if (found == 1) return (uint64_t)kib << 10;
    }
    return 0;
}

/* Bytes to read: so many that what a cache keeps of them hardly counts. */
static uint64_t bytes_to_read(uint64_t cache, int threads) {
    const uint64_t least = (uint64_t)256 << 20, most = (uint64_t)4 << 30;
    uint64_t bytes = cache * (uint64_t)hth_max(8, 2 * threads);
    return bytes < least ? least : bytes > most ? most : bytes;
}

static hearth_status map_buffer(hth_arena *arena, uint64_t wanted, uint64_t memory, int threads, hearth_error *err) {
    uint64_t bytes = wanted < memory ? wanted : memory;
    if (bytes < (uint64_t)threads * READ_PIECE)
        return hth_fail(err, HEARTH_NO_MEMORY,
                        "to measure how fast %d threads read takes %llu bytes, %llu are to be had", threads,
                        (unsigned long long)threads * READ_PIECE, (unsigned long long)bytes);
    return hth_arena_map(arena, (size_t)bytes, "memory to read", err);
}

hearth_status hth_cpu_peaks(hth_pool *pool, const hth_kernels *kernels, uint64_t memory, hth_peaks *rows, size_t count,
                            hearth_error *err) {
    int threads = hth_pool_threads(pool);
    uint64_t cache = cache_bytes(), wanted = bytes_to_read(cache, threads);
    hth_arena arena;
    HTH_TRY(map_buffer(&arena, wanted, memory, threads, err));
    size_t bytes = arena.capacity - HTH_ARENA_GAP;
    unsigned char *base = hth_arena_take(&arena, bytes, 0);
    for (size_t i = 0; i < count; i++) {
        hth_peaks *row = &rows[i];
        trial t = {.pool = pool, .threads = row->threads, .read = kernels->read, .base = base};
        t.part = bytes / (size_t)row->threads / HTH_READ_UNIT * HTH_READ_UNIT;
        t.length_ns = READ_NS;
        row->read_bytes_per_s = best_rate(&t);
        row->read_bytes = t.part * (size_t)row->threads;
        row->cache_bytes = cache;
        row->read_cached = row->read_bytes < 4 * cache;
        t.length_ns = PEAK_NS;
        t.peak = &kernels->peak_int8;
        row->int8_ops_per_s = best_rate(&t);
        t.peak = &kernels->peak_float;
        row->float_ops_per_s = best_rate(&t);
    }
    hth_arena_unmap(&arena);
    return HEARTH_OK;
}
