# SPDX-License-Identifier: MIT
# The rules for `cmake --install`: libraries, headers, licences, the package files of CMake and of pkg-config.
include_guard(GLOBAL)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/freehold)
configure_package_config_file(cmake/freeholdConfig.cmake.in freeholdConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(freeholdConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT freehold NAMESPACE freehold:: FILE freeholdTargets.cmake DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/freeholdConfig.cmake ${PROJECT_BINARY_DIR}/freeholdConfigVersion.cmake
        DESTINATION ${package_dir})

# The public headers are those directly under freehold/. Everything below is internal: FreeholdInstallHeaders.cmake puts it
# apart.
file(GLOB FREEHOLD_PUBLIC_HEADERS CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/freehold freehold/*.h freehold/*.hpp)
if(NOT TARGET freehold_malloc)
  list(REMOVE_ITEM FREEHOLD_PUBLIC_HEADERS malloc.h count.hpp)
endif()
install(CODE "set(PUBLIC \"${FREEHOLD_PUBLIC_HEADERS}\")
set(ROOT \"${PROJECT_SOURCE_DIR}\")
set(STAGE \"${PROJECT_BINARY_DIR}/installed_headers\")
set(DESTINATION \"${CMAKE_INSTALL_INCLUDEDIR}\")")
install(SCRIPT cmake/FreeholdInstallHeaders.cmake)

# The licences: ours, and that of the plotting library whose text the command carries into its HTML pages.
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES third_party/uplot/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME LICENSE.uPlot)

# The prefix is found from where the file lies, so that an installed tree can be moved.
file(RELATIVE_PATH prefix_from_here /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
function(freehold_install_pc package template)
  configure_file(cmake/${template}.pc.in ${package}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
# The archives of the parts, top layer first. By their files' names: a shared library may have the same one, and -l takes it.
function(freehold_archives out)
  set(flags "")
  foreach(part IN LISTS ARGN)
    if(TARGET freehold_${part})
      get_target_property(type freehold_${part} TYPE)
      if(type STREQUAL "STATIC_LIBRARY")
        string(APPEND flags " -l:libfreehold_${part}.a")
      endif()
    endif()
  endforeach()
  set(${out} "${flags}" PARENT_SCOPE)
endfunction()

# pkg-config: `freehold` is the malloc as a shared library, `freehold-static` the same from archives.
if(TARGET freehold_malloc)
  freehold_archives(archives malloc alloc profile slots check sync os base)
  get_target_property(link_options freehold_malloc INTERFACE_LINK_OPTIONS)
  freehold_install_pc(freehold freehold)
  freehold_install_pc(freehold-static freehold-static)
endif()

# freehold_install_part(<part> <description> <archive>...): the package freehold-<part>, which leaves malloc alone.
function(freehold_install_part name description)
  freehold_archives(libs ${ARGN})
  freehold_install_pc(freehold-${name} freehold-part)
endfunction()
freehold_install_part(pool "Fixed-size object pools" pool slots check sync os base)
freehold_install_part(heap "Private heaps" heap alloc profile slots check sync os base)
freehold_install_part(timer "Timer queues and timing wheels" timer pool slots check sync os base)
freehold_install_part(process "Pools of worker processes, for C++" process sync os base)
foreach(backend IN ITEMS thread_alloc thread_alloc_owner_pages thread_alloc_article)
  string(REPLACE "_" "-" name ${backend})
  freehold_install_part(${name} "Thread-local allocation behind a C interface" ${backend} alloc profile slots check sync os base)
endforeach()
set(name process-c)
set(description "Pools of worker processes, for C and for other languages")
set(libs " -lfreehold_process")
freehold_install_pc(freehold-process-c freehold-part)
