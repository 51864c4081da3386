include(${PROJECT_SOURCE_DIR}/tests/support/support.cmake)
set(unit ${CMAKE_CURRENT_LIST_DIR})

hearth_test(unit_text_encode ${unit}/text_encode.c ${unit}/text_help.c TIMEOUT 600)
hearth_test(unit_text_split ${unit}/text_split.c ${unit}/text_help.c TIMEOUT 600)
hearth_test(unit_text_stream ${unit}/text_stream.c ${unit}/text_help.c)
hearth_test(unit_text_shared ${unit}/text_shared.c ${unit}/text_help.c LABELS threaded)
hearth_test(unit_text_threads ${unit}/text_threads.c ${HEARTH_TEST_SUPPORT}/gguf_image.c LABELS threaded)
hearth_test(unit_text_vocab ${unit}/text_vocab.c ${unit}/text_help.c ${HEARTH_TEST_SUPPORT}/gguf_image.c)
hearth_alloc_guard(unit_text_vocab)
hearth_test(unit_text_output ${unit}/text_output.c ${HEARTH_TEST_SUPPORT}/output_log.c)
hearth_alloc_guard(unit_text_output)
hearth_test(unit_output_templates ${unit}/output_templates.c ${unit}/template_help.c)

# No test: scripts/oracle/tokenizer_*.py compare what it prints with other implementations.
add_executable(text_tool ${unit}/text_tool.c ${HEARTH_TEST_SUPPORT}/output_log.c)
target_include_directories(text_tool PRIVATE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(text_tool PRIVATE hearth_flags hearth_static Threads::Threads m)

hearth_test(unit_template_recorded ${unit}/template_recorded.c ${unit}/template_help.c)
hearth_test(unit_template_marks ${unit}/template_marks.c ${unit}/template_help.c ${unit}/text_help.c)
hearth_test(unit_template_hostile ${unit}/template_hostile.c ${unit}/template_help.c ${unit}/text_help.c TIMEOUT 600)
