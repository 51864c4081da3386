/* Opening in the background. The thread owns the engine until it is over; who ends the opening takes it from there. */
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "engine/engine.h"

struct hearth_opening {
    hearth_open_request request; /* path and options are ours */
    char *path;
    hearth_options *options;
    hearth_engine *engine;
    pthread_t thread;
    atomic_bool over;
    /* Valid when it is over. */
    hearth_status status;
    hearth_error error;
};

static void *open_model(void *arg) {
    hearth_opening *o = arg;
    o->status = hth_engine_open(o->engine, &o->request, &o->error);
    atomic_store(&o->over, true);
    return NULL;
}

static void release(hearth_opening *o) {
    hearth_options_free(&o->options);
    free(o->path);
    free(o->engine);
    free(o);
}

static hearth_status fill(hearth_opening *o, const hearth_open_request *request, hearth_error *err) {
    o->request = *request;
    o->path = strdup(request->path);
    o->engine = calloc(1, sizeof *o->engine);
    if (!o->path || !o->engine) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for an engine");
    HTH_TRY(hth_options_copy(request->options, &o->options, err));
    o->request.path = o->path;
    o->request.options = o->options;
    int error = hth_thread_start(&o->thread, 0, open_model, o);
    if (error) return hth_fail(err, HEARTH_NO_MEMORY, "cannot start a thread to open a model: %s", strerror(error));
    return HEARTH_OK;
}

hearth_status hearth_opening_begin(const hearth_open_request *request, hearth_opening **out, hearth_error *err) {
    *out = NULL;
    hearth_opening *o = calloc(1, sizeof *o);
    if (!o) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for an opening");
    hearth_status status = fill(o, request, err);
    if (status == HEARTH_OK) *out = o;
    else release(o);
    return status;
}

int hearth_opening_is_over(const hearth_opening *o) {
    return atomic_load(&o->over);
}

void hearth_opening_cancel(hearth_opening *o) {
    if (o) atomic_store(&o->engine->stop, true);
}

hearth_status hearth_opening_end(hearth_opening **opening, hearth_engine **out, hearth_error *err) {
    hearth_opening *o = *opening;
    *out = NULL;
    if (!o) return hth_fail(err, HEARTH_BAD_ARGUMENT, "there is no opening to end");
    *opening = NULL;
    pthread_join(o->thread, NULL);
    hearth_status status = o->status;
    if (status == HEARTH_OK) {
        *out = o->engine;
        o->engine = NULL;
    } else if (err) {
        *err = o->error;
    }
    release(o);
    return status;
}
