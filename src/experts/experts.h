/* The store of expert weights: the one way to the matrices of an expert.
 *
 * A layer (one mixture of experts of the program) is three stacks of matrices. Who computes with some of its experts
 * acquires them, uses the addresses in the leases, and releases them: nobody else computes an expert's address, and no
 * address outlives its lease. All stacks are mapped as a whole, so acquiring is immediate and cannot fail; a store
 * whose experts come and go stands behind the same functions.
 *
 * Threads: acquire and release are called by one thread at a time, each call after the one before has returned (in a
 * pass: either side of a barrier). Leases are read by any thread between the two.
 */
#ifndef HTH_EXPERTS_EXPERTS_H
#define HTH_EXPERTS_EXPERTS_H

#include <stdint.h>

#include "base/status.h"

typedef enum hth_expert_matrix {
    HTH_EXPERT_GATE,
    HTH_EXPERT_UP,
    HTH_EXPERT_DOWN,
    HTH_EXPERT_MATRICES
} hth_expert_matrix;

/* Expert e's matrix i starts at base[i] + e * stride[i]. */
typedef struct hth_expert_layer {
    const void *base[HTH_EXPERT_MATRICES];
    uint64_t stride[HTH_EXPERT_MATRICES];
    int64_t experts;
} hth_expert_layer;

typedef struct hth_expert_lease {
    int32_t layer, expert;
    const void *matrix[HTH_EXPERT_MATRICES]; /* NULL after release */
} hth_expert_lease;

typedef struct hth_expert_store hth_expert_store;

/* A store over layers whose memory outlives it; the array is copied. */
hearth_status hth_expert_store_create(const hth_expert_layer *layers, int count, hth_expert_store **out,
                                      hearth_error *err);
/* NULL is allowed. Every lease has been released. */
void hth_expert_store_free(hth_expert_store **store);

/* Lease n experts of a layer: ids are increasing, leases[i] is that of ids[i]. */
void hth_expert_acquire(hth_expert_store *store, int layer, const int32_t *ids, int64_t n, hth_expert_lease *leases);
/* Give leases back, each exactly once, in any order and grouping. */
void hth_expert_release(hth_expert_store *store, hth_expert_lease *leases, int64_t n);

/* Leases that are out. */
int64_t hth_expert_leases(const hth_expert_store *store);

#endif
