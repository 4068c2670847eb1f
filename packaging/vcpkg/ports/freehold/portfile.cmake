# SPDX-License-Identifier: MIT
# begin sources
# The sources are in the archive beside this file (script/package vcpkg puts it there), or this file lies in their tree.
set(archive "${CMAKE_CURRENT_LIST_DIR}/sources.tar.gz")
if(EXISTS "${archive}")
  vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "${archive}")
else()
  get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)
endif()
if(NOT EXISTS "${SOURCE_PATH}/cmake/FreeholdBuild.cmake")
  message(FATAL_ERROR "The sources of Freehold are not at ${SOURCE_PATH}")
endif()
# end sources

vcpkg_check_features(
  OUT_FEATURE_OPTIONS feature_options
  FEATURES
    override FREEHOLD_BUILD_MALLOC
)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${feature_options}
    -DFREEHOLD_BUILD_BENCH=OFF
    -DFREEHOLD_BUILD_CLI=OFF
    -DFREEHOLD_BUILD_DOCTOR=OFF
    -DFREEHOLD_BUILD_GEARMAN=OFF
    -DFREEHOLD_BUILD_TESTS=OFF
    -DFREEHOLD_INSTALL=ON
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/freehold)
vcpkg_fixup_pkgconfig()
vcpkg_copy_tools(TOOL_NAMES freehold-worker AUTO_CLEAN)

file(REMOVE_RECURSE
  "${CURRENT_PACKAGES_DIR}/debug/include"
  "${CURRENT_PACKAGES_DIR}/debug/share"
  "${CURRENT_PACKAGES_DIR}/share/doc"
  "${CURRENT_PACKAGES_DIR}/share/freehold/python"
)
file(REMOVE "${CURRENT_PACKAGES_DIR}/include/freehold/process_gearman.hpp")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
