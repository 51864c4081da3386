#include <assert.h>

#include "engine/engine.h"

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
    for (int64_t i = hth_blocks_for(position); i < hth_blocks_for(s->position); i++)
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

/* Bring the recurrent state to a position before the session's own; the refusal names where it could go. */
static hearth_status restore_state(hearth_session *s, int64_t position, hearth_error *err) {
    const hearth_engine *e = s->engine;
    const hth_mark *m = hth_marks_on_way(e, s->tokens, position, true);
    if (m) {
        hth_mark_restore_state(s, m);
        return HEARTH_OK;
    }
    m = hth_marks_on_way(e, s->tokens, position, false);
    return hth_fail(
        err, HEARTH_BAD_ARGUMENT,
        "cannot go back to position %lld: the model keeps recurrent state, and no mark is there; the nearest "
        "before it is %lld%s",
        (long long)position, m ? (long long)m->position : 0LL, m ? "" : ", the start");
}

hearth_status hearth_session_truncate(hearth_session *s, int64_t position, hearth_error *err) {
    const hearth_engine *e = s->engine;
    if (position < 0 || position > s->position)
        return hth_fail(err, HEARTH_BAD_ARGUMENT, "cannot go back to position %lld: the session is at %lld",
                        (long long)position, (long long)s->position);
    if (position > 0) HTH_TRY(hth_session_check(s, err));
    if (position > 0 && position < s->position && e->type->has_state(e->exe)) HTH_TRY(restore_state(s, position, err));
    drop_to(s, position);
    s->poison.status = HEARTH_OK;
    return HEARTH_OK;
}

hearth_status hth_session_check(const hearth_session *s, hearth_error *err) {
    if (s->poison.status == HEARTH_OK) return HEARTH_OK;
    return hth_fail(err, HEARTH_POISONED, "the session is poisoned: %s", s->poison.text);
}

/* The session writes on in a block whose next slots others rely on: it goes on in a copy. */
static void part_block(hearth_session *s, int64_t i) {
    hearth_engine *e = s->engine;
    int32_t copy = hth_blocks_take(&e->blocks);
    e->type->copy_block(e->exe, s->blocks[i], copy);
    hth_blocks_drop(&e->blocks, s->blocks[i]);
    s->blocks[i] = copy;
    e->counters.block_copies++;
}

void hth_session_reserve(hearth_session *s, int64_t position) {
    hth_blocks *pool = &s->engine->blocks;
    int64_t at = s->position / HTH_BLOCK_POSITIONS, slot = s->position % HTH_BLOCK_POSITIONS;
    if (slot > 0 && pool->references[s->blocks[at]] > 1 && slot < pool->fill[s->blocks[at]]) part_block(s, at);
    for (int64_t i = hth_blocks_for(s->position); i < hth_blocks_for(position); i++)
        s->blocks[i] = hth_blocks_take(pool);
    for (int64_t i = at; i < hth_blocks_for(position); i++) {
        int64_t end = position - i * HTH_BLOCK_POSITIONS;
        pool->fill[s->blocks[i]] = (int32_t)(end < HTH_BLOCK_POSITIONS ? end : HTH_BLOCK_POSITIONS);
    }
}

/* Blocks for the session to go on from `from`, at most its position, to `to`: one more than the tokens need where the
 * first may have to be a copy. */
static int64_t blocks_needed(const hearth_session *s, int64_t from, int64_t to) {
    int64_t at = from / HTH_BLOCK_POSITIONS;
    bool parts = from % HTH_BLOCK_POSITIONS > 0 && s->engine->blocks.references[s->blocks[at]] > 1;
    return hth_blocks_for(to) - hth_blocks_for(from) + parts;
}

int64_t hth_session_need(const hearth_session *s, int64_t to) {
    return blocks_needed(s, s->position, to);
}

int64_t hth_common_prefix(const hearth_token *a, int64_t a_count, const hearth_token *b, int64_t b_count) {
    int64_t limit = a_count < b_count ? a_count : b_count, n = 0;
    while (n < limit && a[n] == b[n]) n++;
    return n;
}

/* ---- Sync ---- */

/* What of a request need not be computed, and where it comes from: the session itself, or a mark. */
typedef struct origin {
    const hth_mark *mark;
    int64_t shared, kept;
} origin;

/* What can be kept of a timeline at `position` that shares `shared` tokens: recurrent state cannot be cut. */
static int64_t keepable(const hearth_engine *e, int64_t shared, int64_t position, int64_t limit) {
    int64_t kept = shared < limit ? shared : limit;
    return e->type->has_state(e->exe) && kept < position ? 0 : kept;
}

