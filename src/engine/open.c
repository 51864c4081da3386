/* Open: the composition point. Cheap refusals first, then everything that costs, each step a row of the ledger. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/sigbus.h"
#include "engine/engine.h"
#include "models/models.h"
#include "text/tokenizer.h"

/* ---- Ledger ---- */

static void faults(uint64_t *minor, uint64_t *major) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    *minor = (uint64_t)usage.ru_minflt;
    *major = (uint64_t)usage.ru_majflt;
}

void hth_ledger_begin(hth_ledger *l, const char *what) {
    assert(l->count < HTH_LEDGER_ROWS);
    hearth_ledger_row *row = &l->rows[l->count];
    *row = (hearth_ledger_row){.what = what, .start_ms = hth_ms_since(l->start_ns)};
    faults(&row->minor_faults, &row->major_faults);
}

void hth_ledger_end(hth_ledger *l, uint64_t bytes) {
    hearth_ledger_row *row = &l->rows[l->count++];
    uint64_t minor, major;
    faults(&minor, &major);
    row->end_ms = hth_ms_since(l->start_ns);
    row->exposed_ms = row->end_ms - row->start_ms;
    row->bytes = bytes;
    row->minor_faults = minor - row->minor_faults;
    row->major_faults = major - row->major_faults;
}

/* ---- Steps ---- */

static hearth_status open_file(hearth_engine *e, const char *path, hearth_error *err) {
    uint64_t bytes = 0;
    hth_ledger_begin(&e->ledger, "map and directory");
    HTH_TRY(hth_gguf_open(path, &e->gguf, err));
    int n = hth_gguf_file_count(e->gguf);
    e->files = calloc((size_t)n, sizeof *e->files);
    if (!e->files) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for %d files", n);
    for (int i = 0; i < n; i++) {
        const hth_gguf_file *f = hth_gguf_file_at(e->gguf, i);
        e->files[i] = (hth_file_view){f->base, f->size};
        bytes += f->size;
    }
    hth_ledger_end(&e->ledger, bytes);
    return HEARTH_OK;
}

static hearth_status make_program(hearth_engine *e, hearth_error *err) {
    const hth_recipe *recipe;
    hth_ledger_begin(&e->ledger, "program");
    HTH_TRY(hth_recipe_find(e->gguf, &recipe, err));
    HTH_TRY(recipe->emit(e->gguf, &e->program, err));
    hth_ledger_end(&e->ledger, 0);
    return HEARTH_OK;
}

static hearth_status open_tokenizer(hearth_engine *e, const hearth_options *options, hearth_error *err) {
    if (!hth_gguf_find(e->gguf, "tokenizer.ggml.model")) return HEARTH_OK;
    const char *pre = hth_option_text(options, HTH_OPTION_PRE), *nfc = hth_option_text(options, HTH_OPTION_NFC);
    hearth_tokenizer_options how = {.pre = *pre ? pre : NULL,
                                    .nfc = strcmp(nfc, "on") == 0    ? 1
                                           : strcmp(nfc, "off") == 0 ? 0
                                                                     : -1};
    hth_ledger_begin(&e->ledger, "tokenizer");
    HTH_TRY(hth_tokenizer_from_gguf(e->gguf, &how, &e->tokenizer, err));
    hth_ledger_end(&e->ledger, 0);
    return HEARTH_OK;
}

static hearth_status copy_name(hearth_engine *e, hearth_error *err) {
    hth_string name = {"", 0};
    hearth_status status = hth_gguf_get_string(e->gguf, "general.name", &name, err);
    if (status != HEARTH_OK && status != HEARTH_NOT_FOUND) return status;
    e->name = strndup(name.data, name.size);
    return e->name ? HEARTH_OK : hth_fail(err, HEARTH_NO_MEMORY, "no memory for the model's name");
}

static hearth_status open_backend(hearth_engine *e, const hearth_options *options, hearth_error *err) {
    hth_backend_config config = {.threads = (int)hth_option_int(options, HTH_OPTION_THREADS),
                                 .pin = hth_option_bool(options, HTH_OPTION_PIN),
                                 .kernels = hth_option_text(options, HTH_OPTION_CPU_MASK)};
    hth_ledger_begin(&e->ledger, "threads");
    HTH_TRY(hth_backend_find("cpu", &e->type, err));
    HTH_TRY(e->type->open(&config, &e->backend, err));
    hth_ledger_end(&e->ledger, 0);
    return HEARTH_OK;
}

