/* Marks: positions to come back to. Keys and values are shared by reference; recurrent state lies in the checkpoint
 * slot that has the mark's number. */
#include <assert.h>
#include <string.h>

#include "engine/engine.h"

static bool is_on_way(const hth_mark *m, const hearth_token *tokens, int64_t position) {
    return m->id && m->position <= position &&
           hth_common_prefix(m->tokens, m->position, tokens, position) == m->position;
}

const hth_mark *hth_marks_on_way(const hearth_engine *e, const hearth_token *tokens, int64_t position, bool exactly) {
    const hth_mark *best = NULL;
    for (int64_t i = 0; i < e->marks.total; i++) {
        const hth_mark *m = &e->marks.marks[i];
        if ((exactly && m->position != position) || (best && m->position <= best->position)) continue;
        if (is_on_way(m, tokens, position)) best = m;
    }
    return best;
}

hearth_status hth_marks_check(const hearth_mark *marks, size_t count, int64_t from, int64_t to, hearth_error *err) {
    for (size_t i = 0; i < count; i++) {
        if (marks[i].position < from || marks[i].position > to)
            return hth_fail(err, HEARTH_BAD_ARGUMENT, "mark %zu is at position %lld: the call goes from %lld to %lld",
                            i, (long long)marks[i].position, (long long)from, (long long)to);
        if (i > 0 && marks[i].position <= marks[i - 1].position)
            return hth_fail(err, HEARTH_BAD_ARGUMENT, "marks have to increase: mark %zu at %lld follows one at %lld", i,
                            (long long)marks[i].position, (long long)marks[i - 1].position);
    }
    return HEARTH_OK;
}

hearth_status hth_marks_fit(const hearth_engine *e, size_t count, hearth_error *err) {
    size_t unused = (size_t)(e->marks.total - e->marks.used);
    if (count <= unused) return HEARTH_OK;
    return hth_fail(err, HEARTH_TOO_LONG,
                    "%zu mark%s wanted in one call: %zu of %lld slots are free (option mark-slots)", count,
                    hth_plural((int64_t)count), unused, (long long)e->marks.total);
}

int32_t hth_marks_slot(const hth_marks *marks, const hth_pass_mark *taken, int64_t count) {
    int64_t slot = count > 0 ? taken[count - 1].slot + 1 : 0;
    while (slot < marks->total && marks->marks[slot].id) slot++;
    assert(slot < marks->total);
    return (int32_t)slot;
}

int64_t hth_marks_keep(hearth_session *s, int32_t slot, int64_t position) {
    hearth_engine *e = s->engine;
    hth_mark *m = &e->marks.marks[slot];
    assert(!m->id && position <= s->position);
    m->id = ++e->marks.last_id;
    m->position = position;
    memcpy(m->tokens, s->tokens, (size_t)position * sizeof *m->tokens);
    for (int64_t i = 0; i < hth_blocks_for(position); i++) {
        m->blocks[i] = s->blocks[i];
        hth_blocks_hold(&e->blocks, m->blocks[i]);
    }
    e->marks.used++;
    e->counters.marks_left++;
    return m->id;
}

static hth_mark *find(const hearth_engine *e, int64_t id) {
    for (int64_t i = 0; i < e->marks.total; i++)
        if (id > 0 && e->marks.marks[i].id == id) return &e->marks.marks[i];
    return NULL;
}

static hearth_status not_found(int64_t id, hearth_error *err) {
    return hth_fail(err, HEARTH_NOT_FOUND, "no mark has the id %lld", (long long)id);
}

hearth_status hearth_mark_drop(hearth_engine *e, int64_t id, hearth_error *err) {
    hth_mark *m = find(e, id);
    if (!m) return not_found(id, err);
    for (int64_t i = 0; i < hth_blocks_for(m->position); i++) hth_blocks_drop(&e->blocks, m->blocks[i]);
    m->id = 0;
    e->marks.used--;
    return HEARTH_OK;
}

void hth_mark_restore_state(hearth_session *s, const hth_mark *m) {
    hearth_engine *e = s->engine;
    if (e->type->has_state(e->exe)) e->type->restore(e->exe, (int32_t)(m - e->marks.marks), (int32_t)(s - e->sessions));
    e->counters.restores++;
}

void hth_mark_restore(hearth_session *s, const hth_mark *m) {
    hearth_engine *e = s->engine;
    /* Held before the session lets go of its own: most are the same ones. */
    for (int64_t i = 0; i < hth_blocks_for(m->position); i++) hth_blocks_hold(&e->blocks, m->blocks[i]);
    for (int64_t i = 0; i < hth_blocks_for(s->position); i++) hth_blocks_drop(&e->blocks, s->blocks[i]);
    memcpy(s->blocks, m->blocks, (size_t)hth_blocks_for(m->position) * sizeof *s->blocks);
    memcpy(s->tokens, m->tokens, (size_t)m->position * sizeof *s->tokens);
    s->position = m->position;
    s->poison.status = HEARTH_OK;
    hth_mark_restore_state(s, m);
}

hearth_status hearth_session_restore(hearth_session *s, int64_t id, hearth_error *err) {
    const hth_mark *m = find(s->engine, id);
    if (!m) return not_found(id, err);
    hth_mark_restore(s, m);
    return HEARTH_OK;
}

size_t hearth_engine_marks(const hearth_engine *e, hearth_mark_info *out, size_t capacity) {
    size_t count = 0;
    for (int64_t after = 0; count < (size_t)e->marks.used; count++) {
        const hth_mark *next = NULL;
        for (int64_t i = 0; i < e->marks.total; i++) {
            const hth_mark *m = &e->marks.marks[i];
            if (m->id > after && (!next || m->id < next->id)) next = m;
        }
        assert(next);
        after = next->id;
        if (count < capacity) out[count] = (hearth_mark_info){next->id, next->position, next->tokens};
    }
    return count;
}
