/* Opening good files, reading their values, and the faults of files as such: split sets, folders, permissions. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "hearth/file.h"
#include "support/gguf_image.h"
#include "support/gguf_walk.h"
#include "support/temp_folder.h"

static hth_gguf *open_sample(gguf_image *im) {
    hth_gguf *g;
    hearth_error err;
    *im = (gguf_image){0};
    gguf_image_sample(im);
    if (hth_gguf_open_memory(im->data, im->size, &g, &err) != HEARTH_OK) fail_msg("%s", err.text);
    return g;
}

static void the_directory(void **state) {
    (void)state;
    gguf_image im;
    hth_gguf *g = open_sample(&im);
    assert_int_equal(hth_gguf_kv_count(g), GGUF_SAMPLE_KVS);
    assert_int_equal(hth_gguf_tensor_count(g), GGUF_SAMPLE_TENSORS);
    assert_int_equal(hth_gguf_file_count(g), 1);
    const hth_gguf_file *file = hth_gguf_file_at(g, 0);
    assert_int_equal(file->version, 3);
    assert_int_equal(file->alignment, 64);
    assert_int_equal(file->size, im.size);
    assert_int_equal(file->data_offset % 64, 0);
    const hth_gguf_tensor *t = hth_gguf_find_tensor(g, "tesseract");
    assert_ptr_equal(t, hth_gguf_tensor_at(g, 4));
    assert_int_equal(t->n_dims, 4);
    assert_int_equal(t->dims[2], 3);
    assert_int_equal(t->bytes, 24);
    assert_int_equal(t->dtype, HTH_BF16);
    assert_int_equal(t->offset, file->data_offset + 704);
    t = hth_gguf_find_tensor(g, "scalar");
    assert_int_equal(t->n_dims, 0);
    assert_int_equal(t->bytes, 4);
    t = hth_gguf_find_tensor(g, "cube");
    assert_int_equal(t->bytes, 420);
    assert_null(hth_gguf_find_tensor(g, "tesserac"));
    assert_null(hth_gguf_find_tensor(g, ""));
    assert_null(hth_gguf_find(g, "sample"));
    gguf_walk(g);
    hth_gguf_close(&g);
    assert_null(g);
    hth_gguf_close(&g);
    gguf_image_free(&im);
}

static void integers(void **state) {
    (void)state;
    gguf_image im;
    hearth_error err;
    hth_gguf *g = open_sample(&im);
    uint64_t v = 99;
    static const struct {
        const char *key;
        uint64_t value;
    } good[] = {{"sample.u8", 200}, {"sample.u16", 1}, {"sample.u32", 4000000000}, {"sample.u64", UINT64_MAX}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(hth_gguf_get_u64(g, good[i].key, 0, UINT64_MAX, &v, &err), HEARTH_OK);
        assert_true(v == good[i].value);
    }
    static const char *const negative[] = {"sample.i8", "sample.i16", "sample.i32", "sample.i64"};
    v = 99;
    for (size_t i = 0; i < sizeof negative / sizeof *negative; i++) {
        assert_int_equal(hth_gguf_get_u64(g, negative[i], 0, 10, &v, &err), HEARTH_BAD_FILE);
        assert_non_null(strstr(err.text, negative[i]));
        assert_non_null(strstr(err.text, "is -3, outside 0 to 10"));
        int64_t integer;
        assert_int_equal(hth_gguf_int_at(hth_gguf_find(g, negative[i]), 0, &integer, &err), HEARTH_OK);
        assert_int_equal(integer, -3);
        uint64_t natural;
        assert_int_equal(hth_gguf_uint_at(hth_gguf_find(g, negative[i]), 0, &natural, &err), HEARTH_BAD_FILE);
        double real;
        assert_int_equal(hth_gguf_get_f64(g, negative[i], &real, &err), HEARTH_OK);
        assert_true(real == -3);
    }
    assert_int_equal(hth_gguf_get_u64(g, "sample.u8", 0, 199, &v, &err), HEARTH_BAD_FILE);
    assert_int_equal(hth_gguf_get_u64(g, "sample.u8", 201, 300, &v, &err), HEARTH_BAD_FILE);
    assert_int_equal(hth_gguf_get_u64(g, "sample.absent", 0, 1, &v, &err), HEARTH_NOT_FOUND);
    static const char *const others[] = {"sample.f32", "sample.bool", "sample.u16s", "general.architecture"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(hth_gguf_get_u64(g, others[i], 0, UINT64_MAX, &v, &err), HEARTH_BAD_FILE);
    assert_int_equal(v, 99);
    hth_gguf_close(&g);
    gguf_image_free(&im);
}

static void other_scalars(void **state) {
    (void)state;
    gguf_image im;
    hearth_error err;
    hth_gguf *g = open_sample(&im);
    double real = 7;
    assert_int_equal(hth_gguf_get_f64(g, "sample.f32", &real, &err), HEARTH_OK);
    assert_true(real == 0.5);
    assert_int_equal(hth_gguf_get_f64(g, "sample.f64", &real, &err), HEARTH_OK);
    assert_true(real == 0.25);
    assert_int_equal(hth_gguf_get_f64(g, "sample.u64", &real, &err), HEARTH_OK);
    assert_true(real == 18446744073709551616.0);
    assert_int_equal(hth_gguf_get_f64(g, "sample.bool", &real, &err), HEARTH_BAD_FILE);
    assert_non_null(strstr(err.text, "key \"sample.bool\" holds bool where a number is wanted"));
    assert_int_equal(hth_gguf_get_f64(g, "sample.absent", &real, &err), HEARTH_NOT_FOUND);
    bool truth = false;
    assert_int_equal(hth_gguf_get_bool(g, "sample.bool", &truth, &err), HEARTH_OK);
    assert_true(truth);
    assert_int_equal(hth_gguf_get_bool(g, "sample.u16", &truth, &err), HEARTH_OK);
    assert_int_equal(hth_gguf_get_bool(g, "sample.u8", &truth, &err), HEARTH_BAD_FILE);
    assert_int_equal(hth_gguf_get_bool(g, "sample.i8", &truth, &err), HEARTH_BAD_FILE);
    hth_string string;
    assert_int_equal(hth_gguf_get_string(g, "general.architecture", &string, &err), HEARTH_OK);
    assert_true(hth_string_equals(string, "sample"));
    assert_false(hth_string_equals(string, "sampl"));
    assert_false(hth_string_equals(string, "sample2"));
    assert_int_equal(hth_gguf_get_string(g, "sample.strings", &string, &err), HEARTH_BAD_FILE);
    assert_int_equal(hth_gguf_get_string(g, "sample.u8", &string, &err), HEARTH_BAD_FILE);
    hth_gguf_close(&g);
    gguf_image_free(&im);
}

static void arrays(void **state) {
    (void)state;
    gguf_image im;
    hearth_error err;
    hth_gguf *g = open_sample(&im);
    const hth_gguf_kv *kv = hth_gguf_find(g, "sample.u16s");
    int64_t integer;
    assert_int_equal(kv->count, 3);
    assert_int_equal(hth_gguf_int_at(kv, 2, &integer, &err), HEARTH_OK);
    assert_int_equal(integer, 65535);
    kv = hth_gguf_find(g, "sample.i32s");
    assert_int_equal(hth_gguf_int_at(kv, 0, &integer, &err), HEARTH_OK);
    assert_int_equal(integer, -1);
    assert_int_equal(hth_gguf_int_at(hth_gguf_find(g, "sample.bools"), 0, &integer, &err), HEARTH_OK);
    assert_int_equal(integer, 1);
    assert_int_equal(hth_gguf_int_at(hth_gguf_find(g, "sample.u64"), 0, &integer, &err), HEARTH_BAD_FILE);
    kv = hth_gguf_find(g, "sample.strings");
    hth_string string;
    assert_int_equal(kv->count, 3);
    assert_int_equal(hth_gguf_string_at(kv, 1, &string, &err), HEARTH_OK);
    assert_int_equal(string.size, 0);
    assert_int_equal(hth_gguf_string_at(kv, 2, &string, &err), HEARTH_OK);
    assert_int_equal(string.size, 2);
    assert_memory_equal(string.data, "\xff\xfe", 2);
    assert_int_equal(hth_gguf_int_at(kv, 0, &integer, &err), HEARTH_BAD_FILE);
    assert_int_equal(hth_gguf_find(g, "sample.none")->count, 0);
    hth_gguf_close(&g);
    gguf_image_free(&im);
}

static hearth_status open_path(const char *path, hearth_error *err) {
    hth_gguf *g;
    *err = (hearth_error){HEARTH_OK, ""};
    hearth_status status = hth_gguf_open(path, &g, err);
    assert_int_equal(status == HEARTH_OK, g != NULL);
    if (g) gguf_walk(g);
    hth_gguf_close(&g);
    return status;
}

static void refused(const char *path, hearth_status want, const char *words) {
    hearth_error err;
    hearth_status status = open_path(path, &err);
    if (status != want || !strstr(err.text, words))
        fail_msg("%s: %s \"%s\", want %s, \"%s\"", path, hearth_status_name(status), err.text, hearth_status_name(want),
                 words);
}

static void not_files(void **state) {
    (void)state;
    refused(temp_path("absent.gguf"), HEARTH_NOT_FOUND, "absent.gguf");
    refused(temp_path("absent/model.gguf"), HEARTH_NOT_FOUND, "model.gguf");
    refused("/tmp", HEARTH_IO, "is a directory");
    refused("/dev/null", HEARTH_IO, "not a regular file");
    refused("", HEARTH_NOT_FOUND, "cannot open");
    assert_int_equal(mkfifo(temp_path("pipe"), 0600), 0);
    refused(temp_path("pipe"), HEARTH_IO, "not a regular file");
    gguf_image im = {0};
    gguf_image_write(&im, temp_path("empty.gguf"));
    refused(temp_path("empty.gguf"), HEARTH_BAD_FILE, "is empty");
    refused(temp_path("empty.gguf/x"), HEARTH_NOT_FOUND, "cannot open");
    assert_int_equal(symlink("loop", temp_path("loop")), 0);
    refused(temp_path("loop"), HEARTH_IO, "cannot open");
}

static void no_permission(void **state) {
    (void)state;
    gguf_image im = {0};
    gguf_image_sample(&im);
    gguf_image_write(&im, temp_path("secret.gguf"));
    gguf_image_free(&im);
    assert_int_equal(chmod(temp_path("secret.gguf"), 0), 0);
    bool root = geteuid() == 0;
    if (root) {
        assert_int_equal(chmod(temp_path("."), 0755), 0);
        assert_int_equal(seteuid(65534), 0);
    }
    hearth_error err;
    hearth_status status = open_path(temp_path("secret.gguf"), &err);
    if (root) assert_int_equal(seteuid(0), 0);
    assert_int_equal(status, HEARTH_IO);
    assert_non_null(strstr(err.text, strerror(EACCES)));
}

/* What a shard says of itself; NULL names: absent. */
typedef struct shard {
    const char *file;
    int no, count, total; /* -1: the key is absent */
    uint32_t key_type;    /* of split.no and split.count */
    const char *tensors[3];
} shard;

