/* The groups of linear_few.h on 256-bit vectors: eight blocks of the stream. Included after it by tiers, which define
 * the primitives. */
/* ---- Defined by the including file ---- */

/* The products of unsigned bytes w (0..max, constant) with q as partial sums for add_partials: in 16-bit lanes or
 * 32-bit ones. */
HTH_INLINE __m256i products(__m256i w, __m256i q, int max);
/* Lane i: the sum of all lanes of v[i], products with weights up to max. */
HTH_INLINE __m256i sum_products(const __m256i v[8], int max);
/* acc + a0 * b0 + a1 * b1 over pairs of 16-bit lanes. */
HTH_INLINE __m256i add_pairs(__m256i acc, __m256i a, __m256i b);

/* ---- Blocks of 32 ---- */

/* |w| times q with w's sign for signed weights. */
HTH_INLINE __m256i multiply(bool is_signed, int max, __m256i w, __m256i q) {
    return is_signed ? products(_mm256_abs_epi8(w), _mm256_sign_epi8(q, w), max) : products(w, q, max);
}

/* The scales of eight blocks of the stream, and with has_min their minimums. */
HTH_INLINE void scales_of_stream(const format32 *f, const uint8_t *b, __m256 *d, __m256 *m) {
    const int n = f->bytes;
    *m = _mm256_setzero_ps();
    if (f->is_e8m0) {
        *d = e8m0_scales(_mm256_setr_epi32(b[0], b[n], b[2 * n], b[3 * n], b[4 * n], b[5 * n], b[6 * n], b[7 * n]));
        return;
    }
    __m256i x = words8(b, n), low = _mm256_and_si256(x, _mm256_set1_epi32(0xFFFF));
    if (!f->has_min) {
        *d = _mm256_cvtph_ps(_mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1)));
        return;
    }
    x = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, _mm256_srli_epi32(x, 16)), 0xD8);
    *d = _mm256_cvtph_ps(_mm256_castsi256_si128(x));
    *m = _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1));
}

/* f of eight consecutive blocks of the stream for each row; `at` is the stream's position in the activations. */
HTH_INLINE void group32(const format32 *f, const uint8_t *w, const char *ahead, const input *in, int rows, int64_t at,
                        int64_t to) {
    __m256i weights[8], p[8];
    fetch(ahead, ahead + 8 * f->bytes);
    HTH_UNROLL for (int i = 0; i < 8; i++) weights[i] = f->weights(w + i * f->bytes);
    __m256 d, m;
    scales_of_stream(f, w, &d, &m);
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        const int8_t *q = in[r].q + 32 * at;
        HTH_UNROLL for (int i = 0; i < 8; i++) p[i] = multiply(f->is_signed, f->max, weights[i], load256(q + 32 * i));
        __m256i s = sum_products(p, f->max);
        const char *side = (const char *)in[r].side + 4 * at;
        __m256 v;
        if (f->has_min) {
            v = _mm256_fmadd_ps(_mm256_cvtepi32_ps(s), d, _mm256_mul_ps(m, _mm256_loadu_ps((const float *)side)));
        } else {
            if (f->bias) s = _mm256_sub_epi32(s, load256(side));
            v = _mm256_mul_ps(_mm256_cvtepi32_ps(s), d);
        }
        _mm256_storeu_ps(in[r].f + to, v);
    }
}

/* ---- Blocks of 256 ---- */

/* Lane j of each half of the scales in every lane of that half. */
HTH_INLINE __m256i scale_of(__m256i scale, int j) {
    return _mm256_shuffle_epi8(scale, _mm256_set1_epi16((short)(0x0100 + 0x0202 * j)));
}

