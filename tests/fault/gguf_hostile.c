/* GGUF files that lie: each must be refused by name, or opened if the lie is harmless, without reading outside the
 * file, hanging, or spending memory that the file does not account for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/alloc_guard.h"
#include "support/gguf_image.h"
#include "support/gguf_walk.h"

/* What a file of that size may make us allocate: a record takes at most this many times its bytes in the file. */
static size_t allowance(size_t size) {
    return 16 * size + 4096;
}

/* Open the image from a block of exactly its size, so that a sanitizer sees a read past its end. */
static hearth_status try_image(const unsigned char *data, size_t size, hearth_error *err) {
    unsigned char *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    if (size) memcpy(exact, data, size);
    hth_gguf *g;
    *err = (hearth_error){HEARTH_OK, ""};
    alloc_guard_reset();
    size_t before = alloc_guard_live();
    hearth_status status = hth_gguf_open_memory(exact, size, &g, err);
    if (alloc_guard_peak() > allowance(size)) fail_msg("%zu bytes for an image of %zu", alloc_guard_peak(), size);
    if (status == HEARTH_OK) {
        assert_non_null(g);
        gguf_walk(g);
        hth_gguf_close(&g);
    } else {
        assert_null(g);
        assert_int_equal(err->status, status);
        if (err->text[0] == 0) fail_msg("%s without a text", hearth_status_name(status));
    }
    assert_int_equal(alloc_guard_live(), before);
    free(exact);
    return status;
}

/* The image must be refused with that status and a text that holds each of the words (separated by '|'). */
static void expect(gguf_image *im, const char *what, hearth_status want, const char *words) {
    hearth_error err;
    hearth_status status = try_image(im->data, im->size, &err);
    if (status != want)
        fail_msg("%s: %s \"%s\", want %s", what, hearth_status_name(status), err.text, hearth_status_name(want));
    char copy[256];
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = copy, *next; word; word = next) {
        next = strchr(word, '|');
        if (next) *next++ = 0;
        if (!strstr(err.text, word)) fail_msg("%s: \"%s\" does not say \"%s\"", what, err.text, word);
    }
    gguf_image_free(im);
}

static void the_sample_opens(void **state) {
    (void)state;
    gguf_image im = {0};
    hearth_error err;
    gguf_image_sample(&im);
    assert_int_equal(try_image(im.data, im.size, &err), HEARTH_OK);
    gguf_image_free(&im);
}

static void every_bit_flipped(void **state) {
    (void)state;
    gguf_image im = {0};
    hearth_error err;
    gguf_image_sample(&im);
    int refused = 0;
    for (size_t i = 0; i < im.size; i++) {
        for (int bit = 0; bit < 9; bit++) {
            unsigned char mask = bit < 8 ? (unsigned char)(1 << bit) : 0xFF;
            im.data[i] ^= mask;
            refused += try_image(im.data, im.size, &err) != HEARTH_OK;
            im.data[i] ^= mask;
        }
    }
    assert_true(refused > 1000);
    gguf_image_free(&im);
}

static const uint64_t limits[] = {
    0,
    1,
    2,
    255,
    UINT64_C(0x7FFFFFFF),
    UINT64_C(0x80000000),
    UINT64_C(0xFFFFFFFF),
    UINT64_C(0x100000000),
    UINT64_C(0x3FFFFFFFFFFFFFFF),
    UINT64_C(0x7FFFFFFFFFFFFFFF),
    UINT64_C(0x8000000000000000),
    UINT64_C(0xFFFFFFFFFFFFFFE0),
    UINT64_C(0xFFFFFFFFFFFFFFFF),
};

static void every_number_at_its_limits(void **state) {
    (void)state;
    gguf_image im = {0};
    hearth_error err;
    gguf_image_sample(&im);
    for (size_t f = 0; f < im.field_count; f++) {
        const gguf_field *field = &im.fields[f];
        uint64_t old = 0;
        memcpy(&old, im.data + field->at, field->size);
        for (size_t v = 0; v < sizeof limits / sizeof *limits; v++) {
            gguf_set_field(&im, field, limits[v]);
            try_image(im.data, im.size, &err);
        }
        for (uint64_t near = old - 2; near != old + 3; near++) {
            gguf_set_field(&im, field, near);
            try_image(im.data, im.size, &err);
        }
        gguf_set_field(&im, field, old);
    }
    gguf_image_free(&im);
}