static void put_split_key(gguf_image *im, const char *key, int value, uint32_t type) {
    static const size_t sizes[] = {[HTH_GGUF_U16] = 2, [HTH_GGUF_I32] = 4, [HTH_GGUF_U32] = 4, [HTH_GGUF_U64] = 8};
    if (value < 0) return;
    gguf_put_key(im, key, type);
    gguf_put(im, &(int64_t){value}, sizes[type]);
}

static void write_shard(const shard *s) {
    gguf_image im = {0};
    int tensors = 0, kvs = (s->no >= 0) + (s->count >= 0) + (s->total >= 0) + (s->no == 0);
    while (tensors < 3 && s->tensors[tensors]) tensors++;
    gguf_put_header(&im, 3, (uint64_t)tensors, (uint64_t)kvs);
    if (s->no == 0) gguf_put_kv_string(&im, "general.architecture", "sample");
    put_split_key(&im, "split.no", s->no, s->key_type);
    put_split_key(&im, "split.count", s->count, s->key_type);
    put_split_key(&im, "split.tensors.count", s->total, HTH_GGUF_I32);
    for (int t = 0; t < tensors; t++)
        gguf_put_tensor(&im, s->tensors[t], 1, (const uint64_t[]){8}, HTH_F32, 32 * (uint64_t)t);
    gguf_put_padding(&im, 32);
    for (int i = 0; i < 8 * tensors; i++) gguf_put(&im, &(float){(float)(100 * s->no + i)}, 4);
    gguf_image_write(&im, temp_path(s->file));
    gguf_image_free(&im);
}

