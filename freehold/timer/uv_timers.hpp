// SPDX-License-Identifier: MIT
// Timers on libuv: a wheel whose timers fire in a loop, by one uv_timer_t for all of them.
//
//   freehold::timer::UvTimers<> timers(*uv_default_loop());
//   const auto id = timers.create([&] { connection.ping(); });
//   timers.set_after(id, 30s);
//   uv_run(uv_default_loop(), UV_RUN_DEFAULT);       // returns when no timer is armed and nothing else is to do
//
// At its end the uv_timer_t is closed, which libuv finishes in the loop's next turn: run it once more before it is closed.
// Threads: the loop's. Needs libuv. Errors: the constructor throws std::bad_alloc.
#pragma once
#include <uv.h>

#include <algorithm>
#include <cstdint>

#include "freehold/timer/loop_timers.hpp"
#include "freehold/timer/timer_wheel.hpp"

namespace freehold::timer {

// A uv_timer_t as LoopTimers wants it.
class UvAlarm {
 public:
  UvAlarm(uv_loop_t& loop, void (*notify)(void*), void* context) : handle_(new Handle{{}, notify, context}) {
    uv_timer_init(&loop, &handle_->timer);
    handle_->timer.data = handle_;
  }
  UvAlarm(const UvAlarm&) = delete;
  UvAlarm& operator=(const UvAlarm&) = delete;
  ~UvAlarm() {
    uv_close(reinterpret_cast<uv_handle_t*>(&handle_->timer),
             [](uv_handle_t* timer) { delete static_cast<Handle*>(timer->data); });
  }

  void start(TimePoint time) {
    using Milliseconds = std::chrono::milliseconds;
    // The loop's time is that of its turn's beginning; where it lags, the timer fires early, finds nothing due, and is set
    // again.
    const TimePoint now = Clock::now();
    const auto delay = std::chrono::ceil<Milliseconds>(time <= now ? Clock::duration::zero() : std::min(time - now, kMost));
    uv_timer_start(
        &handle_->timer,
        [](uv_timer_t* timer) {
          const Handle& handle = *static_cast<Handle*>(timer->data);
          handle.notify(handle.context);
        },
        static_cast<std::uint64_t>(delay.count()), 0);
  }
  void stop() { uv_timer_stop(&handle_->timer); }

 private:
  static constexpr Clock::duration kMost = std::chrono::hours(24 * 365);
  struct Handle {
    uv_timer_t timer;
    void (*notify)(void*);
    void* context;
  };
  Handle* handle_;
};

/// Timers in a libuv loop: LoopTimers on one uv_timer_t.
/// @tparam T  the structure, for one thread
template <class T = TimerWheel<>>
using UvTimers = LoopTimers<T, UvAlarm>;

}  // namespace freehold::timer
