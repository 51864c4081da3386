/* An engine: one model opened on a backend with a plan. A session: one timeline of tokens in it.
 *
 *   hearth_engine_open      pays every one-time cost and keeps the bill (hearth_ledger)
 *   hearth_session_create   takes one of the planned sessions
 *   hearth_session_sync     makes a session hold exactly these tokens, keeping the prefix it already has
 *   hearth_engine_run       computes rows of one or several sessions together (batched decode)
 *
 * Same bits: the logits of a row are bit-for-bit the same whatever else is in the call, however the tokens were cut
 * into calls and passes, for any number of threads and any instruction set.
 *
 * Threads: one thread at a time may be inside an engine and its sessions. Different engines are independent.
 * After open, calls allocate nothing.
 */
#ifndef HEARTH_ENGINE_H
#define HEARTH_ENGINE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "hearth/options.h"
#include "hearth/status.h"
#include "hearth/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hearth_engine hearth_engine;
typedef struct hearth_session hearth_session;

/* ---- Open ---- */

/* Open the model at PATH. options may be NULL (defaults). On failure *out is NULL, everything is released, and the
 * error names what was wrong; over the budget, every term of the plan is in the text. */
HEARTH_API hearth_status hearth_engine_open(const char *path, const hearth_options *options, hearth_engine **out,
                                            hearth_error *err);
/* Release; sessions still open are released with it. *engine becomes NULL; NULL is ignored. */
HEARTH_API void hearth_engine_close(hearth_engine **engine);

/* How far an opening is. */
typedef struct hearth_open_progress {
    const char *stage;     /* what is being paid: a row of the ledger ("directory" is told as "map", "program" as
                              "weights bound"); "open" at the end */
    uint64_t bytes, total; /* weights that have arrived, and those that will; 0 and 0 before they are known */
    double elapsed_ms;
    double left_ms; /* until all weights are there, at the rate so far; negative: no telling yet */
} hearth_open_progress;

/* Called on the thread that opens, at each stage and some times a second while it waits for weights. A non-zero answer
 * ends the opening with HEARTH_CANCELLED. */
typedef int hearth_open_progress_fn(void *context, const hearth_open_progress *progress);

/* What to open. What is not set is NULL. */
typedef struct hearth_open_request {
    const char *path;
    const hearth_options *options; /* NULL: defaults */
    hearth_tokenizer *tokenizer; /* opened from the same path: the engine takes it over when it opens, instead of making
                                    one of its own, and shares its mapping; when opening fails it stays the caller's */
    hearth_open_progress_fn *progress;
    void *context; /* of progress */
} hearth_open_request;

/* As hearth_engine_open. */
HEARTH_API hearth_status hearth_engine_open_request(const hearth_open_request *request, hearth_engine **out,
                                                    hearth_error *err);

/* An opening in the background. */
typedef struct hearth_opening hearth_opening;

/* Begin to open on a thread of its own. Path and options are copied; a tokenizer must stay open until the end, and
 * progress is called on that thread. Fails only when there is no memory or no thread for it; what is wrong with the
 * model comes from hearth_opening_end, once. */
HEARTH_API hearth_status hearth_opening_begin(const hearth_open_request *request, hearth_opening **out,
                                              hearth_error *err);
/* Whether hearth_opening_end would not wait. */
HEARTH_API int hearth_opening_is_over(const hearth_opening *opening);
/* Ask it to end soon; from any thread, any number of times. */
HEARTH_API void hearth_opening_cancel(hearth_opening *opening);
/* Wait for the end: the engine, or why there is none (HEARTH_CANCELLED after a cancel that came in time) and *out NULL
 * with everything released. *opening becomes NULL; NULL is HEARTH_BAD_ARGUMENT. */
HEARTH_API hearth_status hearth_opening_end(hearth_opening **opening, hearth_engine **out, hearth_error *err);

typedef struct hearth_model_info {
    const char *architecture; /* "llama" */
    const char *name;         /* general.name, "" when absent */
    int32_t vocab;            /* logits a row */
    int64_t layers, embedding;
    int64_t model_context;           /* positions the model was made for */
    int64_t context;                 /* positions a session of this engine can hold */
    int64_t rows, outputs, sessions; /* as planned */
    int threads;
    const char *kernels; /* tier in use: "avx2" */
    const char *kv;      /* "f16" or "f32" */
} hearth_model_info;

