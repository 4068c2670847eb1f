// SPDX-License-Identifier: MIT
// Adapters of other libraries' timers for the timed loops. Their users own a timer's memory, so create is a constructor.
#pragma once
#include <uv.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "lab/timers/structure.hpp"

namespace freehold::lab::timers {

// libuv: a binary heap of the timers themselves; milliseconds. The loop's clock is the machine's, read when the loop runs.
class UvTimers {
 public:
  static constexpr Nanoseconds kOrder = std::chrono::milliseconds(1) * (kHour / kRealClockHour);

  explicit UvTimers(std::uint32_t timers, bool squeeze);
  ~UvTimers();
  UvTimers(const UvTimers&) = delete;
  UvTimers& operator=(const UvTimers&) = delete;

  void begin() noexcept {
    uv_update_time(&loop_);
    end_ = std::chrono::steady_clock::now() + kRealClockHour + std::chrono::milliseconds(2);
  }
  void create(std::uint32_t i) noexcept {
    uv_timer_init(&loop_, &timers_[i]);
    timers_[i].data = reinterpret_cast<void*>(std::uintptr_t{i});
  }
  // The loop closes all N timers in one run, which the last one starts.
  void destroy(std::uint32_t i) noexcept {
    uv_close(reinterpret_cast<uv_handle_t*>(&timers_[i]), nullptr);
    if (i + 1 == timers_.size()) uv_run(&loop_, UV_RUN_NOWAIT);
  }
  void set(std::uint32_t i, Nanoseconds time) noexcept {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(squeeze_ ? squeezed(time) : time).count();
    uv_timer_start(
        &timers_[i],
        [](uv_timer_t* timer) { g_fired.note(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(timer->data))); },
        static_cast<std::uint64_t>(ms), 0);
  }
  [[nodiscard]] bool cancel(std::uint32_t i) noexcept {
    const bool was_armed = uv_is_active(reinterpret_cast<const uv_handle_t*>(&timers_[i])) != 0;
    uv_timer_stop(&timers_[i]);
    return was_armed;
  }
  void look(Nanoseconds) noexcept { uv_run(&loop_, UV_RUN_NOWAIT); }
  void await() const { std::this_thread::sleep_until(end_); }
  void expire() noexcept { uv_run(&loop_, UV_RUN_NOWAIT); }

 private:
  bool squeeze_;
  uv_loop_t loop_{};
  std::vector<uv_timer_t> timers_;
  std::chrono::steady_clock::time_point end_;
};

// Boost.Asio as programs use it: a steady_timer each, async_wait with a small handler; the context is told that one thread
// uses it and locks nothing. A cancelled wait comes to its handler, too: that is part of cancelling.
class AsioTimers {
 public:
  static constexpr Nanoseconds kOrder = std::chrono::milliseconds(1);

  explicit AsioTimers(std::uint32_t timers, bool squeeze) : squeeze_(squeeze) { timers_.reserve(timers); }

  void begin() {
    context_.restart();
    start_ = Clock::now();
  }
  void create(std::uint32_t) { timers_.emplace_back(context_); }
  void destroy(std::uint32_t) noexcept { timers_.pop_back(); }
  void set(std::uint32_t i, Nanoseconds time) {
    Timer& timer = timers_[i];
    timer.expires_at(start_ + (squeeze_ ? squeezed(time) : time));
    timer.async_wait([i](const boost::system::error_code& error) {
      if (!error) g_fired.note(i);
    });
  }
  [[nodiscard]] bool cancel(std::uint32_t i) {
    const bool was_armed = timers_[i].cancel() > 0;
    if (++cancelled_ % kRunEvery == 0) run();
    return was_armed;
  }
  void look(Nanoseconds) { run(); }
  void await() const { std::this_thread::sleep_until(start_ + kRealClockHour + std::chrono::milliseconds(2)); }
  void expire() { run(); }

 private:
  using Clock = std::chrono::steady_clock;
  using Timer = boost::asio::steady_timer;
  // Cancelled waits that a program's loop finds when it comes round.
  static constexpr std::uint32_t kRunEvery = 64;

  void run() {
    context_.restart();
    context_.poll();
  }

  bool squeeze_;
  std::uint32_t cancelled_ = 0;
  boost::asio::io_context context_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE};
  std::vector<Timer> timers_;
  Clock::time_point start_;
};

// Asio's timer_queue by itself, the heap inside the above: no handlers, no system call, a clock that can be moved. It is not
// part of Asio's interface.
class AsioQueue {
 public:
  static constexpr Nanoseconds kOrder{1};

  explicit AsioQueue(std::uint32_t timers, bool squeeze);
  ~AsioQueue();
  AsioQueue(const AsioQueue&) = delete;
  AsioQueue& operator=(const AsioQueue&) = delete;

  void begin() noexcept;
  void create(std::uint32_t i) noexcept;
  void destroy(std::uint32_t) noexcept {}
  void set(std::uint32_t i, Nanoseconds time);
  [[nodiscard]] bool cancel(std::uint32_t i) noexcept;
  void look(Nanoseconds time);
  static void await() noexcept {}
  void expire();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

static_assert(Structure<UvTimers> && Structure<AsioTimers> && Structure<AsioQueue>);

}  // namespace freehold::lab::timers