hearth_status hth_engine_prepare(const char *path, const hearth_options *options, hearth_engine *e, hearth_error *err) {
    e->ledger.start_ns = hth_now_ns();
    if (hth_option_bool(options, HTH_OPTION_SIGBUS)) {
        HTH_TRY(hth_sigbus_hold(err));
        e->holds_sigbus = true;
    }
    HTH_TRY(open_file(e, path, err));
    HTH_TRY(copy_name(e, err));
    HTH_TRY(make_program(e, err));
    HTH_TRY(open_tokenizer(e, options, err));
    HTH_TRY(open_backend(e, options, err));
    hth_ledger_begin(&e->ledger, "kernels and plan");
    HTH_TRY(hth_engine_plan_memory(e, options, err));
    hth_ledger_end(&e->ledger, 0);
    return HEARTH_OK;
}

hearth_status hth_engine_file_check(const hearth_engine *e, hearth_error *err) {
    const hth_gguf_file *lost = hth_gguf_lost_file(e->gguf);
    if (!lost) return HEARTH_OK;
    return hth_fail(err, HEARTH_IO, "'%s' became shorter while it was in use", lost->path);
}

static hearth_status take_memory(hearth_engine *e, hearth_error *err) {
    uint64_t bytes = 0;
    hth_arena counted = hth_arena_counting();
    hth_ledger_begin(&e->ledger, "arenas");
    hth_engine_carve(e, &counted);
    HTH_TRY(hth_arena_map(&e->tables, counted.used, "the session tables", err));
    hth_engine_carve(e, &e->tables);
    assert(e->tables.used == counted.used && !e->tables.overflow);
    e->blocks.total = e->limits.blocks;
    hth_blocks_init(&e->blocks);
    e->marks.total = e->limits.extents.value[HTH_MARKS];
    HTH_TRY(e->type->commit(e->exe, err));
    for (size_t i = 0; i < e->n_terms; i++) bytes += e->terms[i].mapped ? 0 : e->terms[i].bytes;
    hth_ledger_end(&e->ledger, bytes);
    return HEARTH_OK;
}

static hearth_status warm_up(hearth_engine *e, const hearth_options *options, hearth_error *err) {
    uint64_t bytes;
    hth_ledger_begin(&e->ledger, "residency");
    HTH_TRY(hth_make_resident(e, hth_option_bool(options, HTH_OPTION_LOCK), &bytes, err));
    hth_ledger_end(&e->ledger, bytes);
    hth_ledger_begin(&e->ledger, "warm pass");
    HTH_TRY(e->type->warm(e->exe, err));
    hth_ledger_end(&e->ledger, 0);
    return hth_engine_file_check(e, err);
}

void hth_engine_release(hearth_engine *e) {
    if (e->type) {
        e->type->free(&e->exe);
        e->type->close(&e->backend);
    }
    hth_arena_unmap(&e->tables);
    hth_program_free(&e->program);
    hearth_tokenizer_close(&e->tokenizer);
    hth_gguf_close(&e->gguf);
    if (e->holds_sigbus) hth_sigbus_release();
    free(e->files);
    free(e->name);
}

hearth_status hearth_engine_open(const char *path, const hearth_options *options, hearth_engine **out,
                                 hearth_error *err) {
    *out = NULL;
    hearth_engine *e = calloc(1, sizeof *e);
    if (!e) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for an engine");
    hearth_status status = hth_engine_prepare(path, options, e, err);
    if (status == HEARTH_OK) status = take_memory(e, err);
    if (status == HEARTH_OK) status = warm_up(e, options, err);
    if (status != HEARTH_OK) {
        hearth_engine_close(&e);
        return status;
    }
    *out = e;
    return HEARTH_OK;
}

void hearth_engine_close(hearth_engine **engine) {
    if (!*engine) return;
    hth_engine_release(*engine);
    free(*engine);
    *engine = NULL;
}
