# SPDX-License-Identifier: MIT
# Toolchain file: builds for arm64 (aarch64-linux-gnu) on another machine, by Debian's cross compiler or by Clang with its libraries, and
# runs the tests under QEMU. `script/bootstrap arm64` installs all three, and unpacks the target's libraries into FREEHOLD_ARM64_ROOT.
# QEMU_PAGESIZE=65536 in the environment gives the tests pages of 64 KiB.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(triplet aarch64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})
if(NOT DEFINED FREEHOLD_ARM64_ROOT)
  if(DEFINED ENV{XDG_CACHE_HOME})
    set(cache $ENV{XDG_CACHE_HOME})
  else()
    set(cache $ENV{HOME}/.cache)
  endif()
  set(FREEHOLD_ARM64_ROOT ${cache}/freehold/arm64 CACHE PATH "Where script/bootstrap arm64 unpacks the target's libraries")
endif()
set(CMAKE_SYSROOT ${FREEHOLD_ARM64_ROOT})
if(CMAKE_CXX_COMPILER MATCHES clang)
  foreach(language IN ITEMS C CXX)
    set(CMAKE_${language}_COMPILER_TARGET ${triplet})
    set(CMAKE_${language}_FLAGS_INIT "--gcc-install-dir=/usr/lib/gcc-cross/${triplet}/12")
  endforeach()
endif()

# Static, so that LD_PRELOAD of a test names a library of the target and QEMU's own dynamic linker does not look at it. The C library is
# that of Debian's arm64: under that of the cross compiler (-L /usr/aarch64-linux-gnu) pthread_create never returns.
find_program(FREEHOLD_QEMU_ARM64 qemu-aarch64-static)
mark_as_advanced(FREEHOLD_QEMU_ARM64)
set(CMAKE_CROSSCOMPILING_EMULATOR ${FREEHOLD_QEMU_ARM64} -L ${FREEHOLD_ARM64_ROOT})

# Of libraries and packages only the target's; of programs only the host's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind IN ITEMS LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/${triplet}/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
