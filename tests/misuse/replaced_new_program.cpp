// SPDX-License-Identifier: MIT
// A correct program that replaces operator new and delete by malloc and free, or a part of them: the forms that it does not
// replace call those that it does, so that their blocks are malloc's, too. Ends with 0.
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "tests/support/c_api.hpp"

void* operator new(std::size_t n) {
  if (void* const p = freehold::test::CApi::allocate(n); p != nullptr) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { freehold::test::CApi::deallocate(p); }
#if defined(FREEHOLD_TEST_REPLACE_SIZED)
void operator delete(void* p, std::size_t) noexcept { freehold::test::CApi::deallocate(p); }
#endif

int main() {
  using freehold::test::opaque;
  std::vector<std::string> texts;
  for (int i = 0; i < 1000; ++i) texts.emplace_back(static_cast<std::size_t>(i), 'x');
  const auto array = std::make_unique<std::string[]>(20);
  for (const std::size_t n : {1UL, 100UL, 20'000UL, 200'000UL}) {
    ::operator delete(opaque(::operator new(n)));
    ::operator delete(opaque(::operator new(n)), n);
    ::operator delete(opaque(::operator new(n, std::nothrow)), std::nothrow);
    ::operator delete[](opaque(::operator new[](n)));
    ::operator delete[](opaque(::operator new[](n)), n);
    ::operator delete[](opaque(::operator new[](n, std::nothrow)));
    ::operator delete(opaque(::operator new(n, std::align_val_t{64})), std::align_val_t{64});
  }
  return 0;
}
