// SPDX-License-Identifier: MIT
// Every timer structure against a sorted reference: random operations, also from callbacks, random steps of the clock, jumps
// by days and backwards, random budgets. The reference says of each call what must fire, what may not, and when the next is
// due; in a checked build the structure's own invariants are checked after every step.
#include <cstdio>

#include "tests/support/inside.hpp"
#include "tests/support/test.hpp"
#include "tests/support/trace.hpp"
#include "tests/unit/timer/implementations.hpp"

namespace freehold::test {
namespace {

using timer::SetResult;
using timer::TimePoint;
using timer::TimerId;
using namespace std::chrono_literals;

#if defined(FREEHOLD_CHECKED)
constexpr std::uint64_t kSteps = 8'000;
#else
constexpr std::uint64_t kSteps = 100'000;
#endif

// When the structure may fire what is set to `time`.
template <class T>
TimePoint rounded(TimePoint time) {
  if constexpr (requires { typename T::TickDuration; }) {
    if (time > TimePoint::max() - 1h) return TimePoint::max();
    return std::chrono::ceil<typename T::TickDuration>(time);
  } else {
    return time;
  }
}

template <class T>
class Reference {
 public:
  Reference(std::uint64_t seed, std::size_t most_timers) : random_(seed), most_timers_(most_timers), known_(most_timers) {
    timers_.advance(now_);
    const TimerId nobodys(123'456, 7);
    for (const TimerId id : {TimerId{}, nobodys}) expect_no_timer(id);
  }

  void step() {
    switch (draw(10)) {
      case 0: advance(draw(64)); break;
      case 1: advance(draw(8) == 0 ? draw(1'000'000'000'000'000) : draw(100'000'000)); break;
      case 2:
        if (draw(20) == 0)
          call_advance(now_ - std::chrono::nanoseconds(draw(1'000'000'000'000)), SIZE_MAX);
        else
          check_next();
        break;
      case 3: to_next(); break;
      default: operate(); break;
    }
    if constexpr (timer::Inside::kHasInvariants<decltype(timers_)>) timer::Inside::check_invariants(timers_);
  }

  std::uint64_t fired() const { return fired_; }

 private:
  struct Known {
    Reference* self = nullptr;
    TimerId id;
    bool exists = false;
    std::optional<TimePoint> time;
    bool was_due = false;    // when it was set
    bool fired_now = false;  // in the running advance()
  };

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  TimePoint draw_time() {
    const auto sign = draw(6) == 0 ? -1 : 1;
    switch (draw(16)) {
      case 0: return TimePoint::max();
      case 1: return TimePoint::min();
      case 2: return now_;
      default: break;
    }
    // Any magnitude: from nanoseconds to weeks.
    const auto distance = static_cast<std::int64_t>(draw(std::uint64_t{2} << draw(50)));
    return now_ + std::chrono::nanoseconds(sign * distance);
  }

  // A random operation on a random timer.
  void operate() {
    Known& known = known_[draw(most_timers_)];
    check_expiry(known);
    switch (draw(8)) {
      case 0:
        if (known.exists) {
          EXPECT_TRUE(timers_.destroy(known.id));
          forget(known);
          known.exists = false;
          expect_no_timer(known.id);
        } else {
          expect_no_timer(known.id);  // the timer of its former life; others have had its memory since
          create(known);
        }
        break;
      case 1:
      case 2: {
        const bool was_armed = known.time.has_value();
        EXPECT_EQ(timers_.cancel(known.id), was_armed);
        forget(known);
        break;
      }
      default: {
        if (!known.exists) create(known);
        set(known);
        break;
      }
    }
  }
  void expect_no_timer(TimerId id) {
    EXPECT_FALSE(timers_.destroy(id));
    EXPECT_FALSE(timers_.cancel(id));
    EXPECT_EQ(timers_.set(id, now_), SetResult::kNoTimer);
  }
  void check_expiry(const Known& known) {
    const std::optional<TimePoint> expiry = timers_.expiry(known.id);
    ASSERT_EQ(expiry.has_value(), known.time.has_value());
    EXPECT_EQ(is_armed(timers_, known.id), known.time.has_value());
    if (!known.time || *known.time <= now_ || *known.time > TimePoint::max() - 1h) return;
    EXPECT_EQ(*expiry, rounded<T>(*known.time));
    EXPECT_EQ(remaining(timers_, known.id, now_), *expiry - now_);
    EXPECT_EQ(remaining(timers_, known.id, *expiry), timer::Clock::duration::zero());
  }
  void create(Known& known) {
    known.self = this;
    const TimerId former = known.id;
    known.id = timers_.create([&known](TimerId id) { known.self->on_fire(known, id); });
    ASSERT_TRUE(known.id);
    EXPECT_NE(known.id, former);
    known.exists = true;
  }
  void set(Known& known) {
    const TimePoint time = draw_time();
    EXPECT_EQ(timers_.set(known.id, time), known.time ? SetResult::kRearmed : SetResult::kArmed);
    forget(known);
    known.time = time;
    known.was_due = time <= now_;
    armed_.emplace(rounded<T>(time), &known);
  }
  void forget(Known& known) {
    if (known.time) armed_.erase({rounded<T>(*known.time), &known});
    known.time.reset();
  }

  void on_fire(Known& known, TimerId id) {
    EXPECT_EQ(id, known.id);
    ASSERT_TRUE(known.exists && known.time.has_value()) << "fired though it was not armed";
    EXPECT_LE(*known.time, now_) << "too early";
    EXPECT_FALSE(known.fired_now) << "twice in one call";
    if (!known.was_due) {
      EXPECT_GE(rounded<T>(*known.time), latest_) << "out of order";
      latest_ = rounded<T>(*known.time);
    }
    known.fired_now = true;
    fired_now_.push_back(&known);
    forget(known);
    ++fired_;
    for (std::uint64_t n = draw(3); n > 0; --n) operate();
    if (draw(4) == 0 && known.exists) set(known);
  }

  // One call; whether there may be more to do.
  bool call_advance(TimePoint now, std::size_t budget) {
    latest_ = TimePoint::min();
    fired_now_.clear();
    const timer::Progress progress = timers_.advance(now, budget);
    EXPECT_EQ(progress.fired, fired_now_.size());
    EXPECT_LE(progress.fired, budget);
    for (Known* known : fired_now_) known->fired_now = false;
    if (!progress.more) expect_nothing_due();
    return progress.more;
  }
  void advance(std::uint64_t nanoseconds) {
    now_ += std::chrono::nanoseconds(nanoseconds);
    const bool bounded = draw(3) == 0;
    // Callbacks may set timers that are due for ever; after so many calls the rest is left to the next advance.
    for (int calls = 0; calls < 20 && call_advance(now_, bounded ? 1 + draw(10) : SIZE_MAX); ++calls)
      if (draw(2) == 0) check_next();
  }
  void expect_nothing_due() {
    if (!armed_.empty()) {
      EXPECT_GT(armed_.begin()->first, now_) << "lost, or late";
    }
  }

  // Not later than the earliest; exactly that where it is promised.
  void check_next() {
    const std::optional<TimePoint> next = timers_.next_expiry();
    if (armed_.empty()) {
      if (most_timers_ <= kExactUpTo) {
        EXPECT_EQ(next, std::nullopt);
      }
      return;
    }
    ASSERT_TRUE(next.has_value());
    const TimePoint earliest = armed_.begin()->first;
    if (earliest <= now_) {
      EXPECT_LE(*next, now_);
    } else if (most_timers_ <= kExactUpTo) {
      EXPECT_EQ(*next, earliest) << "not the earliest";
    } else {
      EXPECT_LE(*next, earliest);
    }
  }

  // As a driver does: from one next_expiry() to the next, until something fires. Few calls find nothing to fire.
  void to_next() {
    const std::uint64_t before = fired_;
    for (int idle_calls = 0; fired_ == before; ++idle_calls) {
      const std::optional<TimePoint> next = timers_.next_expiry();
      if (!next || *next > now_ + 24h * 60) return;
      now_ = std::max(now_, *next);
      call_advance(now_, SIZE_MAX);
      ASSERT_LE(idle_calls, static_cast<int>(12 + most_timers_ / 30)) << "too many calls for nothing";
    }
  }

  static constexpr std::size_t kExactUpTo = 24;

  std::mt19937_64 random_;
  std::size_t most_timers_;
  T timers_;
  TimePoint now_ = kStart;
  std::vector<Known> known_;
  std::set<std::pair<TimePoint, Known*>> armed_;
  std::vector<Known*> fired_now_;
  TimePoint latest_;
  std::uint64_t fired_ = 0;
};

template <class T>
class TimerReference : public testing::Test {
 protected:
  std::uint64_t seed_ = number_from_environment("FREEHOLD_TEST_SEED", std::random_device{}());
  std::uint64_t steps_ = kSteps * number_from_environment("FREEHOLD_TEST_SCALE", 1);

  void run(std::size_t most_timers) {
    std::printf("FREEHOLD_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed_));
    Reference<T> reference(seed_, most_timers);
    for (std::uint64_t step = 0; step < steps_ && !this->HasFailure(); ++step) {
      SCOPED_TRACE(step);
      reference.step();
    }
    EXPECT_GT(reference.fired(), steps_ / 20);
  }
};
TYPED_TEST_SUITE(TimerReference, TimerTypes);

TYPED_TEST(TimerReference, FewTimers_AsTheReferenceAndExact) { this->run(24); }
TYPED_TEST(TimerReference, ManyTimers_AsTheReference) { this->run(500); }

}  // namespace
}  // namespace freehold::test
