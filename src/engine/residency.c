/* Where weights lie while an engine is open, and making them present there.
 *
 * Mapped (option load=map): the file's own pages, shared with the system's page cache. One thread walks them in order
 * (MADV_POPULATE_READ), which keeps the system's readahead in step: on the machines measured it read a file as fast as
 * the disk gave it, at a tenth of the processor time of parallel reads into the page cache; two walkers broke the
 * readahead up. The mapping asks for huge pages: where the file system has them, reading takes half the time, what was
 * read so is mapped again at once, and passes that stream weights are a seventh faster.
 *
 * Read (load=read): memory of our own on huge pages, filled by a few threads around the page cache (O_DIRECT). The
 * system takes none of it back, and it costs its size in private memory.
 */
#include "engine/residency.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/pagemap.h"
#include "base/thread.h"
#include "engine/engine.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

enum {
    MAPPERS = 2, /* threads that map what the page cache has, where cores are left for them */
    MANY_CORES = 4,
    READERS = 4,          /* threads that read around the page cache */
    IDLE_MS = 1000,       /* a call after so long a pause looks whether weights are still there */
    GAP_NS = 1,           /* asked for; waking up takes some 100 µs, in which a thread that waits for memory gets it */
    GAP_AFTER_NS = 50000, /* pieces that take less keep nobody waiting */
    ROW_PAGES = 16,       /* pages that a row of an embedding table may lie in */
    PIECE_PAGES = 1 << 10 /* pages asked about at a time */
};

/* ---- What is brought ---- */

static bool is_linear_weight(const hth_program *p, hth_tensor_id id) {
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; k < HTH_OP_WEIGHTS && p->ops[i].opcode != HTH_OP_EMBED; k++)
            if (p->ops[i].weight[k] == id) return true;
    return false;
}

/* The embedding table is looked up a row at a time; only where a linear multiplies by it too is all of it read. */
static bool wanted_mapped(const hth_program *p, hth_tensor_id id) {
    return is_linear_weight(p, id);
}

static bool wanted_all(const hth_program *p, hth_tensor_id id) {
    (void)p;
    (void)id;
    return true;
}

/* ---- Mapped ---- */

static hearth_status lost(const hth_residency *r, const hth_piece *piece, hearth_error *err) {
    return hth_fail(err, HEARTH_IO, "'%s' cannot be read from byte %llu on: it became shorter, or the disk failed",
                    hth_gguf_file_at(r->gguf, piece->file)->path, (unsigned long long)piece->from);
}

/* Whether a piece has a part of the table that was set aside for single rows. */
static bool is_set_aside(const hth_residency *r, const hth_piece *piece) {
    return r->table.arrives && piece->file == r->table.file && piece->from < r->table.offset + r->table.bytes &&
           piece->to > r->table.offset;
}

/* The pages that are all of a weight. */
static void inner_pages(const hth_residency *r, uint64_t offset, uint64_t bytes, uint64_t *from, uint64_t *to) {
    *from = (offset + r->page - 1) / r->page * r->page;
    *to = (offset + bytes) / r->page * r->page;
}

/* The table arrives after all: read it like other weights. All of it at once, for huge pages end where advice does. */
static void take_back(const hth_residency *r) {
    uint64_t from, to;
    inner_pages(r, r->table.offset, r->table.bytes, &from, &to);
    if (from >= to) return;
    unsigned char *start = (unsigned char *)r->files[r->table.file].base + from;
    (void)madvise(start, (size_t)(to - from), MADV_NORMAL);
    (void)madvise(start, (size_t)(to - from), MADV_HUGEPAGE);
}

/* To populate is to hold the address space as a reader; a walker that asks for it again at once overtakes a thread that
 * waits to map memory, for milliseconds. A short sleep lets that one in. */
static void leave_gap(const hth_residency *r, uint64_t since_ns) {
    static const struct timespec gap = {.tv_nsec = GAP_NS};
    if (atomic_load(&r->gaps) && hth_now_ns() - since_ns >= GAP_AFTER_NS) nanosleep(&gap, NULL);
}

