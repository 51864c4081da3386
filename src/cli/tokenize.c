/* `hearth tokenize` and `hearth detokenize`: text to ids and back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonout.h"
#include "cli/args.h"
#include "cli/input.h"
#include "cli/model.h"
#include "cli/say.h"
#include "cli/verbs.h"

/* ---- Text to ids ---- */

typedef struct tokenize_flags {
    const char *prompt, *file;
    bool no_special, no_bos, pieces;
} tokenize_flags;

/* The bytes of a token as JSON shows text, so that control characters do no harm to a terminal. */
static void print_pieces(const hearth_tokenizer *tokenizer, const hth_tokens *tokens) {
    hth_json json = {.out = stdout};
    hth_json_open(&json, NULL, '[');
    for (size_t i = 0; i < tokens->count; i++) {
        const char *data = "";
        size_t size = 0;
        hearth_tokenizer_piece(tokenizer, tokens->ids[i], 1, &data, &size, NULL);
        hth_json_open(&json, NULL, '{');
        hth_json_int(&json, "id", tokens->ids[i]);
        hth_json_bytes(&json, "piece", data, size);
        hth_json_close(&json, '}');
    }
    hth_json_close(&json, ']');
}

static void print_ids(const hth_tokens *tokens, bool as_json) {
    if (!as_json) {
        for (size_t i = 0; i < tokens->count; i++)
            if (!hth_outf(i ? ",%d" : "%d", (int)tokens->ids[i])) return;
        hth_outf("\n");
        return;
    }
    hth_json json = {.out = stdout};
    hth_json_open(&json, NULL, '{');
    hth_json_open(&json, "ids", '[');
    for (size_t i = 0; i < tokens->count; i++) hth_json_int(&json, NULL, tokens->ids[i]);
    hth_json_close(&json, ']');
    hth_json_close(&json, '}');
}

static int tokenize(const hth_args *args, const tokenize_flags *flags) {
    char path[HTH_MAX_PATH];
    hth_text text = {NULL, 0};
    hth_tokens tokens = {NULL, 0};
    hearth_tokenizer *tokenizer = NULL;
    unsigned how = (flags->no_special ? 0 : HEARTH_ENCODE_SPECIAL) | (flags->no_bos ? 0 : HEARTH_ENCODE_ADD);
    int status = hth_find_model(args, path);
    if (status == HTH_EXIT_OK) status = hth_read_text(flags->prompt, flags->file, HTH_MOST_TEXT, &text);
    if (status == HTH_EXIT_OK) status = hth_open_tokenizer(args, path, &tokenizer);
    if (status == HTH_EXIT_OK) status = hth_encode(tokenizer, text, how, &tokens);
    if (status == HTH_EXIT_OK) {
        if (flags->pieces) print_pieces(tokenizer, &tokens);
        else print_ids(&tokens, args->common.json);
    }
    hearth_tokenizer_close(&tokenizer);
    free(tokens.ids);
    free(text.data);
    return status;
}

int hth_verb_tokenize(int argc, char **argv) {
    tokenize_flags f = {NULL, NULL, false, false, false};
    const hth_flag flags[] = {
        {'p', "prompt", NULL, HTH_FLAG_TEXT, &f.prompt, "TEXT", "the text", 0, 0},
        {'f', "file", NULL, HTH_FLAG_TEXT, &f.file, "FILE", "read it from a file; default: standard input", 0, 0},
        {0, "no-special", NULL, HTH_FLAG_SWITCH, &f.no_special, NULL, "read control tokens in the text as text", 0, 0},
        {0, "no-bos", NULL, HTH_FLAG_SWITCH, &f.no_bos, NULL, "add no begin or end token", 0, 0},
        {0, "pieces", NULL, HTH_FLAG_SWITCH, &f.pieces, NULL, "ids with the bytes they stand for, as JSON", 0, 0},
    };
    const hth_command command = {.verb = "tokenize",
                                 .summary =
                                     "Print the token ids of a text, separated by commas, or as {\"ids\": [...]} "
                                     "with --json.",
                                 .notes = "A file with a vocabulary and no tensors is enough. Bytes are taken as they "
                                          "are, a last newline too.",
                                 .scopes = HTH_SCOPES_TEXT,
                                 .flags = flags,
                                 .n_flags = sizeof flags / sizeof *flags};
    hth_args args;
    int status;
    if (!hth_args_parse(&command, argc, argv, &args, &status)) return status;
    status = tokenize(&args, &f);
    hth_args_free(&args);
    return status;
}

/* ---- Ids to text ---- */

typedef struct detokenize_flags {
    const char *tokens, *file;
    bool no_special, show_added;
} detokenize_flags;