/* Only the whole sample opens: its last tensor ends with the file. */
static void cut_anywhere(void **state) {
    (void)state;
    gguf_image im = {0};
    hearth_error err;
    gguf_image_sample(&im);
    for (size_t size = 0; size < im.size; size++) {
        hearth_status status = try_image(im.data, size, &err);
        if (status != HEARTH_BAD_FILE) fail_msg("cut to %zu: %s", size, hearth_status_name(status));
    }
    gguf_image_free(&im);
}

/* An image with a lie in one place: a header, records, and as much data as `data` says. */
static gguf_image begin(uint64_t tensors, uint64_t kvs) {
    gguf_image im = {0};
    gguf_put_header(&im, 3, tensors, kvs);
    return im;
}

static void end(gguf_image *im, size_t data) {
    gguf_put_padding(im, 32);
    gguf_put_zeros(im, data);
}

static const uint64_t ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

static gguf_image one_tensor(uint32_t n_dims, const uint64_t *dims, uint32_t dtype, uint64_t offset, size_t data) {
    gguf_image im = begin(1, 0);
    gguf_put_tensor(&im, "t", n_dims, dims, dtype, offset);
    end(&im, data);
    return im;
}

static void bad_headers(void **state) {
    (void)state;
    static const struct {
        uint32_t version;
        hearth_status status;
        const char *words;
    } versions[] = {
        {0, HEARTH_UNSUPPORTED, "version 0|offset 4"},     {1, HEARTH_UNSUPPORTED, "version 1 is too old"},
        {4, HEARTH_UNSUPPORTED, "version 4 is not known"}, {0x02000000, HEARTH_UNSUPPORTED, "big-endian"},
        {0x03000000, HEARTH_UNSUPPORTED, "big-endian"},    {UINT32_MAX, HEARTH_UNSUPPORTED, "version 4294967295"},
    };
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        gguf_image im = {0};
        gguf_put_header(&im, versions[i].version, 0, 0);
        expect(&im, "version", versions[i].status, versions[i].words);
    }
    gguf_image im = {0};
    gguf_put(&im, "ggjt", 4);
    gguf_put_zeros(&im, 100);
    expect(&im, "another magic", HEARTH_BAD_FILE, "not a GGUF file");
    gguf_put(&im, "version https://git-lfs.example/spec/v1\n", 40);
    expect(&im, "an LFS pointer", HEARTH_BAD_FILE, "Git LFS pointer");
    im = begin(UINT64_MAX, 0);
    expect(&im, "tensor_count", HEARTH_BAD_FILE, "tensor_count 18446744073709551615|offset 8 ");
    im = begin(0, UINT64_C(1) << 63);
    expect(&im, "kv_count", HEARTH_BAD_FILE, "kv_count 9223372036854775808|offset 16 ");
    im = begin((1 << 20) + 1, 0);
    gguf_put_zeros(&im, 24 * ((1 << 20) + 1));
    expect(&im, "too many tensors", HEARTH_UNSUPPORTED, "tensor_count 1048577|limit of 1048576");
    im = begin(0, (1 << 20) + 1);
    gguf_put_zeros(&im, 14 * ((1 << 20) + 1));
    expect(&im, "too many records", HEARTH_UNSUPPORTED, "kv_count 1048577|limit of 1048576");
}

