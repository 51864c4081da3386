/* The attention stage: cutting a pass into pieces of work, and doing one.
 *
 * A piece is one kv head and a chunk of rows of one sequence. Unsplit, a thread takes a piece through all its tiles and
 * merges as it goes. Split, the tiles of a piece are shared out; each tile's partial result is kept, and the MERGE
 * stage adds them in increasing tile order. The sums are the same: a tile's result depends on its own keys alone, and
 * tiles are merged one by one in order either way.
 */
#include <math.h>
#include <string.h>

#include "backends/cpu/executable.h"

/* Tiles t0..t1-1 hold the keys that rows at positions p0..p1 see. */
static void tile_range(int64_t p0, int64_t p1, int64_t window, int64_t *t0, int64_t *t1) {
    int64_t first = window > 0 && p0 - window + 1 > 0 ? p0 - window + 1 : 0;
    *t0 = first / HTH_KV_BLOCK;
    *t1 = p1 / HTH_KV_BLOCK + 1;
}

/* Of rows at positions p0 .. p0+rows-1, those that see a key of tile t: ra..rb-1, with their slots lo..hi-1. */
static void visible_rows(int64_t p0, int64_t rows, int64_t window, int64_t t, int64_t *ra, int64_t *rb, int32_t *lo,
                         int32_t *hi) {
    int64_t start = t * HTH_KV_BLOCK;
    *ra = start > p0 ? start - p0 : 0;
    *rb = rows;
    if (window > 0 && start + HTH_KV_BLOCK - 1 + window - p0 < rows) *rb = start + HTH_KV_BLOCK - 1 + window - p0;
    for (int64_t r = *ra; r < *rb; r++) {
        int64_t p = p0 + r - start, first = window > 0 ? p - window + 1 : 0;
        lo[r - *ra] = first > 0 ? (int32_t)first : 0;
        hi[r - *ra] = p + 1 < HTH_KV_BLOCK ? (int32_t)(p + 1) : HTH_KV_BLOCK;
    }
}

/* Decide once a pass, on the calling thread, how attention is cut. */
void hth_attention_prepare(hth_executable *exe, const hth_pass *pass) {
    hth_frame *f = &exe->frame;
    f->n_chunks = 0;
    f->max_rows = 0;
    f->max_tiles = 0;
    f->split = false;
    for (int64_t s = 0; s < pass->seqs; s++)
        for (int64_t r = pass->seq_rows[s]; r < pass->seq_rows[s + 1]; r++) f->row_seq[r] = (int32_t)s;
    if (exe->n_attentions == 0) return;
    for (int64_t s = 0; s < pass->seqs; s++) {
        for (int64_t r = pass->seq_rows[s]; r < pass->seq_rows[s + 1]; r += exe->chunk_rows) {
            int64_t end = r + exe->chunk_rows < pass->seq_rows[s + 1] ? r + exe->chunk_rows : pass->seq_rows[s + 1];
            f->chunks[f->n_chunks++] = (hth_row_chunk){(int32_t)s, r, end};
            if (end - r > f->max_rows) f->max_rows = end - r;
            int64_t tiles = pass->positions[end - 1] / HTH_KV_BLOCK + 1;
            if (tiles > f->max_tiles) f->max_tiles = tiles;
        }
    }
    int64_t threads = exe->backend->threads, heads = exe->attentions[0].op->imm.attention.heads;
    int64_t pieces = f->n_chunks * exe->attentions[0].op->imm.attention.kv_heads;
    if (threads == 1 || pieces >= 4 * threads || f->max_tiles < 4) return;
    for (int i = 1; i < exe->n_attentions; i++)
        if (exe->attentions[i].op->imm.attention.heads > heads) heads = exe->attentions[i].op->imm.attention.heads;
    uint64_t need = (uint64_t)(f->n_chunks * f->max_tiles * f->max_rows * heads) * (uint64_t)(exe->max_dv + 2);
    if (need > exe->partial_floats) return;
    f->split = true;
    f->tiles_per_task = (f->max_tiles * pieces + 4 * threads - 1) / (4 * threads);
}

/* One piece: what its tiles share. */
typedef struct piece {
    const hth_attention_step *step;
    const hth_attention_imm *imm;
    const hth_kv_pool *kv;
    const int32_t *blocks;
    int64_t r0, rows, p0, head, group;
    int64_t t0, t1;
} piece;

static piece piece_at(const hth_executable *exe, const hth_attention_step *step, int64_t chunk, int64_t head) {
    const hth_row_chunk *c = &exe->frame.chunks[chunk];
    const hth_pass *pass = exe->frame.pass;
    piece p = {.step = step, .imm = &step->op->imm.attention, .kv = &exe->kv[step->kv]};
    p.blocks = pass->block_table[c->seq];
    p.r0 = c->r0;
    p.rows = c->r1 - c->r0;
    p.p0 = pass->positions[c->r0];
    p.head = head;
    p.group = p.imm->heads / p.imm->kv_heads;
    tile_range(p.p0, p.p0 + p.rows - 1, p.imm->window, &p.t0, &p.t1);
    return p;
}

static const unsigned char *tile_keys(const piece *p, int64_t t) {
    return p->kv->base + (uint64_t)p->blocks[t] * p->kv->block_bytes + (uint64_t)p->head * p->kv->head_bytes;
}

/* Compute tile t of a piece into m, l, o (packed from the first visible row on); *ra..*rb-1 are its visible rows. The
 * same thread takes the tiles up to `end` - 1 next. */
