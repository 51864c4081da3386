/* A program lowered for the CPU.
 *
 * Ops become stages, with a barrier between two stages and none inside one:
 *
 *   ROWS       units that work on one row at a time and need nothing of other rows (norms, rope, quantizing, glu, KV
 *              append, …). A thread claims some rows and runs all units over them.
 *   LINEAR     one to four linears that read the same input. A thread claims some columns of one of them, for all rows.
 *   ATTENTION  one attention op. A thread claims a kv head and either some rows with all their tiles, or (few rows,
 * much depth) some tiles, whose partial results the MERGE stage that follows adds up.
 *
 * Which thread does what never shows in a result: the kernels fix every order (kernels.h).
 *
 * Invariants:
 *  1. unit, stage and operand tables are read-only after commit; a run writes only the frame and the arenas;
 *  2. every activation pointer is arena + plan offset; a row's stride is its fixed extent;
 *  3. a stage's row count is the pass's ROWS or OUTS; a stage with none is skipped by all threads alike.
 */
#ifndef HTH_BACKENDS_CPU_EXECUTABLE_H
#define HTH_BACKENDS_CPU_EXECUTABLE_H

#include "backends/backend.h"
#include "backends/cpu/kernels.h"
#include "base/arena.h"
#include "base/thread.h"

struct hth_backend {
    hth_kernels kernels;
    hth_pool *pool;
    int threads;
};

/* A tensor's rows: row r is at base + r * ld. */
typedef struct hth_rows {
    float *base;
    int64_t ld;
} hth_rows;

typedef struct hth_unit hth_unit;

/* Run one unit over rows r0..r1-1 of the pass. */
typedef void hth_unit_fn(hth_executable *exe, const hth_unit *unit, int64_t r0, int64_t r1);

struct hth_unit {
    hth_unit_fn *run;
    const hth_op *op;    /* NULL for a quantize unit */
    hth_tensor_id input; /* of a quantize unit */
    hth_rows in[2], out; /* set at commit */
    bool to_logits;      /* out is the logits buffer, from row first_output of the pass on */
    const float *w[2];   /* float vectors: norm weights, biases */
    const void *table;   /* EMBED: the table's first row */
    int64_t table_row_bytes;
    int64_t n; /* elements a row */
    union {
        hth_embed_fn *embed;
        hth_quantize_fn *quantize;
        hth_kv_append_fn *kv_append;
        hth_glu_fn *glu;
        hth_act_fn *act;
    } kernel;
    hth_qact q; /* quantize: where to; laid over a shared buffer at commit */
    int kv;     /* KV_APPEND: index into hth_executable.kv */
};

#define HTH_STAGE_LINEARS 4

typedef struct hth_linear_step {
    const hth_op *op;
    const hth_op *add; /* the ADD folded into the epilogue, or NULL */
    hth_linear_fn *run;
    hth_linear args; /* pointers set at commit */
    int64_t columns;
    bool to_logits; /* y is the logits buffer, from row first_output of the pass on */
    int unit;       /* the quantize unit whose q it reads; -1 for float weights */
} hth_linear_step;

typedef struct hth_attention_step {
    const hth_op *op;
    hth_attention_tile_fn *tile;
    hth_rows q, out;
    int kv;
} hth_attention_step;

typedef enum hth_stage_kind { HTH_STAGE_ROWS, HTH_STAGE_LINEAR, HTH_STAGE_ATTENTION, HTH_STAGE_MERGE } hth_stage_kind;

typedef struct hth_stage {
    hth_stage_kind kind;
    hth_symbol domain; /* HTH_ROWS or HTH_OUTS */
    int first, count;  /* ROWS: units; LINEAR: linears; ATTENTION, MERGE: one attention step */
} hth_stage;

/* The blocks of one layer's KV: block b at base + b * block_bytes; in it, for each kv head, K then V (kernels.h). */
typedef struct hth_kv_pool {
    hth_tensor_id tensor;
    hth_kv_shape shape;
    unsigned char *base;
    uint64_t block_bytes, head_bytes, value_offset;
} hth_kv_pool;

