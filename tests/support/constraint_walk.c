#include "support/constraint_walk.h"

#include <stdio.h>
#include <stdlib.h>

#define NEVER(condition)                                                                                               \
    do {                                                                                                               \
        if (condition) {                                                                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static uint32_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static int has(const uint64_t *mask, hearth_token id) {
    return mask[id / 64] >> id % 64 & 1;
}

/* A token of the mask, from a random place on; -1 when there is none. */
static hearth_token draw(const uint64_t *mask, int32_t vocab, uint64_t *state) {
    hearth_token from = (hearth_token)(next_random(state) % (uint32_t)vocab);
    for (int32_t i = 0; i < vocab; i++)
        if (has(mask, (from + i) % vocab)) return (from + i) % vocab;
    return -1;
}

static void try_tokens(const hearth_matcher *m, hearth_matcher *spare, const uint64_t *mask, int tries,
                       uint64_t *state) {
    int32_t vocab = hearth_matcher_vocab(m);
    for (int i = 0; i < tries && i < vocab; i++) {
        hearth_token id = tries >= vocab ? i % vocab : (hearth_token)(next_random(state) % (uint32_t)vocab);
        NEVER(hearth_matcher_copy(spare, m, NULL) != HEARTH_OK);
        hearth_status status = hearth_matcher_accept(spare, id, NULL);
        NEVER(status != HEARTH_TOO_LONG && has(mask, id) != (status == HEARTH_OK));
    }
}

uint64_t constraint_walk(const hearth_constraint *constraint, const hearth_tokenizer *tokenizer, uint64_t seed,
                         int steps, int tries) {
    hearth_matcher *m, *spare;
    uint64_t state = seed, drawn = 0;
    NEVER(hearth_matcher_create(constraint, &m, NULL) != HEARTH_OK);
    NEVER(hearth_matcher_create(constraint, &spare, NULL) != HEARTH_OK);
    for (int i = 0; i < steps; i++) {
        const uint64_t *mask;
        hearth_match match;
        hearth_error err = {HEARTH_OK, ""};
        if (hearth_matcher_mask(m, &mask, &match, &err) != HEARTH_OK) {
            NEVER(err.status != HEARTH_TOO_LONG);
            break;
        }
        try_tokens(m, spare, mask, tries, &state);
        hearth_token token = draw(mask, hearth_matcher_vocab(m), &state);
        int ends = token >= 0 && hearth_tokenizer_ends_generation(tokenizer, token);
        NEVER(match == HEARTH_MATCH_STUCK && (token >= 0 || hearth_matcher_is_complete(m)));
        NEVER(match == HEARTH_MATCH_COMPLETE && !hearth_matcher_is_complete(m));
        NEVER(match != HEARTH_MATCH_OPEN && token >= 0 && !ends);
        drawn = drawn * 31 + (uint64_t)(uint32_t)token;
        if (match != HEARTH_MATCH_OPEN || ends) {
            hearth_matcher_reset(m);
            continue;
        }
        hearth_status status = hearth_matcher_accept(m, token, &err);
        NEVER(status != HEARTH_OK && status != HEARTH_TOO_LONG);
        if (status != HEARTH_OK) hearth_matcher_reset(m);
    }
    hearth_matcher_free(&m);
    hearth_matcher_free(&spare);
    return drawn;
}
