/* Inside an engine.
 *
 * open.c     composes it: file, program, backend, plan, tokenizer, memory
 * opening.c  the same in the background
 * ledger.c   what it cost
 * memory.c   the plan's terms against the budget
 * residency.c where weights lie, and makes them present; arrival.c in which order
 * blocks.c   the pool of KV blocks
 * session.c  timelines
 * marks.c    what to come back to
 * schedule.c cuts calls into passes
 * measure.c  what the machine can do, and what passes cost
 * report.c   what it says about itself; explain.c what opening would do
 * sampler.c  from logits to a token; independent of the rest
 *
 * Invariants:
 *  1. a session or mark at position n holds ceil(n / 64) blocks, with one reference each; what it holds of a block
 *     lies before the block's fill, and whoever writes before the fill of a block that others hold takes a copy first;
 *  2. a call that is refused has changed nothing; a call that fails inside a pass leaves its sessions poisoned;
 *  3. after open nothing here allocates: every table below lies in `tables`.
 */
#ifndef HTH_ENGINE_ENGINE_H
#define HTH_ENGINE_ENGINE_H

#include "backends/backend.h"
#include "base/arena.h"
#include "base/options.h"
#include "engine/ledger.h"
#include "engine/residency.h"
#include "gguf/gguf.h"
#include "hearth/engine.h"

/* A pool of KV blocks. A block id means the same place in every layer. */
typedef struct hth_blocks {
    int64_t total, free_count;
    int32_t *free_list;  /* [total]: ids free, the last one is taken next */
    int32_t *references; /* [total]: sessions and marks that hold a block */
    int32_t *fill;       /* [total]: slots that some holder may rely on */
} hth_blocks;

void hth_blocks_init(hth_blocks *pool);    /* total and tables set: all free */
int32_t hth_blocks_take(hth_blocks *pool); /* one must be free (asserted) */
void hth_blocks_drop(hth_blocks *pool, int32_t block);
/* HEARTH_TOO_LONG with both numbers. */
hearth_status hth_blocks_short(const hearth_engine *engine, int64_t need, int64_t available, hearth_error *err);
void hth_blocks_hold(hth_blocks *pool, int32_t block); /* one reference more */
/* Blocks of `count` tokens. */
static inline int64_t hth_blocks_for(int64_t count) {
    return (count + HTH_BLOCK_POSITIONS - 1) / HTH_BLOCK_POSITIONS;
}

/* A mark that is kept; its place in the table is its checkpoint's slot. */
typedef struct hth_mark {
    int64_t id; /* 0: the place is free */
    int64_t position;
    hearth_token *tokens; /* [context] */
    int32_t *blocks;      /* [context / 64 rounded up] */
} hth_mark;

typedef struct hth_marks {
    int64_t total, used, last_id;
    hth_mark *marks; /* [total] */
} hth_marks;

struct hearth_session {
    hearth_engine *engine;
    bool open;
    hearth_error poison;  /* status OK: whole; else why it is poisoned */
    int64_t position;     /* tokens consumed */
    hearth_token *tokens; /* [context] */
    int32_t *blocks;      /* [context / 64 rounded up] */
};

#define HTH_PLAN_TERMS 16

/* The tables of one call, filled pass by pass. */
typedef struct hth_schedule {
    int32_t *tokens;        /* [rows] */
    int64_t *positions;     /* [rows] */
    int64_t *seq_rows;      /* [sessions + 1] */
    const int32_t **tables; /* [sessions] */
    int32_t *state_slots;   /* [sessions] */
    hth_pass_fault *faults; /* [sessions] */
    int32_t *out_rows;      /* [rows] */
    hth_pass_mark *marks;   /* [mark slots] */
    hearth_mark **wanted;   /* [mark slots]: whose id each of them is */
} hth_schedule;

struct hearth_engine {
    const hearth_open_request *request; /* while it is being opened */
    atomic_bool stop;                   /* opening is to end */
    const hth_gguf *gguf;
    hth_gguf *own_gguf; /* NULL: the tokenizer's, which it came with */
    hth_residency residency;
    size_t residency_row;        /* of the ledger */
    bool holds_sigbus;           /* option sigbus: a file that shrinks ends calls, not the process */
    hearth_tokenizer *tokenizer; /* NULL when the file has no vocabulary */
    char *name;
    hth_program *program;
    const hth_backend_type *type;
    hth_backend *backend;
    hth_executable *exe;
    hth_limits limits;
    hth_arena tables;
    hth_blocks blocks;
    hth_marks marks;
    hearth_session *sessions; /* [limits.extents.value[HTH_SEQS]] */
    hth_schedule schedule;
    hearth_progress_fn *progress;
    void *progress_context;
    hearth_counters counters;
    hth_ledger ledger;
    size_t n_terms;
    hearth_plan_term terms[HTH_PLAN_TERMS];
    uint64_t budget;
};

