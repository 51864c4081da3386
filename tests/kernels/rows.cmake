# The kernel tests of rows, attention and the shared elementary functions.
hearth_test(kernels_rows kernels/rows_test.c kernels/check.c)
hearth_test(kernels_attention kernels/attention_test.c kernels/check.c kernels/limits.c)
hearth_test(kernels_math kernels/math_test.c kernels/check.c)

# The same for the avx512 tier on machines without it: its sources with emulated intrinsics take the place of the
# library's. Where the instructions are there, the tests above run them as well.
find_path(HEARTH_SIMDE simde/x86/avx512.h)
if(HEARTH_SIMDE AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64")
  set(avx512 ${PROJECT_SOURCE_DIR}/src/backends/cpu/x86/avx512)
  add_library(kernels_avx512_emulated OBJECT ${avx512}/init.c ${avx512}/rows.c ${avx512}/attention.c)
  target_include_directories(kernels_avx512_emulated PRIVATE
    ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(kernels_avx512_emulated PRIVATE hearth_flags)
  target_compile_definitions(kernels_avx512_emulated PRIVATE HTH_EMULATED)
  target_compile_options(kernels_avx512_emulated PRIVATE -g1 -mavx2 -mfma -mf16c -mbmi2 -Wno-psabi)
  foreach(family rows attention math)
    hearth_test(kernels_${family}_avx512 kernels/${family}_test.c kernels/check.c kernels/limits.c
      $<TARGET_OBJECTS:kernels_avx512_emulated> ARGS --tier avx512)
    target_compile_definitions(kernels_${family}_avx512 PRIVATE HEARTH_EMULATED)
  endforeach()
endif()
