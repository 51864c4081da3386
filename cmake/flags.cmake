# Flags for every C file of the project. Arithmetic has a defined order (docs/architecture.md): no contraction, no
# fast-math, and no -march=native: kernels carry their own instruction-set flags, file by file.
add_library(hearth_flags INTERFACE)
target_compile_definitions(hearth_flags INTERFACE _GNU_SOURCE)
target_compile_options(hearth_flags INTERFACE
  -ffp-contract=off -fno-fast-math -fno-strict-aliasing -fvisibility=hidden
  -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
  -Wundef -Wvla -Wwrite-strings -Wformat=2 -Wimplicit-fallthrough)
if(HEARTH_WERROR)
  target_compile_options(hearth_flags INTERFACE -Werror)
endif()
if(CMAKE_C_COMPILER_ID STREQUAL "Clang")
  target_compile_options(hearth_flags INTERFACE -Wno-gnu-zero-variadic-macro-arguments)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
endif()
if(HEARTH_SANITIZE)
  target_compile_options(hearth_flags INTERFACE
    -fsanitize=${HEARTH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1)
  target_link_options(hearth_flags INTERFACE -fsanitize=${HEARTH_SANITIZE})
endif()
