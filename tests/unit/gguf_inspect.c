/* The program's `inspect` verb, run as a user runs it: what it prints, that its JSON is JSON and complete, that nothing
 * in a file reaches a terminal as a control, and its exit statuses. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/utf8.h"
#include "support/gguf_image.h"
#include "support/temp_folder.h"

static char output[1 << 16], errors[1 << 14];

static void read_text(const char *path, char *text, size_t size) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    text[fread(text, 1, size - 1, f)] = 0;
    fclose(f);
}

/* Run `hearth inspect` with up to three arguments; the answer is its exit status, or -1. */
static int inspect(const char *a, const char *b, const char *c) {
    const char *out = temp_path("out"), *err = temp_path("err");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int out_fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600),
            err_fd = open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (dup2(out_fd, 1) < 0 || dup2(err_fd, 2) < 0) _exit(99);
        execl(HEARTH_PROGRAM, "hearth", "inspect", a, b, c, (char *)NULL);
        _exit(99);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    read_text(out, output, sizeof output);
    read_text(err, errors, sizeof errors);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void says(const char *words) {
    if (!strstr(output, words)) fail_msg("\"%s\" is not in:\n%s", words, output);
}

/* All that was printed is valid UTF-8 without controls but line ends. */
static void is_safe_for_a_terminal(const char *text) {
    for (size_t i = 0, size = strlen(text); i < size;) {
        uint32_t c = 0;
        int n = hth_utf8_decode(text + i, size - i, &c);
        if (n == 0 || (hth_is_control(c) && c != '\n')) fail_msg("byte 0x%02x at %zu", (unsigned char)text[i], i);
        i += (size_t)n;
    }
}

static void text(void **state) {
    (void)state;
    assert_int_equal(inspect(temp_path("sample.gguf"), NULL, NULL), 0);
    says("GGUF version 3, alignment 64");
    says("metadata: 18\n");
    says("general.architecture                         string   \"sample\"\n");
    says("u32      4000000000\n");
    says("i64      -3\n");
    says("f32      0.5\n");
    says("u64      18446744073709551615\n");
    says("[u16]    [1, 2, 65535]\n");
    says("[string] [\"a\", \"\", \"\\xff\\xfe\"]\n");
    says("[string] []\n");
    says("tensors: 5\n");
    says("Q6_K     [256, 1, 2]                      420");
    says("dtypes: 4\n");
    is_safe_for_a_terminal(output);
    assert_string_equal(errors, "");
    assert_int_equal(inspect("-m", temp_path("sample.gguf"), NULL), 0);
}

static json_t *member(json_t *array, const char *name_key, const char *name) {
    size_t i;
    json_t *value;
    json_array_foreach(array, i, value) {
        const char *text_value = json_string_value(json_object_get(value, name_key));
        if (text_value && strcmp(text_value, name) == 0) return value;
    }
    fail_msg("no %s", name);
    return NULL;
}