/* The ids of --tokens, of the operands, of the file, or of standard input. */
static int read_ids(const hth_args *args, const detokenize_flags *flags, hth_tokens *out) {
    const hth_list *operands = &args->operands;
    if ((flags->tokens != NULL) + (flags->file != NULL) + (operands->count > 0) > 1) {
        hth_complain("ids come from --tokens, from --file or from the command line, not from two of them");
        return HTH_EXIT_USAGE;
    }
    if (flags->tokens) return hth_parse_tokens(flags->tokens, strlen(flags->tokens), out);
    hth_text text = {NULL, 0};
    int status;
    if (operands->count > 0) {
        FILE *memory = open_memstream(&text.data, &text.size);
        if (!memory) return hth_out_of_memory();
        for (size_t i = 0; i < operands->count; i++) fprintf(memory, "%s ", operands->items[i]);
        status = fclose(memory) == 0 ? HTH_EXIT_OK : hth_out_of_memory();
    } else {
        status = hth_read_text(NULL, flags->file, HTH_MOST_TEXT, &text);
    }
    if (status == HTH_EXIT_OK) status = hth_parse_tokens(text.data, text.size, out);
    free(text.data);
    return status;
}

/* Leave out what tokenize adds, so that one undoes the other. */
static void drop_added(const hearth_tokenizer *tokenizer, hth_tokens *tokens) {
    size_t count = tokens->count;
    if (count > 0 && hearth_tokenizer_adds_eos(tokenizer) && tokens->ids[count - 1] == hearth_tokenizer_eos(tokenizer))
        tokens->count = --count;
    if (count > 0 && hearth_tokenizer_adds_bos(tokenizer) && tokens->ids[0] == hearth_tokenizer_bos(tokenizer))
        memmove(tokens->ids, tokens->ids + 1, --tokens->count * sizeof *tokens->ids);
}

static int decode(const hearth_tokenizer *tokenizer, const hth_tokens *tokens, bool special, hth_text *out) {
    hearth_error err = {HEARTH_OK, ""};
    hearth_status status =
        hearth_tokenizer_decode(tokenizer, tokens->ids, tokens->count, special, NULL, 0, &out->size, &err);
    if (status != HEARTH_OK && status != HEARTH_TOO_LONG) return hth_complain_error(&err);
    out->data = malloc(out->size + 1);
    if (!out->data) return hth_out_of_memory();
    status =
        hearth_tokenizer_decode(tokenizer, tokens->ids, tokens->count, special, out->data, out->size, &out->size, &err);
    return status == HEARTH_OK ? HTH_EXIT_OK : hth_complain_error(&err);
}

static int detokenize(const hth_args *args, const detokenize_flags *flags) {
    char path[HTH_MAX_PATH];
    hth_tokens tokens = {NULL, 0};
    hth_text text = {NULL, 0};
    hearth_tokenizer *tokenizer = NULL;
    int status = hth_find_model(args, path);
    if (status == HTH_EXIT_OK) status = read_ids(args, flags, &tokens);
    if (status == HTH_EXIT_OK) status = hth_open_tokenizer(args, path, &tokenizer);
    if (status == HTH_EXIT_OK) {
        if (!flags->show_added) drop_added(tokenizer, &tokens);
        status = decode(tokenizer, &tokens, !flags->no_special, &text);
    }
    if (status == HTH_EXIT_OK && args->common.json) {
        hth_json json = {.out = stdout};
        hth_json_open(&json, NULL, '{');
        hth_json_bytes(&json, "text", text.data, text.size);
        hth_json_close(&json, '}');
    } else if (status == HTH_EXIT_OK) {
        hth_out(text.data, text.size);
    }
    hearth_tokenizer_close(&tokenizer);
    free(tokens.ids);
    free(text.data);
    return status;
}

int hth_verb_detokenize(int argc, char **argv) {
    detokenize_flags f = {NULL, NULL, false, false};
    const hth_flag flags[] = {
        {0, "tokens", NULL, HTH_FLAG_TEXT, &f.tokens, "1,2,3", "the ids", 0, 0},
        {'f', "file", NULL, HTH_FLAG_TEXT, &f.file, "FILE", "read them from a file; default: standard input", 0, 0},
        {0, "no-special", NULL, HTH_FLAG_SWITCH, &f.no_special, NULL, "leave control tokens out", 0, 0},
        {0, "added", NULL, HTH_FLAG_SWITCH, &f.show_added, NULL, "show the begin and end tokens that tokenize adds", 0,
         0},
    };
    const hth_command command = {.verb = "detokenize",
                                 .summary = "Print the bytes that token ids stand for: what tokenize was given.",
                                 .operands = "[ID ...]",
                                 .notes = "Ids are separated by commas or blanks; brackets are ignored. A file with a "
                                          "vocabulary and no tensors is enough.",
                                 .scopes = HTH_SCOPES_TEXT,
                                 .flags = flags,
                                 .n_flags = sizeof flags / sizeof *flags};
    hth_args args;
    int status;
    if (!hth_args_parse(&command, argc, argv, &args, &status)) return status;
    status = detokenize(&args, &f);
    hth_args_free(&args);
    return status;
}
