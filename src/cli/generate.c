#include "cli/generate.h"

#include "base/clock.h"
#include "base/status.h"
#include "cli/interrupt.h"
#include "cli/say.h"

const char *hth_stop_name(hth_stop stop) {
    switch (stop) {
    case HTH_STOP_LENGTH: return "length";
    case HTH_STOP_END: return "end";
    case HTH_STOP_STRING: return "stop_string";
    case HTH_STOP_CONTEXT: return "context";
    case HTH_STOP_CONSTRAINT: return "constraint";
    case HTH_STOP_INTERRUPTED: return "interrupted";
    case HTH_STOP_OUTPUT: break;
    }
    return "output";
}

/* ---- Text ---- */

/* Pass text through the stop strings to the caller. False: *stop is set, and the generation is over. */
static bool show(hth_generation *g, const char *text, size_t size, hth_stop *stop, hearth_status *status,
                 hearth_error *err) {
    int stopped = 0;
    if (g->stops && g->bound) {
        *status = hearth_stop_matcher_feed(g->stops, text, size, &text, &size, &stopped, err);
        if (*status != HEARTH_OK) return false;
    }
    if (size > 0 && !g->emit(g->emit_context, text, size)) {
        *stop = HTH_STOP_OUTPUT;
        return false;
    }
    if (stopped) *stop = HTH_STOP_STRING;
    return !stopped;
}

static bool show_token(hth_generation *g, hearth_token token, hth_stop *stop, hearth_status *status,
                       hearth_error *err) {
    const char *text;
    size_t size;
    *status = hearth_detokenizer_feed(g->detokenizer, token, &text, &size, err);
    return *status == HEARTH_OK && show(g, text, size, stop, status, err);
}

/* What the detokenizer and the stop strings still hold back. A stop string that ended the generation, and what came
 * after it, stays unseen. */
static hearth_status show_rest(hth_generation *g, hearth_error *err) {
    hearth_status status = HEARTH_OK;
    const char *text;
    size_t size;
    if (g->stop == HTH_STOP_STRING || g->stop == HTH_STOP_OUTPUT) return HEARTH_OK;
    hearth_detokenizer_finish(g->detokenizer, &text, &size);
    if (!show(g, text, size, &g->stop, &status, err)) return status;
    if (!g->stops) return HEARTH_OK;
    hearth_stop_matcher_finish(g->stops, &text, &size);
    if (size > 0 && !g->emit(g->emit_context, text, size)) g->stop = HTH_STOP_OUTPUT;
    return HEARTH_OK;
}

/* ---- Tokens ---- */

static int prompt_progress(void *context, int64_t done, int64_t total) {
    (void)context;
    if (total > 1) hth_progress("reading the prompt:", done, total);
    return hth_interrupted();
}

static hearth_status compute_prompt(hth_generation *g, const float **logits, hearth_error *err) {
    uint64_t start = hth_now_ns();
    hearth_engine_set_progress(g->engine, prompt_progress, NULL);
    hearth_status status = hearth_session_sync(g->session, g->prompt.ids, (int64_t)g->prompt.count, g->marks,
                                               g->mark_count, logits, &g->sync, err);
    hearth_engine_set_progress(g->engine, NULL, NULL);
    hth_progress_end();
    g->prompt_ms = hth_ms_since(start);
    if (status == HEARTH_OK) status = hearth_sampler_accept(g->sampler, g->prompt.ids, g->prompt.count, err);
    return status;
}

static hearth_status compute_token(hth_generation *g, hearth_token token, const float **logits, hearth_error *err) {
    uint64_t start = hth_now_ns();
    hearth_item item = {.session = g->session, .tokens = &token, .count = 1, .outputs = HEARTH_OUTPUT_LAST};
    HTH_TRY(hearth_engine_run(g->engine, &item, 1, err));
    *logits = item.logits;
    g->decode_ms += hth_ms_since(start);
    g->decoded++;
    return HEARTH_OK;
}

