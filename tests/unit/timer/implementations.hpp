// SPDX-License-Identifier: MIT
// Every timer structure with every locking policy, for typed tests, and times to test them at.
#pragma once
#include "freehold/timer/timer_queue.hpp"
#include "freehold/timer/timer_wheel.hpp"
#include "lab/timers/deque_timer_queue.hpp"
#include "lab/timers/heap_timer_queue.hpp"
#include "tests/support/test.hpp"

namespace freehold::test {

// Multiples of every wheel's tick in the tests.
using Step = std::chrono::milliseconds;
inline constexpr timer::TimePoint kStart{std::chrono::hours(1000)};
[[nodiscard]] constexpr timer::TimePoint at(std::int64_t steps) { return kStart + Step(steps); }

// Every structure, with one thread or with locks: the structures do not know which.
using TimerTypes =
    testing::Types<timer::DequeTimerQueue<std::allocator<int>, timer::AnyThread>, timer::DequeTimerQueue<>,
                   timer::HeapTimerQueue<timer::AnyThread>, timer::TimerQueue<>, timer::TimerQueue<timer::AnyThread>,
                   timer::TimerWheel<timer::SingleThreaded, std::chrono::nanoseconds>,
                   timer::TimerWheel<timer::AnyThread, std::chrono::microseconds>>;

}  // namespace freehold::test