static json_t *load_output(void) {
    json_error_t error;
    json_t *root = json_loads(output, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
    if (!root) fail_msg("%s at %d: %s", error.text, error.position, output);
    return root;
}

static void json(void **state) {
    (void)state;
    assert_int_equal(inspect("--json", temp_path("sample.gguf"), NULL), 0);
    json_t *root = load_output();
    json_t *metadata = json_object_get(root, "metadata"), *tensors = json_object_get(root, "tensors");
    assert_int_equal(json_array_size(metadata), GGUF_SAMPLE_KVS);
    assert_int_equal(json_array_size(tensors), GGUF_SAMPLE_TENSORS);
    assert_true(json_number_value(json_object_get(member(metadata, "key", "sample.i16"), "value")) == -3);
    assert_true(json_is_true(json_object_get(member(metadata, "key", "sample.bool"), "value")));
    json_t *strings = member(metadata, "key", "sample.strings");
    assert_string_equal(json_string_value(json_object_get(strings, "type")), "array");
    assert_string_equal(json_string_value(json_object_get(strings, "element")), "string");
    json_t *elements = json_object_get(strings, "value");
    assert_int_equal(json_array_size(elements), 3);
    assert_string_equal(json_string_value(json_array_get(elements, 0)), "a");
    assert_string_equal(json_string_value(json_object_get(json_array_get(elements, 2), "hex")), "fffe");
    json_t *cube = member(tensors, "name", "cube");
    assert_string_equal(json_string_value(json_object_get(cube, "dtype")), "Q6_K");
    assert_int_equal(json_array_size(json_object_get(cube, "shape")), 3);
    assert_true(json_number_value(json_object_get(cube, "bytes")) == 420);
    json_decref(root);
}

/* Names and values that try to write to the terminal, not to be UTF-8, not to be numbers. */
static void hostile_text(void **state) {
    (void)state;
    gguf_image im = {0};
    gguf_put_header(&im, 3, 1, 5);
    gguf_put_kv_string(&im, "\x1b[31mred",
                       "\x1b]0;title\x07 \xc2\x9b"
                       "2J \xe2\x80\xae \"\\ \xff");
    gguf_put_kv_array(&im, "floats", HTH_GGUF_F32, 3);
    gguf_put(&im, (const uint32_t[]){0x7FC00000, 0x7F800000, 0xFF800000}, 12);
    gguf_put_key(&im, "tiny", HTH_GGUF_F64);
    gguf_put(&im, &(double){0x1p-1074}, 8);
    gguf_put_key(&im, "nul", HTH_GGUF_STRING);
    gguf_put_u64(&im, NULL, 3);
    gguf_put(&im, "a\0b", 3);
    gguf_put_kv_array(&im, "long", HTH_GGUF_U8, 100);
    gguf_put_zeros(&im, 100);
    gguf_put_tensor(&im,
                    "\x9b"
                    "H\r\n",
                    1, (const uint64_t[]){256}, HTH_IQ1_S, 0);
    gguf_put_padding(&im, 32);
    gguf_put_zeros(&im, 50);
    gguf_image_write(&im, temp_path("hostile.gguf"));
    gguf_image_free(&im);
    assert_int_equal(inspect(temp_path("hostile.gguf"), NULL, NULL), 0);
    is_safe_for_a_terminal(output);
    says("\\u{1b}[31mred");
    says("\\u{9b}2J \\u{202e} \\\"\\\\ \\xff\"");
    says("0, ...] (100)");
    says("not supported");
    assert_int_equal(inspect(temp_path("hostile.gguf"), "--json", NULL), 0);
    is_safe_for_a_terminal(output);
    json_t *root = load_output();
    json_t *metadata = json_object_get(root, "metadata");
    json_t *floats = json_object_get(member(metadata, "key", "floats"), "value");
    assert_string_equal(json_string_value(json_array_get(floats, 0)), "NaN");
    assert_string_equal(json_string_value(json_array_get(floats, 2)), "-Infinity");
    assert_true(json_number_value(json_object_get(member(metadata, "key", "tiny"), "value")) == 0x1p-1074);
    assert_int_equal(json_string_length(json_object_get(member(metadata, "key", "nul"), "value")), 3);
    assert_int_equal(json_array_size(json_object_get(member(metadata, "key", "long"), "value")), 100);
    json_t *tensor = json_array_get(json_object_get(root, "tensors"), 0);
    assert_string_equal(json_string_value(json_object_get(json_object_get(tensor, "name"), "hex")), "9b480d0a");
    assert_true(json_is_false(json_object_get(tensor, "supported")));
    json_decref(root);
}

static void statuses(void **state) {
    (void)state;
    assert_int_equal(inspect("--help", NULL, NULL), 0);
    says("usage: hearth inspect");
    assert_int_equal(inspect(temp_path("absent\x1b[2J"), NULL, NULL), 1);
    is_safe_for_a_terminal(errors);
    assert_string_equal(output, "");
    assert_int_equal(inspect("/tmp", "--json", NULL), 1);
    assert_string_equal(output, "");
    assert_non_null(strstr(errors, "directory"));
    assert_int_equal(inspect("--no-such-flag", NULL, NULL), 2);
    assert_int_equal(inspect(temp_path("sample.gguf"), temp_path("sample.gguf"), NULL), 2);
    assert_int_equal(inspect("-m", NULL, NULL), 2);
}

static int set_up(void **state) {
    (void)state;
    temp_folder_make();
    gguf_image im = {0};
    gguf_image_sample(&im);
    gguf_image_write(&im, temp_path("sample.gguf"));
    gguf_image_free(&im);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    temp_folder_remove();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text),
        cmocka_unit_test(json),
        cmocka_unit_test(hostile_text),
        cmocka_unit_test(statuses),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
