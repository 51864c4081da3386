set(cli ${PROJECT_SOURCE_DIR}/src/cli)
hearth_test(cli_args unit/cli_args.c ${cli}/args.c ${cli}/help.c ${cli}/say.c)
hearth_test(cli_input unit/cli_input.c ${cli}/input.c ${cli}/say.c ${cli}/sha256.c)
hearth_test(cli_bench_svg unit/cli_bench_svg.c
  ${cli}/bench_svg.c ${cli}/bench_sweep_svg.c ${cli}/bench_trend.c ${cli}/svg.c)
hearth_test(cli_bounds unit/cli_bounds.c unit/constraint_help.c unit/text_help.c support/gguf_image.c
  ${cli}/generate.c ${cli}/interrupt.c ${cli}/say.c)
foreach(function hearth_session_sync hearth_session_position hearth_engine_run hearth_engine_tokenizer
    hearth_engine_info hearth_engine_set_progress)
  target_link_options(cli_bounds PRIVATE -Wl,--wrap=${function})
endforeach()
hearth_test(cli_ledger unit/cli_ledger.c ${cli}/ledger.c ${cli}/report.c ${cli}/say.c ${cli}/svg.c)
