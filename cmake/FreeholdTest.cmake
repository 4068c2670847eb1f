# SPDX-License-Identifier: MIT
# freehold_add_test(<name> SOURCES <file>... [OPTIMISED] [LIBS <target>...] [USES <NAME=target>...] [ARGS <arg>...] [properties])
#   One GoogleTest binary, one ctest test. In tests/<kind> the target is <kind>_<name>, the test <kind>.<name>. With FREEHOLD_UNITY the
#   sources with names that end with _test or _model are compiled as one. Unit tests, and those of kinds like them, are not optimised
#   without OPTIMISED, and models little. What a test uses is built before it, and the macro FREEHOLD_NAME is its file.
#
# freehold_add_command_test(<name> COMMAND <command> <arg>... | PYTHON <script> <arg>... [USES <target>...] [properties])
#   The same for a test that is a command, or a script of this folder. It says by the exit code 77 that it cannot be done here. Targets that
#   its command or environment names are built for it; it USES others.
#
# Properties, of both:
#   LABELS <label>...   beside the kind
#   TIMEOUT <seconds>   default 300: it ends what hangs, a slow machine must not fail a test
#   PROCESSORS <n>      how many CPUs the test keeps busy (default 1), so that no others run beside it
#   SLEEPS              a test that mostly waits, for time or for other processes: it counts as a quarter of a CPU
#   SERIAL              runs alone: for tests with an upper bound on time
#   ENVIRONMENT <VAR=value>...
#   SOAK                script/soak runs it and script/test does not
#   SLOW                script/test --all runs it, and script/test without arguments does not
#   REPLACES_MALLOC     links or preloads Freehold's malloc; not there under a sanitizer, which replaces malloc too
#
# The targets freehold_quick, freehold_slow and freehold_soak build what the tests need that are neither, slow, or soak; `all` leaves out what
# only the last two build. What a test runs of the system's is not looked for here, where it may come later: it fails where that is missing.
#
# The unit of ctest -j is a quarter of a CPU: script/test says -j 8 on two CPUs.
#
# Of another processor the tests run under CMAKE_CROSSCOMPILING_EMULATOR, and so do the programs that they start
# (tests/support/emulated.hpp).
include_guard(GLOBAL)
set(FREEHOLD_PYTHON /usr/bin/python3) # the system's, for which script/bootstrap installs packages, whatever another one in PATH has
foreach(when IN ITEMS quick slow soak)
  add_custom_target(freehold_${when})
endforeach()
if(FREEHOLD_GTEST_SOURCES) # cmake/musl.cmake, cmake/m32.cmake: Debian's GoogleTest is for glibc and 64 bits
  set(googletest /usr/src/googletest/googletest)
  add_library(freehold_gtest STATIC EXCLUDE_FROM_ALL ${googletest}/src/gtest-all.cc ${googletest}/src/gtest_main.cc)
  target_include_directories(freehold_gtest SYSTEM PUBLIC ${googletest}/include PRIVATE ${googletest})
  target_compile_features(freehold_gtest PRIVATE cxx_std_20)
  target_link_libraries(freehold_gtest PUBLIC ${FREEHOLD_CXX_RUNTIME})
  if(FREEHOLD_LIBC STREQUAL "musl")
    add_library(freehold_glibc_names STATIC EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/support/glibc_names.c)
    target_link_libraries(freehold_gtest PUBLIC freehold_glibc_names)
  endif()
  add_library(GTest::gtest_main ALIAS freehold_gtest)
else()
  find_package(GTest REQUIRED)
endif()
if(CMAKE_CROSSCOMPILING_EMULATOR)
  add_library(freehold_emulated OBJECT ${PROJECT_SOURCE_DIR}/tests/support/emulated_exec.cpp)
  target_link_libraries(freehold_emulated PRIVATE freehold_options)
  target_include_directories(freehold_emulated PRIVATE ${PROJECT_SOURCE_DIR})
  set(emulator ${CMAKE_CROSSCOMPILING_EMULATOR})
  list(JOIN emulator "\",\"" emulator)
  target_compile_definitions(freehold_emulated PRIVATE "FREEHOLD_TEST_EMULATOR=\"${emulator}\"")
endif()

