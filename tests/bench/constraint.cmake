# No test: what constrained output costs beside a decode step. Built when asked for (--target constraint_bench).
add_executable(constraint_bench EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/constraint_bench.c)
target_include_directories(constraint_bench PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(constraint_bench PRIVATE hearth_flags hearth_static Threads::Threads m)
