/* Cutting a call into passes. Rows go in item order; a pass takes as many as were planned. So the passes of a call are
 * ceil(rows / rows per pass), and each item's logits lie side by side. */
#include <assert.h>
#include <math.h>

#include "engine/engine.h"

static int64_t outputs_of(const hearth_item *item) {
    switch (item->outputs) {
    case HEARTH_OUTPUT_ALL: return item->count;
    case HEARTH_OUTPUT_LAST: return 1;
    case HEARTH_OUTPUT_NONE: break;
    }
    return 0;
}

static hearth_status check_item(const hearth_engine *e, const hearth_item *items, size_t i, hearth_error *err) {
    const hearth_item *item = &items[i];
    const hearth_session *s = item->session;
    if (!s || s->engine != e || !s->open)
        return hth_fail(err, HEARTH_BAD_ARGUMENT, "item %zu: not an open session of this engine", i);
    for (size_t k = 0; k < i; k++)
        if (items[k].session == s)
            return hth_fail(err, HEARTH_BAD_ARGUMENT, "items %zu and %zu name the same session", k, i);
    HTH_TRY(hth_session_check(s, err));
    if (item->count < 1) return hth_fail(err, HEARTH_BAD_ARGUMENT, "item %zu has no tokens", i);
    if (item->count > e->limits.context - s->position)
        return hth_fail(err, HEARTH_TOO_LONG, "no room for %lld token%s at position %lld of a context of %lld",
                        (long long)item->count, hth_plural(item->count), (long long)s->position,
                        (long long)e->limits.context);
    for (int64_t t = 0; t < item->count; t++)
        if (item->tokens[t] < 0 || item->tokens[t] >= e->program->n_vocab)
            return hth_fail(err, HEARTH_BAD_ARGUMENT, "token %lld of item %zu is %d: the model has ids 0 to %lld",
                            (long long)t, i, item->tokens[t], (long long)e->program->n_vocab - 1);
    return hth_marks_check(item->marks, item->mark_count, s->position, s->position + item->count, err);
}

static hearth_status check_call(const hearth_engine *e, const hearth_item *items, size_t count, int64_t *rows,
                                hearth_error *err) {
    int64_t outputs = 0, blocks = 0;
    size_t marks = 0;
    *rows = 0;
    if (count == 0) return hth_fail(err, HEARTH_BAD_ARGUMENT, "a run needs at least one item");
    if (count > (size_t)e->limits.extents.value[HTH_SEQS])
        return hth_fail(err, HEARTH_TOO_LONG, "%zu items: %lld sessions were planned", count,
                        (long long)e->limits.extents.value[HTH_SEQS]);
    for (size_t i = 0; i < count; i++) {
        HTH_TRY(check_item(e, items, i, err));
        outputs += outputs_of(&items[i]);
        *rows += items[i].count;
        marks += items[i].mark_count;
        blocks += hth_session_need(items[i].session, items[i].session->position + items[i].count);
    }
    HTH_TRY(hth_marks_fit(e, marks, err));
    if (blocks > e->blocks.free_count) return hth_blocks_short(e, blocks, e->blocks.free_count, err);
    if (outputs > e->limits.outputs)
        return hth_fail(err, HEARTH_TOO_LONG,
                        "%lld rows of logits wanted in one call: %lld were planned (option outputs)",
                        (long long)outputs, (long long)e->limits.outputs);
    return HEARTH_OK;
}

/* Where a call stands: `item` and `done` of its tokens and `marks` of its marks come next. */
typedef struct cursor {
    size_t item, marks;
    int64_t done;
    int64_t outputs; /* of the passes so far */
} cursor;

/* Add the item's marks up to the position that its session will have reached after `n` rows from row `first` on. */
static void add_marks(hearth_engine *e, const hearth_item *item, int64_t first, int64_t n, cursor *at, hth_pass *pass) {
    hth_schedule *s = &e->schedule;
    for (; at->marks < item->mark_count; at->marks++, pass->n_marks++) {
        int64_t ahead = item->marks[at->marks].position - item->session->position;
        if (ahead > n) return;
        int32_t slot = hth_marks_slot(&e->marks, s->marks, pass->n_marks);
        s->marks[pass->n_marks] = (hth_pass_mark){(int32_t)pass->seqs - 1, slot, first + ahead};
        s->wanted[pass->n_marks] = &item->marks[at->marks];
    }
}

/* Fill the tables with the next pass's rows; sessions are given their blocks. Returns the pass and moves the cursor. */
static hth_pass next_pass(hearth_engine *e, const hearth_item *items, size_t count, cursor *at) {
    hth_schedule *s = &e->schedule;
    int64_t capacity = e->limits.extents.value[HTH_ROWS];
    hth_pass pass = {.tokens = s->tokens,
                     .positions = s->positions,
                     .seq_rows = s->seq_rows,
                     .block_table = s->tables,
                     .state_slots = s->state_slots,
                     .faults = s->faults,
                     .marks = s->marks,
                     .out_rows = s->out_rows,
                     .arrivals = e->residency.pending ? &e->residency.arrival.frontier : NULL,
                     .first_output = at->outputs};
    while (at->item < count && pass.rows < capacity) {
        const hearth_item *item = &items[at->item];
        hearth_session *session = item->session;
        int64_t n = item->count - at->done < capacity - pass.rows ? item->count - at->done : capacity - pass.rows;
        hth_session_reserve(session, session->position + n);
        s->seq_rows[pass.seqs] = pass.rows;
        s->state_slots[pass.seqs] = (int32_t)(session - e->sessions);
        s->tables[pass.seqs++] = session->blocks;
        for (int64_t i = 0; i < n; i++) {
            int64_t row = pass.rows + i;
            bool last = at->done + i + 1 == item->count;
            s->tokens[row] = session->tokens[session->position + i] = item->tokens[at->done + i];
            s->positions[row] = session->position + i;
            if (item->outputs == HEARTH_OUTPUT_ALL || (item->outputs == HEARTH_OUTPUT_LAST && last))
                s->out_rows[pass.outs++] = (int32_t)row;
        }
        add_marks(e, item, pass.rows, n, at, &pass);
        session->position += n;
        pass.rows += n;
        at->done += n;
        if (at->done == item->count) {
            at->item++;
            at->done = 0;
            at->marks = 0;
        }
    }
    s->seq_rows[pass.seqs] = pass.rows;
    at->outputs += pass.outs;
    return pass;
}

