/* Thread pool: every worker runs once a run, barriers order memory, claims cover the work exactly, a refused thread
 * leaves nothing behind, no run allocates, and threads that woke up compute on CPUs of their own. `--bench` prints
 * latencies. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/spread.h"
#include "base/thread.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

/* Refuse the Nth thread from now on: stands in front of the C library's pthread_create. The sanitizers have their own
 * in that place, so they run the rest of this file only. */
#ifndef SANITIZED
static int threads_until_refusal = -1;
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg) {
    if (threads_until_refusal == 0) return EAGAIN;
    if (threads_until_refusal > 0) threads_until_refusal--;
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attr, fn, arg);
}

/* What the calling thread was bound to last. */
static _Thread_local cpu_set_t last_mask;
int sched_setaffinity(pid_t thread, size_t size, const cpu_set_t *mask) {
    int (*real)(pid_t, size_t, const cpu_set_t *);
    *(void **)&real = dlsym(RTLD_NEXT, "sched_setaffinity");
    if (thread == 0 && size == sizeof last_mask) last_mask = *mask;
    return real(thread, size, mask);
}
#endif

static int thread_count(void) {
    char line[256];
    int n = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "Threads: %d", &n) == 1) break;
    fclose(f);
    return n;
}

static hth_pool *pool_of(int threads, unsigned spin_us) {
    hth_pool *pool;
    hearth_error err;
    hth_pool_options options = {.threads = threads, .spin_us = spin_us};
    if (hth_pool_create(&pool, &options, &err) != HEARTH_OK) fail_msg("%s", err.text);
    assert_int_equal(hth_pool_threads(pool), threads);
    return pool;
}

enum { MOST = 8 };

typedef struct count_job {
    hth_pool *pool;
    int ran[MOST]; /* plain: written by one worker, read by the caller after the run */
} count_job;

static void count_run(void *arg, int worker) {
    ((count_job *)arg)->ran[worker]++;
}

static void every_worker_runs_once(void **state) {
    (void)state;
    for (int threads = 1; threads <= MOST; threads++)
        for (unsigned spin = 0; spin <= 100; spin += 100) {
            count_job job = {.pool = pool_of(threads, spin)};
            for (int run = 1; run <= 200; run++) {
                hth_pool_run(job.pool, count_run, &job);
                for (int i = 0; i < threads; i++) assert_int_equal(job.ran[i], run);
                if (run % 50 == 0) usleep(2000); /* workers fall asleep */
            }
            hth_pool_free(&job.pool);
            assert_null(job.pool);
        }
}

/* Rounds of: add up what the others wrote in the round before, meet, write, meet. A barrier that lets one thread
 * through early is a wrong sum, and a race for ThreadSanitizer. */
enum { ROUNDS = 300, ITEMS = 97 };
typedef struct round_job {
    hth_pool *pool;
    int threads;
    int64_t cell[MOST];
    int done[ITEMS];
    _Atomic int wrong;
} round_job;

static void round_run(void *arg, int worker) {
    round_job *job = arg;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t sum = 0;
        for (int i = 0; i < job->threads; i++) sum += job->cell[i];
        if (sum != (int64_t)round * job->threads) atomic_fetch_add(&job->wrong, 1);
        hth_pool_barrier(job->pool);
        job->cell[worker]++;
        for (int64_t i = hth_pool_claim(job->pool, 5); i < ITEMS; i = hth_pool_claim(job->pool, 5))
            for (int64_t j = i; j < i + 5 && j < ITEMS; j++) job->done[j]++;
        hth_pool_barrier(job->pool);
    }
}

static void barriers_and_claims(void **state) {
    (void)state;
    for (int threads = 1; threads <= MOST; threads += 1 + (threads > 3))
        for (unsigned spin = 0; spin <= 200; spin += 200) {
            round_job job = {.threads = threads};
            job.pool = pool_of(threads, spin);
            hth_pool_run(job.pool, round_run, &job);
            assert_int_equal(job.wrong, 0);
            for (int i = 0; i < ITEMS; i++) assert_int_equal(job.done[i], ROUNDS);
            hth_pool_free(&job.pool);
        }
}

