/* JSON schemas: which texts they let through, and what is refused by name. Every text that a schema must accept is
 * written in the one spelling that is generated; every text it must not is one that a validator would refuse, or JSON
 * in another spelling. All JSON here is written with ' for the quotation mark. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/constraint_help.h"
#include "unit/text_help.h"

static constraint_vocab vocab; /* of the 256 bytes */

static int open_vocab(void **unused) {
    (void)unused;
    constraint_bytes_open(&vocab);
    return 0;
}

static int close_vocab(void **unused) {
    (void)unused;
    constraint_vocab_close(&vocab);
    return 0;
}

static char *quoted(const char *text) {
    char *json = strdup(text);
    assert_non_null(json);
    for (char *c = json; *c != '\0'; c++)
        if (*c == '\'') *c = '"';
    return json;
}

static hearth_constraint *constraint_for(const char *schema) {
    char *json = quoted(schema);
    hearth_constraint *c = constraint_of_schema(vocab.index, json);
    free(json);
    return c;
}

static constraint_verdict judge(const hearth_constraint *c, const char *text) {
    char *json = quoted(text);
    constraint_verdict verdict = constraint_judge(c, json, strlen(json));
    free(json);
    return verdict;
}

static void refuse(const char *schema, hearth_status status, const char *says) {
    char *json = quoted(schema), *words = quoted(says);
    constraint_refused(vocab.index, true, json, strlen(json), status, words);
    free(json);
    free(words);
}

/* Lists end with NULL. */
typedef struct sample {
    const char *schema;
    const char *matches[8], *others[10];
} sample;

