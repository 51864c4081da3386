/* Metadata records: key, type, value. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/checked.h"
#include "gguf/internal.h"

static const struct {
    const char *name;
    uint8_t size; /* bytes of a value; 0 where it varies */
} types[HTH_GGUF_TYPE_COUNT] = {
    [HTH_GGUF_U8] = {"u8", 1},       [HTH_GGUF_I8] = {"i8", 1},     [HTH_GGUF_U16] = {"u16", 2},
    [HTH_GGUF_I16] = {"i16", 2},     [HTH_GGUF_U32] = {"u32", 4},   [HTH_GGUF_I32] = {"i32", 4},
    [HTH_GGUF_F32] = {"f32", 4},     [HTH_GGUF_BOOL] = {"bool", 1}, [HTH_GGUF_STRING] = {"string", 0},
    [HTH_GGUF_ARRAY] = {"array", 0}, [HTH_GGUF_U64] = {"u64", 8},   [HTH_GGUF_I64] = {"i64", 8},
    [HTH_GGUF_F64] = {"f64", 8},
};

const char *hth_gguf_type_name(hth_gguf_type type) {
    return (unsigned)type < HTH_GGUF_TYPE_COUNT ? types[type].name : "?";
}

uint64_t hth_gguf_type_size(hth_gguf_type type) {
    return types[type].size;
}

void hth_gguf_free_kvs(hth_gguf_kv *kvs, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) free((void *)(uintptr_t)kvs[i].offsets);
    free(kvs);
}

/* The strings of an array, one after the other, each with its own length; `budget` is what the file may still hold. */
static hearth_status read_array_strings(hth_reader *r, hth_gguf_kv *kv, uint64_t *budget) {
    uint64_t at = r->at;
    if (kv->count > *budget)
        return hth_reader_fail(r, HEARTH_UNSUPPORTED, at,
                               "key \"%.*s\": more strings in arrays than Hearth's limit of %" PRIu64, SHOWN(kv->key),
                               MAX_ARRAY_STRINGS);
    *budget -= kv->count;
    uint64_t *offsets = calloc((size_t)kv->count + 1, sizeof *offsets);
    if (!offsets)
        return hth_fail(r->err, HEARTH_NO_MEMORY, "no memory for the %" PRIu64 " strings of key \"%.*s\"", kv->count,
                        SHOWN(kv->key));
    kv->offsets = offsets;
    for (uint64_t i = 0; i < kv->count; i++) {
        hth_string ignored;
        offsets[i] = r->at - at;
        hearth_status status = hth_reader_string(r, "a string", MAX_STRING_BYTES, &ignored);
        if (status != HEARTH_OK)
            return hth_reader_fail(r, status, at + offsets[i],
                                   "key \"%.*s\": string %" PRIu64 " does not fit the file, or 2^30 bytes",
                                   SHOWN(kv->key), i);
    }
    offsets[kv->count] = r->at - at;
    kv->size = offsets[kv->count];
    return HEARTH_OK;
}

static hearth_status read_array(hth_reader *r, hth_gguf_kv *kv, uint64_t *budget) {
    uint64_t at = r->at;
    uint32_t element;
    HTH_TRY(hth_reader_u32(r, "an array's element type", &element));
    if (element == HTH_GGUF_ARRAY)
        return hth_reader_fail(r, HEARTH_BAD_FILE, at, "key \"%.*s\": arrays of arrays are not allowed",
                               SHOWN(kv->key));
    if (element >= HTH_GGUF_TYPE_COUNT)
        return hth_reader_fail(r, HEARTH_BAD_FILE, at, "key \"%.*s\": unknown element type %" PRIu32, SHOWN(kv->key),
                               element);
    kv->element = (hth_gguf_type)element;
    at = r->at;
    HTH_TRY(hth_reader_u64(r, "an array's count", &kv->count));
    /* An array of strings takes at least the eight bytes of each length. */
    uint64_t each = element == HTH_GGUF_STRING ? 8 : hth_gguf_type_size(kv->element);
    if (kv->count > hth_reader_left(r) / each)
        return hth_reader_fail(r, HEARTH_BAD_FILE, at,
                               "key \"%.*s\": an array of %" PRIu64 " elements is more than the %" PRIu64 " bytes left",
                               SHOWN(kv->key), kv->count, hth_reader_left(r));
    if (kv->count > MAX_ARRAY_COUNT)
        return hth_reader_fail(r, HEARTH_UNSUPPORTED, at,
                               "key \"%.*s\": an array of %" PRIu64 " elements is over Hearth's limit of %" PRIu64,
                               SHOWN(kv->key), kv->count, MAX_ARRAY_COUNT);
    kv->value = r->base + r->at;
    if (element == HTH_GGUF_STRING) return read_array_strings(r, kv, budget);
    kv->size = kv->count * each;
    r->at += kv->size;
    return HEARTH_OK;
}

