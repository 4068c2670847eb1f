# SPDX-License-Identifier: MIT
# How every target of Freehold is compiled, and the one function that defines an engine library.
#
#   freehold_options   for everything: C++20, warnings, sanitizers, coverage
#   freehold_engine    for libraries that end up inside malloc, in addition: no exceptions, no RTTI, TLS that is
#                      reached without a call, libc reached without the PLT
include_guard(GLOBAL)
include(GNUInstallDirs)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
  endif()
  find_program(FREEHOLD_CCACHE ccache)
  mark_as_advanced(FREEHOLD_CCACHE)
  if(FREEHOLD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # Relative to the tree, so that one clone finds what another one compiled: that has paths of the other clone.
    if(NOT FREEHOLD_HIDE_PATHS)
      set(relative ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1)
    endif()
    set(CMAKE_CXX_COMPILER_LAUNCHER ${relative} ${FREEHOLD_CCACHE})
    set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

add_library(freehold_options INTERFACE)
target_compile_features(freehold_options INTERFACE cxx_std_20)
target_compile_options(freehold_options INTERFACE -Wall -Wextra -Wpedantic $<$<BOOL:${FREEHOLD_WERROR}>:-Werror>)
# Clang warns of what libstdc++ 12's stable_sort calls.
target_compile_options(freehold_options INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
# Debian 12's valgrind gives up on some of the DWARF 5 that Clang writes.
target_compile_options(freehold_options INTERFACE $<$<CXX_COMPILER_ID:Clang>:-fdebug-default-version=4>)
if(FREEHOLD_HIDE_PATHS)
  # The last map that fits is taken: the build's folder may lie in the tree.
  target_compile_options(freehold_options INTERFACE -ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${PROJECT_BINARY_DIR}=./build)
endif()
if(FREEHOLD_SANITIZE)
  target_compile_options(freehold_options INTERFACE -fsanitize=${FREEHOLD_SANITIZE} -fno-sanitize-recover=all
                                                    -fno-omit-frame-pointer)
  target_link_options(freehold_options INTERFACE -fsanitize=${FREEHOLD_SANITIZE})
endif()
if(FREEHOLD_COVERAGE)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "FREEHOLD_COVERAGE needs Clang: cmake --preset coverage")
  endif()
  # Threads count the same lines, hence atomic. The counters are those of a file that is mapped (%c in script/coverage): what a
  # process that ends by _exit, abort or kill has counted is in it. The long forms of -fprofile-update and -fprofile-list: ccache
  # gives up on the short ones.
  set(counts -fprofile-instr-generate -fcoverage-mapping)
  target_compile_options(
    freehold_options INTERFACE ${counts} SHELL:-mllvm\ -runtime-counter-relocation SHELL:-mllvm\ -instrprof-atomic-counter-update-all
                               SHELL:-Xclang\ -fprofile-list=${PROJECT_SOURCE_DIR}/cmake/coverage.list)
  target_link_options(freehold_options INTERFACE ${counts})
endif()

add_library(freehold_engine INTERFACE)
target_compile_options(freehold_engine INTERFACE -fno-plt -ftls-model=initial-exec
                                                 $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions;-fno-rtti>)
target_link_libraries(freehold_engine INTERFACE freehold_options)

# freehold_add_library(<part> [THROWS] [USES <part>...] [ROOMS <folder>...] [EXCEPT <source>...])
# The library freehold::<part> from every source beside the caller's CMakeLists.txt and in its ROOMS, but EXCEPT; header-only while there
# is none.
# THROWS: it is no part of malloc, throws exceptions, and may lie in a library that dlopen loads.
# USES are the parts whose headers its own headers include, as the layer table of script/check_layers allows.
function(freehold_add_library part)
  cmake_parse_arguments(PARSE_ARGV 1 arg "THROWS" "" "USES;ROOMS;EXCEPT")
  list(TRANSFORM arg_ROOMS APPEND /*.cpp)
  file(GLOB sources CONFIGURE_DEPENDS *.cpp ${arg_ROOMS})
  foreach(source IN LISTS arg_EXCEPT)
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${source})
  endforeach()
  set(target freehold_${part})
  if(sources)
    add_library(${target} STATIC ${sources})
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:$<IF:$<BOOL:${arg_THROWS}>,freehold_options,freehold_engine>>)
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(freehold::${part} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${part})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_definitions(${target} ${scope} $<$<BOOL:${FREEHOLD_CHECKED}>:FREEHOLD_CHECKED>)
  list(TRANSFORM arg_USES PREPEND freehold::)
  target_link_libraries(${target} ${scope} ${arg_USES} Threads::Threads)
  freehold_install(${target})
endfunction()

# freehold_ship(<target>...): the target `freehold_shipped` builds exactly what `cmake --install` lays down, and `freehold_shipped_but_lab`
# what it does with `--component Unspecified`: all but the laboratory, and the pages of its commands.
add_custom_target(freehold_shipped)
add_custom_target(freehold_shipped_but_lab)
add_dependencies(freehold_shipped freehold_shipped_but_lab)
function(freehold_ship)
  if(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME STREQUAL "lab")
    add_dependencies(freehold_shipped ${ARGN})
  else()
    add_dependencies(freehold_shipped_but_lab ${ARGN})
  endif()
endfunction()

# freehold_install(<target>...): libraries that are shipped; find_package(freehold) gives them back.
function(freehold_install)
  if(FREEHOLD_INSTALL)
    install(TARGETS ${ARGN} EXPORT freehold)
  endif()
  freehold_ship(${ARGN})
endfunction()

# freehold_install_own(<target>...): commands, and libraries that only these load. They lie apart from those to link, and the
# package of CMake does not name them: it works where they are not installed.
function(freehold_install_own)
  if(FREEHOLD_INSTALL)
    install(TARGETS ${ARGN} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/freehold)
  endif()
  freehold_ship(${ARGN})
endfunction()

# freehold_export(<shared library> <version script>): the library exports the symbols of the script and no others. Its soname
# ends with the minor version, since before 1.0 a minor version may change the interface.
function(freehold_export target script)
  cmake_path(ABSOLUTE_PATH script)
  target_link_options(${target} PRIVATE LINKER:--version-script=${script})
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${script} VERSION ${PROJECT_VERSION}
                                             SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endfunction()

# freehold_unite(<variable> [TOGETHER <source>...] [APART <source>...])
# With FREEHOLD_UNITY the list of sources is compiled up to twelve at a time, those of TOGETHER at once, those of APART one by one: most
# of the time goes into headers. Those that belong together are together: the sources of a folder `doctor`, with `doctor.cpp` and
# `doctor_attach.cpp` beside it. What the sources of one folder define needs different names, therefore, in anonymous namespaces, too.
# Where the optimised build has -O2, such a unit has -O1, which is a quarter less work: none of it is measured, or runs for long.
# (CMake's own UNITY_BUILD writes absolute paths, which ccache would not find again in another clone.)
set(FREEHOLD_UNIT 12)
function(freehold_unite list)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "TOGETHER;APART")
  if(NOT FREEHOLD_UNITY)
    return()
  endif()
  set(rest "")
  set(folders "")
  foreach(source IN LISTS ${list})
    cmake_path(ABSOLUTE_PATH source)
    list(APPEND rest ${source})
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE name)
    if(name IN_LIST arg_APART)
      continue()
    endif()
    if(name IN_LIST arg_TOGETHER)
      set(folder together)
    else()
      string(REGEX MATCH "^[a-z]+" folder ${name})
    endif()
    list(APPEND folders ${folder})
    list(APPEND of_${folder} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    # The fewest units, of the same size.
    list(LENGTH of_${folder} count)
    math(EXPR units "(${count} + ${FREEHOLD_UNIT} - 1) / ${FREEHOLD_UNIT}")
    set(done 0)
    foreach(part RANGE 1 ${units})
      math(EXPR end "${count} * ${part} / ${units}")
      math(EXPR length "${end} - ${done}")
      list(SUBLIST of_${folder} ${done} ${length} members)
      set(done ${end})
      set(text "")
      foreach(source IN LISTS members)
        cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE include)
        string(APPEND text "#include \"${include}\"\n")
      endforeach()
      # For those who look at the project in an editor.
      set_source_files_properties(${members} PROPERTIES HEADER_FILE_ONLY ON)
      set(unit ${CMAKE_CURRENT_BINARY_DIR}/unity/${folder}_${part}.cpp)
      file(CONFIGURE OUTPUT ${unit} CONTENT "${text}" @ONLY)
      set_source_files_properties(${unit} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:RelWithDebInfo>:-O1>)
      list(APPEND rest ${unit})
    endforeach()
  endforeach()
  set(${list} ${rest} PARENT_SCOPE)
endfunction()

# freehold_embed(<variable> <header> <name>=<file>...): a source that defines what the header declares, the content of the files, in the
# namespace freehold::<the header's first folder>::assets.
function(freehold_embed source header)
  list(TRANSFORM ARGN REPLACE "^[^=]+=" "" OUTPUT_VARIABLE files)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/${source}.cpp)
  set(script ${PROJECT_SOURCE_DIR}/tools/output/embed.cmake)
  string(REGEX MATCH "^[a-z]+" space ${header})
  add_custom_command(
    OUTPUT ${made}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${made} -DHEADER=${header} "-DASSETS=${ARGN}" -DNAMESPACE=${space} -P ${script}
    DEPENDS ${files} ${script}
    COMMENT "Embedding the pages of results"
    VERBATIM)
  set(${source} ${made} PARENT_SCOPE)
endfunction()

# freehold_program_library(<target>): compiled like a program, not like a shared library: the measured code is inlined from headers,
# thread-local storage included.
function(freehold_program_library target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIE)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
endfunction()

# freehold_add_part(<folder> IF <option>): the folder, if the option is on and the folder has been begun.
function(freehold_add_part folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "IF" "")
  file(GLOB begun CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt)
  if(begun AND ${arg_IF})
    add_subdirectory(${PROJECT_SOURCE_DIR}/${folder} ${PROJECT_BINARY_DIR}/${folder})
  endif()
endfunction()
