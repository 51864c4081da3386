/* Status codes and error texts.
 *
 * Every function that can fail returns a hearth_status and takes, last, a hearth_error * that may be NULL. On failure
 * the text names the field, file offset, option or token that is wrong. On success the error is left as it was.
 * Nothing in the library prints or exits.
 */
#ifndef HEARTH_STATUS_H
#define HEARTH_STATUS_H

#if defined(__GNUC__)
#define HEARTH_API __attribute__((visibility("default")))
#else
#define HEARTH_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* name, text */
#define HEARTH_STATUS_LIST(X)                                                                                          \
    X(OK, "success")                                                                                                   \
    X(BAD_ARGUMENT, "bad argument")   /* a call's argument is outside what is documented */                            \
    X(BAD_OPTION, "bad option")       /* unknown option name, or a value out of range */                               \
    X(NOT_FOUND, "not found")         /* no such file, key or session */                                               \
    X(IO, "input/output error")       /* the system refused to open, read or map */                                    \
    X(BAD_FILE, "malformed file")     /* the bytes contradict the format */                                            \
    X(UNSUPPORTED, "not supported")   /* well formed, but nothing here can use it */                                   \
    X(NO_MEMORY, "out of memory")     /* the system refused an allocation or a thread */                               \
    X(OVER_BUDGET, "over the budget") /* the plan does not fit what was allowed */                                     \
    X(TOO_LONG, "too long")           /* more tokens, rows or outputs than were planned */                             \
    X(POISONED, "poisoned")           /* a non-finite value or a lost page; see its text */                            \
    X(CANCELLED, "cancelled")         /* the caller asked to stop */                                                   \
    X(REFUSED, "refused")             /* a chat template raised an exception: the text is its own */

typedef enum hearth_status {
#define X(name, text) HEARTH_##name,
    HEARTH_STATUS_LIST(X)
#undef X
        HEARTH_STATUS_COUNT
} hearth_status;

typedef struct hearth_error {
    hearth_status status;
    char text[504]; /* NUL-terminated UTF-8, one line */
} hearth_error;

/* The general text of a status ("malformed file"); never NULL, static storage. */
HEARTH_API const char *hearth_status_text(hearth_status status);

/* The name of a status ("BAD_FILE"); never NULL, static storage. */
HEARTH_API const char *hearth_status_name(hearth_status status);

#ifdef __cplusplus
}
#endif
#endif
