// SPDX-License-Identifier: MIT
// A timer as an object: it owns what it calls, captures and all, fires once or again and again, and its end is the timer's.
//
//   Driver<> timers;
//   OwnedTimer ping(timers, [connection = std::move(connection)] { connection->ping(); });
//   ping.every(30s);                                    // or ping.set_after(5s), ping.set(time)
//   ...                                                 // at the end of the scope nothing calls it any more
//
// A periodic timer is set again before its function is called, for a period after the time it was due at, so that it does
// not drift; periods that have passed already are left out. So the function can cancel it, set it otherwise, or end it.
//
//   Invariants: under the lock, `period` and `due` are those of the last set(); a call that belongs to an earlier one finds
//   the timer armed, or `period` zero, and does not set it again. And the object keeps its block until no call runs, so that
//   its function can use the object while another thread ends it; a set() then says that there is no timer.
//
// T: a structure for one thread, or one for several that can be waited for (quiesce(), as Driver's): else it would be
// unknown when the function may be destroyed. It must live longer than its timers.
// Threads: set, set_after, every, cancel and the questions, as T's; the end of the object from one thread, at most once.
// With a driver it waits for the callback that runs, unless it is called by one. Cost: T's, one allocation at the beginning.
// Errors: the constructor throws std::bad_alloc when T has no timer, or the heap no block; without exceptions it ends there.
#pragma once
#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "freehold/base/check.hpp"
#include "freehold/sync/lock.hpp"
#include "freehold/timer/locking.hpp"
#include "freehold/timer/timer.hpp"

namespace freehold::timer {

template <class T>
concept Quiescent = requires(T& timers) { timers.quiesce(); };

// Which threads may use a timer of T: any, if T is a driver.
template <class T>
struct LockingFor {
  using type = AnyThread;
};
template <class T>
  requires(!Quiescent<T>)
struct LockingFor<T> {
  static_assert(!T::kShared, "timers that several threads use need a driver: somebody must know when a callback has ended");
  using type = SingleThreaded;
};

/// A timer as an object, which owns the function that it calls. Its end is the timer's.
/// @tparam T        the timers: a structure for one thread, or a Driver
/// @tparam Locking  follows from T
template <class T, class Locking = typename LockingFor<T>::type>
class OwnedTimer {
 public:
  /// None.
  OwnedTimer() noexcept = default;
  /// A timer that is not armed.
  /// @param timers  must outlive the object
  /// @param f       is called without arguments when the time has come; must not throw
  /// Errors: std::bad_alloc.
  template <std::invocable F>
  OwnedTimer(T& timers, F&& f) : block_(new Call<std::decay_t<F>>(timers, std::forward<F>(f))) {
    Block& block = get();
    block.id = timers.create([&block] { fire(block); });
    if (!block.id) {
      block.end(block);
#ifdef __cpp_exceptions
      throw std::bad_alloc();
#else
      std::abort();
#endif
    }
  }
  OwnedTimer(OwnedTimer&& other) noexcept : block_(other.take()) {}
  /// Ends the former timer, as reset(), before the other one takes its place.
  OwnedTimer& operator=(OwnedTimer&& other) noexcept {
    if (this == &other) return *this;
    reset();
    block_.store(other.take());
    return *this;
  }
  /// As reset().
  ~OwnedTimer() { reset(); }

  /// Exchanges two timers.
  /// @param other  the other one
  void swap(OwnedTimer& other) noexcept {
    Block* const block = other.take();
    other.block_.store(take());
    block_.store(block);
  }
  /// Ends the timer; *this is none then. With a driver it waits for the callback that runs, unless that is its caller.
  void reset() noexcept {
    Block* const block = block_.load();
    if (block == nullptr) return;
    block->timers.destroy(block->id);
    if constexpr (Quiescent<T>) block->timers.quiesce();
    block_.store(nullptr);
    // No thread calls the function any more; if it runs, it is our caller.
    if (block->is_running.load())
      block->has_ended.store(true);
    else
      block->end(*block);
  }
  /// Returns whether there is a timer.
  [[nodiscard]] explicit operator bool() const noexcept { return block_.load() != nullptr; }

