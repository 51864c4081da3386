include(${PROJECT_SOURCE_DIR}/tests/support/support.cmake)
set(unit ${CMAKE_CURRENT_LIST_DIR})

hearth_test(unit_gguf_dequant ${unit}/gguf_dequant.c)
hearth_test(unit_gguf_open ${unit}/gguf_open.c ${HEARTH_TEST_SUPPORT}/gguf_image.c ${HEARTH_TEST_SUPPORT}/gguf_walk.c
  ${HEARTH_TEST_SUPPORT}/temp_folder.c)
hearth_test(unit_gguf_shrink ${unit}/gguf_shrink.c ${HEARTH_TEST_SUPPORT}/gguf_image.c
  ${HEARTH_TEST_SUPPORT}/gguf_walk.c ${HEARTH_TEST_SUPPORT}/temp_folder.c LABELS threaded)
hearth_test(unit_gguf_inspect ${unit}/gguf_inspect.c ${HEARTH_TEST_SUPPORT}/gguf_image.c
  ${HEARTH_TEST_SUPPORT}/temp_folder.c)
target_compile_definitions(unit_gguf_inspect PRIVATE HEARTH_PROGRAM="$<TARGET_FILE:hearth>")
target_link_libraries(unit_gguf_inspect PRIVATE PkgConfig::JANSSON)
add_dependencies(unit_gguf_inspect hearth)
