#include "models/params.h"

#include <inttypes.h>
#include <stdio.h>

/* Record a getter's error unless the key is absent; true when a value was read. */
static bool was_read(hth_reading *r, hearth_status status, const hearth_error *err) {
    if (status != HEARTH_OK && status != HEARTH_NOT_FOUND) hth_builder_fail(r->b, status, "%s", err->text);
    return status == HEARTH_OK;
}

static void missing(hth_reading *r, const char *key) {
    hth_builder_fail(r->b, HEARTH_BAD_FILE, "key \"%s\" is missing", key);
}

/* The scalar's only element, or the i-th of an array, as an integer in range. */
static bool element_in_range(hth_reading *r, const hth_gguf_kv *kv, uint64_t i, const char *key, int64_t min,
                             int64_t max, int64_t *out) {
    hearth_error err;
    int64_t value;
    hearth_status status = hth_gguf_int_at(kv, i, &value, &err);
    if (status != HEARTH_OK) {
        hth_builder_fail(r->b, status, "%s", err.text);
        return false;
    }
    if (value < min || value > max) {
        hth_builder_fail(r->b, HEARTH_BAD_FILE, "key \"%s\" is %" PRId64 ", must be %" PRId64 " to %" PRId64, key,
                         value, min, max);
        return false;
    }
    *out = value;
    return true;
}

bool hth_param_has(const hth_reading *r, const char *suffix) {
    char key[HTH_KEY_TEXT];
    snprintf(key, sizeof key, "%s.%s", r->architecture, suffix);
    return hth_gguf_find(r->g, key) != NULL;
}

/* ---- Scalars ----------------------------------------------------------------------------------------------------- */

static bool is_integer(hth_gguf_type type) {
    return type != HTH_GGUF_STRING && type != HTH_GGUF_ARRAY && type != HTH_GGUF_BOOL && type != HTH_GGUF_F32 &&
           type != HTH_GGUF_F64;
}

/* Read an integer if the key is there. */
static bool find_int(hth_reading *r, const char *key, int64_t min, int64_t max, int64_t *out) {
    const hth_gguf_kv *kv = hth_gguf_find(r->g, key);
    if (!kv) return false;
    if (!is_integer(kv->type)) {
        hth_builder_fail(r->b, HEARTH_BAD_FILE, "key \"%s\" holds %s where an integer is wanted", key,
                         hth_gguf_type_name(kv->type));
        return false;
    }
    return element_in_range(r, kv, 0, key, min, max, out);
}

int64_t hth_param_int(hth_reading *r, const char *suffix, int64_t min, int64_t max) {
    char key[HTH_KEY_TEXT];
    int64_t value = min;
    if (!find_int(r, hth_reading_key(r, suffix, key), min, max, &value)) missing(r, key);
    return value;
}

int64_t hth_param_int_or(hth_reading *r, const char *suffix, int64_t min, int64_t max, int64_t absent) {
    char key[HTH_KEY_TEXT];
    int64_t value = absent;
    find_int(r, hth_reading_key(r, suffix, key), min, max, &value);
    return value;
}

/* Read a float if the key is there. A NaN is in no range. */
static bool find_float(hth_reading *r, const char *key, double min, double max, double *out) {
    hearth_error err;
    double value;
    if (!was_read(r, hth_gguf_get_f64(r->g, key, &value, &err), &err)) return false;
    if (!(value >= min && value <= max)) {
        hth_builder_fail(r->b, HEARTH_BAD_FILE, "key \"%s\" is %g, must be %g to %g", key, value, min, max);
        return false;
    }
    *out = value;
    return true;
}

double hth_param_float(hth_reading *r, const char *suffix, double min, double max) {
    char key[HTH_KEY_TEXT];
    double value = min;
    if (!find_float(r, hth_reading_key(r, suffix, key), min, max, &value)) missing(r, key);
    return value;
}

double hth_param_float_or(hth_reading *r, const char *suffix, double min, double max, double absent) {
    char key[HTH_KEY_TEXT];
    double value = absent;
    find_float(r, hth_reading_key(r, suffix, key), min, max, &value);
    return value;
}

hth_string hth_param_string(hth_reading *r, const char *suffix) {
    char key[HTH_KEY_TEXT];
    hearth_error err;
    hth_string value = {NULL, 0};
    was_read(r, hth_gguf_get_string(r->g, hth_reading_key(r, suffix, key), &value, &err), &err);
    return value;
}

/* ---- One for each layer ------------------------------------------------------------------------------------------ */

/* Check that an array has an element for each layer. */
static bool fits_layers(hth_reading *r, const hth_gguf_kv *array, const char *key, int layers) {
    if (array->count == (uint64_t)layers) return true;
    hth_builder_fail(r->b, HEARTH_BAD_FILE, "key \"%s\" has %" PRIu64 " elements for %d layers", key, array->count,
                     layers);
    return false;
}

void hth_param_per_layer(hth_reading *r, const char *suffix, int layers, int64_t min, int64_t max, int64_t *out) {
    char key[HTH_KEY_TEXT];
    for (int i = 0; i < layers; i++) out[i] = min;
    const hth_gguf_kv *kv = hth_gguf_find(r->g, hth_reading_key(r, suffix, key));
    if (!kv) {
        missing(r, key);
        return;
    }
    int64_t value = min;
    if (kv->type != HTH_GGUF_ARRAY) {
        find_int(r, key, min, max, &value);
        for (int i = 0; i < layers; i++) out[i] = value;
    } else if (fits_layers(r, kv, key, layers)) {
        for (int i = 0; i < layers; i++)
            if (!element_in_range(r, kv, (uint64_t)i, key, min, max, &out[i])) return;
    }
}

void hth_param_window_pattern(hth_reading *r, const char *suffix, int layers, int64_t absent, bool *out) {
    char key[HTH_KEY_TEXT];
    int64_t period = absent;
    for (int i = 0; i < layers; i++) out[i] = false;
    const hth_gguf_kv *kv = hth_gguf_find(r->g, hth_reading_key(r, suffix, key));
    bool array = kv && kv->type == HTH_GGUF_ARRAY;
    if (kv && !array) find_int(r, key, 0, HTH_MAX_LAYERS, &period);
    if (array && !fits_layers(r, kv, key, layers)) return;
    for (int i = 0; i < layers; i++) {
        int64_t slides = period == 0 || i % period < period - 1;
        if (array && !element_in_range(r, kv, (uint64_t)i, key, 0, 1, &slides)) return;
        out[i] = slides != 0;
    }
}

void hth_param_refuse(hth_reading *r, const char *suffix, const char *what) {
    char key[HTH_KEY_TEXT];
    int64_t value = 0;
    find_int(r, hth_reading_key(r, suffix, key), 0, INT64_MAX, &value);
    if (value != 0)
        hth_builder_fail(r->b, HEARTH_UNSUPPORTED, "key \"%s\" is %" PRId64 ": %s is not supported for architecture %s",
                         key, value, what, r->architecture);
}
