#include "cli/model.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/say.h"
#include "cli/verbs.h"
#include "hearth/file.h"

static const char default_name[] = "models/smollm2.gguf";

int hth_find_model(const hth_args *args, char path[HTH_MAX_PATH]) {
    const char *given = args->common.model;
    struct stat info;
    if (given) {
        if (snprintf(path, HTH_MAX_PATH, "%s", given) < HTH_MAX_PATH) return HTH_EXIT_OK;
        hth_complain("the path of the model is longer than %d bytes", HTH_MAX_PATH - 1);
        return HTH_EXIT_USAGE;
    }
    const char *cache = "";
    hearth_options_get_text(args->options, "cache", &cache, NULL, NULL);
    int size = snprintf(path, HTH_MAX_PATH, "%s/%s", cache[0] ? cache : ".", default_name);
    if (size < HTH_MAX_PATH && stat(path, &info) == 0) return HTH_EXIT_OK;
    hth_complain("no model is given, and the default one is not at %s; name one with -m FILE, or fetch it with "
                 "scripts/demo.sh",
                 path);
    return HTH_EXIT_FAILED;
}

int hth_open_tokenizer(const hth_args *args, const char *path, hearth_tokenizer **out) {
    hearth_error err = {HEARTH_OK, ""};
    const char *pre = "", *nfc = "";
    int64_t threads = 0;
    hearth_options_get_text(args->options, "pre", &pre, NULL, NULL);
    hearth_options_get_text(args->options, "nfc", &nfc, NULL, NULL);
    hearth_options_get_int(args->options, "threads", &threads, NULL, NULL);
    hearth_tokenizer_options options = {.pre = pre[0] ? pre : NULL,
                                        .nfc = strcmp(nfc, "auto") == 0 ? -1 : strcmp(nfc, "on") == 0,
                                        .threads = (int)threads};
    if (hearth_tokenizer_open(path, &options, out, &err) != HEARTH_OK) return hth_complain_error(&err);
    return HTH_EXIT_OK;
}

static int show_opening(void *context, const hearth_open_progress *p) {
    enum { PATIENCE_MS = 200 }; /* what is over sooner needs no line */
    char line[160];
    (void)context;
    if (p->elapsed_ms < PATIENCE_MS || !hth_progress_shown()) return 0;
    int size = snprintf(line, sizeof line, "opening the model: %s", p->stage);
    if (p->total > 0 && size > 0)
        size += snprintf(line + size, sizeof line - (size_t)size, ", %.0f of %.0f MiB", (double)p->bytes / 1048576.0,
                         (double)p->total / 1048576.0);
    if (p->left_ms >= 0 && size > 0)
        snprintf(line + size, sizeof line - (size_t)size, ", %.1f s left", p->left_ms / 1000.0);
    hth_progress(line, 0, 0);
    return 0;
}

int hth_open_engine_with(const hth_args *args, const char *path, hearth_tokenizer **tokenizer, hearth_engine **out) {
    hearth_error err = {HEARTH_OK, ""};
    const hearth_open_request request = {
        .path = path, .options = args->options, .tokenizer = tokenizer ? *tokenizer : NULL, .progress = show_opening};
    hearth_status status = hearth_engine_open_request(&request, out, &err);
    hth_progress_end();
    if (status != HEARTH_OK) return hth_complain_error(&err);
    if (tokenizer) *tokenizer = NULL;
    return HTH_EXIT_OK;
}

int hth_open_engine(const hth_args *args, const char *path, hearth_engine **out) {
    return hth_open_engine_with(args, path, NULL, out);
}

/* The entry "ARCHITECTURE.context_length", whatever the architecture. */
int64_t hth_model_context(const char *path) {
    static const char suffix[] = ".context_length";
    hearth_file *file;
    int64_t context = 0;
    if (hearth_file_open(path, &file, NULL) != HEARTH_OK) return 0; /* opening the model will say why */
    for (uint64_t i = 0; i < hearth_file_entry_count(file); i++) {
        hearth_file_entry entry;
        if (hearth_file_entry_at(file, i, &entry, NULL) != HEARTH_OK || entry.key_size < sizeof suffix) continue;
        const char *tail = entry.key + entry.key_size - (sizeof suffix - 1);
        if (memcmp(tail, suffix, sizeof suffix - 1) == 0) {
            if (hearth_file_int(file, i, 0, &context, NULL) != HEARTH_OK) context = 0;
            break;
        }
    }
    hearth_file_close(&file);
    return context > 0 ? context : 0;
}

int hth_check_fits(const hth_args *args, int64_t model, int64_t count) {
    int64_t asked = hth_int_option(args, "ctx", NULL);
    bool beyond_model = model > 0 && count > model; /* then no --ctx would help */
    if (!beyond_model && (asked == 0 || count <= asked)) return HTH_EXIT_OK;
    hth_complain("the prompt has %lld token%s, but the %s holds %lld", (long long)count, hth_plural(count),
                 beyond_model ? "model's context" : "context asked for", (long long)(beyond_model ? model : asked));
    return HTH_EXIT_FAILED;
}

int hth_set_int(hth_args *args, const char *option, int64_t value) {
    char text[32];
    hearth_error err = {HEARTH_OK, ""};
    snprintf(text, sizeof text, "%lld", (long long)value);
    if (hearth_options_set(args->options, option, text, &err) == HEARTH_OK) return HTH_EXIT_OK;
    return hth_complain_error(&err);
}

int hth_set_default(hth_args *args, const char *option, int64_t value) {
    bool set;
    hth_int_option(args, option, &set);
    return set ? HTH_EXIT_OK : hth_set_int(args, option, value);
}

int64_t hth_int_option(const hth_args *args, const char *option, bool *set) {
    int64_t value = 0;
    int was_set = 0;
    hearth_options_get_int(args->options, option, &value, &was_set, NULL);
    if (set) *set = was_set;
    return value;
}
