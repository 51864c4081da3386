/* The formats that models write, as data: markers, and how a call is put together from them. */
#ifndef HTH_TEXT_OUTPUT_FORMAT_H
#define HTH_TEXT_OUTPUT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "hearth/output.h"

/* What a call says, after what opens it. */
typedef enum hth_output_body {
    HTH_BODY_ENVELOPE,   /* {"name": NAME, "arguments": {...}}, and other names of these keys */
    HTH_BODY_LIST,       /* [envelope, ...]: as many calls */
    HTH_BODY_KEYED_LIST, /* [{NAME: {...}}, ...] */
    HTH_BODY_ARGUMENTS,  /* NAME, a marker, and the arguments' JSON object */
    HTH_BODY_TAGGED,     /* NAME, and the arguments between tags: hth_output_tags */
    HTH_BODY_GEMMA,      /* NAME{key:value,...} with strings between <|"|> */
    HTH_BODY_PYTHON      /* NAME(key=value, ...), or a list of such, in Python's literals */
} hth_output_body;

typedef struct hth_output_tags {
    const char *key_open, *key_close;
    const char *value_open; /* NULL: the value follows the key */
    const char *value_close;
    const char *nested; /* opens something that value_close closes, inside a value */
    bool says_string;   /* key_close is followed by whether the value is a string, then '">' */
    bool newlines;      /* one newline on either side of a value belongs to the tags */
} hth_output_tags;

/* One way to write a call. White space may stand between its elements. */
typedef struct hth_output_call_syntax {
    const char *open;
    const char *lead;     /* must follow `open`; NULL: this syntax takes whatever follows. A brace or bracket is only
                             looked at, for the body begins with it */
    const char *name_end; /* NULL: white space or '<' ends the name, or (envelopes) it is in the body */
    const char *id_open;  /* NAME id_open ID name_end, or NULL */
    bool name_in_id;      /* what stands for the name is functions.NAME:NUMBER, the call's id */
    hth_output_body body;
    const char *close[2]; /* as many as are not NULL; a tagged body ends with the first of them that comes */
    const hth_output_tags *tags;
} hth_output_call_syntax;

enum { HTH_OUTPUT_MAX_CALL_SYNTAXES = 5, HTH_OUTPUT_MAX_MARKERS = 4 };

typedef struct hth_output_syntax {
    const char *think_open, *think_close;
    bool think_anywhere;                               /* else at the start only, and after calls */
    bool whole_message_is_call;                        /* a message that begins with '{' may be a call (LLAMA3) */
    bool harmony;                                      /* everything is a message with a header */
    const char *section_open[HTH_OUTPUT_MAX_MARKERS];  /* calls stand between these, if there are any, */
    const char *section_close[HTH_OUTPUT_MAX_MARKERS]; /* each with the close at the same place */
    const char *dropped[HTH_OUTPUT_MAX_MARKERS];       /* markers that mean nothing to us */
    hth_output_call_syntax calls[HTH_OUTPUT_MAX_CALL_SYNTAXES]; /* up to the first without an open */
} hth_output_syntax;

/* The syntax of a format, which must be one. */
const hth_output_syntax *hth_output_syntax_of(hearth_output_format format);

/* The syntax of the calls that need no marker: an envelope as the whole message. */
extern const hth_output_call_syntax hth_output_bare_call;
/* Of a message to functions.NAME in harmony, once its header is read. */
extern const hth_output_call_syntax hth_output_harmony_call;

/* The longest marker; what is held back is never longer, white space aside. */
enum { HTH_OUTPUT_MAX_MARKER = 64 };

#endif
