/* Filling a panel of linear_many.h on 512-bit vectors, all sixteen columns together. What takes time is the
 * transposition; so the bytes of the file are transposed as they are, and unpacked in the panel's order. Included
 * before linear_many.h.
 */
#include "backends/cpu/x86/avx512/unpack512.h"
#include "backends/cpu/x86/panel.h"

/* ---- Columns to words ---- */

/* 32-bit word k (constant) of lane l of x[g] as word 4l + g. */
HTH_INLINE __m512i words_of_lanes(const __m512i x[4], int k) {
    __m512i a, b;
    if (k < 2) {
        a = _mm512_unpacklo_epi32(x[0], x[1]);
        b = _mm512_unpacklo_epi32(x[2], x[3]);
    } else {
        a = _mm512_unpackhi_epi32(x[0], x[1]);
        b = _mm512_unpackhi_epi32(x[2], x[3]);
    }
    return k & 1 ? _mm512_unpackhi_epi64(a, b) : _mm512_unpacklo_epi64(a, b);
}

/* The sixteen bytes of four columns from byte `at` on, a column a lane. */
HTH_INLINE __m512i four_at(const uint8_t *const c[4], int at) {
    return in_lanes(load128(c[0] + at), load128(c[1] + at), load128(c[2] + at), load128(c[3] + at));
}

/* Sixteen bytes of all columns from byte `at` on: column 4l + g in lane l of x[g]. */
HTH_INLINE void bytes_of_columns(const uint8_t *const column[16], int at, __m512i x[4]) {
    HTH_UNROLL for (int g = 0; g < 4; g++) {
        const uint8_t *const four[4] = {column[g], column[4 + g], column[8 + g], column[12 + g]};
        x[g] = four_at(four, at);
    }
}

/* Words 0 to 3 of those bytes, of all columns in order. */
HTH_INLINE void words_of_columns(const uint8_t *const column[16], int at, __m512i r[4]) {
    __m512i x[4];
    bytes_of_columns(column, at, x);
    HTH_UNROLL for (int k = 0; k < 4; k++) r[k] = words_of_lanes(x, k);
}

/* Words 0 to 7 of the 32 bytes from byte `at` on. */
HTH_INLINE void eight_words_of_columns(const uint8_t *const column[16], int at, __m512i r[8]) {
    HTH_UNROLL for (int i = 0; i < 8; i++) {
        const uint8_t *a = column[first_of_pair(i)] + at, *b = column[second_of_pair(i)] + at;
        r[i] = join256(load256(a), load256(b));
    }
    columns_to_words(r);
}

/* Bits n of the bytes of x as bits 0; the other bits are anything. Negative: to the left. */
HTH_INLINE __m512i shifted_by(__m512i x, int n) {
    return n < 0 ? _mm512_slli_epi16(x, (unsigned)-n) : _mm512_srli_epi16(x, (unsigned)n);
}

/* Those bits alone. */
HTH_INLINE __m512i bits_of(__m512i x, int n, int mask) {
    return _mm512_and_si512(shifted_by(x, n), _mm512_set1_epi8((char)mask));
}

/* The F16 values in the low and in the high half of each word. */
HTH_INLINE void halves_of_words(__m512i x, __m512 *low, __m512 *high) {
    *low = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(x));
    *high = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(x, 16)));
}

/* ---- Blocks of 32 ---- */

typedef struct columns32 {
    const format32 *format;
    void (*weights)(const uint8_t *const column[16], __m512i w[8]); /* unsigned, as in wide32: words 4i.. of a column */
} columns32;

/* Nibbles of sixteen bytes: low ones, then high ones. */
HTH_INLINE void nibbles_of_columns(const uint8_t *const column[16], int at, __m512i w[8]) {
    __m512i r[4];
    words_of_columns(column, at, r);
    HTH_UNROLL for (int i = 0; i < 8; i++) w[i] = bits_of(r[i & 3], i & 4, 15);
}

HTH_INLINE void q4_0_columns(const uint8_t *const column[16], __m512i w[8]) {
    nibbles_of_columns(column, 2, w);
}

HTH_INLINE void q4_1_columns(const uint8_t *const column[16], __m512i w[8]) {
    nibbles_of_columns(column, 4, w);
}

