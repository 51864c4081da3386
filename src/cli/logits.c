/* `hearth logits`: the logits after every token of a prompt.
 *
 * The prompt runs in calls that end at each --cuts position and after at most --outputs rows; with --beside, other
 * sessions run other tokens in the same calls; with --marks, the calls leave marks, and after them the session comes
 * back to each, the last one first, and runs the rest again. None of it may change a bit of what is written.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonout.h"
#include "cli/args.h"
#include "cli/input.h"
#include "cli/model.h"
#include "cli/report.h"
#include "cli/say.h"
#include "cli/sha256.h"
#include "cli/verbs.h"
#include "hearth/engine.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "rows are written as they lie in memory");

enum { MAX_BESIDE = 255, DEFAULT_OUTPUTS = 128 };

typedef struct logits_flags {
    const char *tokens, *prompt, *file, *out, *cuts, *marks;
    int64_t beside;
    bool no_special, no_bos;
} logits_flags;

/* Everything a run of the verb holds; logits_free copes with any part of it missing. */
typedef struct logits_state {
    hth_args args;
    logits_flags flags;
    char path[HTH_MAX_PATH];
    hth_tokens tokens;
    int64_t *cuts;
    size_t n_cuts;
    hearth_tokenizer *tokenizer; /* until the engine has it */
    hearth_engine *engine;
    hearth_session *session;
    hearth_session *beside[MAX_BESIDE];
    hearth_token *others; /* what the sessions beside run, one after the other */
    hearth_item items[1 + MAX_BESIDE];
    hearth_model_info info;
    FILE *out;
    hth_sha256 hash;
    int32_t *best; /* the largest logit of each row */
    hearth_mark *marks;
    size_t n_marks;
    char (*digests)[65]; /* with marks: of each row */
} logits_state;

static bool parse_flags(int argc, char **argv, logits_state *s, int *status) {
    logits_flags *f = &s->flags;
    const hth_flag flags[] = {
        {0, "tokens", NULL, HTH_FLAG_TEXT, &f->tokens, "1,2,3", "the prompt as token ids", 0, 0},
        {'p', "prompt", NULL, HTH_FLAG_TEXT, &f->prompt, "TEXT", "the prompt as text", 0, 0},
        {'f', "file", NULL, HTH_FLAG_TEXT, &f->file, "FILE", "read it from a file; default: standard input", 0, 0},
        {'o', "out", NULL, HTH_FLAG_TEXT, &f->out, "FILE", "write the rows: float32, little-endian, a row a token", 0,
         0},
        {0, "cuts", NULL, HTH_FLAG_TEXT, &f->cuts, "7,20", "run the prompt as calls that end there", 0, 0},
        {0, "beside", NULL, HTH_FLAG_INT, &f->beside, "N", "run N other sessions in the same calls (0)", 0, MAX_BESIDE},
        {0, "no-special", NULL, HTH_FLAG_SWITCH, &f->no_special, NULL, "read control tokens in the prompt as text", 0,
         0},
        {0, "no-bos", NULL, HTH_FLAG_SWITCH, &f->no_bos, NULL, "add no begin or end token to the prompt", 0, 0},
        {0, "marks", NULL, HTH_FLAG_TEXT, &f->marks, "0,12", "leave marks there, come back to each and compare", 0, 0},
    };
    static const hth_default defaults[] = {{"ctx", NULL, "the prompt's tokens"},
                                           {"outputs", NULL, "the prompt's, at most 128"},
                                           {"sessions", NULL, "1, and those beside"},
                                           {"mark-slots", NULL, "those of --marks"}};
    const hth_command command = {
        .verb = "logits",
        .summary = "Compute the logits after every token of a prompt.",
        .notes = "The report holds the shape, the SHA-256 of the rows as they are written, and the largest logit of\n"
                 "each row. --outputs bounds the rows of one call.",
        .scopes = HTH_SCOPES_ENGINE,
        .flags = flags,
        .n_flags = sizeof flags / sizeof *flags,
        .defaults = defaults,
        .n_defaults = sizeof defaults / sizeof *defaults};
    return hth_args_parse(&command, argc, argv, &s->args, status);
}

/* ---- Preparation ---- */

