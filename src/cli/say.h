/* What the program says: results on standard output, everything else on standard error. */
#ifndef HTH_CLI_SAY_H
#define HTH_CLI_SAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Make the descriptors 0, 1 and 2 safe to use, and broken pipes an error of the write. Comes first in main. */
void hth_say_begin(void);
/* The verb that messages begin with. */
void hth_say_verb(const char *verb);

/* Write to standard output; shown at once when it is a terminal or a pipe someone reads. False once a write has failed;
 * the failure is kept for hth_say_end. */
bool hth_out(const char *data, size_t size);
bool hth_outf(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool hth_out_is_terminal(void);

/* "hearth run: ..." on standard error. */
void hth_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Print a library's error; the answer is the exit status that goes with it. */
int hth_complain_error(const hearth_error *err);
int hth_out_of_memory(void); /* says so; HTH_EXIT_FAILED */
/* A line on standard error, whatever it is. */
void hth_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line that is written over by the next (total 0: without numbers); only when standard error is a terminal.
 * hth_progress_end wipes it. */
bool hth_progress_shown(void);
void hth_progress(const char *what, int64_t done, int64_t total);
void hth_progress_end(void);

/* Close standard output; nothing may be said after it. The exit status: `status`, or HTH_EXIT_FAILED when something
 * could not be written; why is printed unless the reader just went away. */
int hth_say_end(int status);

#endif
