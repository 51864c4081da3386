/* Integers and numbers within bounds, as the texts that spell them. */
#include <math.h>

#include "text/schema_internal.h"

#define DIGITS     16                         /* of a number without bounds: what a double can tell apart */
#define MOST       UINT64_C(9999999999999999) /* that has so many */
#define MOST_BOUND 1e15 /* of bounds on numbers: exact as doubles, and so is what is next to them */

/* ---- Whole numbers ---- */

static int digits_of(uint64_t n) {
    int digits = 1;
    for (; n >= 10; n /= 10) digits++;
    return digits;
}

static uint64_t power_of_ten(int exponent) {
    uint64_t power = 1;
    while (exponent-- > 0) power *= 10;
    return power;
}

static void put_digits(schema_compiler *s, uint64_t n) {
    char text[24];
    int size = digits_of(n);
    for (int i = size; i-- > 0; n /= 10) text[i] = (char)('0' + n % 10);
    hth_grammar_literal(s->g, text, (size_t)size, s->at);
}

static void put_digit_range(schema_compiler *s, uint32_t first, uint32_t last) {
    hth_grammar_set(s->g, &(hth_character_range){'0' + first, '0' + last}, 1, false, s->at);
}

/* The numbers from x on that have its digits but for the last k + 1: one of those from its digit there up, and any k
 * digits behind it, as long as they are at most `high`. The answer is the number behind them. */
static uint64_t put_run(schema_compiler *s, uint64_t x, uint64_t high) {
    int k = 0, digits = digits_of(x);
    uint64_t unit = 1;
    while (k + 1 < digits && x % (unit * 10) == 0 && x + unit * 10 - 1 <= high) unit *= 10, k++;
    uint32_t first = (uint32_t)(x / unit % 10), last = first;
    while (last < 9 && x + (last - first + 2) * unit - 1 <= high) last++;
    size_t values = 1;
    if (k + 1 < digits) {
        put_digits(s, x / unit / 10);
        values++;
    }
    put_digit_range(s, first, last);
    if (k > 0) {
        put_digit_range(s, 0, 9);
        hth_schema_repeat(s, (uint32_t)k, (uint32_t)k);
        values++;
    }
    hth_schema_sequence(s, values);
    return x + (last - first + 1) * unit;
}

/* The numbers from low to high (low <= high < 10^19), without leading zeros. */
static void put_range(schema_compiler *s, uint64_t low, uint64_t high) {
    size_t choices = 0;
    for (uint64_t x = low; x <= high; choices++) {
        uint64_t longest = digits_of(x) == 19 ? high : power_of_ten(digits_of(x)) - 1;
        x = put_run(s, x, high < longest ? high : longest);
    }
    hth_schema_choice(s, choices);
}

/* ---- Bounds ---- */

typedef struct bound {
    bool there, exclusive;
    double value;
    int64_t whole; /* where the value is one */
    bool is_whole;
} bound;

/* The tighter of two bounds, by keyword; `sign` is 1 for lower bounds and -1 for upper ones. */
static bound bound_of(schema_compiler *s, const json_t *schema, const char *plain, const char *exclusive, int sign) {
    const char *const keywords[2] = {plain, exclusive};
    bound found = {.there = false};
    for (int i = 0; i < 2; i++) {
        const json_t *value = json_object_get(schema, keywords[i]);
        if (value == NULL) continue;
        if (!json_is_number(value)) {
            SCHEMA_FAIL(s, BAD_ARGUMENT, "\"%s\" is no number", keywords[i]);
            continue;
        }
        bound b = {.there = true, .exclusive = i == 1, .value = json_number_value(value)};
        b.is_whole = json_is_integer(value) || (fabs(b.value) <= 0x1p53 && b.value == rint(b.value));
        if (b.is_whole) b.whole = json_is_integer(value) ? json_integer_value(value) : (int64_t)b.value;
        bool both_whole = b.is_whole && found.is_whole;
        bool equal = both_whole ? b.whole == found.whole : b.value == found.value;
        bool above = both_whole ? b.whole > found.whole : b.value > found.value;
        if (!found.there || equal || above == (sign > 0))
            found = b; /* of equal ones the exclusive one, which is second */
    }
    return found;
}

/* The least whole number (or with sign -1 the largest) that a bound allows. False when there is none in 64 bits. */
static bool whole_bound(bound b, int sign, int64_t *out) {
    if (b.is_whole) {
        *out = b.whole;
        return !b.exclusive || !__builtin_add_overflow(b.whole, sign, out);
    }
    double rounded = sign > 0 ? ceil(b.value) : floor(b.value);
    if (sign > 0 ? rounded < -0x1p62 : rounded > 0x1p62) {
        *out = sign > 0 ? -(INT64_C(1) << 62) : INT64_C(1) << 62;
        return true;
    }
    if (fabs(rounded) > 0x1p62) return false;
    *out = (int64_t)rounded;
    return true;
}

