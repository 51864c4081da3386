#include "models/reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "models/params.h"

/* ---- What was asked for ------------------------------------------------------------------------------------------ */

static bool grow(hth_reading *r, void **array, int count, int *capacity, size_t element) {
    if (count < *capacity) return true;
    int wanted = *capacity ? 2 * *capacity : 64;
    void *grown = realloc(*array, (size_t)wanted * element);
    if (!grown) {
        hth_builder_fail(r->b, HEARTH_NO_MEMORY, "no memory to read a model of %d tensors", wanted);
        return false;
    }
    *array = grown;
    *capacity = wanted;
    return true;
}

const char *hth_reading_key(hth_reading *r, const char *suffix, char key[HTH_KEY_TEXT]) {
    snprintf(key, HTH_KEY_TEXT, "%s.%s", r->architecture, suffix);
    void *keys = (void *)r->keys;
    if (grow(r, &keys, r->n_keys, &r->key_capacity, sizeof *r->keys)) {
        r->keys = keys;
        r->keys[r->n_keys++] = suffix;
    }
    return key;
}

const hth_gguf_tensor *hth_reading_tensor(hth_reading *r, const char *name) {
    const hth_gguf_tensor *t = hth_gguf_find_tensor(r->g, name);
    void *tensors = (void *)r->tensors;
    if (!t || !grow(r, &tensors, r->n_tensors, &r->tensor_capacity, sizeof *r->tensors)) return NULL;
    r->tensors = tensors;
    r->tensors[r->n_tensors++] = t;
    return t;
}

/* ---- What nobody asked for --------------------------------------------------------------------------------------- */

static bool starts_with(hth_string s, const char *prefix) {
    size_t n = strlen(prefix);
    return s.size >= n && memcmp(s.data, prefix, n) == 0;
}

static bool ends_with(hth_string s, const char *suffix) {
    size_t n = strlen(suffix);
    return s.size >= n && memcmp(s.data + s.size - n, suffix, n) == 0;
}

/* Keys that describe and do not change what is computed, whatever their value. */
static bool is_description(hth_string suffix) {
    static const char *const descriptions[] = {
        "vocab_size",                           /* the embedding's rows count */
        "tensor_data_layout",                   /* how the file's writer saw the q and k rows */
        "rope.scaling.finetuned",               /* training history */
        "rope.scaling.original_context_length", /* read where a scaling uses it */
    };
    for (size_t i = 0; i < sizeof descriptions / sizeof *descriptions; i++)
        if (hth_string_equals(suffix, descriptions[i])) return true;
    return starts_with(suffix, "vision.") || starts_with(suffix, "mm."); /* of an image encoder in the same file */
}

/* Whether this value of a key that nobody asked for means off. Zero does, but for switches that are on by default, and
 * one does where the value is a factor. */
static bool is_off(hth_string suffix, double value) {
    static const char *const factors[] = {"rope.scaling.factor", "rope.scale_linear", "rope.scaling.attn_factor",
                                          "rope.scaling.yarn_ext_factor", "rope.scaling.yarn_attn_factor"};
    if (hth_string_equals(suffix, "attention.causal")) return value == 1;
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        if (value == 1 && hth_string_equals(suffix, factors[i])) return true;
    return value == 0;
}

/* Whether a key nobody asked for says that its feature is not used. */
static bool is_neutral(const hth_gguf_kv *kv, hth_string suffix) {
    hth_gguf_type type = kv->type == HTH_GGUF_ARRAY ? kv->element : kv->type;
    if (type == HTH_GGUF_STRING)
        return kv->type == HTH_GGUF_STRING &&
               hth_string_equals((hth_string){(const char *)kv->value, kv->size}, "none");
    for (uint64_t i = 0; i < kv->count; i++) {
        double value;
        if (hth_gguf_float_at(kv, i, &value, NULL) != HEARTH_OK) {
            int64_t whole;
            if (hth_gguf_int_at(kv, i, &whole, NULL) != HEARTH_OK) return false;
            value = (double)whole;
        }
        if (!is_off(suffix, value)) return false;
    }
    return true;
}

static bool was_key_read(const hth_reading *r, hth_string suffix) {
    for (int i = 0; i < r->n_keys; i++)
        if (hth_string_equals(suffix, r->keys[i])) return true;
    return false;
}

static void refuse_unread_keys(hth_reading *r) {
    size_t prefix = strlen(r->architecture) + 1;
    for (uint64_t i = 0; i < hth_gguf_kv_count(r->g) && !hth_builder_failed(r->b); i++) {
        const hth_gguf_kv *kv = hth_gguf_kv_at(r->g, i);
        if (kv->key.size <= prefix || !starts_with(kv->key, r->architecture) || kv->key.data[prefix - 1] != '.')
            continue;
        hth_string suffix = {kv->key.data + prefix, kv->key.size - prefix};
        if (was_key_read(r, suffix) || is_description(suffix) || is_neutral(kv, suffix)) continue;
        hth_builder_fail(r->b, HEARTH_UNSUPPORTED,
                         "key \"%.*s\" is not known for architecture %s, and without it the answers could be wrong",
                         kv->key.size < 100 ? (int)kv->key.size : 100, kv->key.data, r->architecture);
    }
}

/* Tensors that change nothing: image and audio encoders, tables that are computed here, scales of quantized
 * activations. */
static bool is_extra(hth_string name) {
    return starts_with(name, "v.") || starts_with(name, "mm.") || starts_with(name, "a.") ||
           ends_with(name, ".attn_rot_embd.weight") || ends_with(name, ".attn_rot_embd") ||
           ends_with(name, ".input_scale");
}

static int by_address(const void *a, const void *b) {
    uintptr_t x = (uintptr_t) * (const hth_gguf_tensor *const *)a, y = (uintptr_t) * (const hth_gguf_tensor *const *)b;
    return (x > y) - (x < y);
}

static void refuse_unread_tensors(hth_reading *r) {
    if (r->n_tensors > 0) qsort((void *)r->tensors, (size_t)r->n_tensors, sizeof *r->tensors, by_address);
    for (uint64_t i = 0; i < hth_gguf_tensor_count(r->g) && !hth_builder_failed(r->b); i++) {
        const hth_gguf_tensor *t = hth_gguf_tensor_at(r->g, i);
        if (r->n_tensors > 0 &&
            bsearch(&t, (const void *)r->tensors, (size_t)r->n_tensors, sizeof *r->tensors, by_address))
            continue;
        if (is_extra(t->name)) continue;
        hth_builder_fail(r->b, HEARTH_UNSUPPORTED,
                         "tensor %.*s is not known for architecture %s, and without it the answers could be wrong",
                         (int)t->name.size, t->name.data, r->architecture);
    }
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

hearth_status hth_read_model(const hth_gguf *g, const char *architecture, hth_forward_fn *forward, hth_program **out,
                             hearth_error *err) {
    *out = NULL;
    hth_reading r = {.g = g, .architecture = architecture};
    HTH_TRY(hth_builder_create(architecture, &r.b, err));
    hth_tensor_id logits = forward(&r);
    refuse_unread_keys(&r);
    const uint64_t start = hth_now_ns();
    refuse_unread_tensors(&r);
    r.bind_ns += hth_now_ns() - start;
    free((void *)r.keys);
    free((void *)r.tensors);
    HTH_TRY(hth_builder_finish(&r.b, logits, out, err));
    (*out)->bind_ns = r.bind_ns;
    return HEARTH_OK;
}
