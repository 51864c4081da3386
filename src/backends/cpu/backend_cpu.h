/* The CPU backend, for the registry. */
#ifndef HTH_BACKENDS_CPU_BACKEND_CPU_H
#define HTH_BACKENDS_CPU_BACKEND_CPU_H

#include "backends/backend.h"

extern const hth_backend_type hth_backend_cpu;

#endif