/* Facts; pointers live as long as the engine. */
HEARTH_API void hearth_engine_info(const hearth_engine *engine, hearth_model_info *out);
/* The model's tokenizer, owned by the engine. */
HEARTH_API const hearth_tokenizer *hearth_engine_tokenizer(const hearth_engine *engine);

/* One row of the bill that open paid. */
typedef struct hearth_ledger_row {
    const char *what; /* "map", "directory", "tokenizer", "weights bound", "program", "placement", "threads", "kernels",
                         "plan", "residency", "arenas", "executables", "warm pass" */
    char how[48];     /* what was chosen there: "file pages, cached", "2 threads"; empty where nothing was */
    double start_ms, end_ms; /* since open began, or since the tokenizer did that was handed over; end 0: it is still
                                going on (option early) */
    double exposed_ms;       /* time that open waited for this alone; exposed times sum to the total */
    uint64_t bytes; /* of the files (map), of all weights (weights bound), of those that become resident (placement,
                       residency), of all terms (plan), of memory taken (arenas); else 0 */
    uint64_t minor_faults, major_faults; /* page faults of the threads that did it (arenas: of the opening thread, which
                                            does its share); 0 for what came with a tokenizer */
    uint64_t outstanding; /* bytes of weights that were still to arrive when it ended; 0 before they began to */
} hearth_ledger_row;

/* The bill, in the order it was paid: *rows lives as long as the engine; the answer is how many there are. */
HEARTH_API size_t hearth_engine_ledger(const hearth_engine *engine, const hearth_ledger_row **rows);

/* One term of the memory plan. */
typedef struct hearth_plan_term {
    const char *what; /* "weights (mapped)", "KV blocks", "activations" … */
    uint64_t bytes;
    int mapped; /* 1: pages of the file, which the system may take back; 0: private memory */
} hearth_plan_term;

/* The plan that was made at open: *terms lives as long as the engine; the answer is how many there are. */
HEARTH_API size_t hearth_engine_plan(const hearth_engine *engine, const hearth_plan_term **terms);

/* Work done since open; every field only grows. */
typedef struct hearth_counters {
    uint64_t calls; /* run and sync */
    uint64_t passes;
    uint64_t rows;         /* tokens computed */
    uint64_t outputs;      /* rows of logits made */
    uint64_t row_reads;    /* embedding rows read from the file */
    uint64_t refaults;     /* pages of mapped weights that the system had taken back after a pause and that a call
                              populated again before it computed; page faults, where the system does not tell which
                              pages are there (a file that is neither ours nor writable) */
    uint64_t kept_warm;    /* the same, between calls (option keep-warm) */
    uint64_t blocks_used;  /* KV blocks in use now (a level, not a count) */
    uint64_t blocks_total; /* KV blocks planned */
    uint64_t block_copies; /* KV blocks copied because two timelines parted inside one */
    uint64_t marks_left;   /* marks that calls have left */
    uint64_t restores;     /* times a session was brought back to a mark */
    uint64_t marks_used;   /* marks that are kept now (a level) */
    uint64_t marks_total;  /* marks planned (option mark-slots) */
    /* What passes cost at least, computed from shapes and from the experts that rows chose. */
    uint64_t weight_bytes;     /* of weights that linears and experts read: once a pass each */
    uint64_t kv_bytes;         /* of keys and values that attention read: once a pass each position that a row sees */
    uint64_t linear_int8_ops;  /* of linears and experts on quantized weights, 2 a multiply-add */
    uint64_t linear_float_ops; /* of those on float weights */
    uint64_t attention_ops;    /* of queries with keys, and of their weights with values, 2 a multiply-add */
} hearth_counters;

/* Copy the counters as they are now. */
HEARTH_API void hearth_engine_counters(const hearth_engine *engine, hearth_counters *out);

/* ---- Limits: what the machine can do at most, to compare with what the engine does ---- */

/* What some of the engine's threads can do together. */
typedef struct hearth_limits {
    int threads;             /* in: how many, from 1 to the engine's */
    double read_bytes_per_s; /* from memory that no cache holds */
    double int8_ops_per_s;   /* int8 dot products on registers with the kernels' instructions, 2 a multiply-add */
    double float_ops_per_s;  /* float32 multiply-adds on registers with the kernels' instructions, 2 each */
    uint64_t read_bytes;     /* how much memory the reading went over, again and again */
    int read_cached;         /* 1: that is not much more than the caches hold, and the rate may be theirs */
    uint64_t cache_bytes;    /* what the last cache of the first core holds; 0: the system does not say */
} hearth_limits;

