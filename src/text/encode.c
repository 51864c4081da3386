/* From a text to ids: special tokens are cut out, the fragments between them normalised, cut into pieces and merged. */
#include <stdlib.h>
#include <string.h>

#include "text/encoder.h"
#include "text/normalize.h"
#include "text/tokenizer_internal.h"

enum {
    WORTH_A_CACHE = 4096, /* bytes of text */
    MAX_PIECE = INT32_MAX
};

static const char SPACE_MARK[] = "\xE2\x96\x81"; /* U+2581, which stands for a space in raw vocabularies */

typedef struct encoding {
    const hearth_tokenizer *t;
    hth_encoder encoder;
    hth_piece_sink sink;
    const hearth_encode_parts *parts;
    size_t next_offset; /* of the parts: those before it have their positions */
} encoding;

static hearth_status take_piece(void *context, const char *piece, size_t size, hearth_error *err) {
    encoding *c = context;
    if (size > MAX_PIECE) return hth_fail(err, HEARTH_TOO_LONG, "a piece of text of %zu bytes is too long", size);
    return hth_encode_piece(&c->encoder, piece, size, err);
}

/* The end of the word at `from`: spaces, and what follows them up to the next space. */
static size_t word_end(const char *text, size_t size, size_t from) {
    while (from < size && text[from] == ' ') from++;
    const char *space = memchr(text + from, ' ', size - from);
    return space == NULL ? size : (size_t)(space - text);
}

/* Cuts a piece of a raw vocabulary further where no token could lie across the cut; so a long text is many short
 * pieces. */
static hearth_status take_raw_piece(void *context, const char *piece, size_t size, hearth_error *err) {
    encoding *c = context;
    const hth_vocab *v = &c->t->vocab;
    if (c->t->pre != NULL && (c->t->pre->flags & HTH_PRE_NEWLINES) != 0 && piece[0] == '\n') {
        hearth_token id = hth_vocab_find(v, piece, size);
        if (id != HTH_NO_TOKEN) {
            hth_encoder_put(&c->encoder, id);
            return HEARTH_OK;
        }
    }
    if (!v->cuts_words) return take_piece(context, piece, size, err);
    for (size_t at = 0, end; at < size; at = end) {
        end = word_end(piece, size, at);
        HTH_TRY(take_piece(context, piece + at, end - at, err));
    }
    return HEARTH_OK;
}

/* A copy of the text in the notation of a raw vocabulary; NULL when there is no memory. */
static char *with_spaces(const char *text, size_t size, bool space_before, size_t *out_size) {
    char *out = malloc(size + 1);
    if (out == NULL) return NULL;
    size_t count = 0;
    if (space_before) out[count++] = ' ';
    for (size_t at = 0; at < size;) {
        const char *mark = memmem(text + at, size - at, SPACE_MARK, 3);
        size_t end = mark == NULL ? size : (size_t)(mark - text);
        memcpy(out + count, text + at, end - at);
        count += end - at;
        if (mark != NULL) out[count++] = ' ';
        at = mark == NULL ? size : end + 3;
    }
    *out_size = count;
    return out;
}

/* Tokens of a fragment that is normalised already. */
static hearth_status encode_plain(encoding *c, const char *text, size_t size, hearth_error *err) {
    const hth_vocab *v = &c->t->vocab;
    char *copy = NULL;
    if (v->raw && (v->add_space || memmem(text, size, SPACE_MARK, 3) != NULL)) {
        copy = with_spaces(text, size, v->add_space, &size);
        if (copy == NULL) return hth_fail(err, HEARTH_NO_MEMORY, "no memory to encode %zu bytes of text", size);
        text = copy;
    }
    hearth_status status = c->t->pretokenizer != NULL
                               ? hth_pretokenizer_split(c->t->pretokenizer, text, size, &c->sink, err)
                               : c->sink.piece(c, text, size, err);
    free(copy);
    return status;
}

static hearth_status encode_fragment(encoding *c, const char *text, size_t size, hearth_error *err) {
    char *normal = NULL;
    size_t normal_size = 0;
    if (size == 0) return HEARTH_OK;
    if (c->t->nfc) HTH_TRY(hth_normalize(text, size, &normal, &normal_size, err));
    hearth_status status =
        normal == NULL ? encode_plain(c, text, size, err) : encode_plain(c, normal, normal_size, err);
    free(normal);
    return status;
}

