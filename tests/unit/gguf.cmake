set(unit ${CMAKE_CURRENT_LIST_DIR})
hearth_test(unit_gguf_dequant ${unit}/gguf_dequant.c)