/* Measure them now: the best of several short rounds, about 0.2 s a row of `limits`. Until it returns, memory outside
 * the plan is used, at most a quarter of what the system has free. HEARTH_BAD_ARGUMENT: a number of threads that the
 * engine does not have; HEARTH_NO_MEMORY. */
HEARTH_API hearth_status hearth_engine_limits(hearth_engine *engine, hearth_limits *limits, size_t count,
                                              hearth_error *err);

/* What limits a kind of work. */
typedef enum hearth_work_limit {
    HEARTH_WORK_NO_LIMIT, /* no rate of hearth_limits: it works on what the caches hold */
    HEARTH_WORK_INT8,     /* reading, or int8_ops_per_s */
    HEARTH_WORK_FLOAT,    /* reading, or float_ops_per_s */
    HEARTH_WORK_WAITING   /* threads waited for each other, or had nothing to do */
} hearth_work_limit;

/* A kind of work in the passes: "linear Q4_K", "attention", "rms_norm", "waiting". */
typedef struct hearth_work {
    const char *what; /* lives as long as the engine */
    hearth_work_limit limit;
    double ms;      /* of all threads together */
    uint64_t bytes; /* moved at least: weights, keys, values and state, or else activations read and written */
    uint64_t ops;   /* of linears, experts, attention and recurrences, 2 a multiply-add */
} hearth_work;

/* Start to take the time of each kind of work, from zero (run 1), or stop (0): then what was measured is forgotten. A
 * clock that runs costs each thread some 30 ns a piece of work. Starting allocates; calls do not. */
HEARTH_API hearth_status hearth_engine_clock(hearth_engine *engine, int run, hearth_error *err);
/* Write the kinds of work since the clock was started (at most `capacity`) and return how many there are. */
HEARTH_API size_t hearth_engine_work(const hearth_engine *engine, hearth_work *out, size_t capacity);

/* ---- Explain: what open would do, computing nothing and touching no weight ---- */

/* Parts of an explanation, or'ed. */
typedef enum hearth_explain_part {
    HEARTH_EXPLAIN_FACTS = 1,   /* what model, backend and tokenizer are */
    HEARTH_EXPLAIN_PLAN = 2,    /* the memory plan, and what is allowed */
    HEARTH_EXPLAIN_OPTIONS = 4, /* options in force; those that leave the choice to open, as it has chosen */
    HEARTH_EXPLAIN_PROGRAM = 8, /* ops, shapes, places of activations, kernels */
    HEARTH_EXPLAIN_ALL = 15
} hearth_explain_part;

/* What to explain. */
typedef struct hearth_explain_request {
    const char *path;
    const hearth_options *options; /* NULL: defaults */
    unsigned parts;                /* at least one */
    int json;                      /* 1: one JSON object; 0: text */
} hearth_explain_request;

/* Write an explanation. What goes wrong is told before anything is written; whether all of it could be written, ferror
 * of the stream tells. */
HEARTH_API hearth_status hearth_explain_to(const hearth_explain_request *request, FILE *out, hearth_error *err);
/* All parts, as text. */
HEARTH_API hearth_status hearth_explain(const char *path, const hearth_options *options, FILE *out, hearth_error *err);

/* ---- Sessions ---- */

/* HEARTH_TOO_LONG when all planned sessions are open. */
HEARTH_API hearth_status hearth_session_create(hearth_engine *engine, hearth_session **out, hearth_error *err);
HEARTH_API void hearth_session_free(hearth_session **session); /* its blocks return to the pool */

HEARTH_API int64_t hearth_session_position(const hearth_session *session); /* tokens consumed */
/* The tokens consumed, valid until the session changes. */
HEARTH_API const hearth_token *hearth_session_tokens(const hearth_session *session);

/* Go back to `position` tokens (0: empty). HEARTH_BAD_ARGUMENT when it is negative or beyond the position. A model with
 * recurrent state can go back only to a mark on the session's own way, or to 0: any other position is refused, and the
 * text names the nearest that would do. A poisoned session that goes back to 0 is whole again. */
HEARTH_API hearth_status hearth_session_truncate(hearth_session *session, int64_t position, hearth_error *err);

