/* The model a verb works on. The functions answer an exit status, and print why when it is not HTH_EXIT_OK. */
#ifndef HTH_CLI_MODEL_H
#define HTH_CLI_MODEL_H

#include "cli/args.h"
#include "hearth/engine.h"

enum { HTH_MAX_PATH = 4096 };

/* Where -m says, else the default model, which has to be there. */
int hth_find_model(const hth_args *args, char path[HTH_MAX_PATH]);

int hth_open_tokenizer(const hth_args *args, const char *path, hearth_tokenizer **out);
int hth_open_engine(const hth_args *args, const char *path, hearth_engine **out);
/* The same with a tokenizer of the same path (NULL: none), which becomes the engine's: then *tokenizer is NULL. */
int hth_open_engine_with(const hth_args *args, const char *path, hearth_tokenizer **tokenizer, hearth_engine **out);

/* Positions that the model was made for, read from the file's metadata; 0 when it does not say. */
int64_t hth_model_context(const char *path);
/* Refuse a prompt of `count` tokens for which the model, made for `model` positions (0: unknown), or the context that
 * is asked for has no room. */
int hth_check_fits(const hth_args *args, int64_t model, int64_t count);

/* Set an INT option; or only when the user has left it alone. */
int hth_set_int(hth_args *args, const char *option, int64_t value);
int hth_set_default(hth_args *args, const char *option, int64_t value);
/* The value in force of an INT or BOOL option; *set (may be NULL): whether it was set. */
int64_t hth_int_option(const hth_args *args, const char *option, bool *set);

#endif