static int read_tokens(logits_state *s) {
    const logits_flags *f = &s->flags;
    if (f->tokens && (f->prompt || f->file)) {
        hth_complain("the prompt is given as --tokens or as text, not as both");
        return HTH_EXIT_USAGE;
    }
    int status;
    if (f->tokens) {
        status = hth_parse_tokens(f->tokens, strlen(f->tokens), &s->tokens);
    } else {
        hth_text text = {NULL, 0};
        unsigned how = (f->no_special ? 0 : HEARTH_ENCODE_SPECIAL) | (f->no_bos ? 0 : HEARTH_ENCODE_ADD);
        status = hth_read_text(f->prompt, f->file, HTH_MOST_TEXT, &text);
        if (status == HTH_EXIT_OK) status = hth_open_tokenizer(&s->args, s->path, &s->tokenizer);
        if (status == HTH_EXIT_OK) status = hth_encode(s->tokenizer, text, how, &s->tokens);
        free(text.data);
    }
    if (status != HTH_EXIT_OK || s->tokens.count > 0) return status;
    hth_complain("the prompt has no tokens");
    return HTH_EXIT_USAGE;
}

static int read_cuts(logits_state *s) {
    if (!s->flags.cuts) return HTH_EXIT_OK;
    int status = hth_parse_numbers("--cuts", s->flags.cuts, 1, (int64_t)s->tokens.count, &s->cuts, &s->n_cuts);
    for (size_t i = 1; status == HTH_EXIT_OK && i < s->n_cuts; i++)
        if (s->cuts[i] <= s->cuts[i - 1]) {
            hth_complain("--cuts: positions have to increase");
            status = HTH_EXIT_USAGE;
        }
    return status;
}

static int read_marks(logits_state *s) {
    int64_t *positions = NULL;
    if (!s->flags.marks) return HTH_EXIT_OK;
    int status = hth_parse_numbers("--marks", s->flags.marks, 0, (int64_t)s->tokens.count, &positions, &s->n_marks);
    if (status == HTH_EXIT_OK) {
        s->marks = calloc(s->n_marks + 1, sizeof *s->marks);
        s->digests = calloc(s->tokens.count, sizeof *s->digests);
        if (!s->marks || !s->digests) status = hth_out_of_memory();
    }
    for (size_t i = 0; status == HTH_EXIT_OK && i < s->n_marks; i++) {
        s->marks[i].position = positions[i];
        if (i == 0 || positions[i] > positions[i - 1]) continue;
        hth_complain("--marks: positions have to increase");
        status = HTH_EXIT_USAGE;
    }
    free(positions);
    return status;
}

static int open_all(logits_state *s) {
    int64_t count = (int64_t)s->tokens.count, beside = s->flags.beside;
    int64_t outputs = (count < DEFAULT_OUTPUTS ? count : DEFAULT_OUTPUTS) + beside;
    int status = hth_check_fits(&s->args, hth_model_context(s->path), count);
    if (status == HTH_EXIT_OK && hth_int_option(&s->args, "ctx", NULL) == 0)
        status = hth_set_int(&s->args, "ctx", count);
    if (status == HTH_EXIT_OK) status = hth_set_default(&s->args, "outputs", outputs);
    if (status == HTH_EXIT_OK) status = hth_set_default(&s->args, "sessions", 1 + beside);
    if (status == HTH_EXIT_OK) status = hth_set_default(&s->args, "mark-slots", (int64_t)s->n_marks);
    if (status == HTH_EXIT_OK) status = hth_open_engine_with(&s->args, s->path, &s->tokenizer, &s->engine);
    if (status != HTH_EXIT_OK) return status;
    hearth_engine_info(s->engine, &s->info);
    if (s->info.sessions <= beside) {
        hth_complain("--sessions %lld leaves none for the prompt beside %lld", (long long)s->info.sessions,
                     (long long)beside);
        return HTH_EXIT_USAGE;
    }
    if (s->info.outputs <= beside) {
        hth_complain("--outputs %lld leaves no row for the prompt beside %lld session%s", (long long)s->info.outputs,
                     (long long)beside, hth_plural(beside));
        return HTH_EXIT_USAGE;
    }
    s->best = malloc(s->tokens.count * sizeof *s->best);
    s->others = malloc(s->tokens.count * (size_t)(beside + 1) * sizeof *s->others);
    if (!s->best || !s->others) return hth_out_of_memory();
    hearth_error err = {HEARTH_OK, ""};
    hearth_status opened = hearth_session_create(s->engine, &s->session, &err);
    for (int64_t i = 0; i < beside && opened == HEARTH_OK; i++)
        opened = hearth_session_create(s->engine, &s->beside[i], &err);
    if (opened != HEARTH_OK) return hth_complain_error(&err);
    if (s->flags.out && !(s->out = fopen(s->flags.out, "wbe"))) {
        hth_complain("cannot open %s: %s", s->flags.out, strerror(errno));
        return HTH_EXIT_FAILED;
    }
    return HTH_EXIT_OK;
}