/* The most that can be kept, of at most `count - 1` tokens: the last one's logits are wanted. */
static origin find_origin(const hearth_session *s, const hearth_token *tokens, int64_t count) {
    const hearth_engine *e = s->engine;
    origin best = {NULL, 0, 0};
    if (s->poison.status == HEARTH_OK) {
        best.shared = hth_common_prefix(s->tokens, s->position, tokens, count);
        best.kept = keepable(e, best.shared, s->position, count - 1);
    }
    for (int64_t i = 0; i < e->marks.total; i++) {
        const hth_mark *m = &e->marks.marks[i];
        if (!m->id) continue;
        int64_t shared = hth_common_prefix(m->tokens, m->position, tokens, count);
        int64_t kept = keepable(e, shared, m->position, count - 1);
        if (shared > best.shared) best.shared = shared;
        if (kept > best.kept) best = (origin){m, best.shared, kept};
    }
    return best;
}

/* Whether the blocks will do once the session has let go of what it does not keep. */
static hearth_status check_blocks(const hearth_session *s, const origin *from, int64_t count, hearth_error *err) {
    const hth_blocks *pool = &s->engine->blocks;
    int64_t available = pool->free_count, need;
    for (int64_t i = from->mark ? 0 : hth_blocks_for(from->kept); i < hth_blocks_for(s->position); i++)
        if (pool->references[s->blocks[i]] == 1) available++;
    /* What a mark gives, the mark and the session will both hold. */
    if (from->mark) need = hth_blocks_for(count) - from->kept / HTH_BLOCK_POSITIONS;
    else need = blocks_needed(s, from->kept, count);
    return need <= available ? HEARTH_OK : hth_blocks_short(s->engine, need, available, err);
}

/* How many of the marks are not left by the run: those in what is kept, and one at its end that is there already. */
static size_t count_held(const hearth_engine *e, const hearth_token *tokens, const hearth_mark *marks,
                         size_t mark_count, int64_t kept) {
    size_t held = 0;
    while (held < mark_count && marks[held].position < kept) held++;
    bool at_end = held < mark_count && marks[held].position == kept;
    return held + (at_end && hth_marks_on_way(e, tokens, kept, true));
}

/* `held` of the marks are not left by the run. */
static hearth_status check_sync(const hearth_session *s, const hearth_token *tokens, int64_t count,
                                const hearth_mark *marks, size_t mark_count, size_t held, const origin *from,
                                hearth_error *err) {
    const hearth_engine *e = s->engine;
    for (int64_t i = from->kept; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= e->program->n_vocab)
            return hth_fail(err, HEARTH_BAD_ARGUMENT, "token %lld of the request is %d: the model has ids 0 to %lld",
                            (long long)i, tokens[i], (long long)e->program->n_vocab - 1);
    HTH_TRY(hth_marks_check(marks, mark_count, 0, count, err));
    HTH_TRY(hth_marks_fit(e, mark_count - held, err));
    return check_blocks(s, from, count, err);
}

/* Bring the session to where the rest of the request begins. */
static hearth_status go_back(hearth_session *s, const origin *from, hearth_error *err) {
    if (from->kept == 0) return hearth_session_truncate(s, 0, err);
    if (from->mark) hth_mark_restore(s, from->mark);
    return hearth_session_truncate(s, from->kept, err);
}

hearth_status hearth_session_sync(hearth_session *s, const hearth_token *tokens, int64_t count, hearth_mark *marks,
                                  size_t mark_count, const float **logits, hearth_sync_report *report,
                                  hearth_error *err) {
    hearth_engine *e = s->engine;
    if (count < 1) return hth_fail(err, HEARTH_BAD_ARGUMENT, "a sync needs at least one token");
    if (count > e->limits.context)
        return hth_fail(err, HEARTH_TOO_LONG, "%lld tokens do not fit the context of %lld", (long long)count,
                        (long long)e->limits.context);
    const origin from = find_origin(s, tokens, count);
    const int64_t restored = from.mark ? from.mark->id : 0;
    uint64_t passes = e->counters.passes;
    for (size_t i = 0; i < mark_count; i++) marks[i].id = 0;
    const size_t held = count_held(e, tokens, marks, mark_count, from.kept);
    /* All is checked before anything changes: the way back is taken only when the run will go through. */
    HTH_TRY(check_sync(s, tokens, count, marks, mark_count, held, &from, err));
    HTH_TRY(hth_engine_ready(e, err));
    for (size_t i = 0; i < held; i++) {
        const hth_mark *there = hth_marks_on_way(e, tokens, marks[i].position, true);
        marks[i].id = there ? there->id : 0;
    }
    HTH_TRY(go_back(s, &from, err));
    hearth_item item = {.session = s,
                        .tokens = tokens + from.kept,
                        .count = count - from.kept,
                        .outputs = HEARTH_OUTPUT_LAST,
                        .marks = marks ? marks + held : NULL,
                        .mark_count = mark_count - held};
    HTH_TRY(hearth_engine_run(e, &item, 1, err));
    if (logits) *logits = item.logits;
    if (report)
        *report = (hearth_sync_report){.shared = from.shared,
                                       .kept = from.kept,
                                       .computed = count - from.kept,
                                       .passes = (int64_t)(e->counters.passes - passes),
                                       .restored = restored};
    return HEARTH_OK;
}
