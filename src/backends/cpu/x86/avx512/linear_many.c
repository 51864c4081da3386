/* Tiles of up to six rows by 32 columns, which are the lanes of two registers. A load of four bytes of a row serves
 * both: with sixteen columns, loads would bound the rate. */
#include "backends/cpu/x86/avx512/linear.h"
#include "backends/cpu/x86/avx512/panel512.h"

enum { STRIP = 24, MOST_ROWS = 6, PANELS = 2, GROUP = 2, VECTORS = 2 };
#define HEIGHT_LIST(X, ...)                                                                                            \
    X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)

typedef __m512i ints;
typedef __m512 floats;

typedef columns32 many_format32;
typedef columns256 many_format256;
#define MANY_FORMAT(name) columns_##name

#include "backends/cpu/x86/linear_vnni.h"

HTH_INLINE ints zero(void) {
    return _mm512_setzero_si512();
}

HTH_INLINE ints load_ints(const void *p) {
    return _mm512_load_si512(p);
}

HTH_INLINE floats load_floats(const float *p) {
    return _mm512_load_ps(p);
}

HTH_INLINE void store_floats(float *p, floats v) {
    _mm512_store_ps(p, v);
}

HTH_INLINE ints every4(const void *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm512_set1_epi32(v);
}

HTH_INLINE floats every_float(const float *p) {
    return _mm512_set1_ps(*p);
}

HTH_INLINE ints add_bytes(ints acc, ints w, ints q) {
    return _mm512_dpbusd_epi32(acc, w, q);
}

HTH_INLINE ints add_halves(ints acc, ints a, ints b) {
    return _mm512_dpwssd_epi32(acc, a, b);
}

HTH_INLINE ints add_scaled(ints acc, ints v, ints scale) {
    return _mm512_add_epi32(acc, _mm512_mullo_epi32(v, scale));
}

HTH_INLINE floats to_floats(ints v) {
    return _mm512_cvtepi32_ps(v);
}

HTH_INLINE floats multiply(floats a, floats b) {
    return _mm512_mul_ps(a, b);
}

HTH_INLINE floats multiply_add(floats a, floats b, floats c) {
    return _mm512_fmadd_ps(a, b, c);
}

VNNI_LINEARS(hth_avx512)
