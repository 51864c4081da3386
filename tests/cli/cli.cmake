# The program from outside, as users and scripts meet it. Python's standard library is all that is needed.
set(model ${PROJECT_SOURCE_DIR}/tests/data/models/llama-bf16.gguf)
foreach(part usage text template generate constraint chat numbers streams scripts)
  add_test(NAME cli_${part} COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/test_${part}.py)
  set_tests_properties(cli_${part} PROPERTIES TIMEOUT 900
    ENVIRONMENT "PROGRAM_UNDER_TEST=$<TARGET_FILE:hearth>;MODEL_UNDER_TEST=${model}")
endforeach()
