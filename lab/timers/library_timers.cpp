// SPDX-License-Identifier: MIT
#include "lab/timers/library_timers.hpp"

#include <boost/asio/detail/chrono_time_traits.hpp>
#include <boost/asio/detail/op_queue.hpp>
#include <boost/asio/detail/timer_queue.hpp>
#include <boost/asio/detail/wait_op.hpp>
#include <boost/asio/wait_traits.hpp>
#include <stdexcept>

namespace freehold::lab::timers {

UvTimers::UvTimers(std::uint32_t timers, bool squeeze) : squeeze_(squeeze), timers_(timers) {
  if (uv_loop_init(&loop_) != 0) throw std::runtime_error("libuv has no loop");
}

UvTimers::~UvTimers() { uv_loop_close(&loop_); }

namespace {

// Stands where it was put.
struct MovedClock {
  using duration = Nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<MovedClock>;
  static time_point now() noexcept { return now_; }
  static inline time_point now_{};
};

namespace detail = boost::asio::detail;
using Heap = detail::timer_queue<detail::chrono_time_traits<MovedClock, boost::asio::wait_traits<MovedClock>>>;

struct Wait : detail::wait_op {
  Wait() : wait_op(&complete) {}
  // No owner: it is not called but ended.
  static void complete(void* owner, detail::operation* operation, const boost::system::error_code&, std::size_t) {
    if (owner != nullptr) g_fired.note(static_cast<Wait*>(operation)->number);
  }
  std::uint32_t number = 0;
};

struct Timer {
  Heap::per_timer_data data;
  Wait wait;
};

}  // namespace

struct AsioQueue::Parts {
  explicit Parts(std::uint32_t count) : timers(count) {}
  Heap heap;
  std::vector<Timer> timers;
  MovedClock::time_point start{};

  void run() {
    detail::op_queue<detail::operation> due;
    heap.get_ready_timers(due);
    while (detail::operation* const operation = due.front()) {
      due.pop();
      operation->complete(this, {}, 0);
    }
  }
};

AsioQueue::AsioQueue(std::uint32_t timers, bool) : parts_(std::make_unique<Parts>(timers)) {}
AsioQueue::~AsioQueue() = default;
void AsioQueue::begin() noexcept { parts_->start = MovedClock::now_; }
void AsioQueue::create(std::uint32_t i) noexcept { parts_->timers[i].wait.number = i; }
void AsioQueue::set(std::uint32_t i, Nanoseconds time) {
  Timer& timer = parts_->timers[i];
  parts_->heap.enqueue_timer(parts_->start + time, timer.data, &timer.wait);
}
bool AsioQueue::cancel(std::uint32_t i) noexcept {
  detail::op_queue<detail::operation> cancelled;
  const bool was_armed = parts_->heap.cancel_timer(parts_->timers[i].data, cancelled) > 0;
  while (!cancelled.empty()) cancelled.pop();
  return was_armed;
}
void AsioQueue::look(Nanoseconds time) {
  MovedClock::now_ = parts_->start + time;
  parts_->run();
}
void AsioQueue::expire() { look(kHour + kOrder); }

}  // namespace freehold::lab::timers
