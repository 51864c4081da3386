/* Text is a row of segments: a character, and those after it that may combine with it or change places. Only a segment
 * changes as a whole. utf8proc knows the decompositions and compositions; the order of combining marks is ours, because
 * its sort takes quadratic time on long rows of marks.
 *
 * The reference is the normaliser of the Hugging Face `tokenizers` package, which knows Unicode 9: marks that are newer
 * pass it unchanged, and do so here.
 */
#include "text/normalize.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"

typedef struct range {
    uint32_t first, last;
} range;

/* Marks that combine or change places today and did not exist in Unicode 9. */
static const range newer_marks[] = {
    {0x7FD, 0x7FD},     {0x897, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
    {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},
    {0xA82C, 0xA82C},   {0x10D24, 0x10D27}, {0x10D69, 0x10D6D}, {0x10EAB, 0x10EAC}, {0x10EFC, 0x10EFF},
    {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x11380, 0x113E2},
    {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11930, 0x11930}, {0x1193D, 0x1193E}, {0x11943, 0x11943},
    {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42},
    {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16100, 0x16139}, {0x16D40, 0x16D79},
    {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF},
    {0x1E4EC, 0x1E4EF}, {0x1E5EE, 0x1E5EF},
};

/* Characters of combining class 0 that compose with, or decompose into marks of, what stands before them. */
static const range joining_starters[] = {
    {0x9BE, 0x9BE},     {0x9D7, 0x9D7},     {0xB3E, 0xB3E},     {0xB56, 0xB57},     {0xBBE, 0xBBE},
    {0xBD7, 0xBD7},     {0xCC2, 0xCC2},     {0xCD5, 0xCD6},     {0xD3E, 0xD3E},     {0xD57, 0xD57},
    {0xDCF, 0xDCF},     {0xDDF, 0xDDF},     {0xF73, 0xF73},     {0xF75, 0xF75},     {0xF81, 0xF81},
    {0x102E, 0x102E},   {0x1161, 0x1175},   {0x11A8, 0x11C2},   {0x1B35, 0x1B35},   {0x11127, 0x11127},
    {0x1133E, 0x1133E}, {0x11357, 0x11357}, {0x114B0, 0x114B0}, {0x114BA, 0x114BA}, {0x114BD, 0x114BD},
    {0x115AF, 0x115AF},
};

enum {
    FIRST_MARK = 0x300, /* no character before this one joins another or changes when it stands alone */
    FIRST_MARK_LEAD = 0xCC,
    MAX_DECOMPOSED = 8, /* characters that one character decomposes into: at most 4 in any version of Unicode */
    SHORT_ROW = 16
};

static bool in_ranges(const range *ranges, size_t count, uint32_t c) {
    size_t low = 0;
    while (low < count) {
        size_t middle = (low + count) / 2;
        if (c > ranges[middle].last) low = middle + 1;
        else if (c < ranges[middle].first) count = middle;
        else return true;
    }
    return false;
}

static bool is_newer(uint32_t c) {
    return in_ranges(newer_marks, sizeof newer_marks / sizeof *newer_marks, c);
}

static int combining_class(int32_t c) {
    return is_newer((uint32_t)c) ? 0 : utf8proc_get_property(c)->combining_class;
}

/* Whether a character belongs to the segment before it. */
static bool joins(uint32_t c) {
    if (c < FIRST_MARK || is_newer(c)) return false;
    return combining_class((int32_t)c) != 0 ||
           in_ranges(joining_starters, sizeof joining_starters / sizeof *joining_starters, c);
}

typedef struct normalizer {
    const char *text;
    size_t size;
    char *out; /* NULL as long as nothing differs */
    size_t out_size, out_capacity;
    int32_t *points; /* the segment at hand, decomposed */
    int32_t *spare;  /* as large */
    size_t point_count, point_capacity;
} normalizer;

static bool grow_points(normalizer *n) {
    size_t capacity = n->point_capacity == 0 ? 64 : n->point_capacity * 2;
    if (capacity > SIZE_MAX / sizeof *n->points) return false;
    int32_t *points = realloc(n->points, capacity * sizeof *points);
    if (points == NULL) return false;
    n->points = points;
    int32_t *spare = realloc(n->spare, capacity * sizeof *spare);
    if (spare == NULL) return false;
    n->spare = spare;
    n->point_capacity = capacity;
    return true;
}

static bool put(normalizer *n, const void *data, size_t size) {
    if (n->out == NULL || n->out_capacity - n->out_size < size) {
        size_t capacity = n->out == NULL ? n->size + 64 : n->out_capacity;
        while (capacity - n->out_size < size) {
            if (capacity > SIZE_MAX / 2) return false;
            capacity *= 2;
        }
        char *out = realloc(n->out, capacity);
        if (out == NULL) return false;
        n->out = out;
        n->out_capacity = capacity;
    }
    memcpy(n->out + n->out_size, data, size);
    n->out_size += size;
    return true;
}

/* Decompose the characters of [from, to). */
static bool decompose(normalizer *n, size_t from, size_t to) {
    n->point_count = 0;
    while (from < to) {
        uint32_t c = 0;
        from += (size_t)hth_utf8_decode(n->text + from, to - from, &c);
        while (n->point_capacity - n->point_count < MAX_DECOMPOSED)
            if (!grow_points(n)) return false;
        int boundclass = 0;
        utf8proc_ssize_t count = utf8proc_decompose_char((int32_t)c, n->points + n->point_count, MAX_DECOMPOSED,
                                                         UTF8PROC_DECOMPOSE, &boundclass);
        if (count < 1 || count > MAX_DECOMPOSED) {
            n->points[n->point_count] = (int32_t)c;
            count = 1;
        }
        n->point_count += (size_t)count;
    }
    return true;
}

/* Order a row of marks by their classes, equal ones as they stand. */
static void sort_marks(int32_t *row, size_t count, int32_t *spare) {
    if (count <= SHORT_ROW) {
        for (size_t i = 1; i < count; i++) {
            int32_t c = row[i];
            int class = combining_class(c);
            size_t at = i;
            for (; at > 0 && combining_class(row[at - 1]) > class; at--) row[at] = row[at - 1];
            row[at] = c;
        }
        return;
    }
    size_t start[257] = {0};
    for (size_t i = 0; i < count; i++) start[combining_class(row[i]) + 1]++;
    for (size_t i = 1; i < 257; i++) start[i] += start[i - 1];
    for (size_t i = 0; i < count; i++) spare[start[combining_class(row[i])]++] = row[i];
    memcpy(row, spare, count * sizeof *row);
}

static void order_marks(normalizer *n) {
    size_t begin = 0;
    while (begin < n->point_count) {
        if (combining_class(n->points[begin]) == 0) {
            begin++;
            continue;
        }
        size_t end = begin + 1;
        while (end < n->point_count && combining_class(n->points[end]) != 0) end++;
        sort_marks(n->points + begin, end - begin, n->spare);
        begin = end;
    }
}

/* Compose what is in `points` and write it, if it differs from the text at [from, to) or something before did. */
static bool compose(normalizer *n, size_t from, size_t to) {
    utf8proc_ssize_t count =
        utf8proc_normalize_utf32(n->points, (utf8proc_ssize_t)n->point_count, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    size_t at = from;
    for (utf8proc_ssize_t i = 0; i < count; i++) {
        unsigned char bytes[4];
        size_t length = (size_t)utf8proc_encode_char(n->points[i], bytes);
        if (n->out == NULL) {
            if (to - at >= length && memcmp(n->text + at, bytes, length) == 0) {
                at += length;
                continue;
            }
            if (!put(n, n->text, at)) return false;
        }
        if (!put(n, bytes, length)) return false;
    }
    /* A segment that only lost characters at its end. */
    return n->out != NULL || at == to || put(n, n->text, at);
}

/* Whether a character is its own normal form as long as nothing joins it. Enough is known of the frequent ones. */
static bool stands_alone(uint32_t c) {
    return c < FIRST_MARK || (c >= 0x3400 && c <= 0x9FFF) || (c >= 0xAC00 && c <= 0xD7A3) || is_newer(c);
}

/* The end of the segment that begins at `from`; *plain when it cannot differ from its normal form. */
static size_t segment_end(const normalizer *n, size_t from, bool *plain) {
    uint32_t c;
    int length = hth_utf8_decode(n->text + from, n->size - from, &c);
    *plain = true;
    if (length == 0) return from + 1;
    size_t end = from + (size_t)length;
    *plain = stands_alone(c);
    while (end < n->size && (unsigned char)n->text[end] >= FIRST_MARK_LEAD) {
        length = hth_utf8_decode(n->text + end, n->size - end, &c);
        if (length == 0 || !joins(c)) break;
        *plain = false;
        end += (size_t)length;
    }
    return end;
}

hearth_status hth_normalize(const char *text, size_t size, char **out, size_t *out_size, hearth_error *err) {
    normalizer n = {.text = text, .size = size};
    bool ok = true;
    for (size_t from = 0, to; from < size && ok; from = to) {
        bool plain;
        to = segment_end(&n, from, &plain);
        if (!plain) {
            ok = decompose(&n, from, to);
            if (ok) order_marks(&n);
            if (ok) ok = compose(&n, from, to);
        } else if (n.out != NULL) {
            ok = put(&n, text + from, to - from);
        }
    }
    free(n.points);
    free(n.spare);
    if (!ok) {
        free(n.out);
        n.out = NULL;
    }
    *out = n.out;
    *out_size = n.out_size;
    return ok ? HEARTH_OK : hth_fail(err, HEARTH_NO_MEMORY, "no memory to normalise %zu bytes of text", size);
}
