/* Weights on their way into memory, piece by piece in the order in which the program uses them.
 *
 *   plan ──> planned ──start──> arriving ──last thread out──> over ──end──> released
 *                                  │ stop, or a piece that fails: the rest is left out
 *
 * A few threads claim pieces in order. The frontier counts ops: when it is at n, the weights of the first n ops are
 * there. It moves past the last op when all threads are done, whether all went well or not, and is cut where weights
 * are missing; what is read then is final: `failure`, the end and the faults. So whoever waits never waits in vain, and
 * asks for the failure afterwards.
 */
#ifndef HTH_ENGINE_ARRIVAL_H
#define HTH_ENGINE_ARRIVAL_H

#include "backends/backend.h"
#include "base/frontier.h"

#define HTH_ARRIVAL_THREADS 8

/* Bytes from..to of a file; both whole pages, but for the end of the file. */
typedef struct hth_piece {
    int32_t file;
    int32_t ops; /* once this piece and those before it are there, so are the weights of the first `ops` ops */
    uint64_t from, to;
} hth_piece;

/* Make one piece present; by any of the threads. */
typedef hearth_status hth_bring_fn(void *context, const hth_piece *piece, hearth_error *err);

/* All pieces are there; by the last of the threads, before the frontier moves past the last op. */
typedef void hth_arrived_fn(void *context);

typedef struct hth_arrival {
    hth_piece *pieces; /* [count] */
    size_t count;
    uint64_t bytes;    /* of all pieces */
    int64_t first_ops; /* ops that need none of them */
    int64_t all_ops;   /* the frontier when the weights of all ops are there; one more when all is over */
    hth_frontier frontier;
    hth_bring_fn *bring;
    hth_arrived_fn *arrived_all; /* NULL: nothing more to do */
    void *context;
    int n_threads;
    pthread_t threads[HTH_ARRIVAL_THREADS];
    atomic_bool stop;
    _Atomic size_t next;
    _Atomic uint64_t arrived; /* bytes */
    /* Under the lock until all is over. */
    pthread_mutex_t lock;
    bool *done;           /* [count] */
    size_t in_order;      /* pieces done without a gap */
    int running;          /* threads */
    hearth_error failure; /* of the first piece that failed; status OK: none */
    uint64_t minor_faults, major_faults;
    uint64_t end_ns;
} hth_arrival;

/* Which weights to bring, and how they are cut. Reading ahead works best on long runs in the order of the file, and
 * files do not keep the order in which a layer uses its weights: so weights are taken `window` bytes at a time in the
 * order of the program, and inside a window in the order of the file. */
typedef struct hth_arrival_order {
    bool (*wanted)(const hth_program *program, hth_tensor_id weight);
    uint64_t window; /* bytes */
    uint64_t piece;  /* bytes, whole pages: what a thread brings before it looks whether to stop */
} hth_arrival_order;

/* List the pieces. Pages that weights of a window share come once. Whatever it answers, hth_arrival_end follows. */
hearth_status hth_arrival_plan(hth_arrival *arrival, const hth_program *program, const hth_file_view *files,
                               const hth_arrival_order *order, hearth_error *err);

/* Start `threads` threads (1..HTH_ARRIVAL_THREADS). HEARTH_NO_MEMORY when the system refuses one; those before it leave
 * out the rest. */
hearth_status hth_arrival_start(hth_arrival *arrival, int threads, hth_bring_fn *bring, void *context,
                                hearth_error *err);

/* Ask the threads to leave out the rest, join them and release everything. A zeroed arrival is ignored. */
void hth_arrival_end(hth_arrival *arrival);

#endif
