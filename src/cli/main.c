/* The program: `hearth VERB ...`. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "cli/say.h"
#include "cli/verbs.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv); /* NULL: not there yet */
    const char *summary;
} verbs[] = {
    {"run", hth_verb_run, "answer a message, or complete a text"},
    {"chat", hth_verb_chat, "talk to a model"},
    {"serve", NULL, "serve models over HTTP"},
    {"explain", hth_verb_explain, "what opening a model would do: program, plan, kernels, options"},
    {"inspect", hth_verb_inspect, "what is in a GGUF file: metadata, tensors"},
    {"tokenize", hth_verb_tokenize, "token ids of a text"},
    {"detokenize", hth_verb_detokenize, "text of token ids"},
    {"template", hth_verb_template, "render a chat template"},
    {"logits", hth_verb_logits, "logits of a prompt, as float32 rows"},
    {"eval", hth_verb_eval, "perplexity of a text file"},
    {"bench", hth_verb_bench, "prefill and decode rates"},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

/* Verbs of other programs. */
static const struct {
    const char *name, *what;
} unsupported[] = {
    {"embed", "embeddings are not supported"},
    {"embedding", "embeddings are not supported"},
    {"rerank", "reranking is not supported"},
    {"quantize", "making or changing model files is not supported"},
    {"convert", "making or changing model files is not supported"},
    {"train", "training is not supported"},
    {"finetune", "training is not supported"},
    {"pull", "fetching models is not supported; scripts/fetch_models.sh fetches some"},
};

static void print_usage(FILE *to) {
    fputs("usage: hearth VERB [-m MODEL] [flags]\n\n", to);
    for (size_t i = 0; i < VERBS; i++)
        if (verbs[i].run) fprintf(to, "  %-12s%s\n", verbs[i].name, verbs[i].summary);
    fputs(
        "\nMODEL is a GGUF file, or the first one of a split set; without -m, the model that scripts/demo.sh fetched.\n"
        "'hearth VERB --help' lists the flags of a verb. 'hearth --version' says which version this is.\n"
        "Exit status: 0 done, 1 failed, 2 wrong usage.\n",
        to);
}

static int refuse_verb(const char *name) {
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++)
        if (strcmp(name, unsupported[i].name) == 0) {
            hth_complain("%s: %s", name, unsupported[i].what);
            return HTH_EXIT_USAGE;
        }
    const char *nearest = NULL;
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < VERBS; i++) {
        size_t distance = hth_name_distance(name, verbs[i].name);
        if (verbs[i].run && distance < best) best = distance, nearest = verbs[i].name;
    }
    if (nearest && hth_name_is_near(name, best)) hth_complain("unknown verb '%s'; did you mean '%s'?", name, nearest);
    else hth_complain("unknown verb '%s'; 'hearth --help' lists them", name);
    return HTH_EXIT_USAGE;
}

static int run_verb(int argc, char **argv) {
    for (size_t i = 0; i < VERBS; i++) {
        if (strcmp(argv[0], verbs[i].name) != 0) continue;
        if (!verbs[i].run) {
            hth_complain("%s: not there yet", verbs[i].name);
            return HTH_EXIT_USAGE;
        }
        hth_say_verb(verbs[i].name);
        return verbs[i].run(argc, argv);
    }
    return refuse_verb(argv[0]);
}

static int run(int argc, char **argv) {
    const char *first = argc > 1 ? argv[1] : "";
    if (argc < 2) {
        print_usage(stderr);
        return HTH_EXIT_USAGE;
    }
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0 || strcmp(first, "version") == 0) {
        hth_outf("hearth %s\n", HEARTH_VERSION);
        return HTH_EXIT_OK;
    }
    bool help = strcmp(first, "help") == 0;
    if (help && argc > 2) return run_verb(2, (char *[]){argv[2], (char *)"--help", NULL});
    if (help || strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
        print_usage(stdout);
        return HTH_EXIT_OK;
    }
    return run_verb(argc - 1, argv + 1);
}

int main(int argc, char **argv) {
    hth_say_begin();
    return hth_say_end(run(argc, argv));
}
