/* The inside of an output parser.
 *
 * The whole answer is kept in `text`; `at` is the next byte to look at and never goes back by more than a marker and
 * the white space before it. Three kinds of phases take turns: text (output_text.c) shows content or reasoning and
 * looks for markers; call phases (output_call.c and a file for each kind of body) read one call; and where answers are
 * rows of messages a header (output_headers.c) stands before each.
 *
 * Invariants:
 *   1. Every byte before `kept` is in a span or is markup; no byte from `kept` on is in a span yet.
 *   2. While a call is being read, kept <= call_start <= at, and nothing from call_start on has been shown as content.
 *   3. What is shown of a byte depends on the bytes of the answer alone, never on where they were cut: a step that
 * could go either way waits.
 *   4. A phase that waits is entered again with more text or with `ended` set, and then gets further or gives up.
 */
#ifndef HTH_TEXT_OUTPUT_INTERNAL_H
#define HTH_TEXT_OUTPUT_INTERNAL_H

#include "text/output_bytes.h"
#include "text/output_format.h"
#include "text/output_json.h"
#include "text/output_tools.h"

/* What a step did. NEXT goes on inside a phase; TURN goes back to the loop over phases. */
typedef enum hth_step { HTH_NEXT, HTH_TURN, HTH_WAIT, HTH_NO_MEMORY } hth_step;

/* Return from a step early unless it is to go on. */
#define HTH_STEP(expression)                                                                                           \
    do {                                                                                                               \
        hth_step step_ = (expression);                                                                                 \
        if (step_ != HTH_NEXT) return step_;                                                                           \
    } while (0)

typedef enum hth_phase {
    HTH_PHASE_TEXT,
    HTH_PHASE_HEADER,  /* before a message */
    HTH_PHASE_SECTION, /* between the calls of a section */
    HTH_PHASE_LEAD,    /* after what opens a call */
    HTH_PHASE_NAME,
    HTH_PHASE_ID,
    HTH_PHASE_ATTRIBUTES, /* between the name and the body */
    HTH_PHASE_ENVELOPE,
    HTH_PHASE_ARGUMENTS,
    HTH_PHASE_TAGGED,
    HTH_PHASE_ELEMENTS,
    HTH_PHASE_LITERALS,
    HTH_PHASE_CLOSE /* after a call's body */
} hth_phase;

typedef enum hth_match { HTH_MATCH_NONE, HTH_MATCH_PARTIAL, HTH_MATCH_FULL } hth_match;

typedef struct hth_range {
    size_t from, to;
} hth_range;

typedef struct hth_call_record {
    hth_range name, id; /* in `names` */
    hth_range arguments;
    size_t span;
    const char *fault;
} hth_call_record;

/* A fenced code block in content, in which nothing opens a call. */
typedef struct hth_fence {
    char byte;     /* '`' or '~': open; 0: none */
    char run_byte; /* of the run that this line begins with */
    uint8_t indent;
    bool is_text;   /* this line neither opens nor closes a block */
    bool run_ended; /* something stands after the run */
    bool has_info;  /* something but blanks */
    size_t size, run;
} hth_fence;

/* Reading the object {"name": ..., "arguments": ...}, alone or in a list. */
typedef struct hth_envelope {
    hth_json json;
    uint32_t depth; /* of a call's own keys: 1, or 2 in a list */
    enum { HTH_KEY_OTHER, HTH_KEY_NAME, HTH_KEY_ARGUMENTS, HTH_KEY_ID } key;
    bool inside; /* an element is open */
    bool any;    /* one has ended */
    bool has_name, has_arguments, arguments_open, arguments_are_string;
    size_t string_at, arguments_at; /* the first byte of the string or of the arguments not taken yet */
    size_t arguments_to;
    hth_json_decoder decoder;
    hth_json inner; /* of arguments that are a string */
} hth_envelope;

typedef struct hth_tagged {
    enum { HTH_TAG_NEXT, HTH_TAG_KEY, HTH_TAG_TYPE, HTH_TAG_OPEN, HTH_TAG_VALUE, HTH_TAG_AFTER } state;
    size_t key_at, key_to;
    size_t value_at; /* the first byte of the value not taken yet */
    size_t value_to; /* where it ends if what follows shows that it does */
    size_t nesting;
    bool string, started, any;
    bool literal; /* the value is between literal_open and literal_close */
    unsigned types;
} hth_tagged;

/* Reading elements. Level 0 is the call's arguments, an object; an element at level i is in the container of level i.
 */
typedef struct hth_element_level {
    hth_range name; /* of the element that is open in this container */
    bool object, any;
} hth_element_level;

typedef struct hth_elements {
    enum { HTH_ELEMENT_NEXT, HTH_ELEMENT_BEGIN, HTH_ELEMENT_TEXT } state;
    uint32_t depth;  /* of the container at hand */
    size_t value_at; /* the first byte of the open element's text not taken yet */
    bool string;     /* it is shown as it comes */
    unsigned types;
    size_t seen_at, seen; /* the name of a tag at `seen_at` goes on to `seen` at least */
    hth_element_level levels[HTH_JSON_MAX_DEPTH];
} hth_elements;

/* Reading literals that are not JSON: Gemma's and Python's. */
typedef struct hth_literals {
    uint8_t state;
    bool list;     /* Python: [call, call] */
    bool any_call; /* one of them has ended */
    bool keyed;    /* what is being read is a key */
    bool first;    /* nothing stands in the open container yet */
    char quote;    /* Python: of the string being read */
    uint8_t hex_left;
    uint32_t hex;
    uint32_t depth;
    size_t from; /* the first byte of the word or string that has not been taken */
    uint64_t objects[HTH_JSON_MAX_DEPTH / 64];
} hth_literals;

