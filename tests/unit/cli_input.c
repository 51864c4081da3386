/* Token ids and numbers as text, and the digest of a report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/input.h"
#include "cli/sha256.h"
#include "cli/verbs.h"

/* input.c can also encode text; these tests need no vocabulary for it. */
hearth_status hearth_tokenizer_encode(const hearth_tokenizer *tokenizer, const char *text, size_t size, unsigned flags,
                                      hearth_token *out, size_t capacity, size_t *count, hearth_error *err) {
    (void)tokenizer, (void)flags, (void)err;
    *count = size;
    for (size_t i = 0; i < size && i < capacity; i++) out[i] = (unsigned char)text[i];
    return size > capacity ? HEARTH_TOO_LONG : HEARTH_OK;
}

static void ids_in_many_forms(void **state) {
    (void)state;
    static const char *const forms[] = {"1,2,30", "1 2 30", "[1, 2, 30]", "\n1\n2\r\n30\n", "1 ,\n2 30", "[[1]2,30"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        hth_tokens tokens;
        assert_int_equal(hth_parse_tokens(forms[i], strlen(forms[i]), &tokens), HTH_EXIT_OK);
        assert_int_equal(tokens.count, 3);
        assert_int_equal(tokens.ids[0], 1);
        assert_int_equal(tokens.ids[1], 2);
        assert_int_equal(tokens.ids[2], 30);
        free(tokens.ids);
    }
    hth_tokens tokens;
    assert_int_equal(hth_parse_tokens("", 0, &tokens), HTH_EXIT_OK);
    assert_int_equal(tokens.count, 0);
    free(tokens.ids);
    assert_int_equal(hth_parse_tokens("0,2147483647", 12, &tokens), HTH_EXIT_OK);
    assert_int_equal(tokens.ids[1], INT32_MAX);
    free(tokens.ids);
}

static void ids_that_are_none(void **state) {
    (void)state;
    static const char *const bad[] = {
        "-1",    "1,x",  "2147483648", "1.5",  "1;2", "0x1", "99999999999999999999999999999999999",
        "1,,2",  "{1}",  "\"1\"",      "\xff", "1e3", ",1",  "1,",
        "1, ,2", "[1,]", "1;",         ","};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hth_tokens tokens;
        assert_int_equal(hth_parse_tokens(bad[i], strlen(bad[i]), &tokens), HTH_EXIT_USAGE);
        assert_null(tokens.ids);
    }
    hth_tokens tokens;
    assert_int_equal(hth_parse_tokens("1\0002", 3, &tokens), HTH_EXIT_USAGE);
}

static void number_lists(void **state) {
    (void)state;
    int64_t *numbers;
    size_t count;
    assert_int_equal(hth_parse_numbers("--x", "7,20", 1, 20, &numbers, &count), HTH_EXIT_OK);
    assert_int_equal(count, 2);
    assert_int_equal(numbers[1], 20);
    free(numbers);
    static const char *const bad[] = {"", ",", "0", "21", "7,21", "x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(hth_parse_numbers("--x", bad[i], 1, 20, &numbers, &count), HTH_EXIT_USAGE);
        assert_null(numbers);
        assert_int_equal(count, 0);
    }
}

static void texts_longer_than_guessed_are_encoded_whole(void **state) {
    (void)state;
    char text[1000];
    memset(text, 'a', sizeof text);
    hth_tokens tokens;
    assert_int_equal(hth_encode(NULL, (hth_text){text, sizeof text}, 0, &tokens), HTH_EXIT_OK);
    assert_int_equal(tokens.count, sizeof text);
    assert_int_equal(tokens.ids[999], 'a');
    free(tokens.ids);
}

static void digest(const char *text, size_t size, size_t step, const char *expected) {
    hth_sha256 hash;
    char hex[65];
    hth_sha256_begin(&hash);
    for (size_t i = 0; i < size; i += step) hth_sha256_add(&hash, text + i, size - i < step ? size - i : step);
    hth_sha256_end(&hash, hex);
    assert_string_equal(hex, expected);
}

/* The examples of FIPS 180-4, and lengths around a block. */
static void digests(void **state) {
    (void)state;
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    digest("", 0, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    digest("abc", 3, 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    digest(two_blocks, 56, 56, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    digest(two_blocks, 56, 7, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = malloc(1000000);
    memset(million, 'a', 1000000);
    digest(million, 1000000, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    digest(million, 1000000, 63, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_in_many_forms), cmocka_unit_test(ids_that_are_none),
        cmocka_unit_test(number_lists),      cmocka_unit_test(texts_longer_than_guessed_are_encoded_whole),
        cmocka_unit_test(digests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