static hearth_status read_value(hth_reader *r, hth_gguf_kv *kv, uint64_t *budget) {
    kv->count = 1;
    if (kv->type == HTH_GGUF_ARRAY) return read_array(r, kv, budget);
    if (kv->type == HTH_GGUF_STRING) {
        hth_string value;
        uint64_t at = r->at;
        hearth_status status = hth_reader_string(r, "a string", MAX_STRING_BYTES, &value);
        if (status != HEARTH_OK)
            return hth_reader_fail(r, status, at, "key \"%.*s\": its string does not fit the file, or 2^30 bytes",
                                   SHOWN(kv->key));
        kv->value = (const unsigned char *)value.data;
        kv->size = value.size;
        return HEARTH_OK;
    }
    kv->value = r->base + r->at;
    kv->size = hth_gguf_type_size(kv->type);
    if (kv->size > hth_reader_left(r))
        return hth_reader_fail(r, HEARTH_BAD_FILE, r->at, "key \"%.*s\": the file ends inside its value",
                               SHOWN(kv->key));
    r->at += kv->size;
    return HEARTH_OK;
}

static hearth_status read_kv(hth_reader *r, hth_gguf_kv *kv, uint64_t *budget) {
    uint64_t at = r->at;
    uint32_t type;
    HTH_TRY(hth_reader_string(r, "a metadata key", MAX_KEY_BYTES, &kv->key));
    if (kv->key.size == 0) return hth_reader_fail(r, HEARTH_BAD_FILE, at, "a metadata key is empty");
    at = r->at;
    HTH_TRY(hth_reader_u32(r, "a metadata type", &type));
    if (type >= HTH_GGUF_TYPE_COUNT)
        return hth_reader_fail(r, HEARTH_BAD_FILE, at, "key \"%.*s\": unknown type %" PRIu32, SHOWN(kv->key), type);
    kv->type = (hth_gguf_type)type;
    return read_value(r, kv, budget);
}

static hearth_status take_alignment(hth_reader *r, hth_gguf_part *part) {
    part->file.alignment = DEFAULT_ALIGNMENT;
    uint32_t i;
    const char key[] = "general.alignment";
    if (!hth_strmap_find(&part->keys, key, sizeof key - 1, &i)) return HEARTH_OK;
    const hth_gguf_kv *kv = &part->kvs[i];
    uint64_t at = (uint64_t)(kv->value - r->base);
    if (kv->type != HTH_GGUF_U32)
        return hth_reader_fail(r, HEARTH_BAD_FILE, at, "key \"%s\": type is %s, must be u32", key,
                               hth_gguf_type_name(kv->type));
    hth_reader value = *r;
    value.at = at;
    uint32_t alignment;
    HTH_TRY(hth_reader_u32(&value, key, &alignment));
    if (!hth_is_power_of_two(alignment) || alignment < MIN_ALIGNMENT || alignment > MAX_ALIGNMENT)
        return hth_reader_fail(r, HEARTH_BAD_FILE, at,
                               "key \"%s\": %" PRIu32 " is not a power of two from %d to %" PRIu32, key, alignment,
                               MIN_ALIGNMENT, MAX_ALIGNMENT);
    part->file.alignment = alignment;
    return HEARTH_OK;
}

hearth_status hth_gguf_read_metadata(hth_reader *r, uint64_t count, hth_gguf_part *part) {
    /* calloc: a record that was not reached has no offsets to free. */
    part->kvs = calloc(count ? (size_t)count : 1, sizeof *part->kvs);
    if (!part->kvs) return hth_fail(r->err, HEARTH_NO_MEMORY, "no memory for %" PRIu64 " metadata records", count);
    HTH_TRY(hth_strmap_init(&part->keys, (size_t)count, r->err));
    uint64_t budget = MAX_ARRAY_STRINGS;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = r->at;
        hth_gguf_kv *kv = &part->kvs[i];
        part->kv_count = i + 1;
        HTH_TRY(read_kv(r, kv, &budget));
        if (!hth_strmap_add(&part->keys, kv->key.data, kv->key.size, (uint32_t)i, NULL))
            return hth_reader_fail(r, HEARTH_BAD_FILE, at, "key \"%.*s\" occurs twice", SHOWN(kv->key));
    }
    return take_alignment(r, part);
}
