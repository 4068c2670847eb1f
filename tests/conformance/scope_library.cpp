// SPDX-License-Identifier: MIT
// A library that allocates when it is loaded, and frees when it is unloaded.
#include <cstdlib>

namespace {
struct Kept {
  void* block = std::malloc(1000);
  ~Kept() { std::free(block); }
} g_kept;
}  // namespace