static hearth_status bring_mapped(void *context, const hth_piece *piece, hearth_error *err) {
    const hth_residency *r = context;
    unsigned char *start = (unsigned char *)r->files[piece->file].base + piece->from;
    size_t size = (size_t)(piece->to - piece->from);
    const uint64_t start_ns = hth_now_ns();
    if (is_set_aside(r, piece)) take_back(r);
    if (madvise(start, size, MADV_POPULATE_READ) != 0) {
        if (errno == ENOMEM) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for %zu bytes of weights", size);
        if (errno != EINVAL) return lost(r, piece, err);
        /* A kernel older than 5.14 does not know the advice. */
        for (size_t i = 0; i < size; i += r->page) (void)((volatile unsigned char *)start)[i];
    }
    leave_gap(r, start_ns);
    return HEARTH_OK;
}

/* Rows of an embedding table lie anywhere: reading ahead of one would read megabytes that nobody asked for. */
static void set_aside(const hth_residency *r, const hth_weight *w) {
    uint64_t from, to;
    inner_pages(r, w->offset, w->bytes, &from, &to);
    if (from >= to) return;
    (void)madvise((unsigned char *)r->files[w->file].base + from, (size_t)(to - from), MADV_NOHUGEPAGE);
    (void)madvise((unsigned char *)r->files[w->file].base + from, (size_t)(to - from), MADV_RANDOM);
}

static void find_tables(hth_residency *r, const hth_program *p) {
    for (int i = 0; i < p->n_ops && !r->copy && !r->lock; i++) {
        const hth_op *op = &p->ops[i];
        if (op->opcode != HTH_OP_EMBED) continue;
        const hth_tensor *t = &p->tensors[op->weight[0]];
        set_aside(r, &t->weight);
        if (p->tensors[op->in[0]].input != HTH_INPUT_TOKENS || r->table.row_bytes) continue;
        r->table.file = t->weight.file;
        r->table.offset = t->weight.offset;
        r->table.bytes = t->weight.bytes;
        r->table.row_bytes = t->weight.bytes / (uint64_t)t->dims[1].n;
        r->table.arrives = is_linear_weight(p, op->weight[0]);
    }
}

void hth_residency_hint(const hth_residency *r, const int32_t *tokens, int64_t count) {
    if (!r->table.row_bytes || !r->may_ask || (r->table.arrives && !r->pending)) return;
    const unsigned char *base = r->files[r->table.file].base;
    for (int64_t i = 0; i < count; i++) {
        uint64_t from = r->table.offset + (uint64_t)tokens[i] * r->table.row_bytes;
        uint64_t first = from / r->page * r->page, end = from + r->table.row_bytes;
        unsigned char there[ROW_PAGES];
        bool gone = false;
        if ((end - first + r->page - 1) / r->page > ROW_PAGES) return; /* a row so long is read in one go */
        if (mincore((void *)(uintptr_t)(base + first), (size_t)(end - first), there) != 0) return;
        for (uint64_t k = 0; k * r->page < end - first; k++) gone |= !(there[k] & 1);
        if (gone) (void)madvise((void *)(uintptr_t)(base + first), (size_t)(end - first), MADV_WILLNEED);
    }
}

/* ---- Read ---- */

/* Read what is still to be read of a file through the page cache. */
static bool leave_direct(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_DIRECT) == 0;
}

