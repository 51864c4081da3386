/* A pool of threads that run one function together.
 *
 * hth_pool_run executes fn(arg, worker) on every thread of the pool (worker 0 is the caller) and returns when all have
 * returned. Inside fn the threads share work through hth_pool_claim and meet at hth_pool_barrier.
 *
 *   create ──> idle ──run──> running ──all returned──> idle ──free──> gone
 *                              │  ^
 *                              └──┘ barrier: all arrived; the counter of claims is rewound
 *
 * Everything is paid in create: threads started, stacks touched, float state set. A run allocates nothing and takes no
 * lock: waiting threads spin, then offer their core to others, then sleep until they are woken.
 *
 * One run at a time; run and free are called by one thread at a time and never from inside fn. The other functions are
 * for the threads inside fn.
 */
#ifndef HTH_BASE_THREAD_H
#define HTH_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define HTH_POOL_MAX 1024 /* threads */

/* Bytes of a worker's stack, address space only. Room for thread-local storage, which the C library takes out of it and
 * whose size is the host program's (a sanitizer's alone is near a megabyte). */
#define HTH_POOL_STACK         ((size_t)4 << 20)
#define HTH_POOL_STACK_TOUCHED ((size_t)256 << 10) /* of which are present before create returns */

typedef struct hth_pool hth_pool;
typedef void hth_pool_fn(void *arg, int worker);

typedef struct hth_pool_options {
    int threads;    /* 1..HTH_POOL_MAX, the calling thread included */
    const int *pin; /* NULL, or `threads` logical CPUs: worker i runs on pin[i] alone. pin[0] is not used: the calling
                       thread belongs to the caller. */
    const uint16_t *core_of; /* NULL, or the first CPU of each CPU's core (hth_cpu); not kept */
    unsigned spin_us;        /* how long an idle worker stays awake after a run */
} hth_pool_options;

#define HTH_POOL_SPIN_US 2000

/* Start a pool. On failure (a bad count, a thread the system refuses, a CPU it does not let us pin to) nothing is left
 * behind and *pool is NULL. */
hearth_status hth_pool_create(hth_pool **pool, const hth_pool_options *options, hearth_error *err);

/* Stop and join the workers, and set *pool to NULL. NULL pools are ignored. */
void hth_pool_free(hth_pool **pool);

int hth_pool_threads(const hth_pool *pool);

/* The caller's float state is put aside for the run and restored after it (see hth_float_enter). */
void hth_pool_run(hth_pool *pool, hth_pool_fn *fn, void *arg);

/* Wait until every thread of the run has called this; then claims start again from 0. What a thread wrote before it is
 * seen by all after it. Every thread of a run passes the same number of barriers. */
void hth_pool_barrier(hth_pool *pool);

/* Claim the next `count` items of the work between two barriers: returns the first. The caller stops when it is past
 * the end of its work. Starts at 0 at the start of a run and after every barrier. */
int64_t hth_pool_claim(hth_pool *pool, int64_t count);

/* Set this thread's float state to the default (round to nearest even, subnormals kept, no traps) and return what it
 * was, for hth_float_leave. Every thread that computes does this. */
uint32_t hth_float_enter(void);
void hth_float_leave(uint32_t state);

/* Start a thread with a stack of `stack` bytes (0: the system's default); an errno. It takes no signals, so that a
 * host's handlers run on the host's threads, but for those that it raises by its own instructions: a lost page of a
 * file mapping arrives as SIGBUS. Every thread of the library is started here. */
int hth_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *arg);

/* Make HTH_POOL_STACK_TOUCHED bytes of the calling thread's stack present, so that no call faults on them later. */
void hth_stack_touch(void);

#endif
