set(cli ${PROJECT_SOURCE_DIR}/src/cli)
hearth_test(cli_args unit/cli_args.c ${cli}/args.c ${cli}/help.c ${cli}/say.c)
hearth_test(cli_input unit/cli_input.c ${cli}/input.c ${cli}/say.c ${cli}/sha256.c)
hearth_test(cli_bench_svg unit/cli_bench_svg.c
  ${cli}/bench_svg.c ${cli}/bench_sweep_svg.c ${cli}/bench_trend.c ${cli}/svg.c)
