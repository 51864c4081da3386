#include <assert.h>

#include "engine/engine.h"

static int64_t blocks_for(int64_t position) {
    return (position + HTH_BLOCK_POSITIONS - 1) / HTH_BLOCK_POSITIONS;
}

hearth_status hearth_session_create(hearth_engine *engine, hearth_session **out, hearth_error *err) {
    *out = NULL;
    int64_t planned = engine->limits.extents.value[HTH_SEQS];
    for (int64_t i = 0; i < planned; i++) {
        hearth_session *s = &engine->sessions[i];
        if (s->open) continue;
        s->open = true;
        s->poison.status = HEARTH_OK;
        s->position = 0;
        *out = s;
        return HEARTH_OK;
    }
    return hth_fail(err, HEARTH_TOO_LONG, "all %lld planned sessions are open (option sessions)", (long long)planned);
}

static void drop_to(hearth_session *s, int64_t position) {
    for (int64_t i = blocks_for(position); i < blocks_for(s->position); i++)
        hth_blocks_drop(&s->engine->blocks, s->blocks[i]);
    s->position = position;
}

void hearth_session_free(hearth_session **session) {
    hearth_session *s = *session;
    *session = NULL;
    if (!s) return;
    drop_to(s, 0);
    s->open = false;
}

int64_t hearth_session_position(const hearth_session *session) {
    return session->position;
}
const hearth_token *hearth_session_tokens(const hearth_session *session) {
    return session->tokens;
}

hearth_status hearth_session_truncate(hearth_session *s, int64_t position, hearth_error *err) {
    if (position < 0 || position > s->position)
        return hth_fail(err, HEARTH_BAD_ARGUMENT, "cannot go back to position %lld: the session is at %lld",
                        (long long)position, (long long)s->position);
    if (s->poison.status != HEARTH_OK && position > 0) return hth_session_check(s, err);
    drop_to(s, position);
    s->poison.status = HEARTH_OK;
    return HEARTH_OK;
}

hearth_status hth_session_check(const hearth_session *s, hearth_error *err) {
    if (s->poison.status == HEARTH_OK) return HEARTH_OK;
    return hth_fail(err, HEARTH_POISONED, "the session is poisoned: %s", s->poison.text);
}

void hth_session_reserve(hearth_session *s, int64_t position) {
    for (int64_t i = blocks_for(s->position); i < blocks_for(position); i++)
        s->blocks[i] = hth_blocks_take(&s->engine->blocks);
}

static int64_t common_prefix(const hearth_session *s, const hearth_token *tokens, int64_t count) {
    int64_t limit = s->position < count ? s->position : count, n = 0;
    while (n < limit && s->tokens[n] == tokens[n]) n++;
    return n;
}

hearth_status hearth_session_sync(hearth_session *s, const hearth_token *tokens, int64_t count, const float **logits,
                                  hearth_sync_report *report, hearth_error *err) {
    if (count < 1) return hth_fail(err, HEARTH_BAD_ARGUMENT, "a sync needs at least one token");
    HTH_TRY(hth_session_check(s, err));
    if (count > s->engine->limits.context)
        return hth_fail(err, HEARTH_TOO_LONG, "%lld tokens do not fit the context of %lld", (long long)count,
                        (long long)s->engine->limits.context);
    int64_t shared = common_prefix(s, tokens, count);
    int64_t kept = shared == count ? count - 1 : shared, before = s->position;
    uint64_t passes = s->engine->counters.passes;

    /* The run checks the tokens before it changes anything, so the way back is taken only when it will go through. */
    for (int64_t i = kept; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= s->engine->program->n_vocab)
            return hth_fail(err, HEARTH_BAD_ARGUMENT, "token %lld of the request is %d: the model has ids 0 to %lld",
                            (long long)i, tokens[i], (long long)s->engine->program->n_vocab - 1);
    if (kept < before) HTH_TRY(hearth_session_truncate(s, kept, err));
    hearth_item item = {.session = s, .tokens = tokens + kept, .count = count - kept, .outputs = HEARTH_OUTPUT_LAST};
    HTH_TRY(hearth_engine_run(s->engine, &item, 1, err));
    if (logits) *logits = item.logits;
    if (report)
        *report = (hearth_sync_report){.shared = shared,
                                       .kept = kept,
                                       .computed = count - kept,
                                       .passes = (int64_t)(s->engine->counters.passes - passes)};
    return HEARTH_OK;
}
