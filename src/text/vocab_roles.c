/* Which tokens begin and end texts and generations.
 *
 * Files name some of them by id; the rest are known by their texts. A token that is known by its text is a control
 * token whatever type the file gives it, unless it is an ordinary piece of text ("</s>" where it is a tag of markup) or
 * one of the exceptions below.
 */
#include <assert.h>
#include <string.h>

#include "text/vocab.h"

/* What a text may stand for. Roles that only one token can have are taken by the first of the list that the vocabulary
 * has. */
enum {
    ENDS = 1,     /* ends a generation */
    TURN = 2,     /* the end of a turn */
    MESSAGE = 4,  /* the end of a message */
    FILL_PAD = 8, /* padding, repository and file marks of infilling: a model that writes one is done */
    FILL_REPO = 16,
    FILL_FILE = 32,
    FILL = 64,  /* the other marks of infilling */
    SHOWN = 128 /* written by the model as part of its answer: user-defined, not control */
};

static const struct {
    const char *text;
    unsigned roles;
} known[] = {
    {"<|eot_id|>", ENDS | TURN},
    {"<|im_end|>", ENDS | TURN},
    {"<|end|>", ENDS | TURN},
    {"<end_of_turn>", ENDS | TURN},
    {"<|endoftext|>", ENDS | TURN},
    {"<|end_of_text|>", ENDS | TURN},
    {"<EOT>", ENDS | TURN},
    {"_<EOT>", ENDS | TURN},
    {"[EOT]", ENDS | TURN},
    {"<\xEF\xBD\x9C"
     "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
     ENDS | TURN},
    {"<end_of_utterance>", ENDS | TURN},
    {"<|eom_id|>", ENDS | MESSAGE},
    {"<|return|>", ENDS},
    {"<|call|>", ENDS},
    {"<|flush|>", ENDS},
    {"<|calls|>", ENDS},
    {"</s>", ENDS},
    {"[EOS]", ENDS},
    {"<eos>", ENDS},
    {"<turn|>", ENDS},
    {"<|tool_response>", ENDS},
    {"[e~[", ENDS},
    {"<|fim_prefix|>", FILL},
    {"<|fim_suffix|>", FILL},
    {"<|fim_middle|>", FILL},
    {"<fim_prefix>", FILL},
    {"<fim_suffix>", FILL},
    {"<fim_middle>", FILL},
    {"<fim-prefix>", FILL},
    {"<fim-suffix>", FILL},
    {"<fim-middle>", FILL},
    {"<PRE>", FILL},
    {"<SUF>", FILL},
    {"<MID>", FILL},
    {"\xE2\x96\x81<PRE>", FILL},
    {"\xE2\x96\x81<SUF>", FILL},
    {"\xE2\x96\x81<MID>", FILL},
    {"<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "begin\xEF\xBD\x9C>",
     FILL},
    {"<\xEF\xBD\x9C"
     "fim\xE2\x96\x81hole\xEF\xBD\x9C>",
     FILL},
    {"<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "end\xEF\xBD\x9C>",
     FILL},
    {"<|code_prefix|>", FILL},
    {"<|code_suffix|>", FILL},
    {"<|code_middle|>", FILL},
    {"<|prefix|>", FILL},
    {"<|suffix|>", FILL},
    {"<|middle|>", FILL},
    {"<|fim_pad|>", FILL_PAD},
    {"<fim-pad>", FILL_PAD},
    {"<fim_pad>", FILL_PAD},
    {"<PAD>", FILL_PAD},
    {"[PAD]", FILL_PAD},
    {"<|fim_repo|>", FILL_REPO},
    {"<|repo_name|>", FILL_REPO},
    {"<fim-repo>", FILL_REPO},
    {"<REPO>", FILL_REPO},
    {"<reponame>", FILL_REPO},
    {"<|file_sep|>", FILL_FILE},
    {"<|channel|>", SHOWN},
    {"<|message|>", SHOWN},
    {"<|start|>", SHOWN},
    {"<|constrain|>", SHOWN},
    {"<|plamo:eos|>", 0},
};

enum { KNOWN_COUNT = sizeof known / sizeof *known };

typedef struct role_finder {
    hth_vocab *v;
    const hth_gguf *g;
    hearth_token id_of[KNOWN_COUNT]; /* the token with this text */
    bool is_text[KNOWN_COUNT];       /* it is an ordinary piece of text */
} role_finder;

