# SPDX-License-Identifier: MIT
# Toolchain file: builds for arm64 (aarch64-linux-gnu) on another machine, by Debian's cross compiler or by Clang with its libraries;
# `script/bootstrap arm64` installs both, and QEMU, which runs the tests. Libraries of the target are Debian's multiarch packages.
# QEMU_PAGESIZE=65536 in the environment gives the tests pages of 64 KiB.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(triplet aarch64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})
if(CMAKE_CXX_COMPILER MATCHES clang)
  set(CMAKE_C_COMPILER_TARGET ${triplet})
  set(CMAKE_CXX_COMPILER_TARGET ${triplet})
endif()

# Static, so that LD_PRELOAD of a test names a library of the target and QEMU's own dynamic linker does not look at it. The target's
# C library is that of libc6:arm64: under that of the cross compiler (-L /usr/aarch64-linux-gnu) pthread_create never returns.
find_program(FREEHOLD_QEMU_ARM64 qemu-aarch64-static)
mark_as_advanced(FREEHOLD_QEMU_ARM64)
set(CMAKE_CROSSCOMPILING_EMULATOR ${FREEHOLD_QEMU_ARM64})

# Of pkg-config only the target's files; and the libraries that no package of the target can bring beside the host's.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/${triplet}/pkgconfig:/usr/share/pkgconfig)
if(NOT DEFINED FREEHOLD_ARM64_LIBRARIES)
  if(DEFINED ENV{XDG_CACHE_HOME})
    set(cache $ENV{XDG_CACHE_HOME})
  else()
    set(cache $ENV{HOME}/.cache)
  endif()
  set(FREEHOLD_ARM64_LIBRARIES ${cache}/freehold/arm64 CACHE PATH "Where script/bootstrap arm64_libraries unpacks what cannot be installed")
endif()
# Never the host's: find_library would take an archive of the host's from /usr/lib/llvm-19.
set(FREEHOLD_UNWIND_LIBRARY ${FREEHOLD_ARM64_LIBRARIES}/usr/lib/llvm-19/lib/libunwind.a)
if(NOT EXISTS ${FREEHOLD_UNWIND_LIBRARY})
  set(FREEHOLD_UNWIND_LIBRARY FREEHOLD_UNWIND_LIBRARY-NOTFOUND)
endif()

# Without the libraries of script/bootstrap arm64_libraries all is built but the command.
if(NOT EXISTS /usr/lib/${triplet}/cmake/fmt)
  set(FREEHOLD_BUILD_CLI OFF)
endif()
