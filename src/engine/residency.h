/* Where weights lie while an engine is open, and making them present there. */
#ifndef HTH_ENGINE_RESIDENCY_H
#define HTH_ENGINE_RESIDENCY_H

#include "base/arena.h"
#include "base/options.h"
#include "engine/arrival.h"
#include "gguf/gguf.h"

typedef struct hth_residency {
    const hth_gguf *gguf;
    int n_files;
    hth_file_view *files; /* where the program's weights are: the mappings, or the copies */
    hth_arena *copies;    /* option load=read */
    int *descriptors;
    size_t page;
    bool copy, lock;
    bool may_ask;     /* the system tells which pages of the files are there */
    bool cached;      /* and all of them are there */
    atomic_bool gaps; /* weights arrive with gaps in between, in which open maps memory */
    bool pending;     /* weights may still be arriving; the engine's thread clears it */
    bool tells_huge;  /* once all have arrived: the system tells which weights are in huge pages, */
    uint64_t huge;    /* and so many bytes are */
    int64_t idle_ms;  /* a pause after which a call looks whether weights are still there */
    uint64_t last_use_ns;
    struct { /* the table of token embeddings, where it is mapped and not locked: its rows are read as they are asked
                for */
        int file;
        uint64_t offset, bytes, row_bytes; /* row_bytes 0: there is none */
        bool arrives;                      /* all of it, since a linear reads it too */
    } table;
    hth_arrival arrival;
    struct { /* option keep-warm: a thread that looks after the weights between calls */
        int64_t seconds;
        bool started;
        pthread_t thread;
        hth_frontier end; /* reaches 1 when it is to end */
        _Atomic uint64_t pages;
    } keeper;
} hth_residency;

/* Find out where files' weights will lie. Touches nothing. Free it also after a failure; gguf outlives it. */
hearth_status hth_residency_create(hth_residency *residency, const hth_gguf *gguf, const hearth_options *options,
                                   hearth_error *err);

/* Place the weights of the program: which become resident, in which order, and which are read by rows. Touches nothing
 * but asks which pages are in memory. */
hearth_status hth_residency_place(hth_residency *residency, const hth_program *program, hearth_error *err);

/* Where they were placed, in words: "file pages, cached"; static storage. */
const char *hth_residency_place_name(const hth_residency *residency);

/* Start the threads that make the weights present, and the one that keeps them so. cores: what they and the rest of
 * open share. */
hearth_status hth_residency_start(hth_residency *residency, int cores, hearth_error *err);

/* Open maps no more memory: the weights that are still to come need leave no gaps. */
void hth_residency_hurry(hth_residency *residency);

/* Bytes of weights that are still to arrive. */
uint64_t hth_residency_outstanding(const hth_residency *residency);

/* At the start of a call: after a pause, populate what the system took back and add its pages to *refaults. HEARTH_IO
 * names the file that cannot be read any more. */
hearth_status hth_residency_ready(hth_residency *residency, uint64_t *refaults, hearth_error *err);

/* Let the system begin to read the rows of these tokens that are not in memory, all at once: a pass would read them one
 * after the other. Returns without waiting. */
void hth_residency_hint(const hth_residency *residency, const int32_t *tokens, int64_t count);

/* End all threads; the memory stays. */
void hth_residency_stop(hth_residency *residency);

void hth_residency_free(hth_residency *residency); /* a zeroed one is ignored */

#endif