static const sample samples[] = {
    {"{'type':'null'}", {"null"}, {"true", "'null'", " null", "null "}},
    {"{'type':'boolean'}", {"true", "false"}, {"null", "True"}},
    {"true", {"null", "{}", "[1, 2]", "{'a':{'b':[]}}", "'x'", "-1.5e3"}, {"", "[1,]", "{a:1}", "01"}},
    {"{}", {"0", "[ ]", "{'a': 1}"}, {"nul", "[,1]"}},
    {"{'type':['string','null'],'maxLength':2}", {"null", "''", "'ab'"}, {"'abc'", "1"}},
    /* strings */
    {"{'type':'string'}",
     {"''", "'a \xC3\xA9 \xF0\x9F\x99\x82'", "'\\n\\'\\\\\\u00e9'", "'\\uD83D\\uDE42'", "'\\uFFFF'"},
     {"'a\nb'", "'\\x'", "'\\u12'", "'\\uD83D'", "'\\uDE42'", "'\\uD83D\\u0041'", "'\xC3'", "'\\/'"}},
    {"{'type':'string','minLength':2,'maxLength':3}",
     {"'ab'", "'abc'", "'\xC3\xA9\xF0\x9F\x99\x82'", "'\\n\\''"},
     {"'a'", "'abcd'", "'\xC3\xA9'", "''"}},
    {"{'type':'string','minLength':1}", {"'a'", "'abcdef'"}, {"''"}},
    {"{'type':'string','maxLength':0}", {"''"}, {"'a'"}},
    {"{'type':'string','pattern':'^a[0-9]{2,3}$'}", {"'a12'", "'a123'"}, {"'a1'", "'a1234'", "'xa12'"}},
    {"{'type':'string','pattern':'b+'}", {"'b'", "'abba'", "'\\nb'"}, {"''", "'a'", "b"}},
    {"{'type':'string','pattern':'^(a|bc)*?$'}", {"''", "'abca'"}, {"'b'", "'ac'"}},
    {"{'type':'string','pattern':'^[^a-c\\']\\\\.\\\\$$'}", {"'d.$'", "'\\\\.$'"}, {"'a.$'", "'dx$'", "'\\'.$'"}},
    {"{'type':'string','pattern':'^\\\\d\\\\w\\\\s[\\\\D\\\\n]$'}",
     {"'1_ x'", "'1a\\t\\n'", "'9Z\xC2\xA0y'"},
     {"'xa x'", "'1- x'", "'1a x1'", "'1a 1'", "'1a\t\\n'"}},
    {"{'type':'string','pattern':'^\\'\\\\\\\\[\\\\x41-\\\\u0043]\\\\S.$'}",
     {"'\\'\\\\Bxy'"},
     {"'\\'\\\\Dxy'", "'\\'\\\\B x'"}},
    {"{'type':'string','pattern':'^(?:x|y){2}$'}", {"'xy'", "'yy'"}, {"'x'", "'xyx'"}},
    {"{'type':'string','format':'date'}",
     {"'2024-02-29'", "'2000-02-29'", "'2023-12-31'", "'1999-04-30'"},
     {"'2023-02-29'", "'1900-02-29'", "'2023-04-31'", "'2023-13-01'", "'2023-00-10'", "'23-01-01'", "'2023-01-32'"}},
    {"{'type':'string','format':'date-time'}",
     {"'2024-01-31T23:59:59Z'", "'2024-01-31T00:00:00.123+05:30'"},
     {"'2024-01-31T24:00:00Z'", "'2024-01-31 10:00:00Z'", "'2024-01-31T10:00:00'", "'2024-02-30T10:00:00Z'"}},
    {"{'type':'string','format':'time'}", {"'10:20:30Z'"}, {"'10:20'", "'10:60:00Z'"}},
    {"{'type':'string','format':'duration'}",
     {"'P1DT2H'", "'P3W'", "'PT5M'", "'P1Y2M3D'"},
     {"'P'", "'P1DT'", "'1D'", "'P1S'"}},
    {"{'type':'string','format':'uuid'}",
     {"'123e4567-e89b-12d3-a456-426614174000'"},
     {"'123e4567e89b12d3a456426614174000'"}},
    {"{'type':'string','format':'ipv4'}", {"'0.0.0.0'", "'192.168.1.255'"}, {"'256.1.1.1'", "'1.2.3'", "'01.2.3.4'"}},
    {"{'type':'string','format':'ipv6'}",
     {"'::'", "'2001:db8::1'", "'1:2:3:4:5:6:7:8'", "'::1'", "'1::'"},
     {"':'", "'1:2'", "'1::2::3'", "'1:2:3:4:5:6:7:8:9'"}},
    {"{'type':'string','format':'hostname'}", {"'a'", "'example.com'", "'a-b.c'"}, {"'-a'", "'a-'", "'a..b'", "''"}},
    {"{'type':'string','format':'email'}", {"'a.b@example.com'"}, {"'a@'", "'@b'", "'a b@c'", "'.a@b'"}},
    /* numbers */
    {"{'type':'integer'}", {"0", "-7", "1234567890123456"}, {"01", "1.0", "+1", "12345678901234567", "1e3", "-"}},
    {"{'type':'integer','minimum':0}", {"0", "10", "9999999999999999"}, {"-1", "-0"}},
    {"{'type':'integer','minimum':-12,'maximum':107}",
     {"-12", "-9", "0", "99", "107"},
     {"-13", "108", "110", "-20", "00"}},
    {"{'type':'integer','exclusiveMinimum':9,'exclusiveMaximum':11.5}", {"10", "11"}, {"9", "12", "1"}},
    {"{'type':'integer','maximum':-5}", {"-5", "-10"}, {"-4", "0", "5"}},
    {"{'type':'integer','minimum':3.2,'multipleOf':1}", {"4"}, {"3"}},
    {"{'type':'integer','minimum':9223372036854775807}",
     {"9223372036854775807"},
     {"9223372036854775806", "9223372036854775808"}},
    {"{'type':'integer','maximum':-9223372036854775808}", {"-9223372036854775808"}, {"-9223372036854775807", "0"}},
    {"{'type':'number'}", {"0", "-1.5", "1e10", "2.50E-3", "12.25"}, {".5", "1.", "1e", "1e999", "00.5"}},
    {"{'type':'number','minimum':0,'maximum':1}", {"0", "0.5", "1", "1.00"}, {"1.01", "-0.1", "2", "0.5e9"}},
    {"{'type':'number','exclusiveMinimum':0,'exclusiveMaximum':2}",
     {"0.01", "1", "1.99"},
     {"0", "0.0", "2", "2.0", "-1"}},
    {"{'type':'number','minimum':-2,'exclusiveMaximum':-1}",
     {"-2", "-2.0", "-1.5", "-1.01"},
     {"-1", "-1.0", "-2.1", "0", "1"}},
    {"{'type':'number','exclusiveMinimum':-1}", {"-0.99", "0", "5.5", "-0"}, {"-1", "-1.5", "-2"}},
    /* listed values */
    {"{'enum':['a',1,null,{'b':[1,'x']},0.1,'\\u00e9\\n']}",
     {"'a'", "1", "null", "{'b':[1,'x']}", "0.1", "'\xC3\xA9\\n'"},
     {"'b'", "0.10000000000000001", "{'b': [1,'x']}"}},
    {"{'type':'string','enum':['a',1]}", {"'a'"}, {"1"}},
    {"{'const':{}}", {"{}"}, {"[]", "{ }"}},
    {"{'type':'number','enum':[1,2.5,'x']}", {"1", "2.5"}, {"'x'", "2"}},
    /* arrays */
    {"{'type':'array'}", {"[]", "[1,'a']", "[ 1, 2 ]", "[\n  1\n]"}, {"[1 2]", "[,]", "[\n\n\n1]", "[1,]", "[  1]"}},
    {"{'type':'array','items':{'type':'null'},'minItems':2,'maxItems':3}",
     {"[null,null]", "[null, null, null]"},
     {"[null]", "[]", "[null,null,null,null]", "[1,1]"}},
    {"{'items':{'type':'null'},'maxItems':1}", {"[]", "[null]"}, {"[null,null]", "null"}},
    {"{'type':'array','maxItems':0}", {"[]"}, {"[1]"}},
    {"{'type':'array','prefixItems':[{'type':'null'},{'type':'boolean'}],'items':{'type':'integer'}}",
     {"[]", "[null]", "[null,true]", "[null,true,1,2]"},
     {"[true]", "[null,1]", "[null,true,null]"}},
    {"{'type':'array','prefixItems':[{'type':'null'},{'type':'boolean'}],'items':false,'minItems':1}",
     {"[null]", "[null,false]"},
     {"[]", "[null,false,1]"}},
    {"{'type':'array','prefixItems':[{'type':'null'}],'minItems':3,'maxItems':4,'items':{'type':'boolean'}}",
     {"[null,true,true]", "[null,true,true,false]"},
     {"[null,true]", "[null,true,true,true,true]"}},
    {"{'type':'array','prefixItems':[{'type':'null'},{'type':'null'}],'maxItems':1}",
     {"[]", "[null]"},
     {"[null,null]"}},
    /* objects */
    {"{'type':'object'}", {"{}", "{'a':1}", "{'a':1,'b':{}}", "{ 'a' : 1 }"}, {"{'a'}", "{'a':1,}", "{1:2}"}},
    {"{'type':'object','additionalProperties':false}", {"{}", "{ }"}, {"{'a':1}"}},
    {"{'type':'object','additionalProperties':{'type':'null'}}",
     {"{}", "{'x':null}", "{'x':null,'':null}"},
     {"{'x':1}"}},
    {"{'properties':{'a':{'type':'null'},'b':{'type':'null'}},'required':['a','b']}",
     {"{'a':null,'b':null}", "{\n 'a': null,\n 'b': null\n}"},
     {"{'b':null,'a':null}", "{'a':null}", "{}", "{'a':null,'b':null,'c':1}", "[]", "{'a':1,'b':null}"}},
    {"{'type':'object','properties':{'z':{'const':1},'a':{'const':2},'m':{'const':3}},'required':['a']}",
     {"{'a':2}", "{'z':1,'a':2}", "{'a':2,'m':3}", "{'z':1,'a':2,'m':3}"},
     {"{}", "{'z':1}", "{'m':3,'a':2}", "{'a':2,'z':1}", "{'a':2,}", "{,'a':2}"}},
    {"{'type':'object','properties':{'x':{'const':1},'y':{'const':2},'z':{'const':3}}}",
     {"{}", "{'x':1}", "{'y':2}", "{'z':3}", "{'x':1,'y':2}", "{'x':1,'z':3}", "{'y':2,'z':3}", "{'x':1,'y':2,'z':3}"},
     {"{'y':2,'x':1}", "{'x':1,'x':1}", "{'x':1,}", "{'w':1}"}},
    {"{'type':'object','properties':{'ab':{'const':1},'a':{'const':2}},'additionalProperties':{'type':'null'}}",
     {"{}", "{'ab':1}", "{'a':2,'b':null}", "{'abc':null}", "{'ab':1,'a':2,'':null,'ac':null}", "{'\\n':null}",
      "{'\xC3\xA9':null}"},
     {"{'ab':null}", "{'a':null}", "{'b':null,'a':2}", "{'\\u0061':null}", "{'c':1}", "{'ab':1,'ab':null}"}},
    {"{'type':'object','properties':{'q\\'\\\\\\n\\u0001':{'const':1},'\\t':{'const':2}},'required':['\\t'],'"
     "additionalProperties':true}",
     {"{'q\\'\\\\\\n\\u0001':1,'\\t':2}", "{'\\t':2,'\\n':0}", "{'\\t':2,'q':[]}"},
     {"{'\\t':2,'\\t':3}", "{'q':1}"}},
    {"{'type':'object','required':['k','k'],'additionalProperties':{'type':'null'}}",
     {"{'k':null}", "{'k':null,'l':null}"},
     {"{}", "{'l':null}", "{'k':1}", "{'k':null,'k':null}"}},
    {"{'type':'object','properties':{'a':{'const':1}},'required':['b']}",
     {"{'b':[]}", "{'a':1,'b':0}"},
     {"{'a':1}", "{'b':0,'c':0}"}},
    {"{'type':'object','minProperties':1,'maxProperties':2}",
     {"{'a':1}", "{'a':1,'b':2}"},
     {"{}", "{'a':1,'b':2,'c':3}"}},
    {"{'type':'object','properties':{'a':false,'b':true}}", {"{}", "{'b':1}"}, {"{'a':1}"}},
    /* combinations */
    {"{'anyOf':[{'type':'null'},{'type':'integer','minimum':5}]}", {"null", "5"}, {"4", "'x'"}},
    {"{'oneOf':[{'type':'null'},{'type':'string'},{'enum':[1,2]},{'const':3}]}", {"null", "'a'", "2", "3"}, {"4"}},
    {"{'oneOf':[{'type':'object','properties':{'t':{'const':'a'},'v':{'type':'null'}},'required':['t','v']},{'$ref':'#/"
     "$defs/b'}],'$defs':{'b':{'type':'object','properties':{'t':{'enum':['b','c']}},'required':['t']}}}",
     {"{'t':'a','v':null}", "{'t':'c'}"},
     {"{'t':'a'}", "{'t':'d'}"}},
    {"{'allOf':[{'$ref':'#/definitions/"
     "base'},{'properties':{'b':{'const':2}},'required':['b']}],'definitions':{'base':{'type':'object','properties':{'"
     "a':{'const':1}},'required':['a']}},'title':'t'}",
     {"{'a':1,'b':2}"},
     {"{'a':1}", "{'b':2}", "{'b':2,'a':1}"}},
    {"{'allOf':[{'type':'integer','minimum':2},{'allOf':[{'maximum':4},true]}]}", {"2", "4"}, {"1", "5"}},
    {"{'$ref':'#/$defs/a~1b~0c%25d','description':'d','$defs':{'a/b~c%d':{'type':'null'}}}", {"null"}, {"1"}},
    {"{'type':'object','properties':{'v':{'type':'integer'},'next':{'anyOf':[{'type':'null'},{'$ref':'#'}]}},'required'"
     ":['v','next']}",
     {"{'v':1,'next':null}", "{'v':1,'next':{'v':2,'next':null}}"},
     {"{'v':1}", "{'v':1,'next':{'v':2}}"}},
    {"{'$defs':{'tree':{'type':'array','items':{'$ref':'#/$defs/tree'}}},'$ref':'#/$defs/tree'}",
     {"[]", "[[],[[]]]"},
     {"[1]", "[["}},
    {"{'prefixItems':[{'$ref':'#/$defs/l/0'}],'items':false,'$defs':{'l':[{'type':'null'}]}}",
     {"[]", "[null]"},
     {"[1]"}},
};

