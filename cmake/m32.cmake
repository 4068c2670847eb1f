# SPDX-License-Identifier: MIT
# Toolchain file: programs of 32 bits on x86-64 by GCC 12; `script/bootstrap m32` installs its libraries, and GoogleTest as sources.
# The package gcc-multilib, which excludes cross compilers, would only add a link to the kernel's headers.
set(CMAKE_C_COMPILER gcc-12)
set(CMAKE_CXX_COMPILER g++-12)
foreach(language IN ITEMS C CXX)
  set(CMAKE_${language}_FLAGS_INIT "-m32 -D_FILE_OFFSET_BITS=64 -msse2 -mfpmath=sse -idirafter /usr/include/x86_64-linux-gnu -Wno-psabi")
endforeach()
set(ZLIB_LIBRARY /usr/lib32/libz.so)
set(FREEHOLD_GTEST_SOURCES ON)