static hearth_status bring_read(void *context, const hth_piece *piece, hearth_error *err) {
    const hth_residency *r = context;
    const int fd = r->descriptors[piece->file];
    unsigned char *base = (unsigned char *)r->files[piece->file].base;
    uint64_t at = piece->from;
    bool direct = true;
    while (at < piece->to) {
        size_t size = (size_t)(piece->to - at);
        /* Whole pages are asked for, as O_DIRECT wants it; the file may end inside the last one. */
        if (direct) size = (size + r->page - 1) / r->page * r->page;
        ssize_t n = pread(fd, base + at, size, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        /* Disks with blocks of more than a page, and reads that ended inside of one. */
        if (n < 0 && errno == EINVAL && direct && leave_direct(fd)) {
            direct = false;
            continue;
        }
        if (n < 0)
            return hth_fail(err, HEARTH_IO, "cannot read '%s' at byte %llu: %s",
                            hth_gguf_file_at(r->gguf, piece->file)->path, (unsigned long long)at, strerror(errno));
        if (n == 0) return lost(r, piece, err);
        at += (uint64_t)n;
    }
    return HEARTH_OK;
}

static hearth_status open_direct(hth_residency *r, int i, hearth_error *err) {
    const hth_gguf_file *file = hth_gguf_file_at(r->gguf, i);
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    if (fd < 0 && errno == EINVAL) fd = open(file->path, O_RDONLY | O_CLOEXEC); /* a file system without it */
    if (fd < 0) return hth_fail(err, HEARTH_IO, "cannot open '%s' again: %s", file->path, strerror(errno));
    r->descriptors[i] = fd;
    struct stat st;
    if (fstat(fd, &st) != 0) return hth_fail(err, HEARTH_IO, "cannot stat '%s': %s", file->path, strerror(errno));
    if (!hth_gguf_is_file(r->gguf, i, &st))
        return hth_fail(err, HEARTH_IO, "'%s' was replaced or changed its size while it was opened", file->path);
    return HEARTH_OK;
}

/* Address space for a copy of each file; memory only where weights are read to. */
static hearth_status make_room(hth_residency *r, hearth_error *err) {
    for (int i = 0; i < r->n_files; i++) {
        HTH_TRY(open_direct(r, i, err));
        HTH_TRY(hth_arena_reserve(&r->copies[i], (size_t)r->files[i].size + r->page, "a copy of the weights", err));
        r->files[i].base = r->copies[i].base;
    }
    return HEARTH_OK;
}

static void close_descriptors(hth_residency *r) {
    for (int i = 0; r->descriptors && i < r->n_files; i++)
        if (r->descriptors[i] >= 0) close(r->descriptors[i]);
    free(r->descriptors);
    r->descriptors = NULL;
}

/* ---- What is there ---- */

/* How many pages of a piece are not in memory. */
static uint64_t pages_gone(const hth_residency *r, const hth_piece *piece) {
    unsigned char there[PIECE_PAGES];
    const unsigned char *base = r->files[piece->file].base;
    uint64_t gone = 0;
    for (uint64_t at = piece->from; at < piece->to; at += (uint64_t)PIECE_PAGES * r->page) {
        uint64_t left = piece->to - at, size = left < PIECE_PAGES * r->page ? left : PIECE_PAGES * r->page;
        uint64_t pages = (size + r->page - 1) / r->page;
        if (mincore((void *)(uintptr_t)(base + at), (size_t)size, there) != 0) return 0;
        for (uint64_t i = 0; i < pages; i++) gone += !(there[i] & 1);
    }
    return gone;
}

/* Weights are in the page cache, as far as the first and last page of each piece tell: then there is no readahead to
 * keep in step. (To ask about every page of a mapping that is not populated yet takes a fifth of what populating does.)
 */
static bool is_cached(const hth_residency *r) {
    if (!r->may_ask) return false;
    for (size_t i = 0; i < r->arrival.count; i++) {
        const hth_piece *piece = &r->arrival.pieces[i];
        const uint64_t last = (piece->to - 1) / r->page * r->page;
        const hth_piece ends[] = {{piece->file, 0, piece->from, piece->from + r->page},
                                  {piece->file, 0, last, piece->to}};
        if (pages_gone(r, &ends[0]) > 0 || pages_gone(r, &ends[1]) > 0) return false;
    }
    return true;
}

/* ---- Beginning ---- */

/* Whether the system tells us which pages of a file are there: to those who own it, or may write it. */
static bool may_ask(const hth_gguf *g, int n_files) {
    for (int i = 0; i < n_files; i++) {
        struct stat st;
        const char *path = hth_gguf_file_at(g, i)->path;
        if (stat(path, &st) != 0 || (st.st_uid != geteuid() && access(path, W_OK) != 0)) return false;
    }
    return true;
}

hearth_status hth_residency_create(hth_residency *r, const hth_gguf *gguf, const hearth_options *options,
                                   hearth_error *err) {
    *r = (hth_residency){.gguf = gguf,
                         .n_files = hth_gguf_file_count(gguf),
                         .page = (size_t)sysconf(_SC_PAGESIZE),
                         .lock = hth_option_bool(options, HTH_OPTION_LOCK),
                         .copy = strcmp(hth_option_text(options, HTH_OPTION_LOAD), "read") == 0,
                         .idle_ms = IDLE_MS,
                         .keeper.seconds = hth_option_int(options, HTH_OPTION_KEEP_WARM)};
    r->files = calloc((size_t)r->n_files, sizeof *r->files);
    r->copies = calloc((size_t)r->n_files, sizeof *r->copies);
    r->descriptors = malloc((size_t)r->n_files * sizeof *r->descriptors);
    for (int i = 0; r->descriptors && i < r->n_files; i++) r->descriptors[i] = -1;
    if (!r->files || !r->copies || !r->descriptors)
        return hth_fail(err, HEARTH_NO_MEMORY, "no memory for %d files", r->n_files);
    for (int i = 0; i < r->n_files; i++) {
        const hth_gguf_file *f = hth_gguf_file_at(gguf, i);
        r->files[i] = (hth_file_view){f->base, f->size};
    }
    r->may_ask = !r->copy && may_ask(gguf, r->n_files);
    return r->copy ? make_room(r, err) : HEARTH_OK;
}

/* ---- What the system took back ---- */

/* How many pages of a piece are to be populated again. Of a file that is not ours the page cache does not tell, but our
 * page tables do: what the system takes back it takes out of them. False: neither tells. */
static bool find_gone(const hth_residency *r, const hth_piece *piece, uint64_t *gone) {
    uint64_t bytes = 0;
    const bool told = r->may_ask || hth_absent_bytes(r->files[piece->file].base + piece->from,
                                                     (size_t)(piece->to - piece->from), &bytes);
    *gone = r->may_ask ? pages_gone(r, piece) : bytes / r->page;
    return told;
}

static uint64_t thread_faults(void) {
    uint64_t minor, major;
    hth_thread_faults(&minor, &major);
    return minor + major;
}

/* `end`: NULL, or moves when the rest is not wanted any more. */
static hearth_status restore(hth_residency *r, const hth_frontier *end, uint64_t *refaults, hearth_error *err) {
    for (size_t i = 0; i < r->arrival.count; i++) {
        const hth_piece *piece = &r->arrival.pieces[i];
        if (end && hth_frontier_reached(end, 1)) break;
        uint64_t gone;
        const bool told = find_gone(r, piece, &gone);
        if (told && gone == 0) continue;
        const uint64_t before = thread_faults();
        HTH_TRY(bring_mapped(r, piece, err));
        *refaults += told ? gone : thread_faults() - before;
    }
    return HEARTH_OK;
}

hearth_status hth_residency_ready(hth_residency *r, uint64_t *refaults, hearth_error *err) {
    if (r->pending) return HEARTH_OK;
    uint64_t now = hth_now_ns();
    bool rested = now - r->last_use_ns >= (uint64_t)r->idle_ms * 1000000u;
    r->last_use_ns = now;
    return rested && !r->copy && !r->lock ? restore(r, NULL, refaults, err) : HEARTH_OK;
}

/* ---- Keeping warm ---- */

static void *keep_warm(void *arg) {
    hth_residency *r = arg;
    while (!hth_frontier_wait_ms(&r->keeper.end, 1, r->keeper.seconds * 1000)) {
        uint64_t pages = 0;
        /* A file that cannot be read any more is the next call's to report. */
        if (hth_frontier_reached(&r->arrival.frontier, r->arrival.all_ops + 1))
            (void)restore(r, &r->keeper.end, &pages, NULL);
        atomic_fetch_add(&r->keeper.pages, pages);
    }
    return NULL;
}

static hearth_status start_keeper(hth_residency *r, hearth_error *err) {
    if (r->keeper.seconds == 0) return HEARTH_OK;
    if (r->copy || r->lock)
        return hth_fail(err, HEARTH_BAD_OPTION,
                        "keep-warm has nothing to do: the system takes back no weights that are %s",
                        r->copy ? "copied (option load)" : "locked (option lock)");
    hth_frontier_init(&r->keeper.end);
    int error = hth_thread_start(&r->keeper.thread, 0, keep_warm, r);
    r->keeper.started = error == 0;
    if (r->keeper.started) return HEARTH_OK;
    hth_frontier_destroy(&r->keeper.end);
    return hth_fail(err, HEARTH_NO_MEMORY, "cannot start a thread that keeps weights warm: %s", strerror(error));
}

/* ---- The life of it ---- */

hearth_status hth_residency_place(hth_residency *r, const hth_program *program, hearth_error *err) {
    const hth_arrival_order order = {.wanted = r->copy || r->lock ? wanted_all : wanted_mapped,
                                     .window = (uint64_t)16 << 20,
                                     .piece = (uint64_t)4 << 20};
    HTH_TRY(hth_arrival_plan(&r->arrival, program, r->files, &order, err));
    find_tables(r, program);
    r->cached = is_cached(r);
    return HEARTH_OK;
}

const char *hth_residency_place_name(const hth_residency *r) {
    if (r->copy) return "copied to private memory";
    return r->cached ? "file pages, cached" : r->may_ask ? "file pages, not all cached" : "file pages";
}

static void count_huge(void *context) {
    hth_residency *r = context;
    r->tells_huge = true;
    for (int i = 0; i < r->n_files && r->tells_huge; i++) {
        uint64_t bytes;
        r->tells_huge = hth_huge_bytes(r->files[i].base, (size_t)r->files[i].size, &bytes);
        r->huge += bytes;
    }
    if (r->huge > r->arrival.bytes) r->huge = r->arrival.bytes; /* they may reach beyond */
}

/* Lock all that becomes present from now on. Whole mappings: a lock of a piece would cut huge pages at its ends. */
static hearth_status lock_all(const hth_residency *r, hearth_error *err) {
    for (int i = 0; i < r->n_files && r->lock; i++) {
        const size_t size = (size_t)r->files[i].size;
        if (mlock2(r->files[i].base, size, MLOCK_ONFAULT) == 0) continue;
        const char *why = errno == EPERM || errno == ENOMEM || errno == EAGAIN
                              ? "more than this process may lock (ulimit -l)"
                              : strerror(errno);
        return hth_fail(err, HEARTH_NO_MEMORY, "cannot lock %zu bytes of weights in memory: %s (option lock)", size,
                        why);
    }
    return HEARTH_OK;
}

hearth_status hth_residency_start(hth_residency *r, int cores, hearth_error *err) {
    r->pending = true;
    r->arrival.arrived_all = count_huge;
    HTH_TRY(lock_all(r, err));
    HTH_TRY(start_keeper(r, err));
    if (r->copy) return hth_arrival_start(&r->arrival, READERS, bring_read, r, err);
    atomic_store(&r->gaps, true);
    return hth_arrival_start(&r->arrival, cores >= MANY_CORES && r->cached ? MAPPERS : 1, bring_mapped, r, err);
}

void hth_residency_hurry(hth_residency *r) {
    atomic_store(&r->gaps, false);
}

uint64_t hth_residency_outstanding(const hth_residency *r) {
    return r->arrival.bytes - atomic_load(&r->arrival.arrived);
}

void hth_residency_stop(hth_residency *r) {
    if (r->keeper.started) {
        hth_frontier_advance(&r->keeper.end, 1);
        pthread_join(r->keeper.thread, NULL);
        hth_frontier_destroy(&r->keeper.end);
        r->keeper.started = false;
    }
    hth_arrival_end(&r->arrival);
}

void hth_residency_free(hth_residency *r) {
    hth_residency_stop(r);
    close_descriptors(r);
    for (int i = 0; r->lock && r->files && i < r->n_files; i++)
        (void)munlock(r->files[i].base, (size_t)r->files[i].size);
    for (int i = 0; r->copies && i < r->n_files; i++) hth_arena_unmap(&r->copies[i]);
    free(r->copies);
    free(r->files);
    memset(r, 0, sizeof *r);
}
