/* Dequantization against two sets of known values: hand-made blocks with their sums, and random blocks with the float32
 * bits that the `gguf` Python package gives (tests/data/dequant, written by scripts/oracle/dequant_vectors.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/block.h"
#include "base/dequant.h"
#include "base/half.h"

typedef struct vector {
    hth_dtype dtype;
    int d_at, m_at; /* where the binary16 fields lie that are set to 0.5; -1: none */
    float first[4], last;
    double sum, weighted_sum; /* of x_i, and of (i + 1) x_i */
} vector;

static const vector vectors[] = {
    {HTH_Q4_0, 0, -1, {-3.5f, -0.5f, 3, -1.5f}, 1.5f, -3, -96.5},
    {HTH_Q4_1, 0, 2, {7.5f, 3, 6.5f, 2}, 0.5f, 145.5, 2273},
    {HTH_Q5_0, 0, -1, {6, -6.5f, -2.5f, -6}, 3, 11.5, 74.5},
    {HTH_Q5_1, 0, 2, {6, 10.5f, 15, 11.5f}, 6.5f, 275, 4273.5},
    {HTH_Q8_0, 0, -1, {40.5f, 59.5f, -49, -29.5f}, -45.5f, 70, 1587},
    {HTH_Q2_K, 80, 82, {7, 3.5f, 3.5f, 7}, 5, 900, 122510},
    {HTH_Q3_K, 108, -1, {15, -15, 0, 15}, 6.5f, 275, 35785},
    {HTH_Q4_K, 0, 2, {120.5f, 45.5f, -14.5f, 180.5f}, 56.5f, 28571.5, 4158939},
    {HTH_Q5_K, 0, 2, {15.5f, 390.5f, 285.5f, 180.5f}, 124, 63748.5, 9069418},
    {HTH_Q6_K, 208, -1, {-1253.5f, 1090, 817.5f, -381.5f}, -909.5f, 886.5, 756954.5},
    {HTH_IQ4_NL, 0, -1, {-52, -5, 44.5f, -17.5f}, 19, -8.5, -983},
    {HTH_IQ4_XS, 0, -1, {-38, 49, -69, 22}, -397.5f, -6183, -2004147},
    {HTH_MXFP4, -1, -1, {-2, 0.5f, 6, -4}, 0, 2.5, 84},
};

static void set_half(unsigned char *block, int at) {
    if (at < 0) return;
    block[at] = 0x00;
    block[at + 1] = 0x38;
}

static void hand_made_blocks(void **state) {
    (void)state;
    for (size_t v = 0; v < sizeof vectors / sizeof *vectors; v++) {
        const vector *want = &vectors[v];
        const hth_dtype_info *info = hth_dtype_find((uint32_t)want->dtype);
        unsigned char block[256];
        float x[256];
        for (int k = 0; k < info->bytes; k++) block[k] = (unsigned char)(7 + 37 * k + k * k / 5);
        set_half(block, want->d_at);
        set_half(block, want->m_at);
        if (want->dtype == HTH_MXFP4) block[0] = 127;
        hth_dequant_row(want->dtype, block, x, (uint64_t)info->block);
        double sum = 0, weighted_sum = 0;
        for (int i = 0; i < info->block; i++) {
            sum += (double)x[i];
            weighted_sum += (double)(i + 1) * (double)x[i];
        }
        if (memcmp(x, want->first, sizeof want->first) != 0 || x[info->block - 1] != want->last || sum != want->sum ||
            weighted_sum != want->weighted_sum)
            fail_msg("%s: %g %g %g %g .. %g, sums %g %g", info->name, (double)x[0], (double)x[1], (double)x[2],
                     (double)x[3], (double)x[info->block - 1], sum, weighted_sum);
    }
}

static void every_computed_dtype_has_a_function(void **state) {
    (void)state;
    for (uint32_t id = 0; id < HTH_DTYPE_MAX + 8; id++) {
        const hth_dtype_info *info = hth_dtype_find(id);
        assert_int_equal(hth_dequant_find((hth_dtype)id) != NULL, info && info->computed);
    }
}

static unsigned char *read_file(const char *name, size_t *size) {
    char path[1024];
    snprintf(path, sizeof path, "%s/dequant/%s", HEARTH_TEST_DATA, name);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("cannot open %s", path);
    static unsigned char buffer[1 << 20];
    *size = fread(buffer, 1, sizeof buffer, f);
    fclose(f);
    unsigned char *data = malloc(*size + 1);
    assert_non_null(data);
    memcpy(data, buffer, *size);
    return data;
}

