/* How far something that arrives in order has come: some threads move it on, others wait for it.
 *
 * Waiting for what is there already costs one load. What was written before the frontier moved is seen by whoever has
 * waited for it. Threads: advance and the waits may be called from any thread; init and destroy while no other uses it.
 */
#ifndef HTH_BASE_FRONTIER_H
#define HTH_BASE_FRONTIER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hth_frontier {
    _Atomic int64_t reached; /* starts at 0 and only grows */
    _Atomic int64_t cut;     /* what lies beyond never comes; INT64_MAX: the frontier was not cut */
    pthread_mutex_t lock;
    pthread_cond_t moved;
} hth_frontier;

void hth_frontier_init(hth_frontier *frontier);
void hth_frontier_destroy(hth_frontier *frontier);

/* Move on to `to`; a smaller number than was reached changes nothing. */
void hth_frontier_advance(hth_frontier *frontier, int64_t to);

static inline bool hth_frontier_reached(const hth_frontier *frontier, int64_t need) {
    return atomic_load_explicit(&frontier->reached, memory_order_acquire) >= need;
}

/* What has not come yet never will: who waits for it is told so when the frontier moves there, which ends the waiting.
 * Called by the thread that alone still moves it. */
void hth_frontier_cut(hth_frontier *frontier);

/* Wait until `need` is reached. False: the frontier was cut before it. The answer for one `need` is the same at any
 * time and to any thread. */
bool hth_frontier_wait(hth_frontier *frontier, int64_t need);

/* Wait for at most `ms` milliseconds; whether `need` is reached. */
bool hth_frontier_wait_ms(hth_frontier *frontier, int64_t need, int64_t ms);

#endif
