#include "cli/chat_marks.h"

#include <string.h>

/* The least useful of the marks: the lowest kind, the oldest of it. */
static size_t find_least(const hth_chat_mark *marks, size_t count, int64_t spared) {
    size_t least = count;
    for (size_t i = 0; i < count; i++) {
        if (marks[i].id && marks[i].id == spared) continue;
        bool less = least == count || marks[i].kind < marks[least].kind ||
                    (marks[i].kind == marks[least].kind && marks[i].position < marks[least].position);
        if (less) least = i;
    }
    return least;
}

static void remove_at(hth_chat_mark *marks, size_t *count, size_t at) {
    memmove(&marks[at], &marks[at + 1], (*count - at - 1) * sizeof *marks);
    --*count;
}

size_t hth_chat_marks_choose(hth_chat_mark *marks, size_t count, size_t room) {
    /* The newest mark is where this turn can be repeated from, so it comes before all older ones. */
    while (count > room && count > 1) {
        size_t least = find_least(marks, count - 1, 0);
        remove_at(marks, &count, least);
    }
    return count > room ? 0 : count;
}

static void drop_at(hth_chat_marks *m, hearth_engine *engine, size_t at) {
    hearth_mark_drop(engine, m->kept[at].id, NULL);
    remove_at(m->kept, &m->count, at);
}

static int64_t shared_with(const hearth_token *a, int64_t a_count, const hearth_token *b, int64_t b_count) {
    int64_t n = 0;
    while (n < a_count && n < b_count && a[n] == b[n]) n++;
    return n;
}

/* Where a sync to the tokens can start at least: in front of `position` no row is computed. */
typedef struct start {
    int64_t mark, position; /* mark: 0 when it is the session itself, or the beginning */
} start;

/* Drop what is off the way, unless it shares more with the tokens than the session does. */
static start drop_strays(hth_chat_marks *m, const hearth_session *session, hearth_engine *engine,
                         const hearth_token *tokens, int64_t count) {
    enum { MOST = 256 };
    hearth_mark_info infos[MOST];
    size_t n = hearth_engine_marks(engine, infos, MOST);
    int64_t position = hearth_session_position(session);
    int64_t own = shared_with(hearth_session_tokens(session), position, tokens, count);
    start best = {0, own == position && own < count ? own : 0};
    if (n > MOST) n = MOST;
    for (size_t i = m->count; i-- > 0;) {
        const hearth_mark_info *info = NULL;
        for (size_t k = 0; k < n && !info; k++)
            if (infos[k].id == m->kept[i].id) info = &infos[k];
        int64_t shared = info ? shared_with(info->tokens, info->position, tokens, count) : 0;
        bool stray = !info || shared < info->position;
        if (stray && shared <= own) drop_at(m, engine, i);
        else if (!stray && shared < count && shared > best.position) best = (start){info->id, shared};
    }
    return best;
}

/* Find those of `wanted` that are kept already, and leave out those that no row of a sync from `from` passes. */
static size_t find_kept(const hth_chat_marks *m, hth_chat_mark *wanted, size_t n_wanted, start from) {
    for (size_t i = n_wanted; i-- > 0;) {
        for (size_t k = 0; k < m->count; k++)
            if (m->kept[k].position == wanted[i].position) wanted[i].id = m->kept[k].id;
        if (!wanted[i].id && wanted[i].position < from.position) remove_at(wanted, &n_wanted, i);
    }
    return n_wanted;
}

size_t hth_chat_marks_make_room(hth_chat_marks *m, hearth_session *session, hearth_engine *engine,
                                const hearth_token *tokens, int64_t count, hth_chat_mark *wanted, size_t n_wanted) {
    start from = drop_strays(m, session, engine, tokens, count);
    n_wanted = hth_chat_marks_choose(wanted, find_kept(m, wanted, n_wanted, from), m->slots);
    for (;;) {
        size_t missing = 0;
        for (size_t i = 0; i < n_wanted; i++) missing += wanted[i].id == 0;
        if (missing == 0 || m->count + missing <= m->slots) return n_wanted;
        size_t least = find_least(m->kept, m->count, from.mark);
        if (least == m->count) {
            n_wanted = hth_chat_marks_choose(wanted, n_wanted, n_wanted - 1);
            continue;
        }
        for (size_t i = 0; i < n_wanted; i++)
            if (wanted[i].id == m->kept[least].id) wanted[i].id = 0;
        drop_at(m, engine, least);
    }
}

void hth_chat_marks_note(hth_chat_marks *m, const hth_chat_mark *left, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bool known = left[i].id == 0;
        for (size_t k = 0; k < m->count; k++)
            if (m->kept[k].id == left[i].id) known = true;
        if (!known && m->count < m->slots) m->kept[m->count++] = left[i];
    }
}

void hth_chat_marks_drop_all(hth_chat_marks *m, hearth_engine *engine) {
    while (m->count > 0) drop_at(m, engine, m->count - 1);
}
