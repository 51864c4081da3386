hearth_test(options_table unit/options_table.c)
hearth_test(options_sources unit/options_sources.c)
