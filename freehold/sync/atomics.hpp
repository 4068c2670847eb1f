// SPDX-License-Identifier: MIT
// The Atomics policy: every concurrent algorithm of Freehold is a template over it.
// NativeAtomics compiles to exactly the instructions of hand-written std::atomic (bench/counts.json keeps how many
// are executed); sim::SimAtomics (sim/) reports every access to one simulated machine instead. So the code that
// ships is the code that was explored. There is no second copy of an algorithm.
//
//   A::atomic<T>      shared, synchronising; the interface of std::atomic
//   A::var<T>         shared, plain: ordered by the protocol around it, and checked for data races under sim/
//   A::fence(order)   std::atomic_thread_fence
//   A::pause()        spin hint
//   A::yield()        lets other threads run first, such as the one that is waited for, of a lower priority too: sleeps for
//                     50 us. wait_until() pauses a few times before
//   A::light_fence()  orders this thread's accesses against another thread's heavy_fence(): free, a compiler barrier
//   A::heavy_fence()  makes every running thread of the process execute a full fence: membarrier, microseconds.
//                     Pre: may_fence_heavily(), which registers the process and says whether the kernel can
//   A::cpu_id()       the current CPU, may be stale at once
//   A::thread_number()  of the calling thread: 0, 1, 2, … in the order in which threads first asked
//   A::thread_id()    the system's id of the calling thread
//   A::per_thread<T>()  the calling thread's own T, zero at first; T is trivially destructible and needs no constructor
//   A::per_process<T>()  the one T of the process, zero at first
//                     (both: in code of the same shared object; another one has its own)
//   A::at_thread_exit(f)  calls f when the calling thread ends, once however often it is asked; at most kMaxExitCalls
//                     functions, and none that is asked for after they were called
//   A::wait/notify    futex wait on a 32-bit atomic; wait may return for no reason, so callers loop
//   A::wait_shared, A::notify_one_shared, A::notify_all_shared
//                     the same across processes, in shared memory (SharedAtomics, which not every policy is). Of a 64-bit
//                     atomic the lower half is compared, as the kernel does. With a time-out: it may return for that, too
//   A::decide(v, d)   a threshold: v natively; the simulator may explore d as well
#pragma once
#include <atomic>
#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "freehold/os/futex.hpp"

namespace freehold::sync {

using ExitCall = void (*)() noexcept;
inline constexpr unsigned kMaxExitCalls = 4;

// The functions that a thread calls when it ends.
struct ExitCalls {
  ExitCall calls[kMaxExitCalls];

  constexpr void add(ExitCall call) noexcept {
    for (ExitCall& place : calls) {
      if (place == call) return;
      if (place == nullptr) {
        place = call;
        return;
      }
    }
  }
  void run() noexcept {
    for (ExitCall& call : calls)
      if (call != nullptr) call();
  }
};

template <class A>
concept Atomics = requires(typename A::template atomic<std::uint32_t>& a, typename A::template atomic<std::uint64_t>& w,
                           typename A::template var<std::uint64_t>& v, std::uint64_t x, std::uint64_t& r) {
  { a.load(std::memory_order_acquire) } -> std::same_as<std::uint32_t>;
  { w.exchange(x, std::memory_order_acq_rel) } -> std::same_as<std::uint64_t>;
  { w.compare_exchange_weak(r, x, std::memory_order_acq_rel, std::memory_order_relaxed) } -> std::same_as<bool>;
  { w.fetch_or(x, std::memory_order_acq_rel) } -> std::same_as<std::uint64_t>;
  { v.load() } -> std::convertible_to<std::uint64_t>;
  v.store(x);
  A::fence(std::memory_order_seq_cst);
  A::pause();
  A::yield();
  A::light_fence();
  A::heavy_fence();
  { A::may_fence_heavily() } -> std::same_as<bool>;
  { A::cpu_id() } -> std::convertible_to<unsigned>;
  { A::thread_number() } -> std::same_as<std::uint32_t>;
  { A::thread_id() } -> std::same_as<std::uint32_t>;
  { A::template per_thread<std::uint64_t>() } -> std::same_as<std::uint64_t&>;
  { A::template per_process<std::uint64_t>() } -> std::same_as<std::uint64_t&>;
  A::at_thread_exit(static_cast<ExitCall>(nullptr));
  A::wait(a, std::uint32_t{});
  A::notify_one(a);
  A::notify_all(a);
  { A::decide(x, x) } -> std::same_as<std::uint64_t>;
};

template <class A>
concept SharedAtomics = Atomics<A> && requires(typename A::template atomic<std::uint32_t>& a,
                                               typename A::template atomic<std::uint64_t>& w, std::uint64_t nanoseconds) {
  A::wait_shared(a, std::uint32_t{}, nanoseconds);
  A::wait_shared(w, std::uint64_t{}, nanoseconds);
  A::notify_one_shared(a);
  A::notify_all_shared(w);
};

using os::kForever;  // wait_shared() without a time-out

// Returns once `holds()`, soon, by the work of another thread, which may have to run first on this CPU.
template <class A, class F>
void wait_until(F&& holds) noexcept {
  constexpr unsigned kPauses = 64;  // about 2 us
  for (unsigned looks = 0; !holds(); ++looks) looks < kPauses ? A::pause() : A::yield();
}

struct NativeAtomics {
  template <class T>
  using atomic = std::atomic<T>;