/* 16 more where the bit of a byte is set: a word of 32 bits a column. */
HTH_INLINE void add_fifth_bits(__m512i bits, __m512i w[8]) {
    HTH_UNROLL for (int i = 0; i < 8; i++) {
        __m512i same = _mm512_shuffle_epi8(
            bits, _mm512_broadcast_i32x4(_mm_setr_epi32(0x01010101 * (i / 2), 0x01010101 * (i / 2 + 4),
                                                        0x01010101 * (i / 2 + 8), 0x01010101 * (i / 2 + 12))));
        __mmask64 set = _mm512_test_epi8_mask(same, _mm512_set1_epi32(i & 1 ? (int)0x80402010 : 0x08040201));
        w[i] = _mm512_mask_add_epi8(w[i], set, w[i], _mm512_set1_epi8(16));
    }
}

HTH_INLINE void q5_0_columns(const uint8_t *const column[16], __m512i w[8]) {
    __m512i r[4];
    words_of_columns(column, 2, r);
    nibbles_of_columns(column, 6, w);
    add_fifth_bits(r[0], w);
}

HTH_INLINE void q5_1_columns(const uint8_t *const column[16], __m512i w[8]) {
    __m512i r[4];
    words_of_columns(column, 4, r);
    nibbles_of_columns(column, 8, w);
    add_fifth_bits(r[0], w);
}

HTH_INLINE void q8_0_columns(const uint8_t *const column[16], __m512i w[8]) {
    eight_words_of_columns(column, 2, w);
    HTH_UNROLL for (int i = 0; i < 8; i++) w[i] = _mm512_xor_si512(w[i], _mm512_set1_epi8(-128));
}

HTH_INLINE void iq4_nl_columns(const uint8_t *const column[16], __m512i w[8]) {
    nibbles_of_columns(column, 2, w);
    HTH_UNROLL for (int i = 0; i < 8; i++) w[i] = lookup_of_two(iq4_table(), w[i]);
}

HTH_INLINE void mxfp4_columns(const uint8_t *const column[16], __m512i w[8]) {
    nibbles_of_columns(column, 1, w);
    HTH_UNROLL for (int i = 0; i < 8; i++) w[i] = lookup_of_two(mxfp4_table(), w[i]);
}

static const columns32 columns_q4_0 = {&format_q4_0, q4_0_columns};
static const columns32 columns_q4_1 = {&format_q4_1, q4_1_columns};
static const columns32 columns_q5_0 = {&format_q5_0, q5_0_columns};
static const columns32 columns_q5_1 = {&format_q5_1, q5_1_columns};
static const columns32 columns_q8_0 = {&format_q8_0, q8_0_columns};
static const columns32 columns_iq4_nl = {&format_iq4_nl, iq4_nl_columns};
static const columns32 columns_mxfp4 = {&format_mxfp4, mxfp4_columns};

HTH_INLINE void fill32(const columns32 *f, const uint8_t *const column[16], panel32 *p) {
    __m512i w[8], x[4];
    __m512 d, m;
    f->weights(column, w);
    HTH_UNROLL for (int i = 0; i < 8; i++) _mm512_store_si512(p->w[i], w[i]);
    bytes_of_columns(column, 0, x);
    x[0] = words_of_lanes(x, 0);
    halves_of_words(x[0], &d, &m);
    if (f->format->is_e8m0) d = e8m0_scales_512(_mm512_and_si512(x[0], _mm512_set1_epi32(255)));
    _mm512_store_ps(p->d[0], d);
    if (f->format->has_min) _mm512_store_ps(p->m[0], m);
}

/* ---- Blocks of 256 ---- */

typedef struct columns256 {
    const format256 *format;
    void (*weights)(const uint8_t *const column[16], uint8_t w[64][2][32]); /* as a panel has them */
    /* The scales of a block of each of four columns as signed bytes, a column a lane, sixteen or eight of them; with
     * minimums, those in the same way. */
    void (*scales)(const uint8_t *const c[4], __m512i *scale, __m512i *min);
} columns256;

/* The elements 32j..32j+31 of a block, of which r has some bits from bit n on. */
HTH_INLINE void put_bits(const __m512i r[8], int n, int mask, int j, uint8_t w[64][2][32]) {
    HTH_UNROLL for (int i = 0; i < 8; i++) _mm512_store_si512(w[8 * j + i], bits_of(r[i], n, mask));
}