static void test_samples(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const sample *s = &samples[i];
        hearth_constraint *c = constraint_for(s->schema);
        for (int t = 0; t < 8 && s->matches[t] != NULL; t++)
            if (judge(c, s->matches[t]) != CONSTRAINT_MATCHES) fail_msg("%s\nrefuses %s", s->schema, s->matches[t]);
        for (int t = 0; t < 10 && s->others[t] != NULL; t++)
            if (judge(c, s->others[t]) == CONSTRAINT_MATCHES) fail_msg("%s\naccepts %s", s->schema, s->others[t]);
        hearth_constraint_free(&c);
    }
}

/* Every pair of bounds in a range, against every number in a wider one. */
static void test_all_bounds(void **unused) {
    (void)unused;
    static const int bounds[] = {-1001, -1000, -999, -110, -100, -99, -10, -9,  -1,  0,
                                 1,     9,     10,   11,   99,   100, 109, 999, 1000};
    enum { BOUNDS = sizeof bounds / sizeof *bounds };
    for (int i = 0; i < BOUNDS; i++)
        for (int k = i; k < BOUNDS; k += 1 + (TEXT_SANITIZED ? 4 : 0)) {
            char schema[128], text[16];
            snprintf(schema, sizeof schema, "{'type':'integer','minimum':%d,'maximum':%d}", bounds[i], bounds[k]);
            hearth_constraint *c = constraint_for(schema);
            hearth_matcher *m;
            assert_int_equal(hearth_matcher_create(c, &m, NULL), HEARTH_OK);
            for (int n = -1100; n <= 1100; n += n > -120 && n < 120 ? 1 : 7) {
                size_t size = (size_t)snprintf(text, sizeof text, "%d", n);
                bool within = n >= bounds[i] && n <= bounds[k];
                if (within != (constraint_judge_with(m, text, size) == CONSTRAINT_MATCHES))
                    fail_msg("%s: %d", schema, n);
            }
            hearth_matcher_free(&m);
            hearth_constraint_free(&c);
        }
}

