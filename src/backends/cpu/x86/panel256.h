/* Filling a panel of linear_many.h on 256-bit vectors, eight columns at a time. Included by tiers after linear_many.h.
 */
HTH_INLINE void store256(void *p, __m256i v) {
    _mm256_store_si256((__m256i *)p, v);
}

HTH_INLINE __m256i bytes_for(products_kind kind, bool is_signed, __m256i w) {
    return kind == PRODUCTS_32 && is_signed ? _mm256_xor_si256(w, _mm256_set1_epi8(-128)) : w;
}

/* One block of eight columns into half g of a panel. */
HTH_INLINE void unpack32(const format32 *f, products_kind kind, const uint8_t *const column[8], panel32 *p, int g) {
    __m256i v[8];
    HTH_UNROLL for (int c = 0; c < 8; c++) v[c] = bytes_for(kind, f->is_signed, f->weights(column[c]));
    transpose8x8(v);
    HTH_UNROLL for (int i = 0; i < 8; i++) store256(p->w[i][g], v[i]);
    if (f->is_e8m0) {
        __m256i e = _mm256_setr_epi32(*column[0], *column[1], *column[2], *column[3], *column[4], *column[5],
                                      *column[6], *column[7]);
        _mm256_store_ps(p->d[g], e8m0_scales(e));
    } else {
        _mm256_store_ps(p->d[g], halves_at(column, 0));
    }
    if (f->has_min) _mm256_store_ps(p->m[g], halves_at(column, 2));
}

/* Eight 16-bit scales as the lanes of a panel. */
HTH_INLINE __m256i scale_lanes(products_kind kind, __m128i x) {
    if (kind == PRODUCTS_32) return _mm256_cvtepi16_epi32(x);
    return _mm256_set_m128i(_mm_unpackhi_epi16(x, x), _mm_unpacklo_epi16(x, x));
}

HTH_INLINE void unpack256(const format256 *f, products_kind kind, const uint8_t *const column[8], panel256 *p, int g) {
    for (int j = 0; j < 8; j++) {
        __m256i v[8];
        HTH_UNROLL for (int c = 0; c < 8; c++) v[c] = bytes_for(kind, f->is_signed, f->weights(column[c], j));
        transpose8x8(v);
        HTH_UNROLL for (int i = 0; i < 8; i++) store256(p->w[8 * j + i][g], v[i]);
    }
    __m256i first[8], last[8], term[8];
    HTH_UNROLL for (int c = 0; c < 8; c++) {
        __m256i scale;
        f->scales(column[c], &scale, &term[c]);
        first[c] = scale_lanes(kind, _mm256_castsi256_si128(scale));
        last[c] = scale_lanes(kind, _mm256_extracti128_si256(scale, 1));
        if (kind == PRODUCTS_32 && f->is_signed) {
            __m256i natural = _mm256_zextsi128_si256(_mm256_castsi256_si128(scale));
            term[c] = _mm256_mullo_epi16(natural, _mm256_set1_epi16(-128));
        }
    }
    /* Sub-block 2j of 16 is the first half of weights(j), 2j + 1 the last one; one of 32 is both. */
    transpose8x8(first);
    HTH_UNROLL for (int j = 0; j < 8; j++) store256(p->scale[32 / f->sub * j][g], first[j]);
    if (f->sub == 16) {
        transpose8x8(last);
        HTH_UNROLL for (int j = 0; j < 8; j++) store256(p->scale[2 * j + 1][g], last[j]);
    }
    if (f->has_min || bias_for(kind, f->is_signed, f->bias)) {
        transpose8x8(term);
        HTH_UNROLL for (int j = 0; j < 128 / f->sub; j++) store256(p->term[j][g], term[j]);
    }
    _mm256_store_ps(p->d[g], halves_at(column, f->d_at));
    if (f->has_min) _mm256_store_ps(p->m[g], negative(halves_at(column, f->dmin_at)));
}

HTH_INLINE void fill32(const format32 *f, const uint8_t *const column[PANEL], panel32 *p) {
    HTH_UNROLL for (int g = 0; g < 2; g++) unpack32(f, (products_kind)KIND, column + 8 * g, p, g);
}

HTH_INLINE void fill256(const format256 *f, const uint8_t *const column[PANEL], panel256 *p) {
    HTH_UNROLL for (int g = 0; g < 2; g++) unpack256(f, (products_kind)KIND, column + 8 * g, p, g);
}
