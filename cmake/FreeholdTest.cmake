# freehold_add_test(<name> SOURCES <file>... [LIBS <target>...] [LABELS <label>...] [TIMEOUT <seconds>]
#                   [PROCESSORS <n>] [ARGS <arg>...] [ENVIRONMENT <VAR=value>...] [REPLACES_MALLOC] [SERIAL])
#
# One GoogleTest binary, one ctest test. In tests/<kind> the target is <kind>_<name>, the test <kind>.<name>, and the
# kind is its first label. PROCESSORS (default 1) is how many CPUs the test keeps busy, so that ctest -j does not
# start others beside it; SERIAL runs it alone, for tests with an upper bound on time.
# REPLACES_MALLOC: the test links or preloads Freehold's malloc; not built under a sanitizer, which replaces malloc too.
include_guard(GLOBAL)
find_package(GTest REQUIRED)

function(freehold_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "REPLACES_MALLOC;SERIAL" "TIMEOUT;PROCESSORS" "SOURCES;LIBS;LABELS;ARGS;ENVIRONMENT")
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
  add_test(NAME ${FREEHOLD_TEST_PREFIX}${kind}.${name} COMMAND ${target} ${arg_ARGS})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 1)
  endif()
  set_tests_properties(
    ${FREEHOLD_TEST_PREFIX}${kind}.${name}
    PROPERTIES LABELS "${kind};${arg_LABELS}"
               TIMEOUT ${arg_TIMEOUT}
               PROCESSORS ${arg_PROCESSORS}
               RUN_SERIAL ${arg_SERIAL}
               ENVIRONMENT "${arg_ENVIRONMENT}")
endfunction()