static const struct {
    const char *schema;
    hearth_status status;
    const char *says;
} refusals[] = {
    {"", HEARTH_BAD_ARGUMENT, "the schema is no JSON: line 1"},
    {"{", HEARTH_BAD_ARGUMENT, "no JSON"},
    {"{'type':'null','type':'null'}", HEARTH_BAD_ARGUMENT, "duplicate"},
    {"3", HEARTH_BAD_ARGUMENT, "#: a schema is an object, true or false"},
    {"false", HEARTH_BAD_ARGUMENT, "matches no text"},
    {"{'type':'text'}", HEARTH_BAD_ARGUMENT, "#: 'type' names"},
    {"{'type':[]}", HEARTH_BAD_ARGUMENT, "'type' names"},
    {"{'properties':{'a':{'items':{'not':{}}}}}", HEARTH_UNSUPPORTED,
     "#/properties/a/items: the keyword 'not' is not supported"},
    {"{'properties':{'a/b':{'if':true}}}", HEARTH_UNSUPPORTED, "#/properties/a~1b: the keyword 'if'"},
    {"{'patternProperties':{}}", HEARTH_UNSUPPORTED, "'patternProperties'"},
    {"{'anyOf':[{'type':'null'},{'dependentRequired':{}}]}", HEARTH_UNSUPPORTED,
     "#/anyOf/1: the keyword 'dependentRequired'"},
    {"{'anyOf':[],'title':'x'}", HEARTH_BAD_ARGUMENT, "'anyOf' is no array of schemas"},
    {"{'anyOf':[{}],'minLength':1}", HEARTH_UNSUPPORTED, "'minLength' beside 'anyOf'"},
    {"{'$ref':'#/$defs/x','type':'null','$defs':{'x':{}}}", HEARTH_UNSUPPORTED, "'type' beside '$ref'"},
    {"{'$ref':'#/$defs/x'}", HEARTH_BAD_ARGUMENT, "'$ref' to '#/$defs/x', which is not there"},
    {"{'$ref':'http://x/y'}", HEARTH_UNSUPPORTED, "only references into this document"},
    {"{'$ref':'#anchor'}", HEARTH_UNSUPPORTED, "only references into this document"},
    {"{'$ref':'#/a~2'}", HEARTH_BAD_ARGUMENT, "no JSON pointer"},
    {"{'$ref':'#/a%0'}", HEARTH_BAD_ARGUMENT, "no JSON pointer"},
    {"{'$ref':'#/a%00'}", HEARTH_BAD_ARGUMENT, "no JSON pointer"},
    {"{'$ref':'#'}", HEARTH_BAD_ARGUMENT, "left-recursive"},
    {"{'$ref':'#/$defs/a','$defs':{'a':{'anyOf':[{'$ref':'#/$defs/a'},{'type':'null'}]}}}", HEARTH_BAD_ARGUMENT,
     "#/$defs/a"},
    {"{'type':'object','properties':{'a':{'$ref':'#'}},'required':['a']}", HEARTH_BAD_ARGUMENT, "matches no text"},
    {"{'allOf':[{'$ref':'#'}]}", HEARTH_TOO_LONG, "leads to itself"},
    {"{'allOf':[{'$ref':'#/$defs/a'}],'$defs':{'a':{'$ref':'#/$defs/a'}}}", HEARTH_BAD_ARGUMENT, "leads to itself"},
    {"{'allOf':[{'minimum':1},{'minimum':2}]}", HEARTH_UNSUPPORTED, "two different 'minimum'"},
    {"{'allOf':[{'properties':{'a':true}},{'properties':{'a':false}}]}", HEARTH_UNSUPPORTED, "the property 'a'"},
    {"{'allOf':[{'properties':{'a':true},'additionalProperties':false},{'properties':{'b':true}}]}", HEARTH_UNSUPPORTED,
     "'additionalProperties' in an 'allOf'"},
    {"{'allOf':[{'anyOf':[{}]},{'type':'null'}]}", HEARTH_UNSUPPORTED, "beside 'anyOf'"},
    {"{'oneOf':[{'type':'integer'},{'type':'number'}]}", HEARTH_UNSUPPORTED,
     "alternatives 0 and 1 may have a value in common"},
    {"{'oneOf':[{'type':'null'},{}]}", HEARTH_UNSUPPORTED, "in common"},
    {"{'oneOf':[{'enum':[1]},{'const':1.0}]}", HEARTH_UNSUPPORTED, "in common"},
    {"{'oneOf':[{'type':'object','properties':{'t':{'const':'a'}}},{'type':'object','properties':{'t':{'const':'b'}}}]"
     "}",
     HEARTH_UNSUPPORTED, "in common"},
    {"{'enum':[]}", HEARTH_BAD_ARGUMENT, "leaves no value"},
    {"{'enum':[1],'type':'string'}", HEARTH_BAD_ARGUMENT, "leaves no value"},
    {"{'enum':['a'],'minLength':1}", HEARTH_UNSUPPORTED, "'minLength' beside 'enum'"},
    {"{'enum':'a'}", HEARTH_BAD_ARGUMENT, "'enum' is no array"},
    {"{'type':'string','minLength':-1}", HEARTH_BAD_ARGUMENT, "minLength is no whole number"},
    {"{'type':'string','maxLength':1.5}", HEARTH_BAD_ARGUMENT, "maxLength is no whole number"},
    {"{'type':'string','minLength':3,'maxLength':2}", HEARTH_BAD_ARGUMENT, "no string"},
    {"{'type':'string','maxLength':1000000000}", HEARTH_TOO_LONG, "#: the grammar is too large"},
    {"{'type':'string','maxLength':1e300}", HEARTH_BAD_ARGUMENT, "maxLength is no whole number from 0 to 4294967294"},
    {"{'type':'array','minItems':1000000000}", HEARTH_TOO_LONG, "too large"},
    {"{'type':'array','minItems':3,'prefixItems':[true],'items':false}", HEARTH_BAD_ARGUMENT, "no array"},
    {"{'type':'array','items':[{}]}", HEARTH_UNSUPPORTED, "'items' that is an array"},
    {"{'type':'array','uniqueItems':true}", HEARTH_UNSUPPORTED, "'uniqueItems'"},
    {"{'type':'array','contains':{}}", HEARTH_UNSUPPORTED, "'contains'"},
    {"{'type':'string','pattern':'^a','maxLength':3}", HEARTH_UNSUPPORTED, "only one of"},
    {"{'type':'string','format':'uri'}", HEARTH_UNSUPPORTED, "the format 'uri'"},
    {"{'type':'string','pattern':'(?=a)'}", HEARTH_UNSUPPORTED, "the pattern, at byte 1: groups that look"},
    {"{'type':'string','pattern':'(a)\\\\1'}", HEARTH_UNSUPPORTED, "references to groups"},
    {"{'type':'string','pattern':'\\\\bx'}", HEARTH_UNSUPPORTED, "an escape that is not supported"},
    {"{'type':'string','pattern':'\\\\p{L}'}", HEARTH_UNSUPPORTED, "an escape"},
    {"{'type':'string','pattern':'^a|b$'}", HEARTH_UNSUPPORTED, "an anchor beside |"},
    {"{'type':'string','pattern':'a^b'}", HEARTH_UNSUPPORTED, "an anchor that is not at an end"},
    {"{'type':'string','pattern':'(a'}", HEARTH_UNSUPPORTED, "a group has no end"},
    {"{'type':'string','pattern':'a)'}", HEARTH_UNSUPPORTED, "a ) without"},
    {"{'type':'string','pattern':'[a'}", HEARTH_UNSUPPORTED, "a class has no end"},
    {"{'type':'string','pattern':'[b-a]'}", HEARTH_UNSUPPORTED, "a range goes down"},
    {"{'type':'string','pattern':'a**'}", HEARTH_UNSUPPORTED, "nothing to repeat"},
    {"{'type':'string','pattern':'*a'}", HEARTH_UNSUPPORTED, "nothing to repeat"},
    {"{'type':'string','pattern':'a{2,1}'}", HEARTH_UNSUPPORTED, "wrong order"},
    {"{'type':'string','pattern':'(a*)*'}", HEARTH_BAD_ARGUMENT, "#: what is repeated without limit can be empty"},
    {"{'type':'string','pattern':'^[\\\\x00-\\\\x01]$'}", HEARTH_BAD_ARGUMENT, "matches no text"},
    {"{'type':'integer','minimum':1,'maximum':0}", HEARTH_BAD_ARGUMENT, "no integer is within"},
    {"{'type':'integer','exclusiveMinimum':1,'exclusiveMaximum':2}", HEARTH_BAD_ARGUMENT, "no integer"},
    {"{'type':'integer','minimum':1e300}", HEARTH_BAD_ARGUMENT, "no integer"},
    {"{'type':'integer','multipleOf':3}", HEARTH_UNSUPPORTED, "'multipleOf'"},
    {"{'type':'number','minimum':0.5}", HEARTH_UNSUPPORTED, "bounds of numbers that are not whole"},
    {"{'type':'number','maximum':'3'}", HEARTH_BAD_ARGUMENT, "'maximum' is no number"},
    {"{'type':'number','exclusiveMinimum':true}", HEARTH_BAD_ARGUMENT, "'exclusiveMinimum' is no number"},
    {"{'type':'number','exclusiveMinimum':1,'maximum':1}", HEARTH_BAD_ARGUMENT, "no "},
    {"{'type':'object','properties':[]}", HEARTH_BAD_ARGUMENT, "'properties' is no object"},
    {"{'type':'object','properties':{'a':7}}", HEARTH_BAD_ARGUMENT, "#/properties/a: a schema is"},
    {"{'type':'object','required':'a'}", HEARTH_BAD_ARGUMENT, "'required' is no array"},
    {"{'type':'object','required':[1]}", HEARTH_BAD_ARGUMENT, "no string"},
    {"{'type':'object','required':['a'],'additionalProperties':false}", HEARTH_BAD_ARGUMENT,
     "'a' is required and not allowed"},
    {"{'type':'object','additionalProperties':1}", HEARTH_BAD_ARGUMENT, "'additionalProperties' is no schema"},
    {"{'type':'object','properties':{'a':{}},'maxProperties':1}", HEARTH_UNSUPPORTED, "'maxProperties'"},
    {"{'type':'object','minProperties':2}", HEARTH_UNSUPPORTED, "'minProperties' above 1"},
    {"{'type':'object','propertyNames':{}}", HEARTH_UNSUPPORTED, "'propertyNames'"},
    {"{'properties':{'a':{'$id':'x'}}}", HEARTH_UNSUPPORTED, "'$id'"},
    {"{'const':'a\\u0000b'}", HEARTH_BAD_ARGUMENT, "no JSON"},
};

