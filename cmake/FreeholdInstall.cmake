# What `cmake --install` lays down: libraries, headers, the package files of CMake and of pkg-config.
include_guard(GLOBAL)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/freehold)
configure_package_config_file(cmake/freeholdConfig.cmake.in freeholdConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(freeholdConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT freehold NAMESPACE freehold:: FILE freeholdTargets.cmake DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/freeholdConfig.cmake ${PROJECT_BINARY_DIR}/freeholdConfigVersion.cmake
        DESTINATION ${package_dir})
install(DIRECTORY freehold DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

# pkg-config: `freehold` is the shared library, `freehold-static` the archives, top layer first.
set(archives "")
foreach(part IN ITEMS malloc process heap alloc pool sync os base)
  if(TARGET freehold_${part})
    get_target_property(type freehold_${part} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      string(APPEND archives " -lfreehold_${part}")
    endif()
  endif()
endforeach()
get_target_property(doors freehold_malloc INTERFACE_LINK_OPTIONS)
# The prefix is found from where the file lies, so that an installed tree can be moved.
file(RELATIVE_PATH prefix_from_here /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
foreach(name IN ITEMS freehold freehold-static)
  configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
