#include "backends/cpu/executable.h"

hearth_status hth_scan_bind(hth_executable *exe, const hth_op *op, hearth_error *err) {
    (void)exe;
    return hth_fail(err, HEARTH_UNSUPPORTED, "%s: the CPU backend has no %s", op->site, hth_opcode_name(op->opcode));
}
size_t hth_scan_scratch(const hth_executable *exe) {
    (void)exe;
    return 0;
}
void hth_scan_resolve(hth_executable *exe) {
    (void)exe;
}
void hth_scan_work(hth_executable *exe, const hth_scan_step *step, hth_worker *worker) {
    (void)exe, (void)step, (void)worker;
}
void hth_scan_warm(hth_executable *exe, const hth_scan_step *step, hth_worker *worker) {
    (void)exe, (void)step, (void)worker;
}