static bool is_finite(const float *x, int64_t n) {
    /* x * 0 is 0 for every finite x and NaN otherwise. */
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * 0.0f;
    return sum == 0.0f;
}

/* The session of a sequence of a pass: sequences are told apart by their state slots. */
static hearth_session *session_of(hearth_engine *e, int64_t seq) {
    return &e->sessions[e->schedule.state_slots[seq]];
}

/* Poison by name the sessions in which an op met a value that it cannot go on with. */
static void note_faults(hearth_engine *e, const hth_pass *pass) {
    for (int64_t i = 0; i < pass->seqs; i++) {
        hearth_session *s = session_of(e, i);
        if (pass->faults[i].op < 0 || s->poison.status != HEARTH_OK) continue;
        const hth_op *op = &e->program->ops[pass->faults[i].op];
        hth_fail(&s->poison, HEARTH_POISONED,
                 "%s: the %s met a value that is not finite at position %lld of session %lld", op->site,
                 hth_opcode_name(op->opcode), (long long)pass->positions[pass->faults[i].row],
                 (long long)(s - e->sessions));
    }
}

static void keep_marks(hearth_engine *e, const hth_pass *pass) {
    for (int64_t i = 0; i < pass->n_marks; i++) {
        hearth_mark *mark = e->schedule.wanted[i];
        mark->id = hth_marks_keep(session_of(e, pass->marks[i].seq), pass->marks[i].slot, mark->position);
    }
}

/* Nobody can rely on what a call left in a session that it poisoned. */
static void drop_poisoned_marks(hearth_engine *e, hearth_item *items, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; items[i].session->poison.status != HEARTH_OK && k < items[i].mark_count; k++) {
            if (items[i].marks[k].id) hearth_mark_drop(e, items[i].marks[k].id, NULL);
            items[i].marks[k].id = 0;
        }
}

/* Hand out each item's logits; a session whose logits are not finite is poisoned by name. */
static hearth_status deliver(hearth_engine *e, hearth_item *items, size_t count, hearth_error *err) {
    const float *logits = e->type->logits(e->exe);
    int64_t vocab = e->program->n_vocab;
    hearth_status status = HEARTH_OK;
    for (size_t i = 0; i < count; i++) {
        int64_t outputs = outputs_of(&items[i]);
        items[i].logits = outputs ? logits : NULL;
        for (int64_t o = 0; o < outputs; o++, logits += vocab) {
            hearth_session *s = items[i].session;
            if (s->poison.status != HEARTH_OK || is_finite(logits, vocab)) continue;
            hth_fail(&s->poison, HEARTH_POISONED, "logits at position %lld of session %lld are not finite",
                     (long long)(s->position - outputs + o), (long long)(s - e->sessions));
        }
        if (items[i].session->poison.status == HEARTH_OK) continue;
        status = HEARTH_POISONED;
        if (err) *err = items[i].session->poison;
    }
    drop_poisoned_marks(e, items, count);
    return status;
}

hearth_status hearth_engine_run(hearth_engine *e, hearth_item *items, size_t count, hearth_error *err) {
    int64_t rows, done = 0;
    HTH_TRY(check_call(e, items, count, &rows, err));
    HTH_TRY(hth_engine_ready(e, err));
    for (size_t i = 0; i < count; i++) hth_residency_hint(&e->residency, items[i].tokens, items[i].count);
    e->counters.calls++;
    for (size_t i = 0; i < count; i++) {
        items[i].logits = NULL;
        for (size_t k = 0; k < items[i].mark_count; k++) items[i].marks[k].id = 0;
    }
    cursor at = {0};
    while (at.item < count) {
        hth_pass pass = next_pass(e, items, count, &at);
        hearth_error why;
        hearth_status status = e->type->run(e->exe, &pass, &why);
        if (status == HEARTH_OK) status = hth_engine_file_check(e, &why);
        if (status != HEARTH_OK) {
            for (size_t i = 0; i < count; i++) items[i].session->poison = why;
            drop_poisoned_marks(e, items, count);
            return hth_raise(&why, err);
        }
        note_faults(e, &pass);
        keep_marks(e, &pass);
        e->counters.passes++;
        e->counters.rows += (uint64_t)pass.rows;
        e->counters.row_reads += (uint64_t)pass.rows;
        e->counters.outputs += (uint64_t)pass.outs;
        done += pass.rows;
        if (e->progress && e->progress(e->progress_context, done, rows) != 0 && at.item < count) {
            drop_poisoned_marks(e, items, count);
            return hth_fail(err, HEARTH_CANCELLED, "stopped after %lld of %lld rows", (long long)done, (long long)rows);
        }
    }
    return deliver(e, items, count, err);
}

void hearth_engine_set_progress(hearth_engine *e, hearth_progress_fn *progress, void *context) {
    e->progress = progress;
    e->progress_context = context;
}