  // Pre of all that follow: *this is not none.
  /// Arms the timer for one call.
  /// @param time  when it fires
  SetResult set(TimePoint time) noexcept { return arm(time, {}); }
  /// Arms the timer for one call.
  /// @param delay  how long from now; any unit of std::chrono
  template <class Rep, class Period>
  SetResult set_after(std::chrono::duration<Rep, Period> delay) noexcept {
    return arm(timer::after(delay), {});
  }
  /// Arms the timer for `period` from now, and from then on at each period. A structure that needs memory to be set stops
  /// the timer when it has none.
  /// @param period  more than zero
  template <class Rep, class Period>
  SetResult every(std::chrono::duration<Rep, Period> period) noexcept {
    return every(timer::after(period), period);
  }
  /// Arms the timer for a time, and from then on at each period.
  /// @param first   the first time
  /// @param period  more than zero
  template <class Rep, class Period>
  SetResult every(TimePoint first, std::chrono::duration<Rep, Period> period) noexcept {
    const Clock::duration step = saturated(period);
    FREEHOLD_ASSERT(step > Clock::duration::zero());
    return arm(first, step);
  }
  /// Disarms the timer; a periodic one stops.
  /// @return whether it was armed and will not fire; in its own function: whether that will not be called again.
  bool cancel() noexcept {
    Block& block = get();
    const Guard guard(block.lock);
    block.period.store({});
    return block.timers.cancel(block.id);
  }
  /// When it fires; none: it is not armed.
  [[nodiscard]] std::optional<TimePoint> expiry() const noexcept { return get().timers.expiry(get().id); }
  /// Returns whether it will fire.
  [[nodiscard]] bool is_armed() const noexcept { return expiry().has_value(); }
  /// How long it is until it fires; none: it is not armed.
  /// @param now  the time to begin at
  [[nodiscard]] std::optional<Clock::duration> remaining(TimePoint now = Clock::now()) const noexcept {
    return timer::remaining(get().timers, get().id, now);
  }
  /// Its handle in the structure.
  [[nodiscard]] TimerId id() const noexcept { return get().id; }

 private:
  using Mutex = typename Locking::Mutex;
  using Guard = sync::Guard<Mutex>;
  template <class V>
  using Var = typename Locking::template var<V>;

  struct Block {
    Block(T& t, void (*call_it)(Block&), void (*end_it)(Block&)) noexcept : timers(t), call(call_it), end(end_it) {}
    T& timers;
    void (*call)(Block&);
    void (*end)(Block&);
    TimerId id;
    [[no_unique_address]] Mutex lock;
    // Under the lock.
    Var<Clock::duration> period{Clock::duration{}};  // zero: it fires once
    Var<TimePoint> due{TimePoint{}};
    // The thread that calls it; or who ends it, when no call runs but its own.
    Var<bool> is_running{false};
    Var<bool> has_ended{false};
  };
  template <class F>
  struct Call : Block {
    template <class G>
    Call(T& t, G&& g)
        : Block(
              t, [](Block& block) { static_cast<Call&>(block).f(); },
              [](Block& block) { delete &static_cast<Call&>(block); }),
          f(std::forward<G>(g)) {}
    F f;
  };

  [[nodiscard]] Block& get() const noexcept { return *block_.load(); }
  [[nodiscard]] Block* take() noexcept {
    Block* const block = block_.load();
    block_.store(nullptr);
    return block;
  }
  SetResult arm(TimePoint time, Clock::duration period) noexcept {
    Block& block = get();
    const Guard guard(block.lock);
    block.period.store(period);
    block.due.store(time);
    return block.timers.set(block.id, time);
  }
  static void fire(Block& block) {
    repeat(block);
    block.is_running.store(true);
    block.call(block);
    block.is_running.store(false);
    if (block.has_ended.load()) block.end(block);
  }
  // Sets a periodic timer again, unless it was set since it was due: for the first of its times that lies after now, if any
  // is left before the end of time.
  static void repeat(Block& block) noexcept {
    const Guard guard(block.lock);
    const Clock::duration period = block.period.load();
    if (period == Clock::duration::zero() || block.timers.expiry(block.id)) return;
    const TimePoint now = block.timers.now(), due = block.due.load();
    // Unsigned: the difference of any two times, and here due <= now.
    const auto late = static_cast<std::uint64_t>(now.time_since_epoch().count()) -
                      static_cast<std::uint64_t>(due.time_since_epoch().count());
    const Clock::duration passed(static_cast<Clock::rep>(late % static_cast<std::uint64_t>(period.count())));
    const TimePoint next = now < due ? timer::after(period, due) : timer::after(period - passed, now);
    if (next <= now) return;
    block.due.store(next);
    block.timers.set(block.id, next);
  }

  Var<Block*> block_{nullptr};
};
template <class T, class F>
OwnedTimer(T&, F&&) -> OwnedTimer<T>;

}  // namespace freehold::timer