#if defined(__x86_64__)
static uint32_t float_state(void) {
    uint32_t s;
    __asm__ volatile("stmxcsr %0" : "=m"(s));
    return s & ~0x3Fu; /* without the sticky flags */
}
static void set_float_state(uint32_t s) {
    __asm__ volatile("ldmxcsr %0" : : "m"(s));
}

static void state_run(void *arg, int worker) {
    ((uint32_t *)arg)[worker] = float_state();
}

static void float_state_is_standard_and_restored(void **state) {
    (void)state;
    uint32_t before = float_state(), odd = 0x1F80 | 0x8040 | 0x6000; /* flush to zero, denormals are zero, truncate */
    set_float_state(odd);
    hth_pool *pool = pool_of(3, 100); /* its workers would inherit the odd state */
    uint32_t seen[3] = {0};
    hth_pool_run(pool, state_run, seen);
    assert_int_equal(float_state(), odd & ~0x3Fu);
    set_float_state(before);
    for (int i = 0; i < 3; i++) assert_int_equal(seen[i], 0x1F80);
    hth_pool_free(&pool);
}
#endif

static void signals_run(void *arg, int worker) {
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    ((int *)arg)[worker] = sigismember(&set, SIGINT) << 1 | sigismember(&set, SIGBUS);
}

static void workers_take_no_signals(void **state) {
    (void)state;
    hth_pool *pool = pool_of(2, 0);
    int masks[2];
    hth_pool_run(pool, signals_run, masks);
    assert_int_equal(masks[0], 0);
    assert_int_equal(masks[1], 2);
    hth_pool_free(&pool);
}

static void pin_run(void *arg, int worker) {
    cpu_set_t set;
    pthread_getaffinity_np(pthread_self(), sizeof set, &set);
    ((int *)arg)[worker] = CPU_COUNT(&set);
}

static void pinning(void **state) {
    (void)state;
    int cpus[HTH_CPU_MAX], n = hth_cpu_core_list(cpus, HTH_CPU_MAX);
    hth_pool *pool;
    hearth_error err;
    hth_pool_options options = {.threads = 2, .pin = (int[]){cpus[0], cpus[n - 1]}, .spin_us = 10};
    assert_int_equal(hth_pool_create(&pool, &options, &err), HEARTH_OK);
    int counts[2] = {0};
    hth_pool_run(pool, pin_run, counts);
    assert_int_equal(counts[1], 1);
    hth_pool_free(&pool);

    int before = thread_count();
    options.pin = (int[]){0, 100000};
    assert_int_equal(hth_pool_create(&pool, &options, &err), HEARTH_BAD_OPTION);
    assert_non_null(strstr(err.text, "100000"));
    assert_null(pool);
    assert_int_equal(thread_count(), before);
}

static void refusals(void **state) {
    (void)state;
    hth_pool *pool;
    hearth_error err;
    hth_pool_options options = {.threads = 0};
    assert_int_equal(hth_pool_create(&pool, &options, &err), HEARTH_BAD_OPTION);
    options.threads = HTH_POOL_MAX + 1;
    assert_int_equal(hth_pool_create(&pool, &options, &err), HEARTH_BAD_OPTION);
    assert_null(pool);
#ifndef SANITIZED
    int before = thread_count();
    options.threads = 5;
    for (int n = 0; n < 4; n++) {
        threads_until_refusal = n;
        assert_int_equal(hth_pool_create(&pool, &options, &err), HEARTH_NO_MEMORY);
        threads_until_refusal = -1;
        assert_null(pool);
        assert_non_null(strstr(err.text, "thread"));
        assert_int_equal(thread_count(), before);
    }
#endif
    hth_pool_free(&pool);
}

/* ---- Bench ---- */

static void nothing_run(void *arg, int worker) {
    (void)arg;
    (void)worker;
}

