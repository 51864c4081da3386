/* Surviving a mapped file that shrinks.
 *
 * Reading a page of a mapping that the file no longer has raises SIGBUS, which ends a process. While a handler is held
 * here, such a fault inside a watched range marks the range as lost and puts zeros where the file was, from the page
 * that faulted to the end of the range; the read then goes on. Whoever computes from the range asks whether it is lost
 * before trusting the result. Any other SIGBUS goes to whatever handled it before: another handler, or the end of the
 * process.
 *
 * What raises no signal is not noticed: a file that is written to while it is mapped, or that shrinks inside its last
 * page.
 *
 * A handler belongs to the whole process, so the library takes one only when it is asked to (option `sigbus`). Ranges
 * are watched in any case: hth_map does it. Threads: all functions may be called from any thread; the handler takes no
 * lock and allocates nothing.
 */
#ifndef HTH_BASE_SIGBUS_H
#define HTH_BASE_SIGBUS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

typedef struct hth_watch hth_watch;

/* Watch a mapping of whole pages (size may end inside the last one). NULL: no memory. */
hth_watch *hth_watch_add(const void *data, size_t size);

/* Stop watching, before the range is unmapped. NULL is ignored. */
void hth_watch_remove(hth_watch *watch);

/* Part of the range was replaced by zeros. */
bool hth_watch_lost(const hth_watch *watch);

/* Hold the handler; it is installed by the first holder and taken away by the last, unless someone has installed
 * another one over it in the meantime. */
hearth_status hth_sigbus_hold(hearth_error *err);
void hth_sigbus_release(void);

#endif
