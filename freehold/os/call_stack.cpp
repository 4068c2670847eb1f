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

#include "freehold/os/frame_rules.hpp"
#include "freehold/os/libc.hpp"
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

// The result of the look-up, maybe of several threads at once, which find the same. `walk` is written last.
struct Found {
  std::atomic<decltype(Unwinder::walk)> walk{nullptr};
  std::atomic<decltype(Unwinder::place)> place{nullptr};
  std::atomic<decltype(Unwinder::stack)> stack{nullptr};
  std::atomic<decltype(Unwinder::general)> general{nullptr};
  std::atomic<decltype(Unwinder::function_at)> function_at{nullptr};  // null: the unwinder walks alone
  std::atomic<decltype(Unwinder::find_object)> find_object{nullptr};
};
constinit Found g_found;

void publish(const Unwinder& unwinder) noexcept {
  // Relaxed, but the last: it publishes the others, and pairs with the acquire in unwinder_found().
  g_found.place.store(unwinder.place, std::memory_order_relaxed);
  g_found.stack.store(unwinder.stack, std::memory_order_relaxed);
  g_found.general.store(unwinder.general, std::memory_order_relaxed);
  g_found.function_at.store(unwinder.function_at, std::memory_order_relaxed);
  g_found.find_object.store(unwinder.find_object, std::memory_order_relaxed);
  g_found.walk.store(unwinder.walk, std::memory_order_release);
}
// Returns without `walk` if the process has no unwinder, or has not looked for one yet.
[[nodiscard]] Unwinder unwinder_found() noexcept {
  const auto walk = g_found.walk.load(std::memory_order_acquire);
  return {.walk = walk,  // relaxed, the others: published by `walk`
          .place = g_found.place.load(std::memory_order_relaxed),
          .stack = g_found.stack.load(std::memory_order_relaxed),
          .general = g_found.general.load(std::memory_order_relaxed),
          .function_at = g_found.function_at.load(std::memory_order_relaxed),
          .find_object = g_found.find_object.load(std::memory_order_relaxed)};
}

// Keeps a thread that captures from a second capture inside: in its unwinder's malloc, or in a signal's handler. Those that
// are inside stand in a table, by their threads' addresses. A thread_local would be of the kind that malloc needs, and would
// put all the thread-local storage of a plugin with this code into the scarce static room.
class Inside {
 public:
  Inside() noexcept : thread_(reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer())) {
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

  // Threads that were inside have not come along, and new ones get their addresses. This thread may be inside.
  static void after_fork_in_child() noexcept {
    const auto self = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
    for (Place& place : g_places)
      if (place.thread.load(std::memory_order_relaxed) != self) place.thread.store(0, std::memory_order_relaxed);
  }

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

// Collects the addresses.
class Notes {
 public:
  Notes(void** addresses, unsigned depth, unsigned skip) noexcept : addresses_(addresses), depth_(depth), skip_(skip) {}
  // False: there is no room for another one.
  bool add(std::uintptr_t address) noexcept {
    if (skip_ != 0) {
      --skip_;
      return true;
    }
    addresses_[count_++] = reinterpret_cast<void*>(address);
    return count_ != depth_;
  }
  [[nodiscard]] unsigned count() const noexcept { return count_; }
  // Pre: add() did not say that there is no room.
  [[nodiscard]] void** end() noexcept { return addresses_ + count_; }
  [[nodiscard]] unsigned room() const noexcept { return depth_ - count_; }
  void added(unsigned count) noexcept { count_ += count; }

 private:
  void** addresses_;
  unsigned depth_, skip_, count_ = 0;
};

// The address of the instruction that calls; that before which a signal came is the instruction itself.
[[nodiscard]] std::uintptr_t call_before(std::uintptr_t code, int is_before) noexcept {
  return is_before != 0 ? code : code - 1;
}

// A walk by the unwinder alone: it ends at code without unwind information.
struct PlainWalk {
  const Unwinder* unwinder;
  Notes* notes;

  static _Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
    const auto& walk = *static_cast<const PlainWalk*>(argument);
    int is_before = 0;
    const std::uintptr_t code = walk.unwinder->place(context, &is_before);
    return code != 0 && walk.notes->add(call_before(code, is_before)) ? _URC_NO_REASON : _URC_END_OF_STACK;
  }
};

// A walk by the rules of frames, where they are known; over other frames by the unwinder; and through code without unwind
// information by runtime_frames.hpp. What that guessed ends at the first frame that is not plausible, or has no rule.
class Walk {
 public:
  Walk(const Unwinder& unwinder, Notes& notes) noexcept : unwinder_(unwinder), notes_(notes), rules_(unwinder.find_object) {}

