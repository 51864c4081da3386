/* The options table's rows and typed access to them inside the library. The public form is include/hearth/options.h. */
#ifndef HTH_BASE_OPTIONS_H
#define HTH_BASE_OPTIONS_H

#include <stdbool.h>

#include "hearth/options.h"

/* id, name, type, scope, default, min, max, choices, unit, help */
#define HTH_OPTION_LIST(X)                                                                                             \
    X(CTX, "ctx", INT, ENGINE, "0", 0, 1 << 30, "", "tokens", "positions a session can hold; 0: chosen by the verb")   \
    X(ROWS, "rows", INT, ENGINE, "512", 1, 65536, "", "rows", "most rows of one pass")                                 \
    X(OUTPUTS, "outputs", INT, ENGINE, "16", 1, 65536, "", "rows", "most rows of one call whose logits are kept")      \
    X(SESSIONS, "sessions", INT, ENGINE, "1", 1, 4096, "", "sessions", "sessions that may be open at once")            \
    X(KV, "kv", CHOICE, ENGINE, "f16", 0, 0, "f16|f32", "", "type of the KV cache")                                    \
    X(MEMORY, "memory", INT, ENGINE, "0", 0, 1e18, "", "bytes", "budget of the plan; 0: what the system has free")     \
    X(THREADS, "threads", INT, ENGINE, "0", 0, 1024, "", "threads", "threads that compute; 0: physical cores allowed") \
    X(PIN, "pin", BOOL, ENGINE, "off", 0, 0, "", "", "pin each computing thread to a core")                            \
    X(CPU_MASK, "cpu-mask", CHOICE, ENGINE, "auto", 0, 0, "auto|ref|avx2|avxvnni|avx512", "",                          \
      "instruction set of the kernels; auto: the best this machine has")                                               \
    X(LOCK, "lock", BOOL, ENGINE, "off", 0, 0, "", "", "lock the weights in memory")                                   \
    X(SIGBUS, "sigbus", BOOL, ENGINE, "off", 0, 0, "", "", "survive a model file that shrinks while it is mapped")     \
    X(PRE, "pre", TEXT, TEXT, "", 0, 0, "", "", "pre-tokenizer to use instead of the file's")                          \
    X(NFC, "nfc", CHOICE, TEXT, "auto", 0, 0, "auto|on|off", "", "normalise text to NFC; auto: as the model's own")    \
    X(TEMP, "temp", FLOAT, SAMPLING, "0.8", 0, 1000, "", "", "temperature; 0: greedy")                                 \
    X(TOP_K, "top-k", INT, SAMPLING, "40", 0, 1 << 30, "", "tokens", "keep the k likeliest tokens; 0: all")            \
    X(TOP_P, "top-p", FLOAT, SAMPLING, "0.95", 0, 1, "", "", "keep the likeliest tokens up to this probability; 1: all") \
    X(MIN_P, "min-p", FLOAT, SAMPLING, "0.05", 0, 1, "", "", "keep tokens at least this likely relative to the likeliest; 0: all") \
    X(TYPICAL, "typical", FLOAT, SAMPLING, "1", 0, 1, "", "", "keep locally typical tokens up to this probability; 1: all") \
    X(REPEAT_PENALTY, "repeat-penalty", FLOAT, SAMPLING, "1", 0.01, 100, "", "", "divide (multiply) the positive (negative) logits of tokens seen; 1: off") \
    X(PRESENCE_PENALTY, "presence-penalty", FLOAT, SAMPLING, "0", -100, 100, "", "", "subtract from the logits of tokens seen") \
    X(FREQUENCY_PENALTY, "frequency-penalty", FLOAT, SAMPLING, "0", -100, 100, "", "", "subtract this times the count of each token seen") \
    X(PENALTY_WINDOW, "penalty-window", INT, SAMPLING, "64", -1, 1 << 30, "", "tokens", "latest tokens of the request that penalties look at; -1: all, 0: none") \
    X(SEED, "seed", INT, SAMPLING, "0", 0, 9.2e18, "", "", "seed of the sampler")

typedef enum hth_option {
#define X(id, ...) HTH_OPTION_##id,
    HTH_OPTION_LIST(X)
#undef X
    HTH_OPTION_COUNT
} hth_option;

/* The value in force, by id; the id's type must fit (asserted). NULL options give the defaults. */
int64_t hth_option_int(const hearth_options *options, hth_option id);
double hth_option_float(const hearth_options *options, hth_option id);
bool hth_option_bool(const hearth_options *options, hth_option id);
const char *hth_option_text(const hearth_options *options, hth_option id);
bool hth_option_is_set(const hearth_options *options, hth_option id);

#endif
