// SPDX-License-Identifier: MIT
// Tests operator new when memory is exhausted: the throw must reach this program's catch clauses, whichever C++ runtime the
// program has. A plain program, because it is built against every C++ library and in every way of linking.
#include <sys/resource.h>

#include <cstddef>
#include <initializer_list>
#include <new>

#include "tests/linking/check.h"
#if defined(FREEHOLD_TEST_LINKED)
#include "freehold/malloc.h"
#else
#include <dlfcn.h>
#endif

namespace {

bool freehold_answers() {
#if defined(FREEHOLD_TEST_LINKED)
  return freehold_is_active() == 1;
#else
  const auto is_active = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "freehold_is_active"));
  return is_active != nullptr && is_active() == 1;
#endif
}

// More memory than any machine has, in an amount that the compiler does not know.
volatile std::size_t g_too_much = std::size_t{1} << 62;
constexpr std::align_val_t kAlignment{256};

int g_handler_calls = 0;
struct HandlersOwn : std::bad_alloc {};

template <class Exception, class F>
bool throws(F&& f) {
  try {
    [[maybe_unused]] void* volatile kept = f();  // a compiler may leave out an unused allocation
  } catch (const Exception&) {
    return true;
  }
  return false;
}

void without_handler() {
  CHECK(throws<std::bad_alloc>([] { return ::operator new(g_too_much); }));
  CHECK(throws<std::bad_alloc>([] { return ::operator new[](g_too_much); }));
  CHECK(throws<std::bad_alloc>([] { return ::operator new(g_too_much, kAlignment); }));
  CHECK(throws<std::bad_alloc>([] { return ::operator new[](g_too_much, kAlignment); }));
  CHECK(::operator new(g_too_much, std::nothrow) == nullptr);
  CHECK(::operator new[](g_too_much, std::nothrow) == nullptr);
  CHECK(::operator new(g_too_much, kAlignment, std::nothrow) == nullptr);
  CHECK(::operator new[](g_too_much, kAlignment, std::nothrow) == nullptr);
}

void with_a_handler_that_gives_up() {
  const auto third_time = [] {
    if (++g_handler_calls == 3) std::set_new_handler(nullptr);
  };
  g_handler_calls = 0;
  std::set_new_handler(third_time);
  CHECK(throws<std::bad_alloc>([] { return ::operator new(g_too_much); }));
  CHECK(g_handler_calls == 3);
  g_handler_calls = 0;
  std::set_new_handler(third_time);
  CHECK(::operator new[](g_too_much, kAlignment, std::nothrow) == nullptr);
  CHECK(g_handler_calls == 3);
}

void with_a_handler_that_throws() {
  std::set_new_handler([] { throw HandlersOwn(); });
  CHECK(throws<HandlersOwn>([] { return ::operator new(g_too_much); }));
  CHECK(throws<HandlersOwn>([] { return ::operator new[](g_too_much, kAlignment); }));
  CHECK(::operator new(g_too_much, std::nothrow) == nullptr);
  CHECK(::operator new[](g_too_much, std::nothrow) == nullptr);
  CHECK(::operator new(g_too_much, kAlignment, std::nothrow) == nullptr);
  std::set_new_handler(nullptr);
}

// The handler makes room, and the second attempt succeeds.
void with_a_handler_that_helps() {
  rlimit limit{};
  CHECK(getrlimit(RLIMIT_DATA, &limit) == 0);
  static rlim_t former;
  former = limit.rlim_cur;
  limit.rlim_cur = rlim_t{256} << 20;
  CHECK(setrlimit(RLIMIT_DATA, &limit) == 0);
  g_handler_calls = 0;
  std::set_new_handler([] {
    rlimit more{};
    getrlimit(RLIMIT_DATA, &more);
    more.rlim_cur = former;
    setrlimit(RLIMIT_DATA, &more);
    ++g_handler_calls;
  });
  for (const bool nothrow : {false, true}) {
    constexpr std::size_t kGiB = std::size_t{1} << 30;
    char* const block = static_cast<char*>(nothrow ? ::operator new(kGiB, std::nothrow) : ::operator new(kGiB));
    CHECK(block != nullptr && g_handler_calls == 1);
    block[0] = block[kGiB - 1] = 1;
    ::operator delete(block);
  }
  std::set_new_handler(nullptr);
}

}  // namespace

int main() {
  CHECK(freehold_answers());
  without_handler();
  with_a_handler_that_gives_up();
  with_a_handler_that_throws();
  with_a_handler_that_helps();
}
