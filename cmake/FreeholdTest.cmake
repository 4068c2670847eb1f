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
#   PROCESSORS <n>      how many CPUs the test keeps busy (default 1), so that no others run beside it
#   SLEEPS              a test that mostly waits, for time or for other processes: it counts as a quarter of a CPU
#   SERIAL              runs alone: for tests with an upper bound on time
#   ENVIRONMENT <VAR=value>...
#   REPLACES_MALLOC     links or preloads Freehold's malloc; not there under a sanitizer, which replaces malloc too
#
# The unit of ctest -j is a quarter of a CPU: script/test says -j 8 on two CPUs.
include_guard(GLOBAL)
find_package(GTest REQUIRED)

function(freehold_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "REPLACES_MALLOC;SERIAL;SLEEPS" "TIMEOUT;PROCESSORS"
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
  cmake_parse_arguments(PARSE_ARGV 1 arg "REPLACES_MALLOC;SERIAL;SLEEPS" "TIMEOUT;PROCESSORS" "COMMAND;LABELS;ENVIRONMENT")
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
  set(quarters 4)
  if(arg_SLEEPS)
    set(quarters 1)
  elseif(arg_PROCESSORS)
    math(EXPR quarters "4 * ${arg_PROCESSORS}")
  endif()
  set_tests_properties(
    ${test}
    PROPERTIES LABELS "${kind};${arg_LABELS}"
               TIMEOUT ${arg_TIMEOUT}
               PROCESSORS ${quarters}
               RUN_SERIAL ${arg_SERIAL}
               ENVIRONMENT "${arg_ENVIRONMENT}")
endmacro()
