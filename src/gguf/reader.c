/* A cursor over a file image: every read is compared with the bytes that are left before a pointer is formed. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gguf/internal.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers of a file are copied as they are");

hearth_status hth_reader_fail(const hth_reader *r, hearth_status status, uint64_t at, const char *format, ...) {
    char text[352];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return hth_fail(r->err, status, "%s (offset %" PRIu64 " of %s)", text, at, r->path);
}

static hearth_status read_bytes(hth_reader *r, const char *what, void *out, size_t size) {
    if (size > hth_reader_left(r)) return hth_reader_fail(r, HEARTH_BAD_FILE, r->at, "the file ends inside %s", what);
    memcpy(out, r->base + r->at, size);
    r->at += size;
    return HEARTH_OK;
}

hearth_status hth_reader_u32(hth_reader *r, const char *what, uint32_t *out) {
    return read_bytes(r, what, out, sizeof *out);
}

hearth_status hth_reader_u64(hth_reader *r, const char *what, uint64_t *out) {
    return read_bytes(r, what, out, sizeof *out);
}

hearth_status hth_reader_string(hth_reader *r, const char *what, uint64_t max, hth_string *out) {
    uint64_t at = r->at, length = 0;
    HTH_TRY(hth_reader_u64(r, what, &length));
    if (length > hth_reader_left(r))
        return hth_reader_fail(r, HEARTH_BAD_FILE, at,
                               "length %" PRIu64 " of %s is more than the %" PRIu64 " bytes left", length, what,
                               hth_reader_left(r));
    if (length > max)
        return hth_reader_fail(r, HEARTH_BAD_FILE, at, "length %" PRIu64 " of %s is over the limit of %" PRIu64, length,
                               what, max);
    *out = (hth_string){(const char *)r->base + r->at, (size_t)length};
    r->at += length;
    return HEARTH_OK;
}
