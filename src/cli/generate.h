/* One completion: a prompt into a session, then token by token out of it, until something ends it. */
#ifndef HTH_CLI_GENERATE_H
#define HTH_CLI_GENERATE_H

#include <stdbool.h>

#include "cli/input.h"
#include "hearth/engine.h"
#include "hearth/output.h"
#include "hearth/sampler.h"

typedef enum hth_stop {
    HTH_STOP_LENGTH,      /* as many tokens as asked for */
    HTH_STOP_END,         /* the model ended it (the token that did is not part of the text), or nothing can follow */
    HTH_STOP_STRING,      /* a stop string came up: it is not part of the text */
    HTH_STOP_CONTEXT,     /* the session is full */
    HTH_STOP_CONSTRAINT,  /* the text is not complete, and the vocabulary has no token with which it could be; or the
                             model ended it, or wrote content, before the constraint began */
    HTH_STOP_INTERRUPTED, /* Ctrl-C */
    HTH_STOP_OUTPUT       /* the text could not be written */
} hth_stop;

/* "length", "end", "stop_string", "context", "constraint", "interrupted", "output" */
const char *hth_stop_name(hth_stop stop);

/* Where an answer has what a constraint is for; both are given emit_context. */
typedef struct hth_bounds {
    /* After the text that was emitted last. */
    hearth_output_place (*place)(void *context);
    /* Whether a token in front of the content is a marker, and no content. */
    bool (*marks)(void *context, hearth_token token);
} hth_bounds;

/* Takes text in whole UTF-8 characters; false ends the generation. */
typedef bool hth_emit_fn(void *context, const char *text, size_t size);

typedef struct hth_generation {
    /* given */
    hearth_engine *engine;
    hearth_session *session;
    hearth_sampler *sampler;
    hearth_detokenizer *detokenizer;
    hearth_stop_matcher *stops; /* NULL: none */
    hearth_matcher *matcher;    /* what the sampler may choose; NULL: anything */
    const hth_bounds *bounds;   /* where the matcher begins, and with it the stop strings; NULL: at the first token */
    hth_tokens prompt;          /* at least one token */
    hearth_mark *marks;         /* to leave in the prompt; NULL: none */
    size_t mark_count;
    int64_t most; /* tokens to generate */
    hth_emit_fn *emit;
    void *emit_context;
    hearth_token *tokens; /* room for `most`, or for one more than the session can hold; filled */
    /* found */
    int64_t count; /* tokens generated, the one that ended it not counted */
    bool bound;    /* the matcher has begun, or there is none to begin */
    hth_stop stop;
    hearth_sync_report sync;
    double prompt_ms;      /* computing the prompt */
    double first_token_ms; /* from the start of the prompt to the first token */
    double decode_ms;      /* computing the tokens after the first */
    int64_t decoded;       /* how many those were */
} hth_generation;

/* On failure the text so far has been emitted. HEARTH_CANCELLED: interrupted before the prompt was computed. */
hearth_status hth_generate(hth_generation *g, hearth_error *err);

#endif
