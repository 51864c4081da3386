# Programs that measure. The run here shows that the program works; its figures are for those who ask for them.
hearth_test(bench_limits bench/limits.c ARGS --threads 1 --json)
