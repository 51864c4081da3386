/* A program lowered for the CPU.
 *
 * Ops become stages, with a barrier between two stages and none inside one:
 *
 *   ROWS       units that work on one row at a time and need nothing of other rows (norms, rope, quantizing, glu, KV
 *              append, …). A thread claims some rows and runs all units over them.
 *   LINEAR     one to four linears that read the same input. A thread claims some columns of one of them, for all rows.
 *   SCAN       one recurrence (conv_ring, delta_rule). A thread claims some of its independent lanes (channels, heads)
 *              of one sequence and walks its rows in order, leaving the marks on the way.
 *   EXPERTS    one mixture of experts, as several stages (experts.c).
 *   ATTENTION  one attention op. A thread claims a kv head and either some rows with all their tiles, or (few rows,
 *              much depth) some tiles, whose partial results the MERGE stage that follows adds up.
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
#include "experts/experts.h"

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

/* One thread's scratch. */
typedef struct hth_worker {
    void *linear;        /* HTH_LINEAR_SCRATCH */
    void *attention;     /* HTH_ATTENTION_SCRATCH of the largest head */
    float *m, *l, *o;    /* running results of one chunk */
    float *pm, *pl, *po; /* those of one tile */
    int32_t *lo, *hi;
    void *scan;    /* hth_scan_scratch */
    float *router; /* [max_experts] */
    void *experts; /* hth_experts_scratch */
    uint64_t *ns;  /* NULL unless the clock runs: the time of the last stamp, then the time each kind of work took */
} hth_worker;

typedef struct hth_unit hth_unit;

/* Run one unit over rows r0..r1-1 of the pass. */
typedef void hth_unit_fn(hth_executable *exe, const hth_unit *unit, int64_t r0, int64_t r1, hth_worker *worker);

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
    int work;   /* its kind */
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
    int work;       /* its kind */
} hth_linear_step;

typedef struct hth_attention_step {
    const hth_op *op;
    hth_attention_tile_fn *tile;
    const float *sinks; /* [heads] or NULL */
    hth_rows q, out;
    int kv;
} hth_attention_step;

/* A recurrence; see scan.c. */
typedef struct hth_scan_step {
    const hth_op *op;
    hth_rows in[3], out; /* set at commit */
    const float *w[2];
    int state;     /* index into hth_executable.states */
    int64_t lanes; /* pieces of a sequence that may run side by side */
} hth_scan_step;

typedef struct hth_experts_step hth_experts_step; /* experts.c */

/* What the mixtures of experts of a program share, one after the other: the pairs (row, expert) of a pass, by
 * increasing expert, then row. */
typedef struct hth_experts_room {
    int64_t max_used, max_n, max_f; /* of any op: experts a row, widths */
    int64_t max_active;             /* experts that one op may need in a pass */
    bool floats;                    /* some gate or up is float */
    int32_t *row;                   /* [pairs] */
    float *weight;                  /* [pairs] */
    int32_t *ids;                   /* [active] */
    int64_t *first;                 /* [active + 1]: the first pair of each, then the number of pairs */
    int64_t *next;                  /* [max_experts] */
    hth_expert_lease *leases;       /* [active] */
    int64_t active;
    void *gathered[2];     /* rows of x as int8, in blocks of 32 and of 256, a row a pair */
    float *gathered_float; /* the same as float */
    float *gate, *up;      /* [pairs][f] */
    void *hidden;          /* what goes into down, as int8 */
} hth_experts_room;

typedef enum hth_stage_kind {
    HTH_STAGE_ROWS,
    HTH_STAGE_LINEAR,
    HTH_STAGE_ATTENTION,
    HTH_STAGE_MERGE,
    HTH_STAGE_SCAN,
    HTH_STAGE_EXPERTS
} hth_stage_kind;

typedef struct hth_stage {
    hth_stage_kind kind;
    hth_symbol domain; /* HTH_ROWS or HTH_OUTS */
    int first, count;  /* ROWS: units; LINEAR: linears; ATTENTION, MERGE, SCAN, EXPERTS: one step */
    int phase;         /* EXPERTS: which of its stages */
    int work;          /* its kind, for all but ROWS and LINEAR */
    int64_t ops;       /* leading ops of the program whose weights must be there; set at commit */
} hth_stage;

/* The blocks of one layer's KV: block b at base + b * block_bytes; in it, for each kv head, K then V (kernels.h). */
typedef struct hth_kv_pool {
    hth_tensor_id tensor;
    hth_kv_shape shape;
    unsigned char *base;
    uint64_t block_bytes, head_bytes, value_offset;
} hth_kv_pool;

/* Where one recurrent state lies in its slot. All states of a slot lie side by side, so that a restore is one copy; a
 * checkpoint slot is laid out alike. */
