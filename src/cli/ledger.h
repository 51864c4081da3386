/* The bill of opening a model, for people and for programs. */
#ifndef HTH_CLI_LEDGER_H
#define HTH_CLI_LEDGER_H

#include <stdbool.h>
#include <stdio.h>

#include "base/jsonout.h"
#include "hearth/engine.h"

/* A table, a line a row, and the total; '-' where there is nothing to say, as of weights that are still arriving. */
void hth_ledger_table(FILE *out, const hearth_ledger_row *rows, size_t count);

/* "ledger": [...] and "open_total_ms". */
void hth_ledger_json(hth_json *json, const hearth_ledger_row *rows, size_t count);

/* A waterfall: a bar a row from its start to its end, the part that open waited for in a stronger colour, and when open
 * returned. model: a name, which need not be UTF-8. False when it cannot be written (errno). */
bool hth_ledger_svg(FILE *out, const char *model, const hearth_ledger_row *rows, size_t count);

/* The waterfall of an engine into a file, named after the model's file; an exit status, and why is printed. */
int hth_ledger_draw(const char *path, const char *model, const hearth_engine *engine);

#endif
