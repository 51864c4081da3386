/* Open: the composition point. Cheap refusals first, then everything that costs, each step a row of the ledger. Weights
 * arrive on threads of their own as soon as the plan is accepted, while the rest is made. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/sigbus.h"
#include "engine/engine.h"
#include "models/models.h"
#include "text/tokenizer.h"

/* ---- Steps ---- */

static hearth_status stopped(const hearth_engine *e, hearth_error *err) {
    return hth_fail(err, HEARTH_CANCELLED, "opening '%s' was stopped", e->request->path);
}

/* Tell how far it is. HEARTH_CANCELLED when it is not to go on. */
static hearth_status report(hearth_engine *e, const char *stage, hearth_error *err) {
    const hearth_open_request *request = e->request;
    if (request->progress) {
        const hth_arrival *arrival = &e->residency.arrival;
        hearth_open_progress p = {.stage = stage, .total = arrival->bytes, .left_ms = -1};
        p.elapsed_ms = hth_ledger_ms(&e->ledger);
        p.bytes = atomic_load(&arrival->arrived);
        if (p.bytes > 0) {
            double since = p.elapsed_ms - e->ledger.rows[e->residency_row].start_ms;
            p.left_ms = since / (double)p.bytes * (double)(p.total - p.bytes);
        }
        if (request->progress(request->context, &p) != 0) atomic_store(&e->stop, true);
    }
    return atomic_load(&e->stop) ? stopped(e, err) : HEARTH_OK;
}

/* Say what was chosen in the row that is going on. */
#define CHOSE(e, ...) hth_ledger_how(&(e)->ledger, (e)->ledger.current, __VA_ARGS__)

static hearth_status begin(hearth_engine *e, const char *what, hearth_error *err) {
    HTH_TRY(report(e, what, err));
    hth_ledger_begin(&e->ledger, what);
    return HEARTH_OK;
}

static void end(hearth_engine *e, uint64_t bytes) {
    hth_ledger_end(&e->ledger, bytes, e->residency.pending ? hth_residency_outstanding(&e->residency) : 0);
}

/* The file of the tokenizer that came with the request, or its own. */
static hearth_status find_file(hearth_engine *e, hearth_error *err) {
    const hearth_open_request *request = e->request;
    if (!request->tokenizer) {
        HTH_TRY(hth_gguf_open(request->path, &e->own_gguf, err));
        e->gguf = e->own_gguf;
        return HEARTH_OK;
    }
    e->gguf = hth_tokenizer_file(request->tokenizer);
    const char *path = e->gguf ? hth_gguf_file_at(e->gguf, 0)->path : "another engine's file";
    if (strcmp(path, request->path) == 0) return HEARTH_OK;
    e->gguf = NULL;
    return hth_fail(err, HEARTH_BAD_ARGUMENT, "the tokenizer given is of '%s', the model is '%s'", path, request->path);
}

static uint64_t file_bytes(const hearth_engine *e) {
    uint64_t bytes = 0;
    for (int i = 0; i < hth_gguf_file_count(e->gguf); i++) bytes += hth_gguf_file_at(e->gguf, i)->size;
    return bytes;
}

/* A tokenizer that came with the request has mapped the file before; what that cost, and its tables, is in the bill. */
static hearth_status open_file(hearth_engine *e, hearth_error *err) {
    const hearth_tokenizer *given = e->request->tokenizer;
    uint64_t map_ns, directory_ns;
    if (given) {
        HTH_TRY(report(e, "map", err));
        HTH_TRY(find_file(e, err));
        hth_gguf_cost(e->gguf, &map_ns, &directory_ns);
        hth_ledger_paid(&e->ledger, "map", map_ns, file_bytes(e));
        hth_ledger_paid(&e->ledger, "directory", directory_ns, 0);
        hth_ledger_paid(&e->ledger, "tokenizer", hth_tokenizer_build_ns(given), 0);
        return hth_residency_create(&e->residency, e->gguf, e->request->options, err);
    }
    HTH_TRY(begin(e, "map", err));
    HTH_TRY(find_file(e, err));
    HTH_TRY(hth_residency_create(&e->residency, e->gguf, e->request->options, err));
    end(e, file_bytes(e));
    hth_gguf_cost(e->gguf, &map_ns, &directory_ns);
    hth_ledger_split(&e->ledger, "directory", map_ns);
    return HEARTH_OK;
}

