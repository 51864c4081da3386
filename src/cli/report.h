/* The parts that the verbs' reports share. */
#ifndef HTH_CLI_REPORT_H
#define HTH_CLI_REPORT_H

#include "base/jsonout.h"
#include "hearth/engine.h"

/* A measured time or rate: to three decimals, which is more than was measured. */
void hth_report_measure(hth_json *json, const char *key, double value);

/* Whether a picture can be written into a file: told before what it shows is measured. What is in the file stays. The
 * answer is an exit status; why not is printed. */
int hth_report_check_picture(const char *path);

/* "model", "architecture", "context", "threads", "kernels", "kv" */
void hth_report_model(hth_json *json, const char *path, const hearth_engine *engine);
void hth_report_counters(hth_json *json, const hearth_engine *engine); /* "counters": {...} */
void hth_report_plan(hth_json *json, const hearth_engine *engine);     /* "plan": [...] */

#endif
