// SPDX-License-Identifier: MIT
// Which threads may use a timer structure: a policy, so that a program with one thread pays for one thread.
//
//   SingleThreaded   one thread at a time; no atomic instruction, no lock
//   AnyThread        create, set, cancel and destroy from any thread; advance and next_expiry from one at a time, the owner
#pragma once
#include <atomic>

#include "freehold/sync/atomics.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::timer {

// The interface of std::atomic on a plain object: what one thread at a time needs of it.
template <class T>
class Plain {
 public:
  constexpr Plain() noexcept = default;
  constexpr Plain(T value) noexcept : value_(value) {}  // NOLINT: as std::atomic
  [[nodiscard]] T load(std::memory_order) const noexcept { return value_; }
  void store(T value, std::memory_order) noexcept { value_ = value; }

 private:
  T value_{};
};

struct NoMutex {
  static constexpr void lock() noexcept {}
  static constexpr void unlock() noexcept {}
};

/// One thread at a time uses the timers; no atomic instruction, no lock.
struct SingleThreaded {
  /// Says whether several threads may use them.
  static constexpr bool kShared = false;
  /// The type that stands for an atomic.
  template <class T>
  using atomic = Plain<T>;
  /// Plain data.
  template <class T>
  using var = sync::NativeAtomics::var<T>;
  /// The type that stands for a lock.
  using Mutex = NoMutex;
};

template <sync::Atomics A>
struct AnyThreadOn {
  static constexpr bool kShared = true;
  using Atomics = A;
  template <class T>
  using atomic = typename A::template atomic<T>;
  template <class T>
  using var = typename A::template var<T>;
  using Mutex = sync::Mutex<A>;
};
/// Any thread may create, set, cancel and destroy timers; advance() and next_expiry() are called by one thread at a time.
using AnyThread = AnyThreadOn<sync::NativeAtomics>;

// The end of a scope that a Guard began: gives the lock up for as long as a callback runs.
template <class M>
class [[nodiscard]] Unguard {
 public:
  explicit Unguard(M& mutex) noexcept : mutex_(mutex) { mutex_.unlock(); }
  ~Unguard() { mutex_.lock(); }
  Unguard(const Unguard&) = delete;
  Unguard& operator=(const Unguard&) = delete;

 private:
  M& mutex_;
};

}  // namespace freehold::timer
