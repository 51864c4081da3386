/* Stop strings in a stream of bytes.
 *
 * Each string is matched by its failure function (Knuth, Morris and Pratt), so every byte costs a constant number of
 * steps per string whatever the text. What could still become a stop string is the longest prefix of any that the text
 * ends with: exactly those bytes are held back.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "hearth/tokenizer.h"

typedef struct stop_string {
    const char *text;
    size_t size;
    uint32_t *failure; /* of a prefix of n bytes: the size of its longest proper prefix that it also ends with */
    size_t matched;
} stop_string;

struct hearth_stop_matcher {
    stop_string *strings;
    size_t count;
    char *texts;
    uint32_t *failures;
    char *out; /* what was held back, then what came since */
    size_t out_capacity;
    size_t held; /* bytes at `shown` in `out` */
    size_t shown;
    int stopped;
};

void hearth_stop_matcher_free(hearth_stop_matcher **matcher) {
    hearth_stop_matcher *m = *matcher;
    if (m == NULL) return;
    free(m->strings);
    free(m->texts);
    free(m->failures);
    free(m->out);
    free(m);
    *matcher = NULL;
}

static void find_failures(stop_string *s) {
    size_t matched = 0;
    s->failure[0] = s->failure[1] = 0;
    for (size_t i = 1; i < s->size; i++) {
        while (matched > 0 && s->text[matched] != s->text[i]) matched = s->failure[matched];
        if (s->text[matched] == s->text[i]) matched++;
        s->failure[i + 1] = (uint32_t)matched;
    }
}

hearth_status hearth_stop_matcher_create(const char *const *strings, const size_t *sizes, size_t count,
                                         hearth_stop_matcher **out, hearth_error *err) {
    size_t total = 0;
    *out = NULL;
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] == 0) return hth_fail(err, HEARTH_BAD_ARGUMENT, "stop string %zu is empty", i);
        if (sizes[i] >= UINT32_MAX - total || count > UINT32_MAX)
            return hth_fail(err, HEARTH_BAD_ARGUMENT, "stop string %zu: they are 4 GiB or more together", i);
        total += sizes[i];
    }
    hearth_stop_matcher *m = calloc(1, sizeof *m);
    if (m == NULL) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for stop strings");
    m->count = count;
    m->strings = calloc(count + 1, sizeof *m->strings);
    m->texts = malloc(total + 1);
    m->failures = malloc((total + count + 1) * sizeof *m->failures);
    if (m->strings == NULL || m->texts == NULL || m->failures == NULL) {
        hearth_stop_matcher_free(&m);
        return hth_fail(err, HEARTH_NO_MEMORY, "no memory for %zu stop strings of %zu bytes", count, total);
    }
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        memcpy(m->texts + at, strings[i], sizes[i]);
        m->strings[i] = (stop_string){.text = m->texts + at, .size = sizes[i], .failure = m->failures + at + i};
        find_failures(&m->strings[i]);
        at += sizes[i];
    }
    *out = m;
    return HEARTH_OK;
}

/* Go over one byte. The answer is how much of the text so far, up to that byte, may be the beginning of a stop string;
 * *stop becomes the size of the longest one that is complete. */
static size_t step(hearth_stop_matcher *m, char byte, size_t *stop) {
    size_t held = 0;
    for (size_t i = 0; i < m->count; i++) {
        stop_string *s = &m->strings[i];
        while (s->matched > 0 && s->text[s->matched] != byte) s->matched = s->failure[s->matched];
        if (s->text[s->matched] == byte) s->matched++;
        if (s->matched > held) held = s->matched;
        if (s->matched == s->size && s->size > *stop) *stop = s->size;
    }
    return held;
}

static hearth_status make_room(hearth_stop_matcher *m, size_t size, hearth_error *err) {
    if (m->held > 0) memmove(m->out, m->out + m->shown, m->held);
    m->shown = 0;
    if (m->out_capacity - m->held >= size && m->out != NULL) return HEARTH_OK;
    size_t capacity = m->held + size < size ? SIZE_MAX : 2 * (m->held + size) + 256;
    char *out = capacity < size ? NULL : realloc(m->out, capacity);
    if (out == NULL) return hth_fail(err, HEARTH_NO_MEMORY, "no memory to match stop strings in %zu bytes", size);
    m->out = out;
    m->out_capacity = capacity;
    return HEARTH_OK;
}

hearth_status hearth_stop_matcher_feed(hearth_stop_matcher *matcher, const char *text, size_t text_size,
                                       const char **data, size_t *size, int *stopped, hearth_error *err) {
    hearth_stop_matcher *m = matcher;
    size_t stop = 0, held = m->held, used = 0;
    if (m->stopped) text_size = 0;
    HTH_TRY(make_room(m, text_size, err));
    while (used < text_size && stop == 0) held = step(m, text[used++], &stop);
    if (used > 0) memcpy(m->out + m->held, text, used);
    size_t total = m->held + used;
    m->shown = total - (stop > 0 ? stop : held);
    m->held = stop > 0 ? 0 : held;
    m->stopped |= stop > 0;
    *data = m->out;
    *size = m->shown;
    *stopped = m->stopped;
    return HEARTH_OK;
}

void hearth_stop_matcher_finish(hearth_stop_matcher *matcher, const char **data, size_t *size) {
    hearth_stop_matcher *m = matcher;
    *data = m->out == NULL ? "" : m->out + m->shown;
    *size = m->held;
    m->held = 0;
    m->stopped = 0;
    for (size_t i = 0; i < m->count; i++) m->strings[i].matched = 0;
}
