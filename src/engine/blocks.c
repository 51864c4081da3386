#include <assert.h>

#include "engine/engine.h"

void hth_blocks_init(hth_blocks *pool) {
    pool->free_count = pool->total;
    for (int64_t i = 0; i < pool->total; i++) {
        pool->free_list[i] = (int32_t)(pool->total - 1 - i);
        pool->references[i] = 0;
        pool->fill[i] = 0;
    }
}

int32_t hth_blocks_take(hth_blocks *pool) {
    assert(pool->free_count > 0);
    int32_t block = pool->free_list[--pool->free_count];
    assert(pool->references[block] == 0);
    pool->references[block] = 1;
    pool->fill[block] = 0;
    return block;
}

void hth_blocks_hold(hth_blocks *pool, int32_t block) {
    assert(pool->references[block] > 0);
    pool->references[block]++;
}

hearth_status hth_blocks_short(const hearth_engine *e, int64_t need, int64_t available, hearth_error *err) {
    return hth_fail(err, HEARTH_TOO_LONG,
                    "a call needs %lld KV block%s and %lld of %lld are free: others are held by %lld mark%s",
                    (long long)need, hth_plural(need), (long long)available, (long long)e->blocks.total,
                    (long long)e->marks.used, hth_plural(e->marks.used));
}

void hth_blocks_drop(hth_blocks *pool, int32_t block) {
    assert(pool->references[block] > 0);
    if (--pool->references[block] == 0) pool->free_list[pool->free_count++] = block;
}
