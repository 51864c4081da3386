/* The formats that models write, as data: markers, and how a call is put together from them. */
#ifndef HTH_TEXT_OUTPUT_FORMAT_H
#define HTH_TEXT_OUTPUT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "hearth/output.h"
#include "text/output_tools.h"

/* What a call says, after what opens it. */
typedef enum hth_output_body {
    HTH_BODY_ENVELOPE,   /* {"name": NAME, "arguments": {...}}, and other names of these keys */
    HTH_BODY_LIST,       /* [envelope, ...]: as many calls */
    HTH_BODY_KEYED_LIST, /* [{NAME: {...}}, ...] */
    HTH_BODY_ARGUMENTS,  /* NAME, a marker, and the arguments' JSON object */
    HTH_BODY_TAGGED,     /* NAME, and the arguments between tags: hth_output_tags */
    HTH_BODY_ELEMENTS,   /* NAME, and the arguments as elements, one in another: hth_output_elements */
    HTH_BODY_GEMMA,      /* NAME{key:value,...} with strings between <|"|> */
    HTH_BODY_PYTHON      /* NAME(key=value, ...), or a list of such, in Python's literals */
} hth_output_body;

/* A word that says which type a value has. */
typedef struct hth_output_type_word {
    const char *text;
    unsigned types; /* 0: those of the tool's schema, and the value is not shown before it is whole */
} hth_output_type_word;

typedef struct hth_output_call_syntax hth_output_call_syntax;

typedef struct hth_output_tags {
    const char *key_open, *key_close;
    const hth_output_type_word *types; /* key_close is followed by one of these, up to one without text, and by */
    const char *type_close;            /* this. NULL: it is not */
    const char *value_open;            /* NULL: the value follows the key */
    const char *value_close;
    const char *nested;       /* opens something that value_close closes, inside a value */
    const char *literal_open; /* a value between these two, the second with value_close in it, is all text; or NULL */
    const char *literal_close;
    bool newlines;           /* one newline on either side of a value belongs to the tags */
    bool key_has_references; /* &amp; and &quot; in a key stand for & and " */
    const char *json_open;   /* in place of all tags: the arguments as an object in JSON, which `json` goes on with */
    const hth_output_call_syntax *json;
} hth_output_tags;

/* MARK<KEY>VALUE MARK</KEY>, where a value is text or elements: those of an object by their names, those of a list all
 * with the name `item`. */
typedef struct hth_output_elements {
    const char *mark, *item;
} hth_output_elements;

/* One way to write a call. White space may stand between its elements. */
struct hth_output_call_syntax {
    const char *open;
    const char *lead;     /* must follow `open`; NULL: this syntax takes whatever follows. A brace or bracket is only
                             looked at, for the body begins with it */
    const char *name_end; /* NULL: white space or '<' ends the name, or (envelopes) it is in the body */
    const char *id_open;  /* NAME id_open ID name_end, or NULL */
    const char *id_close; /* ID id_close NAME name_end, or NULL */
    const char *attributes_close; /* what stands between name_end and this says nothing; NULL: nothing does */
    bool name_in_id;              /* what stands for the name is functions.NAME:NUMBER, the call's id */
    hth_output_body body;
    const char *close[2]; /* as many as are not NULL; a tagged body ends with the first of them that comes */
    const hth_output_tags *tags;
    const hth_output_elements *elements;
};

/* An answer is a row of messages, each behind a header that says who it is to, or on which channel it is. */
typedef struct hth_output_headers {
    const char *start, *message;        /* the header begins (of the first one the prompt holds this) and ends */
    const char *parts[3];               /* what else may begin a header whose start is not there */
    const char *ends[3];                /* of a message, besides the start of the next */
    const char *key, *reasoning;        /* a message is reasoning when this stands behind that in its header */
    const hth_output_call_syntax *call; /* of a message to a tool; NULL: markers in the text say what is a call */
    const char *prefix;                 /* of a tool's name as a recipient */
    const char *persons[3];             /* recipients that are no tools */
} hth_output_headers;

enum { HTH_OUTPUT_MAX_CALL_SYNTAXES = 5, HTH_OUTPUT_MAX_MARKERS = 4 };

typedef struct hth_output_syntax {
    const char *think_open, *think_close;
    bool think_anywhere;                               /* else at the start only, and after calls */
    bool whole_message_is_call;                        /* a message that begins with '{' may be a call (LLAMA3) */
    const hth_output_headers *headers;                 /* everything is a message with a header; NULL: none has */
    const char *section_open[HTH_OUTPUT_MAX_MARKERS];  /* calls stand between these, if there are any, */
    const char *section_close[HTH_OUTPUT_MAX_MARKERS]; /* each with the close at the same place */
    const char *dropped[HTH_OUTPUT_MAX_MARKERS];       /* markers that mean nothing to us */
    hth_output_call_syntax calls[HTH_OUTPUT_MAX_CALL_SYNTAXES]; /* up to the first without an open */
} hth_output_syntax;

/* The syntax of a format, which must be one. */
const hth_output_syntax *hth_output_syntax_of(hearth_output_format format);

/* The syntax of the calls that need no marker: an envelope as the whole message. */
extern const hth_output_call_syntax hth_output_bare_call;
/* The longest marker; what is held back is never longer, white space aside. */
enum { HTH_OUTPUT_MAX_MARKER = 64 };

#endif
