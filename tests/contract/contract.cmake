# The contracts of docs/architecture.md, end to end, on a model with every dtype and on one with sliding windows.
set(models ${PROJECT_SOURCE_DIR}/tests/data/models)
if(HEARTH_SANITIZE)
  # A walk of a few steps on the smaller model: instrumented kernels are slow.
  hearth_test(contract_same_bits contract/same_bits.c LABELS threaded ARGS ${models}/tiny-gemma3-bf16.gguf 15)
  add_test(NAME contract_same_bits_hybrid COMMAND contract_same_bits ${models}/tiny-qwen35moe-bf16.gguf 15)
else()
  hearth_test(contract_same_bits contract/same_bits.c ARGS ${models}/llama-mixed.gguf)
  add_test(NAME contract_same_bits_window COMMAND contract_same_bits ${models}/tiny-gemma3-bf16.gguf)
  add_test(NAME contract_same_bits_experts COMMAND contract_same_bits ${models}/tiny-qwen3moe-bf16.gguf)
  add_test(NAME contract_same_bits_sinks COMMAND contract_same_bits ${models}/tiny-gptoss-mxfp4-bf16.gguf)
  add_test(NAME contract_same_bits_hybrid COMMAND contract_same_bits ${models}/tiny-qwen35moe-bf16.gguf)
  add_test(NAME contract_same_bits_quantized COMMAND contract_same_bits ${models}/q35-q4_0.gguf)
endif()
add_test(NAME contract_same_bits_cli COMMAND ${CMAKE_CURRENT_LIST_DIR}/same_bits.py $<TARGET_FILE:hearth>
  ${models}/llama-mixed.gguf ${models}/tiny-gemma3-bf16.gguf ${models}/tiny-gpt2-bf16.gguf
  ${models}/tiny-qwen35moe-bf16.gguf ${models}/tiny-gptoss-mxfp4-bf16.gguf)
set_property(TEST contract_same_bits_cli APPEND PROPERTY LABELS slow)
# A trained hybrid with experts, quantized: what it was told is in its recurrent state.
hearth_test(contract_code_word contract/code_word.c ARGS ${models}/q35-q4_0.gguf)
# Emulators run ordinary code only.
if(NOT HEARTH_SANITIZE AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64")
  add_test(NAME contract_emulated
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/emulated.py $<TARGET_FILE:hearth> ${models}/llama-mixed.gguf)
  set_property(TEST contract_emulated APPEND PROPERTY LABELS slow)
endif()
hearth_test(contract_open contract/open.c LABELS threaded)
target_link_options(contract_open PRIVATE -Wl,--wrap=pread)
if(NOT HEARTH_SANITIZE) # a sanitizer has an allocator and memory of its own
  include(${PROJECT_SOURCE_DIR}/tests/support/support.cmake)
  hearth_test(contract_calls contract/calls.c support/temp_folder.c ARGS ${models}/tiny-qwen35moe-bf16.gguf)
  hearth_call_guard(contract_calls)
  add_test(NAME contract_calls_window COMMAND contract_calls ${models}/tiny-gemma3-bf16.gguf)
  add_test(NAME contract_calls_dtypes COMMAND contract_calls ${models}/llama-mixed.gguf)
  add_test(NAME contract_calls_1000_times COMMAND contract_calls ${models}/tiny-qwen35moe-bf16.gguf 1000)
  set_property(TEST contract_calls_1000_times APPEND PROPERTY LABELS slow)
  hearth_test(contract_plan contract/plan.c)
endif()
