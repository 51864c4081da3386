#include "base/thread.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/spread.h"

/* ---- Float state ---- */

#if defined(__x86_64__)
uint32_t hth_float_enter(void) {
    uint32_t state;
    const uint32_t standard = 0x1F80; /* all exceptions masked, round to nearest, no flush to zero */
    __asm__ volatile("stmxcsr %0" : "=m"(state));
    __asm__ volatile("ldmxcsr %0" : : "m"(standard));
    return state;
}
void hth_float_leave(uint32_t state) {
    __asm__ volatile("ldmxcsr %0" : : "m"(state));
}
#elif defined(__aarch64__)
uint32_t hth_float_enter(void) {
    uint64_t state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    return (uint32_t)state;
}
void hth_float_leave(uint32_t state) {
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)state));
}
#else
#error "the float state of this machine is not known here"
#endif

/* ---- Starting ---- */

int hth_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *arg) {
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP};
    sigset_t blocked, before;
    pthread_attr_t attr;
    int error = pthread_attr_init(&attr);
    if (error) return error;
    if (stack) error = pthread_attr_setstacksize(&attr, stack);
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) sigdelset(&blocked, own[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    if (!error) error = pthread_create(thread, &attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return error;
}

/* ---- Waiting ---- */

static inline void pause_core(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* A number that threads wait on until it changes.
 *
 * No wake-up is lost: a sleeper counts itself before the kernel compares `value` with what the sleeper saw, a waker
 * changes `value` before it reads the count, and all four are sequentially consistent. */
typedef struct event {
    _Alignas(64) _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
} event;

static void event_sleep(event *e, uint32_t seen) {
    atomic_fetch_add(&e->sleepers, 1);
    while (atomic_load(&e->value) == seen) syscall(SYS_futex, &e->value, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    atomic_fetch_sub(&e->sleepers, 1);
}

static void event_signal(event *e) {
    atomic_fetch_add(&e->value, 1);
    if (atomic_load(&e->sleepers)) syscall(SYS_futex, &e->value, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static inline bool event_changed(event *e, uint32_t seen) {
    return atomic_load_explicit(&e->value, memory_order_acquire) != seen;
}

/* Wait until the value differs from `seen`: spin, then yield the core between looks (the thread waited for may need
 * it), then sleep. `spin_ns` bounds the time awake. */
static void event_wait(event *e, uint32_t seen, uint64_t spin_ns) {
    enum { LOOKS = 64 };
    const uint64_t hold_ns = 2000; /* how long the core is held before it is offered */
    uint64_t start = 0;
    for (;;) {
        for (int i = 0; i < LOOKS; i++) {
            if (event_changed(e, seen)) return;
            pause_core();
        }
        uint64_t now = hth_now_ns();
        if (!start) start = now;
        if (now - start >= spin_ns) break;
        if (now - start >= hold_ns) sched_yield();
    }
    event_sleep(e, seen);
}

/* ---- The pool ---- */

typedef struct worker {
    hth_pool *pool;
    pthread_t thread;
    int index;
    int pin;       /* logical CPU, or -1 */
    int pin_error; /* errno of a refused pin; read after the first run */
} worker;

struct hth_pool {
    event start;  /* changes when a run begins, and once more to stop */
    event gather; /* changes when all threads have arrived at a barrier */
    _Alignas(64) _Atomic int arrived;
    _Alignas(64) _Atomic int64_t next; /* first item not yet claimed */
    /* Written by the caller of run before `start` changes, read by the workers after it. */
    _Alignas(64) hth_pool_fn *fn;
    void *arg;
    bool stop;
    bool scattered; /* a worker has slept, or is new: they see to it that each has a CPU of its own */
    hth_spread spread;
    /* Constant after create. */
    int threads;
    bool pinned;
    bool fresh; /* nothing has run yet: the system put new threads where it liked */
    uint64_t spin_ns;
    worker *workers; /* [threads]; 0 is the caller's and has no thread */
};

void hth_pool_barrier(hth_pool *pool) {
    /* The next barrier cannot complete before this thread arrives at it, so `gather` changes at most once while we
     * wait. */
    uint32_t seen = atomic_load_explicit(&pool->gather.value, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&pool->arrived, 1, memory_order_acq_rel) + 1 < pool->threads) {
        event_wait(&pool->gather, seen, pool->spin_ns);
        return;
    }
    atomic_store_explicit(&pool->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    event_signal(&pool->gather);
}

int64_t hth_pool_claim(hth_pool *pool, int64_t count) {
    return atomic_fetch_add_explicit(&pool->next, count, memory_order_relaxed);
}

int hth_pool_threads(const hth_pool *pool) {
    return pool->threads;
}

void hth_pool_run(hth_pool *pool, hth_pool_fn *fn, void *arg) {
    uint32_t state = hth_float_enter();
    if (pool->threads > 1) {
        pool->fn = fn;
        pool->arg = arg;
        pool->scattered = !pool->pinned && (pool->fresh || atomic_load(&pool->start.sleepers) > 0);
        pool->fresh = false;
        if (pool->scattered) hth_spread_begin(&pool->spread);
        event_signal(&pool->start);
        if (pool->scattered) sched_yield(); /* who woke up on this CPU is to leave it now and not at the next barrier */
    }
    fn(arg, 0);
    hth_pool_barrier(pool);
    hth_float_leave(state);
}

__attribute__((noinline)) void hth_stack_touch(void) {
    volatile char stack[HTH_POOL_STACK_TOUCHED];
    for (size_t i = 0; i < sizeof stack; i += 4096) stack[i] = 0;
}

static void worker_settle(worker *w) {
    if (w->pin >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        if (w->pin < CPU_SETSIZE) CPU_SET(w->pin, &set);
        w->pin_error = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    }
    char name[16];
    snprintf(name, sizeof name, "hearth-%d", w->index);
    pthread_setname_np(pthread_self(), name);
    hth_stack_touch();
    hth_float_enter();
}

static void *worker_main(void *arg) {
    worker *w = arg;
    hth_pool *pool = w->pool;
    worker_settle(w);
    for (uint32_t seen = 0;; seen++) {
        event_wait(&pool->start, seen, pool->spin_ns);
        if (pool->stop) return NULL;
        if (pool->scattered) hth_spread_join(&pool->spread);
        pool->fn(pool->arg, w->index);
        hth_pool_barrier(pool);
    }
}

/* End and join workers 1..started-1, and release the pool. */
static void pool_stop(hth_pool *pool, int started) {
    pool->stop = true;
    event_signal(&pool->start);
    for (int i = 1; i < started; i++) pthread_join(pool->workers[i].thread, NULL);
    free(pool->workers);
    free(pool);
}

static void do_nothing(void *arg, int index) {
    (void)arg;
    (void)index;
}

hearth_status hth_pool_create(hth_pool **out, const hth_pool_options *options, hearth_error *err) {
    *out = NULL;
    int threads = options->threads;
    if (threads < 1 || threads > HTH_POOL_MAX)
        return hth_fail(err, HEARTH_BAD_OPTION, "threads: %d is not in 1..%d", threads, HTH_POOL_MAX);
    hth_pool *pool = aligned_alloc(_Alignof(hth_pool), sizeof *pool);
    worker *workers = calloc((size_t)threads, sizeof *workers);
    if (!pool || !workers) {
        free(pool);
        free(workers);
        return hth_fail(err, HEARTH_NO_MEMORY, "no memory for a pool of %d threads", threads);
    }
    memset(pool, 0, sizeof *pool);
    pool->threads = threads;
    pool->pinned = options->pin != NULL;
    pool->fresh = true;
    hth_spread_init(&pool->spread, options->core_of);
    pool->spin_ns = (uint64_t)options->spin_us * 1000;
    pool->workers = workers;

    int error = 0, started = 1;
    for (; started < threads; started++) {
        workers[started] = (worker){.pool = pool, .index = started, .pin = options->pin ? options->pin[started] : -1};
        error = hth_thread_start(&workers[started].thread, HTH_POOL_STACK, worker_main, &workers[started]);
        if (error) break;
    }
    if (error) {
        pool_stop(pool, started);
        return hth_fail(err, HEARTH_NO_MEMORY, "cannot start thread %d of %d: %s", started + 1, threads,
                        strerror(error));
    }

    hth_pool_run(pool, do_nothing, NULL); /* returns when every worker is settled and waits for work */
    for (int i = 1; i < threads; i++)
        if (workers[i].pin_error) {
            hth_fail(err, HEARTH_BAD_OPTION, "cannot pin thread %d to CPU %d: %s", i + 1, workers[i].pin,
                     strerror(workers[i].pin_error));
            pool_stop(pool, threads);
            return HEARTH_BAD_OPTION;
        }
    *out = pool;
    return HEARTH_OK;
}

void hth_pool_free(hth_pool **pool) {
    if (!*pool) return;
    pool_stop(*pool, (*pool)->threads);
    *pool = NULL;
}