/* Whether a merge makes this text. */
static bool is_merged(const hth_gguf_kv *merges, const char *text, size_t size) {
    for (uint64_t i = 0; i < merges->count; i++) {
        hth_string merge;
        if (hth_gguf_string_at(merges, i, &merge, NULL) != HEARTH_OK || merge.size != size + 1) continue;
        const char *space = memchr(merge.data, ' ', merge.size);
        size_t split = space == NULL ? size : (size_t)(space - merge.data);
        if (split < size && memcmp(merge.data, text, split) == 0 && memcmp(space + 1, text + split, size - split) == 0)
            return true;
    }
    return false;
}

static hearth_status find_known(role_finder *f, const hth_gguf_kv *tokens, hearth_error *err) {
    size_t sizes[KNOWN_COUNT];
    uint64_t sizes_by_end[256] = {0}; /* bit n: a known text of n bytes ends with this byte. Few tokens have one */
    for (size_t k = 0; k < KNOWN_COUNT; k++) {
        sizes[k] = strlen(known[k].text);
        assert(sizes[k] > 0 && sizes[k] < 64);
        sizes_by_end[(unsigned char)known[k].text[sizes[k] - 1]] |= UINT64_C(1) << sizes[k];
        f->id_of[k] = HTH_NO_TOKEN;
    }
    for (uint32_t id = 0; id < f->v->size; id++) {
        hth_string text;
        HTH_TRY(hth_gguf_string_at(tokens, id, &text, err));
        if (text.size == 0 || text.size >= 64) continue;
        if ((sizes_by_end[(unsigned char)text.data[text.size - 1]] >> text.size & 1) == 0) continue;
        for (size_t k = 0; k < KNOWN_COUNT; k++)
            if (sizes[k] == text.size && memcmp(known[k].text, text.data, text.size) == 0)
                f->id_of[k] = (hearth_token)id;
    }
    const hth_gguf_kv *merges = hth_gguf_find(f->g, "tokenizer.ggml.merges");
    bool have_merges = merges != NULL && merges->type == HTH_GGUF_ARRAY && merges->element == HTH_GGUF_STRING;
    for (size_t k = 0; k < KNOWN_COUNT; k++) {
        if (f->id_of[k] == HTH_NO_TOKEN) continue;
        unsigned type = f->v->types[f->id_of[k]];
        bool is_markup = type == HTH_TOKEN_USER && strcmp(known[k].text, "</s>") == 0 && f->id_of[k] != f->v->eos;
        f->is_text[k] =
            is_markup || (type == HTH_TOKEN_NORMAL && have_merges && is_merged(merges, known[k].text, sizes[k]));
    }
    return HEARTH_OK;
}

static hearth_token known_token(const role_finder *f, const char *text) {
    for (size_t k = 0; k < KNOWN_COUNT; k++)
        if (strcmp(known[k].text, text) == 0) return f->id_of[k];
    return HTH_NO_TOKEN;
}

/* The id under a key, if that is a token; else *id stays, if that is one. */
static hearth_status id_under(const role_finder *f, const char *key, hearth_token *id, hearth_error *err) {
    uint64_t value = UINT64_MAX;
    hearth_status status = hth_gguf_get_u64(f->g, key, 0, UINT32_MAX, &value, err);
    if (status != HEARTH_OK && status != HEARTH_NOT_FOUND) return status;
    if (value < f->v->size) *id = (hearth_token)value;
    else if ((int64_t)*id >= (int64_t)f->v->size) *id = HTH_NO_TOKEN;
    return HEARTH_OK;
}

/* The id under a key, or the first known text with this role. */
static hearth_status id_of_role(role_finder *f, const char *key, unsigned role, hearth_token *id, hearth_error *err) {
    *id = HTH_NO_TOKEN;
    HTH_TRY(id_under(f, key, id, err));
    for (size_t k = 0; k < KNOWN_COUNT && *id == HTH_NO_TOKEN; k++) {
        if ((known[k].roles & role) == 0 || f->id_of[k] == HTH_NO_TOKEN) continue;
        *id = f->id_of[k];
        if (!f->is_text[k]) f->v->types[*id] = HTH_TOKEN_CONTROL;
    }
    return HEARTH_OK;
}

static void mark_end(hth_vocab *v, hearth_token id) {
    if (id != HTH_NO_TOKEN) v->ends[id] = true;
}

