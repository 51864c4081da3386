/* Tiles of up to six rows by sixteen columns: twelve sums, two weights and an activation fill the registers. */
#include "backends/cpu/x86/avxvnni/linear.h"
#include "backends/cpu/x86/unpack256.h"

enum { STRIP = 24, MOST_ROWS = 6, PANELS = 1, GROUP = 4, VECTORS = 2 };
#define HEIGHT_LIST(X, ...)                                                                                            \
    X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)

typedef __m256i ints;
typedef __m256 floats;

typedef format32 many_format32;
typedef format256 many_format256;
#define MANY_FORMAT(name) format_##name

#include "backends/cpu/x86/linear_vnni.h"

#include "backends/cpu/x86/panel256.h"

HTH_INLINE ints zero(void) {
    return _mm256_setzero_si256();
}

HTH_INLINE ints load_ints(const void *p) {
    return _mm256_load_si256((const __m256i *)p);
}

HTH_INLINE floats load_floats(const float *p) {
    return _mm256_load_ps(p);
}

HTH_INLINE void store_floats(float *p, floats v) {
    _mm256_store_ps(p, v);
}

HTH_INLINE ints every4(const void *p) {
    return broadcast32(p);
}

HTH_INLINE floats every_float(const float *p) {
    return _mm256_broadcast_ss(p);
}

HTH_INLINE ints add_bytes(ints acc, ints w, ints q) {
    return _mm256_dpbusd_avx_epi32(acc, w, q);
}

HTH_INLINE ints add_halves(ints acc, ints a, ints b) {
    return _mm256_dpwssd_avx_epi32(acc, a, b);
}

HTH_INLINE ints add_scaled(ints acc, ints v, ints scale) {
    return _mm256_add_epi32(acc, _mm256_mullo_epi32(v, scale));
}

HTH_INLINE floats to_floats(ints v) {
    return _mm256_cvtepi32_ps(v);
}

HTH_INLINE floats multiply(floats a, floats b) {
    return _mm256_mul_ps(a, b);
}

HTH_INLINE floats multiply_add(floats a, floats b, floats c) {
    return _mm256_fmadd_ps(a, b, c);
}

VNNI_LINEARS(hth_avxvnni)
