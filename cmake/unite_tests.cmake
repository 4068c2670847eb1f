# SPDX-License-Identifier: MIT
# Writes UNIT, one source with the text of all of SOURCES: with the tree in ROOT, `cmake -D UNIT=... -D SOURCES=... -D ROOT=... -P`. Most of the time of a test's
# compilation goes into headers. The anonymous namespace of each source lies in a namespace named after the source, so that helpers of
# two sources may have the same name.
set(text "")
foreach(source IN LISTS SOURCES)
  file(READ ${ROOT}/${source} part)
  string(REGEX MATCHALL "\n(namespace {|}  // namespace)\n" ends "${part}")
  list(LENGTH ends count)
  if(NOT count EQUAL 2)
    message(FATAL_ERROR "${source}: write one anonymous namespace around all that is the test's own; other sources are compiled with it (FREEHOLD_UNITY)")
  endif()
  string(MAKE_C_IDENTIFIER ${source} name)
  string(REPLACE "\nnamespace {\n" "\nnamespace ${name} { namespace {\n" part "${part}")
  string(REPLACE "\n}  // namespace\n" "\n}}  // namespace\n" part "${part}")
  string(APPEND text "#line 1 \"${source}\"\n${part}")
endforeach()
file(WRITE ${UNIT} "${text}")
