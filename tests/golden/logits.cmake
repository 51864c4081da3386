# Logits of tiny models of each architecture, within tolerance of transformers' and bit for bit as recorded; those of
# real models run as far as they are in the user's cache.
set(golden ${CMAKE_CURRENT_LIST_DIR}/run_golden.py $<TARGET_FILE:hearth> ${PROJECT_SOURCE_DIR}/tests/data)
add_test(NAME golden_logits COMMAND ${golden})
add_test(NAME golden_logits_real COMMAND ${golden} --real)
set_property(TEST golden_logits_real APPEND PROPERTY LABELS optional slow)
set_property(TEST golden_logits_real PROPERTY TIMEOUT 900)
