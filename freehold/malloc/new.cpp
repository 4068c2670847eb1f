// SPDX-License-Identifier: MIT
// Every form of operator new and delete. A program may replace some of them with its own. It then expects the others to call
// these, as the standard says of the default ones. So every form but the two basic ones goes through the symbol of a more
// basic one. All symbols are weak: in a static link the program's own definition wins instead of colliding. cxx_runtime.hpp
// has what is needed when memory is exhausted.
#include <stddef.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "freehold/alloc/engine.hpp"
#include "freehold/alloc/front/fast_path.hpp"
#include "freehold/malloc/cxx_runtime.hpp"
#include "freehold/malloc/export.hpp"
#include "freehold/os/system_call.hpp"

namespace {

namespace alloc = freehold::alloc;
namespace cxx = freehold::cxx;
using alloc::Claim;
using alloc::Family;

enum class OnFailure { kThrow, kNull };

// C++ code in a process where no C++ runtime can be found: its runtime is linked into a library that hides it.
[[noreturn]] void no_runtime_to_throw_with() noexcept {
  static constexpr char kLine[] = "freehold: operator new: out of memory, and no C++ runtime to throw std::bad_alloc\n";
  [[maybe_unused]] const auto written = freehold::os::kernel::write(STDERR_FILENO, kLine, sizeof kLine - 1);
  freehold::os::kernel::abort();
}

// [new.delete.single]: call the new handler until it gives up, then throw, or return null for nothrow.
template <class Try>
[[gnu::noinline, gnu::cold]] void* new_slow(Try&& try_again, OnFailure on_failure) {
  const cxx::CxxRuntime runtime = cxx::find_cxx_runtime();
  for (;;) {
    const std::new_handler handler = runtime.get_new_handler != nullptr ? runtime.get_new_handler() : nullptr;
    if (handler == nullptr) break;
    if (on_failure == OnFailure::kThrow)
      handler();
    else if (!cxx::returns(handler))
      return nullptr;
    if (void* block = try_again(); block != nullptr) return block;
  }
  if (on_failure == OnFailure::kNull) return nullptr;
  if (runtime.throw_bad_alloc != nullptr) runtime.throw_bad_alloc();
  no_runtime_to_throw_with();
}

template <Family kFamily>
[[gnu::always_inline]] inline void* new_any(size_t bytes, OnFailure on_failure) {
  if (void* block = alloc::allocate_inline<kFamily>(bytes); block != nullptr) [[likely]]
    return block;
  return new_slow([=] { return alloc::allocate_as(kFamily, bytes); }, on_failure);
}

void* new_aligned(Family family, size_t bytes, std::align_val_t alignment, OnFailure on_failure) {
  const auto n = static_cast<size_t>(alignment);
  const auto attempt = [=]() -> void* {
    return n != 0 && (n & (n - 1)) == 0 ? alloc::allocate_as(family, bytes, n) : nullptr;
  };
  if (void* block = attempt(); block != nullptr) [[likely]]
    return block;
  return new_slow(attempt, on_failure);
}

// Returns whether `current` is still ours; the compiler may not know that it looks at two names of one function.
template <class F>
bool is_ours(F* current, F* ours) noexcept {
  asm("" : "+r"(current));
  return current == ours;
}

}  // namespace

#define FREEHOLD_REPLACEABLE FREEHOLD_EXPORT __attribute__((weak))

// The throwing forms, under names that a program cannot replace. An array form whose basic form is ours need not call it.
extern "C" {
FREEHOLD_FAST_PATH void* freehold_new(size_t n) { return new_any<Family::kNew>(n, OnFailure::kThrow); }
void* freehold_new_array(size_t n);
void* freehold_new_aligned(size_t n, std::align_val_t a) { return new_aligned(Family::kNew, n, a, OnFailure::kThrow); }
void* freehold_new_array_aligned(size_t n, std::align_val_t a);
}
FREEHOLD_REPLACEABLE __attribute__((alias("freehold_new"))) void* operator new(size_t);
FREEHOLD_REPLACEABLE __attribute__((alias("freehold_new_aligned"))) void* operator new(size_t, std::align_val_t);

