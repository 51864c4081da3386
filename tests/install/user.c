/* What a user of the library writes at least: open a model, continue a text with the likeliest tokens. */
#include <hearth/hearth.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    const char *text = "And God said";
    hearth_error err = {HEARTH_OK, ""};
    hearth_engine *engine = NULL;
    hearth_session *session = NULL;
    hearth_token ids[64];
    size_t count = 0;
    const float *logits = NULL;

    if (argc != 2) return 2;
    if (hearth_engine_open(argv[1], NULL, &engine, &err) != HEARTH_OK) goto fail;
    const hearth_tokenizer *words = hearth_engine_tokenizer(engine);
    if (hearth_session_create(engine, &session, &err) != HEARTH_OK) goto fail;
    if (hearth_tokenizer_encode(words, text, strlen(text), HEARTH_ENCODE_ADD, ids, 48, &count, &err) != HEARTH_OK)
        goto fail;
    for (size_t end = count + 16; count < end; count++) {
        if (hearth_session_sync(session, ids, (int64_t)count, NULL, 0, &logits, NULL, &err) != HEARTH_OK) goto fail;
        ids[count] = 0;
        for (int32_t id = 1; id < hearth_tokenizer_size(words); id++)
            if (logits[id] > logits[ids[count]]) ids[count] = id;
        const char *piece;
        size_t size;
        if (hearth_tokenizer_piece(words, ids[count], 0, &piece, &size, &err) != HEARTH_OK) goto fail;
        fwrite(piece, 1, size, stdout);
    }
    putchar('\n');
fail:
    if (err.status != HEARTH_OK) fprintf(stderr, "%s: %s\n", hearth_status_text(err.status), err.text);
    hearth_session_free(&session);
    hearth_engine_close(&engine);
    return err.status != HEARTH_OK;
}
