# Each tests/fuzz/fuzz_NAME.c is a fuzz target. It is always built as fuzz_NAME_saved, a plain program that CTest runs
# over corpus/NAME; with HEARTH_FUZZ (clang) also as fuzz_NAME, which searches for inputs: scripts/fuzz.sh does that.
include(${PROJECT_SOURCE_DIR}/tests/support/support.cmake)
option(HEARTH_FUZZ "Build the fuzzers; needs clang and HEARTH_SANITIZE with fuzzer-no-link" OFF)

file(GLOB targets CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/fuzz_*.c)
foreach(target ${targets})
  cmake_path(GET target STEM name)
  string(REPLACE fuzz_ "" corpus ${name})
  set(sources ${target} ${HEARTH_TEST_SUPPORT}/gguf_walk.c ${HEARTH_TEST_SUPPORT}/constraint_walk.c)
  if(corpus STREQUAL output)
    set(sources ${target} ${HEARTH_TEST_SUPPORT}/output_log.c)
  endif()
  hearth_test(${name}_saved ${CMAKE_CURRENT_LIST_DIR}/driver.c ${sources}
    ARGS ${CMAKE_CURRENT_LIST_DIR}/corpus/${corpus})
  if(HEARTH_FUZZ)
    # Parsers need none of the kernels, which take minutes to build with sanitizers.
    add_executable(${name} ${sources}
      $<TARGET_OBJECTS:hearth_base> $<TARGET_OBJECTS:hearth_gguf> $<TARGET_OBJECTS:hearth_text>)
    target_include_directories(${name} PRIVATE
      ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${name} PRIVATE hearth_flags PkgConfig::UTF8PROC
      PkgConfig::JANSSON Threads::Threads m)
    target_compile_definitions(${name} PRIVATE HEARTH_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  endif()
endforeach()