namespace {

bool new_is_ours() noexcept { return is_ours<void*(size_t)>(::operator new, freehold_new); }
bool new_aligned_is_ours() noexcept {
  return is_ours<void*(size_t, std::align_val_t)>(::operator new, freehold_new_aligned);
}

}  // namespace

extern "C" {
void* freehold_new_array(size_t n) {
  return new_is_ours() ? new_any<Family::kNewArray>(n, OnFailure::kThrow) : ::operator new(n);
}
void* freehold_new_array_aligned(size_t n, std::align_val_t a) {
  return new_aligned_is_ours() ? new_aligned(Family::kNewArray, n, a, OnFailure::kThrow) : ::operator new(n, a);
}
}
FREEHOLD_REPLACEABLE __attribute__((alias("freehold_new_array"))) void* operator new[](size_t);
FREEHOLD_REPLACEABLE __attribute__((alias("freehold_new_array_aligned"))) void* operator new[](size_t, std::align_val_t);

namespace {

// Returns whether a call of a throwing form would end in ours. Then its nothrow form need not throw and catch to return
// null.
bool new_array_is_ours() noexcept { return is_ours<void*(size_t)>(::operator new[], freehold_new_array) && new_is_ours(); }
bool new_array_aligned_is_ours() noexcept {
  return is_ours<void*(size_t, std::align_val_t)>(::operator new[], freehold_new_array_aligned) && new_aligned_is_ours();
}

}  // namespace

FREEHOLD_REPLACEABLE void* operator new(size_t n, const std::nothrow_t&) noexcept {
  return new_is_ours() ? new_any<Family::kNew>(n, OnFailure::kNull) : cxx::new_or_null(n);
}
FREEHOLD_REPLACEABLE void* operator new[](size_t n, const std::nothrow_t&) noexcept {
  return new_array_is_ours() ? new_any<Family::kNewArray>(n, OnFailure::kNull) : cxx::new_array_or_null(n);
}
FREEHOLD_REPLACEABLE void* operator new(size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return new_aligned_is_ours() ? new_aligned(Family::kNew, n, a, OnFailure::kNull) : cxx::new_or_null(n, a);
}
FREEHOLD_REPLACEABLE void* operator new[](size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return new_array_aligned_is_ours() ? new_aligned(Family::kNewArray, n, a, OnFailure::kNull) : cxx::new_array_or_null(n, a);
}

// ---- delete -----------------------------------------------------------------------------------------------------------

namespace {

constexpr size_t kUnsaid = Claim::kUnsaid;

// A program that replaces new alone gives back by ours what it took by anything.
[[gnu::noinline]] void give_back(void* p, Family family, size_t bytes, size_t alignment) noexcept {
  alloc::deallocate_as(p, {new_is_ours() ? family : Family::kAny, bytes, alignment});
}
// A basic form, which is ours.
[[gnu::noinline]] void delete_one_slow(void* p) noexcept { give_back(p, Family::kNew, kUnsaid, 0); }

}  // namespace

extern "C" FREEHOLD_FAST_PATH void freehold_delete(void* p) noexcept {
  if (!alloc::push_inline(p, alloc::g_span_count)) [[unlikely]]
    delete_one_slow(p);
}
FREEHOLD_REPLACEABLE __attribute__((alias("freehold_delete"))) void operator delete(void*) noexcept;

// Programs call the sized and array forms most. These take the fast path themselves once it is known that the forms which
// they stand for are ours: until then, and for ever if they are not, there are no spans for them.
extern "C" void freehold_delete_array(void* p) noexcept;

namespace {

constinit std::atomic<size_t> g_default_spans{0};

bool delete_is_ours() noexcept { return is_ours<void(void*) noexcept>(::operator delete, freehold_delete); }
bool delete_array_is_ours() noexcept {
  return is_ours<void(void*) noexcept>(::operator delete[], freehold_delete_array) && delete_is_ours();
}

void learn_defaults() noexcept {
  // Relaxed: a smaller value is asked again.
  if (const size_t spans = alloc::span_count(); g_default_spans.load(std::memory_order_relaxed) != spans)
    if (delete_array_is_ours()) g_default_spans.store(spans, std::memory_order_relaxed);
}
[[gnu::noinline]] void delete_slow(void* p, size_t bytes) noexcept {
  learn_defaults();
  if (delete_is_ours()) return give_back(p, Family::kNew, bytes, 0);
  ::operator delete(p);
}
[[gnu::noinline]] void delete_array_slow(void* p, size_t bytes) noexcept {
  learn_defaults();
  if (delete_array_is_ours()) return give_back(p, Family::kNewArray, bytes, 0);
  ::operator delete[](p);
}
// The basic array form: it stands for operator delete.
[[gnu::noinline]] void delete_array_unsized(void* p) noexcept {
  learn_defaults();
  if (delete_is_ours()) return give_back(p, Family::kNewArray, kUnsaid, 0);
  ::operator delete(p);
}
[[gnu::always_inline]] inline bool take_back(void* p) noexcept { return alloc::push_inline(p, g_default_spans); }

}  // namespace

