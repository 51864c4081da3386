/* Making mapped weights present before the first call touches them. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/engine.h"

/* The embedding table is looked up a row at a time; only where a linear multiplies by it too is all of it read. */
static bool read_whole(const hth_program *p, hth_tensor_id id) {
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; k < HTH_OP_WEIGHTS && p->ops[i].opcode != HTH_OP_EMBED; k++)
            if (p->ops[i].weight[k] == id) return true;
    return false;
}

static void touch(const volatile unsigned char *p, size_t size, size_t page) {
    for (size_t i = 0; i < size; i += page) (void)p[i];
}

static hearth_status populate(const hth_file_view *file, const hth_weight *w, bool lock, hearth_error *err) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t from = w->offset / page * page, to = (w->offset + w->bytes + page - 1) / page * page;
    if (to > file->size) to = (file->size + page - 1) / page * page;
    unsigned char *start = (unsigned char *)file->base + from;
    size_t size = (size_t)(to - from);
#ifdef MADV_POPULATE_READ
    int failed = madvise(start, size, MADV_POPULATE_READ);
#else
    int failed = -1;
#endif
    if (failed) touch(start, size, page);
    if (lock && mlock(start, size) != 0)
        return hth_fail(err, HEARTH_NO_MEMORY, "cannot lock %llu bytes of weights: %s", (unsigned long long)size,
                        strerror(errno));
    return HEARTH_OK;
}

hearth_status hth_make_resident(const hearth_engine *e, bool lock, uint64_t *bytes, hearth_error *err) {
    const hth_program *p = e->program;
    *bytes = 0;
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; k < HTH_OP_WEIGHTS; k++) {
            hth_tensor_id id = p->ops[i].weight[k];
            if (id == HTH_NONE || p->tensors[id].class != HTH_WEIGHT) continue;
            if (p->ops[i].opcode == HTH_OP_EMBED || !read_whole(p, id)) continue;
            const hth_weight *w = &p->tensors[id].weight;
            HTH_TRY(populate(&e->files[w->file], w, lock, err));
            *bytes += hth_weight_bytes(&p->tensors[id]);
        }
    return HEARTH_OK;
}
