#include "backends/cpu/kernels.h"
#include "base/math.h"

/* Binary64: the decay of a head that forgets slowly differs from 1 by little, and is raised to the power of the rows
 * that follow. */
void hth_delta_gates(float alpha, float b, float a, float dt, float *decay, float *beta) {
    double x = (double)alpha + (double)dt;
    double softplus = x > 20 ? x : hth_log(1 + hth_exp(x));
    *decay = (float)hth_exp((double)a * softplus);
    *beta = (float)(1 / (1 + hth_exp(-(double)b)));
}
