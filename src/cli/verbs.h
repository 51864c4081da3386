/* The verbs: argv[0] is the verb's name, then come its arguments; the answer is the program's exit status. */
#ifndef HTH_CLI_VERBS_H
#define HTH_CLI_VERBS_H

enum {
    HTH_EXIT_OK = 0,
    HTH_EXIT_FAILED = 1, /* what was asked for could not be done */
    HTH_EXIT_USAGE = 2   /* it was asked for in the wrong way */
};

int hth_verb_run(int argc, char **argv);
int hth_verb_chat(int argc, char **argv);
int hth_verb_explain(int argc, char **argv);
int hth_verb_inspect(int argc, char **argv);
int hth_verb_tokenize(int argc, char **argv);
int hth_verb_detokenize(int argc, char **argv);
int hth_verb_template(int argc, char **argv);
int hth_verb_logits(int argc, char **argv);
int hth_verb_eval(int argc, char **argv);
int hth_verb_bench(int argc, char **argv);

#endif
