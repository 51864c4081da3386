#include "engine/arrival.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "engine/ledger.h"

/* ---- Planning ---- */

typedef struct run {
    int32_t file, op; /* the first op that uses it */
    uint64_t from, to;
} run;

typedef struct run_list {
    run *runs;
    size_t count;
} run_list;

/* The pages of a weight as a run, for its first op. */
static run run_of(const hth_weight *w, const hth_file_view *file, int op, uint64_t page) {
    uint64_t to = w->offset + w->bytes;
    to = to > file->size - page && file->size >= page ? file->size : (to + page - 1) / page * page;
    return (run){w->file, op, w->offset / page * page, to < file->size ? to : file->size};
}

static hearth_status list_runs(run_list *list, const hth_program *p, const hth_file_view *files,
                               const hth_arrival_order *order, hearth_error *err) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    bool *seen = calloc((size_t)p->n_tensors + 1, sizeof *seen);
    list->runs = calloc((size_t)p->n_tensors + 1, sizeof *list->runs);
    if (!seen || !list->runs) {
        free(seen);
        return hth_fail(err, HEARTH_NO_MEMORY, "no memory for a list of %d weights", p->n_tensors);
    }
    for (int op = 0; op < p->n_ops; op++)
        for (int k = 0; k < HTH_OP_WEIGHTS; k++) {
            hth_tensor_id id = p->ops[op].weight[k];
            if (id == HTH_NONE || p->tensors[id].class != HTH_WEIGHT || seen[id] || !order->wanted(p, id)) continue;
            const hth_weight *w = &p->tensors[id].weight;
            seen[id] = true;
            if (w->bytes > 0) list->runs[list->count++] = run_of(w, &files[w->file], op, page);
        }
    free(seen);
    return HEARTH_OK;
}