/* Tokens that would end a generation and in this model do not. */
static void correct_ends(const role_finder *f) {
    hth_vocab *v = f->v;
    hearth_token end = known_token(f, "<|end|>"), slash_s = known_token(f, "</s>");
    bool calls = known_token(f, "<|call|>") >= 0 || known_token(f, "<|calls|>") >= 0;
    bool returns = known_token(f, "<|return|>") >= 0 || known_token(f, "<|flush|>") >= 0;
    if (end >= 0 && calls && returns) { /* one message of several */
        v->ends[end] = false;
        v->types[end] = HTH_TOKEN_USER;
    }
    if (slash_s >= 0 && (known_token(f, "<|tool_response>") >= 0 || known_token(f, "<|plamo:eos|>") >= 0)) {
        v->ends[slash_s] = false; /* a tag of markup */
        v->types[slash_s] = HTH_TOKEN_NORMAL;
    }
}

static hearth_status find_ends(role_finder *f, hearth_error *err) {
    static const struct {
        const char *key;
        unsigned role;
    } infill[] = {
        {"tokenizer.ggml.fim_pad_token_id", FILL_PAD},
        {"tokenizer.ggml.fim_rep_token_id", FILL_REPO},
        {"tokenizer.ggml.fim_sep_token_id", FILL_FILE},
    };
    hth_vocab *v = f->v;
    HTH_TRY(id_of_role(f, "tokenizer.ggml.eot_token_id", TURN, &v->eot, err));
    HTH_TRY(id_of_role(f, "tokenizer.ggml.eom_token_id", MESSAGE, &v->eom, err));
    mark_end(v, v->eos);
    mark_end(v, v->eot);
    mark_end(v, v->eom);
    for (size_t i = 0; i < sizeof infill / sizeof *infill; i++) {
        hearth_token id;
        HTH_TRY(id_of_role(f, infill[i].key, infill[i].role, &id, err));
        mark_end(v, id);
    }
    for (size_t k = 0; k < KNOWN_COUNT; k++) {
        hearth_token id = f->id_of[k];
        if (id == HTH_NO_TOKEN) continue;
        if (known[k].roles & ENDS) v->ends[id] = true;
        if (f->is_text[k]) continue;
        if (known[k].roles & (ENDS | FILL)) v->types[id] = HTH_TOKEN_CONTROL;
        if (known[k].roles & SHOWN) v->types[id] = HTH_TOKEN_USER;
    }
    correct_ends(f);
    return HEARTH_OK;
}

/* A bool key; HEARTH_OK also when it is absent. */
static hearth_status bool_under(const hth_gguf *g, const char *key, bool *out, hearth_error *err) {
    hearth_status status = hth_gguf_get_bool(g, key, out, err);
    return status == HEARTH_NOT_FOUND ? HEARTH_OK : status;
}

hearth_status hth_vocab_find_roles(hth_vocab *v, const hth_gguf *g, const hth_gguf_kv *tokens, const hth_pre_row *pre,
                                   hearth_error *err) {
    role_finder f = {.v = v, .g = g};
    bool llama = v->kind == HTH_VOCAB_LLAMA;
    bool falcon = pre != NULL && strcmp(pre->name, "falcon") == 0; /* its files may leave out what all of them share */
    v->bos = llama ? 1 : falcon ? 11 : HTH_NO_TOKEN;
    v->eos = llama ? 2 : falcon ? 11 : HTH_NO_TOKEN;
    v->unknown = llama ? 0 : HTH_NO_TOKEN;
    HTH_TRY(id_under(&f, "tokenizer.ggml.bos_token_id", &v->bos, err));
    HTH_TRY(id_under(&f, "tokenizer.ggml.eos_token_id", &v->eos, err));
    HTH_TRY(id_under(&f, "tokenizer.ggml.unknown_token_id", &v->unknown, err));
    HTH_TRY(find_known(&f, tokens, err));
    HTH_TRY(find_ends(&f, err));

    v->add_bos = llama || (pre != NULL && (pre->flags & HTH_PRE_ADD_BOS) != 0);
    v->add_eos = false;
    v->add_space = llama;
    HTH_TRY(bool_under(g, "tokenizer.ggml.add_bos_token", &v->add_bos, err));
    HTH_TRY(bool_under(g, "tokenizer.ggml.add_eos_token", &v->add_eos, err));
    if (llama) HTH_TRY(bool_under(g, "tokenizer.ggml.add_space_prefix", &v->add_space, err));
    if (v->kind == HTH_VOCAB_GEMMA4) v->add_bos = true; /* some files say otherwise and are wrong */
    return HEARTH_OK;
}
