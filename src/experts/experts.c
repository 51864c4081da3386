#include "experts/experts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct hth_expert_store {
    hth_expert_layer *layers;
    int64_t **leased; /* [layers][experts]: leases that are out */
    int count;
    int64_t total; /* of leased */
};

/* One allocation behind leased[0] for the counters of all layers. */
static hearth_status make_counters(hth_expert_store *store, hearth_error *err) {
    size_t experts = 0;
    for (int i = 0; i < store->count; i++) experts += (size_t)store->layers[i].experts;
    store->leased = calloc((size_t)store->count + 1, sizeof *store->leased);
    int64_t *counters = calloc(experts + 1, sizeof *counters);
    if (!store->leased || !counters) {
        free(counters);
        return hth_fail(err, HEARTH_NO_MEMORY, "no memory to keep track of %zu experts", experts);
    }
    store->leased[0] = counters;
    for (int i = 1; i < store->count; i++) store->leased[i] = store->leased[i - 1] + store->layers[i - 1].experts;
    return HEARTH_OK;
}

hearth_status hth_expert_store_create(const hth_expert_layer *layers, int count, hth_expert_store **out,
                                      hearth_error *err) {
    *out = NULL;
    hth_expert_store *store = calloc(1, sizeof *store);
    if (store) store->layers = calloc((size_t)count + 1, sizeof *store->layers);
    if (!store || !store->layers) {
        free(store);
        return hth_fail(err, HEARTH_NO_MEMORY, "no memory for the experts of %d layers", count);
    }
    if (count > 0) memcpy(store->layers, layers, (size_t)count * sizeof *layers);
    store->count = count;
    hearth_status status = make_counters(store, err);
    if (status != HEARTH_OK) hth_expert_store_free(&store);
    *out = store;
    return status;
}

void hth_expert_store_free(hth_expert_store **out) {
    hth_expert_store *store = *out;
    if (!store) return;
    assert(store->total == 0);
    if (store->leased) free(store->leased[0]);
    free(store->leased);
    free(store->layers);
    free(store);
    *out = NULL;
}

void hth_expert_acquire(hth_expert_store *store, int layer, const int32_t *ids, int64_t n, hth_expert_lease *leases) {
    assert(layer >= 0 && layer < store->count);
    const hth_expert_layer *l = &store->layers[layer];
    for (int64_t i = 0; i < n; i++) {
        assert(ids[i] >= 0 && ids[i] < l->experts && (i == 0 || ids[i] > ids[i - 1]));
        leases[i] = (hth_expert_lease){.layer = layer, .expert = ids[i]};
        for (int m = 0; m < HTH_EXPERT_MATRICES; m++)
            leases[i].matrix[m] = (const unsigned char *)l->base[m] + (uint64_t)ids[i] * l->stride[m];
        store->leased[layer][ids[i]]++;
    }
    store->total += n;
}

void hth_expert_release(hth_expert_store *store, hth_expert_lease *leases, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        hth_expert_lease *lease = &leases[i];
        assert(lease->matrix[0] && store->leased[lease->layer][lease->expert] > 0);
        store->leased[lease->layer][lease->expert]--;
        memset((void *)lease->matrix, 0, sizeof lease->matrix);
    }
    store->total -= n;
}

int64_t hth_expert_leases(const hth_expert_store *store) {
    return store->total;
}
