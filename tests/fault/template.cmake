include(${PROJECT_SOURCE_DIR}/tests/support/support.cmake)

hearth_test(fault_template_memory ${CMAKE_CURRENT_LIST_DIR}/template_memory.c)
hearth_alloc_guard(fault_template_memory)