/* ---- The calls ---- */

/* The token of session `i` beside at a position: some other text, the same on every run. */
static hearth_token other_token(const logits_state *s, int64_t i, int64_t position) {
    uint64_t x = ((uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)position * UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 29;
    x *= UINT64_C(0x94d049bb133111eb);
    return (hearth_token)((x >> 33) % (uint64_t)s->info.vocab);
}

/* The call that takes the prompt from `from` to `to`: the sessions beside have fewer rows each, so that the call is
 * ragged. It leaves the marks from *mark on that lie there. */
static size_t make_items(logits_state *s, int64_t from, int64_t to, size_t *mark) {
    s->items[0] = (hearth_item){.session = s->session,
                                .tokens = s->tokens.ids + from,
                                .count = to - from,
                                .outputs = HEARTH_OUTPUT_ALL,
                                .marks = s->marks ? s->marks + *mark : NULL};
    while (*mark < s->n_marks && s->marks[*mark].position <= to) {
        s->items[0].mark_count++;
        ++*mark;
    }
    hearth_token *next = s->others;
    for (int64_t i = 0; i < s->flags.beside; i++) {
        int64_t rows = to - from > i + 1 ? to - from - i - 1 : 1, position = hearth_session_position(s->beside[i]);
        s->items[1 + i] =
            (hearth_item){.session = s->beside[i], .tokens = next, .count = rows, .outputs = HEARTH_OUTPUT_LAST};
        for (int64_t k = 0; k < rows; k++) *next++ = other_token(s, i, position + k);
    }
    return 1 + (size_t)s->flags.beside;
}

static int32_t largest(const float *row, int32_t vocab) {
    int32_t best = 0;
    for (int32_t i = 1; i < vocab; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

static int keep_rows(logits_state *s, const float *rows, int64_t from, int64_t to) {
    size_t row = (size_t)s->info.vocab, size = (size_t)(to - from) * row;
    hth_sha256_add(&s->hash, rows, size * sizeof *rows);
    for (int64_t i = from; i < to; i++) {
        const float *at = rows + (size_t)(i - from) * row;
        s->best[i] = largest(at, s->info.vocab);
        if (s->digests) hth_sha256_digest(at, row * sizeof *at, s->digests[i]);
    }
    if (!s->out || fwrite(rows, sizeof *rows, size, s->out) == size) return HTH_EXIT_OK;
    hth_complain("cannot write %s: %s", s->flags.out, strerror(errno));
    return HTH_EXIT_FAILED;
}

static int compute(logits_state *s) {
    int64_t count = (int64_t)s->tokens.count, most = s->info.outputs - s->flags.beside;
    hearth_error err = {HEARTH_OK, ""};
    size_t cut = 0, mark = 0;
    hth_sha256_begin(&s->hash);
    for (int64_t from = 0, to; from < count; from = to) {
        while (cut < s->n_cuts && s->cuts[cut] <= from) cut++;
        int64_t end = cut < s->n_cuts ? s->cuts[cut] : count;
        to = end - from > most ? from + most : end;
        size_t n = make_items(s, from, to, &mark);
        if (hearth_engine_run(s->engine, s->items, n, &err) != HEARTH_OK) return hth_complain_error(&err);
        int status = keep_rows(s, s->items[0].logits, from, to);
        if (status != HTH_EXIT_OK) return status;
        hth_progress("computing tokens:", to, count);
    }
    hth_progress_end();
    if (s->out) {
        FILE *out = s->out;
        s->out = NULL;
        if (fclose(out) != 0) {
            hth_complain("cannot write %s: %s", s->flags.out, strerror(errno));
            return HTH_EXIT_FAILED;
        }
    }
    return HTH_EXIT_OK;
}

/* Come back to a mark and run the rest of the prompt again. */
static int run_again(logits_state *s, const hearth_mark *mark) {
    int64_t count = (int64_t)s->tokens.count, most = s->info.outputs - s->flags.beside;
    size_t row = (size_t)s->info.vocab;
    hearth_error err = {HEARTH_OK, ""};
    if (hearth_session_restore(s->session, mark->id, &err) != HEARTH_OK) return hth_complain_error(&err);
    for (int64_t from = mark->position, to; from < count; from = to) {
        to = count - from > most ? from + most : count;
        hearth_item item = {
            .session = s->session, .tokens = s->tokens.ids + from, .count = to - from, .outputs = HEARTH_OUTPUT_ALL};
        if (hearth_engine_run(s->engine, &item, 1, &err) != HEARTH_OK) return hth_complain_error(&err);
        for (int64_t i = from; i < to; i++) {
            char digest[65];
            hth_sha256_digest(item.logits + (size_t)(i - from) * row, row * sizeof *item.logits, digest);
            if (strcmp(digest, s->digests[i]) == 0) continue;
            hth_complain("from the mark at %lld, row %lld has other bits", (long long)mark->position, (long long)i);
            return HTH_EXIT_FAILED;
        }
    }
    return HTH_EXIT_OK;
}

/* Last one first, each dropped after its turn: what it alone holds of the first way is then free for the next. */
static int run_marks_again(logits_state *s) {
    int status = HTH_EXIT_OK;
    for (size_t i = s->n_marks; i > 0 && status == HTH_EXIT_OK; i--) {
        status = run_again(s, &s->marks[i - 1]);
        hearth_mark_drop(s->engine, s->marks[i - 1].id, NULL);
        hth_progress("running from marks:", (int64_t)(s->n_marks - i) + 1, (int64_t)s->n_marks);
    }
    hth_progress_end();
    return status;
}

/* ---- Report ---- */

static void report(logits_state *s) {
    char digest[65];
    hth_sha256_end(&s->hash, digest);
    if (!s->args.common.json) {
        hth_outf("%zu row%s of %d float32\nsha256 %s\nlargest", s->tokens.count, hth_plural((int64_t)s->tokens.count),
                 (int)s->info.vocab, digest);
        for (size_t i = 0; i < s->tokens.count; i++) hth_outf(" %d", (int)s->best[i]);
        hth_outf("\n");
        if (s->n_marks)
            hth_outf("%zu mark%s: the rest has the same bits from each\n", s->n_marks, hth_plural((int64_t)s->n_marks));
        return;
    }
    hth_json json = {.out = stdout};
    hth_json_open(&json, NULL, '{');
    hth_report_model(&json, s->path, s->engine);
    hth_json_open(&json, "tokens", '[');
    for (size_t i = 0; i < s->tokens.count; i++) hth_json_int(&json, NULL, s->tokens.ids[i]);
    hth_json_close(&json, ']');
    hth_json_open(&json, "shape", '[');
    hth_json_int(&json, NULL, (int64_t)s->tokens.count);
    hth_json_int(&json, NULL, s->info.vocab);
    hth_json_close(&json, ']');
    hth_json_text(&json, "dtype", "float32");
    hth_json_text(&json, "byte_order", "little");
    hth_json_text(&json, "sha256", digest);
    if (s->flags.out) hth_json_bytes(&json, "out", s->flags.out, strlen(s->flags.out));
    hth_json_open(&json, "largest", '[');
    for (size_t i = 0; i < s->tokens.count; i++) hth_json_int(&json, NULL, s->best[i]);
    hth_json_close(&json, ']');
    if (s->n_marks) {
        hth_json_open(&json, "marks", '[');
        for (size_t i = 0; i < s->n_marks; i++) {
            hth_json_open(&json, NULL, '{');
            hth_json_int(&json, "position", s->marks[i].position);
            hth_json_int(&json, "rows_again", (int64_t)s->tokens.count - s->marks[i].position);
            hth_json_bool(&json, "same_bits", true);
            hth_json_close(&json, '}');
        }
        hth_json_close(&json, ']');
    }
    hth_report_counters(&json, s->engine);
    hth_json_close(&json, '}');
}

static void logits_free(logits_state *s) {
    if (s->out) fclose(s->out);
    for (int i = 0; i < MAX_BESIDE; i++) hearth_session_free(&s->beside[i]);
    hearth_session_free(&s->session);
    hearth_engine_close(&s->engine);
    hearth_tokenizer_close(&s->tokenizer);
    free(s->tokens.ids);
    free(s->cuts);
    free(s->others);
    free(s->best);
    free(s->marks);
    free(s->digests);
    hth_args_free(&s->args);
}

int hth_verb_logits(int argc, char **argv) {
    logits_state *s = calloc(1, sizeof *s);
    int status;
    if (!s) return hth_out_of_memory();
    if (parse_flags(argc, argv, s, &status)) {
        status = hth_find_model(&s->args, s->path);
        if (status == HTH_EXIT_OK) status = read_tokens(s);
        if (status == HTH_EXIT_OK) status = read_cuts(s);
        if (status == HTH_EXIT_OK) status = read_marks(s);
        if (status == HTH_EXIT_OK) status = open_all(s);
        if (status == HTH_EXIT_OK) status = compute(s);
        if (status == HTH_EXIT_OK) status = run_marks_again(s);
        if (status == HTH_EXIT_OK) report(s);
    }
    logits_free(s);
    free(s);
    return status;
}
