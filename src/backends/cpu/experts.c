#include "backends/cpu/executable.h"

hearth_status hth_experts_bind(hth_executable *exe, const hth_op *op, hearth_error *err) {
    (void)exe;
    return hth_fail(err, HEARTH_UNSUPPORTED, "%s: the CPU backend has no %s", op->site, hth_opcode_name(op->opcode));
}
size_t hth_experts_scratch(const hth_executable *exe) {
    (void)exe;
    return 0;
}
void hth_experts_carve(hth_executable *exe, hth_arena *a) {
    (void)exe, (void)a;
}
hearth_status hth_experts_resolve(hth_executable *exe, hearth_error *err) {
    (void)exe, (void)err;
    return HEARTH_OK;
}
void hth_experts_work(hth_executable *exe, const hth_stage *stage, int64_t rows, hth_worker *worker) {
    (void)exe, (void)stage, (void)rows, (void)worker;
}
void hth_experts_warm(hth_executable *exe, const hth_stage *stage, hth_worker *worker) {
    (void)exe, (void)stage, (void)worker;
}
void hth_experts_free(hth_executable *exe) {
    (void)exe;
}
