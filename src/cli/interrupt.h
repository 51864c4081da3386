/* Ctrl-C, and a terminal that changes its size. */
#ifndef HTH_CLI_INTERRUPT_H
#define HTH_CLI_INTERRUPT_H

#include <stdbool.h>

/* From now on the first Ctrl-C sets a flag instead of ending the program; the next one ends it. */
void hth_interrupt_catch(void);
/* From now on Ctrl-C ends the program again. */
void hth_interrupt_release(void);

/* From now on each Ctrl-C sets the flag, and each change of the terminal's size another; both make the descriptor of
 * hth_interrupt_wake_fd readable. False: the system refused a pipe. */
bool hth_interrupt_watch(void);
int hth_interrupt_wake_fd(void);

bool hth_interrupted(void);
/* Forget it, and answer what it was. What made the descriptor readable is taken out. */
bool hth_interrupt_take(void);
bool hth_resize_take(void);

#endif
