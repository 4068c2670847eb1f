# SPDX-License-Identifier: MIT
# CMAKE_PROJECT_INCLUDE_BEFORE of a configuration that finds nothing but what `script/bootstrap demo` installs:
# what only a part of the tests looks for is not there.
set(only_demo_hides "^FREEHOLD_(ARCHIVE_|GO_|CARGO|ABIDIFF|VALGRIND|GEARMAN_|QEMU_)|^VALGRIND$")
foreach(kind IN ITEMS library program path)
  cmake_language(EVAL CODE "
    function(find_${kind} variable)
      if(\"\${variable}\" MATCHES \"\${only_demo_hides}\")
        set(\${variable} \${variable}-NOTFOUND PARENT_SCOPE)
      else()
        _find_${kind}(\${variable} \${ARGN})
      endif()
    endfunction()")
endforeach()
