/* Raising errors. See include/hearth/status.h for the contract. */
#ifndef HTH_BASE_STATUS_H
#define HTH_BASE_STATUS_H

#include <stdint.h>

#include "hearth/status.h"

/* Fill *err (if not NULL) with a status and a formatted text, and return the status, so that a caller can write
 * `return hth_fail(err, HEARTH_BAD_FILE, "...", ...)`. Control characters and invalid bytes that arrive through %s are
 * shown as '?', so a hostile file cannot write to a terminal. */
hearth_status hth_fail(hearth_error *err, hearth_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Raise an error that was kept: copy it to *err (if not NULL) and return its status. One that is none (HEARTH_OK)
 * leaves *err as it is. */
hearth_status hth_raise(const hearth_error *kept, hearth_error *err);

/* What a noun ends in behind a number: "" or "s". */
static inline const char *hth_plural(int64_t count) {
    return count == 1 ? "" : "s";
}

/* Return early when an expression fails. */
#define HTH_TRY(expression)                                                                                            \
    do {                                                                                                               \
        hearth_status try_status_ = (expression);                                                                      \
        if (try_status_ != HEARTH_OK) return try_status_;                                                              \
    } while (0)

#endif
