/* The registry is a list of chunks that only ever grows, so the handler can read it at any moment without a lock.
 *
 * A slot is free while `end` is 0. Whoever watches stores `begin` before `end`; whoever stops clears `end`. The handler
 * reads `end`, `begin`, then `end` again: a slot that changes hands in between shows another `end`, or the same one
 * with the new `begin`, and both are consistent. The range that faults cannot change hands: a thread is reading it.
 */
#include "base/sigbus.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct hth_watch {
    _Atomic uintptr_t begin, end; /* end: rounded up to a page */
    atomic_bool lost;
};

#define CHUNK_WATCHES 64

typedef struct chunk {
    hth_watch watches[CHUNK_WATCHES];
    struct chunk *_Atomic next;
} chunk;

static chunk first_chunk;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over adding, removing, holding and releasing */
static unsigned holders;
static struct sigaction previous; /* valid while our handler is installed */
static _Atomic uintptr_t page_size;

/* A free slot; the lock is held. */
static hth_watch *find_free(void) {
    for (chunk *c = &first_chunk;; c = atomic_load(&c->next)) {
        for (int i = 0; i < CHUNK_WATCHES; i++)
            if (atomic_load(&c->watches[i].end) == 0) return &c->watches[i];
        if (atomic_load(&c->next)) continue;
        chunk *fresh = calloc(1, sizeof *fresh);
        if (!fresh) return NULL;
        atomic_store(&c->next, fresh);
    }
}

hth_watch *hth_watch_add(const void *data, size_t size) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)data;
    assert(begin % page == 0 && size > 0 && size <= UINTPTR_MAX - begin - page);
    atomic_store(&page_size, page);
    pthread_mutex_lock(&lock);
    hth_watch *watch = find_free();
    if (watch) {
        atomic_store(&watch->lost, false);
        atomic_store(&watch->begin, begin);
        atomic_store(&watch->end, (begin + size + page - 1) / page * page);
    }
    pthread_mutex_unlock(&lock);
    return watch;
}

void hth_watch_remove(hth_watch *watch) {
    if (!watch) return;
    pthread_mutex_lock(&lock);
    atomic_store(&watch->end, 0);
    pthread_mutex_unlock(&lock);
}

bool hth_watch_lost(const hth_watch *watch) {
    return atomic_load(&watch->lost);
}

/* Put zeros from the page of `address` to the end of its range; false when no range has it. Runs in the handler. */
static bool replace(uintptr_t address) {
    for (chunk *c = &first_chunk; c; c = atomic_load(&c->next)) {
        for (int i = 0; i < CHUNK_WATCHES; i++) {
            hth_watch *watch = &c->watches[i];
            uintptr_t end = atomic_load(&watch->end), begin = atomic_load(&watch->begin);
            if (end == 0 || address < begin || address >= end || atomic_load(&watch->end) != end) continue;
            uintptr_t page = address / page_size * page_size;
            atomic_store(&watch->lost, true);
            /* The bare system call: what wraps mmap(), a sanitizer say, need not be safe inside a handler. */
            return syscall(SYS_mmap, page, end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0L) ==
                   (long)page;
        }
    }
    return false;
}

/* Do what would have been done without us. */
static void chain(int signal_number, siginfo_t *info, void *context) {
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(signal_number, info, context);
        return;
    }
    bool sent = info->si_code <= 0; /* by kill() and the like, not by a memory access */
    if (previous.sa_handler == SIG_IGN && sent) return;
    if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(signal_number);
        return;
    }
    /* The access is repeated when we return, and now ends the process; a sent signal is sent again. */
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(SIGBUS, &standard, NULL);
    if (sent) raise(SIGBUS);
}

static void handle(int signal_number, siginfo_t *info, void *context) {
    int saved = errno;
    /* A misaligned access is not ours, wherever it points. */
    bool lost_page = info->si_code > 0 && info->si_code != BUS_ADRALN;
    if (!lost_page || !replace((uintptr_t)info->si_addr)) chain(signal_number, info, context);
    errno = saved;
}

hearth_status hth_sigbus_hold(hearth_error *err) {
    pthread_mutex_lock(&lock);
    int failed = 0;
    if (holders == 0) {
        struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
        ours.sa_sigaction = handle;
        sigemptyset(&ours.sa_mask);
        struct sigaction now;
        failed = sigaction(SIGBUS, NULL, &now) != 0;
        /* Ours may still be there, below one that was installed over it and has been taken away since. */
        bool already = !failed && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handle;
        if (!failed && !already) {
            previous = now;
            failed = sigaction(SIGBUS, &ours, NULL) != 0;
        }
    }
    holders += !failed;
    int reason = errno;
    pthread_mutex_unlock(&lock);
    return failed ? hth_fail(err, HEARTH_IO, "cannot handle SIGBUS: %s", strerror(reason)) : HEARTH_OK;
}

void hth_sigbus_release(void) {
    pthread_mutex_lock(&lock);
    assert(holders > 0);
    struct sigaction now;
    if (--holders == 0 && sigaction(SIGBUS, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
        now.sa_sigaction == handle)
        sigaction(SIGBUS, &previous, NULL);
    pthread_mutex_unlock(&lock);
}