static void bad_metadata(void **state) {
    (void)state;
    gguf_image im = begin(0, 1);
    gguf_put_kv_u32(&im, "", 1);
    expect(&im, "empty key", HEARTH_BAD_FILE, "key is empty|offset 24 ");
    im = begin(0, 1);
    gguf_put_u64(&im, NULL, 65536);
    gguf_put_zeros(&im, 65536 + 8);
    expect(&im, "long key", HEARTH_BAD_FILE, "65536|65535|offset 24 ");
    im = begin(0, 2);
    gguf_put_kv_u32(&im, "twice", 1);
    gguf_put_kv_u32(&im, "twice", 1);
    expect(&im, "duplicate key", HEARTH_BAD_FILE, "key \"twice\" occurs twice|offset 45 ");
    im = begin(0, 1);
    gguf_put_key(&im, "odd", 13);
    gguf_put_zeros(&im, 64);
    expect(&im, "unknown type", HEARTH_BAD_FILE, "\"odd\"|type 13|offset 35 ");
    im = begin(0, 1);
    gguf_put_kv_array(&im, "nest", HTH_GGUF_ARRAY, 1);
    gguf_put_zeros(&im, 64);
    expect(&im, "nested array", HEARTH_BAD_FILE, "\"nest\"|arrays of arrays");
    im = begin(0, 1);
    gguf_put_kv_array(&im, "odds", 99, 1);
    gguf_put_zeros(&im, 64);
    expect(&im, "unknown element type", HEARTH_BAD_FILE, "\"odds\"|element type 99");
    im = begin(0, 1);
    gguf_put_key(&im, "s", HTH_GGUF_STRING);
    gguf_put_u64(&im, NULL, UINT64_MAX - 3);
    expect(&im, "endless string", HEARTH_BAD_FILE, "key \"s\"|offset 37 ");
    im = begin(0, 1);
    gguf_put_kv_array(&im, "strings", HTH_GGUF_STRING, 2);
    gguf_put_string(&im, NULL, "fits");
    gguf_put_u64(&im, NULL, 5);
    gguf_put(&im, "cut", 3);
    expect(&im, "cut string in an array", HEARTH_BAD_FILE, "key \"strings\": string 1");
    static const uint64_t counts[] = {5, UINT64_C(1) << 62, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (uint32_t type = 0; type < HTH_GGUF_TYPE_COUNT; type++) {
            if (type == HTH_GGUF_ARRAY) continue;
            im = begin(0, 1);
            gguf_put_kv_array(&im, "big", type, counts[i]);
            gguf_put_zeros(&im, 4);
            expect(&im, "array length", HEARTH_BAD_FILE, "key \"big\"|more than the 4 bytes left|offset 43 ");
        }
    }
}

static void bad_alignment(void **state) {
    (void)state;
    static const uint32_t values[] = {0, 1, 3, 4, 24, 33, 1u << 21, 1u << 30, 1u << 31, UINT32_MAX};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        gguf_image im = begin(0, 1);
        gguf_put_kv_u32(&im, "general.alignment", values[i]);
        expect(&im, "alignment", HEARTH_BAD_FILE, "general.alignment|power of two|offset 53 ");
    }
    gguf_image im = begin(0, 1);
    gguf_put_key(&im, "general.alignment", HTH_GGUF_U64);
    gguf_put_u64(&im, NULL, 32);
    expect(&im, "alignment type", HEARTH_BAD_FILE, "general.alignment|u64");
    im = begin(0, 1);
    gguf_put_kv_array(&im, "general.alignment", HTH_GGUF_U32, 1);
    gguf_put_u32(&im, NULL, 32);
    expect(&im, "alignment array", HEARTH_BAD_FILE, "general.alignment|array");
}

static void bad_shapes(void **state) {
    (void)state;
    static const uint32_t counts[] = {5, 9, 16, 1u << 31, UINT32_MAX};
    gguf_image im;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        im = one_tensor(counts[i], ones, HTH_F32, 0, 64);
        expect(&im, "n_dims", HEARTH_BAD_FILE, "tensor \"t\"|dimensions, at most 4|offset 33 ");
    }
    static const uint64_t huge[][4] = {
        {UINT64_MAX, 1, 1, 1},
        {UINT64_C(1) << 63, 1, 1, 1},
        {UINT64_C(1) << 32, UINT64_C(1) << 31, 1, 1},
        {UINT64_C(1) << 16, UINT64_C(1) << 16, UINT64_C(1) << 16, UINT64_C(1) << 16},
        {1, 1, 3, UINT64_C(6148914691236517206)},
    };
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        im = one_tensor(4, huge[i], HTH_F32, 0, 64);
        expect(&im, "dims", HEARTH_BAD_FILE, "tensor \"t\"|2^63-1 elements");
    }
    im = one_tensor(1, (const uint64_t[]){INT64_MAX}, HTH_F32, 0, 64);
    expect(&im, "bytes", HEARTH_BAD_FILE, "tensor \"t\"|size in bytes");
    im = one_tensor(2, (const uint64_t[]){UINT64_C(1) << 60, 4}, HTH_F64, 0, 64);
    expect(&im, "bytes of rows", HEARTH_BAD_FILE, "tensor \"t\"|size in bytes");
    im = one_tensor(2, (const uint64_t[]){32, 0}, HTH_F32, 0, 64);
    expect(&im, "no elements", HEARTH_BAD_FILE, "tensor \"t\"|dimension 1 is 0|offset 45 ");
    im = one_tensor(1, (const uint64_t[]){48}, HTH_Q4_0, 0, 64);
    expect(&im, "half a block", HEARTH_BAD_FILE, "tensor \"t\"|rows of 48|Q4_0 blocks of 32");
    im = one_tensor(2, (const uint64_t[]){128, 2}, HTH_Q4_K, 0, 256);
    expect(&im, "a block over two rows", HEARTH_BAD_FILE, "tensor \"t\"|rows of 128|Q4_K blocks of 256");
    im = one_tensor(0, NULL, HTH_Q8_0, 0, 64);
    expect(&im, "a scalar of blocks", HEARTH_BAD_FILE, "tensor \"t\"|rows of 1 ");
}

