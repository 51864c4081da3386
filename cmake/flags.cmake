# Flags for every C file of the project. Arithmetic has a defined order (docs/numerics.md): no contraction, no
# fast-math, and no -march=native: kernels carry their own instruction-set flags (src/backends/cpu/cpu.cmake).
add_library(hearth_flags INTERFACE)
target_compile_definitions(hearth_flags INTERFACE _GNU_SOURCE)
target_compile_options(hearth_flags INTERFACE
  -ffp-contract=off -fno-fast-math -fno-strict-aliasing -fvisibility=hidden
  -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
  -Wundef -Wvla -Wwrite-strings -Wformat=2 -Wimplicit-fallthrough)
if(HEARTH_WERROR)
  target_compile_options(hearth_flags INTERFACE -Werror)
endif()

# Every build keeps its asserts (no NDEBUG): they guard against our own faults, and none stands in an inner loop.
# -O2 for control code; the kernels of the faster tiers ask for -O3 themselves.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_C_FLAGS_RELEASE "-O2")

# Sanitized code runs at -O1: fast enough for the whole test suite, with usable stacks.
if(HEARTH_SANITIZE)
  target_compile_options(hearth_flags INTERFACE
    -fsanitize=${HEARTH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1)
  target_link_options(hearth_flags INTERFACE -fsanitize=${HEARTH_SANITIZE})
endif()
