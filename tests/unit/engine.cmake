# Not among the threaded tests: contract_same_bits walks the same paths under the thread sanitizer, in fewer steps.
hearth_test(unit_engine unit/engine_test.c TIMEOUT 1200)
hearth_test(unit_arrival unit/arrival_test.c LABELS threaded)
target_link_options(unit_arrival PRIVATE -Wl,--wrap=madvise)
hearth_test(unit_marks unit/marks_test.c LABELS threaded)
hearth_test(unit_poison unit/poison_test.c support/temp_folder.c)
if(NOT HEARTH_SANITIZE) # it counts, and instrumented it takes minutes
  hearth_test(unit_work unit/work_test.c)
endif()
