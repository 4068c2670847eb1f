// SPDX-License-Identifier: MIT
// Timers on a thread of their own: it sleeps until the next one is due, calls what is, and sleeps again.
//
//   freehold::timer::Driver<> timers;                      // a TimerWheel of milliseconds; or Driver<TimerQueue<AnyThread>>
//   const auto id = timers.create([&] { connection.ping(); });
//   timers.set_after(id, 30s);                             // from any thread
//   timers.destroy(id);
//   timers.quiesce();                                      // now no callback of it runs: the connection may go
//
// Threads: any, for create, set, cancel, destroy and quiesce; callbacks run in the driver's thread, one after the other.
// Cost: those of the timers, and of Alarm: one fence for a set(), and a system call when it is the earliest by far.
// Timers whose memory comes back in advance() only (TimerWheel) are reclaimed by the driver's thread: create() wakes it for
// each kReclaimEvery timers that are more than there ever were, and at the limit waits for it once, unless it runs in a
// callback. So creating and destroying for ever holds memory for the timers that live and for those that were destroyed
// while the thread was on its way.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "freehold/sync/atomics.hpp"
#include "freehold/timer/alarm.hpp"
#include "freehold/timer/timer_wheel.hpp"

namespace freehold::timer {

// Rounds tell other threads whether a callback may be running: the round is odd while the owner is in advance(). A thread
// that knows that a callback has begun, by what cancel() or destroy() read, knows the round in which it began.
struct RoundsOrders {
  // acquire: pairs with kEnd; what the callbacks did is visible.
  static constexpr std::memory_order kLook = std::memory_order_acquire;
  // release: pairs with kLook.
  static constexpr std::memory_order kEnd = std::memory_order_release;
  // seq_cst: between telling that one waits and looking at the round, and between ending the round and looking who waits.
  static constexpr std::memory_order kFence = std::memory_order_seq_cst;
  // seq_cst: between beginning a round and looking at the timers, and between what pass() is called for and its look at the
  // round: a round that it takes for one that began later sees what was done before.
  static constexpr std::memory_order kBegin = std::memory_order_seq_cst;
};

template <sync::Atomics A = sync::NativeAtomics, class Orders = RoundsOrders>
class Rounds {
 public:
  // The owner, around advance().
  void begin() noexcept {
    // relaxed, both: only the owner writes it; the word of a timer that is called publishes it.
    round_.store(round_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    A::fence(Orders::kBegin);
  }
  void end() noexcept {
    round_.store(round_.load(std::memory_order_relaxed) + 1, Orders::kEnd);
    A::fence(Orders::kFence);
    if (waiting_.load(std::memory_order_relaxed) != 0) A::notify_all(round_);  // relaxed: the fence orders it
  }
  // Another thread: calls `wake()`, which has the owner begin a round that sees what was done before (Alarm), and returns
  // when a round has begun and ended since then (true), or when no more will.
  template <class Wake>
  [[nodiscard]] bool pass(Wake&& wake) noexcept {
    A::fence(Orders::kBegin);
    std::uint32_t round = round_.load(Orders::kLook);
    const std::uint32_t end = round + 2 + round % 2;
    waiting_.fetch_add(1, std::memory_order_relaxed);  // relaxed: the fence orders it
    A::fence(Orders::kFence);                          // against the end of the last round, which no wake-up follows
    wake();
    bool finished = finished_.load(std::memory_order_relaxed);  // relaxed, twice: published by the round that we saw
    while (static_cast<std::int32_t>(round - end) < 0 && !finished) {
      A::wait(round_, round);
      round = round_.load(Orders::kLook);
      finished = finished_.load(std::memory_order_relaxed);
    }
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    return !finished;
  }
  // The owner: there are no more rounds.
  void finish() noexcept {
    finished_.store(true, std::memory_order_relaxed);  // relaxed: end() publishes it
    begin();
    end();
  }
  // Another thread: returns when the callbacks that ran when it was called have ended.
  void quiesce() noexcept {
    const std::uint32_t round = round_.load(Orders::kLook);
    if (round % 2 == 0) return;
    waiting_.fetch_add(1, std::memory_order_relaxed);  // relaxed, both: the fence orders it, the other only saves a wake
    A::fence(Orders::kFence);
    while (round_.load(Orders::kLook) == round) A::wait(round_, round);
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  typename A::template atomic<std::uint32_t> round_{0};
  typename A::template atomic<std::uint32_t> waiting_{0};
  typename A::template atomic<bool> finished_{false};
};

// A thread. (The header of std::thread costs a program more to compile than the timers do.)
class DriverThread {
 public:
  // Pre: none was started.
  // Errors: std::system_error.
  void start(void (*run)(void* context), void* context);
  [[nodiscard]] bool is_joinable() const noexcept { return is_joinable_; }
  [[nodiscard]] bool is_caller() const noexcept { return is_joinable_ && ::pthread_equal(thread_, ::pthread_self()) != 0; }
  void join() noexcept;

 private:
  pthread_t thread_{};
  bool is_joinable_ = false;
};

/// A timer structure with a thread that calls the timers that are due.
/// @tparam T  a structure for any thread, such as TimerWheel<AnyThread>
/// Threads: any, for create, set, cancel, destroy and quiesce; callbacks run in the driver's thread, one after the other.
template <SharedTimers T = TimerWheel<AnyThread>>
class Driver {
 public:
  /// Starts the thread.
  /// @param args  those of the timers' constructor
  /// Errors: std::system_error, and what the timers' constructor throws.
  template <class... Args>
  explicit Driver(Args&&... args) : timers_(std::forward<Args>(args)...) {
    thread_.start([](void* self) { static_cast<Driver*>(self)->run(); }, this);
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  /// As stop().
  ~Driver() { stop(); }

  /// Creates a timer that is not armed.
  /// @param callback  is called by advance() when the timer's time has come; see Callback
  /// @return its handle; none if there is no memory or no room.
  [[nodiscard]] TimerId create(Callback callback) noexcept {
    const TimerId id = timers_.create(callback);
    if constexpr (kReclaims) {
      if (!id) [[unlikely]]
        return create_after_reclaiming(callback);
      if (id.index() >= reclaim_at_.load(std::memory_order_relaxed)) [[unlikely]]
        reclaim(id.index());
    }
    return id;
  }
  /// Arms a timer, or arms it again.
  /// @param id    the timer
  /// @param time  when it fires
  /// @return see SetResult.
  SetResult set(TimerId id, TimePoint time) noexcept {
    const SetResult result = timers_.set(id, time);
    if (is_set(result)) alarm_.wake_for(time);
    return result;
  }
  /// Arms a timer.
  /// @param id     the timer
  /// @param delay  how long from now; any unit of std::chrono
  template <class Rep, class Period>
  SetResult set_after(TimerId id, std::chrono::duration<Rep, Period> delay) noexcept {
    return set(id, timer::after(delay));
  }
  /// For coroutines: `co_await timers.after(30ms)`; see Sleep.
  /// @param delay  how long from now; any unit of std::chrono
  template <class Rep, class Period>
  Sleep<Driver> after(std::chrono::duration<Rep, Period> delay) noexcept {
    return {*this, timer::after(delay)};
  }
  /// Disarms a timer.
  /// @param id  the timer
  /// @return whether it was armed and will not fire.
  bool cancel(TimerId id) noexcept { return timers_.cancel(id); }
  /// Ends a timer, armed or not, also from its own callback.
  /// @param id  the timer
  /// @return whether it was there. Another thread's callback may still run.
  bool destroy(TimerId id) noexcept { return timers_.destroy(id); }
  /// The time that an armed timer was set to.
  /// @param id  the timer
  /// @return the time; none: the timer is not armed, or not there.
  [[nodiscard]] std::optional<TimePoint> expiry(TimerId id) const noexcept { return timers_.expiry(id); }
  /// A snapshot; see TimerStats.
  [[nodiscard]] TimerStats stats() const noexcept { return timers_.stats(); }
  /// The latest time that the thread looked at the clock. Pre: called by a callback.
  [[nodiscard]] TimePoint now() const noexcept { return timers_.now(); }

  /// Returns when no callback runs that ran when it was called: after a cancel() or destroy(), that timer's callback is not
  /// running, and what it did is visible. In a callback: at once.
  void quiesce() noexcept {
    if (!thread_.is_caller()) rounds_.quiesce();
  }

  /// Ends the thread after the callbacks that are due; timers that are armed then stay so and do not fire. Idempotent. In a
  /// callback it does not wait, and the destructor, or a call by another thread, does.
  /// Pre: no two other threads call it at a time; no callback destroys its driver.
  void stop() noexcept {
    if (!thread_.is_joinable()) return;
    stopped_.store(true, std::memory_order_relaxed);  // relaxed: published by the wake
    alarm_.wake();
    if (!thread_.is_caller()) thread_.join();
  }

 private:
  // Timers for one advance(): how long stop() and quiesce() may have to wait.
  static constexpr std::size_t kBudget = 256;
  // Some 64 KiB of timers; a wake costs as much as some hundred of them.
  static constexpr std::uint32_t kReclaimEvery = 1024;
  static constexpr bool kReclaims = requires { requires T::kReclaimsInAdvance; };

  // relaxed, here and where it is read: only how often the thread is woken depends on it.
  [[gnu::noinline]] void reclaim(std::uint32_t index) noexcept {
    reclaim_at_.store(index + kReclaimEvery, std::memory_order_relaxed);
    alarm_.wake();
  }
  // There is no room, but perhaps for the timers that were destroyed and that the thread has not looked at. Each round looks
  // at kBudget of them.
  [[gnu::noinline]] TimerId create_after_reclaiming(Callback callback) noexcept {
    if (thread_.is_caller()) return {};
    std::uint32_t rests = rests_.load(std::memory_order_acquire);  // acquire: pairs with run()
    for (unsigned seen = 0; seen < 2;) {                           // the first rest may have come of a look before our call
      if (!rounds_.pass([this] { alarm_.wake(); })) return {};
      if (const TimerId id = timers_.create(callback); id) return id;
      if (const std::uint32_t now = rests_.load(std::memory_order_acquire); now != rests) {
        rests = now;
        ++seen;
      }
    }
    return {};
  }

  void run() noexcept {
    for (;;) {
      const std::uint32_t looked = alarm_.look();
      if (stopped_.load(std::memory_order_relaxed)) return rounds_.finish();
      rounds_.begin();
      const Progress progress = timers_.advance(Clock::now(), kBudget);
      // release: a thread that sees that nothing was left to do sees what was reclaimed.
      if (!progress.more) rests_.store(rests_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
      rounds_.end();
      if (!progress.more) alarm_.sleep(timers_, looked);
    }
  }

  T timers_;
  Alarm<> alarm_;
  Rounds<> rounds_;
  std::atomic<std::uint32_t> rests_{0};  // the thread: rounds after which there was nothing more to do
  std::atomic<std::uint32_t> reclaim_at_{kReclaimEvery};
  std::atomic<bool> stopped_{false};
  DriverThread thread_;
};

}  // namespace freehold::timer
