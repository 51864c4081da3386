include(${PROJECT_SOURCE_DIR}/tests/support/support.cmake)
set(unit ${CMAKE_CURRENT_LIST_DIR})
set(shared ${unit}/constraint_help.c ${unit}/text_help.c ${HEARTH_TEST_SUPPORT}/gguf_image.c)

hearth_test(unit_constraint_match ${unit}/constraint_match.c ${shared}
  ${HEARTH_TEST_SUPPORT}/constraint_walk.c)
hearth_test(unit_constraint_grammar ${unit}/constraint_grammar.c ${shared})
hearth_test(unit_constraint_schema ${unit}/constraint_schema.c ${shared})
hearth_test(unit_constraint_sampler ${unit}/constraint_sampler.c ${shared})
hearth_alloc_guard(unit_constraint_sampler)
