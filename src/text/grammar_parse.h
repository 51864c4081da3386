/* GBNF, the grammar notation of llama.cpp.
 *
 *   root ::= "yes" | "no" | list      # a comment
 *   list ::= "[" [0-9]+ ("," [0-9]{1,3})* "]"
 *
 * A rule is NAME ::= and a body; names are of letters, digits and "-". A body is alternatives between "|", each a
 * sequence of "literals", [classes] and [^negated classes] of characters, "." for any character, names of rules and
 * (groups), each followed by any of ? * + {m} {m,} {m,n}. A body ends at the end of a line, except inside a group and
 * behind "|" or "::=". Escapes: \n \t \r \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH. Texts are UTF-8, and a class is one of
 * characters. Matching begins with the rule `root`.
 */
#ifndef HTH_TEXT_GRAMMAR_PARSE_H
#define HTH_TEXT_GRAMMAR_PARSE_H

#include "text/grammar.h"

/* Add the rules of a text of at most HTH_GRAMMAR_MAX_TEXT bytes. */
void hth_grammar_parse_rules(hth_grammar *g, const char *text, size_t size);

/* Parse `size` bytes into an initialised grammar whose source they are. On failure (BAD_ARGUMENT, TOO_LONG, NO_MEMORY;
 * UNSUPPORTED for terminals that are tokens) the text names line and column. */
hearth_status hth_grammar_parse(hth_grammar *g, const char *text, size_t size, hearth_error *err);

#endif
