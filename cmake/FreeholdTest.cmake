# SPDX-License-Identifier: MIT
# freehold_add_test(<name> SOURCES <file>... [LIBS <target>...] [ARGS <arg>...] [properties])
#   One GoogleTest binary, one ctest test. In tests/<kind> the target is <kind>_<name>, the test <kind>.<name>.
#
# freehold_add_command_test(<name> COMMAND <command> <arg>... [properties])
#   The same for a test that is a command.
#
# Properties, of both:
#   LABELS <label>...   beside the kind
#   TIMEOUT <seconds>   default 300: it ends what hangs, a slow machine must not fail a test
#   PROCESSORS <n>      how many CPUs the test keeps busy (default 1), so that ctest -j starts no others beside it
#   SERIAL              runs alone: for tests with an upper bound on time
#   ENVIRONMENT <VAR=value>...
#   REPLACES_MALLOC     links or preloads Freehold's malloc; not there under a sanitizer, which replaces malloc too
include_guard(GLOBAL)
find_package(GTest REQUIRED)

function(freehold_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "REPLACES_MALLOC;SERIAL" "TIMEOUT;PROCESSORS"
                        "SOURCES;LIBS;ARGS;LABELS;ENVIRONMENT")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "freehold_add_test(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(arg_REPLACES_MALLOC AND FREEHOLD_SANITIZE)
    return()
  endif()
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME kind)
  set(target ${kind}_${name})
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE freehold_options ${arg_LIBS} GTest::gtest_main)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  freehold_register_test(${kind} ${name} ${target} ${arg_ARGS})
endfunction()

function(freehold_add_command_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "REPLACES_MALLOC;SERIAL" "TIMEOUT;PROCESSORS" "COMMAND;LABELS;ENVIRONMENT")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "freehold_add_command_test(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(arg_REPLACES_MALLOC AND FREEHOLD_SANITIZE)
    return()
  endif()
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME kind)
  freehold_register_test(${kind} ${name} ${arg_COMMAND})
endfunction()

# For the two above, whose parsed properties it uses.
macro(freehold_register_test kind name)
  set(test ${FREEHOLD_TEST_PREFIX}${kind}.${name})
  add_test(NAME ${test} COMMAND ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 1)
  endif()
  set_tests_properties(
    ${test}
    PROPERTIES LABELS "${kind};${arg_LABELS}"
               TIMEOUT ${arg_TIMEOUT}
               PROCESSORS ${arg_PROCESSORS}
               RUN_SERIAL ${arg_SERIAL}
               ENVIRONMENT "${arg_ENVIRONMENT}")
endmacro()
