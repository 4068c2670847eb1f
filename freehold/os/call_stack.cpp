// SPDX-License-Identifier: MIT
#include "freehold/os/call_stack.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <unwind.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

// Weak: what is there is used, nothing is linked for it.
#pragma weak _Unwind_Backtrace
#pragma weak _Unwind_GetIPInfo
#pragma weak dlopen
#pragma weak dlsym

namespace freehold::os {
namespace {

using Walk = decltype(&_Unwind_Backtrace);
using Place = decltype(&_Unwind_GetIPInfo);

constinit std::atomic<Place> g_place{nullptr};
constinit std::atomic<Walk> g_walk{nullptr};  // written after g_place

// Keeps a thread that captures from a second capture inside: in its unwinder's malloc, or in a signal's handler. Those that
// are inside stand in a table, by their threads' addresses. A thread_local would be of the kind that malloc needs, and would
// put all the thread-local storage of a plugin with this code into the scarce static room.
class Inside {
 public:
  Inside() noexcept : thread_(static_cast<std::uintptr_t>(::pthread_self())) {
    const std::size_t first = thread_ / 4096;  // threads' addresses are far apart
    // Relaxed, all: a thread asks for what it wrote itself; the table publishes nothing.
    for (std::size_t i = 0; i < kLooks; ++i)
      if (g_places[(first + i) % kPlaces].thread.load(std::memory_order_relaxed) == thread_) return;
    for (std::size_t i = 0; i < kLooks && place_ == nullptr; ++i) {
      Place& place = g_places[(first + i) % kPlaces];
      std::uintptr_t nobody = 0;
      if (place.thread.compare_exchange_strong(nobody, thread_, std::memory_order_relaxed)) place_ = &place;
    }
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() {
    if (place_ != nullptr) place_->thread.store(0, std::memory_order_relaxed);
  }
  // False: the thread is inside already, or too many others are.
  explicit operator bool() const noexcept { return place_ != nullptr; }

 private:
  static constexpr std::size_t kPlaces = 64, kLooks = 16;
  struct alignas(64) Place {
    std::atomic<std::uintptr_t> thread{0};
  };
  static Place g_places[kPlaces];

  std::uintptr_t thread_;
  Place* place_ = nullptr;
};
constinit Inside::Place Inside::g_places[kPlaces];

struct Capture {
  Place place;
  void** addresses;
  unsigned depth;
  unsigned skip;
  unsigned count;
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
  auto& capture = *static_cast<Capture*>(argument);
  int is_before = 0;  // a signal came before the instruction; else the address is where a call returns to
  const std::uintptr_t address = capture.place(context, &is_before);
  if (address == 0) return _URC_END_OF_STACK;
  if (capture.skip != 0) {
    --capture.skip;
    return _URC_NO_REASON;
  }
  if (capture.count == capture.depth) return _URC_END_OF_STACK;
  capture.addresses[capture.count++] = reinterpret_cast<void*>(is_before != 0 ? address : address - 1);
  return capture.count == capture.depth ? _URC_END_OF_STACK : _URC_NO_REASON;
}

void use(Walk walk, Place place) noexcept {
  g_place.store(place, std::memory_order_relaxed);  // relaxed: the next store publishes it
  g_walk.store(walk, std::memory_order_release);    // pairs with the acquire in capture_call_stack()
}

// The library stays loaded.
void look_up() noexcept {
  if (&_Unwind_Backtrace != nullptr && &_Unwind_GetIPInfo != nullptr) return use(&_Unwind_Backtrace, &_Unwind_GetIPInfo);
  if (&dlopen == nullptr || &dlsym == nullptr) return;
  void* const library = ::dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  const auto walk = reinterpret_cast<Walk>(::dlsym(library, "_Unwind_Backtrace"));
  const auto place = reinterpret_cast<Place>(::dlsym(library, "_Unwind_GetIPInfo"));
  if (walk != nullptr && place != nullptr) use(walk, place);
}

// The beginning and the end of the code of this library or program, by the linker. Hidden: no other one's.
extern "C" [[gnu::visibility("hidden")]] const ElfW(Ehdr) __ehdr_start;
extern "C" [[gnu::visibility("hidden")]] const char etext;

}  // namespace

unsigned own_frames(void* const* addresses, unsigned count) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(&__ehdr_start), end = reinterpret_cast<std::uintptr_t>(&etext);
  if (begin + __ehdr_start.e_phoff == ::getauxval(AT_PHDR)) return 0;  // the program's own headers
  unsigned own = 0;
  while (own < count && reinterpret_cast<std::uintptr_t>(addresses[own]) - begin < end - begin) ++own;
  return own;
}

bool prepare_call_stacks() noexcept {
  const int saved = errno;
  if (g_walk.load(std::memory_order_acquire) == nullptr) look_up();
  void* first[4];  // the unwinder's own first call makes its tables
  const bool works = capture_call_stack(first, 4, 0) != 0;
  errno = saved;
  return works;
}

unsigned capture_call_stack(void** addresses, unsigned depth, unsigned skip) noexcept {
  const Walk walk = g_walk.load(std::memory_order_acquire);  // pairs with the release in use()
  if (walk == nullptr || depth == 0) return 0;
  const Inside inside;
  if (!inside) return 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // first and last, as a signal's handler sees it
  Capture capture{g_place.load(std::memory_order_relaxed), addresses, depth, skip + 1, 0};  // relaxed: published by g_walk
  (void)walk(visit, &capture);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return capture.count;
}

}  // namespace freehold::os
