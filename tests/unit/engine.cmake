hearth_test(unit_engine unit/engine_test.c LABELS threaded)