function(freehold_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIMISED;REPLACES_MALLOC;SERIAL;SLEEPS;SLOW;SOAK" "TIMEOUT;PROCESSORS"
                        "SOURCES;LIBS;USES;ARGS;LABELS;ENVIRONMENT")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "freehold_add_test(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(arg_REPLACES_MALLOC AND FREEHOLD_SANITIZE)
    return()
  endif()
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME kind)
  set(target ${kind}_${name})
  freehold_unite_tests(${target} arg_SOURCES)
  add_executable(${target} ${arg_SOURCES})
  if(arg_SLOW OR arg_SOAK)
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  target_link_libraries(${target} PRIVATE freehold_options ${arg_LIBS} GTest::gtest_main)
  freehold_runs_emulated(${target})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  # Of these kinds the tests themselves take less time than their optimisation: half of the compiler's.
  if(kind MATCHES "^(unit|cli|doctor|misuse)$" AND NOT arg_OPTIMISED AND NOT FREEHOLD_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    # GCC warns of memory orders that only its optimiser would see to be constants.
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>
                           $<$<CXX_COMPILER_ID:GNU>:-Wno-invalid-memory-model>)
  endif()
  # The simulated machine decides what a model sees, not the compiler. -O2 takes half as long again to compile as -O1.
  if(kind STREQUAL "model" AND NOT arg_OPTIMISED AND NOT FREEHOLD_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
  endif()
  foreach(used IN LISTS arg_USES)
    string(REGEX MATCH "^([A-Z_]+)=(.+)$" matched ${used})
    target_compile_definitions(${target} PRIVATE FREEHOLD_${CMAKE_MATCH_1}="$<TARGET_FILE:${CMAKE_MATCH_2}>")
    add_dependencies(${target} ${CMAKE_MATCH_2})
  endforeach()
  freehold_register_test(${kind} ${name} ${target} ${arg_ARGS})
endfunction()

# freehold_unite_tests(<target> <variable>): with FREEHOLD_UNITY the tests among the sources of a program are compiled as one.
function(freehold_unite_tests target list)
  set(tests ${${list}})
  list(FILTER tests INCLUDE REGEX "_(test|model)[.]cpp$")
  list(LENGTH tests count)
  if(NOT FREEHOLD_UNITY OR count LESS 2)
    return()
  endif()
  set(rest ${${list}})
  list(REMOVE_ITEM rest ${tests})
  set(names "")
  set(files "")
  foreach(source IN LISTS tests)
    cmake_path(ABSOLUTE_PATH source)
    list(APPEND files ${source})
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    list(APPEND names ${source})
  endforeach()
  set(unit ${CMAKE_CURRENT_BINARY_DIR}/unity/${target}.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/unite_tests.cmake)
  add_custom_command(
    OUTPUT ${unit}
    COMMAND ${CMAKE_COMMAND} -D UNIT=${unit} "-DSOURCES=${names}" -D ROOT=${PROJECT_SOURCE_DIR} -P ${script}
    DEPENDS ${files} ${script}
    COMMENT ""
    VERBATIM)
  set(${list} ${unit} ${rest} PARENT_SCOPE)
endfunction()

# freehold_runs_emulated(<target>): what every program needs that starts others.
function(freehold_runs_emulated target)
  if(TARGET freehold_emulated)
    target_link_libraries(${target} PRIVATE freehold_emulated)
  endif()
endfunction()

function(freehold_add_command_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "REPLACES_MALLOC;SERIAL;SLEEPS;SLOW;SOAK" "TIMEOUT;PROCESSORS" "COMMAND;PYTHON;USES;LABELS;ENVIRONMENT")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "freehold_add_command_test(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(arg_REPLACES_MALLOC AND FREEHOLD_SANITIZE)
    return()
  endif()
  if(arg_PYTHON)
    list(PREPEND arg_COMMAND ${FREEHOLD_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/${arg_PYTHON})
  endif()
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME kind)
  freehold_register_test(${kind} ${name} ${arg_COMMAND})
  if(arg_USES)
    add_dependencies(${when} ${arg_USES})
  endif()
  set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

# For the two above, whose parsed properties it uses.
macro(freehold_register_test kind name)
  set(test ${FREEHOLD_TEST_PREFIX}${kind}.${name})
  add_test(NAME ${test} COMMAND ${ARGN})
  set(when freehold_quick)
  foreach(where IN ITEMS SLOW SOAK)
    if(arg_${where})
      string(TOLOWER ${where} label)
      list(APPEND arg_LABELS ${label})
      set(when freehold_${label})
    endif()
  endforeach()
  set(words ${ARGN} ${arg_ENVIRONMENT})
  string(REGEX MATCHALL "<TARGET_FILE[A-Z_]*:[a-z0-9_:]+" files "${words}")
  list(TRANSFORM files REPLACE "<TARGET_FILE[A-Z_]*:" "")
  list(TRANSFORM files REPLACE "::" "_")
  foreach(word IN LISTS words)
    if(TARGET ${word})
      list(APPEND files ${word})
    endif()
  endforeach()
  if(files)
    add_dependencies(${when} ${files})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  set(quarters 4)
  if(arg_SLEEPS)
    set(quarters 1)
  elseif(arg_PROCESSORS)
    math(EXPR quarters "4 * ${arg_PROCESSORS}")
  endif()
  if(CMAKE_CROSSCOMPILING_EMULATOR)
    math(EXPR arg_TIMEOUT "3 * ${arg_TIMEOUT}")
    list(APPEND arg_ENVIRONMENT GTEST_DEATH_TEST_USE_FORK=1) # rather than clone(), whose second child has no stack under QEMU
    list(APPEND arg_ENVIRONMENT G_SLICE=always-malloc) # QEMU's own memory, whose locks are free after a fork
  endif()
  set_tests_properties(
    ${test}
    PROPERTIES LABELS "${kind};${arg_LABELS}"
               TIMEOUT ${arg_TIMEOUT}
               COST ${arg_TIMEOUT} # what may take longest begins first: nothing long is left alone at the end
               PROCESSORS ${quarters}
               RUN_SERIAL ${arg_SERIAL}
               ENVIRONMENT "${arg_ENVIRONMENT}")
endmacro()
