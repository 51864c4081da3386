/* What the tokenizer does, for scripts to compare with others. Documents are read from and ids written to files of
 * records: a 32-bit count, little-endian, and so many bytes, or ids of 32 bits.
 *
 *   text_tool ids MODEL DOCUMENTS OUT [pre=NAME] [nfc=0|1] [special] [add]   ids of each document; the time it took
 *   text_tool pieces PRE DOCUMENTS OUT     sizes of the pieces into which a pre-tokenizer cuts each document
 *   text_tool patterns                     the table of pre-tokenizers: name, flags, steps, separated by tabs
 *   text_tool output FORMAT|auto:TEMPLATE TOOLS|- PROMPT   what an output parser makes of standard input, after a
 * prompt (output_log.h)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/output_log.h"
#include "text/pretokenizer.h"
#include "text/tokenizer_internal.h"

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what) {
    fprintf(stderr, "text_tool: %s\n", what);
    exit(1);
}

static FILE *open_or_die(const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (file == NULL) die(path);
    return file;
}

/* The next document, grown into *text; false at the end of the file. */
static bool read_document(FILE *file, char **text, uint32_t *size) {
    if (fread(size, sizeof *size, 1, file) != 1) return false;
    *text = realloc(*text, *size + 1u);
    if (*text == NULL || fread(*text, 1, *size, file) != *size) die("cut document");
    return true;
}

static void write_record(FILE *file, const void *data, size_t count) {
    uint32_t n = (uint32_t)count;
    if (fwrite(&n, sizeof n, 1, file) != 1 || fwrite(data, 4, count, file) != count) die("cannot write");
}

static int ids(int argc, char **argv) {
    hearth_tokenizer_options options = {.nfc = -1};
    unsigned flags = 0;
    for (int i = 5; i < argc; i++) {
        if (strncmp(argv[i], "pre=", 4) == 0) options.pre = argv[i] + 4;
        else if (strncmp(argv[i], "nfc=", 4) == 0) options.nfc = argv[i][4] - '0';
        else if (strcmp(argv[i], "special") == 0) flags |= HEARTH_ENCODE_SPECIAL;
        else if (strcmp(argv[i], "add") == 0) flags |= HEARTH_ENCODE_ADD;
        else die("unknown argument");
    }
    hearth_error err;
    hearth_tokenizer *t;
    double start = cpu_seconds();
    if (hearth_tokenizer_open(argv[2], &options, &t, &err) != HEARTH_OK) die(err.text);
    double opened = cpu_seconds() - start, took = 0;
    FILE *in = open_or_die(argv[3], "rb"), *out = open_or_die(argv[4], "wb");
    char *text = NULL;
    hearth_token *tokens = NULL;
    size_t bytes = 0, total = 0;
    for (uint32_t size; read_document(in, &text, &size);) {
        size_t count, capacity = size + 8u;
        tokens = realloc(tokens, capacity * sizeof *tokens);
        start = cpu_seconds();
        hearth_status status = hearth_tokenizer_encode(t, text, size, flags, tokens, capacity, &count, &err);
        took += cpu_seconds() - start;
        if (status != HEARTH_OK) die(err.text);
        write_record(out, tokens, count);
        bytes += size;
        total += count;
    }
    printf("{\"open_ms\": %.3f, \"encode_s\": %.6f, \"bytes\": %zu, \"tokens\": %zu}\n", opened * 1e3, took, bytes,
           total);
    free(text);
    free(tokens);
    hearth_tokenizer_close(&t);
    return fclose(in) | fclose(out);
}

typedef struct size_list {
    uint32_t *sizes;
    size_t count;
} size_list;

static hearth_status note_size(void *context, const char *piece, size_t size, hearth_error *err) {
    size_list *list = context;
    (void)piece, (void)err;
    list->sizes[list->count++] = (uint32_t)size;
    return HEARTH_OK;
}