/* A run of rows of one sequence that attention takes as one piece. */
typedef struct hth_row_chunk {
    int32_t seq;
    int64_t r0, r1;
} hth_row_chunk;

/* What all threads read during a pass; written by the calling thread before it starts them. */
typedef struct hth_frame {
    const hth_pass *pass;
    int32_t *row_seq;      /* [rows] */
    hth_row_chunk *chunks; /* rows cut for attention */
    int64_t n_chunks;
    int64_t max_rows;       /* the most rows of any chunk */
    int64_t max_tiles;      /* the most tiles any chunk sees */
    bool split;             /* attention splits the depth */
    int64_t tiles_per_task; /* when split */
} hth_frame;

/* One thread's scratch. */
typedef struct hth_worker {
    void *linear;        /* HTH_LINEAR_SCRATCH */
    void *attention;     /* HTH_ATTENTION_SCRATCH of the largest head */
    float *m, *l, *o;    /* running results of one chunk */
    float *pm, *pl, *po; /* those of one tile */
    int32_t *lo, *hi;
} hth_worker;

struct hth_executable {
    hth_backend *backend;
    const hth_program *program;
    const hth_file_view *files;
    hth_limits limits;
    hth_plan plan;

    hth_unit *units;
    hth_linear_step *linears;
    hth_attention_step *attentions;
    hth_stage *stages;
    hth_kv_pool *kv;
    int n_units, n_linears, n_attentions, n_stages, n_kv;
    char (*kernel_names)[48]; /* [n_ops] */

    int64_t chunk_rows; /* rows of an attention chunk */
    int64_t max_group;  /* most query heads that share a kv head */
    int64_t max_dk, max_dv;
    uint64_t partial_floats; /* room for split attention's partial results */
    int64_t max_k[2];        /* longest row quantized in blocks of 32, of 256; 0 for none */

    hth_arena activations, kv_arena, logits_arena, scratch;
    unsigned char *activation_base;
    float *logits;
    void *qact_base[2];
    float *partials;
    hth_worker *workers; /* [threads] */
    hth_frame frame;
};

/* lower.c */
hearth_status hth_cpu_lower(hth_backend *backend, const hth_program *program, const hth_file_view *files,
                            const hth_limits *limits, hth_executable **out, hearth_error *err);
void hth_cpu_free(hth_executable **exe);

/* units.c: the unit of a row-wise op; run is NULL in *unit when the opcode is not row-wise. */
hearth_status hth_unit_bind(const hth_executable *exe, const hth_op *op, hth_unit *unit, hearth_error *err);
void hth_unit_quantize_bind(const hth_executable *exe, hth_tensor_id input, int block, hth_unit *unit);

/* memory.c */
size_t hth_cpu_terms(const hth_executable *exe, hth_memory_term *out, size_t capacity);
hearth_status hth_cpu_commit(hth_executable *exe, hearth_error *err);

/* attention.c: the part of a pass one thread claims. */
void hth_attention_prepare(hth_executable *exe, const hth_pass *pass);
void hth_attention_work(hth_executable *exe, const hth_attention_step *step, hth_worker *worker);
void hth_attention_merge_work(hth_executable *exe, const hth_attention_step *step, hth_worker *worker);

/* run.c */
hearth_status hth_cpu_run(hth_executable *exe, const hth_pass *pass, hearth_error *err);
hearth_status hth_cpu_warm(hth_executable *exe, hearth_error *err);

/* A weight's or constant's first byte. */
const void *hth_weight_data(const hth_executable *exe, hth_tensor_id id);

/* Whether a tensor's rows are kept in the logits buffer: the logits, and what an in-place op turns into them. */
static inline bool hth_in_logits(const hth_executable *exe, hth_tensor_id id) {
    return exe->plan.place[id] == exe->program->logits;
}

#endif