static hearth_status copy_name(hearth_engine *e, hearth_error *err) {
    hth_string name = {"", 0};
    hearth_status status = hth_gguf_get_string(e->gguf, "general.name", &name, err);
    if (status != HEARTH_OK && status != HEARTH_NOT_FOUND) return status;
    e->name = strndup(name.data, name.size);
    return e->name ? HEARTH_OK : hth_fail(err, HEARTH_NO_MEMORY, "no memory for the model's name");
}

/* A recipe finds a weight where it emits the op that reads it: the two are told apart by the clock. */
static hearth_status make_program(hearth_engine *e, hearth_error *err) {
    const hth_recipe *recipe;
    HTH_TRY(begin(e, "weights bound", err));
    HTH_TRY(copy_name(e, err));
    HTH_TRY(hth_recipe_find(e->gguf, &recipe, err));
    HTH_TRY(recipe->emit(e->gguf, &e->program, err));
    CHOSE(e, "%s", e->program->architecture);
    end(e, hth_engine_weight_bytes(e));
    hth_ledger_split(&e->ledger, "program", e->program->bind_ns);
    CHOSE(e, "%d ops", e->program->n_ops);
    return HEARTH_OK;
}

static hearth_status place_weights(hearth_engine *e, hearth_error *err) {
    HTH_TRY(begin(e, "placement", err));
    HTH_TRY(hth_residency_place(&e->residency, e->program, err));
    CHOSE(e, "%s%s", hth_residency_place_name(&e->residency), e->residency.lock ? ", locked" : "");
    end(e, e->residency.arrival.bytes);
    return HEARTH_OK;
}

static hearth_status open_backend(hearth_engine *e, hearth_error *err) {
    const hearth_options *options = e->request->options;
    hth_backend_config config = {.threads = (int)hth_option_int(options, HTH_OPTION_THREADS),
                                 .pin = hth_option_bool(options, HTH_OPTION_PIN),
                                 .kernels = hth_option_text(options, HTH_OPTION_CPU_MASK)};
    HTH_TRY(begin(e, "threads", err));
    HTH_TRY(hth_backend_find("cpu", &e->type, err));
    HTH_TRY(e->type->open(&config, &e->backend, err));
    const int threads = e->type->threads(e->backend);
    CHOSE(e, "%d thread%s", threads, threads == 1 ? "" : "s");
    end(e, 0);
    return HEARTH_OK;
}

hearth_status hth_engine_prepare(hearth_engine *e, const hearth_open_request *request, hearth_error *err) {
    e->request = request;
    hth_ledger_start(&e->ledger);
    if (hth_option_bool(request->options, HTH_OPTION_SIGBUS)) {
        HTH_TRY(hth_sigbus_hold(err));
        e->holds_sigbus = true;
    }
    HTH_TRY(open_file(e, err));
    HTH_TRY(make_program(e, err));
    HTH_TRY(place_weights(e, err));
    HTH_TRY(open_backend(e, err));
    HTH_TRY(begin(e, "kernels", err));
    HTH_TRY(hth_engine_bind(e, request->options, err));
    CHOSE(e, "%s", e->type->kernels(e->backend));
    end(e, 0);
    HTH_TRY(begin(e, "plan", err));
    HTH_TRY(hth_engine_plan_memory(e, request->options, err));
    CHOSE(e, "ctx %lld", (long long)e->limits.context);
    end(e, hth_engine_plan_bytes(e));
    return HEARTH_OK;
}

