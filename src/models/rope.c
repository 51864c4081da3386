#include "models/rope.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/math.h"

#define MAX_PAIRS (HTH_MAX_HEAD_DIM / 2)

typedef enum scaling_kind { UNSCALED, LINEAR, YARN } scaling_kind;

typedef struct scaling {
    scaling_kind kind;
    double factor;    /* how much longer than trained a context is meant to be */
    double low, high; /* YaRN: pairs below low keep their frequency, from high on it is divided by factor */
    double magnitude; /* of cosine and sine */
} scaling;

int64_t hth_rope_dims(hth_reading *r, const hth_decoder *d) {
    int64_t n = hth_param_int_or(r, "rope.dimension_count", 2, HTH_MAX_HEAD_DIM, d->dk);
    if (n % 2 != 0 || n > d->dk)
        hth_builder_fail(r->b, HEARTH_BAD_FILE,
                         "key \"%s.rope.dimension_count\" is %" PRId64 ", must be even and at most the head's %" PRId64,
                         r->architecture, n, d->dk);
    return n;
}

double hth_rope_base(hth_reading *r, const char *suffix, double absent) {
    return absent > 0 ? hth_param_float_or(r, suffix, 1, 1e15, absent) : hth_param_float(r, suffix, 1, 1e15);
}

/* ---- Scaling ----------------------------------------------------------------------------------------------------- */

static scaling_kind read_kind(hth_reading *r) {
    hth_string type = hth_param_string(r, "rope.scaling.type");
    if (!type.data || hth_string_equals(type, "linear")) return LINEAR;
    if (hth_string_equals(type, "none")) return UNSCALED;
    if (hth_string_equals(type, "yarn")) return YARN;
    hth_builder_fail(
        r->b, HEARTH_UNSUPPORTED,
        "key \"%s.rope.scaling.type\" is \"%.*s\", which is not supported; supported are none, linear, yarn",
        r->architecture, type.size < 40 ? (int)type.size : 40, type.data);
    return UNSCALED;
}

/* The scaling's factor; 0 or absent: none. */
static double read_factor(hth_reading *r) {
    double old_name = hth_param_float_or(r, "rope.scale_linear", 0, 1e6, 0);
    double factor = hth_param_float_or(r, "rope.scaling.factor", 0, 1e6, old_name);
    return factor > 0 ? factor : 1;
}

/* The pair, as a real number, that turns `rotations` times within the trained context. */
static double pair_of_rotations(double rotations, int64_t n_rot, double base, double trained) {
    const double pi = 3.14159265358979323846;
    return (double)n_rot * hth_log(trained / (2 * pi * rotations)) / (2 * hth_log(base));
}

static void read_yarn(hth_reading *r, const hth_decoder *d, int64_t n_rot, double base, bool rounded, scaling *s) {
    double trained =
        (double)hth_param_int_or(r, "rope.scaling.original_context_length", 1, HTH_MAX_CONTEXT, d->context);
    double fast = hth_param_float_or(r, "rope.scaling.yarn_beta_fast", 1e-6, 1e6, 32);
    double slow = hth_param_float_or(r, "rope.scaling.yarn_beta_slow", 1e-6, 1e6, 1);
    double attention = hth_param_float_or(r, "rope.scaling.attn_factor", 1e-6, 1e6, 1);
    if (base == 1)
        hth_builder_fail(r->b, HEARTH_BAD_FILE, "key \"%s.rope.freq_base\" is 1, which yarn scaling cannot use",
                         r->architecture);
    if (hth_builder_failed(r->b)) return;
    s->low = pair_of_rotations(fast, n_rot, base, trained);
    s->high = pair_of_rotations(slow, n_rot, base, trained);
    if (rounded) {
        s->low = floor(s->low);
        s->high = ceil(s->high);
    }
    if (s->low < 0) s->low = 0;
    if (s->high > (double)(n_rot - 1)) s->high = (double)(n_rot - 1);
    s->magnitude = s->factor > 1 ? attention * (1 + 0.1 * hth_log(s->factor)) : attention;
}

static scaling read_scaling(hth_reading *r, const hth_decoder *d, int64_t n_rot, double base, bool rounded) {
    scaling s = {.kind = read_kind(r), .factor = read_factor(r), .magnitude = 1};
    if (s.kind == UNSCALED) s.factor = 1;
    if (s.kind == YARN) read_yarn(r, d, n_rot, base, rounded, &s);
    return s;
}

/* What pair i's frequency is multiplied by. */
static double scale_of_pair(const scaling *s, int64_t i) {
    if (s->kind != YARN) return 1 / s->factor;
    double span = s->high - s->low > 0.001 ? s->high - s->low : 0.001;
    double beyond = ((double)i - s->low) / span;
    double kept = beyond < 0 ? 1 : beyond > 1 ? 0 : 1 - beyond;
    return (1 - kept) / s->factor + kept;
}

/* ---- Frequencies ------------------------------------------------------------------------------------------------- */

/* Read the divisors r_i; all 1 when the file has none. */
static void read_factors(hth_reading *r, int64_t pairs, float *factors) {
    for (int64_t i = 0; i < pairs; i++) factors[i] = 1;
    if (!hth_bind_has(r, "rope_freqs.weight") || !hth_bind_copy(r, "rope_freqs.weight", pairs, factors)) return;
    for (int64_t i = 0; i < pairs; i++)
        if (!(factors[i] > 0 && isfinite(factors[i]))) {
            hth_builder_fail(r->b, HEARTH_BAD_FILE,
                             "tensor rope_freqs.weight: factor %" PRId64 " is %g, must be above 0", i,
                             (double)factors[i]);
            return;
        }
}

static hth_tensor_id emit_angles(hth_reading *r, const char *site, int64_t n_rot, double base, const float *factors,
                                 const scaling *s) {
    if (hth_builder_failed(r->b)) return HTH_NONE;
    float frequencies[MAX_PAIRS];
    for (int64_t i = 0; i < n_rot / 2; i++) {
        double f = hth_pow(base, -2.0 * (double)i / (double)n_rot) / (double)(factors ? factors[i] : 1);
        frequencies[i] = (float)(f * scale_of_pair(s, i));
    }
    char name[64];
    snprintf(name, sizeof name, "%s.frequencies", site);
    hth_tensor_id table = hth_build_constant(r->b, name, frequencies, n_rot / 2);
    return hth_emit_rope_angles(r->b, site, table, (float)s->magnitude);
}

static hth_tensor_id scaled_angles(hth_reading *r, const hth_decoder *d, const char *site, int64_t n_rot, double base,
                                   bool rounded) {
    if (hth_builder_failed(r->b)) return HTH_NONE;
    float factors[MAX_PAIRS];
    read_factors(r, n_rot / 2, factors);
    scaling s = read_scaling(r, d, n_rot, base, rounded);
    return emit_angles(r, site, n_rot, base, factors, &s);
}

hth_tensor_id hth_rope_angles(hth_reading *r, const hth_decoder *d, const char *site, int64_t n_rot, double base) {
    return scaled_angles(r, d, site, n_rot, base, true);
}

hth_tensor_id hth_rope_unrounded_angles(hth_reading *r, const hth_decoder *d, const char *site, int64_t n_rot,
                                        double base) {
    return scaled_angles(r, d, site, n_rot, base, false);
}

hth_tensor_id hth_rope_plain_angles(hth_reading *r, const char *site, int64_t n_rot, double base) {
    static const scaling none = {.kind = UNSCALED, .factor = 1, .magnitude = 1};
    return emit_angles(r, site, n_rot, base, NULL, &none);
}
