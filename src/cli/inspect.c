/* `hearth inspect`: what is in a GGUF file. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/jsonout.h"
#include "base/utf8.h"
#include "cli/args.h"
#include "cli/model.h"
#include "cli/say.h"
#include "cli/verbs.h"
#include "hearth/file.h"

#define SHOWN_ELEMENTS      8   /* of an array, in the text form */
#define SHOWN_STRING_BYTES  160 /* of a string value */
#define SHOWN_ELEMENT_BYTES 40  /* of a string in an array */

/* One dtype over all tensors. */
typedef struct dtype_total {
    const char *dtype;
    bool supported;
    uint64_t tensors, bytes;
} dtype_total;

typedef struct totals {
    dtype_total rows[HTH_DTYPE_MAX];
    int count;
    uint64_t bytes, elements;
} totals;

static void add_up(const hearth_file *file, totals *sum) {
    *sum = (totals){0};
    for (uint64_t i = 0; i < hearth_file_tensor_count(file); i++) {
        hearth_file_tensor t;
        if (hearth_file_tensor_at(file, i, &t, NULL) != HEARTH_OK) continue;
        int row = 0;
        while (row < sum->count && strcmp(sum->rows[row].dtype, t.dtype) != 0) row++;
        if (row == sum->count) sum->rows[sum->count++] = (dtype_total){t.dtype, t.supported != 0, 0, 0};
        sum->rows[row].tensors++;
        sum->rows[row].bytes += t.bytes;
        sum->bytes += t.bytes;
        sum->elements += t.dims[0] * t.dims[1] * t.dims[2] * t.dims[3];
    }
}

/* Text */

/* The string, at most `limit` bytes of it, safe for a terminal; answers the columns written, counting a character as
 * one. */
static int print_escaped(FILE *out, const char *data, size_t size, size_t limit) {
    int columns = 0;
    size_t i = 0;
    while (i < size && i < limit) {
        uint32_t c = 0;
        int n = hth_utf8_decode(data + i, size - i, &c);
        if (n == 0) {
            columns += fprintf(out, "\\x%02x", (unsigned char)data[i++]);
            continue;
        }
        if (c == '\n') columns += fprintf(out, "\\n");
        else if (c == '"' || c == '\\') columns += fprintf(out, "\\%c", (char)c);
        else if (hth_is_control(c)) columns += fprintf(out, "\\u{%" PRIx32 "}", c);
        else columns += fwrite(data + i, 1, (size_t)n, out) == (size_t)n;
        i += (size_t)n;
    }
    return columns;
}

static void print_string(FILE *out, const char *data, size_t size, size_t limit) {
    putc('"', out);
    print_escaped(out, data, size, limit);
    if (size > limit) fprintf(out, "...\" (%zu bytes)", size);
    else putc('"', out);
}

static void print_padded(FILE *out, const char *data, size_t size, int width) {
    int columns = print_escaped(out, data, size, size);
    if (columns < width) fprintf(out, "%*s", width - columns, "");
}

/* 98362432 (93.8 MiB) */
static void print_bytes(FILE *out, uint64_t bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    fprintf(out, "%" PRIu64 " bytes", bytes);
    double scaled = (double)bytes / 1024;
    size_t unit = 0;
    while (scaled >= 1024 && unit + 1 < sizeof units / sizeof *units) {
        scaled /= 1024;
        unit++;
    }
    if (bytes >= 1024) fprintf(out, " (%.1f %s)", scaled, units[unit]);
}

static void print_element(FILE *out, const hearth_file *file, uint64_t i, uint64_t e, const char *type, size_t limit) {
    const char *data;
    size_t size;
    uint64_t natural;
    int64_t integer;
    double real;
    char text[32];
    if (strcmp(type, "string") == 0 && hearth_file_string(file, i, e, &data, &size, NULL) == HEARTH_OK) {
        print_string(out, data, size, limit);
    } else if (strcmp(type, "bool") == 0 && hearth_file_int(file, i, e, &integer, NULL) == HEARTH_OK) {
        fputs(integer ? "true" : "false", out);
    } else if (hearth_file_uint(file, i, e, &natural, NULL) == HEARTH_OK) {
        fprintf(out, "%" PRIu64, natural);
    } else if (hearth_file_int(file, i, e, &integer, NULL) == HEARTH_OK) {
        fprintf(out, "%" PRId64, integer);
    } else if (hearth_file_float(file, i, e, &real, NULL) == HEARTH_OK) {
        if (strcmp(type, "f32") == 0) hth_format_float(text, (float)real);
        else hth_format_double(text, real);
        fputs(text, out);
    }
}