static bool is_over(const hth_generation *g, int64_t context, hth_stop *stop) {
    if (hth_interrupted()) *stop = HTH_STOP_INTERRUPTED;
    else if (g->count == g->most) *stop = HTH_STOP_LENGTH;
    else if (hearth_session_position(g->session) == context && g->count > 0) *stop = HTH_STOP_CONTEXT;
    else return false;
    return true;
}

/* Whether the constraint lets something follow; if not, *stop says why not. */
static hearth_status may_go_on(hth_generation *g, bool *goes_on, hearth_error *err) {
    const uint64_t *mask;
    hearth_match match = HEARTH_MATCH_OPEN;
    if (g->matcher && g->bound) HTH_TRY(hearth_matcher_mask(g->matcher, &mask, &match, err));
    *goes_on = match == HEARTH_MATCH_OPEN;
    if (!*goes_on) g->stop = match == HEARTH_MATCH_COMPLETE ? HTH_STOP_END : HTH_STOP_CONSTRAINT;
    return HEARTH_OK;
}

/* Draw a token freely, and take it if it stands where the constraint does not hold. Else the constraint begins here: it
 * draws again. */
static hearth_status choose(hth_generation *g, const float *logits, hearth_token *token, bool *goes_on,
                            hearth_error *err) {
    *goes_on = true;
    if (!g->bound) {
        bool before = g->bounds->place(g->emit_context) == HEARTH_OUTPUT_BEFORE_CONTENT;
        HTH_TRY(hearth_sampler_set_matcher(g->sampler, NULL, err));
        HTH_TRY(hearth_sampler_sample(g->sampler, logits, token, err));
        if (!before || g->bounds->marks(g->emit_context, *token)) return HEARTH_OK;
        g->bound = true;
        HTH_TRY(hearth_sampler_set_matcher(g->sampler, g->matcher, err));
        HTH_TRY(may_go_on(g, goes_on, err));
        if (!*goes_on) return HEARTH_OK;
    }
    return hearth_sampler_sample(g->sampler, logits, token, err);
}

hearth_status hth_generate(hth_generation *g, hearth_error *err) {
    const hearth_tokenizer *tokenizer = hearth_engine_tokenizer(g->engine);
    hearth_model_info info;
    const float *logits = NULL;
    uint64_t start = hth_now_ns();
    hearth_engine_info(g->engine, &info);
    g->bound = !g->matcher || !g->bounds;
    HTH_TRY(compute_prompt(g, &logits, err));
    hearth_status status = HEARTH_OK;
    while (!is_over(g, info.context, &g->stop)) {
        hearth_token token;
        bool goes_on;
        HTH_TRY(may_go_on(g, &goes_on, err));
        if (!goes_on) break;
        if (g->count > 0) HTH_TRY(compute_token(g, g->tokens[g->count - 1], &logits, err));
        HTH_TRY(choose(g, logits, &token, &goes_on, err));
        if (!goes_on) break;
        if (g->count == 0) g->first_token_ms = hth_ms_since(start);
        if (hearth_tokenizer_ends_generation(tokenizer, token)) {
            g->stop = g->bound ? HTH_STOP_END : HTH_STOP_CONSTRAINT;
            break;
        }
        HTH_TRY(hearth_sampler_accept(g->sampler, &token, 1, err));
        if (g->matcher && g->bound) HTH_TRY(hearth_matcher_accept(g->matcher, token, err));
        g->tokens[g->count++] = token;
        if (!show_token(g, token, &g->stop, &status, err)) break;
        if (!g->bound && g->bounds->place(g->emit_context) == HEARTH_OUTPUT_IN_CONTENT) {
            g->stop = HTH_STOP_CONSTRAINT;
            break;
        }
    }
    if (status != HEARTH_OK) return status;
    return show_rest(g, err);
}
