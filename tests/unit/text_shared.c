/* One tokenizer, four threads: each gets the ids that one thread alone gets. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/text_help.h"

enum { THREADS = 4, TEXTS = 200, TEXT = 6000 };

typedef struct shared {
    const hearth_tokenizer *t;
    char *text[TEXTS];
    size_t size[TEXTS], count[TEXTS];
    hearth_token *ids[TEXTS];
} shared;

typedef struct reader {
    const shared *s;
    unsigned first; /* threads begin at different texts */
    unsigned wrong;
} reader;

static void *encode_all(void *argument) {
    reader *r = argument;
    const shared *s = r->s;
    for (unsigned k = 0; k < TEXTS; k++) {
        unsigned i = (k + r->first) % TEXTS;
        size_t count = 0, size = 0;
        hearth_token *ids = malloc((TEXT + 8) * sizeof *ids);
        char *back = malloc(TEXT + 8);
        hearth_status status =
            hearth_tokenizer_encode(s->t, s->text[i], s->size[i], HEARTH_ENCODE_SPECIAL, ids, TEXT + 8, &count, NULL);
        r->wrong += status != HEARTH_OK || count != s->count[i] || memcmp(ids, s->ids[i], count * sizeof *ids) != 0;
        status = hearth_tokenizer_decode(s->t, ids, count, 1, back, TEXT + 8, &size, NULL);
        r->wrong += status != HEARTH_OK || size != s->size[i] || memcmp(back, s->text[i], size) != 0;
        free(ids);
        free(back);
    }
    return NULL;
}

static void one_tokenizer_serves_many_threads(void **state) {
    (void)state;
    uint64_t seed = text_seed("one_tokenizer_serves_many_threads");
    static shared s;
    hearth_tokenizer *t = text_open("bpe", NULL, 0);
    s.t = t;
    for (unsigned i = 0; i < TEXTS; i++) {
        s.text[i] = malloc(TEXT);
        s.size[i] = text_random_characters(&seed, s.text[i], TEXT);
        s.ids[i] = text_encode(t, s.text[i], s.size[i], HEARTH_ENCODE_SPECIAL, &s.count[i]);
    }
    pthread_t threads[THREADS];
    reader readers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        readers[i] = (reader){&s, i * TEXTS / THREADS, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, encode_all, &readers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(readers[i].wrong, 0);
    }
    for (unsigned i = 0; i < TEXTS; i++) {
        free(s.text[i]);
        free(s.ids[i]);
    }
    hearth_tokenizer_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_tokenizer_serves_many_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
