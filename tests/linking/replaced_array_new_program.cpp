// SPDX-License-Identifier: MIT
// A program may replace operator new[](size_t) and operator delete[](void*) alone. The sized array form calls the program's
// own, also after the other forms, which are Freehold's, have found out that they are. Blocks of this program's arrays carry
// a header, so a delete that bypasses its own frees a pointer into the middle of a block.
#include <cstddef>
#include <cstdlib>
#include <new>

#include "tests/linking/check.h"

namespace {

constexpr std::size_t kHeader = 32;
int g_news = 0, g_deletes = 0;

}  // namespace

void* operator new[](std::size_t n) {
  auto* const memory = static_cast<char*>(std::malloc(kHeader + n));
  if (memory == nullptr) throw std::bad_alloc();
  ++g_news;
  return memory + kHeader;
}
void operator delete[](void* block) noexcept {
  if (block == nullptr) return;
  ++g_deletes;
  std::free(static_cast<char*>(block) - kHeader);
}

int main() {
  constexpr std::size_t kBytes = 40;
  for (int i = 0; i < 1000; ++i) {
    ::operator delete(::operator new(kBytes));
    ::operator delete(::operator new(kBytes), kBytes);
    ::operator delete[](::operator new[](kBytes));
    ::operator delete[](::operator new[](kBytes), kBytes);
    ::operator delete[](::operator new[](kBytes, std::nothrow), std::nothrow);
  }
  CHECK(g_news == 3000 && g_deletes == 3000);
}