static const shard good_set[3] = {
    {"m-00001-of-00003.gguf", 0, 3, 3, HTH_GGUF_U16, {NULL}},
    {"m-00002-of-00003.gguf", 1, 3, 3, HTH_GGUF_U16, {"a", "b"}},
    {"m-00003-of-00003.gguf", 2, 3, 3, HTH_GGUF_U16, {"c"}},
};

static void write_set(const shard *set) {
    for (int i = 0; i < 3; i++) write_shard(&set[i]);
}

static void split_sets(void **state) {
    (void)state;
    static const uint32_t types[] = {HTH_GGUF_U16, HTH_GGUF_I32, HTH_GGUF_U32, HTH_GGUF_U64};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        shard set[3];
        memcpy(set, good_set, sizeof set);
        for (int s = 0; s < 3; s++) set[s].key_type = types[i];
        write_set(set);
        hth_gguf *g;
        hearth_error err;
        if (hth_gguf_open(temp_path(set[0].file), &g, &err) != HEARTH_OK) fail_msg("%s", err.text);
        assert_int_equal(hth_gguf_file_count(g), 3);
        assert_int_equal(hth_gguf_tensor_count(g), 3);
        assert_int_equal(hth_gguf_kv_count(g), 4);
        const hth_gguf_tensor *c = hth_gguf_find_tensor(g, "c");
        assert_int_equal(c->file, 2);
        float first;
        memcpy(&first, c->data, sizeof first);
        assert_true(first == 200);
        assert_non_null(strstr(hth_gguf_file_at(g, 2)->path, "m-00003-of-00003.gguf"));
        gguf_walk(g);
        hth_gguf_close(&g);
    }
}

