/* What the engine asks of a backend: lower a program once, hold its memory, run passes.
 *
 * Life of an executable: lower (bind a kernel to every op, size everything, allocate nothing large) → terms (the engine
 * checks the budget) → commit (allocate and touch) → link (what passes run, now that memory has addresses) → warm →
 * run, run, … → free. A step that fails leaves an executable that can only be freed.
 *
 * Ops address memory as (buffer, offset) through the plan; no host pointer is in a program, so a device backend needs
 * nothing else. Threads: one thread at a time is inside a backend; workers are the backend's own business.
 */
#ifndef HTH_BACKENDS_BACKEND_H
#define HTH_BACKENDS_BACKEND_H

#include "base/frontier.h"
#include "base/status.h"
#include "program/plan.h"
#include "program/print.h"
#include "program/program.h"

typedef struct hth_backend hth_backend;
typedef struct hth_executable hth_executable;

typedef struct hth_backend_config {
    int threads;         /* 0: the backend's default */
    bool pin;            /* pin each computing thread to a core */
    const char *kernels; /* tier asked for, "auto" for the best there is */
} hth_backend_config;

/* One mapped file that weights are in. */
typedef struct hth_file_view {
    const unsigned char *base;
    uint64_t size;
} hth_file_view;

/* What an executable is planned for. */
typedef struct hth_limits {
    hth_extents extents; /* largest rows, outs of one pass, sequences, checkpoints */
    int64_t outputs;     /* rows of logits kept for one call (may be more than one pass makes) */
    int64_t blocks;      /* KV blocks in the pool, each of HTH_BLOCK_POSITIONS positions in every layer */
    int64_t context;     /* positions of the longest session */
    hth_dtype kv;        /* F16 or F32 */
} hth_limits;

#define HTH_BLOCK_POSITIONS 64

/* A mark that a pass leaves: the recurrent state of a sequence as it is before row `row` of the pass, which may be the
 * row after its last one. */
typedef struct hth_pass_mark {
    int32_t seq, slot; /* slot: of the checkpoints */
    int64_t row;
} hth_pass_mark;

/* The first fault of a sequence in a pass, in the order of ops, then of rows: an op found a value that it cannot go on
 * with (a router's logit that is not finite). What follows from it is in the sequence's results alone. */
typedef struct hth_pass_fault {
    int32_t op; /* index in the program; -1: none */
    int64_t row;
} hth_pass_fault;

/* One pass. Rows of one sequence are contiguous, in increasing positions without gaps; sequences in row order. A
 * sequence whose first row is at position 0 starts from a state of zeros, whatever its slot holds. */
typedef struct hth_pass {
    int64_t rows, outs, seqs;
    const int32_t *tokens;             /* [rows] */
    const int64_t *positions;          /* [rows] */
    const int64_t *seq_rows;           /* [seqs + 1]: first row of each sequence, then rows */
    const int32_t *const *block_table; /* [seqs] → the sequence's blocks: position p is in block_table[s][p / 64] */
    const int32_t *state_slots;        /* [seqs]: each sequence's slot of recurrent state, no two the same */
    const hth_pass_mark *marks;        /* [n_marks], by sequence, then by increasing row; slots all different */
    int64_t n_marks;
    hth_pass_fault *faults;  /* [seqs], written by the pass */
    const int32_t *out_rows; /* [outs], increasing */
    hth_frontier *arrivals;  /* ops whose weights are there; a stage waits for its own. NULL: all are. Where it is cut
                                the pass ends, and leaves nothing that means anything: whoever cut it knows why */
    int64_t first_output;    /* where in the logits buffer this pass's outputs go, in rows */
} hth_pass;

typedef struct hth_memory_term {
    const char *what;
    uint64_t bytes;
} hth_memory_term;

/* The most that some of a backend's threads, or its device, can do together. */
typedef struct hth_peaks {
    int threads;             /* in: from 1 to the backend's */
    double read_bytes_per_s; /* from memory that no cache holds */
    double int8_ops_per_s;   /* multiply-adds of the kernels' instruction set on registers, 2 operations each */
    double float_ops_per_s;
    uint64_t read_bytes;  /* how much memory the reading went over, again and again */
    uint64_t cache_bytes; /* the last cache of the first core; 0: unknown */
    bool read_cached;     /* what was read is not much more than the caches hold: the rate may be theirs */
} hth_peaks;

