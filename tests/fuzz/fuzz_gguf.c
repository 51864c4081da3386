/* Any bytes as a GGUF file: open, touch everything that the directory hands out, close. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/gguf_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hth_gguf *g;
    hearth_error err = {HEARTH_OK, ""};
    hearth_status status = hth_gguf_open_memory(data, size, &g, &err);
    if (status == HEARTH_OK) {
        gguf_walk(g);
        hth_gguf_close(&g);
    } else if (g || err.status != status || !err.text[0]) {
        fprintf(stderr, "a refusal without its error\n");
        abort();
    }
    return 0;
}