static void print_entry(FILE *out, const hearth_file *file, uint64_t i, const hearth_file_entry *entry) {
    char type[24];
    snprintf(type, sizeof type, entry->element ? "[%s]" : "%s", entry->element ? entry->element : entry->type);
    fputs("  ", out);
    print_padded(out, entry->key, entry->key_size, 44);
    fprintf(out, " %-8s ", type);
    if (!entry->element) {
        print_element(out, file, i, 0, entry->type, SHOWN_STRING_BYTES);
    } else {
        putc('[', out);
        for (uint64_t e = 0; e < entry->count && e < SHOWN_ELEMENTS; e++) {
            if (e > 0) fputs(", ", out);
            print_element(out, file, i, e, entry->element, SHOWN_ELEMENT_BYTES);
        }
        fputs(entry->count > SHOWN_ELEMENTS ? ", ...]" : "]", out);
        if (entry->count > SHOWN_ELEMENTS) fprintf(out, " (%" PRIu64 ")", entry->count);
    }
    putc('\n', out);
}

static void print_tensor(FILE *out, const hearth_file_tensor *t, int name_width, bool split) {
    char dims[96];
    int length = snprintf(dims, sizeof dims, "[");
    for (int d = 0; d < t->n_dims; d++)
        length += snprintf(dims + length, sizeof dims - (size_t)length, d ? ", %" PRIu64 : "%" PRIu64, t->dims[d]);
    snprintf(dims + length, sizeof dims - (size_t)length, "]");
    fputs("  ", out);
    print_padded(out, t->name, t->name_size, name_width);
    fprintf(out, "  %-7s  %-22s  %12" PRIu64 "  %12" PRIu64, t->dtype, dims, t->bytes, t->offset);
    if (split) fprintf(out, "  %5d", t->shard);
    fputs(t->supported ? "\n" : "  not supported\n", out);
}

static void print_tensors(FILE *out, const hearth_file *file) {
    uint64_t count = hearth_file_tensor_count(file);
    bool split = hearth_file_shards(file) > 1;
    int width = 4;
    hearth_file_tensor t;
    for (uint64_t i = 0; i < count; i++)
        if (hearth_file_tensor_at(file, i, &t, NULL) == HEARTH_OK && (int)t.name_size > width)
            width = (int)t.name_size; /* at most 63 */
    fprintf(out, "\ntensors: %" PRIu64 "\n", count);
    if (count == 0) return;
    fprintf(out, "  %-*s  %-7s  %-22s  %12s  %12s%s\n", width, "name", "dtype", "shape, fastest first", "bytes",
            "offset", split ? "  shard" : "");
    for (uint64_t i = 0; i < count; i++)
        if (hearth_file_tensor_at(file, i, &t, NULL) == HEARTH_OK) print_tensor(out, &t, width, split);
}

static void print_text(FILE *out, const char *path, const hearth_file *file) {
    totals sum;
    add_up(file, &sum);
    fputs("file: ", out);
    print_escaped(out, path, strlen(path), SIZE_MAX);
    int shards = hearth_file_shards(file);
    if (shards > 1) fprintf(out, ", %d shards", shards);
    fputs(", ", out);
    print_bytes(out, hearth_file_bytes(file));
    fprintf(out, "\nformat: GGUF version %" PRIu32 ", alignment %" PRIu32 "\n", hearth_file_version(file),
            hearth_file_alignment(file));
    fprintf(out, "\nmetadata: %" PRIu64 "\n", hearth_file_entry_count(file));
    for (uint64_t i = 0; i < hearth_file_entry_count(file); i++) {
        hearth_file_entry entry;
        if (hearth_file_entry_at(file, i, &entry, NULL) == HEARTH_OK) print_entry(out, file, i, &entry);
    }
    print_tensors(out, file);
    if (sum.count == 0) return;
    fprintf(out, "\ndtypes: %d\n", sum.count);
    for (int i = 0; i < sum.count; i++) {
        const dtype_total *row = &sum.rows[i];
        fprintf(out, "  %-7s  %5" PRIu64 " tensors  ", row->dtype, row->tensors);
        print_bytes(out, row->bytes);
        fputs(row->supported ? "\n" : "  not supported\n", out);
    }
    fprintf(out, "  total    %" PRIu64 " elements in ", sum.elements);
    print_bytes(out, sum.bytes);
    putc('\n', out);
}

/* JSON */

static void json_element(hth_json *json, const char *key, const hearth_file *file, uint64_t i, uint64_t e,
                         const char *type) {
    const char *data;
    size_t size;
    uint64_t natural;
    int64_t integer;
    double real;
    if (strcmp(type, "string") == 0 && hearth_file_string(file, i, e, &data, &size, NULL) == HEARTH_OK)
        hth_json_bytes(json, key, data, size);
    else if (strcmp(type, "bool") == 0 && hearth_file_int(file, i, e, &integer, NULL) == HEARTH_OK)
        hth_json_bool(json, key, integer != 0);
    else if (hearth_file_uint(file, i, e, &natural, NULL) == HEARTH_OK) hth_json_uint(json, key, natural);
    else if (hearth_file_int(file, i, e, &integer, NULL) == HEARTH_OK) hth_json_int(json, key, integer);
    else if (hearth_file_float(file, i, e, &real, NULL) == HEARTH_OK) {
        if (strcmp(type, "f32") == 0) hth_json_float(json, key, (float)real);
        else hth_json_double(json, key, real);
    }
}