/* The good set with one shard replaced. */
static void refused_set(shard bad, hearth_status want, const char *words) {
    write_set(good_set);
    write_shard(&bad);
    refused(temp_path("m-00001-of-00003.gguf"), want, words);
}

static void broken_split_sets(void **state) {
    (void)state;
    const char *first = good_set[0].file, *second = good_set[1].file, *third = good_set[2].file;
    refused_set((shard){second, 2, 3, 3, HTH_GGUF_U16, {"a", "b"}}, HEARTH_BAD_FILE, "split.no\" is 2 where");
    refused_set((shard){second, 1, 4, 3, HTH_GGUF_U16, {"a", "b"}}, HEARTH_BAD_FILE, "split.count\" is 4 where");
    refused_set((shard){second, -1, 3, 3, HTH_GGUF_U16, {"a", "b"}}, HEARTH_BAD_FILE, "no shard of the set");
    refused_set((shard){second, 1, -1, 3, HTH_GGUF_U16, {"a", "b"}}, HEARTH_BAD_FILE, "no shard of the set");
    refused_set((shard){third, 2, 3, 3, HTH_GGUF_U16, {"b"}}, HEARTH_BAD_FILE, "tensor \"b\" occurs twice");
    refused_set((shard){third, 2, 3, 3, HTH_GGUF_U16, {NULL}}, HEARTH_BAD_FILE, "hold 2 tensors");
    refused_set((shard){third, 2, 3, 3, HTH_GGUF_U16, {"c", "d"}}, HEARTH_BAD_FILE, "hold 4 tensors");
    refused_set((shard){first, 0, 3, -1, HTH_GGUF_U16, {NULL}}, HEARTH_BAD_FILE, "split.tensors.count");
    refused_set((shard){first, 0, 4, 3, HTH_GGUF_U16, {NULL}}, HEARTH_BAD_FILE, "-00001-of-00004.gguf");
    refused_set((shard){first, 0, 60000, 3, HTH_GGUF_U16, {NULL}}, HEARTH_UNSUPPORTED, "60000 shards");
    refused_set((shard){first, 0, 70000, 3, HTH_GGUF_U32, {NULL}}, HEARTH_BAD_FILE, "split.count\" is 70000");
    write_set(good_set);
    refused(temp_path(second), HEARTH_BAD_FILE, "is shard 2 of 3");
    assert_int_equal(rename(temp_path(third), temp_path("elsewhere")), 0);
    refused(temp_path(first), HEARTH_NOT_FOUND, third);
    assert_int_equal(rename(temp_path(first), temp_path("renamed.gguf")), 0);
    refused(temp_path("renamed.gguf"), HEARTH_BAD_FILE, "must end in \"-00001-of-00003.gguf\"");
    gguf_image im = {0};
    gguf_put_header(&im, 3, 0, 1);
    gguf_put_kv_u32(&im, "split.count", 2);
    hth_gguf *g;
    hearth_error err;
    assert_int_equal(hth_gguf_open_memory(im.data, im.size, &g, &err), HEARTH_UNSUPPORTED);
    gguf_image_free(&im);
}

