/* Arena: counting and carving agree, overflow is sticky, mapped memory is present and zero. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/pagemap.h"

typedef struct thing {
    float *a;
    char *b;
    double *page;
} thing;

static void carve(hth_arena *arena, thing *t) {
    t->a = HTH_ARENA_NEW(arena, float, 1001);
    t->b = HTH_ARENA_NEW(arena, char, 3);
    t->page = hth_arena_take(arena, 100, 4096);
    assert_null(hth_arena_counting().base);
}

static void counts_what_it_carves(void **state) {
    (void)state;
    thing t;
    hth_arena count = hth_arena_counting();
    carve(&count, &t);
    assert_false(count.overflow);
    assert_null(t.a);
    assert_null(t.page);

    hth_arena arena;
    assert_int_equal(hth_arena_map(&arena, count.used, "a test", NULL), HEARTH_OK);
    carve(&arena, &t);
    assert_false(arena.overflow);
    assert_int_equal(arena.used, count.used);
    assert_int_equal((uintptr_t)t.a % HTH_ARENA_ALIGN, 0);
    assert_int_equal((uintptr_t)t.b % HTH_ARENA_ALIGN, 0);
    assert_int_equal((uintptr_t)t.page % 4096, 0);
    assert_true(t.b - (char *)(t.a + 1001) >= HTH_ARENA_GAP);
    for (int i = 0; i < 1001; i++) assert_true(t.a[i] == 0);
    memset(t.a, 1, 1001 * sizeof *t.a);
    memset(t.b, 1, 3);
    memset(t.page, 1, 100);
    assert_null(hth_arena_take(&arena, 1, 0));
    assert_true(arena.overflow);
    hth_arena_unmap(&arena);
    assert_null(arena.base);
    hth_arena_unmap(&arena);
}

static void overflow_is_sticky(void **state) {
    (void)state;
    hth_arena count = hth_arena_counting();
    hth_arena_take_array(&count, SIZE_MAX / 2, 3, 0);
    assert_true(count.overflow);
    size_t used = count.used;
    hth_arena_take(&count, 1, 0);
    assert_true(count.overflow);
    assert_int_equal(count.used, used);

    count = hth_arena_counting();
    hth_arena_take(&count, SIZE_MAX - 200, 0);
    assert_false(count.overflow);
    hth_arena_take(&count, 128, 0);
    assert_true(count.overflow);

    _Alignas(64) char buffer[1024];
    hth_arena over = hth_arena_over(buffer, sizeof buffer);
    char *p = hth_arena_take(&over, 128, 0);
    assert_ptr_equal(p, buffer);
    assert_non_null(hth_arena_take(&over, 0, 0));
    assert_null(hth_arena_take(&over, 1024, 0));
    assert_true(over.overflow);
    hth_arena_over_end(&over);
}

/* Pages of [base, base + bytes) that are not in memory. */
static size_t absent_pages(void *base, size_t bytes) {
    static unsigned char present[8192];
    size_t pages = (bytes + 4095) / 4096, absent = 0;
    assert_true(pages <= sizeof present);
    assert_int_equal(mincore(base, bytes, present), 0);
    for (size_t i = 0; i < pages; i++) absent += !(present[i] & 1);
    return absent;
}

static void mapped_pages_are_present(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 4096, 4097, (2u << 20) - 1, 2u << 20, (5u << 20) + 12345};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        hth_arena arena;
        assert_int_equal(hth_arena_map(&arena, sizes[i], "a test", NULL), HEARTH_OK);
        assert_int_equal(arena.capacity, sizes[i]);
        assert_true(arena.mapped >= sizes[i]);
        assert_int_equal(absent_pages(arena.base, arena.mapped), 0);
        hth_arena_unmap(&arena);
    }
}

static void no_memory_is_named(void **state) {
    (void)state;
    hth_arena arena;
    hearth_error err;
    assert_int_equal(hth_arena_map(&arena, SIZE_MAX, "the KV pool", &err), HEARTH_NO_MEMORY);
    assert_non_null(strstr(err.text, "the KV pool"));
    assert_null(arena.base);
    assert_int_equal(hth_arena_map(&arena, (size_t)1 << 60, "the KV pool", &err), HEARTH_NO_MEMORY);
    assert_null(arena.base);
    hth_arena_unmap(&arena);
}

/* Huge pages are the system's to give; where it gives some they are counted, and small ones are not. */
static void huge_pages_are_counted(void **state) {
    (void)state;
    const size_t huge = (size_t)2 << 20, size = 4 * huge;
    hth_arena arena;
    hearth_error err = {0};
    assert_int_equal(hth_arena_map(&arena, size, "memory", &err), HEARTH_OK);
    uint64_t given, bytes;
    const bool tells = hth_huge_bytes(arena.base, size, &given);
    print_message("%zu bytes, %llu of them in huge pages%s\n", size, (unsigned long long)given,
                  tells ? "" : " (the system does not tell)");
    assert_true(given <= size && given % huge == 0);
    if (tells && given == size) {
        assert_true(hth_huge_bytes(arena.base + 4096, huge, &bytes)); /* parts of two count as such */
        assert_int_equal(bytes, huge);
        assert_true(hth_huge_bytes(arena.base + huge, 4097, &bytes));
        assert_int_equal(bytes, 8192);
    }
    hth_arena_unmap(&arena);
    void *small = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(small != MAP_FAILED);
    (void)madvise(small, size, MADV_NOHUGEPAGE);
    assert_int_equal(hth_absent_bytes(small, size, &bytes), tells);
    if (tells) assert_int_equal(bytes, size);
    ((volatile char *)small)[5 * 4096] = 1;
    assert_int_equal(hth_absent_bytes((char *)small + 4096, 9 * 4096 + 1, &bytes), tells);
    if (tells) assert_int_equal(bytes, 9 * 4096);
    memset(small, 1, size);
    assert_int_equal(hth_absent_bytes(small, size, &bytes), tells);
    assert_int_equal(bytes, 0);
    assert_int_equal(hth_huge_bytes(small, size, &bytes), tells);
    assert_int_equal(bytes, 0);
    munmap(small, size);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_what_it_carves),    cmocka_unit_test(overflow_is_sticky),
        cmocka_unit_test(mapped_pages_are_present), cmocka_unit_test(no_memory_is_named),
        cmocka_unit_test(huge_pages_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
