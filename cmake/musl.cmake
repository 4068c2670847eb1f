# SPDX-License-Identifier: MIT
# Toolchain file: builds libfreehold.so for musl on Debian, by Clang with the headers of libc++; `script/bootstrap musl` installs both.
# The library needs no C++ runtime; the tests link libc++ in.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(triplet x86_64-linux-musl)
set(musl /usr/lib/${triplet})
set(libcxx /usr/lib/llvm-19)
set(FREEHOLD_LIBC musl)
set(FREEHOLD_GTEST_SOURCES ON)
foreach(language IN ITEMS C CXX)
  set(CMAKE_${language}_COMPILER_TARGET ${triplet})
endforeach()

# The kernel's headers without those of glibc, beside which they lie.
set(headers ${CMAKE_BINARY_DIR}/musl-headers)
if(NOT EXISTS ${headers}/c++/__config_site)
  file(MAKE_DIRECTORY ${headers}/kernel)
  foreach(folder IN ITEMS linux asm-generic x86_64-linux-gnu/asm)
    cmake_path(GET folder FILENAME name)
    file(CREATE_LINK /usr/include/${folder} ${headers}/kernel/${name} SYMBOLIC)
  endforeach()
  # libc++ as configured for musl.
  file(READ ${libcxx}/include/c++/v1/__config_site site)
  string(REPLACE "/* #undef _LIBCPP_HAS_MUSL_LIBC */" "#define _LIBCPP_HAS_MUSL_LIBC" site "${site}")
  file(WRITE ${headers}/c++/__config_site "${site}")
endif()

set(CMAKE_C_FLAGS_INIT "-nostdlibinc -isystem /usr/include/${triplet} -isystem ${headers}/kernel")
set(CMAKE_CXX_FLAGS_INIT "-nostdinc++ -isystem ${headers}/c++ -isystem ${libcxx}/include/c++/v1 ${CMAKE_C_FLAGS_INIT}")
foreach(kind IN ITEMS EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-B${musl} -L${musl} -static-libgcc -nostdlib++")
endforeach()
set(FREEHOLD_CXX_RUNTIME ${libcxx}/lib/libc++.a ${libcxx}/lib/libc++abi.a ${libcxx}/lib/libunwind.a)