static void the_public_view(void **state) {
    (void)state;
    gguf_image im = {0};
    gguf_image_sample(&im);
    gguf_image_write(&im, temp_path("sample.gguf"));
    hearth_file *file;
    hearth_error err;
    assert_int_equal(hearth_file_open(temp_path("absent"), &file, &err), HEARTH_NOT_FOUND);
    assert_null(file);
    assert_int_equal(hearth_file_open(temp_path("sample.gguf"), &file, &err), HEARTH_OK);
    assert_int_equal(hearth_file_shards(file), 1);
    assert_int_equal(hearth_file_bytes(file), im.size);
    assert_int_equal(hearth_file_alignment(file), 64);
    assert_int_equal(hearth_file_tensor_count(file), GGUF_SAMPLE_TENSORS);
    hearth_file_tensor t;
    assert_int_equal(hearth_file_find_tensor(file, "matrix", &t, &err), HEARTH_OK);
    assert_string_equal(t.dtype, "Q4_0");
    assert_true(t.supported);
    float row[256];
    assert_int_equal(hearth_file_read_row(file, &t, 1, row, &err), HEARTH_OK);
    assert_int_equal(hearth_file_read_row(file, &t, 2, row, &err), HEARTH_BAD_ARGUMENT);
    assert_int_equal(hearth_file_find_tensor(file, "cube", &t, &err), HEARTH_OK);
    assert_int_equal(hearth_file_read_row(file, &t, 1, row, &err), HEARTH_OK);
    t.name = "no such tensor";
    assert_int_equal(hearth_file_read_row(file, &t, 0, row, &err), HEARTH_BAD_ARGUMENT);
    assert_int_equal(hearth_file_find_tensor(file, "absent", &t, &err), HEARTH_NOT_FOUND);
    assert_int_equal(hearth_file_tensor_at(file, GGUF_SAMPLE_TENSORS, &t, &err), HEARTH_BAD_ARGUMENT);

    hearth_file_entry entry;
    assert_int_equal(hearth_file_entry_count(file), GGUF_SAMPLE_KVS);
    assert_int_equal(hearth_file_entry_at(file, 16, &entry, &err), HEARTH_OK);
    assert_memory_equal(entry.key, "sample.strings", entry.key_size);
    assert_string_equal(entry.type, "array");
    assert_string_equal(entry.element, "string");
    assert_int_equal(entry.count, 3);
    assert_int_equal(hearth_file_entry_at(file, GGUF_SAMPLE_KVS, &entry, &err), HEARTH_BAD_ARGUMENT);
    const char *data;
    size_t size;
    int64_t integer;
    uint64_t natural;
    double real;
    assert_int_equal(hearth_file_string(file, 16, 0, &data, &size, &err), HEARTH_OK);
    assert_int_equal(size, 1);
    assert_int_equal(hearth_file_string(file, 16, 3, &data, &size, &err), HEARTH_BAD_ARGUMENT);
    assert_int_equal(hearth_file_int(file, 16, 0, &integer, &err), HEARTH_BAD_ARGUMENT);
    assert_int_equal(err.status, HEARTH_BAD_ARGUMENT);
    assert_int_equal(hearth_file_int(file, 10, 0, &integer, &err), HEARTH_BAD_ARGUMENT);
    assert_int_equal(hearth_file_uint(file, 10, 0, &natural, &err), HEARTH_OK);
    assert_true(natural == UINT64_MAX);
    assert_int_equal(hearth_file_float(file, 12, 0, &real, &err), HEARTH_OK);
    assert_true(real == 0.25);
    hearth_file_close(&file);
    assert_null(file);
    hearth_file_close(&file);
    gguf_image_free(&im);
}

static void a_dtype_that_is_only_known_by_name(void **state) {
    (void)state;
    gguf_image im = {0};
    gguf_put_header(&im, 3, 1, 0);
    gguf_put_tensor(&im, "t", 1, (const uint64_t[]){256}, HTH_IQ2_XXS, 0);
    gguf_put_padding(&im, 32);
    gguf_put_zeros(&im, 66);
    gguf_image_write(&im, temp_path("iq.gguf"));
    gguf_image_free(&im);
    hearth_file *file;
    hearth_file_tensor t;
    hearth_error err;
    float row[256];
    assert_int_equal(hearth_file_open(temp_path("iq.gguf"), &file, &err), HEARTH_OK);
    assert_int_equal(hearth_file_tensor_at(file, 0, &t, &err), HEARTH_OK);
    assert_false(t.supported);
    assert_int_equal(hearth_file_read_row(file, &t, 0, row, &err), HEARTH_UNSUPPORTED);
    assert_non_null(strstr(err.text, "IQ2_XXS; supported: F32 F16 Q4_0"));
    hearth_file_close(&file);
}

static int set_up(void **state) {
    (void)state;
    temp_folder_make();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    temp_folder_remove();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_directory),   cmocka_unit_test(integers),
        cmocka_unit_test(other_scalars),   cmocka_unit_test(arrays),
        cmocka_unit_test(not_files),       cmocka_unit_test(no_permission),
        cmocka_unit_test(split_sets),      cmocka_unit_test(broken_split_sets),
        cmocka_unit_test(the_public_view), cmocka_unit_test(a_dtype_that_is_only_known_by_name),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
