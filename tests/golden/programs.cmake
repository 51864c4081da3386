# The program of a tiny model of each architecture, as hearth explain prints it.
include(${PROJECT_SOURCE_DIR}/tests/support/support.cmake)
hearth_test(golden_programs ${CMAKE_CURRENT_LIST_DIR}/program_prints.c ${HEARTH_TEST_SUPPORT}/gguf_image.c
  ${HEARTH_TEST_SUPPORT}/tiny_model.c ARGS ${CMAKE_CURRENT_LIST_DIR}/programs)
