/* The table behind a pattern, and the loop that runs it.
 *
 * Characters that no set of the pattern tells apart form a class; the table has a column for each and one for the end
 * of the text. A state is a list of program threads in order of preference, each standing in front of a character. On a
 * column, every thread in turn is followed through its forks and assertions (which that column decides) until it
 * takes the character, fails, or matches. A match silences all threads of lower preference: that is what makes the
 * result the one that a backtracking engine finds first. The entry holds the next state and whether a match ends here,
 * in front of the character.
 */
#include "text/pattern.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/pattern_internal.h"

enum {
    MAX_CLASSES = 64,
    MAX_STATES = 4096,
    MAX_THREADS = 1 << 18, /* of all states together */
    BEYOND = 0x110000      /* stands for a byte that is no character */
};

#define ACCEPT UINT32_C(0x80000000) /* in a table entry: a match ends in front of this character */
#define DEAD   UINT32_C(0)          /* the state that leads nowhere */

struct hth_pattern {
    unsigned columns; /* classes, and the end of the text as the last */
    uint32_t start;   /* states are kept as the index of their first entry: state number times columns */
    uint32_t *table;
    uint8_t ascii[128];      /* class of a character */
    uint8_t no_character;    /* class of a byte that is none */
    unsigned interval_count; /* between two neighbours in `bounds`, a character's class depends on its category alone */
    uint32_t *bounds;
    uint8_t (*interval_class)[HTH_CATEGORY_COUNT];
};

void hth_pattern_free(hth_pattern **pattern) {
    if (*pattern == NULL) return;
    free((*pattern)->table);
    free((*pattern)->bounds);
    free((*pattern)->interval_class);
    free(*pattern);
    *pattern = NULL;
}

/* ---- classes ---- */

typedef struct builder {
    pattern_program program;
    hth_pattern *out;
    unsigned class_count;
    uint64_t members[MAX_CLASSES]; /* of a class: bit s, whether its characters are in set s */
    /* States under construction: threads[first[i] .. first[i + 1]) are those of state i. */
    uint16_t *threads;
    uint32_t first[MAX_STATES + 1];
    uint32_t hash[MAX_STATES];
    unsigned state_count;
} builder;

static hearth_status no_memory(hearth_error *err) {
    return hth_fail(err, HEARTH_NO_MEMORY, "no memory to compile a pattern");
}

/* The class of characters like this one; MAX_CLASSES when there are too many. */
static unsigned class_like(builder *b, uint32_t c, hth_category category) {
    uint64_t member = 0;
    for (unsigned s = 0; s < b->program.set_count; s++)
        if (hth_pattern_set_has(&b->program, &b->program.sets[s], c, category)) member |= UINT64_C(1) << s;
    for (unsigned i = 0; i < b->class_count; i++)
        if (b->members[i] == member) return i;
    if (b->class_count + 1 >= MAX_CLASSES) return MAX_CLASSES;
    b->members[b->class_count] = member;
    return b->class_count++;
}

static int compare_bounds(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static hearth_status find_bounds(builder *b, hearth_error *err) {
    hth_pattern *out = b->out;
    const pattern_program *program = &b->program;
    out->bounds = malloc((2 * program->range_count + 4) * sizeof *out->bounds);
    if (out->bounds == NULL) return no_memory(err);
    unsigned count = 0;
    out->bounds[count++] = 0;
    out->bounds[count++] = 0x80;
    out->bounds[count++] = 0x85; /* white space by itself, of a category that is not */
    out->bounds[count++] = 0x86;
    for (unsigned i = 0; i < program->range_count; i++) {
        out->bounds[count++] = program->ranges[i].first;
        out->bounds[count++] = program->ranges[i].last + 1;
    }
    qsort(out->bounds, count, sizeof *out->bounds, compare_bounds);
    for (unsigned i = 0; i < count; i++)
        if (i == 0 || out->bounds[i] != out->bounds[i - 1]) out->bounds[out->interval_count++] = out->bounds[i];
    return HEARTH_OK;
}

static hearth_status find_classes(builder *b, hearth_error *err) {
    hth_pattern *out = b->out;
    HTH_TRY(find_bounds(b, err));
    out->interval_class = malloc(out->interval_count * sizeof *out->interval_class);
    if (out->interval_class == NULL) return no_memory(err);
    unsigned most = 0, class;
    for (uint32_t c = 0; c < 128; c++) {
        out->ascii[c] = (uint8_t)(class = class_like(b, c, hth_category_of(c)));
        most = class > most ? class : most;
    }
    for (unsigned i = 0; i < out->interval_count; i++) {
        if (out->bounds[i] < 0x80) continue; /* never looked up */
        for (unsigned category = 0; category < HTH_CATEGORY_COUNT; category++) {
            class = class_like(b, out->bounds[i], (hth_category)category);
            out->interval_class[i][category] = (uint8_t) class;
            most = class > most ? class : most;
        }
    }
    out->no_character = (uint8_t)(class = class_like(b, BEYOND, HTH_CN));
    most = class > most ? class : most;
    if (most == MAX_CLASSES) return hth_fail(err, HEARTH_UNSUPPORTED, "a pattern has too many classes of characters");
    out->columns = b->class_count + 1;
    return HEARTH_OK;
}

static uint8_t class_beyond_ascii(const hth_pattern *p, const unsigned char *text, size_t size, int *length) {
    uint32_t c;
    *length = hth_utf8_decode(text, size, &c);
    if (*length == 0) {
        *length = 1;
        return p->no_character;
    }
    unsigned low = 0, high = p->interval_count; /* the interval lies in [low, high) */
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (p->bounds[middle] <= c) low = middle;
        else high = middle;
    }
    return p->interval_class[low][hth_category_of(c)];
}

