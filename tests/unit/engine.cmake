# Instrumented kernels are slow, and a waiting thread's spinning is instrumented too.
hearth_test(unit_engine unit/engine_test.c LABELS threaded TIMEOUT 1200)
