# The kernel tests of rows, attention and the shared elementary functions.
hearth_test(kernels_rows kernels/rows_test.c kernels/check.c)
hearth_test(kernels_attention kernels/attention_test.c kernels/check.c kernels/limits.c)
hearth_test(kernels_math kernels/math_test.c kernels/check.c)
foreach(test kernels_rows kernels_attention kernels_math)
  target_link_libraries(${test} PRIVATE m)
endforeach()