typedef struct hth_state_place {
    hth_tensor_id tensor;
    uint64_t offset, floats; /* offset in bytes */
} hth_state_place;

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
    int64_t max_rows;         /* the most rows of any chunk */
    int64_t max_tiles;        /* the most tiles any chunk sees */
    bool split;               /* attention splits the depth */
    int64_t tiles_per_task;   /* when split */
    _Atomic uint64_t *faults; /* [seqs]: op << 32 | row of the first fault, UINT64_MAX for none */
    uint64_t start_ns;        /* when the calling thread began, while the clock runs */
} hth_frame;

/* What a kind of work costs in one domain (rows or outs), as far as shapes alone say: each pass with rows, each
 * sequence of it, each row. */
typedef struct hth_cost {
    uint64_t pass_bytes, seq_bytes, row_bytes, row_ops;
} hth_cost;

/* A kind of work; work.c. */
typedef struct hth_kind {
    char name[48];
    hth_work_class class;
    hth_cost rows, outs;
    uint64_t bytes, ops;           /* since commit */
    uint64_t bytes_then, ops_then; /* when the clock was started */
} hth_kind;

/* The attentions with one window: bytes of a position's keys and values, operations of a query row and a position. */
typedef struct hth_reach {
    int64_t window;
    uint64_t position_bytes, pair_ops;
} hth_reach;

#define HTH_KINDS (HTH_OPCODES + 4 * HTH_DTYPE_MAX + 8)

typedef struct hth_account {
    hth_kind *kinds; /* [n_kinds] of HTH_KINDS; the first is waiting */
    hth_reach *reaches;
    int n_kinds, n_reaches;
    int attention;   /* their kind, -1 where there is none */
    uint64_t *clock; /* NULL, or [threads][clock_stride]: what the workers' ns point to */
    size_t clock_stride;
} hth_account;

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
    hth_scan_step *scans;
    hth_experts_step *experts; /* [n_experts] */
    hth_expert_store *store;   /* of their weights: layer i is that of experts[i] */
    hth_kv_pool *kv;
    hth_state_place *states;
    int n_units, n_linears, n_attentions, n_stages, n_scans, n_experts, n_kv, n_states;
    char (*kernel_names)[48]; /* [n_ops] */

    int64_t chunk_rows; /* rows of an attention chunk */
    int64_t max_group;  /* most query heads that share a kv head */
    int64_t max_dk, max_dv;
    uint64_t partial_floats; /* room for split attention's partial results */
    int64_t max_k[2];        /* longest row quantized in blocks of 32, of 256; 0 for none */
    int64_t max_experts;     /* most logits of a router */
    hth_experts_room room;   /* what mixtures of experts share */
    uint64_t slot_bytes;     /* all states of one slot; a multiple of 64 */

    hth_arena activations, kv_arena, state_arena, mark_arena, logits_arena, scratch;
    unsigned char *state_base, *mark_base; /* [state slots], [mark slots] of slot_bytes */
    unsigned char *activation_base;
    float *logits;
    void *qact_base[2];
    float *partials;
    hth_worker *workers; /* [threads] */
    hth_frame frame;
    hth_account account; /* of work */
};

/* peaks.c: hth_backend_type.peaks for a pool and a tier. */
hearth_status hth_cpu_peaks(hth_pool *pool, const hth_kernels *kernels, uint64_t memory, hth_peaks *rows, size_t count,
                            hearth_error *err);

/* lower.c */
hearth_status hth_cpu_lower(hth_backend *backend, const hth_program *program, const hth_file_view *files,
                            const hth_limits *limits, hth_executable **out, hearth_error *err);
void hth_cpu_free(hth_executable **exe);

/* units.c: the unit of a row-wise op; run is NULL in *unit when the opcode is not row-wise. */
hearth_status hth_unit_bind(const hth_executable *exe, const hth_op *op, hth_unit *unit, hearth_error *err);
void hth_unit_quantize_bind(const hth_executable *exe, hth_tensor_id input, int block, hth_unit *unit);

/* memory.c */
size_t hth_cpu_terms(const hth_executable *exe, hth_memory_term *out, size_t capacity);
hearth_status hth_cpu_commit(hth_executable *exe, const atomic_bool *stop, hearth_error *err);
hearth_status hth_cpu_link(hth_executable *exe, hearth_error *err);

/* attention.c: the part of a pass one thread claims. */
void hth_attention_prepare(hth_executable *exe, const hth_pass *pass);
void hth_attention_work(hth_executable *exe, const hth_attention_step *step, hth_worker *worker);
void hth_attention_merge_work(hth_executable *exe, const hth_attention_step *step, hth_worker *worker);

/* scan.c: recurrences. Bind adds the op's step and its stage; the rest is called by those who own the memory, a pass
 * and the warm pass. */
hearth_status hth_scan_bind(hth_executable *exe, const hth_op *op, hearth_error *err);
size_t hth_scan_scratch(const hth_executable *exe); /* bytes a worker */
void hth_scan_resolve(hth_executable *exe);         /* pointers, after everything is carved */
void hth_scan_work(hth_executable *exe, const hth_scan_step *step, hth_worker *worker);
void hth_scan_warm(hth_executable *exe, const hth_scan_step *step, hth_worker *worker); /* writes to its slot */

