// SPDX-License-Identifier: MIT
// A C++ library that a C program loads: its exceptions must work although its C++ runtime is loaded late.
#include <cstddef>
#include <new>

namespace {
volatile std::size_t g_too_much = std::size_t{1} << 62;
}

extern "C" __attribute__((visibility("default"))) int plugin_catches_bad_alloc() {
  int caught = 0;
  for (int i = 0; i < 3; ++i) {
    try {
      ::operator delete(::operator new(g_too_much));
    } catch (const std::bad_alloc&) {
      ++caught;
    }
    if (::operator new[](g_too_much, std::nothrow) == nullptr) ++caught;
  }
  return caught;
}

extern "C" __attribute__((visibility("default"))) int plugin_calls_its_handler() {
  static int calls;
  calls = 0;
  std::set_new_handler([] {
    if (++calls == 2) std::set_new_handler(nullptr);
  });
  try {
    ::operator delete(::operator new(g_too_much));
  } catch (const std::bad_alloc&) {
    return calls;
  }
  return 0;
}

// Nothing there could catch what a handler throws: it is not called, and the null comes at once.
extern "C" __attribute__((visibility("default"))) int plugin_new_nothrow_calls_its_handler() {
  static int calls;
  calls = 0;
  std::set_new_handler([] { ++calls; });
  const void* const block = ::operator new(g_too_much, std::nothrow);
  std::set_new_handler(nullptr);
  return block == nullptr ? calls : -1;
}
