/* The bill of open: what it cost, row by row.
 *
 * The opening thread is always inside exactly one row, so what its rows take, they expose, and it adds up to the whole.
 * A row of work that goes on beside it, on other threads, is charged by hth_ledger_charge with what the opening thread
 * waited for it alone.
 */
#ifndef HTH_ENGINE_LEDGER_H
#define HTH_ENGINE_LEDGER_H

#include "hearth/engine.h"

#define HTH_LEDGER_ROWS 16

typedef struct hth_ledger {
    uint64_t start_ns;
    double charged_ms; /* up to here, the opening thread's time is charged to rows */
    size_t count, current;
    hearth_ledger_row rows[HTH_LEDGER_ROWS];
} hth_ledger;

/* Start the clock. */
void hth_ledger_start(hth_ledger *ledger);

/* Begin a row: the time from where the last charge ended until hth_ledger_end is this one's, and so are the calling
 * thread's faults from here on. */
void hth_ledger_begin(hth_ledger *ledger, const char *what);

/* End it. bytes: mapped, allocated or read; outstanding: bytes of weights that are still to arrive. */
void hth_ledger_end(hth_ledger *ledger, uint64_t bytes, uint64_t outstanding);

/* Add a row for what was paid before the clock started, as if it had been paid just before: the start moves back. Comes
 * before any other row. */
void hth_ledger_paid(hth_ledger *ledger, const char *what, uint64_t ns, uint64_t bytes);

/* The row that just ended was two: after its first `ns` another one began, which had the faults. */
void hth_ledger_split(hth_ledger *ledger, const char *what, uint64_t ns);

/* Add a row for work that begins now on other threads; its index. Its end, bytes and faults are the caller's to fill.
 */
size_t hth_ledger_aside(hth_ledger *ledger, const char *what);

/* Say in words what was chosen in row `index`, after what was said already; cut at the size of its field. */
__attribute__((format(printf, 3, 4))) void hth_ledger_how(hth_ledger *ledger, size_t index, const char *format, ...);

/* The opening thread has waited for row `index` since the last charge. */
void hth_ledger_charge(hth_ledger *ledger, size_t index);

double hth_ledger_ms(const hth_ledger *ledger); /* since the start */

/* Faults of the calling thread so far. */
void hth_thread_faults(uint64_t *minor, uint64_t *major);

#endif
