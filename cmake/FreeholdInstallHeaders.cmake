# SPDX-License-Identifier: MIT
# Run by `cmake --install`: lays down the headers, the public ones apart from the internal ones.
#
#   include/freehold/<header>                  the public headers, which a program includes
#   include/freehold/detail/<room>/<header>    what these include; not an interface, may change at any time
#
# Why at install: in the source tree a room's header is freehold/<room>/<header>, beside its sources, which is shortest for
# those who work there. Installed, the same place would look public. So every header that a public one reaches is copied with
# its `#include "freehold/<room>/..."` rewritten to `freehold/detail/<room>/...`; a header that none of them reaches is not
# installed at all.
#
#   PUBLIC       names of the public headers, below freehold/
#   ROOT         the source tree
#   STAGE        a folder of the build tree for the copies
#   DESTINATION  where include/ is, below CMAKE_INSTALL_PREFIX
cmake_policy(VERSION 3.25)

# Copies the header to STAGE, rewritten; `out` gets the internal headers that it includes.
function(freehold_stage_header header internal out)
  file(READ ${ROOT}/freehold/${header} text)
  string(REGEX MATCHALL "\n[ \t]*#[ \t]*include[ \t]*[<\"]freehold/[^>\"]+" lines "\n${text}")
  list(TRANSFORM lines REPLACE ".*freehold/" "")
  list(FILTER lines INCLUDE REGEX /)
  set(${out} ${lines} PARENT_SCOPE)
  string(REGEX REPLACE "(\n[ \t]*#[ \t]*include[ \t]*[<\"]freehold/)([^/>\"\n]+/)" "\\1detail/\\2" text "\n${text}")
  string(SUBSTRING "${text}" 1 -1 text)
  file(WRITE ${STAGE}/freehold/${internal}${header} "${text}")
endfunction()

file(REMOVE_RECURSE ${STAGE})
set(todo "")
foreach(header IN LISTS PUBLIC)
  freehold_stage_header(${header} "" reached)
  list(APPEND todo ${reached})
endforeach()
set(done "")
while(todo)
  list(POP_FRONT todo header)
  if(NOT header IN_LIST done)
    list(APPEND done ${header})
    freehold_stage_header(${header} detail/ reached)
    list(APPEND todo ${reached})
  endif()
endwhile()
file(INSTALL DESTINATION ${CMAKE_INSTALL_PREFIX}/${DESTINATION} TYPE DIRECTORY FILES ${STAGE}/freehold)