static void test_refusals(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        refuse(refusals[i].schema, refusals[i].status, refusals[i].says);
}

/* `head` so often, `middle`, then `tail` as often. */
static char *nested(const char *head, size_t times, const char *middle, const char *tail) {
    size_t size = (strlen(head) + strlen(tail)) * times + strlen(middle) + 1, at = 0;
    char *text = malloc(size);
    assert_non_null(text);
    for (size_t i = 0; i < times; i++) at += (size_t)snprintf(text + at, size - at, "%s", head);
    at += (size_t)snprintf(text + at, size - at, "%s", middle);
    for (size_t i = 0; i < times; i++) at += (size_t)snprintf(text + at, size - at, "%s", tail);
    return text;
}

static void test_hostile_sizes(void **unused) {
    (void)unused;
    char *text = nested("{'items':", 60000, "{}", "}");
    refuse(text, HEARTH_BAD_ARGUMENT, "maximum parsing depth");
    free(text);
    text = nested("{'items':", 1000, "{}", "}");
    refuse(text, HEARTH_TOO_LONG, "nested too deep");
    free(text);
    text = nested("{'items':", 200, "{'type':'null'}", "}");
    hearth_constraint *c = constraint_for(text);
    free(text);
    text = nested("[", 200, "null", "]");
    assert_int_equal(judge(c, text), CONSTRAINT_MATCHES);
    free(text);
    hearth_constraint_free(&c);
    text = nested("(", 60000, "a", ")");
    char *schema = malloc(strlen(text) + 64);
    assert_non_null(schema);
    snprintf(schema, strlen(text) + 64, "{'type':'string','pattern':'%s'}", text);
    refuse(schema, HEARTH_UNSUPPORTED, "nested too deep");
    free(schema);
    free(text);
}