static void barrier_run(void *arg, int worker) {
    (void)worker;
    for (int i = 0; i < 1000; i++) hth_pool_barrier(arg);
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int bench(void) {
    hth_cpu cpu;
    hth_cpu_probe(&cpu);
    printf("%s\n", cpu.name);
    for (int threads = 1; threads <= cpu.cores; threads *= 2) {
        hth_pool *pool = pool_of(threads, HTH_POOL_SPIN_US);
        enum { RUNS = 20001 };
        static uint64_t ns[RUNS];
        for (int i = 0; i < RUNS; i++) {
            uint64_t start = hth_now_ns();
            hth_pool_run(pool, nothing_run, NULL);
            ns[i] = hth_now_ns() - start;
        }
        qsort(ns, RUNS, sizeof ns[0], by_value);
        uint64_t start = hth_now_ns();
        for (int i = 0; i < 20; i++) hth_pool_run(pool, barrier_run, pool);
        double barrier = (double)(hth_now_ns() - start) / 20000;
        usleep(20000);
        start = hth_now_ns();
        hth_pool_run(pool, nothing_run, NULL);
        printf("%d threads: run %llu ns (90%%: %llu), barrier %.0f ns, run from sleep %llu ns\n", threads,
               (unsigned long long)ns[RUNS / 2], (unsigned long long)ns[RUNS * 9 / 10], barrier,
               (unsigned long long)(hth_now_ns() - start));
        hth_pool_free(&pool);
    }
    return 0;
}

/* ---- A CPU for each ---- */

static void the_next_free_cpu_is_taken(void **state) {
    (void)state;
    hth_spread spread = {0};
    uint64_t allowed[HTH_SPREAD_WORDS] = {0};
    hth_spread_init(&spread, NULL);
    allowed[0] = UINT64_C(1) << 3 | UINT64_C(1) << 63;
    allowed[1] = 1;
    allowed[HTH_SPREAD_WORDS - 1] = UINT64_C(1) << 63;
    assert_int_equal(hth_spread_take(&spread, allowed, 63), 63);
    assert_int_equal(hth_spread_take(&spread, allowed, 63), 64);
    assert_int_equal(hth_spread_take(&spread, allowed, 63), HTH_SPREAD_CPUS - 1);
    assert_int_equal(hth_spread_take(&spread, allowed, 63), 3);
    assert_int_equal(hth_spread_take(&spread, allowed, 63), -1);
}

/* Four cores of two CPUs each, numbered side by side: cores first, then what is left of them. */
static void a_free_core_is_taken_before_half_of_one(void **state) {
    (void)state;
    hth_spread spread = {0};
    uint64_t allowed[HTH_SPREAD_WORDS] = {0xFF};
    uint16_t core_of[HTH_SPREAD_CPUS];
    static const int wanted[] = {1, 2, 4, 6, 3, 5, 7, 0, -1};
    for (int i = 0; i < HTH_SPREAD_CPUS; i++) core_of[i] = (uint16_t)(i / 2 * 2);
    core_of[9] = UINT16_MAX; /* of a machine with more CPUs than a mask holds */
    hth_spread_init(&spread, core_of);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_int_equal(hth_spread_take(&spread, allowed, 1), wanted[i]);
}

/* Two CPUs that this process may use; false when it has one. */
static bool two_cpus(cpu_set_t *all, int *first) {
    *first = -1;
    if (sched_getaffinity(0, sizeof *all, all) != 0 || CPU_COUNT(all) < 2) return false;
    for (int i = 0; *first < 0; i++)
        if (CPU_ISSET(i, all)) *first = i;
    return true;
}

static void go_to(int cpu, const cpu_set_t *then) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(sched_setaffinity(0, sizeof *then, then), 0);
}

/* On a busy machine the system may move a thread again, or not let it fall asleep in time: so what is held is what
 * happens mostly. A worker that does not move is on the caller's CPU nine times in ten. */
enum { SPREAD_ROUNDS = 20 };

/* A thread that nobody has bound is left to all CPUs that its control group will ever be given: a mask of those that it
 * has now would bind it to them. One that was bound is bound as before. */
