/* Ctrl-C as a question instead of an end: the first one is remembered, a second one ends the program as usual. */
#ifndef HTH_CLI_INTERRUPT_H
#define HTH_CLI_INTERRUPT_H

#include <stdbool.h>

void hth_interrupt_catch(void);
bool hth_interrupted(void);

#endif