/* What limits a kind of work. */
typedef enum hth_work_class {
    HTH_WORK_OTHER,        /* row by row, on activations that the caches hold */
    HTH_WORK_LINEAR_INT8,  /* reading weights, or int8 dot products */
    HTH_WORK_LINEAR_FLOAT, /* reading weights, or float multiply-adds */
    HTH_WORK_ATTENTION,    /* reading keys and values, or float multiply-adds */
    HTH_WORK_SCAN,         /* reading and writing recurrent state, or float multiply-adds */
    HTH_WORK_WAITING       /* of threads for each other */
} hth_work_class;

/* One kind of work: "linear Q4_K", "rms_norm". Bytes are those that a pass has to move at least: each weight, key and
 * value that it needs once, each activation that an op reads or writes. Operations are those of linears, experts,
 * attention and recurrences, 2 a multiply-add; other work counts none. */
typedef struct hth_work {
    const char *what; /* lives as long as the executable */
    hth_work_class class;
    uint64_t ns; /* of all threads together, while the clock ran */
    uint64_t bytes, ops;
} hth_work;

typedef struct hth_backend_type {
    const char *name; /* "cpu" */
    hearth_status (*open)(const hth_backend_config *config, hth_backend **out, hearth_error *err);
    void (*close)(hth_backend **backend);
    int (*threads)(const hth_backend *backend);
    const char *(*kernels)(const hth_backend *backend); /* the tier in use */

    /* Measure `count` rows, each for its number of threads, in about 0.2 s a row; between passes only. Maps at most
     * `memory` bytes meanwhile; HEARTH_NO_MEMORY when that is too little. */
    hearth_status (*peaks)(hth_backend *backend, uint64_t memory, hth_peaks *rows, size_t count, hearth_error *err);

    /* program, files and what they point to must outlive the executable. HEARTH_UNSUPPORTED names an op or dtype that
     * has no kernel. */
    hearth_status (*lower)(hth_backend *backend, const hth_program *program, const hth_file_view *files,
                           const hth_limits *limits, hth_executable **out, hearth_error *err);
    /* Write the memory terms (at most `capacity`) and return how many there are. */
    size_t (*terms)(const hth_executable *exe, hth_memory_term *out, size_t capacity);
    const hth_plan *(*plan)(const hth_executable *exe);
    hth_kernel_name_fn *kernel_name; /* context: the executable */
    /* HEARTH_CANCELLED when *stop (NULL: never) becomes true on the way. */
    hearth_status (*commit)(hth_executable *exe, const atomic_bool *stop, hearth_error *err);
    hearth_status (*link)(hth_executable *exe, hearth_error *err);
    hearth_status (*warm)(hth_executable *exe, hearth_error *err);
    hearth_status (*run)(hth_executable *exe, const hth_pass *pass, hearth_error *err);
    const float *(*logits)(const hth_executable *exe); /* [outputs][vocab] */
    /* Write the kinds of work (at most `capacity`) and return how many there are: of all passes since commit or, in
     * `timed`, of those since the clock was last started. */
    size_t (*work)(const hth_executable *exe, bool timed, hth_work *out, size_t capacity);
    /* Start the clock anew, or stop it; between passes, after commit. HEARTH_NO_MEMORY. */
    hearth_status (*clock)(hth_executable *exe, bool run, hearth_error *err);
    /* Copies between passes. A state slot takes a checkpoint's bytes; a KV block, in every layer, another block's. */
    void (*restore)(hth_executable *exe, int32_t mark_slot, int32_t state_slot);
    void (*copy_block)(hth_executable *exe, int32_t from, int32_t to);
    /* Whether the program has state that only a checkpoint can bring back. */
    bool (*has_state)(const hth_executable *exe);
    void (*free)(hth_executable **exe);
} hth_backend_type;

/* The registry. HEARTH_UNSUPPORTED names an unknown backend. */
hearth_status hth_backend_find(const char *name, const hth_backend_type **out, hearth_error *err);

#endif