/* The same with upper bits of another r: its bits from bit n2 on, where mask2 has them. */
HTH_INLINE void put_both(const __m512i r[8], int n, int mask, const __m512i r2[8], int n2, int mask2, int j,
                         uint8_t w[64][2][32]) {
    HTH_UNROLL for (int i = 0; i < 8; i++)
        _mm512_store_si512(w[8 * j + i], or_masked(bits_of(r[i], n, mask), shifted_by(r2[i], n2), mask2));
}

HTH_INLINE void q2_k_columns(const uint8_t *const column[16], uint8_t w[64][2][32]) {
    HTH_UNROLL for (int h = 0; h < 2; h++) {
        __m512i r[8];
        eight_words_of_columns(column, 16 + 32 * h, r);
        HTH_UNROLL for (int s = 0; s < 4; s++) put_bits(r, 2 * s, 3, 4 * h + s, w);
    }
}

HTH_INLINE void q3_k_columns(const uint8_t *const column[16], uint8_t w[64][2][32]) {
    __m512i high[8], r[8];
    eight_words_of_columns(column, 0, high);
    HTH_UNROLL for (int h = 0; h < 2; h++) {
        eight_words_of_columns(column, 32 + 32 * h, r);
        HTH_UNROLL for (int s = 0; s < 4; s++) put_both(r, 2 * s, 3, high, 4 * h + s - 2, 4, 4 * h + s, w);
    }
}

HTH_INLINE void q4_k_columns(const uint8_t *const column[16], uint8_t w[64][2][32]) {
    HTH_UNROLL for (int c = 0; c < 4; c++) {
        __m512i r[8];
        eight_words_of_columns(column, 16 + 32 * c, r);
        HTH_UNROLL for (int s = 0; s < 2; s++) put_bits(r, 4 * s, 15, 2 * c + s, w);
    }
}

HTH_INLINE void q5_k_columns(const uint8_t *const column[16], uint8_t w[64][2][32]) {
    __m512i high[8], r[8];
    eight_words_of_columns(column, 16, high);
    HTH_UNROLL for (int c = 0; c < 4; c++) {
        eight_words_of_columns(column, 48 + 32 * c, r);
        HTH_UNROLL for (int s = 0; s < 2; s++) put_both(r, 4 * s, 15, high, 2 * c + s - 4, 16, 2 * c + s, w);
    }
}

HTH_INLINE void q6_k_columns(const uint8_t *const column[16], uint8_t w[64][2][32]) {
    HTH_UNROLL for (int h = 0; h < 2; h++) {
        __m512i high[8], r[8];
        eight_words_of_columns(column, 128 + 32 * h, high);
        HTH_UNROLL for (int c = 0; c < 2; c++) {
            eight_words_of_columns(column, 64 * h + 32 * c, r);
            HTH_UNROLL for (int s = c; s < 4; s += 2) put_both(r, 4 * (s >> 1), 15, high, 2 * s - 4, 48, 4 * h + s, w);
        }
    }
}

HTH_INLINE void iq4_xs_columns(const uint8_t *const column[16], uint8_t w[64][2][32]) {
    HTH_UNROLL for (int c = 0; c < 4; c++) {
        __m512i r[8];
        eight_words_of_columns(column, 8 + 32 * c, r);
        HTH_UNROLL for (int i = 0; i < 16; i++) {
            __m512i nibble = bits_of(r[i >> 3 << 2 | (i & 3)], i & 4, 15);
            _mm512_store_si512(w[16 * c + i], lookup_of_two(iq4_table(), nibble));
        }
    }
}

HTH_INLINE void q2_k_scales_of_columns(const uint8_t *const c[4], __m512i *scale, __m512i *min) {
    __m512i x = four_at(c, 0), low = _mm512_set1_epi8(15);
    *scale = _mm512_and_si512(x, low);
    *min = _mm512_and_si512(_mm512_srli_epi16(x, 4), low);
}

HTH_INLINE void q3_k_scales_of_columns(const uint8_t *const c[4], __m512i *scale, __m512i *min) {
    (void)min;
    *scale = in_lanes(q3_k_scale_bytes(c[0]), q3_k_scale_bytes(c[1]), q3_k_scale_bytes(c[2]), q3_k_scale_bytes(c[3]));
}

HTH_INLINE void k4_scales_of_columns(const uint8_t *const c[4], __m512i *scale, __m512i *min) {
    *scale = k4_bytes(four_at(c, 0));
    *min = _mm512_shuffle_epi32(*scale, 0xEE);
}