extern "C" void freehold_delete_array(void* p) noexcept {
  if (!take_back(p)) [[unlikely]]
    delete_array_unsized(p);
}
FREEHOLD_REPLACEABLE __attribute__((alias("freehold_delete_array"))) void operator delete[](void*) noexcept;
FREEHOLD_REPLACEABLE void operator delete(void* p, size_t n) noexcept {
  if (!take_back(p)) [[unlikely]]
    delete_slow(p, n);
}
FREEHOLD_REPLACEABLE void operator delete[](void* p, size_t n) noexcept {
  if (!take_back(p)) [[unlikely]]
    delete_array_slow(p, n);
}
FREEHOLD_REPLACEABLE void operator delete(void* p, const std::nothrow_t&) noexcept { ::operator delete(p); }
FREEHOLD_REPLACEABLE void operator delete[](void* p, const std::nothrow_t&) noexcept { ::operator delete[](p); }

// The aligned forms, each of which stands for the one above it.
extern "C" {
void freehold_delete_aligned(void* p, std::align_val_t a) noexcept {
  if (!alloc::push_inline(p, alloc::g_span_count)) [[unlikely]]
    give_back(p, Family::kNew, kUnsaid, static_cast<size_t>(a));
}
void freehold_delete_array_aligned(void* p, std::align_val_t a) noexcept;
}
FREEHOLD_REPLACEABLE __attribute__((alias("freehold_delete_aligned"))) void operator delete(void*,
                                                                                            std::align_val_t) noexcept;

namespace {

bool delete_aligned_is_ours() noexcept {
  return is_ours<void(void*, std::align_val_t) noexcept>(::operator delete, freehold_delete_aligned);
}
bool delete_array_aligned_is_ours() noexcept {
  return is_ours<void(void*, std::align_val_t) noexcept>(::operator delete[], freehold_delete_array_aligned) &&
         delete_aligned_is_ours();
}

}  // namespace

extern "C" void freehold_delete_array_aligned(void* p, std::align_val_t a) noexcept {
  if (!delete_aligned_is_ours()) return ::operator delete(p, a);
  if (!alloc::push_inline(p, alloc::g_span_count)) [[unlikely]]
    give_back(p, Family::kNewArray, kUnsaid, static_cast<size_t>(a));
}
FREEHOLD_REPLACEABLE __attribute__((alias("freehold_delete_array_aligned"))) void operator delete[](
    void*, std::align_val_t) noexcept;
FREEHOLD_REPLACEABLE void operator delete(void* p, size_t n, std::align_val_t a) noexcept {
  if (!delete_aligned_is_ours()) return ::operator delete(p, a);
  if (!alloc::push_inline(p, alloc::g_span_count)) [[unlikely]]
    give_back(p, Family::kNew, n, static_cast<size_t>(a));
}
FREEHOLD_REPLACEABLE void operator delete[](void* p, size_t n, std::align_val_t a) noexcept {
  if (!delete_array_aligned_is_ours()) return ::operator delete[](p, a);
  if (!alloc::push_inline(p, alloc::g_span_count)) [[unlikely]]
    give_back(p, Family::kNewArray, n, static_cast<size_t>(a));
}
FREEHOLD_REPLACEABLE void operator delete(void* p, std::align_val_t a, const std::nothrow_t&) noexcept {
  ::operator delete(p, a);
}
FREEHOLD_REPLACEABLE void operator delete[](void* p, std::align_val_t a, const std::nothrow_t&) noexcept {
  ::operator delete[](p, a);
}