/* open.c: everything up to a lowered executable and a plan that fits; nothing large is touched. The engine is zeroed;
 * it is released also when this failed. */
hearth_status hth_engine_prepare(hearth_engine *engine, const hearth_open_request *request, hearth_error *err);
/* What remains: tokenizer, memory, weights, warm pass. On success the engine has taken the request's tokenizer over. */
hearth_status hth_engine_complete(hearth_engine *engine, hearth_error *err);
/* The tokenizer alone, for a prepared engine. */
hearth_status hth_engine_make_tokenizer(hearth_engine *engine, hearth_error *err);
void hth_engine_release(hearth_engine *engine);
/* Prepare, complete and release on failure, for an engine that may be asked to stop from another thread. */
hearth_status hth_engine_open(hearth_engine *engine, const hearth_open_request *request, hearth_error *err);

/* memory.c: lower the program for the limits asked for; without a context, for the largest default. */
hearth_status hth_engine_bind(hearth_engine *engine, const hearth_options *options, hearth_error *err);
/* memory.c: state the terms and hold them against the budget; a default context shrinks until they fit. */
hearth_status hth_engine_plan_memory(hearth_engine *engine, const hearth_options *options, hearth_error *err);
/* Of all weights of the program, also those of which only some rows are ever read. */
uint64_t hth_engine_weight_bytes(const hearth_engine *engine);
/* Of all terms of the plan; saturating. */
uint64_t hth_engine_plan_bytes(const hearth_engine *engine);
/* Carve the engine's own tables out of an arena (counting or mapped). */
void hth_engine_carve(hearth_engine *engine, hth_arena *arena);

/* open.c, at the start of a call: weights are there, or arriving. HEARTH_IO names a file that cannot be read. */
hearth_status hth_engine_ready(hearth_engine *engine, hearth_error *err);
/* open.c, after a pass: HEARTH_IO, naming the file, when a part of it is gone and something else was read instead. */
hearth_status hth_engine_file_check(hearth_engine *engine, hearth_error *err);

/* measure.c: add to the counters what the passes cost. */
void hth_count_work(const hearth_engine *engine, hearth_counters *counters);

/* session.c */
hearth_status hth_session_check(const hearth_session *session, hearth_error *err); /* open and not poisoned */
void hth_session_reserve(hearth_session *session, int64_t position); /* take blocks up to `position` tokens */
/* Blocks that reserve takes at most. */
int64_t hth_session_need(const hearth_session *session, int64_t position);
int64_t hth_common_prefix(const hearth_token *a, int64_t a_count, const hearth_token *b, int64_t b_count);

/* marks.c */
/* HEARTH_BAD_ARGUMENT unless the positions increase and lie in from .. to. */
hearth_status hth_marks_check(const hearth_mark *marks, size_t count, int64_t from, int64_t to, hearth_error *err);
/* HEARTH_TOO_LONG, with both numbers, unless a call may leave `count` marks. */
hearth_status hth_marks_fit(const hearth_engine *engine, size_t count, hearth_error *err);
/* The free slot after those that a pass has taken already; there must be one. */
int32_t hth_marks_slot(const hth_marks *marks, const hth_pass_mark *taken, int64_t count);
/* Keep what the session held at `position` in a slot whose checkpoint is written. The new id. */
int64_t hth_marks_keep(hearth_session *session, int32_t slot, int64_t position);
/* The mark at `position` exactly that lies on the way of tokens; or, not exactly, the last one at most there. NULL:
 * none.
 */
const hth_mark *hth_marks_on_way(const hearth_engine *engine, const hearth_token *tokens, int64_t position,
                                 bool exactly);
/* Bring the session's recurrent state, if the model has any, to the mark's; counted as a restore. */
void hth_mark_restore_state(hearth_session *session, const hth_mark *mark);
/* Make the session hold what the mark does. */
void hth_mark_restore(hearth_session *session, const hth_mark *mark);

#endif
