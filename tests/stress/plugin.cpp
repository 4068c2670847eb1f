// SPDX-License-Identifier: MIT
// A plug-in in C++ that a program in C may load: everything a library can ask of a malloc that was there before it.
#include <malloc.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "tests/support/c_api.hpp"

namespace {
std::vector<std::string> g_strings(1000, std::string(100, 'p'));
// Large enough for trouble, were it in the static TLS block.
thread_local char t_buffer[2000];
thread_local std::unique_ptr<std::string> t_string;
}  // namespace

// Blocks that cross between the program and the plugin. 0: all is well.
extern "C" __attribute__((visibility("default"))) int plugin_exchange(void** block, std::size_t bytes) {
  using freehold::test::opaque;
  char* const theirs = static_cast<char*>(*block);
  if (::malloc_usable_size(theirs) < bytes || theirs[bytes - 1] != 1) return 1;
  char* const grown = static_cast<char*>(opaque(std::realloc(theirs, 3 * bytes)));
  if (grown == nullptr || grown[bytes - 1] != 1) return 2;
  std::free(grown);
  char* const ours = static_cast<char*>(opaque(std::malloc(bytes)));
  ours[bytes - 1] = 2;
  *block = ours;
  return 0;
}

// 0: all is well. 2: an impossible size did not throw.
extern "C" __attribute__((visibility("default"))) int plugin_use() {
  using freehold::test::opaque;
  t_buffer[5] = 1;
  t_string = std::make_unique<std::string>(5000, 't');
  for (const std::string& s : g_strings)
    if (s != std::string(100, 'p')) return 1;
  try {
    opaque(::operator new(opaque(std::size_t{1} << 60)));
    return 2;
  } catch (const std::bad_alloc&) {
  }
  return 0;
}
