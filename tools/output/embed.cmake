# SPDX-License-Identifier: MIT
# cmake -DOUTPUT=<file.cpp> -DHEADER=<header that declares them> "-DASSETS=<name>=<path>;..." -DNAMESPACE=<namespace> -P embed.cmake
# Writes a C++ source in which every asset is an array of bytes behind a std::string_view of its name. Bytes rather than
# string literals: nothing in a file can end them early, and no compiler has a limit on them.
set(text "// Made by tools/output/embed.cmake.\n#include \"${HEADER}\"\n")
foreach(asset IN LISTS ASSETS)
  string(REGEX MATCH "^([^=]+)=(.+)$" matched "${asset}")
  set(name ${CMAKE_MATCH_1})
  file(READ "${CMAKE_MATCH_2}" hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
  string(APPEND text "static constexpr unsigned char k_${name}[] = {\n${bytes}0};\n"
                     "const std::string_view freehold::${NAMESPACE}::assets::${name}{reinterpret_cast<const char*>(k_${name}), sizeof k_${name} - 1};\n")
endforeach()
file(WRITE "${OUTPUT}" "${text}")
