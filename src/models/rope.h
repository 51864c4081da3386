/* Rotary position embedding: the frequency of each pair of dimensions, as the file's keys and factors say.
 *
 * f_i = base^(-2i/n) / r_i for pair i of n/2, r_i from rope_freqs.weight where the file has it; linear scaling divides
 * by its factor, YaRN blends both between two rotation counts and enlarges cosine and sine. Computed in double, stored
 * as float.
 */
#ifndef HTH_MODELS_ROPE_H
#define HTH_MODELS_ROPE_H

#include "models/decoder.h"

/* Elements of each head that turn: rope.dimension_count, absent: all dk. Even, at most dk. */
int64_t hth_rope_dims(hth_reading *r, const hth_decoder *d);

/* A base, from ARCHITECTURE.suffix; absent 0: the key must be there. */
double hth_rope_base(hth_reading *r, const char *suffix, double absent);

/* Emit the angles of a pass, with the file's rope factors and scaling; other kinds than linear and yarn are refused. */
hth_tensor_id hth_rope_angles(hth_reading *r, const hth_decoder *d, const char *site, int64_t n_rot, double base);
/* The same, but YaRN blends between two real numbers of pairs instead of whole ones around them. */
hth_tensor_id hth_rope_unrounded_angles(hth_reading *r, const hth_decoder *d, const char *site, int64_t n_rot,
                                        double base);
/* The same without factors and scaling. */
hth_tensor_id hth_rope_plain_angles(hth_reading *r, const char *site, int64_t n_rot, double base);

#endif
