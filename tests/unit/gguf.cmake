include(${PROJECT_SOURCE_DIR}/tests/support/support.cmake)
set(unit ${CMAKE_CURRENT_LIST_DIR})

hearth_test(unit_gguf_dequant ${unit}/gguf_dequant.c)
hearth_test(unit_gguf_open ${unit}/gguf_open.c ${HEARTH_TEST_SUPPORT}/gguf_image.c ${HEARTH_TEST_SUPPORT}/gguf_walk.c
  ${HEARTH_TEST_SUPPORT}/temp_folder.c)
hearth_test(unit_gguf_shrink ${unit}/gguf_shrink.c ${HEARTH_TEST_SUPPORT}/gguf_image.c
  ${HEARTH_TEST_SUPPORT}/gguf_walk.c ${HEARTH_TEST_SUPPORT}/temp_folder.c LABELS threaded)
add_test(NAME unit_gguf_inspect COMMAND ${unit}/gguf_inspect.py $<TARGET_FILE:hearth>)
