# Helpers that several test programs share; a registration that uses them includes this file.
include_guard(GLOBAL)
set(HEARTH_TEST_SUPPORT ${CMAKE_CURRENT_LIST_DIR})

# Let a test program that links support/alloc_guard.c count its allocations and make them fail.
function(hearth_alloc_guard target)
  target_sources(${target} PRIVATE ${HEARTH_TEST_SUPPORT}/alloc_guard.c)
  foreach(name malloc calloc realloc reallocarray aligned_alloc strdup strndup free)
    target_link_options(${target} PRIVATE -Wl,--wrap=${name})
  endforeach()
endfunction()

# Let a test program count its calls into the system (support/call_guard.h).
function(hearth_call_guard target)
  target_sources(${target} PRIVATE ${HEARTH_TEST_SUPPORT}/call_guard.c)
  foreach(name mmap munmap mprotect madvise pthread_create)
    target_link_options(${target} PRIVATE -Wl,--wrap=${name})
  endforeach()
endfunction()