static int compare_runs(const void *a, const void *b) {
    const run *x = a, *y = b;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

/* Sort the runs of a window and join those that touch; how many are left. */
static size_t join_runs(run *runs, size_t count) {
    size_t kept = 0;
    qsort(runs, count, sizeof *runs, compare_runs);
    for (size_t i = 0; i < count; i++) {
        run *last = kept ? &runs[kept - 1] : NULL;
        if (last && last->file == runs[i].file && last->to >= runs[i].from) {
            if (runs[i].to > last->to) last->to = runs[i].to;
        } else {
            runs[kept++] = runs[i];
        }
    }
    return kept;
}

/* Add the pieces of a window. `before` and `after`: ops whose weights are there before it, and once all of it is. */
static void cut_pieces(hth_arrival *a, const run *runs, size_t count, uint64_t size, int32_t before, int32_t after) {
    for (size_t i = 0; i < count; i++)
        for (uint64_t from = runs[i].from; from < runs[i].to; from += size) {
            uint64_t to = runs[i].to - from < size ? runs[i].to : from + size;
            a->pieces[a->count++] = (hth_piece){runs[i].file, before, from, to};
            a->bytes += to - from;
        }
    a->pieces[a->count - 1].ops = after;
}

static void cut_windows(hth_arrival *a, run_list *list, const hth_arrival_order *order, int32_t n_ops) {
    int32_t before = list->count ? list->runs[0].op : n_ops;
    a->first_ops = before;
    for (size_t i = 0; i < list->count;) {
        size_t end = i;
        uint64_t bytes = 0;
        while (end < list->count && bytes < order->window) {
            bytes += list->runs[end].to - list->runs[end].from;
            end++;
        }
        int32_t after = end < list->count ? list->runs[end].op : n_ops;
        cut_pieces(a, &list->runs[i], join_runs(&list->runs[i], end - i), order->piece, before, after);
        before = after;
        i = end;
    }
}

static hearth_status make_pieces(hth_arrival *a, run_list *list, const hth_arrival_order *order, hearth_error *err) {
    size_t most = 1;
    for (size_t i = 0; i < list->count; i++)
        most += (size_t)((list->runs[i].to - list->runs[i].from) / order->piece) + 1;
    a->pieces = calloc(most, sizeof *a->pieces);
    a->done = calloc(most, sizeof *a->done);
    if (!a->pieces || !a->done) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for a list of %zu pieces", most);
    cut_windows(a, list, order, (int32_t)a->all_ops);
    assert(a->count < most);
    return HEARTH_OK;
}

hearth_status hth_arrival_plan(hth_arrival *a, const hth_program *program, const hth_file_view *files,
                               const hth_arrival_order *order, hearth_error *err) {
    run_list list = {NULL, 0};
    *a = (hth_arrival){.all_ops = program->n_ops};
    hth_frontier_init(&a->frontier);
    pthread_mutex_init(&a->lock, NULL);
    hearth_status status = list_runs(&list, program, files, order, err);
    if (status == HEARTH_OK) status = make_pieces(a, &list, order, err);
    free(list.runs);
    return status;
}

/* ---- Threads ---- */

static void note_done(hth_arrival *a, size_t i) {
    atomic_fetch_add(&a->arrived, a->pieces[i].to - a->pieces[i].from);
    pthread_mutex_lock(&a->lock);
    a->done[i] = true;
    while (a->in_order < a->count && a->done[a->in_order]) a->in_order++;
    int64_t ops = a->in_order ? a->pieces[a->in_order - 1].ops : 0;
    pthread_mutex_unlock(&a->lock);
    hth_frontier_advance(&a->frontier, ops);
}

static void note_failure(hth_arrival *a, const hearth_error *why) {
    atomic_store(&a->stop, true);
    pthread_mutex_lock(&a->lock);
    if (a->failure.status == HEARTH_OK) a->failure = *why;
    pthread_mutex_unlock(&a->lock);
}

static void leave(hth_arrival *a) {
    uint64_t minor, major;
    hth_thread_faults(&minor, &major);
    pthread_mutex_lock(&a->lock);
    a->minor_faults += minor;
    a->major_faults += major;
    a->end_ns = hth_now_ns();
    bool last = --a->running == 0, all = a->in_order == a->count;
    pthread_mutex_unlock(&a->lock);
    if (last && all && a->arrived_all) a->arrived_all(a->context);
    if (!last) return;
    if (!all) hth_frontier_cut(&a->frontier);
    hth_frontier_advance(&a->frontier, a->all_ops + 1);
}

static void *arrive(void *arg) {
    hth_arrival *a = arg;
    for (size_t i; !atomic_load(&a->stop) && (i = atomic_fetch_add(&a->next, 1)) < a->count;) {
        hearth_error why = {HEARTH_OK, ""};
        if (a->bring(a->context, &a->pieces[i], &why) == HEARTH_OK) note_done(a, i);
        else note_failure(a, &why);
    }
    leave(a);
    return NULL;
}

hearth_status hth_arrival_start(hth_arrival *a, int threads, hth_bring_fn *bring, void *context, hearth_error *err) {
    assert(threads >= 1 && threads <= HTH_ARRIVAL_THREADS);
    a->bring = bring;
    a->context = context;
    a->running = threads;
    hth_frontier_advance(&a->frontier, a->first_ops);
    int error = 0;
    while (a->n_threads < threads && !error) {
        error = hth_thread_start(&a->threads[a->n_threads], 0, arrive, a);
        a->n_threads += !error;
    }
    if (!error) return HEARTH_OK;
    atomic_store(&a->stop, true);
    return hth_fail(err, HEARTH_NO_MEMORY, "cannot start thread %d of %d that brings weights: %s", a->n_threads + 1,
                    threads, strerror(error));
}

void hth_arrival_end(hth_arrival *a) {
    if (!a->all_ops) return;
    atomic_store(&a->stop, true);
    for (int i = 0; i < a->n_threads; i++) pthread_join(a->threads[i], NULL);
    hth_frontier_destroy(&a->frontier);
    pthread_mutex_destroy(&a->lock);
    free(a->pieces);
    free(a->done);
    memset(a, 0, sizeof *a);
}
