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
    hearth_options_get_text(args->options, "pre", &pre, NULL, NULL);
    hearth_options_get_text(args->options, "nfc", &nfc, NULL, NULL);
    hearth_tokenizer_options options = {.pre = pre[0] ? pre : NULL,
                                        .nfc = strcmp(nfc, "auto") == 0 ? -1 : strcmp(nfc, "on") == 0};
    if (hearth_tokenizer_open(path, &options, out, &err) != HEARTH_OK) return hth_complain_error(&err);
    return HTH_EXIT_OK;
}

int hth_open_engine(const hth_args *args, const char *path, hearth_engine **out) {
    hearth_error err = {HEARTH_OK, ""};
    hth_progress("opening the model", 0, 0);
    hearth_status status = hearth_engine_open(path, args->options, out, &err);
    hth_progress_end();
    return status == HEARTH_OK ? HTH_EXIT_OK : hth_complain_error(&err);
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
