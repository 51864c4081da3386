#include "engine/ledger.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"

void hth_thread_faults(uint64_t *minor, uint64_t *major) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    *minor = (uint64_t)usage.ru_minflt;
    *major = (uint64_t)usage.ru_majflt;
}

double hth_ledger_ms(const hth_ledger *l) {
    return hth_ms_since(l->start_ns);
}

void hth_ledger_start(hth_ledger *l) {
    *l = (hth_ledger){.start_ns = hth_now_ns()};
}

static hearth_ledger_row *add_row(hth_ledger *l, const char *what) {
    assert(l->count < HTH_LEDGER_ROWS);
    l->rows[l->count] = (hearth_ledger_row){.what = what};
    return &l->rows[l->count++];
}

void hth_ledger_begin(hth_ledger *l, const char *what) {
    hearth_ledger_row *row = add_row(l, what);
    l->current = l->count - 1;
    row->start_ms = l->charged_ms;
    hth_thread_faults(&row->minor_faults, &row->major_faults);
}

void hth_ledger_end(hth_ledger *l, uint64_t bytes, uint64_t outstanding) {
    hearth_ledger_row *row = &l->rows[l->current];
    uint64_t minor, major;
    hth_thread_faults(&minor, &major);
    row->minor_faults = minor - row->minor_faults;
    row->major_faults = major - row->major_faults;
    row->bytes = bytes;
    row->outstanding = outstanding;
    row->end_ms = hth_ledger_ms(l);
    hth_ledger_charge(l, l->current);
}

void hth_ledger_paid(hth_ledger *l, const char *what, uint64_t ns, uint64_t bytes) {
    hearth_ledger_row *row = add_row(l, what);
    l->start_ns -= ns;
    row->bytes = bytes;
    row->start_ms = l->charged_ms;
    row->exposed_ms = (double)ns * 1e-6;
    l->charged_ms += row->exposed_ms;
    row->end_ms = l->charged_ms;
}

void hth_ledger_split(hth_ledger *l, const char *what, uint64_t ns) {
    hearth_ledger_row *rest = add_row(l, what), *first = &l->rows[l->current];
    const double whole = first->exposed_ms, part = (double)ns * 1e-6 < whole ? (double)ns * 1e-6 : whole;
    rest->start_ms = first->start_ms + part;
    rest->end_ms = first->end_ms;
    rest->exposed_ms = whole - part;
    rest->minor_faults = first->minor_faults;
    rest->major_faults = first->major_faults;
    rest->outstanding = first->outstanding;
    first->end_ms = rest->start_ms;
    first->exposed_ms = part;
    first->minor_faults = first->major_faults = 0;
    l->current = l->count - 1;
}

size_t hth_ledger_aside(hth_ledger *l, const char *what) {
    add_row(l, what)->start_ms = hth_ledger_ms(l);
    return l->count - 1;
}

void hth_ledger_how(hth_ledger *l, size_t index, const char *format, ...) {
    char *how = l->rows[index].how;
    const size_t said = strlen(how);
    va_list values;
    va_start(values, format);
    vsnprintf(how + said, sizeof l->rows[index].how - said, format, values);
    va_end(values);
}

void hth_ledger_charge(hth_ledger *l, size_t index) {
    double now = hth_ledger_ms(l);
    l->rows[index].exposed_ms += now - l->charged_ms;
    l->charged_ms = now;
}
