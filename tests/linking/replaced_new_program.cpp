// SPDX-License-Identifier: MIT
// A program may replace operator new(size_t) and operator delete(void*) and nothing else. The standard says that every form
// that it does not replace calls these; ours must, too. Blocks of this program carry a header, so a delete that bypasses the
// program's own frees a pointer into the middle of a block.
#include <cstddef>
#include <cstdlib>
#include <new>

#include "tests/linking/check.h"

namespace {

constexpr std::size_t kHeader = 32;
volatile std::size_t g_too_much = std::size_t{1} << 62;
int g_news = 0, g_deletes = 0;

}  // namespace

void* operator new(std::size_t n) {
  auto* const memory = n > g_too_much / 2 ? nullptr : static_cast<char*>(std::malloc(kHeader + n));
  if (memory == nullptr) throw std::bad_alloc();
  ++g_news;
  return memory + kHeader;
}
void operator delete(void* block) noexcept {
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
    ::operator delete(::operator new(kBytes, std::nothrow), std::nothrow);
    ::operator delete[](::operator new[](kBytes, std::nothrow), std::nothrow);
  }
  CHECK(g_news == 6000 && g_deletes == 6000);
  // The program's own throw ends in a null pointer.
  CHECK(::operator new(g_too_much, std::nothrow) == nullptr);
  CHECK(::operator new[](g_too_much, std::nothrow) == nullptr);
  // Forms that it did not touch are whole by themselves.
  constexpr std::align_val_t kAlignment{128};
  for (int i = 0; i < 1000; ++i) {
    ::operator delete(::operator new(kBytes, kAlignment), kBytes, kAlignment);
    ::operator delete[](::operator new[](kBytes, kAlignment, std::nothrow), kAlignment);
  }
  CHECK(g_news == 6000 && g_deletes == 6000);
}
