/* The help of a verb, written from its flags and the options table. */
#ifndef HTH_CLI_HELP_H
#define HTH_CLI_HELP_H

#include "cli/args.h"

void hth_print_help(const hth_command *command, const hth_flag *common, size_t n_common);

#endif
