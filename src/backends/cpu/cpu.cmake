# The CPU backend: generic code, the reference kernels, and one object library per instruction set. Only those carry
# instruction-set flags, so nothing outside them can run an instruction that the machine may lack. -g1: to follow the
# variables of unrolled kernels would take a debugger nowhere and the compiler as long again.
set(HEARTH_CPU_OBJECTS "")
function(hearth_cpu name dir)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/backends/cpu/${dir}/*.c)
  if(sources)
    add_library(hearth_cpu_${name} OBJECT ${sources})
    target_include_directories(hearth_cpu_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(hearth_cpu_${name} PRIVATE hearth_flags Threads::Threads)
    target_compile_options(hearth_cpu_${name} PRIVATE -g1 ${ARGN})
    set(HEARTH_CPU_OBJECTS ${HEARTH_CPU_OBJECTS} $<TARGET_OBJECTS:hearth_cpu_${name}> PARENT_SCOPE)
  endif()
endfunction()

hearth_cpu(generic .)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64")
  # AVX2 with FMA is the least machine (backend_cpu.c refuses others), so the reference's fmaf may be one instruction
  # instead of a call; its results are the same.
  hearth_cpu(ref ref -mfma)
  set(avx2 -mavx2 -mfma -mf16c -mbmi2)
  hearth_cpu(avx2 x86/avx2 -O3 ${avx2})
  hearth_cpu(avxvnni x86/avxvnni -O3 ${avx2} -mavxvnni)
  hearth_cpu(avx512 x86/avx512 -O3 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni
    -mprefer-vector-width=512)
else()
  hearth_cpu(ref ref)
endif()
