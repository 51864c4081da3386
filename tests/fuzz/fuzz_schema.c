#include "fuzz/constraint_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    constraint_target(hearth_constraint_schema, data, size);
    return 0;
}
