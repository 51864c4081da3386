# cmake --install: the program, both libraries, the public headers, hearth.pc and the CMake package Hearth.
#
#   find_package(Hearth)                     hearth::hearth, the shared library; needs nothing else
#   find_package(Hearth COMPONENTS static)   and hearth::hearth_static, which needs utf8proc and jansson to link
include(CMakePackageConfigHelpers)
set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Hearth)

install(TARGETS hearth RUNTIME)
install(TARGETS hearth_shared EXPORT HearthTargets LIBRARY)
install(TARGETS hearth_static EXPORT HearthStaticTargets ARCHIVE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/hearth DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")

install(EXPORT HearthTargets NAMESPACE hearth:: DESTINATION ${cmake_dir})
install(EXPORT HearthStaticTargets NAMESPACE hearth:: DESTINATION ${cmake_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/HearthConfig.cmake.in ${PROJECT_BINARY_DIR}/HearthConfig.cmake
  INSTALL_DESTINATION ${cmake_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/HearthConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/HearthConfig.cmake ${PROJECT_BINARY_DIR}/HearthConfigVersion.cmake
  DESTINATION ${cmake_dir})

# hearth.pc finds its own folder, so that an installed tree may be moved.
file(RELATIVE_PATH HEARTH_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/hearth.pc.in ${PROJECT_BINARY_DIR}/hearth.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hearth.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
