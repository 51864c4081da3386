# Planted defects: a test is trusted only while it fails for each of them.
#
#   hearth_mutant_test(name source... [WRAP function...])
#   hearth_mutant(name TEST test SOURCE file FROM text TO text)
#
# The second links the objects of a test, made by the first, with one source of the library in which FROM became TO; the
# object takes the place of the library's own, so a mutant costs one compilation and one link. WRAP: functions that the
# test puts its own in place of.
#
#   hearth_mutant(name SCRIPT file CASES case... SOURCE file FROM text TO text)
#
# makes the program `hearth` with such a source instead, and runs these cases of a script of tests/cli with it.
include_guard(GLOBAL)

function(hearth_mutant_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "WRAP")
  add_library(mutant_test_${name} OBJECT ${arg_UNPARSED_ARGUMENTS})
  target_include_directories(mutant_test_${name} PRIVATE
    ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(mutant_test_${name} PRIVATE hearth_flags PkgConfig::CMOCKA)
  target_compile_definitions(mutant_test_${name} PRIVATE HEARTH_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  foreach(function ${arg_WRAP})
    target_link_options(mutant_test_${name} INTERFACE -Wl,--wrap=${function})
  endforeach()
endfunction()

# The program's own objects, from which one source is left out by linking another one first.
function(hearth_mutant_program)
  if(NOT TARGET mutant_program)
    add_library(mutant_program STATIC $<TARGET_OBJECTS:hearth>)
    set_target_properties(mutant_program PROPERTIES LINKER_LANGUAGE C)
  endif()
endfunction()

function(hearth_mutant name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TEST;SCRIPT;SOURCE;FROM;TO" "CASES")
  set(source ${PROJECT_SOURCE_DIR}/src/${arg_SOURCE})
  set(mutated ${CMAKE_CURRENT_BINARY_DIR}/mutant_${name}.c)
  set(folder ${PROJECT_SOURCE_DIR}/tests/mutation)
  add_custom_command(OUTPUT ${mutated} VERBATIM
    COMMAND ${folder}/mutate.py ${source} ${mutated} "${arg_FROM}" "${arg_TO}" DEPENDS ${source} ${folder}/mutate.py)
  add_executable(mutant_${name} ${mutated})
  target_include_directories(mutant_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  # A defect may leave something unused or out of order; that is not what it is tried for.
  target_compile_options(mutant_${name} PRIVATE -w)
  set(program $<TARGET_FILE:mutant_${name}>)
  if(arg_TEST)
    target_link_libraries(mutant_${name} PRIVATE mutant_test_${arg_TEST} PkgConfig::CMOCKA)
  else()
    hearth_mutant_program()
    target_link_libraries(mutant_${name} PRIVATE mutant_program PkgConfig::LIBEDIT)
    set(model ${PROJECT_SOURCE_DIR}/tests/data/models/llama-bf16.gguf)
    set(variables "PROGRAM_UNDER_TEST=${program};MODEL_UNDER_TEST=${model}")
    set(program python3 ${PROJECT_SOURCE_DIR}/tests/cli/${arg_SCRIPT} ${arg_CASES})
  endif()
  target_link_libraries(mutant_${name} PRIVATE hearth_flags hearth_static Threads::Threads m)
  add_test(NAME mutant_${name} COMMAND ${folder}/run_mutant.py ${program})
  set_property(TEST mutant_${name} APPEND PROPERTY LABELS slow)
  set_property(TEST mutant_${name} PROPERTY ENVIRONMENT "${variables}")
endfunction()