static void json_entry(hth_json *json, const hearth_file *file, uint64_t i, const hearth_file_entry *entry) {
    hth_json_open(json, NULL, '{');
    hth_json_bytes(json, "key", entry->key, entry->key_size);
    hth_json_text(json, "type", entry->type);
    if (entry->element) {
        hth_json_text(json, "element", entry->element);
        hth_json_open(json, "value", '[');
        for (uint64_t e = 0; e < entry->count; e++) json_element(json, NULL, file, i, e, entry->element);
        hth_json_close(json, ']');
    } else {
        json_element(json, "value", file, i, 0, entry->type);
    }
    hth_json_close(json, '}');
}

static void json_tensor(hth_json *json, const hearth_file_tensor *t) {
    hth_json_open(json, NULL, '{');
    hth_json_bytes(json, "name", t->name, t->name_size);
    hth_json_text(json, "dtype", t->dtype);
    hth_json_bool(json, "supported", t->supported != 0);
    hth_json_open(json, "shape", '[');
    for (int d = 0; d < t->n_dims; d++) hth_json_uint(json, NULL, t->dims[d]);
    hth_json_close(json, ']');
    hth_json_uint(json, "bytes", t->bytes);
    hth_json_int(json, "shard", t->shard);
    hth_json_uint(json, "offset", t->offset);
    hth_json_close(json, '}');
}

static void json_totals(hth_json *json, const hearth_file *file) {
    totals sum;
    add_up(file, &sum);
    hth_json_open(json, "dtypes", '[');
    for (int i = 0; i < sum.count; i++) {
        const dtype_total *row = &sum.rows[i];
        hth_json_open(json, NULL, '{');
        hth_json_text(json, "dtype", row->dtype);
        hth_json_bool(json, "supported", row->supported);
        hth_json_uint(json, "tensors", row->tensors);
        hth_json_uint(json, "bytes", row->bytes);
        hth_json_close(json, '}');
    }
    hth_json_close(json, ']');
}

static void print_json(FILE *out, const char *path, const hearth_file *file) {
    hth_json json = {.out = out};
    hth_json_open(&json, NULL, '{');
    hth_json_bytes(&json, "path", path, strlen(path));
    hth_json_int(&json, "shards", hearth_file_shards(file));
    hth_json_uint(&json, "bytes", hearth_file_bytes(file));
    hth_json_uint(&json, "version", hearth_file_version(file));
    hth_json_uint(&json, "alignment", hearth_file_alignment(file));
    hth_json_open(&json, "metadata", '[');
    for (uint64_t i = 0; i < hearth_file_entry_count(file); i++) {
        hearth_file_entry entry;
        if (hearth_file_entry_at(file, i, &entry, NULL) == HEARTH_OK) json_entry(&json, file, i, &entry);
    }
    hth_json_close(&json, ']');
    hth_json_open(&json, "tensors", '[');
    for (uint64_t i = 0; i < hearth_file_tensor_count(file); i++) {
        hearth_file_tensor t;
        if (hearth_file_tensor_at(file, i, &t, NULL) == HEARTH_OK) json_tensor(&json, &t);
    }
    hth_json_close(&json, ']');
    json_totals(&json, file);
    hth_json_close(&json, '}');
}

/* Command line */

static int inspect(hth_args *args) {
    char path[HTH_MAX_PATH];
    if (args->operands.count > (args->common.model ? 0 : 1)) {
        hth_complain("one file at a time");
        return HTH_EXIT_USAGE;
    }
    if (args->operands.count > 0) args->common.model = args->operands.items[0];
    int status = hth_find_model(args, path);
    if (status != HTH_EXIT_OK) return status;
    hearth_file *file;
    hearth_error err = {HEARTH_OK, ""};
    if (hearth_file_open(path, &file, &err) != HEARTH_OK) return hth_complain_error(&err);
    if (args->common.json) print_json(stdout, path, file);
    else print_text(stdout, path, file);
    hearth_file_close(&file);
    hth_out("", 0); /* writes what is left, and keeps the reason if that fails */
    return HTH_EXIT_OK;
}

int hth_verb_inspect(int argc, char **argv) {
    const hth_command command = {
        .verb = "inspect",
        .summary = "Print what a GGUF file holds: facts, metadata, tensors, and the bytes of each dtype.",
        .operands = "[FILE]",
        .scopes = HTH_SCOPES_PROGRAM,
        .notes = "The architecture need not be one that Hearth runs. Long strings and arrays are cut, with their\n"
                 "sizes; --json has all of them. In JSON a byte string that is not UTF-8 is {\"hex\": \"...\"}, and\n"
                 "floats that JSON cannot write are the strings \"NaN\", \"Infinity\" and \"-Infinity\".",
    };
    hth_args args;
    int status;
    if (!hth_args_parse(&command, argc, argv, &args, &status)) return status;
    status = inspect(&args);
    hth_args_free(&args);
    return status;
}