hearth_status hth_engine_make_tokenizer(hearth_engine *e, hearth_error *err) {
    const hearth_options *options = e->request->options;
    if (e->request->tokenizer || !hth_gguf_find(e->gguf, "tokenizer.ggml.model")) return HEARTH_OK;
    const char *pre = hth_option_text(options, HTH_OPTION_PRE), *nfc = hth_option_text(options, HTH_OPTION_NFC);
    hearth_tokenizer_options how = {.pre = *pre ? pre : NULL,
                                    .nfc = strcmp(nfc, "on") == 0    ? 1
                                           : strcmp(nfc, "off") == 0 ? 0
                                                                     : -1,
                                    .threads = e->type->threads(e->backend)};
    HTH_TRY(begin(e, "tokenizer", err));
    HTH_TRY(hth_tokenizer_from_gguf(e->gguf, &how, &e->tokenizer, err));
    end(e, 0);
    return HEARTH_OK;
}

static hearth_status take_memory(hearth_engine *e, hearth_error *err) {
    hth_memory_term terms[HTH_PLAN_TERMS];
    size_t n;
    hth_arena counted = hth_arena_counting();
    HTH_TRY(begin(e, "arenas", err));
    hth_engine_carve(e, &counted);
    uint64_t bytes = counted.used;
    HTH_TRY(
        hth_arena_map_with(&e->tables, counted.used, (hth_arena_help){.stop = &e->stop}, "the session tables", err));
    hth_engine_carve(e, &e->tables);
    assert(e->tables.used == counted.used && !e->tables.overflow);
    e->blocks.total = e->limits.blocks;
    hth_blocks_init(&e->blocks);
    e->marks.total = e->limits.extents.value[HTH_MARKS];
    HTH_TRY(e->type->commit(e->exe, &e->stop, err));
    n = e->type->terms(e->exe, terms, HTH_PLAN_TERMS);
    for (size_t i = 0; i < n; i++) bytes += terms[i].bytes;
    end(e, bytes);
    return HEARTH_OK;
}

static hearth_status link_program(hearth_engine *e, hearth_error *err) {
    HTH_TRY(begin(e, "executables", err));
    HTH_TRY(e->type->link(e->exe, err));
    end(e, 0);
    return HEARTH_OK;
}

static hearth_status warm_up(hearth_engine *e, hearth_error *err) {
    HTH_TRY(begin(e, "warm pass", err));
    HTH_TRY(e->type->warm(e->exe, err));
    end(e, 0);
    return hth_engine_file_check(e, err);
}

/* ---- Weights ---- */

static const char residency[] = "residency";

static hearth_status start_residency(hearth_engine *e, hearth_error *err) {
    HTH_TRY(report(e, residency, err));
    e->residency_row = hth_ledger_aside(&e->ledger, residency);
    HTH_TRY(hth_residency_start(&e->residency, e->type->threads(e->backend), err));
    const int threads = e->residency.arrival.n_threads;
    hth_ledger_how(&e->ledger, e->residency_row, "%s by %d thread%s", e->residency.copy ? "read" : "populated", threads,
                   threads == 1 ? "" : "s");
    return HEARTH_OK;
}

static void write_residency_row(hearth_engine *e) {
    const hth_arrival *a = &e->residency.arrival;
    hearth_ledger_row *row = &e->ledger.rows[e->residency_row];
    row->end_ms = (double)(a->end_ns - e->ledger.start_ns) * 1e-6;
    row->bytes = atomic_load(&a->arrived);
    row->minor_faults = a->minor_faults;
    row->major_faults = a->major_faults;
    if (a->bytes > 0 && e->residency.tells_huge)
        hth_ledger_how(&e->ledger, e->residency_row, ", %.0f %% in huge pages",
                       100 * (double)e->residency.huge / (double)a->bytes);
}

