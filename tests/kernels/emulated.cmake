# The avxvnni and avx512 tiers with emulated intrinsics, for machines that lack them: linked into a test, they take the
# place of the library's. Where the instructions are there, the plain tests run them as well.
#
#   hearth_emulated_test(name tier source...)     nothing where SIMDe is missing
find_path(HEARTH_SIMDE simde/x86/avx512.h)
if(HEARTH_SIMDE AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64")
  foreach(tier avxvnni avx512)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cpu/x86/${tier}/*.c)
    add_library(kernels_${tier}_emulated OBJECT ${sources})
    target_include_directories(kernels_${tier}_emulated PRIVATE
      ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(kernels_${tier}_emulated PRIVATE hearth_flags)
    target_compile_definitions(kernels_${tier}_emulated PRIVATE HTH_EMULATED)
    target_compile_options(kernels_${tier}_emulated PRIVATE -g1 -mavx2 -mfma -mf16c -mbmi2 -Wno-psabi)
  endforeach()
endif()

function(hearth_emulated_test name tier)
  if(TARGET kernels_${tier}_emulated)
    hearth_test(${name} ${ARGN} $<TARGET_OBJECTS:kernels_${tier}_emulated> ARGS --tier ${tier})
    target_compile_definitions(${name} PRIVATE HEARTH_EMULATED)
  endif()
endfunction()