/* The partial sums of S, and of M with a minimum, of one block for each row. */
HTH_INLINE void block256(const format256 *f, const uint8_t *w, const input *in, int rows, int64_t at,
                         __m256i s[MAX_ROWS], __m256i m[MAX_ROWS]) {
    __m256i weights[8], scale, term;
    f->scales(w, &scale, &term);
    HTH_UNROLL for (int j = 0; j < 8; j++) weights[j] = f->weights(w, j);
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        const int8_t *q = in[r].q + 256 * at;
        const __m256i zero = _mm256_setzero_si256();
        s[r] = zero;
        if (f->has_min || f->bias) {
            __m256i t = add_pairs(zero, term, load256((const char *)in[r].side + 32 * at));
            if (f->has_min) m[r] = t;
            else s[r] = t;
        }
        HTH_UNROLL for (int j = 0; j < 8; j++) {
            __m256i x = load256(q + 32 * j), p;
            if (f->is_signed) p = _mm256_maddubs_epi16(_mm256_abs_epi8(weights[j]), _mm256_sign_epi8(x, weights[j]));
            else p = _mm256_maddubs_epi16(weights[j], x);
            s[r] = in_order(add_pairs(s[r], p, scale_of(scale, j)));
        }
    }
}

/* Two blocks, as the first level of sums32. */
HTH_INLINE void pair256(const format256 *f, const uint8_t *w, const char *ahead, const input *in, int rows, int64_t at,
                        __m256i s[MAX_ROWS], __m256i m[MAX_ROWS]) {
    __m256i s1[MAX_ROWS], m1[MAX_ROWS];
    fetch(ahead, ahead + 2 * f->bytes);
    block256(f, w, in, rows, at, s, m);
    block256(f, w + f->bytes, in, rows, at + 1, s1, m1);
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        s[r] = add_halves32(s[r], s1[r]);
        if (f->has_min) m[r] = add_halves32(m[r], m1[r]);
    }
}

HTH_INLINE void group256(const format256 *f, const uint8_t *w, const char *ahead, const input *in, int rows, int64_t at,
                         int64_t to) {
    __m256i s[2][MAX_ROWS], m[2][MAX_ROWS];
    for (int h = 0; h < 2; h++) {
        const uint8_t *b = w + 4 * h * f->bytes;
        const char *of = ahead + 4 * h * f->bytes;
        __m256i s0[MAX_ROWS], s1[MAX_ROWS], m0[MAX_ROWS], m1[MAX_ROWS];
        pair256(f, b, of, in, rows, at + 4 * h, s0, m0);
        pair256(f, b + 2 * f->bytes, of + 2 * f->bytes, in, rows, at + 4 * h + 2, s1, m1);
        HTH_UNROLL for (int r = 0; r < rows; r++) {
            s[h][r] = _mm256_add_epi32(evens32(s0[r], s1[r]), odds32(s0[r], s1[r]));
            if (f->has_min) m[h][r] = _mm256_add_epi32(evens32(m0[r], m1[r]), odds32(m0[r], m1[r]));
        }
    }
    __m256 d = halves8(w + f->d_at, f->bytes), dmin = _mm256_setzero_ps();
    if (f->has_min) dmin = negative(halves8(w + f->dmin_at, f->bytes));
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        __m256 v = _mm256_cvtepi32_ps(join_halves(s[0][r], s[1][r]));
        if (f->has_min)
            v = _mm256_fmadd_ps(v, d, _mm256_mul_ps(dmin, _mm256_cvtepi32_ps(join_halves(m[0][r], m[1][r]))));
        else v = _mm256_mul_ps(v, d);
        _mm256_storeu_ps(in[r].f + to, v);
    }
}

/* ---- Columns ---- */

HTH_INLINE void finish_columns(const hth_linear *a, int64_t r, int64_t c, int64_t n, const float *f, const float *dy,
                               int64_t blocks) {
    __m256 acc[2];
    acc[0] = acc[1] = _mm256_setzero_ps();
    for (int64_t b = 0; b < blocks; b += 8) {
        __m256i v[2][8];
        HTH_UNROLL for (int i = 0; i < 16; i++) v[i / 8][i % 8] = load256(f + i * blocks + b);
        transpose8x8(v[0]);
        transpose8x8(v[1]);
        HTH_UNROLL for (int i = 0; i < 8; i++) {
            if (i >= blocks - b) break;
            __m256 d = _mm256_broadcast_ss(dy + b + i);
            acc[0] = _mm256_fmadd_ps(_mm256_castsi256_ps(v[0][i]), d, acc[0]);
            acc[1] = _mm256_fmadd_ps(_mm256_castsi256_ps(v[1][i]), d, acc[1]);
        }
    }
    finish8(a, r, c, n, acc[0]);
    if (n > 8) finish8(a, r, c + 8, n - 8, acc[1]);
}
