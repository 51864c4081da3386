/* The one options table: command line, environment, file and C calls all go through it.
 *
 * An option is a name ("ctx", "temp"), typed, with a default, a range and a scope. Some have a second name that other
 * programs use ("repeat-last-n"); both mean the same everywhere. Unknown names are refused with the nearest known one;
 * a value outside the range is refused with the range. Numbers are written with a point, whatever the process's locale.
 * The environment variable of option "kv" is HEARTH_KV ("cpu-mask": HEARTH_CPU_MASK); it is read by
 * hearth_options_read_environment and nowhere else. Precedence is the caller's: later sets win.
 *
 * Threads: an options object belongs to one thread at a time; open and create calls copy what they need.
 */
#ifndef HEARTH_OPTIONS_H
#define HEARTH_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "hearth/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hearth_option_type {
    HEARTH_OPTION_INT,   /* int64; "k", "m", "g", "t" (powers of 1024) may follow where the unit is bytes */
    HEARTH_OPTION_FLOAT, /* double */
    HEARTH_OPTION_BOOL,  /* on/off, true/false, 1/0; a bare name means on */
    HEARTH_OPTION_TEXT,  /* free text */
    HEARTH_OPTION_CHOICE /* one of a list of words */
} hearth_option_type;

typedef enum hearth_option_scope {
    HEARTH_SCOPE_ENGINE,   /* fixed at open */
    HEARTH_SCOPE_SAMPLING, /* per request */
    HEARTH_SCOPE_TEXT,     /* tokenizing and detokenizing */
    HEARTH_SCOPE_PROGRAM   /* the command line's own; the library does not look at it */
} hearth_option_scope;

typedef struct hearth_option_info {
    const char *name;       /* "cpu-mask" */
    const char *other_name; /* "" when there is none */
    hearth_option_type type;
    hearth_option_scope scope;
    const char *fallback; /* the default, as text; "" when there is none */
    double min, max;      /* INT and FLOAT, both allowed */
    const char *choices;  /* CHOICE: "f16|f32" */
    const char *unit;     /* "bytes", "tokens", "" … */
    const char *help;     /* one line */
} hearth_option_info;

typedef struct hearth_options hearth_options;

/* All options at their defaults. */
HEARTH_API hearth_status hearth_options_create(hearth_options **out, hearth_error *err);
HEARTH_API void hearth_options_free(hearth_options **options); /* NULL is ignored */

/* Set one from text; a BOOL's value may be NULL for on. HEARTH_BAD_OPTION names the option, the value and what is
 * allowed; the option then keeps its value. */
HEARTH_API hearth_status hearth_options_set(hearth_options *options, const char *name, const char *value,
                                            hearth_error *err);
/* Set every option that has a HEARTH_… variable; an empty one counts as absent. A HEARTH_… variable that names no
 * option is refused. Option "cache", when it is not set by then, becomes $XDG_CACHE_HOME/hearth or $HOME/.cache/hearth.
 */
HEARTH_API hearth_status hearth_options_read_environment(hearth_options *options, hearth_error *err);
/* Read "name = value" lines (a BOOL's name alone means on); '#' at the start of a line or after a blank starts a
 * comment. Errors name file and line; the lines before it stay in force. */
HEARTH_API hearth_status hearth_options_read_file(hearth_options *options, const char *path, hearth_error *err);

/* The value in force; the name must be that of an option of the type (else HEARTH_BAD_OPTION). *set (may be NULL) is 1
 * if it was set, 0 if it is the default. Text lives until that option is set again. */
HEARTH_API hearth_status hearth_options_get_int(const hearth_options *options, const char *name, int64_t *value,
                                                int *set, hearth_error *err); /* INT; BOOL as 0 or 1 */
HEARTH_API hearth_status hearth_options_get_float(const hearth_options *options, const char *name, double *value,
                                                  int *set, hearth_error *err);
HEARTH_API hearth_status hearth_options_get_text(const hearth_options *options, const char *name, const char **value,
                                                 int *set, hearth_error *err); /* TEXT and CHOICE */

/* The table. */
HEARTH_API size_t hearth_option_count(void);
HEARTH_API const hearth_option_info *hearth_option_at(size_t i); /* NULL when out of range */

#ifdef __cplusplus
}
#endif
#endif