static void assert_left_as_it_was(const cpu_set_t *all) {
#ifndef SANITIZED
    cpu_set_t every, group;
    memset(&every, 0xFF, sizeof every);
    const cpu_set_t last = last_mask;
    assert_int_equal(sched_setaffinity(0, sizeof every, &every), 0);
    assert_int_equal(sched_getaffinity(0, sizeof group, &group), 0);
    assert_true(CPU_EQUAL(&last, CPU_EQUAL(&group, all) ? &every : all));
    assert_int_equal(sched_setaffinity(0, sizeof *all, all), 0);
#else
    (void)all;
#endif
}

static void who_comes_second_moves_and_is_not_bound(void **state) {
    (void)state;
    cpu_set_t all, after;
    int cpu, moved = 0;
    if (!two_cpus(&all, &cpu)) skip();
    hth_spread spread;
    hth_spread_init(&spread, NULL);
    for (int round = 0; round < SPREAD_ROUNDS; round++) {
        go_to(cpu, &all);
        hth_spread_begin(&spread);
        int here = -1;
        for (int i = 0; i < HTH_SPREAD_CPUS; i++)
            if (atomic_load(&spread.cpus[i / 64]) >> (i % 64) & 1) here = i;
        assert_true(here >= 0 && CPU_ISSET(here, &all));
        go_to(here, &all);
        hth_spread_join(&spread);
        moved += sched_getcpu() != here;
        assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
        assert_true(CPU_EQUAL(&all, &after));
        assert_left_as_it_was(&all);
    }
    assert_true(moved > SPREAD_ROUNDS / 2);
    /* Where all are taken, it stays. */
    for (size_t i = 0; i < HTH_SPREAD_WORDS; i++) {
        atomic_store(&spread.cpus[i], UINT64_MAX);
        atomic_store(&spread.cores[i], UINT64_MAX);
    }
    hth_spread_join(&spread);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&all, &after));
}

typedef struct beside {
    cpu_set_t all;
    int cpu, found;
} beside;

static void worker_goes_beside_the_caller(void *arg, int index) {
    beside *b = arg;
    if (index == 1) go_to(b->cpu, &b->all);
}

static void worker_tells_where_it_is(void *arg, int index) {
    beside *b = arg;
    if (index == 1) b->found = sched_getcpu();
}

static void a_worker_that_slept_leaves_the_caller_its_cpu(void **state) {
    (void)state;
    beside b;
    hth_pool *pool;
    hearth_error err = {0};
    cpu_set_t own;
    int moved = 0;
    if (!two_cpus(&b.all, &b.cpu)) skip();
    const hth_pool_options options = {.threads = 2, .spin_us = 1};
    assert_int_equal(hth_pool_create(&pool, &options, &err), HEARTH_OK);
    CPU_ZERO(&own);
    CPU_SET(b.cpu, &own);
    assert_int_equal(sched_setaffinity(0, sizeof own, &own), 0);
    for (int i = 0; i < SPREAD_ROUNDS; i++) {
        hth_pool_run(pool, worker_goes_beside_the_caller, &b);
        usleep(2000); /* the worker falls asleep */
        hth_pool_run(pool, worker_tells_where_it_is, &b);
        moved += b.found != b.cpu;
    }
    assert_true(moved > SPREAD_ROUNDS / 2);
    assert_int_equal(sched_setaffinity(0, sizeof b.all, &b.all), 0);
    hth_pool_free(&pool);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) return bench();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_worker_runs_once),
        cmocka_unit_test(barriers_and_claims),
#if defined(__x86_64__)
        cmocka_unit_test(float_state_is_standard_and_restored),
#endif
        cmocka_unit_test(workers_take_no_signals),
        cmocka_unit_test(pinning),
        cmocka_unit_test(refusals),
        cmocka_unit_test(the_next_free_cpu_is_taken),
        cmocka_unit_test(a_free_core_is_taken_before_half_of_one),
        cmocka_unit_test(who_comes_second_moves_and_is_not_bound),
        cmocka_unit_test(a_worker_that_slept_leaves_the_caller_its_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
