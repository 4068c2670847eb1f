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
#include <type_traits>

#include "freehold/os/runtime_frames.hpp"

// Weak: what is there is used, nothing is linked for it.
#pragma weak _Unwind_Backtrace
#pragma weak _Unwind_GetIPInfo
#pragma weak _Unwind_GetCFA
#pragma weak _Unwind_GetGR
#pragma weak _Unwind_FindEnclosingFunction
#pragma weak dlopen
#pragma weak dlsym

namespace freehold::os {
namespace {

// What was looked up, maybe by several threads at once, which find the same. `walk` is written last.
struct Found {
  std::atomic<decltype(Unwinder::walk)> walk{nullptr};
  std::atomic<decltype(Unwinder::place)> place{nullptr};
  std::atomic<decltype(Unwinder::stack)> stack{nullptr};
  std::atomic<decltype(Unwinder::general)> general{nullptr};
  std::atomic<decltype(Unwinder::function_at)> function_at{nullptr};  // null: stacks end at code made at run time
};
constinit Found g_found;

void publish(const Unwinder& unwinder) noexcept {
  // Relaxed, but the last: it publishes the others, and pairs with the acquire in unwinder_found().
  g_found.place.store(unwinder.place, std::memory_order_relaxed);
  g_found.stack.store(unwinder.stack, std::memory_order_relaxed);
  g_found.general.store(unwinder.general, std::memory_order_relaxed);
  g_found.function_at.store(unwinder.function_at, std::memory_order_relaxed);
  g_found.walk.store(unwinder.walk, std::memory_order_release);
}
// Without `walk`: there is none, or nobody has looked yet.
[[nodiscard]] Unwinder unwinder_found() noexcept {
  const auto walk = g_found.walk.load(std::memory_order_acquire);
  return {.walk = walk,  // relaxed, the others: published by `walk`
          .place = g_found.place.load(std::memory_order_relaxed),
          .stack = g_found.stack.load(std::memory_order_relaxed),
          .general = g_found.general.load(std::memory_order_relaxed),
          .function_at = g_found.function_at.load(std::memory_order_relaxed)};
}

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
  const Unwinder* unwinder;
  void** addresses;
  unsigned depth;
  unsigned skip;
  unsigned count = 0;
  FrameState* last = nullptr;  // where the frame that was visited last stands, if that is asked
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
  auto& capture = *static_cast<Capture*>(argument);
  int is_before = 0;  // a signal came before the instruction; else the address is where a call returns to
  const std::uintptr_t address = capture.unwinder->place(context, &is_before);
  if (address == 0) return _URC_END_OF_STACK;
  if (capture.skip != 0) {
    --capture.skip;
    return _URC_NO_REASON;
  }
  if (capture.count == capture.depth) return _URC_END_OF_STACK;
  capture.addresses[capture.count++] = reinterpret_cast<void*>(is_before != 0 ? address : address - 1);
  if (capture.last != nullptr) *capture.last = RuntimeFrames::state_of(context, address, *capture.unwinder);
  return capture.count == capture.depth ? _URC_END_OF_STACK : _URC_NO_REASON;
}

// Whether the stack ends at code without unwind information, which is no end.
[[nodiscard]] bool is_cut(const Capture& capture) noexcept {
  if (capture.unwinder->function_at == nullptr || capture.count == 0 || capture.count == capture.depth) return false;
  const auto last = reinterpret_cast<std::uintptr_t>(capture.addresses[capture.count - 1]);
  return capture.unwinder->function_at(reinterpret_cast<void*>(last + 1)) == nullptr;
}

// Goes on from a stack that is cut. Pre: capture.last is known.
void go_on(Capture& capture) noexcept {
  while (is_cut(capture)) {
    bool found = false;
    const unsigned room = capture.depth - capture.count;
    capture.count +=
        RuntimeFrames::step_out(*capture.last, *capture.unwinder, capture.addresses + capture.count, room, found);
    if (!found || capture.count == capture.depth) return;
    const unsigned before = capture.count;
    capture.skip = 1;
    RuntimeFrames::walk_from(*capture.last, *capture.unwinder, visit, &capture);
    if (capture.count == before) return;
  }
}

// The library stays loaded.
void look_up() noexcept {
  Unwinder found{};
  if (&_Unwind_Backtrace != nullptr && &_Unwind_GetIPInfo != nullptr) {
    found = {&_Unwind_Backtrace, &_Unwind_GetIPInfo, &_Unwind_GetCFA, &_Unwind_GetGR, &_Unwind_FindEnclosingFunction};
  } else {
    if (&dlopen == nullptr || &dlsym == nullptr) return;
    void* const library = ::dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    const auto find = [library](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    };
    find(found.walk, "_Unwind_Backtrace");
    find(found.place, "_Unwind_GetIPInfo");
    find(found.stack, "_Unwind_GetCFA");
    find(found.general, "_Unwind_GetGR");
    find(found.function_at, "_Unwind_FindEnclosingFunction");
  }
  if (found.walk == nullptr || found.place == nullptr) return;
  if (found.stack == nullptr || found.general == nullptr || !RuntimeFrames::are_supported()) found.function_at = nullptr;
  publish(found);
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
  if (unwinder_found().walk == nullptr) look_up();
  void* first[4];  // the unwinder's own first call makes its tables
  const bool works = capture_call_stack(first, 4, 0) != 0;
  errno = saved;
  return works;
}

unsigned capture_call_stack(void** addresses, unsigned depth, unsigned skip) noexcept {
  const Unwinder unwinder = unwinder_found();
  if (unwinder.walk == nullptr || depth == 0) return 0;
  const Inside inside;
  if (!inside) return 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // first and last, as a signal's handler sees it
  Capture capture{.unwinder = &unwinder, .addresses = addresses, .depth = depth, .skip = skip + 1};
  (void)unwinder.walk(visit, &capture);
  if (is_cut(capture)) {
    // Once more, for where the last frame stands: most stacks need it not, and it takes as long as the walk.
    FrameState last{};
    capture = {.unwinder = &unwinder, .addresses = addresses, .depth = capture.count, .skip = skip + 1, .last = &last};
    (void)unwinder.walk(visit, &capture);
    capture.depth = depth;
    go_on(capture);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return capture.count;
}

}  // namespace freehold::os
