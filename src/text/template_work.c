#include "text/template_work.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"

enum {
    CHUNK = 32 * 1024,
    LARGE = CHUNK / 4,     /* from here on a place has a chunk of its own, which can move */
    LOOK_EVERY = 16 * 1024 /* steps between two looks at the clock */
};

struct hth_work_chunk {
    hth_work_chunk *older, *newer;
    size_t capacity, used;
    _Alignas(16) unsigned char data[];
};

void hth_work_begin(hth_work *w, size_t max_bytes, uint64_t max_steps, uint64_t max_ms) {
    *w = (hth_work){.max_bytes = max_bytes, .max_steps = max_steps, .next_look = LOOK_EVERY};
    uint64_t ns;
    if (max_ms != 0 && hth_mul_u64(max_ms, 1000000, &ns)) w->deadline_ns = hth_now_ns() + ns;
}

void hth_work_end(hth_work *w) {
    for (hth_work_chunk *c = w->chunks, *older; c != NULL; c = older) {
        older = c->older;
        free(c);
    }
    w->chunks = w->open = NULL;
}

static bool reserve(hth_work *w, size_t bytes) {
    if (bytes > w->max_bytes || w->bytes > w->max_bytes - bytes)
        return hth_work_fail(w, HEARTH_OVER_BUDGET, "it needs more memory than the limit of %zu bytes", w->max_bytes);
    w->bytes += bytes;
    return true;
}

static hth_work_chunk *new_chunk(hth_work *w, size_t capacity) {
    if (capacity > SIZE_MAX / 2 || !reserve(w, sizeof(hth_work_chunk) + capacity)) {
        hth_work_fail(w, HEARTH_OVER_BUDGET, "it needs more memory than there can be");
        return NULL;
    }
    hth_work_chunk *c = malloc(sizeof *c + capacity);
    if (c == NULL) {
        hth_work_fail(w, HEARTH_NO_MEMORY, "no memory for %zu bytes", capacity);
        return NULL;
    }
    c->capacity = capacity;
    c->used = 0;
    c->newer = NULL;
    c->older = w->chunks;
    if (w->chunks != NULL) w->chunks->newer = c;
    w->chunks = c;
    return c;
}

void *hth_work_take(hth_work *w, size_t bytes) {
    if (w->status != HEARTH_OK) return NULL;
    uint64_t rounded;
    if (!hth_round_up_u64(bytes == 0 ? 1 : bytes, 16, &rounded)) rounded = SIZE_MAX / 2 + 1;
    if (rounded >= LARGE) {
        hth_work_chunk *own = new_chunk(w, rounded);
        if (own == NULL) return NULL;
        own->used = rounded;
        return own->data;
    }
    hth_work_chunk *c = w->open;
    if (c == NULL || c->capacity - c->used < rounded) {
        c = new_chunk(w, CHUNK);
        if (c == NULL) return NULL;
        w->open = c;
    }
    void *p = c->data + c->used;
    c->used += rounded;
    return p;
}

void *hth_work_take_array(hth_work *w, size_t count, size_t size) {
    uint64_t bytes;
    if (!hth_mul_u64(count, size, &bytes)) bytes = SIZE_MAX / 2 + 1;
    return hth_work_take(w, bytes);
}

/* A large place is the only one in its chunk, so the chunk can be reallocated. */
static void *grow_chunk(hth_work *w, hth_work_chunk *c, size_t bytes) {
    if (bytes > SIZE_MAX / 2 || !reserve(w, bytes - c->capacity)) {
        hth_work_fail(w, HEARTH_OVER_BUDGET, "it needs more memory than there can be");
        return NULL;
    }
    hth_work_chunk *moved = realloc(c, sizeof *c + bytes);
    if (moved == NULL) {
        hth_work_fail(w, HEARTH_NO_MEMORY, "no memory for %zu bytes", bytes);
        return NULL;
    }
    moved->capacity = moved->used = bytes;
    if (moved->older != NULL) moved->older->newer = moved;
    if (moved->newer != NULL) moved->newer->older = moved;
    else w->chunks = moved;
    return moved->data;
}

void *hth_work_grow(hth_work *w, void *p, size_t old, size_t bytes) {
    if (w->status != HEARTH_OK) return NULL;
    uint64_t rounded = 0;
    if (p != NULL && hth_round_up_u64(old, 16, &rounded) && rounded >= LARGE) {
        hth_work_chunk *c = (hth_work_chunk *)(void *)((unsigned char *)p - offsetof(hth_work_chunk, data));
        return bytes <= c->capacity ? p : grow_chunk(w, c, bytes);
    }
    void *larger = hth_work_take(w, bytes);
    if (larger != NULL && p != NULL) memcpy(larger, p, old);
    return larger;
}

void *hth_work_larger(hth_work *w, void *items, uint32_t *capacity, size_t size) {
    if (*capacity > UINT32_MAX / 2) {
        hth_work_fail(w, HEARTH_OVER_BUDGET, "it makes a collection of more than %u items", UINT32_MAX / 2);
        return items;
    }
    uint32_t larger = *capacity == 0 ? 8 : *capacity * 2;
    void *p = hth_work_grow(w, items, *capacity * size, larger * size);
    if (p == NULL) return items;
    *capacity = larger;
    return p;
}

bool hth_work_charge(hth_work *w, uint64_t steps) {
    if (w->status != HEARTH_OK) return false;
    if (steps > w->max_steps - w->steps)
        return hth_work_fail(w, HEARTH_OVER_BUDGET, "it takes more than the limit of %llu steps",
                             (unsigned long long)w->max_steps);
    w->steps += steps;
    if (w->steps < w->next_look) return true;
    w->next_look = w->steps + LOOK_EVERY;
    if (w->deadline_ns != 0 && hth_now_ns() > w->deadline_ns)
        return hth_work_fail(w, HEARTH_OVER_BUDGET, "it takes longer than the limit of time");
    return true;
}

bool hth_work_fail(hth_work *w, hearth_status status, const char *format, ...) {
    if (w->status != HEARTH_OK) return false;
    va_list args;
    va_start(args, format);
    vsnprintf(w->text, sizeof w->text, format, args);
    va_end(args);
    w->status = status;
    return false;
}

hearth_status hth_work_report(const hth_work *w, hearth_error *err) {
    if (w->status == HEARTH_OK) return HEARTH_OK;
    return hth_fail(err, w->status, "%s", w->text);
}
