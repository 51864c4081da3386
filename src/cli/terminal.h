/* The terminal's modes, which a program that edits lines changes: put back also when a signal ends it. */
#ifndef HTH_CLI_TERMINAL_H
#define HTH_CLI_TERMINAL_H

/* Remember the modes of the terminal on standard input. From now on SIGHUP, SIGQUIT and SIGTERM put them back, end what
 * the program switched on (bracketed paste, colours), and then do to the program what they would have done without.
 * One of them that is ignored stays so. Nothing happens when standard input is no terminal. */
void hth_terminal_keep(void);

/* From now on those signals just end the program again: the modes have been put back. */
void hth_terminal_release(void);

#endif