struct hearth_output_parser {
    const hth_output_syntax *syntax;
    hth_output_tools *tools; /* NULL: the request has none */
    bool keep_reasoning;
    size_t max_text, max_calls;
    bool starts[256]; /* bytes that a marker of the text phase begins with */

    hearth_output_sink sink;
    void *context;

    hth_bytes text, content, reasoning, names, arguments;
    hearth_output_span *spans;
    size_t span_count, span_capacity;
    hth_call_record *calls;
    size_t call_count, call_capacity;
    hearth_output_call *public_calls;
    size_t faults;
    size_t work; /* bytes compared or taken */
    bool ended, failed;

    hth_phase phase;
    size_t at, kept;

    /* text */
    size_t solid; /* the end of what was looked at, less white space at its end */
    bool is_reasoning;
    bool blank;              /* nothing but white space since the start or the last marker */
    bool after_marker;       /* that was a marker */
    const char *fault;       /* this text is a broken call's */
    const char *fault_close; /* what ends it, or NULL */
    hth_fence fence;

    /* a call */
    const char *open;
    const hth_output_call_syntax *call;
    int section; /* index of the marker that opened it, or -1 */
    bool begun;  /* its name has been shown: calls[call_count - 1] */
    size_t call_start;
    hth_range name, id;
    size_t attributes_at;
    size_t shown;  /* of `arguments` */
    size_t closed; /* elements of call->close that have come */
    hth_json json;
    union {
        hth_envelope envelope;
        hth_tagged tagged;
        hth_elements elements;
        hth_literals literals;
    } body;
};

typedef struct hearth_output_parser hth_parser;

static inline bool hth_output_is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* ---- output_parser.c: text and buffers ---- */

/* Whether `literal` stands in the text at `at`, or may once there is more of it. */
hth_match hth_output_match(hth_parser *p, size_t at, const char *literal);
/* Go over white space; WAIT when the text ends there. (Once the answer has ended: NEXT, with at == text.size.) */
hth_step hth_output_skip_space(hth_parser *p);
/* The most bytes of data[0, size) that do not end inside a UTF-8 character. */
size_t hth_output_whole(const char *data, size_t size);
/* Show text[kept, to) as content or reasoning; kept = to. */
hth_step hth_output_show(hth_parser *p, size_t to);
hth_step hth_output_add_span(hth_parser *p, hearth_output_span span);
/* Report an event about the last call. */
void hth_output_report(hth_parser *p, hearth_output_kind kind, const char *text, size_t size);

/* ---- output_text.c ---- */

void hth_output_text_begin(hth_parser *p, bool is_reasoning, bool after_marker);
hth_step hth_output_text_step(hth_parser *p);
hth_step hth_output_text_end(hth_parser *p);

/* ---- output_call.c: what all calls share ---- */

/* Read a call whose opening marker begins at `start` and ends at p->at. */
hth_step hth_output_call_open(hth_parser *p, size_t start, const char *open);
hth_step hth_output_call_step(hth_parser *p);
/* The answer ends inside a call or a section. */
hth_step hth_output_call_end(hth_parser *p);
/* The call is one: show its name. TURN when there are too many. */
hth_step hth_output_call_begin(hth_parser *p, const char *name, size_t size);
/* The same, unless it is shown already, with the name that was read; its arguments begin with "{". */
hth_step hth_output_call_begin_object(hth_parser *p);
/* Append to the call's arguments. */
hth_step hth_output_call_argue(hth_parser *p, const char *text, size_t size);
/* The same with a text that ends in 0; with from .. to of the answer, as what stands inside a JSON string. */
hth_step hth_output_call_put(hth_parser *p, const char *text);
hth_step hth_output_call_put_escaped(hth_parser *p, size_t from, size_t to);
/* Show what was appended. */
void hth_output_call_show(hth_parser *p);
/* The call's last byte is before p->at; then its closing markers are read if `close`. */
hth_step hth_output_call_done(hth_parser *p);
hth_step hth_output_call_close(hth_parser *p);
/* What was read as a call is none: everything from call_start on is content with this fault (NULL: just content). */
hth_step hth_output_call_fail(hth_parser *p, const char *fault);

/* ---- a step of each kind of body; `begin` is called when the phase begins ---- */

void hth_output_envelope_begin(hth_parser *p);
hth_step hth_output_envelope_step(hth_parser *p);
/* The text that the answer ends with, in an envelope, is no part of a call. */
bool hth_output_envelope_is_between(const hth_parser *p);
void hth_output_tagged_begin(hth_parser *p);
hth_step hth_output_tagged_step(hth_parser *p);
/* Append text[from, to), whose type is one of `types` (0: any), to the arguments: as JSON if it is that, else as a
 * string. */
hth_step hth_output_argue_text(hth_parser *p, size_t from, size_t to, unsigned types);
void hth_output_elements_begin(hth_parser *p);
hth_step hth_output_elements_step(hth_parser *p);
void hth_output_literals_begin(hth_parser *p);
bool hth_output_literals_are_between(const hth_parser *p);
hth_step hth_output_literals_step(hth_parser *p);

/* ---- output_headers.c ---- */

void hth_output_header_begin(hth_parser *p, size_t start);
hth_step hth_output_header_step(hth_parser *p);
hth_step hth_output_header_end(hth_parser *p);

#endif