static void bad_dtypes(void **state) {
    (void)state;
    static const uint32_t removed[] = {4, 5, 31, 32, 33, 36, 37, 38}, unknown[] = {43, 63, 64, 97, 255, UINT32_MAX};
    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++) {
        gguf_image im = one_tensor(1, (const uint64_t[]){256}, removed[i], 0, 1024);
        expect(&im, "removed dtype", HEARTH_UNSUPPORTED, "tensor \"t\"|removed|Q4_K");
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        gguf_image im = one_tensor(1, (const uint64_t[]){256}, unknown[i], 0, 1024);
        expect(&im, "unknown dtype", HEARTH_UNSUPPORTED, "tensor \"t\"|unknown|Q4_K");
    }
}

static void bad_names(void **state) {
    (void)state;
    char name[80];
    memset(name, 'n', sizeof name);
    name[64] = 0;
    gguf_image im = begin(1, 0);
    gguf_put_tensor(&im, name, 1, ones, HTH_F32, 0);
    end(&im, 4);
    expect(&im, "long name", HEARTH_BAD_FILE, "tensor's name|64|63|offset 24 ");
    im = begin(2, 0);
    gguf_put_tensor(&im, "same", 1, ones, HTH_F32, 0);
    gguf_put_tensor(&im, "same", 1, ones, HTH_F32, 32);
    end(&im, 64);
    expect(&im, "duplicate name", HEARTH_BAD_FILE, "tensor \"same\" occurs twice");
    im = begin(1, 0);
    gguf_put_tensor(&im, "\x1b[2J\x07\xff", 9, ones, HTH_F32, 0);
    expect(&im, "a name that writes to terminals", HEARTH_BAD_FILE, "tensor \"?[2J??\"");
}

static void bad_offsets(void **state) {
    (void)state;
    gguf_image im = one_tensor(1, ones, HTH_F32, 1, 64);
    expect(&im, "misaligned", HEARTH_BAD_FILE, "tensor \"t\"|data offset 1 |alignment 32");
    static const uint64_t offsets[] = {64, UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_MAX - 31};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        im = one_tensor(1, ones, HTH_F32, offsets[i], 64);
        expect(&im, "past the end", HEARTH_BAD_FILE, "tensor \"t\"|end after the file");
    }
    im = one_tensor(1, (const uint64_t[]){17}, HTH_F32, 0, 64);
    expect(&im, "one element too many", HEARTH_BAD_FILE, "tensor \"t\"|68 bytes|end after the file");
    im = begin(2, 0);
    gguf_put_tensor(&im, "a", 1, (const uint64_t[]){9}, HTH_F32, 0);
    gguf_put_tensor(&im, "b", 1, ones, HTH_F32, 32);
    end(&im, 64);
    expect(&im, "overlap", HEARTH_BAD_FILE, "\"a\" and \"b\" overlap");
    im = begin(3, 0);
    gguf_put_tensor(&im, "last", 1, ones, HTH_F32, 64);
    gguf_put_tensor(&im, "first", 1, (const uint64_t[]){17}, HTH_F32, 0);
    gguf_put_tensor(&im, "other", 1, ones, HTH_F32, 96);
    end(&im, 128);
    expect(&im, "overlap out of order", HEARTH_BAD_FILE, "\"first\" and \"last\" overlap");
    im = begin(2, 0);
    gguf_put_tensor(&im, "x", 1, ones, HTH_F32, 32);
    gguf_put_tensor(&im, "y", 1, ones, HTH_F32, 32);
    end(&im, 64);
    expect(&im, "the same place", HEARTH_BAD_FILE, "overlap");
}