static inline uint8_t class_at(const hth_pattern *p, const unsigned char *text, size_t size, int *length) {
    *length = 1;
    return text[0] < 128 ? p->ascii[text[0]] : class_beyond_ascii(p, text, size, length);
}

/* ---- states ---- */

/* Follow a thread, and those it forks, over one column. Threads that take the character are appended to `to` unless
 * they are there. True: one matched, so that no later thread counts. */
static bool follow(const builder *b, uint16_t thread, unsigned column, uint8_t *seen, uint16_t *to, unsigned *count) {
    uint16_t pending[PATTERN_MAX_STEPS + 1];
    unsigned depth = 0;
    bool at_end = column == b->class_count;
    uint64_t member = at_end ? 0 : b->members[column];
    pending[depth++] = thread;
    while (depth > 0) {
        uint16_t at = pending[--depth];
        if (seen[at]) continue;
        seen[at] = 1;
        const pattern_step *step = &b->program.steps[at];
        switch (step->op) {
        case PATTERN_MATCH: return true;
        case PATTERN_FORK:
            pending[depth++] = step->arg;
            pending[depth++] = step->next;
            break;
        case PATTERN_END:
            if (at_end) pending[depth++] = step->next;
            break;
        case PATTERN_NOT:
            if (at_end || (member >> step->arg & 1) == 0) pending[depth++] = step->next;
            break;
        case PATTERN_TAKE:
            if (!at_end && (member >> step->arg & 1) != 0) {
                bool there = false;
                for (unsigned i = 0; i < *count && !there; i++) there = to[i] == step->next;
                if (!there) to[(*count)++] = step->next;
            }
            break;
        }
    }
    return false;
}

/* The number of the state with these threads, made if it is new; MAX_STATES when there is no room. */
static unsigned state_of(builder *b, const uint16_t *threads, unsigned count) {
    uint32_t hash = 2166136261u;
    for (unsigned i = 0; i < count; i++) hash = (hash ^ threads[i]) * 16777619u;
    for (unsigned s = 0; s < b->state_count; s++) {
        if (b->hash[s] != hash || b->first[s + 1] - b->first[s] != count) continue;
        if (count == 0 || memcmp(b->threads + b->first[s], threads, count * sizeof *threads) == 0) return s;
    }
    uint32_t first = b->first[b->state_count];
    if (b->state_count == MAX_STATES || first + count > MAX_THREADS) return MAX_STATES;
    if (count > 0) memcpy(b->threads + first, threads, count * sizeof *threads);
    b->hash[b->state_count] = hash;
    b->first[b->state_count + 1] = first + count;
    return b->state_count++;
}

