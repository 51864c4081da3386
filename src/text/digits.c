#include "text/digits.h"

#include <string.h>

#include "base/utf8.h"
#include "text/unicode.h"

#define BIT(category) (UINT32_C(1) << (category))
#define ANY_NUMBER    (BIT(HTH_ND) | BIT(HTH_NL) | BIT(HTH_NO))
#define WORD                                                                                                           \
    (BIT(HTH_LU) | BIT(HTH_LL) | BIT(HTH_LT) | BIT(HTH_LM) | BIT(HTH_LO) | BIT(HTH_MN) | BIT(HTH_MC) | BIT(HTH_ME) |   \
     BIT(HTH_ND) | BIT(HTH_NL) | BIT(HTH_PC))

struct hth_digit_rule {
    const char *regex;
    uint32_t digits;   /* the categories that count as digits */
    bool at_word_end;  /* a run in front of a word character is left alone */
    bool only_between; /* cuts in front of whole groups only: what else there is sticks to what comes before it */
};

static const hth_digit_rule rules[] = {
    {"\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))", ANY_NUMBER, false, false},
    {"\\d{1,3}(?=(?:\\d{3})*\\b)", BIT(HTH_ND), true, false},
    {"(?=(\\d{3})+(?!\\d))", BIT(HTH_ND), false, true},
};

const hth_digit_rule *hth_digit_rule_find(const char *regex) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].regex, regex) == 0) return &rules[i];
    return NULL;
}

void hth_digits_start(hth_digit_search *search, const hth_digit_rule *rule, const char *text, size_t size) {
    *search = (hth_digit_search){.rule = rule, .text = text, .size = size};
}

static bool is_digit_at(hth_digit_search *search, size_t at, size_t *length) {
    uint32_t c;
    int n = hth_utf8_decode(search->text + at, search->size - at, &c);
    *length = n == 0 ? 1 : (size_t)n;
    search->work++;
    return n != 0 && (search->rule->digits & BIT(hth_category_of(c))) != 0;
}

/* Whether \b is no boundary between a digit and the character at `at`. The engine whose notion of a word counts here
 * takes circled letters for letters, and of superscripts and fractions those of Latin-1 for digits. */
static bool is_word_at(const hth_digit_search *search, size_t at) {
    uint32_t c;
    if (hth_utf8_decode(search->text + at, search->size - at, &c) == 0) return false;
    return (WORD & BIT(hth_category_of(c))) != 0 || c == 0xB2 || c == 0xB3 || c == 0xB9 || (c >= 0xBC && c <= 0xBE) ||
           (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
           (c >= 0x1F170 && c <= 0x1F189);
}

/* Count the run that begins at `at`. */
static void count_run(hth_digit_search *search, size_t at) {
    size_t length;
    search->run_digits = 0;
    while (at < search->size && is_digit_at(search, at, &length)) {
        search->run_digits++;
        at += length;
    }
    search->run_end = at;
    if (search->rule->at_word_end && at < search->size && is_word_at(search, at)) search->run_digits = 0;
}

/* Go over the digits of the next group: three, or first what three leaves over. */
static size_t behind_group(hth_digit_search *search, size_t at) {
    size_t length, group = search->run_digits % 3 == 0 ? 3 : search->run_digits % 3;
    search->run_digits -= group;
    for (; group > 0; group--) {
        is_digit_at(search, at, &length);
        at += length;
    }
    return at;
}

/* Go to the next digit at or after `at` that belongs to a run to be grouped; the text's end when there is none. */
static size_t next_digit(hth_digit_search *search, size_t at) {
    size_t length;
    for (;;) {
        if (at < search->run_end && search->run_digits > 0) return at;
        if (at < search->run_end) at = search->run_end; /* the rest of a run that is left alone */
        while (at < search->size && !is_digit_at(search, at, &length)) at += length;
        if (at == search->size) return at;
        count_run(search, at);
    }
}

bool hth_digits_next(hth_digit_search *search, size_t from, size_t *begin, size_t *end) {
    size_t at = next_digit(search, from);
    if (!search->rule->only_between) {
        *begin = at;
        if (at < search->size) *end = behind_group(search, at);
        return at < search->size;
    }
    /* A cut lies in front of each digit from which a multiple of three follows; the piece ends at the next one. */
    *begin = from;
    while (at < search->size) {
        if (at == from || search->run_digits % 3 != 0) at = behind_group(search, at);
        if (search->run_digits == 0) at = next_digit(search, at);
        if (at < search->size && search->run_digits % 3 == 0) {
            *end = at;
            return true;
        }
    }
    return false;
}