static bool is_ascii_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static encoding begin_encoding(const hearth_tokenizer *t, const hearth_encode_parts *parts, hearth_token *out,
                               size_t capacity) {
    return (encoding){
        .t = t,
        .encoder = {.vocab = &t->vocab,
                    .whole_pieces = t->pre != NULL && (t->pre->flags & HTH_PRE_IGNORE_MERGES) != 0,
                    .out = out,
                    .capacity = capacity},
        .sink = {.piece = t->vocab.raw ? take_raw_piece : take_piece},
        .parts = parts,
    };
}

/* ---- positions ---- */

/* Offsets in front of `end` have this position. */
static void settle(encoding *c, size_t end, size_t position) {
    const hearth_encode_parts *p = c->parts;
    while (c->next_offset < p->n_offsets && p->offsets[c->next_offset] < end) p->positions[c->next_offset++] = position;
}

/* How many of the fragment's tokens, out[first, count), lie wholly in its first `size` bytes, whatever is behind them:
 * those that these bytes alone begin with, too. */
static hearth_status count_stable(encoding *c, const char *fragment, size_t size, size_t first, size_t *out,
                                  hearth_error *err) {
    size_t count = c->encoder.count - first, same = 0;
    hearth_token *ids = malloc((count + 1) * sizeof *ids);
    if (ids == NULL) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for %zu ids", count);
    static const hearth_encode_parts none;
    encoding alone = begin_encoding(c->t, &none, ids, count);
    alone.sink.context = &alone;
    hearth_status status = encode_fragment(&alone, fragment, size, err);
    size_t limit = alone.encoder.count < count ? alone.encoder.count : count;
    while (same < limit && ids[same] == c->encoder.out[first + same]) same++;
    hth_encoder_free(&alone.encoder);
    free(ids);
    *out = first + same;
    return status;
}

/* Offsets in front of `end` are within the fragment that begins at `at` and whose tokens are out[first, count), or
 * within the special token behind it. */
static hearth_status settle_inside(encoding *c, const char *text, size_t at, size_t end, size_t first,
                                   hearth_error *err) {
    const hearth_encode_parts *p = c->parts;
    size_t position = first;
    bool has_ids = c->encoder.count <= c->encoder.capacity;
    while (c->next_offset < p->n_offsets && p->offsets[c->next_offset] < end) {
        if (has_ids) HTH_TRY(count_stable(c, text + at, p->offsets[c->next_offset] - at, first, &position, err));
        p->positions[c->next_offset++] = position;
    }
    return HEARTH_OK;
}

/* Encode text[at, end), and give the offsets up to its end, and those before `behind`, their positions. */
static hearth_status encode_between(encoding *c, const char *text, size_t at, size_t end, size_t behind,
                                    hearth_error *err) {
    size_t first = c->encoder.count;
    settle(c, at + 1, first);
    HTH_TRY(encode_fragment(c, text + at, end - at, err));
    HTH_TRY(settle_inside(c, text, at, end, first, err));
    settle(c, end + 1, c->encoder.count);
    return settle_inside(c, text, at, behind, first, err);
}

/* ---- special tokens ---- */

static bool touches_plain(const hearth_encode_parts *p, size_t begin, size_t end) {
    size_t low = 0, high = p->n_plain; /* the first stretch that ends behind `begin` */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->plain[2 * middle + 1] <= begin) low = middle + 1;
        else high = middle;
    }
    return low < p->n_plain && p->plain[2 * low] < end;
}

/* The first special token from `at` on that may be one: control tokens only where all of the text is the prompt's own.
 */
static const hth_special *find_special(const encoding *c, const char *text, size_t size, size_t at, bool control,
                                       size_t *begin) {
    const hth_specials *specials = &c->t->vocab.specials;
    for (const hth_special *found; (found = hth_specials_find(specials, text, size, at, control, begin)) != NULL;) {
        if (!found->control || !touches_plain(c->parts, *begin, *begin + found->size)) return found;
        found = hth_specials_at(specials, text + *begin, size - *begin, false);
        if (found != NULL) return found;
        at = *begin + 1;
    }
    return NULL;
}