/* Many properties, required and not, and all of an object's names to be told from others. */
static void test_many_properties(void **unused) {
    (void)unused;
    enum { COUNT = 400 };
    char *schema = malloc(COUNT * 64), *text = malloc(COUNT * 64);
    for (int closed = 0; closed < 2; closed++) {
        size_t at = (size_t)snprintf(schema, 64, "{'type':'object','properties':{"), end = 0;
        for (int i = 0; i < COUNT; i++)
            at += (size_t)snprintf(schema + at, 64, "%s'name%d':{'type':'null'}", i ? "," : "", i);
        snprintf(schema + at, 64, "},'additionalProperties':%s}", closed ? "false" : "{'const':1}");
        hearth_constraint *c = constraint_for(schema);
        for (int i = 3; i < COUNT; i += 2)
            end += (size_t)snprintf(text + end, 64, "%s'name%d':null", i > 3 ? "," : "{", i);
        snprintf(text + end, 64, "}");
        assert_int_equal(judge(c, text), CONSTRAINT_MATCHES);
        snprintf(text + end, 64, ",'name3999':1}");
        assert_int_equal(judge(c, text), closed ? CONSTRAINT_REFUSES : CONSTRAINT_MATCHES);
        snprintf(text + end, 64, ",'name39':1}");
        assert_int_equal(judge(c, text), CONSTRAINT_REFUSES);
        hearth_constraint_free(&c);
    }
    free(text);
    free(schema);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),       cmocka_unit_test(test_all_bounds),      cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_hostile_sizes), cmocka_unit_test(test_many_properties),
    };
    return cmocka_run_group_tests_name("constraint_schema", tests, open_vocab, close_vocab);
}
