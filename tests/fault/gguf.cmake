include(${PROJECT_SOURCE_DIR}/tests/support/support.cmake)
set(fault ${CMAKE_CURRENT_LIST_DIR})
set(support ${HEARTH_TEST_SUPPORT}/gguf_image.c ${HEARTH_TEST_SUPPORT}/gguf_walk.c)

hearth_test(fault_gguf_hostile ${fault}/gguf_hostile.c ${support})
hearth_alloc_guard(fault_gguf_hostile)

hearth_test(fault_gguf_memory ${fault}/gguf_memory.c ${support} ${HEARTH_TEST_SUPPORT}/temp_folder.c)
hearth_alloc_guard(fault_gguf_memory)
target_link_options(fault_gguf_memory PRIVATE -Wl,--wrap=mmap -Wl,--wrap=munmap -Wl,--wrap=fstat)

# Whole opens, each with one fault: seconds in all, minutes with instrumented kernels.
hearth_test(fault_engine_open ${fault}/engine_open.c)
hearth_alloc_guard(fault_engine_open)
foreach(name mmap munmap fstat madvise mlock2 pread pthread_create)
  target_link_options(fault_engine_open PRIVATE -Wl,--wrap=${name})
endforeach()

hearth_test(fault_engine_file ${fault}/engine_file.c ${HEARTH_TEST_SUPPORT}/temp_folder.c)
target_link_options(fault_engine_file PRIVATE -Wl,--wrap=madvise)