/* A file is: u32 elements, the stored bytes, then as many float32 values. NaNs compare as NaN, all else by bits. */
static void recorded_blocks(void **state) {
    (void)state;
    for (uint32_t id = 0; id < HTH_DTYPE_MAX; id++) {
        const hth_dtype_info *info = hth_dtype_find(id);
        if (!info || !info->computed) continue;
        char name[64];
        snprintf(name, sizeof name, "%s.bin", info->name);
        size_t size;
        unsigned char *data = read_file(name, &size);
        uint32_t n;
        memcpy(&n, data, 4);
        size_t stored = (size_t)hth_row_bytes(info, n);
        assert_int_equal(size, 4 + stored + n * sizeof(float));
        float *x = malloc(n * sizeof *x);
        assert_non_null(x);
        hth_dequant_row((hth_dtype)id, data + 4, x, n);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t got = hth_f32_bits(x[i]), want;
            memcpy(&want, data + 4 + stored + i * sizeof want, sizeof want);
            bool both_nan = (got & 0x7FFFFFFF) > 0x7F800000 && (want & 0x7FFFFFFF) > 0x7F800000;
            if (got != want && !both_nan) fail_msg("%s element %u: %08x, want %08x", info->name, i, got, want);
        }
        free(x);
        free(data);
    }
}

/* Every bit pattern but signalling NaNs survives the way there and back. */
static void halves_round_trip(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        bool signalling = (h & 0x7C00) == 0x7C00 && (h & 0x3FF) && !(h & 0x200);
        uint32_t want = signalling ? h | 0x200 : h;
        assert_int_equal(hth_f32_to_f16(hth_f16_to_f32((uint16_t)h)), want);
        signalling = (h & 0x7F80) == 0x7F80 && (h & 0x7F) && !(h & 0x40);
        assert_int_equal(hth_f32_to_bf16(hth_bf16_to_f32((uint16_t)h)), signalling ? h | 0x40 : h);
    }
}

static void halves_round_to_even(void **state) {
    (void)state;
    static const struct {
        uint32_t f32;
        uint16_t f16, bf16;
    } cases[] = {
        {0x3F800000, 0x3C00, 0x3F80}, /* 1 */
        {0x3F801000, 0x3C00, 0x3F80}, /* 1 + 2^-11: a tie of the half, down to even */
        {0x3F803000, 0x3C02, 0x3F80}, /* 1 + 3 * 2^-11: a tie, up to even */
        {0x3F808000, 0x3C04, 0x3F80}, /* 1 + 2^-8: a tie of the bfloat16, down */
        {0x3F818000, 0x3C0C, 0x3F82}, /* 1 + 3 * 2^-8: a tie, up */
        {0x477FEFFF, 0x7BFF, 0x4780}, /* just below the step to infinity */
        {0x477FF000, 0x7C00, 0x4780}, /* 65520: a tie, up to infinity */
        {0x33000000, 0x0000, 0x3300}, /* 2^-25: half the least denormal, down */
        {0x33000001, 0x0001, 0x3300}, /* just above */
        {0x33C00000, 0x0002, 0x33C0}, /* 1.5 * 2^-24: a tie between denormals, up */
        {0x387FE000, 0x0400, 0x3880}, /* the largest denormal's next half step: up into the normals */
        {0xB8800000, 0x8400, 0xB880}, /* -2^-14 */
        {0x7F7FFFFF, 0x7C00, 0x7F80}, /* the largest float */
        {0xFF800000, 0xFC00, 0xFF80}, /* -infinity */
        {0x7F800001, 0x7E00, 0x7FC0}, /* a signalling NaN whose payload is cut off stays a NaN */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float f = hth_f32_from_bits(cases[i].f32);
        assert_int_equal(hth_f32_to_f16(f), cases[i].f16);
        assert_int_equal(hth_f32_to_bf16(f), cases[i].bf16);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hand_made_blocks),     cmocka_unit_test(every_computed_dtype_has_a_function),
        cmocka_unit_test(recorded_blocks),      cmocka_unit_test(halves_round_trip),
        cmocka_unit_test(halves_round_to_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
