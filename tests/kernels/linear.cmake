# The kernel tests of linear and quantize; other families register theirs in files of their own beside this one.
hearth_test(kernels_linear kernels/linear_test.c kernels/check.c kernels/limits.c)
hearth_test(kernels_quantize kernels/quantize_test.c kernels/check.c)
hearth_emulated_test(kernels_quantize_avx512 avx512 kernels/quantize_test.c kernels/check.c)
# Instrumented, the emulated ones take long, and would find what the guard pages find here.
if(NOT HEARTH_SANITIZE)
  foreach(tier avxvnni avx512)
    hearth_emulated_test(kernels_linear_${tier} ${tier} kernels/linear_test.c kernels/check.c kernels/limits.c)
  endforeach()
endif()
