# Users' programs against an installed copy. A sanitized library asks its users for the same sanitizer, so not there.
if(NOT HEARTH_SANITIZE)
  add_test(NAME install COMMAND ${CMAKE_CURRENT_LIST_DIR}/install.sh ${PROJECT_BINARY_DIR})
  set_property(TEST install APPEND PROPERTY LABELS slow)
endif()