static hearth_status encode_text(encoding *c, const char *text, size_t size, bool control, hearth_error *err) {
    size_t at = 0, begin;
    const hth_special *found;
    while ((found = find_special(c, text, size, at, control, &begin)) != NULL) {
        size_t end = begin;
        if (found->strip_before)
            while (end > at && is_ascii_space(text[end - 1])) end--;
        HTH_TRY(encode_between(c, text, at, end, begin + found->size, err));
        hth_encoder_put(&c->encoder, found->id);
        at = begin + found->size;
        if (found->strip_after)
            while (at < size && is_ascii_space(text[at])) at++;
    }
    return encode_between(c, text, at, size, size, err);
}

static bool begins_with_bos(const encoding *c, const char *text, size_t size, bool control) {
    size_t begin;
    const hth_special *first = control ? find_special(c, text, size, 0, true, &begin) : NULL;
    return first != NULL && begin == 0 && first->id == c->t->vocab.bos;
}

static hearth_status encode(encoding *c, const char *text, size_t size, unsigned flags, bool bos, size_t *count,
                            uint64_t *work, hearth_error *err) {
    const hearth_tokenizer *t = c->t;
    c->sink.context = c;
    if (size >= WORTH_A_CACHE) hth_encoder_use_cache(&c->encoder);
    if (bos) hth_encoder_put(&c->encoder, t->vocab.bos);
    hearth_status status = encode_text(c, text, size, (flags & HEARTH_ENCODE_SPECIAL) != 0, err);
    if ((flags & HEARTH_ENCODE_ADD) != 0 && hearth_tokenizer_adds_eos(t)) hth_encoder_put(&c->encoder, t->vocab.eos);
    hth_encoder_free(&c->encoder);
    size_t capacity = c->encoder.capacity;
    *count = c->encoder.count;
    if (work != NULL) *work = c->encoder.work + c->sink.work;
    if (status == HEARTH_OK && *count > capacity)
        status = hth_fail(err, HEARTH_TOO_LONG, "the text has %zu tokens, and there is room for %zu", *count, capacity);
    return status;
}

hearth_status hth_tokenizer_encode(const hearth_tokenizer *t, const char *text, size_t size, unsigned flags,
                                   hearth_token *out, size_t capacity, size_t *count, uint64_t *work,
                                   hearth_error *err) {
    static const hearth_encode_parts none;
    encoding c = begin_encoding(t, &none, out, capacity);
    bool bos = (flags & HEARTH_ENCODE_ADD) != 0 && hearth_tokenizer_adds_bos(t);
    return encode(&c, text, size, flags, bos, count, work, err);
}

/* In order, and within the text. */
static bool check_parts(const hearth_encode_parts *p, size_t size) {
    size_t at = 0;
    for (size_t i = 0; i < 2 * p->n_plain; i++) {
        if (p->plain[i] < at || p->plain[i] > size) return false;
        at = p->plain[i];
    }
    at = 0;
    for (size_t i = 0; i < p->n_offsets; i++) {
        if (p->offsets[i] < at || p->offsets[i] > size) return false;
        at = p->offsets[i];
    }
    return true;
}

hearth_status hearth_tokenizer_encode_parts(const hearth_tokenizer *t, const char *text, size_t size, unsigned flags,
                                            const hearth_encode_parts *parts, hearth_token *out, size_t capacity,
                                            size_t *count, hearth_error *err) {
    if (!check_parts(parts, size))
        return hth_fail(err, HEARTH_BAD_ARGUMENT, "stretches or offsets are out of order, or behind the text's end");
    encoding c = begin_encoding(t, parts, out, capacity);
    bool bos = (flags & HEARTH_ENCODE_ADD) != 0 && hearth_tokenizer_adds_bos(t) &&
               !begins_with_bos(&c, text, size, (flags & HEARTH_ENCODE_SPECIAL) != 0);
    return encode(&c, text, size, flags, bos, count, NULL, err);
}

hearth_status hearth_tokenizer_encode(const hearth_tokenizer *tokenizer, const char *text, size_t size, unsigned flags,
                                      hearth_token *out, size_t capacity, size_t *count, hearth_error *err) {
    return hth_tokenizer_encode(tokenizer, text, size, flags, out, capacity, count, NULL, err);
}
