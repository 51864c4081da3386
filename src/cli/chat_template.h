/* The chat template of a model, and the tokens of the prompts it makes. The functions answer an exit status, and print
 * why when it is not HTH_EXIT_OK. */
#ifndef HTH_CLI_CHAT_TEMPLATE_H
#define HTH_CLI_CHAT_TEMPLATE_H

#include <stdbool.h>

#include "cli/args.h"
#include "cli/input.h"
#include "hearth/output.h"
#include "hearth/template.h"

enum { HTH_MAX_TOKEN_TEXT = 256 };

/* What a verb is told about the template. Nothing in it: nothing. */
typedef struct hth_template_flags {
    const char *file;  /* in place of the model's own */
    const char *tools; /* a file with the JSON array of the tools that it shows */
    hth_list arguments;
} hth_template_flags;

/* The flags' rows in a verb's table. */
/* clang-format off */
#define HTH_TEMPLATE_FLAGS(f)                                                                                         \
    {0, "template", "chat-template-file", HTH_FLAG_TEXT, &(f)->file, "FILE",                                          \
     "a chat template in place of the model's own", 0, 0},                                                            \
    {0, "template-arg", NULL, HTH_FLAG_LIST, &(f)->arguments, "NAME=VALUE",                                           \
     "a variable of the template: JSON, or a text; may be given several times", 0, 0}
/* clang-format on */

/* Nothing in it: no template. */
typedef struct hth_chat_template {
    hearth_template *template;   /* NULL: the model has none */
    hearth_output_format format; /* of reasoning and tool calls in the model's answers */
    hth_text tools;              /* JSON, NUL-terminated; data NULL: none */
    char bos[HTH_MAX_TOKEN_TEXT], eos[HTH_MAX_TOKEN_TEXT];
    hearth_template_variable *variables; /* those of the model and of the flags */
    size_t n_variables;
    char **names; /* [n_names] of the flags' variables */
    size_t n_names;
} hth_chat_template;

/* The text of the template that a GGUF file carries: that of `name`; for tools (name NULL) the one made for them, which
 * is also the default where it is the only one; else the default. out->data is NULL when there is none. */
int hth_read_chat_template(const char *path, const char *name, bool tools, hth_text *out);
/* The text of a token, "" for none (id < 0). */
void hth_token_text(const hearth_tokenizer *tokenizer, hearth_token id, char out[HTH_MAX_TOKEN_TEXT]);

/* The template that the flags name, or that of the model at `path`; the tokenizer is looked at and not kept, and what
 * the flags' texts point to must outlive the template. Tools and arguments that it would not look at are refused. Free
 * it also after a failure. */
int hth_chat_template_open(const char *path, const hth_template_flags *flags, const hearth_tokenizer *tokenizer,
                           hth_chat_template *out);
void hth_chat_template_free(hth_chat_template *t);

/* Render a request (JSON, hearth_template_render); marks as in hearth_template_options. */
int hth_chat_template_render(const hth_chat_template *t, hth_text request, int marks, hearth_rendering **out);

/* The ids of the rendering's text from byte `from` on, which is 0 or where a control token begins; no text of the
 * request becomes a control token. positions[i] of each mark at `from` or behind it: the number of those ids in front
 * of it; of others 0. positions may be NULL. out->ids is the caller's to free, also after a failure. */
int hth_encode_rendering(const hearth_tokenizer *tokenizer, const hearth_rendering *rendering, size_t from,
                         hth_tokens *out, size_t *positions);

#endif