static void refuse_multiples(schema_compiler *s, const json_t *schema, bool integer) {
    const json_t *multiple = json_object_get(schema, "multipleOf");
    if (multiple == NULL || (integer && json_is_integer(multiple) && json_integer_value(multiple) == 1)) return;
    SCHEMA_FAIL(s, UNSUPPORTED, "\"multipleOf\" is not supported");
}

void hth_schema_put_integer(schema_compiler *s, const json_t *schema) {
    bound low = bound_of(s, schema, "minimum", "exclusiveMinimum", 1);
    bound high = bound_of(s, schema, "maximum", "exclusiveMaximum", -1);
    int64_t from = -(int64_t)MOST, to = (int64_t)MOST;
    size_t choices = 0;
    refuse_multiples(s, schema, true);
    if (!low.there && !high.there) {
        hth_schema_call(s, s->integer);
        return;
    }
    bool some = (!low.there || whole_bound(low, 1, &from)) && (!high.there || whole_bound(high, -1, &to));
    if (!high.there && from > to) to = INT64_MAX;
    if (!low.there && from > to) from = INT64_MIN;
    if (!some || from > to) {
        SCHEMA_FAIL(s, BAD_ARGUMENT, "no integer is within the bounds");
        return;
    }
    if (to >= 0) put_range(s, from > 0 ? (uint64_t)from : 0, (uint64_t)to), choices++;
    if (from < 0) {
        hth_schema_text(s, "-");
        put_range(s, to < 0 ? -(uint64_t)to : 1, -(uint64_t)from);
        hth_schema_sequence(s, 2);
        choices++;
    }
    hth_schema_choice(s, choices);
}

/* ---- Numbers ---- */

/* A point and digits behind whole digits that are on the stack: any, such that they are not zero, or only zeros. */
typedef enum fraction { ANY, SOME, ZERO } fraction;

static void put_fraction(schema_compiler *s, fraction kind) {
    hth_schema_text(s, ".");
    if (kind == ZERO) hth_schema_text(s, "0");
    else put_digit_range(s, 0, 9);
    hth_schema_repeat(s, kind == SOME ? 0 : 1, kind == SOME ? DIGITS - 1 : DIGITS);
    if (kind == SOME) put_digit_range(s, 1, 9);
    hth_schema_sequence(s, kind == SOME ? 3 : 2);
    if (kind != SOME) hth_schema_repeat(s, 0, 1);
    hth_schema_sequence(s, 2);
}

/* How far from zero: from `low` to `high`, whole numbers, which count or not. */
typedef struct magnitudes {
    uint64_t low, high;
    bool without_low, without_high;
} magnitudes;

/* How many values (0 or 1) it puts. */
static size_t put_magnitudes(schema_compiler *s, magnitudes m) {
    size_t choices = 0;
    uint64_t low = m.low;
    if (m.low > m.high || (m.low == m.high && (m.without_low || m.without_high))) return 0;
    if (m.without_low) {
        put_digits(s, low++);
        put_fraction(s, SOME);
        choices++;
    }
    if (low < m.high) {
        put_range(s, low, m.high - 1);
        put_fraction(s, ANY);
        choices++;
    }
    if (!m.without_high) {
        put_digits(s, m.high);
        put_fraction(s, ZERO);
        choices++;
    }
    hth_schema_choice(s, choices);
    return 1;
}

void hth_schema_put_number(schema_compiler *s, const json_t *schema) {
    bound low = bound_of(s, schema, "minimum", "exclusiveMinimum", 1);
    bound high = bound_of(s, schema, "maximum", "exclusiveMaximum", -1);
    size_t choices = 0;
    refuse_multiples(s, schema, false);
    if (!low.there && !high.there) {
        hth_schema_call(s, s->number);
        return;
    }
    if ((low.there && (!low.is_whole || fabs(low.value) > MOST_BOUND)) ||
        (high.there && (!high.is_whole || fabs(high.value) > MOST_BOUND))) {
        SCHEMA_FAIL(s, UNSUPPORTED, "bounds of numbers that are not whole, or beyond 10^15, are not supported");
        return;
    }
    if (!high.there || high.whole >= 0) {
        magnitudes m = {.high = high.there ? (uint64_t)high.whole : MOST, .without_high = high.there && high.exclusive};
        if (low.there && low.whole >= 0) m.low = (uint64_t)low.whole, m.without_low = low.exclusive;
        choices += put_magnitudes(s, m);
    }
    if (!low.there || low.whole < 0) {
        magnitudes m = {.high = low.there ? -(uint64_t)low.whole : MOST, .without_high = low.there && low.exclusive};
        if (high.there && high.whole <= 0) m.low = -(uint64_t)high.whole, m.without_low = high.exclusive;
        hth_schema_text(s, "-");
        if (put_magnitudes(s, m)) hth_schema_sequence(s, 2);
        else hth_schema_nothing(s), hth_schema_sequence(s, 2);
        choices++;
    }
    if (choices == 0) SCHEMA_FAIL(s, BAD_ARGUMENT, "no number is within the bounds");
    else hth_schema_choice(s, choices);
}
