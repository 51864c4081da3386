# Not among the threaded tests: its long prompts take a thread sanitizer many minutes, and contract_same_bits takes
# sessions, batches and passes through several threads.
hearth_test(unit_engine unit/engine_test.c)
