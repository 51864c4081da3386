# The libraries Hearth is built on, all from pkg-config. A missing one ends the configuration with the name of the
# Debian package that brings it; scripts/packages.sh holds the whole list.
set(hearth_all_packages "'scripts/packages.sh install build test' brings all that is needed")
find_package(Threads REQUIRED)
find_package(PkgConfig)
if(NOT PKG_CONFIG_FOUND)
  message(FATAL_ERROR "pkg-config is missing (Debian: apt install pkg-config). ${hearth_all_packages}.")
endif()

# hearth_find_library(PREFIX module debian-package): PkgConfig::PREFIX, or an error that says what to install.
function(hearth_find_library prefix module package)
  pkg_check_modules(${prefix} QUIET GLOBAL IMPORTED_TARGET ${module})
  if(NOT TARGET PkgConfig::${prefix})
    message(FATAL_ERROR "${module} is missing (Debian: apt install ${package}). ${hearth_all_packages}.")
  endif()
endfunction()

hearth_find_library(UTF8PROC libutf8proc libutf8proc-dev)
hearth_find_library(JANSSON jansson libjansson-dev)
hearth_find_library(LIBEDIT libedit libedit-dev) # the program only
if(HEARTH_TESTS)
  hearth_find_library(CMOCKA cmocka libcmocka-dev)
endif()