  void run(const FrameState& from) noexcept {
    at_ = from;
    bool goes_on = notes_.add(call_before(at_.code, 0));
    while (goes_on) {
      const FrameRule rule = rules_.find(at_.code);
      if (rule.is_end()) return;
      if (rule.is_known()) {
        if (is_guess_ && !guessed_.has_frame(at_.stack, rule.stack_after(at_))) return;
        rule.step(at_);
        goes_on = at_.code != 0 && notes_.add(call_before(at_.code, 0));
      } else if (is_guess_) {
        goes_on = leave_runtime_code(0);  // the unwinder would read wherever the guess leads
      } else {
        const End end = run_unwinder();
        goes_on = end == End::kKnownRule || (end == End::kNoUnwindInformation && leave_runtime_code(is_before_));
      }
    }
  }

 private:
  enum class End : std::uint8_t { kNoFrame, kNoRoom, kKnownRule, kNoUnwindInformation };

  // Walks from the frame that the walk is at, which is noted, to one that is noted, too, or to the end.
  [[nodiscard]] End run_unwinder() noexcept {
    visits_ = 0;
    end_ = End::kNoUnwindInformation;  // unless visit() says that it is another
    RuntimeFrames::walk_from(at_, unwinder_, visit, this);
    return end_;
  }
  static _Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
    return static_cast<Walk*>(argument)->goes_on(context) ? _URC_NO_REASON : _URC_END_OF_STACK;
  }
  [[nodiscard]] bool goes_on(_Unwind_Context* context) noexcept {
    constexpr unsigned kWalkFrom = 1, kFirst = 2;  // the function that calls the unwinder, and the frame to begin from
    if (++visits_ == kWalkFrom) return true;
    int is_before = 0;
    const std::uintptr_t code = unwinder_.place(context, &is_before);
    if (code == 0) return stop(End::kNoFrame);
    is_before_ = is_before;
    if (visits_ == kFirst) return true;
    at_ = RuntimeFrames::state_of(context, code, unwinder_);
    if (!notes_.add(call_before(code, is_before))) return stop(End::kNoRoom);
    return is_before != 0 || !rules_.find(code).is_known() || stop(End::kKnownRule);  // rules are those of calls
  }
  [[nodiscard]] bool stop(End end) noexcept {
    end_ = end;
    return false;
  }

  // Returns whether the walk goes on at a function behind such code, which is noted then.
  [[nodiscard]] bool leave_runtime_code(int is_before) noexcept {
    if (unwinder_.function_at(reinterpret_cast<void*>(call_before(at_.code, is_before) + 1)) != nullptr) return false;
    if (!is_guess_) guessed_ = ReadableStack(at_.stack);
    const auto way = RuntimeFrames::step_out(at_, guessed_, unwinder_, notes_.end(), notes_.room());
    is_guess_ |= way.is_guess;
    notes_.added(way.count);
    return way.is_found && notes_.room() != 0 && notes_.add(call_before(at_.code, 0));
  }

  const Unwinder& unwinder_;
  Notes& notes_;
  FrameRules rules_;
  FrameState at_{};  // state of the frame that was noted last
  unsigned visits_ = 0;
  int is_before_ = 0;
  End end_ = End::kNoFrame;
  bool is_guess_ = false;  // the frame, by a frame pointer that may be any number, or by such a one before it
  ReadableStack guessed_{0};
};

// The library stays loaded.
void look_up() noexcept {
  Unwinder found{};
  if (&_Unwind_Backtrace != nullptr && &_Unwind_GetIPInfo != nullptr) {
    found = {
        &_Unwind_Backtrace, &_Unwind_GetIPInfo, &_Unwind_GetCFA, &_Unwind_GetGR, &_Unwind_FindEnclosingFunction, nullptr};
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
  // Found by its name, so that the library can be loaded where libc has none.
  if (&dlsym != nullptr)
    found.find_object = reinterpret_cast<decltype(Unwinder::find_object)>(::dlsym(RTLD_DEFAULT, "_dl_find_object"));
  (void)::pthread_atfork(nullptr, nullptr, Inside::after_fork_in_child);
  publish(found);
}

// The beginning and the end of the code of this library or program, by the linker. Hidden: no other one's.
extern "C" [[gnu::visibility("hidden")]] const ElfW(Ehdr) __ehdr_start;
extern "C" [[gnu::visibility("hidden")]] const char etext;

}  // namespace

unsigned own_frames(void* const* addresses, unsigned count) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(&__ehdr_start), end = reinterpret_cast<std::uintptr_t>(&etext);
  if (begin + __ehdr_start.e_phoff == Libc::getauxval(AT_PHDR)) return 0;  // the program's own headers
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
  Notes notes(addresses, depth, skip + 1);
  if (unwinder.function_at != nullptr) {
    Walk(unwinder, notes).run(RuntimeFrames::state_here());
  } else {
    PlainWalk walk{&unwinder, &notes};
    (void)unwinder.walk(PlainWalk::visit, &walk);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return notes.count();
}

}  // namespace freehold::os