  template <class T>
  class var {
   public:
    constexpr var() noexcept = default;
    constexpr explicit var(T value) noexcept : value_(value) {}
    [[nodiscard]] T load() const noexcept { return value_; }
    void store(T value) noexcept { value_ = value; }

   private:
    T value_{};
  };

  static void fence(std::memory_order order) noexcept { std::atomic_thread_fence(order); }
  static void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
  }
  static void yield() noexcept { os::Futex::nap(50'000); }
  static void light_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }
  // False: the system refuses by now (a filter of system calls), and no thread was fenced.
  static bool heavy_fence() noexcept { return os::Membarrier::run_in_all_threads(); }
  static bool may_fence_heavily() noexcept { return os::Membarrier::register_process(); }
  static std::uint32_t thread_number() noexcept {
    static constinit std::atomic<std::uint32_t> asked{0};
    static thread_local constinit std::uint32_t number = 0;  // plus one
    if (number == 0) [[unlikely]]
      number = asked.fetch_add(1, std::memory_order_relaxed) + 1;  // relaxed: only distinct numbers are wanted
    return number - 1;
  }
  static std::uint32_t thread_id() noexcept {
    static thread_local constinit std::uint32_t id = 0;
    if (id == 0) [[unlikely]]
      id = static_cast<std::uint32_t>(os::thread_id());
    return id;
  }
  // No constructor, hence no check in the access. These three are hidden: each shared object has its own, in whatever way
  // it was linked and loaded, never sometimes that of another (pool/thread_arrays.hpp relies on it).
  template <class T>
  [[gnu::visibility("hidden")]] static T& per_thread() noexcept {
    static_assert(std::is_trivially_destructible_v<T>);
    static thread_local constinit T object{};
    return object;
  }
  template <class T>
  [[gnu::visibility("hidden")]] static T& per_process() noexcept {
    static_assert(std::is_trivially_destructible_v<T>);
    static constinit T object{};
    return object;
  }
  [[gnu::visibility("hidden")]] static void at_thread_exit(ExitCall call) noexcept {
    struct RunsThem : ExitCalls {
      ~RunsThem() { run(); }
    };
    static thread_local RunsThem calls{};
    calls.add(call);
  }
  static unsigned cpu_id() noexcept { return os::cpu_number(); }
  // std::atomic::wait would need libstdc++.so (it throws), and a malloc must not.
  static void wait(const std::atomic<std::uint32_t>& a, std::uint32_t old) noexcept {
    os::Futex::wait(lower_half(a), old, os::FutexScope::kProcess);
  }
  static void notify_one(std::atomic<std::uint32_t>& a) noexcept {
    os::Futex::wake_one(lower_half(a), os::FutexScope::kProcess);
  }
  static void notify_all(std::atomic<std::uint32_t>& a) noexcept {
    os::Futex::wake_all(lower_half(a), os::FutexScope::kProcess);
  }
  // Waits for at most so long; returns for no reason, too.
  template <class T>
  static void wait_shared(const std::atomic<T>& a, T old, std::uint64_t nanoseconds = kForever) noexcept {
    os::Futex::wait(lower_half(a), static_cast<std::uint32_t>(old), os::FutexScope::kShared, nanoseconds);
  }
  template <class T>
  static void notify_one_shared(std::atomic<T>& a) noexcept {
    os::Futex::wake_one(lower_half(a), os::FutexScope::kShared);
  }
  template <class T>
  static void notify_all_shared(std::atomic<T>& a) noexcept {
    os::Futex::wake_all(lower_half(a), os::FutexScope::kShared);
  }
  template <class T>
  static constexpr T decide(T value, T) noexcept {
    return value;
  }

 private:
  template <class T>
  static const void* lower_half(const std::atomic<T>& a) noexcept {
    static_assert(std::endian::native == std::endian::little && (sizeof(T) == 4 || sizeof(T) == 8));
    static_assert(sizeof(a) == sizeof(T) && std::atomic<T>::is_always_lock_free);
    return &a;
  }
};
static_assert(Atomics<NativeAtomics> && SharedAtomics<NativeAtomics>);

}  // namespace freehold::sync
