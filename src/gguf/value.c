/* Metadata values as the types that callers want. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "gguf/internal.h"

/* An integer of any type: the value as two's complement, and whether it is negative. */
typedef struct integer {
    uint64_t bits;
    bool negative;
} integer;

static hth_gguf_type element_type(const hth_gguf_kv *kv) {
    return kv->type == HTH_GGUF_ARRAY ? kv->element : kv->type;
}

static const unsigned char *element_at(const hth_gguf_kv *kv, uint64_t i) {
    assert(i < kv->count);
    return kv->value + i * hth_gguf_type_size(element_type(kv));
}

/* False when the element is not an integer. Values lie at any alignment, so they are copied out. */
static bool load_integer(const hth_gguf_kv *kv, uint64_t i, integer *out) {
    hth_gguf_type type = element_type(kv);
    if (type == HTH_GGUF_STRING || type == HTH_GGUF_F32 || type == HTH_GGUF_F64) return false;
    size_t size = (size_t)hth_gguf_type_size(type);
    uint64_t bits = 0;
    memcpy(&bits, element_at(kv, i), size);
    bool is_signed = type == HTH_GGUF_I8 || type == HTH_GGUF_I16 || type == HTH_GGUF_I32 || type == HTH_GGUF_I64;
    uint64_t sign = UINT64_C(1) << (8 * size - 1);
    out->negative = is_signed && (bits & sign) != 0;
    out->bits = out->negative ? bits | (0 - sign) : bits;
    if (type == HTH_GGUF_BOOL) out->bits = bits != 0; /* any byte but 0 is true */
    return true;
}

static bool load_float(const hth_gguf_kv *kv, uint64_t i, double *out) {
    hth_gguf_type type = element_type(kv);
    integer v;
    if (type == HTH_GGUF_F32) {
        float f;
        memcpy(&f, element_at(kv, i), sizeof f);
        *out = f;
    } else if (type == HTH_GGUF_F64) {
        memcpy(out, element_at(kv, i), sizeof *out);
    } else if (type != HTH_GGUF_BOOL && load_integer(kv, i, &v)) {
        *out = v.negative ? (double)(int64_t)v.bits : (double)v.bits;
    } else {
        return false;
    }
    return true;
}

/* "array of string", "u32": what a record holds, for an error text. */
static hearth_status wrong_type(const hth_gguf_kv *kv, const char *wanted, hearth_error *err) {
    bool array = kv->type == HTH_GGUF_ARRAY;
    return hth_fail(err, HEARTH_BAD_FILE, "key \"%.*s\" holds %s%s where %s is wanted", SHOWN(kv->key),
                    array ? "an array of " : "", hth_gguf_type_name(element_type(kv)), wanted);
}

hearth_status hth_gguf_kv_u64(const hth_gguf_kv *kv, const hth_gguf_file *file, uint64_t min, uint64_t max,
                              uint64_t *out, hearth_error *err) {
    integer v;
    if (kv->type == HTH_GGUF_ARRAY || kv->type == HTH_GGUF_BOOL || !load_integer(kv, 0, &v))
        return wrong_type(kv, "an integer", err);
    if (!v.negative && v.bits >= min && v.bits <= max) {
        *out = v.bits;
        return HEARTH_OK;
    }
    const char *sign = v.negative ? "-" : "";
    uint64_t magnitude = v.negative ? 0 - v.bits : v.bits;
    return hth_fail(err, HEARTH_BAD_FILE,
                    "key \"%.*s\" is %s%" PRIu64 ", outside %" PRIu64 " to %" PRIu64 " (offset %" PRIu64 " of %s)",
                    SHOWN(kv->key), sign, magnitude, min, max, (uint64_t)(kv->value - file->base), file->path);
}

hearth_status hth_gguf_get_u64(const hth_gguf *g, const char *key, uint64_t min, uint64_t max, uint64_t *out,
                               hearth_error *err) {
    const hth_gguf_kv *kv = hth_gguf_find(g, key);
    return kv ? hth_gguf_kv_u64(kv, &g->files[0], min, max, out, err) : HEARTH_NOT_FOUND;
}

hearth_status hth_gguf_get_f64(const hth_gguf *g, const char *key, double *out, hearth_error *err) {
    const hth_gguf_kv *kv = hth_gguf_find(g, key);
    if (!kv) return HEARTH_NOT_FOUND;
    if (kv->type == HTH_GGUF_ARRAY || !load_float(kv, 0, out)) return wrong_type(kv, "a number", err);
    return HEARTH_OK;
}

hearth_status hth_gguf_get_bool(const hth_gguf *g, const char *key, bool *out, hearth_error *err) {
    const hth_gguf_kv *kv = hth_gguf_find(g, key);
    if (!kv) return HEARTH_NOT_FOUND;
    integer v;
    if (kv->type == HTH_GGUF_ARRAY || !load_integer(kv, 0, &v) || v.bits > 1)
        return wrong_type(kv, "a bool, or an integer 0 or 1,", err);
    *out = v.bits == 1;
    return HEARTH_OK;
}

hearth_status hth_gguf_get_string(const hth_gguf *g, const char *key, hth_string *out, hearth_error *err) {
    const hth_gguf_kv *kv = hth_gguf_find(g, key);
    if (!kv) return HEARTH_NOT_FOUND;
    if (kv->type != HTH_GGUF_STRING) return wrong_type(kv, "a string", err);
    return hth_gguf_string_at(kv, 0, out, err);
}

hearth_status hth_gguf_int_at(const hth_gguf_kv *kv, uint64_t i, int64_t *out, hearth_error *err) {
    assert(i < kv->count);
    integer v;
    if (!load_integer(kv, i, &v)) return wrong_type(kv, "an integer", err);
    if (!v.negative && v.bits > INT64_MAX)
        return hth_fail(err, HEARTH_BAD_FILE, "key \"%.*s\", element %" PRIu64 ": %" PRIu64 " is over 2^63-1",
                        SHOWN(kv->key), i, v.bits);
    *out = (int64_t)v.bits;
    return HEARTH_OK;
}

hearth_status hth_gguf_uint_at(const hth_gguf_kv *kv, uint64_t i, uint64_t *out, hearth_error *err) {
    assert(i < kv->count);
    integer v;
    if (!load_integer(kv, i, &v)) return wrong_type(kv, "an integer", err);
    if (v.negative)
        return hth_fail(err, HEARTH_BAD_FILE, "key \"%.*s\", element %" PRIu64 ": %" PRId64 " is negative",
                        SHOWN(kv->key), i, (int64_t)v.bits);
    *out = v.bits;
    return HEARTH_OK;
}

hearth_status hth_gguf_float_at(const hth_gguf_kv *kv, uint64_t i, double *out, hearth_error *err) {
    assert(i < kv->count);
    if (!load_float(kv, i, out)) return wrong_type(kv, "a number", err);
    return HEARTH_OK;
}

hearth_status hth_gguf_string_at(const hth_gguf_kv *kv, uint64_t i, hth_string *out, hearth_error *err) {
    assert(i < kv->count);
    if (element_type(kv) != HTH_GGUF_STRING) return wrong_type(kv, "a string", err);
    if (kv->type == HTH_GGUF_STRING) {
        *out = (hth_string){(const char *)kv->value, (size_t)kv->size};
        return HEARTH_OK;
    }
    uint64_t start = kv->offsets[i] + 8; /* the length field comes first */
    *out = (hth_string){(const char *)kv->value + start, (size_t)(kv->offsets[i + 1] - start)};
    return HEARTH_OK;
}
