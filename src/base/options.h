/* The options table's rows and typed access to them inside the library. The public form is include/hearth/options.h. */
#ifndef HTH_BASE_OPTIONS_H
#define HTH_BASE_OPTIONS_H

#include <stdbool.h>

#include "hearth/options.h"

/* id, name, other name, type, scope, default, min, max, choices, unit, help */
/* clang-format off */
#define HTH_OPTION_LIST(X)                                                                                             \
    X(CTX, "ctx", "ctx-size", INT, ENGINE, "0", 0, 1 << 30, "", "tokens",                                              \
      "positions a session can hold; 0: chosen")                                                                       \
    X(ROWS, "rows", "ubatch-size", INT, ENGINE, "512", 1, 65536, "", "rows",                                           \
      "most rows of one pass")                                                                                         \
    X(OUTPUTS, "outputs", "", INT, ENGINE, "16", 1, 65536, "", "rows",                                                 \
      "most rows of one call whose logits are kept")                                                                   \
    X(SESSIONS, "sessions", "parallel", INT, ENGINE, "1", 1, 4096, "", "sessions",                                     \
      "sessions that may be open at once")                                                                             \
    X(MARK_SLOTS, "mark-slots", "", INT, ENGINE, "8", 0, 65536, "", "marks",                                           \
      "positions to come back to that are kept at a time")                                                             \
    X(KV, "kv", "", CHOICE, ENGINE, "f16", 0, 0, "f16|f32", "",                                                        \
      "type of the KV cache")                                                                                          \
    X(MEMORY, "memory", "", INT, ENGINE, "0", 0, 0x1p60, "", "bytes",                                                  \
      "budget of the plan in bytes, or with k, m, g, t; 0: what the system has free")                                  \
    X(THREADS, "threads", "", INT, ENGINE, "0", 0, 1024, "", "threads",                                                \
      "threads that compute; 0: the physical cores allowed")                                                           \
    X(PIN, "pin", "", BOOL, ENGINE, "off", 0, 0, "", "",                                                               \
      "pin each computing thread to a core")                                                                           \
    X(CPU_MASK, "cpu-mask", "", CHOICE, ENGINE, "auto", 0, 0, "auto|ref|avx2|avxvnni|avx512", "",                      \
      "instruction set of the kernels; auto: the best this machine has")                                               \
    X(LOAD, "load", "", CHOICE, ENGINE, "map", 0, 0, "map|read", "",                                                   \
      "weights are used where the file is mapped, or read into memory of their own")                                   \
    X(EARLY, "early", "", BOOL, ENGINE, "off", 0, 0, "", "",                                                           \
      "open returns while weights arrive; a call waits for those it is about to use")                                  \
    X(KEEP_WARM, "keep-warm", "", INT, ENGINE, "0", 0, 86400, "", "seconds",                                           \
      "bring back mapped weights every N seconds; 0: when a call begins")                                              \
    X(LOCK, "lock", "mlock", BOOL, ENGINE, "off", 0, 0, "", "",                                                        \
      "lock the weights in memory")                                                                                    \
    X(SIGBUS, "sigbus", "", BOOL, ENGINE, "off", 0, 0, "", "",                                                         \
      "survive a model file that shrinks while it is mapped")                                                          \
    X(PRE, "pre", "", TEXT, TEXT, "", 0, 0, "", "",                                                                    \
      "pre-tokenizer to use instead of the file's")                                                                    \
    X(NFC, "nfc", "", CHOICE, TEXT, "auto", 0, 0, "auto|on|off", "",                                                   \
      "normalise text to NFC; auto: as the model's own tokenizer does")                                                \
    X(TEMP, "temp", "temperature", FLOAT, SAMPLING, "0.8", 0, 1000, "", "",                                            \
      "temperature; 0: greedy, the likeliest token always")                                                            \
    X(TOP_K, "top-k", "", INT, SAMPLING, "40", 0, 1 << 30, "", "tokens",                                               \
      "keep the k likeliest tokens; 0: all")                                                                           \
    X(TOP_P, "top-p", "", FLOAT, SAMPLING, "0.95", 0, 1, "", "",                                                       \
      "keep the likeliest tokens up to this probability; 1: all")                                                      \
    X(MIN_P, "min-p", "", FLOAT, SAMPLING, "0.05", 0, 1, "", "",                                                       \
      "keep tokens at least this likely relative to the likeliest; 0: all")                                            \
    X(TYPICAL, "typical", "typical-p", FLOAT, SAMPLING, "1", 0, 1, "", "",                                             \
      "keep locally typical tokens up to this probability; 1: all")                                                    \
    X(REPEAT_PENALTY, "repeat-penalty", "repetition-penalty", FLOAT, SAMPLING, "1", 0.01, 100, "", "",                 \
      "divide positive (multiply negative) logits of tokens seen by this; 1: off")                                     \
    X(PRESENCE_PENALTY, "presence-penalty", "", FLOAT, SAMPLING, "0", -100, 100, "", "",                               \
      "subtract this from the logits of tokens seen")                                                                  \
    X(FREQUENCY_PENALTY, "frequency-penalty", "", FLOAT, SAMPLING, "0", -100, 100, "", "",                             \
      "subtract this from a logit for each time its token was seen")                                                   \
    X(PENALTY_WINDOW, "penalty-window", "repeat-last-n", INT, SAMPLING, "64", -1, 1 << 30, "", "tokens",               \
      "latest tokens of the request that penalties look at; -1: all, 0: none")                                         \
    X(SEED, "seed", "", INT, SAMPLING, "-1", -1, 0x1p63, "", "",                                                       \
      "seed of the sampler; -1: a new one each time")                                                                  \
    X(CACHE, "cache", "", TEXT, PROGRAM, "", 0, 0, "", "",                                                             \
      "folder of the fetched models; $XDG_CACHE_HOME/hearth or ~/.cache/hearth")
/* clang-format on */

typedef enum hth_option {
#define X(id, ...) HTH_OPTION_##id,
    HTH_OPTION_LIST(X)
#undef X
        HTH_OPTION_COUNT
} hth_option;

/* A copy, to be freed with hearth_options_free; of NULL, the defaults. */
hearth_status hth_options_copy(const hearth_options *options, hearth_options **out, hearth_error *err);

/* The value in force, by id; the id's type must fit (asserted). NULL options give the defaults. */
int64_t hth_option_int(const hearth_options *options, hth_option id);
double hth_option_float(const hearth_options *options, hth_option id);
bool hth_option_bool(const hearth_options *options, hth_option id);
const char *hth_option_text(const hearth_options *options, hth_option id); /* TEXT and CHOICE */
bool hth_option_is_set(const hearth_options *options, hth_option id);

/* The row of an option's name or other name (size bytes), or NULL. */
const hearth_option_info *hth_option_find(const char *name, size_t size);

/* How far a mistyped name is from a known one: insertions, deletions, changes and swaps of neighbours. Names longer
 * than 63 bytes are far from everything. */
size_t hth_name_distance(const char *a, const char *b);
/* True when a distance is small enough for a name to be worth suggesting. */
bool hth_name_is_near(const char *name, size_t distance);

/* Whether the environment lets a terminal be written to in colours: NO_COLOR is empty or not there, and TERM names a
 * terminal that has them. */
bool hth_environment_has_colours(void);

/* Numbers as the options are written, whatever the process's locale: false when text is not one, or does not fit. A
 * whole number of bytes may end in k, m, g or t (powers of 1024), with or without "b" or "ib". */
bool hth_parse_int(const char *text, bool bytes, int64_t *out);
bool hth_parse_float(const char *text, double *out);

#endif
