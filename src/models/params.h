/* Hyper-parameters: keys ARCHITECTURE.suffix, each with its range. A key that is missing, of the wrong type or out of
 * range is a named error that sticks in the builder; the answer is then the least value allowed, so a recipe may go on.
 * Suffixes are string literals (they are remembered). */
#ifndef HTH_MODELS_PARAMS_H
#define HTH_MODELS_PARAMS_H

#include "models/reading.h"

/* Caps of everything that becomes a dimension or a loop bound. */
#define HTH_MAX_LAYERS   1024
#define HTH_MAX_EMBD     (INT64_C(1) << 20)
#define HTH_MAX_HEADS    4096
#define HTH_MAX_HEAD_DIM 1024
#define HTH_MAX_VOCAB    (INT64_C(1) << 24)
#define HTH_MAX_CONTEXT  (INT64_C(1) << 40)

bool hth_param_has(const hth_reading *r, const char *suffix); /* does not count as reading it */

int64_t hth_param_int(hth_reading *r, const char *suffix, int64_t min, int64_t max);
int64_t hth_param_int_or(hth_reading *r, const char *suffix, int64_t min, int64_t max, int64_t absent);
double hth_param_float(hth_reading *r, const char *suffix, double min, double max);
double hth_param_float_or(hth_reading *r, const char *suffix, double min, double max, double absent);

/* A string, or {NULL, 0} when absent. */
hth_string hth_param_string(hth_reading *r, const char *suffix);

/* A number, or one for each layer: out[0 .. layers-1]. */
void hth_param_per_layer(hth_reading *r, const char *suffix, int layers, int64_t min, int64_t max, int64_t *out);

/* Which layers are of one of two kinds (slide, are recurrent): a bool for each layer, or a period n (layer i is iff
 * i mod n < n - 1; 1: none; 0: all), or absent: the period `absent`. */
void hth_param_window_pattern(hth_reading *r, const char *suffix, int layers, int64_t absent, bool *out);

/* Refuse a feature by name when its key is there and not zero: the text says what the key stands for. */
void hth_param_refuse(hth_reading *r, const char *suffix, const char *what);

#endif
