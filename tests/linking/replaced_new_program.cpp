// SPDX-License-Identifier: MIT
// A program may replace operator new(size_t) and operator delete(void*) and nothing else. The standard says that every form
// that it does not replace calls these; ours must, too. With REPLACES_ARRAY_FORMS it replaces the array forms alone, which
// the other array forms call, also after those that are Freehold's have found out that they are. Blocks of this program
// carry a header, so a delete that bypasses the program's own frees a pointer into the middle of a block.
#include <cstddef>
#include <cstdlib>
#include <new>

#include "tests/linking/check.h"

#if defined(REPLACES_ARRAY_FORMS)
#define FORM []
constexpr int kCalls = 3000;
#else
#define FORM
constexpr int kCalls = 6000;
#endif

namespace {

constexpr std::size_t kHeader = 32;
volatile std::size_t g_too_much = std::size_t{1} << 62;
int g_news = 0, g_deletes = 0;

}  // namespace

void* operator new FORM(std::size_t n) {
  auto* const memory = n > g_too_much / 2 ? nullptr : static_cast<char*>(std::malloc(kHeader + n));
  if (memory == nullptr) throw std::bad_alloc();
  ++g_news;
  return memory + kHeader;
}
void operator delete FORM(void* block) noexcept {
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
  CHECK(g_news == kCalls && g_deletes == kCalls);
  // The program's own throw ends in a null pointer.
  CHECK(::operator new(g_too_much, std::nothrow) == nullptr);
  CHECK(::operator new[](g_too_much, std::nothrow) == nullptr);
  // Forms that it did not touch are whole by themselves.
  constexpr std::align_val_t kAlignment{128};
  for (int i = 0; i < 1000; ++i) {
    ::operator delete(::operator new(kBytes, kAlignment), kBytes, kAlignment);
    ::operator delete[](::operator new[](kBytes, kAlignment, std::nothrow), kAlignment);
  }
  CHECK(g_news == kCalls && g_deletes == kCalls);
}
