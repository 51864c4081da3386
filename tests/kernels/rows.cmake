# The kernel tests of rows, attention, recurrences and the shared elementary functions.
hearth_test(kernels_rows kernels/rows_test.c kernels/check.c)
hearth_test(kernels_attention kernels/attention_test.c kernels/check.c kernels/limits.c)
hearth_test(kernels_recurrent kernels/recurrent_test.c kernels/check.c)
hearth_test(kernels_math kernels/math_test.c kernels/check.c)
foreach(family rows attention recurrent math)
  hearth_emulated_test(kernels_${family}_avx512 avx512 kernels/${family}_test.c kernels/check.c kernels/limits.c)
endforeach()
