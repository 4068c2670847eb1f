// SPDX-License-Identifier: MIT
// The interface of a timer structure for the timed loops. Adapters provide it for our structures (own_timers.hpp) and for
// those of other libraries (library_timers.hpp). Timers have numbers, 0 to n-1; times count from the call of begin().
#pragma once
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace freehold::lab::timers {

using Nanoseconds = std::chrono::nanoseconds;

// Timers are set within this time. A structure whose own clock cannot be moved uses a shorter one (kRealClockHour).
inline constexpr Nanoseconds kHour = std::chrono::hours(1);
inline constexpr Nanoseconds kRealClockHour = std::chrono::milliseconds(90);
[[nodiscard]] constexpr Nanoseconds squeezed(Nanoseconds time) noexcept { return time / (kHour / kRealClockHour); }

// begin      a new beginning: everything that was set so far has fired or was cancelled.
// create     timer i; destroy ends it. Both may be no more than a constructor where the user brings the timer's memory.
// set        arms timer i, for `time` from the beginning.
// cancel     true: it was armed, and will not fire.
// look       the owner's regular call: `time` has passed since the beginning.
// await      waits until all timers set within the hour are due; not timed.
// expire     calls all that was set within the hour.
// kOrder     the resolution of times: timers that lie nearer to each other may fire in any order.
// Constructed with the number of timers, and whether the hour is to be squeezed if the clock cannot be moved.
template <class S>
concept Structure = std::constructible_from<S, std::uint32_t, bool> && requires(S& s, std::uint32_t i, Nanoseconds time) {
  s.begin();
  s.create(i);
  s.destroy(i);
  s.set(i, time);
  { s.cancel(i) } -> std::same_as<bool>;
  s.look(time);
  s.await();
  s.expire();
  { S::kOrder } -> std::convertible_to<Nanoseconds>;
};

// The log of fired timers, in their order. Every callback of every structure writes the timer's number here and does nothing
// else. The log is read while the clock is stopped.
class FiredLog {
 public:
  void begin(std::size_t most) {
    numbers_.assign(most, 0);
    count_ = 0;
  }
  // An unexpected one is only counted.
  void note(std::uint32_t number) noexcept {
    if (count_ < numbers_.size()) numbers_[count_] = number;
    ++count_;
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::span<const std::uint32_t> numbers() const noexcept { return numbers_; }

 private:
  std::vector<std::uint32_t> numbers_;
  std::size_t count_ = 0;
};

// One structure in a worker, and one thread that handles.
inline FiredLog g_fired;

// A random generator that costs two or three nanoseconds; the measured operations take ten.

// splitmix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) noexcept : state_(seed) {}

  constexpr std::uint64_t next() noexcept {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }

 private:
  std::uint64_t state_;
};

// 32 random bits as one of 0 … n-1.
[[nodiscard]] constexpr std::uint64_t below(std::uint64_t random_bits, std::uint64_t n) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide{random_bits & 0xffffffff} * n >> 32);
}

}  // namespace freehold::lab::timers
