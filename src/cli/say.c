#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/verbs.h"

static struct {
    const char *verb;
    int out_errno; /* of the first write to standard output that failed; 0: none, -1: no longer known */
    bool out_terminal, err_terminal;
    bool line_open; /* a progress line stands on the terminal */
    uint64_t line_ns;
} say;

void hth_say_begin(void) {
    /* A closed descriptor would be given to the next file opened, and output would go into it. Opened the wrong way
     * round, it stays useless and every use of it is an error. */
    static const int modes[3] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) != fd) _exit(HTH_EXIT_FAILED);
    signal(SIGPIPE, SIG_IGN);
    say.out_terminal = isatty(STDOUT_FILENO);
    say.err_terminal = isatty(STDERR_FILENO);
}

void hth_say_verb(const char *verb) {
    say.verb = verb;
}

static bool out_result(bool written) {
    if (!written && !say.out_errno) say.out_errno = errno ? errno : -1;
    return !say.out_errno;
}

bool hth_out(const char *data, size_t size) {
    if (say.out_errno) return false;
    errno = 0;
    return out_result(fwrite(data, 1, size, stdout) == size && fflush(stdout) == 0);
}

bool hth_outf(const char *format, ...) {
    if (say.out_errno) return false;
    va_list args;
    va_start(args, format);
    errno = 0;
    int written = vprintf(format, args);
    va_end(args);
    return out_result(written >= 0);
}

bool hth_out_is_terminal(void) {
    return say.out_terminal;
}

__attribute__((format(printf, 2, 0))) static void print_line(bool named, const char *format, va_list args) {
    hth_progress_end();
    if (named) fprintf(stderr, "hearth%s%s: ", say.verb ? " " : "", say.verb ? say.verb : "");
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

void hth_complain(const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_line(true, format, args);
    va_end(args);
}

void hth_note(const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_line(false, format, args);
    va_end(args);
}

int hth_complain_error(const hearth_error *err) {
    hth_complain("%s", err->text[0] ? err->text : hearth_status_text(err->status));
    return err->status == HEARTH_BAD_OPTION ? HTH_EXIT_USAGE : HTH_EXIT_FAILED;
}

int hth_out_of_memory(void) {
    hth_complain("out of memory");
    return HTH_EXIT_FAILED;
}

bool hth_progress_shown(void) {
    return say.err_terminal;
}

void hth_progress(const char *what, int64_t done, int64_t total) {
    enum { NS_BETWEEN = 50 * 1000 * 1000 };
    uint64_t now = hth_now_ns();
    if (!say.err_terminal || (say.line_open && done < total && now - say.line_ns < NS_BETWEEN)) return;
    if (total > 0) fprintf(stderr, "\r%s %lld of %lld\033[K", what, (long long)done, (long long)total);
    else fprintf(stderr, "\r%s\033[K", what);
    fflush(stderr);
    say.line_open = true;
    say.line_ns = now;
}

void hth_progress_end(void) {
    if (!say.line_open) return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    say.line_open = false;
}

/* Of a write that did not go through hth_out, why it failed is no longer known. That the reader is gone still shows. */
static bool reader_is_gone(void) {
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

int hth_say_end(int status) {
    hth_progress_end();
    errno = 0;
    out_result(!ferror(stdout) && fclose(stdout) == 0); /* some file systems say only now that the disk is full */
    if (!say.out_errno) return status;
    if (say.out_errno < 0 && reader_is_gone()) say.out_errno = EPIPE;
    const char *reason = say.out_errno > 0 ? strerror(say.out_errno) : "a write failed";
    if (say.out_errno != EPIPE) hth_complain("cannot write to standard output: %s", reason);
    return status == HTH_EXIT_OK ? HTH_EXIT_FAILED : status;
}
