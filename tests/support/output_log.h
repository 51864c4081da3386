/* What an output parser reports, as text to compare: one line for each stretch of content or reasoning and for each
 * call, however many events it came in.
 *
 *   content "TEXT"    reasoning "TEXT"    broken "TEXT" ! FAULT
 *   call NAME ARGUMENTS [id=ID]           withdrawn NAME ARGUMENTS ! FAULT
 *   open                                  the answer ended inside its reasoning
 *
 * TEXT is escaped as in JSON. */
#ifndef HTH_TESTS_OUTPUT_LOG_H
#define HTH_TESTS_OUTPUT_LOG_H

#include <stdbool.h>

#include "hearth/output.h"
#include "text/output_bytes.h"

typedef struct output_log {
    hth_bytes lines; /* ends with NUL once it is complete */
    hth_bytes text;  /* of the line that is being read */
    hth_bytes content, reasoning, all_calls;
    hearth_output_kind kind;
    size_t call;
    const char *fault;
    bool any, in_call;
    size_t calls, events;
    const char *wrong; /* the first event that must not be, or NULL */
} output_log;

/* A sink; its context is an output_log. */
void output_log_take(void *log, const hearth_output_event *event);
void output_log_free(output_log *log);

/* Feed text in pieces (sizes[i] bytes each, the rest at once) and finish. The log has its last line and what the result
 * contradicts it in, if anything (log->wrong). */
hearth_status output_parse(hearth_output_parser *parser, const char *text, size_t size, const size_t *sizes,
                           size_t count, output_log *log, hearth_output_result *result, hearth_error *err);

/* What is wrong with a result as such: its spans must cover the text but for markers. NULL: nothing. */
const char *output_check(hearth_output_format format, const hearth_output_result *result);

#endif
