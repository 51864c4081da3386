#include "cli/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <termios.h>
#include <unistd.h>

static const int ends[] = {SIGHUP, SIGQUIT, SIGTERM};
enum { ENDS = sizeof ends / sizeof *ends };

static struct termios modes; /* written before a handler can run, only read by it */
static bool handled[ENDS];

/* Calls only what a handler may call. The signal is raised again with its default action, which it has by SA_RESETHAND,
 * and strikes as the handler returns: the program ends by the signal, as its parent expects to see. In the background
 * the terminal is another's: its modes are left alone. */
static void put_back(int signal_number) {
    static const char off[] = "\033[0m\033[?2004l";
    int before = errno;
    if (tcgetpgrp(STDIN_FILENO) == getpgrp()) {
        tcsetattr(STDIN_FILENO, TCSANOW, &modes);
        if (write(STDOUT_FILENO, off, sizeof off - 1) < 0) { /* the terminal is gone */
        }
    }
    raise(signal_number);
    errno = before;
}

void hth_terminal_keep(void) {
    struct sigaction action = {.sa_handler = put_back, .sa_flags = (int)SA_RESETHAND}, before;
    if (tcgetattr(STDIN_FILENO, &modes) != 0) return;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGTTOU); /* what tcsetattr raises when the program leaves the foreground just now */
    for (int i = 0; i < ENDS; i++) {
        sigaction(ends[i], NULL, &before);
        handled[i] = before.sa_handler == SIG_DFL;
        if (handled[i]) sigaction(ends[i], &action, NULL);
    }
}

void hth_terminal_release(void) {
    for (int i = 0; i < ENDS; i++) {
        if (handled[i]) signal(ends[i], SIG_DFL);
        handled[i] = false;
    }
}