/* All weights are there, or never will be. */
static hearth_status settle(hearth_engine *e, hearth_error *err) {
    const hth_arrival *a = &e->residency.arrival;
    if (e->residency.pending) write_residency_row(e);
    e->residency.pending = false;
    e->residency.last_use_ns = a->end_ns;
    return hth_raise(&a->failure, err);
}

static hearth_status await_weights(hearth_engine *e, hearth_error *err) {
    enum { REPORT_MS = 50 };
    hth_arrival *a = &e->residency.arrival;
    while (!hth_frontier_wait_ms(&a->frontier, a->all_ops + 1, REPORT_MS)) HTH_TRY(report(e, residency, err));
    hth_ledger_charge(&e->ledger, e->residency_row);
    return settle(e, err);
}

hearth_status hth_engine_file_check(hearth_engine *e, hearth_error *err) {
    hth_arrival *a = &e->residency.arrival;
    if (e->residency.pending && hth_frontier_reached(&a->frontier, a->all_ops)) {
        hth_frontier_wait(&a->frontier, a->all_ops + 1); /* its threads are leaving */
        HTH_TRY(settle(e, err));
    }
    const hth_gguf_file *lost = hth_gguf_lost_file(e->gguf);
    if (!lost) return HEARTH_OK;
    return hth_fail(err, HEARTH_IO, "'%s' became shorter while it was in use", lost->path);
}

hearth_status hth_engine_ready(hearth_engine *e, hearth_error *err) {
    if (!e->residency.pending) HTH_TRY(hth_raise(&e->residency.arrival.failure, err));
    return hth_residency_ready(&e->residency, &e->counters.refaults, err);
}

/* ---- All of it ---- */

hearth_status hth_engine_complete(hearth_engine *e, hearth_error *err) {
    HTH_TRY(start_residency(e, err));
    HTH_TRY(hth_engine_make_tokenizer(e, err));
    HTH_TRY(take_memory(e, err));
    HTH_TRY(link_program(e, err));
    HTH_TRY(warm_up(e, err));
    hth_residency_hurry(&e->residency);
    if (!hth_option_bool(e->request->options, HTH_OPTION_EARLY)) HTH_TRY(await_weights(e, err));
    HTH_TRY(report(e, "open", err));
    if (e->request->tokenizer) e->tokenizer = e->request->tokenizer;
    return HEARTH_OK;
}

void hth_engine_release(hearth_engine *e) {
    hth_residency_stop(&e->residency); /* before what its threads read from goes away */
    if (e->type) {
        e->type->free(&e->exe);
        e->type->close(&e->backend);
    }
    hth_arena_unmap(&e->tables);
    hth_program_free(&e->program);
    hth_residency_free(&e->residency);
    hearth_tokenizer_close(&e->tokenizer);
    hth_gguf_close(&e->own_gguf);
    if (e->holds_sigbus) hth_sigbus_release();
    free(e->name);
}

hearth_status hth_engine_open(hearth_engine *e, const hearth_open_request *request, hearth_error *err) {
    hearth_status status = hth_engine_prepare(e, request, err);
    if (status == HEARTH_OK) status = hth_engine_complete(e, err);
    if (status != HEARTH_OK) hth_engine_release(e);
    e->request = NULL;
    return status;
}

hearth_status hearth_engine_open_request(const hearth_open_request *request, hearth_engine **out, hearth_error *err) {
    *out = NULL;
    hearth_engine *e = calloc(1, sizeof *e);
    if (!e) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for an engine");
    hearth_status status = hth_engine_open(e, request, err);
    if (status == HEARTH_OK) *out = e;
    else free(e);
    return status;
}

hearth_status hearth_engine_open(const char *path, const hearth_options *options, hearth_engine **out,
                                 hearth_error *err) {
    const hearth_open_request request = {.path = path, .options = options};
    return hearth_engine_open_request(&request, out, err);
}

void hearth_engine_close(hearth_engine **engine) {
    if (!*engine) return;
    hth_engine_release(*engine);
    free(*engine);
    *engine = NULL;
}