static hearth_status find_states(builder *b, hearth_error *err) {
    hth_pattern *out = b->out;
    uint8_t seen[PATTERN_MAX_STEPS];
    uint16_t next[PATTERN_MAX_STEPS];
    size_t room = 0;
    uint16_t start = (uint16_t)b->program.start;
    state_of(b, NULL, 0); /* DEAD */
    out->start = state_of(b, &start, 1) * out->columns;
    for (unsigned s = 0; s < b->state_count; s++) {
        if (s == room) {
            room = room == 0 ? 64 : room * 2;
            uint32_t *table = realloc(out->table, room * out->columns * sizeof *table);
            if (table == NULL) return no_memory(err);
            out->table = table;
        }
        for (unsigned column = 0; column < out->columns; column++) {
            unsigned count = 0;
            bool match = false;
            memset(seen, 0, b->program.step_count);
            for (uint32_t t = b->first[s]; t < b->first[s + 1] && !match; t++)
                match = follow(b, b->threads[t], column, seen, next, &count);
            unsigned state = state_of(b, next, count);
            if (state == MAX_STATES) return hth_fail(err, HEARTH_UNSUPPORTED, "a pattern has too many states");
            out->table[s * out->columns + column] = state * out->columns | (match ? ACCEPT : 0);
        }
    }
    return HEARTH_OK;
}

hearth_status hth_pattern_compile(const char *regex, hth_pattern **out, hearth_error *err) {
    *out = NULL;
    builder *b = calloc(1, sizeof *b);
    hth_pattern *pattern = calloc(1, sizeof *pattern);
    uint16_t *threads = malloc(MAX_THREADS * sizeof *threads);
    hearth_status status;
    if (b == NULL || pattern == NULL || threads == NULL) {
        status = no_memory(err);
    } else {
        b->out = pattern;
        b->threads = threads;
        status = hth_pattern_parse(regex, &b->program, err);
        if (status == HEARTH_OK) status = find_classes(b, err);
        if (status == HEARTH_OK) status = find_states(b, err);
    }
    free(threads);
    free(b);
    if (status == HEARTH_OK) *out = pattern;
    else if (pattern != NULL) hth_pattern_free(&pattern);
    return status;
}

/* ---- running ---- */

void hth_pattern_start(hth_pattern_search *search, const hth_pattern *pattern, const char *text, size_t size) {
    *search = (hth_pattern_search){.pattern = pattern, .text = (const unsigned char *)text, .size = size};
}

enum { LONG_WALK = 64 }; /* bytes walked behind a match in vain that are worth remembering */

/* Note the longest stretch of [from, to) through which the automaton, in `state` at `from`, stayed in one state. */
static void remember_barren(hth_pattern_search *search, size_t from, size_t to, uint32_t state) {
    const hth_pattern *p = search->pattern;
    size_t begin = from;
    search->barren_begin = search->barren_end = 0;
    for (size_t at = from; at < to;) {
        int length;
        uint8_t class = class_at(p, search->text + at, search->size - at, &length);
        uint32_t next = p->table[state + class] & ~ACCEPT;
        if (at - begin > search->barren_end - search->barren_begin) {
            search->barren_begin = begin;
            search->barren_end = at;
            search->barren = state;
        }
        at += (size_t)length;
        if (next != state) begin = at;
        state = next;
    }
    search->work += to - from;
}

/* The end of the match that begins at `from`; `from` when there is none. */
static size_t match_end(hth_pattern_search *search, size_t from) {
    const hth_pattern *p = search->pattern;
    const unsigned char *text = search->text;
    const uint32_t *table = p->table;
    size_t size = search->size, at = from, end = from;
    uint32_t state = p->start, end_state = state;
    while (at < size) {
        int length;
        uint8_t class = class_at(p, text + at, size - at, &length);
        uint32_t entry = table[state + class];
        if (entry & ACCEPT) {
            end = at;
            end_state = state;
        }
        if (state == search->barren && at >= search->barren_begin && at < search->barren_end) break;
        state = entry & ~ACCEPT;
        if (state == DEAD) break;
        at += (size_t)length;
    }
    if (at == size && state != DEAD && (table[state + p->columns - 1] & ACCEPT) != 0) end = size;
    search->work += at - from + 1;
    if (at - end > LONG_WALK && at >= search->barren_end) remember_barren(search, end, at, end_state);
    return end;
}

bool hth_pattern_next(hth_pattern_search *search, size_t from, size_t *begin, size_t *end) {
    const hth_pattern *p = search->pattern;
    while (from < search->size) {
        int length;
        uint8_t class = class_at(p, search->text + from, search->size - from, &length);
        if ((p->table[p->start + class] & ~ACCEPT) != DEAD) {
            *end = match_end(search, from);
            if (*end > from) {
                *begin = from;
                return true;
            }
        }
        search->work++;
        from += (size_t)length;
    }
    return false;
}