/* experts.c: mixtures of experts, the same way. */
hearth_status hth_experts_tables(hth_executable *exe, hearth_error *err);
hearth_status hth_experts_bind(hth_executable *exe, const hth_op *op, hearth_error *err);
size_t hth_experts_scratch(const hth_executable *exe);     /* bytes a worker */
void hth_experts_carve(hth_executable *exe, hth_arena *a); /* rows grouped by expert, shared by all ops */
hearth_status hth_experts_resolve(hth_executable *exe, hearth_error *err);
void hth_experts_work(hth_executable *exe, const hth_stage *stage, int64_t rows, hth_worker *worker);
bool hth_experts_idle(const hth_stage *stage, int64_t rows); /* nothing to do for so many rows, not even a barrier */
void hth_experts_done(hth_executable *exe, const hth_stage *stage); /* by worker 0, after the stage's barrier */
bool hth_experts_alike(const hth_executable *exe, int a, int b);    /* two steps have the same kernels */
/* So many rows that go to the first experts, whose weights are zeros; leaves no trace. */
void hth_experts_warm(hth_executable *exe, const hth_stage *stage, int64_t rows, const void *zeros, hth_worker *worker);
int64_t hth_experts_row_bytes(const hth_executable *exe); /* the longest of any matrix; 0 without experts */
void hth_experts_free(hth_executable *exe);
const hth_op *hth_experts_op(const hth_executable *exe, int step);

int hth_experts_kind(hth_executable *exe, const hth_stage *stage); /* of the stage's work */

/* work.c: what passes cost, and how long each kind of work takes. */
enum { HTH_KIND_WAITING };
hearth_status hth_work_bind(hth_executable *exe, hearth_error *err);                /* after all stages are made */
int hth_kind_of(hth_executable *exe, hth_work_class class, const char *format, ...) /* found by name, or made */
    __attribute__((format(printf, 3, 4)));
void hth_work_count(hth_executable *exe, const hth_pass *pass); /* after the pass */
size_t hth_cpu_work(const hth_executable *exe, bool timed, hth_work *out, size_t capacity);
hearth_status hth_cpu_clock(hth_executable *exe, bool run, hearth_error *err);
void hth_work_free(hth_executable *exe);
void hth_clock_stamp(uint64_t *ns, int kind);

/* All time of this thread since the last stamp was spent on a kind of work. */
static inline void hth_work_done(const hth_worker *worker, int kind) {
    if (worker->ns) hth_clock_stamp(worker->ns, kind);
}

/* memory.c: a tensor's rows in the arenas, after they are carved. */
hth_rows hth_rows_of(const hth_executable *exe, hth_tensor_id id);

/* run.c: no sequence of the pass has a fault yet; by the calling thread, before the others start. */
void hth_faults_begin(hth_executable *exe, const hth_pass *pass);
/* run.c: note that an op met a value in `row` that it cannot go on with; by any thread. */
void hth_fault_note(hth_executable *exe, const hth_op *op, int64_t row);

/* lower.c: the kernel that multiplies by a weight, and the bytes of one of its rows. HEARTH_UNSUPPORTED names a dtype
 * that has none. */
hearth_status hth_linear_kernel(const hth_executable *exe, const hth_op *op, const hth_tensor *w, hth_linear_fn **run,
                                int64_t *row_bytes, hearth_error *err);
/* lower.c: append a stage. */
hth_stage *hth_stage_add(hth_executable *exe, hth_stage_kind kind, hth_symbol domain, int first, int count);
/* lower.c: append a unit that quantizes `input` in blocks of 32 or 256; its index in exe->units. */
int hth_quantize_add(hth_executable *exe, hth_tensor_id input, int block, hth_symbol domain);

/* run.c */
hearth_status hth_cpu_run(hth_executable *exe, const hth_pass *pass, hearth_error *err);

/* warm.c */
hearth_status hth_cpu_warm(hth_executable *exe, hearth_error *err);

static inline int64_t hth_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static inline int64_t hth_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* A weight's or constant's first byte. */
const void *hth_weight_data(const hth_executable *exe, hth_tensor_id id);

/* State number i (of exe->states) of a slot, and its place in a checkpoint slot. */
static inline float *hth_state_at(const hth_executable *exe, int i, int64_t slot) {
    return (float *)(exe->state_base + (uint64_t)slot * exe->slot_bytes + exe->states[i].offset);
}
static inline float *hth_checkpoint_at(const hth_executable *exe, int i, int64_t slot) {
    return (float *)(exe->mark_base + (uint64_t)slot * exe->slot_bytes + exe->states[i].offset);
}

/* Whether a tensor's rows are kept in the logits buffer: the logits, and what an in-place op turns into them. */
static inline bool hth_in_logits(const hth_executable *exe, hth_tensor_id id) {
    return exe->plan.place[id] == exe->program->logits;
}

#endif