/* Odd but harmless: these open. */
static void harmless(void **state) {
    (void)state;
    gguf_image im = begin(0, 0);
    expect(&im, "nothing at all", HEARTH_OK, "");
    im = (gguf_image){0};
    gguf_put_header(&im, 2, 0, 0);
    expect(&im, "version 2", HEARTH_OK, "");
    im = one_tensor(0, NULL, HTH_F32, 0, 4);
    expect(&im, "a scalar", HEARTH_OK, "");
    im = begin(2, 0);
    gguf_put_tensor(&im, "b", 1, ones, HTH_F32, 128);
    gguf_put_tensor(&im, "a", 1, ones, HTH_F32, 0);
    end(&im, 132);
    expect(&im, "a gap, and data in another order", HEARTH_OK, "");
    im = begin(1, 0);
    gguf_put_tensor(&im, "", 1, ones, HTH_F32, 0);
    end(&im, 4);
    expect(&im, "an empty name", HEARTH_OK, "");
    im = one_tensor(1, (const uint64_t[]){256}, HTH_IQ2_XXS, 0, 66);
    expect(&im, "a dtype that is only known by name", HEARTH_OK, "");
    im = begin(0, 1);
    gguf_put_kv_u32(&im, "general.alignment", 1 << 20);
    expect(&im, "the largest alignment", HEARTH_OK, "");
    im = begin(0, 1);
    gguf_put_kv_u32(&im, "split.count", 0);
    expect(&im, "a set of none", HEARTH_OK, "");
}

/* 2^17 keys and as many names: quadratic work here would take minutes. */
static void many_records(void **state) {
    (void)state;
    const uint64_t count = 1 << 17;
    gguf_image im = begin(count, count);
    char name[32];
    for (uint64_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%06x", (unsigned)i);
        gguf_put_string(&im, NULL, name);
        gguf_put_u32(&im, NULL, HTH_GGUF_U32);
        gguf_put_u32(&im, NULL, 0);
    }
    for (uint64_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%06x", (unsigned)i);
        gguf_put_string(&im, NULL, name);
        gguf_put_u32(&im, NULL, 0);
        gguf_put_u32(&im, NULL, HTH_F32);
        gguf_put_u64(&im, NULL, 32 * (count - 1 - i));
    }
    end(&im, 32 * count);
    expect(&im, "many records", HEARTH_OK, "");
}

/* Random damage to several places at once, the same on every run. */
static void random_damage(void **state) {
    (void)state;
    gguf_image im = {0};
    hearth_error err;
    gguf_image_sample(&im);
    unsigned char *copy = malloc(im.size);
    assert_non_null(copy);
    uint64_t random = 0x9E3779B97F4A7C15u;
    for (int round = 0; round < 20000; round++) {
        memcpy(copy, im.data, im.size);
        for (int k = 0; k < 1 + round % 4; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            copy[(random >> 33) % im.size] = (unsigned char)(random >> 25);
        }
        try_image(copy, im.size, &err);
    }
    free(copy);
    gguf_image_free(&im);
}

/* A file of holes has room for any count: only limits of our own keep the memory down. */
static void sparse_file(void **state) {
    (void)state;
    gguf_image im = begin(0, 1);
    gguf_put_kv_array(&im, "tokens", HTH_GGUF_STRING, (UINT64_C(1) << 24) + 1);
    char path[] = "/tmp/hearth-sparse-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    gguf_image_write(&im, path);
    if (ftruncate(fd, (off_t)1 << 36) != 0) {
        close(fd);
        unlink(path);
        skip();
    }
    close(fd);
    hth_gguf *g;
    hearth_error err = {HEARTH_OK, ""};
    alloc_guard_reset();
    assert_int_equal(hth_gguf_open(path, &g, &err), HEARTH_UNSUPPORTED);
    assert_non_null(strstr(err.text, "key \"tokens\""));
    assert_true(alloc_guard_peak() < 65536);
    unlink(path);
    gguf_image_free(&im);
}

int main(void) {
    alarm(240); /* a hang is a failure */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sample_opens),
        cmocka_unit_test(every_bit_flipped),
        cmocka_unit_test(every_number_at_its_limits),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(bad_headers),
        cmocka_unit_test(bad_metadata),
        cmocka_unit_test(bad_alignment),
        cmocka_unit_test(bad_shapes),
        cmocka_unit_test(bad_dtypes),
        cmocka_unit_test(bad_names),
        cmocka_unit_test(bad_offsets),
        cmocka_unit_test(harmless),
        cmocka_unit_test(many_records),
        cmocka_unit_test(random_damage),
        cmocka_unit_test(sparse_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