/* ---- Marks ---- */

/* A mark: what a session held when it had consumed `position` tokens. A call leaves it on its way, in the same passes
 * and without changing a bit of them; any session of the engine can come back to it any number of times. The engine
 * keeps it, at most as many as were planned (option mark-slots), until it is dropped; a session that is freed takes
 * none with it. Its keys and values are shared with the sessions; recurrent state is a copy. */
typedef struct hearth_mark {
    int64_t position; /* in */
    int64_t id;       /* out: names the mark, counting from 1; 0 when it was not left */
} hearth_mark;

/* Make the session hold what was held at the mark; a poisoned session is whole again. HEARTH_NOT_FOUND: no mark has
 * this id (any more). */
HEARTH_API hearth_status hearth_session_restore(hearth_session *session, int64_t id, hearth_error *err);

/* Forget a mark; its slot and the blocks that nothing else holds are free again. HEARTH_NOT_FOUND as above. */
HEARTH_API hearth_status hearth_mark_drop(hearth_engine *engine, int64_t id, hearth_error *err);

typedef struct hearth_mark_info {
    int64_t id, position;
    const hearth_token *tokens; /* [position], valid until the mark is dropped */
} hearth_mark_info;

/* Write the marks kept, oldest first (at most `capacity`), and return how many there are. */
HEARTH_API size_t hearth_engine_marks(const hearth_engine *engine, hearth_mark_info *out, size_t capacity);

typedef struct hearth_sync_report {
    int64_t shared;   /* leading tokens that the request has in common with the session, or with a mark */
    int64_t kept;     /* leading tokens that were not computed again */
    int64_t computed; /* rows computed */
    int64_t passes;
    int64_t restored; /* id of the mark that the kept part came from; 0: from the session itself, or nothing was kept */
} hearth_sync_report;

/* Make the session hold exactly `tokens` (count >= 1): keep what the session or a mark has of them, go back, compute
 * the rest. *logits are those of the last token, valid until the next call on the engine; it is computed again when the
 * whole request was held. marks[0 .. mark_count-1], by increasing position up to count, are left on the way; one in the
 * part that is kept, or at its end, gets the id of the mark which is there already; where there is none, one at the end
 * is left and one before it gets 0. marks, logits and report may be NULL. HEARTH_TOO_LONG, with both numbers, when the
 * context, the slots for marks or the KV blocks are too few: then nothing has changed. */
HEARTH_API hearth_status hearth_session_sync(hearth_session *session, const hearth_token *tokens, int64_t count,
                                             hearth_mark *marks, size_t mark_count, const float **logits,
                                             hearth_sync_report *report, hearth_error *err);

/* ---- Runs ---- */

typedef enum hearth_outputs {
    HEARTH_OUTPUT_NONE, /* no logits */
    HEARTH_OUTPUT_LAST, /* logits after the item's last token */
    HEARTH_OUTPUT_ALL   /* logits after each token */
} hearth_outputs;

/* Tokens to append to one session. */
typedef struct hearth_item {
    hearth_session *session;
    const hearth_token *tokens;
    int64_t count; /* >= 1 */
    hearth_outputs outputs;
    const float
        *logits;        /* out: [outputs of this item][vocab], valid until the next call on the engine; NULL for none */
    hearth_mark *marks; /* to leave on the way, by increasing position: from the session's position before the call to
                           that after it; NULL for none */
    size_t mark_count;
} hearth_item;

/* Append all items' tokens, each session at most once, in as few passes as the rows need. All checks (ids, context,
 * blocks, outputs and marks planned) come before any row runs: a refused call has changed nothing. A failure inside a
 * pass poisons the sessions of that call by name; a value that is not finite, only the session it belongs to. Marks
 * that the call left in a session which it poisons are dropped. */
HEARTH_API hearth_status hearth_engine_run(hearth_engine *engine, hearth_item *items, size_t count, hearth_error *err);

/* The passes of a call, for a progress display: called on the calling thread after each pass with rows done and rows in
 * all. A non-zero answer stops the call: HEARTH_CANCELLED, the sessions hold the rows done. NULL removes it. */
typedef int hearth_progress_fn(void *context, int64_t done, int64_t total);
HEARTH_API void hearth_engine_set_progress(hearth_engine *engine, hearth_progress_fn *progress, void *context);

#ifdef __cplusplus
}
#endif
#endif
