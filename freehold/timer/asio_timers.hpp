// SPDX-License-Identifier: MIT
// Timers on Boost.Asio: a wheel whose timers fire in an io_context, by one steady_timer for all of them. Setting and
// cancelling cost what the wheel's do; Asio's own take a place in a heap, and a handler for each.
//
//   boost::asio::io_context context;
//   freehold::timer::AsioTimers<> timers(context);
//   const auto id = timers.create([&] { connection.ping(); });
//   timers.set_after(id, 30s);
//   context.run();                                   // returns when no timer is armed and nothing else is to do
//
// Threads: one at a time runs the context and uses the timers, or all of them in one strand, which is then the constructor's
// argument. Needs Boost's headers. Errors: set() throws what steady_timer throws; the constructor std::bad_alloc.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <memory>

#include "freehold/timer/loop_timers.hpp"
#include "freehold/timer/timer_wheel.hpp"

namespace freehold::timer {

// A steady_timer as LoopTimers wants it.
class AsioAlarm {
 public:
  // `executor`: an executor, or a context that has one.
  template <class Executor>
  AsioAlarm(Executor& executor, void (*notify)(void*), void* context)
      : alarm_(executor), call_(std::make_shared<Call>(Call{notify, context})) {}

  void start(TimePoint time) {
    alarm_.expires_at(time);  // cancels the former wait
    // A handler may be on its way already when this ends.
    alarm_.async_wait([call = std::weak_ptr(call_)](const boost::system::error_code& error) {
      const std::shared_ptr<Call> live = call.lock();
      if (!error && live) live->notify(live->context);
    });
  }
  void stop() { alarm_.cancel(); }

 private:
  struct Call {
    void (*notify)(void*);
    void* context;
  };
  boost::asio::steady_timer alarm_;
  std::shared_ptr<Call> call_;
};

/// Timers in a Boost.Asio io_context: LoopTimers on one steady_timer.
/// @tparam T  the structure, for one thread
template <class T = TimerWheel<>>
using AsioTimers = LoopTimers<T, AsioAlarm>;

}  // namespace freehold::timer