static void run_tile(const piece *p, int64_t t, int64_t end, hth_worker *w, float *m, float *l, float *o, int64_t *ra,
                     int64_t *rb) {
    visible_rows(p->p0, p->rows, p->imm->window, t, ra, rb, w->lo, w->hi);
    const unsigned char *k = tile_keys(p, t);
    hth_attention a = {.k = k,
                       .v = k + p->kv->value_offset,
                       .dk = p->imm->dk,
                       .dv = p->imm->dv,
                       .q = p->step->q.base + (p->r0 + *ra) * p->step->q.ld + p->head * p->group * p->imm->dk,
                       .ldq = p->step->q.ld,
                       .rows = *rb - *ra,
                       .heads = p->group,
                       .lo = w->lo,
                       .hi = w->hi,
                       .scale = p->imm->scale,
                       .softcap = p->imm->softcap,
                       .m = m,
                       .l = l,
                       .o = o,
                       .next = t + 1 < end ? tile_keys(p, t + 1) : NULL};
    p->step->tile(&a, w->attention);
}

/* A sink is a score without a value: it is there before the first tile, once, however the tiles are shared out. */
static void start_running(const piece *p, hth_worker *w) {
    int64_t queries = p->rows * p->group;
    const float *sinks = p->step->sinks ? p->step->sinks + p->head * p->group : NULL;
    for (int64_t i = 0; i < queries; i++) {
        w->m[i] = sinks ? sinks[i % p->group] : -INFINITY;
        w->l[i] = sinks ? 1 : 0;
    }
    memset(w->o, 0, (size_t)(queries * p->imm->dv) * sizeof(float));
}

static void merge_tile(const hth_executable *exe, const piece *p, hth_worker *w, const float *m, const float *l,
                       const float *o, int64_t ra, int64_t rb) {
    int64_t first = ra * p->group, dv = p->imm->dv;
    exe->backend->kernels.attention_merge(w->m + first, w->l + first, w->o + first * dv, m, l, o, (rb - ra) * p->group,
                                          dv);
}

static void finish(const hth_executable *exe, const piece *p, const hth_worker *w) {
    int64_t dv = p->imm->dv;
    for (int64_t r = 0; r < p->rows; r++)
        exe->backend->kernels.attention_finish(
            w->l + r * p->group, w->o + r * p->group * dv,
            p->step->out.base + (p->r0 + r) * p->step->out.ld + p->head * p->group * dv, p->group, dv);
}

/* Where tile t of a piece keeps its partial result when split. Uniform places: chunk, head, tile. */
static void partial_at(const hth_executable *exe, const piece *p, int64_t index, int64_t t, float **m, float **l,
                       float **o) {
    int64_t queries = exe->frame.max_rows * p->group;
    float *at = exe->partials + (index * exe->frame.max_tiles + t) * queries * (p->imm->dv + 2);
    *m = at;
    *l = at + queries;
    *o = at + 2 * queries;
}

static void work_unsplit(hth_executable *exe, const hth_attention_step *step, hth_worker *w) {
    int64_t heads = step->op->imm.attention.kv_heads, tasks = exe->frame.n_chunks * heads;
    for (int64_t i; (i = hth_pool_claim(exe->backend->pool, 1)) < tasks;) {
        /* The last rows of a prompt see the most tiles: they go first, so that no thread is left with them at the end.
         */
        piece p = piece_at(exe, step, exe->frame.n_chunks - 1 - i / heads, i % heads);
        start_running(&p, w);
        for (int64_t t = p.t0, ra, rb; t < p.t1; t++) {
            run_tile(&p, t, p.t1, w, w->pm, w->pl, w->po, &ra, &rb);
            merge_tile(exe, &p, w, w->pm, w->pl, w->po, ra, rb);
        }
        finish(exe, &p, w);
    }
}

static void work_split(hth_executable *exe, const hth_attention_step *step, hth_worker *w) {
    const hth_frame *f = &exe->frame;
    int64_t heads = step->op->imm.attention.kv_heads;
    int64_t parts = (f->max_tiles + f->tiles_per_task - 1) / f->tiles_per_task, tasks = f->n_chunks * heads * parts;
    for (int64_t i; (i = hth_pool_claim(exe->backend->pool, 1)) < tasks;) {
        int64_t index = i / parts, from = i % parts * f->tiles_per_task, to = from + f->tiles_per_task;
        piece p = piece_at(exe, step, index / heads, index % heads);
        if (from < p.t0) from = p.t0;
        if (to > p.t1) to = p.t1;
        for (int64_t t = from, ra, rb; t < to; t++) {
            float *m, *l, *o;
            partial_at(exe, &p, index, t, &m, &l, &o);
            run_tile(&p, t, to, w, m, l, o, &ra, &rb);
        }
    }
}

void hth_attention_work(hth_executable *exe, const hth_attention_step *step, hth_worker *w) {
    if (exe->frame.split) work_split(exe, step, w);
    else work_unsplit(exe, step, w);
}

void hth_attention_merge_work(hth_executable *exe, const hth_attention_step *step, hth_worker *w) {
    int64_t heads = step->op->imm.attention.kv_heads, tasks = exe->frame.n_chunks * heads;
    for (int64_t index; (index = hth_pool_claim(exe->backend->pool, 1)) < tasks;) {
        piece p = piece_at(exe, step, index / heads, index % heads);
        start_running(&p, w);
        for (int64_t t = p.t0, ra, rb; t < p.t1; t++) {
            float *m, *l, *o;
            partial_at(exe, &p, index, t, &m, &l, &o);
            visible_rows(p.p0, p.rows, p.imm->window, t, &ra, &rb, w->lo, w->hi);
            merge_tile(exe, &p, w, m, l, o, ra, rb);
        }
        finish(exe, &p, w);
    }
}
