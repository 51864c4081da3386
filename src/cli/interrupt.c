#include "cli/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted, resized;
static int wake[2] = {-1, -1}; /* a pipe: what is written by a handler ends a poll that had not begun when it ran */

static void on_signal(int signal_number) {
    int before = errno;
    if (signal_number == SIGINT) interrupted = 1;
    else resized = 1;
    if (wake[1] >= 0 && write(wake[1], "", 1) < 0) { /* it is full: readable all the same */
    }
    errno = before;
}

static void catch_signal(int signal_number, int flags) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    sigaction(signal_number, &action, NULL);
}

void hth_interrupt_catch(void) {
    catch_signal(SIGINT, (int)SA_RESETHAND | SA_RESTART);
}

void hth_interrupt_release(void) {
    signal(SIGINT, SIG_DFL);
}

bool hth_interrupt_watch(void) {
    if (wake[0] < 0 && pipe(wake) != 0) return false;
    for (int i = 0; i < 2; i++) {
        fcntl(wake[i], F_SETFL, O_NONBLOCK);
        fcntl(wake[i], F_SETFD, FD_CLOEXEC);
    }
    catch_signal(SIGINT, SA_RESTART);
    catch_signal(SIGWINCH, SA_RESTART);
    return true;
}

int hth_interrupt_wake_fd(void) {
    return wake[0];
}

bool hth_interrupted(void) {
    return interrupted != 0;
}

static bool take(volatile sig_atomic_t *flag) {
    char ignored[64];
    while (wake[0] >= 0 && read(wake[0], ignored, sizeof ignored) > 0) continue;
    bool was = *flag != 0;
    *flag = 0;
    return was;
}

bool hth_interrupt_take(void) {
    return take(&interrupted);
}

bool hth_resize_take(void) {
    return take(&resized);
}