HTH_INLINE void q6_k_scales_of_columns(const uint8_t *const c[4], __m512i *scale, __m512i *min) {
    (void)min;
    *scale = four_at(c, 192);
}

HTH_INLINE void iq4_xs_scales_of_columns(const uint8_t *const c[4], __m512i *scale, __m512i *min) {
    __m128i x[4];
    (void)min;
    HTH_UNROLL for (int i = 0; i < 4; i++) x[i] = _mm_cvtsi64_si128((long long)iq4_xs_scale_bytes(c[i]));
    *scale = _mm512_sub_epi8(in_lanes(x[0], x[1], x[2], x[3]), _mm512_set1_epi8(32));
}

static const columns256 columns_q2_k = {&format_q2_k, q2_k_columns, q2_k_scales_of_columns};
static const columns256 columns_q3_k = {&format_q3_k, q3_k_columns, q3_k_scales_of_columns};
static const columns256 columns_q4_k = {&format_q4_k, q4_k_columns, k4_scales_of_columns};
static const columns256 columns_q5_k = {&format_q5_k, q5_k_columns, k4_scales_of_columns};
static const columns256 columns_q6_k = {&format_q6_k, q6_k_columns, q6_k_scales_of_columns};
static const columns256 columns_iq4_xs = {&format_iq4_xs, iq4_xs_columns, iq4_xs_scales_of_columns};

/* Byte i (constant) of each word as a signed number. */
HTH_INLINE __m512i signed_byte(__m512i x, int i) {
    return _mm512_srai_epi32(_mm512_slli_epi32(x, (unsigned)(24 - 8 * i)), 24);
}

/* Two consecutive bytes of each word, from byte i (0 or 2, constant) on, as the upper bytes of its halves. */
HTH_INLINE __m512i two_bytes_up(__m512i x, int i) {
    const int a = 0x80 | i << 8, b = 0x80 | (i + 1) << 8;
    const int first = a | b << 16, step = 0x04000400;
    return _mm512_shuffle_epi8(
        x, _mm512_broadcast_i32x4(_mm_setr_epi32(first, first + step, first + 2 * step, first + 3 * step)));
}

/* The scales of a block of all columns, and what the sums of q are multiplied by: minimums, or -bias * scale. */
HTH_INLINE void fill_scales(const columns256 *f, const uint8_t *const column[16], panel256 *p) {
    const int words = 64 / f->format->sub; /* of four scales each */
    __m512i scale[4], min[4];
    const int bias = bias_for(PRODUCTS_32, f->format->is_signed, f->format->bias);
    int shift = 8;
    while (bias >> (8 - shift) > 1) shift--;
    HTH_UNROLL for (int g = 0; g < 4; g++) {
        const uint8_t *const four[4] = {column[g], column[4 + g], column[8 + g], column[12 + g]};
        f->scales(four, &scale[g], &min[g]);
    }
    HTH_UNROLL for (int k = 0; k < words; k++) {
        __m512i s = words_of_lanes(scale, k), m = f->format->has_min ? words_of_lanes(min, k) : s;
        HTH_UNROLL for (int i = 0; i < 4; i++) _mm512_store_si512(p->scale[4 * k + i], signed_byte(s, i));
        HTH_UNROLL for (int i = 0; i < 2; i++) {
            __m512i term = _mm512_srai_epi16(two_bytes_up(m, 2 * i), (unsigned)shift);
            if (!f->format->has_min) term = _mm512_sub_epi16(_mm512_setzero_si512(), term);
            _mm512_store_si512(p->term[2 * k + i], term);
        }
    }
}

HTH_INLINE void fill256(const columns256 *f, const uint8_t *const column[16], panel256 *p) {
    f->weights(column, p->w);
    fill_scales(f, column, p);
    /* The sixteen bytes that end behind d, or behind dmin. */
    const int d_at = f->format->d_at, at = d_at + 16 > f->format->bytes ? f->format->bytes - 16 : d_at;
    __m512i x[4];
    __m512 low, high;
    bytes_of_columns(column, at, x);
    halves_of_words(words_of_lanes(x, (d_at - at) / 4), &low, &high);
    _mm512_store_ps(p->d[0], (d_at - at) % 4 == 0 ? low : high);
    if (!f->format->has_min) return;
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    _mm512_store_ps(p->m[0], _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(high), sign)));
}
