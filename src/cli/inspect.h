/* `hearth inspect`: what is in a GGUF file. */
#ifndef HTH_CLI_INSPECT_H
#define HTH_CLI_INSPECT_H

/* argv[0] is "inspect". Answers the exit status: 0, 1 (failed, said on standard error) or 2 (bad usage). */
int hth_verb_inspect(int argc, char **argv);

#endif
