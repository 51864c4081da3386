hearth_test(unit_base_arena unit/base_arena.c)
hearth_test(unit_base_cpu unit/base_cpu.c)
hearth_test(unit_base_thread unit/base_thread.c)
target_link_libraries(unit_base_thread PRIVATE ${CMAKE_DL_LIBS})