static int pieces(char **argv) {
    hearth_error err;
    hth_pretokenizer *p;
    const hth_pre_row *row = hth_pre_find(argv[2], strlen(argv[2]));
    if (row == NULL) die("unknown pre-tokenizer");
    if (hth_pretokenizer_create(row, &p, &err) != HEARTH_OK) die(err.text);
    FILE *in = open_or_die(argv[3], "rb"), *out = open_or_die(argv[4], "wb");
    char *text = NULL;
    for (uint32_t size; read_document(in, &text, &size);) {
        size_list list = {malloc((size + 1u) * sizeof(uint32_t)), 0};
        hth_piece_sink sink = {note_size, &list, 0};
        if (list.sizes == NULL || hth_pretokenizer_split(p, text, size, &sink, &err) != HEARTH_OK) die("cannot split");
        write_record(out, list.sizes, list.count);
        free(list.sizes);
    }
    free(text);
    hth_pretokenizer_free(&p);
    return fclose(in) | fclose(out);
}

static int patterns(void) {
    size_t count;
    const hth_pre_row *rows = hth_pre_rows(&count);
    for (size_t i = 0; i < count; i++) {
        printf("%s\t%u", rows[i].name, rows[i].flags);
        for (const char *const *step = rows[i].steps; *step != NULL; step++) printf("\t%s", *step);
        puts("");
    }
    return 0;
}

static char *read_all(FILE *file, size_t *size) {
    char *text = NULL;
    size_t got = 1;
    for (*size = 0; got > 0; *size += got) {
        text = realloc(text, *size + 65536);
        if (text == NULL) die("no memory");
        got = fread(text + *size, 1, 65536, file);
    }
    fclose(file);
    return text;
}

static int output(char **argv) {
    hearth_error err = {0};
    hearth_output_format format;
    size_t size, prompt_size;
    if (strncmp(argv[2], "auto:", 5) == 0) {
        char *chat_template = read_all(open_or_die(argv[2] + 5, "rb"), &size);
        format = hearth_output_format_detect(chat_template, size);
        free(chat_template);
    } else if (hearth_output_format_find(argv[2], &format, &err) != HEARTH_OK) {
        die(err.text);
    }
    char *tools = strcmp(argv[3], "-") == 0 ? NULL : read_all(open_or_die(argv[3], "rb"), &size);
    hearth_output_options options = {.tools = tools, .tools_size = size};
    char *prompt = read_all(open_or_die(argv[4], "rb"), &prompt_size);
    options.starts_in_reasoning = hearth_output_prompt_opens_reasoning(format, prompt, prompt_size);
    hearth_output_parser *parser;
    if (hearth_output_parser_create(format, &options, &parser, &err) != HEARTH_OK) die(err.text);
    char *text = read_all(stdin, &size);
    output_log log = {0};
    hearth_output_result result;
    if (output_parse(parser, text, size, NULL, 0, &log, &result, &err) != HEARTH_OK) die(err.text);
    const char *wrong = log.wrong != NULL ? log.wrong : output_check(format, &result);
    printf("%s\n%s", hearth_output_format_name(format), log.lines.data);
    if (wrong != NULL) die(wrong);
    output_log_free(&log);
    hearth_output_parser_free(&parser);
    free(tools);
    free(prompt);
    free(text);
    return 0;
}

int main(int argc, char **argv) {
    const char *verb = argc > 1 ? argv[1] : "";
    if (strcmp(verb, "ids") == 0 && argc >= 5) return ids(argc, argv);
    if (strcmp(verb, "pieces") == 0 && argc == 5) return pieces(argv);
    if (strcmp(verb, "patterns") == 0) return patterns();
    if (strcmp(verb, "output") == 0 && argc == 5) return output(argv);
    die("usage: text_tool ids MODEL DOCUMENTS OUT [...] | pieces PRE DOCUMENTS OUT | patterns | output FORMAT TOOLS "
        "PROMPT");
    return 2;
}
