#include "base/frontier.h"

#include <errno.h>
#include <time.h>

void hth_frontier_init(hth_frontier *f) {
    pthread_condattr_t attributes;
    atomic_init(&f->reached, 0);
    atomic_init(&f->cut, INT64_MAX);
    pthread_mutex_init(&f->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&f->moved, &attributes);
    pthread_condattr_destroy(&attributes);
}

void hth_frontier_destroy(hth_frontier *f) {
    pthread_cond_destroy(&f->moved);
    pthread_mutex_destroy(&f->lock);
}

void hth_frontier_advance(hth_frontier *f, int64_t to) {
    pthread_mutex_lock(&f->lock);
    if (to > atomic_load_explicit(&f->reached, memory_order_relaxed)) {
        atomic_store_explicit(&f->reached, to, memory_order_release);
        pthread_cond_broadcast(&f->moved);
    }
    pthread_mutex_unlock(&f->lock);
}

void hth_frontier_cut(hth_frontier *f) {
    atomic_store(&f->cut, atomic_load(&f->reached));
}

/* Before the cut everything that was reached lies before it; after it, what is reached beyond is seen with it. */
static bool has_come(const hth_frontier *f, int64_t need) {
    return need <= atomic_load_explicit(&f->cut, memory_order_relaxed);
}

bool hth_frontier_wait(hth_frontier *f, int64_t need) {
    if (hth_frontier_reached(f, need)) return has_come(f, need);
    pthread_mutex_lock(&f->lock);
    while (!hth_frontier_reached(f, need)) pthread_cond_wait(&f->moved, &f->lock);
    pthread_mutex_unlock(&f->lock);
    return has_come(f, need);
}

bool hth_frontier_wait_ms(hth_frontier *f, int64_t need, int64_t ms) {
    struct timespec until;
    if (hth_frontier_reached(f, need)) return true;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&f->lock);
    int error = 0;
    while (!hth_frontier_reached(f, need) && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&f->moved, &f->lock, &until);
    pthread_mutex_unlock(&f->lock);
    return hth_frontier_reached(f, need);
}
