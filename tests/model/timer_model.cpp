// SPDX-License-Identifier: MIT
// The wheel for any thread under every interleaving within the bounds: an owner that advances against threads that set,
// cancel and destroy. The oracle is a ledger: every arming ends in exactly one of a call, a cancel() that said true, or a
// destroy(). No call comes before its time, and none is missing when all times have come. The writes of a thread before
// set() are visible to the callback, else there is a race on plain data. Each order weakened by one step, and mutants of the
// protocol, are caught.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>

#include "freehold/timer/driver.hpp"
#include "freehold/timer/timer_wheel.hpp"
#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"

namespace freehold {
namespace {

using sim::Execution;
using sim::Failure;
using sim::Result;
using sim::SimAtomics;
using timer::SetResult;
using timer::TimePoint;
using timer::TimerId;

constexpr TimePoint at(int nanoseconds) {
  return TimePoint(std::chrono::hours(1000)) + std::chrono::nanoseconds(nanoseconds);
}
constexpr int kForEver = 1'000'000;

template <class A, class Orders>
using WheelOf = timer::BasicTimerWheel<timer::AnyThreadOn<A>, std::chrono::nanoseconds, Orders>;

// A wheel, and what became of its timers.
template <class A, class Orders>
class Ledger {
 public:
  using Wheel = WheelOf<A, Orders>;

  explicit Ledger(std::size_t timers = 4) : wheel_(timers) { wheel_.advance(at(0)); }

  struct Timer {
    Ledger* ledger = nullptr;
    TimerId id;
    typename A::template var<int> note{0};  // written before set(), read by the callback
    std::array<int, 8> calls{};             // the times of the owner's advance()
    int called = 0;
    int armed = 0, rearmed = 0, cancelled = 0, destroyed = 0;  // how often set() or cancel() said so
  };

  void create(Timer& timer) { SIM_CHECK(try_create(timer)); }
  bool try_create(Timer& timer) {
    timer.ledger = this;
    timer.id = wheel_.create(
        [](void* context, TimerId id) {
          auto& called = *static_cast<Timer*>(context);
          SIM_CHECK(id == called.id);
          (void)called.note.load();
          if (called.called < 8) called.calls[static_cast<std::size_t>(called.called)] = called.ledger->now_;
          ++called.called;
        },
        &timer);
    return static_cast<bool>(timer.id);
  }
  void set(Timer& timer, int time) {
    const SetResult result = wheel_.set(timer.id, at(time));
    timer.armed += result == SetResult::kArmed;
    timer.rearmed += result == SetResult::kRearmed;
  }
  void cancel(Timer& timer) { timer.cancelled += wheel_.cancel(timer.id); }
  void destroy(Timer& timer) { timer.destroyed += wheel_.destroy(timer.id); }
  void advance(int now) {
    now_ = now;
    wheel_.advance(at(now));
  }
  // Armed and seen by the owner.
  void create_armed(Timer& timer, int time) {
    create(timer);
    set(timer, time);
    advance(0);
  }
  // What was armed was called or cancelled, and no less.
  static void expect_balance(const Timer& timer) { SIM_CHECK(timer.armed == timer.called + timer.cancelled); }
  void finish(const Timer& timer) {
    wheel_.check_invariants();
    advance(kForEver);
    wheel_.check_invariants();
    expect_balance(timer);
    SIM_CHECK(wheel_.next_expiry() == std::nullopt);
  }
  Wheel& wheel() { return wheel_; }

 private:
  Wheel wheel_;
  int now_ = 0;
};

// One scenario of each kind of meeting.
template <class A, class Orders>
struct Scenarios {
  using Ledger = freehold::Ledger<A, Orders>;
  using Timer = typename Ledger::Timer;

  static void cancel_while_due(Execution& run) {
    Ledger ledger;
    Timer timer;
    ledger.create_armed(timer, 5);
    run.spawn([&] { ledger.advance(5); });
    run.spawn([&] { ledger.cancel(timer); });
    run.check([&] {
      SIM_CHECK(timer.called + timer.cancelled == 1);
      ledger.finish(timer);
    });
  }
  static void two_cancel(Execution& run) {
    Ledger ledger;
    Timer timer;
    ledger.create_armed(timer, 5);
    for (int i = 0; i < 2; ++i) run.spawn([&] { timer.cancelled += ledger.wheel().cancel(timer.id); });
    run.spawn([&] { ledger.advance(5); });
    run.check([&] { ledger.finish(timer); });
  }
  static void postpone_while_due(Execution& run) {
    Ledger ledger;
    Timer timer;
    ledger.create_armed(timer, 5);
    run.spawn([&] {
      ledger.advance(5);
      ledger.advance(10);
    });
    run.spawn([&] { ledger.set(timer, 20); });
    run.check([&] {
      SIM_CHECK(timer.called == timer.armed - 1);
      ledger.advance(19);
      SIM_CHECK(timer.called == timer.armed - 1);
      ledger.advance(20);
      SIM_CHECK(timer.called == timer.armed);
      SIM_CHECK(timer.calls[static_cast<std::size_t>(timer.called - 1)] == 20);
      ledger.finish(timer);
    });
  }
  // The owner moves a timer on, or forgets it, while it is set to a time before its new place.
  template <bool kCancelled, bool kLooksOnly>
  static void set_while_moved(Execution& run) {
    Ledger ledger;
    Timer timer;
    ledger.create_armed(timer, 70);
    if (kCancelled)
      ledger.cancel(timer);
    else
      ledger.set(timer, 1000);  // stays linked where it is
    run.spawn([&] {
      if (kLooksOnly)
        (void)ledger.wheel().next_expiry();
      else
        ledger.advance(69);
    });
    run.spawn([&] { ledger.set(timer, 72); });
    run.check([&] {
      const int before = timer.called;
      SIM_CHECK(ledger.wheel().next_expiry() <= at(72));
      ledger.advance(71);
      SIM_CHECK(timer.called == before);
      ledger.advance(72);
      SIM_CHECK(timer.called == before + 1);
      ledger.finish(timer);
    });
  }
  // The node has a second life while somebody asks for the first one's time.
  static void expiry_while_reused(Execution& run) {
    Ledger ledger(1);
    Timer first, second;
    ledger.create_armed(first, 5);
    const TimerId id = first.id;
    std::optional<TimePoint> seen;
    run.spawn([&] {
      ledger.destroy(first);
      ledger.advance(1);
      ledger.create(second);
      ledger.set(second, 20);
    });
    run.spawn([&] { seen = ledger.wheel().expiry(id); });
    run.check([&] {
      SIM_CHECK(!seen || *seen == at(5));
      SIM_CHECK(ledger.wheel().expiry(id) == std::nullopt && ledger.wheel().expiry(second.id) == at(20));
      ledger.finish(second);
    });
  }
  static void expiry_while_set(Execution& run) {
    Ledger ledger;
    Timer timer;
    ledger.create_armed(timer, 5);
    std::optional<TimePoint> seen, later;
    run.spawn([&] { ledger.set(timer, 20); });
    run.spawn([&] {
      seen = ledger.wheel().expiry(timer.id);
      later = ledger.wheel().expiry(timer.id);
    });
    run.check([&] {
      SIM_CHECK(seen == at(5) || seen == at(20));
      SIM_CHECK(later == at(20) || (later == at(5) && seen == at(5)));
      SIM_CHECK(ledger.wheel().expiry(timer.id) == at(20));
      ledger.finish(timer);
    });
  }
  static void set_sooner(Execution& run) {
    Ledger ledger;
    Timer timer;
    ledger.create_armed(timer, 1000);
    run.spawn([&] {
      ledger.advance(5);
      ledger.advance(6);
    });
    run.spawn([&] {
      timer.note.store(1);
      ledger.set(timer, 6);
    });
    run.check([&] {
      ledger.advance(6);
      SIM_CHECK(timer.called == 1);
      ledger.finish(timer);
    });
  }
  // Without a tell: what was written before set() comes through the timer's word alone.
  static void set_in_place(Execution& run) {
    Ledger ledger;
    Timer timer;
    ledger.create_armed(timer, 5);
    ledger.cancel(timer);
    run.spawn([&] { ledger.advance(6); });
    run.spawn([&] {
      timer.note.store(1);
      ledger.set(timer, 6);
    });
    run.check([&] { ledger.finish(timer); });
  }
  static void set_against_set(Execution& run) {
    Ledger ledger;
    Timer timer;
    ledger.create(timer);
    run.spawn([&] { ledger.set(timer, 3); });
    run.spawn([&] { ledger.set(timer, 9); });
    run.spawn([&] { ledger.advance(5); });
    run.check([&] { ledger.finish(timer); });
  }
  static void set_against_cancel(Execution& run) {
    Ledger ledger;
    Timer timer;
    ledger.create_armed(timer, 2);
    run.spawn([&] { ledger.set(timer, 5); });
    run.spawn([&] {
      ledger.cancel(timer);
      ledger.cancel(timer);
    });
    run.spawn([&] { ledger.advance(5); });
    run.check([&] { ledger.finish(timer); });
  }
  static void tell_of_two(Execution& run) {
    Ledger ledger;
    Timer first, second;
    ledger.create(first);
    ledger.create(second);
    run.spawn([&] { ledger.set(first, 5); });
    run.spawn([&] { ledger.set(second, 5); });
    run.spawn([&] { ledger.advance(5); });
    run.check([&] {
      ledger.advance(5);
      SIM_CHECK(first.called == 1 && second.called == 1);
      ledger.finish(first);
    });
  }
  // Told, listened to, and told again: the link of the owner's list is used twice.
  static void tell_again(Execution& run) {
    Ledger ledger;
    Timer timer;
    ledger.create(timer);
    run.spawn([&] {
      ledger.set(timer, 100);
      ledger.set(timer, 50);
      ledger.set(timer, 20);
    });
    run.spawn([&] {
      ledger.advance(1);
      ledger.advance(2);
    });
    run.check([&] {
      ledger.advance(20);
      SIM_CHECK(timer.called == 1);
      ledger.finish(timer);
    });
  }
  static void destroy_while_set_and_due(Execution& run) {
    Ledger ledger(1);
    Timer timer, successor;
    ledger.create_armed(timer, 5);
    run.spawn([&] { ledger.destroy(timer); });
    run.spawn([&] { ledger.set(timer, 6); });
    run.spawn([&] { ledger.advance(5); });
    run.check([&] {
      SIM_CHECK(timer.destroyed == 1);
      SIM_CHECK(timer.called <= 1);
      const int called = timer.called;
      ledger.advance(8);
      SIM_CHECK(timer.called == called);
      ledger.create(successor);  // in the same node
      SIM_CHECK(successor.id != timer.id && successor.id.index() == timer.id.index());
      SIM_CHECK(!ledger.wheel().cancel(timer.id) && !ledger.wheel().destroy(timer.id));
      SIM_CHECK(ledger.wheel().set(timer.id, at(9)) == SetResult::kNoTimer);
      ledger.set(successor, 9);
      ledger.finish(successor);
      SIM_CHECK(timer.called == called);
    });
  }
  // Who holds a handle of a former life meets the next one in the same node.
  static void stale_handle(Execution& run) {
    Ledger ledger(1);
    Timer timer, successor;
    ledger.create_armed(timer, 5);
    run.spawn([&] {
      ledger.destroy(timer);
      ledger.advance(1);
      if (ledger.try_create(successor)) ledger.set(successor, 7);  // not while the other set() is under way
    });
    run.spawn([&] {
      ledger.cancel(timer);
      ledger.set(timer, 4);
    });
    run.check([&] {
      ledger.advance(6);
      SIM_CHECK(timer.called == 0 && successor.called == 0);
      if (!successor.id) {
        ledger.create(successor);
        ledger.set(successor, 7);
      }
      ledger.advance(7);
      SIM_CHECK(successor.called == 1);
      ledger.finish(successor);
    });
  }
  static void destroy_twice(Execution& run) {
    Ledger ledger(1);
    Timer timer, successor;
    ledger.create(timer);
    for (int i = 0; i < 2; ++i) run.spawn([&] { timer.destroyed += ledger.wheel().destroy(timer.id); });
    run.spawn([&] { ledger.advance(1); });
    run.check([&] {
      SIM_CHECK(timer.destroyed == 1);
      ledger.advance(2);
      ledger.create(successor);
      SIM_CHECK(!ledger.wheel().create([](void*, TimerId) {}, nullptr));
    });
  }

  struct Named {
    const char* name;
    void (*scenario)(Execution&);
    unsigned preemptions, stale;
  };
  static constexpr Named kAll[] = {
      {"cancel while due", cancel_while_due, 5, 2},
      {"two cancel", two_cancel, 3, 1},
      {"postpone while due", postpone_while_due, 4, 2},
      {"set while moved on", set_while_moved<false, false>, 4, 2},
      {"set while forgotten", set_while_moved<true, false>, 4, 2},
      {"set while looked at", set_while_moved<false, true>, 4, 2},
      {"set while looked at and forgotten", set_while_moved<true, true>, 4, 2},
      {"expiry while the node is used again", expiry_while_reused, 3, 3},
      {"expiry while set", expiry_while_set, 3, 2},
      {"set sooner", set_sooner, 4, 2},
      {"set in place", set_in_place, 4, 2},
      {"set against set", set_against_set, 3, 1},
      {"set against cancel", set_against_cancel, 3, 1},
      {"tell of two", tell_of_two, 3, 1},
      {"tell again", tell_again, 3, 2},
      {"destroy while set and due", destroy_while_set_and_due, 3, 1},
      {"stale handle", stale_handle, 4, 2},
      {"destroy twice", destroy_twice, 3, 1},
  };
};

using Shipped = Scenarios<SimAtomics, timer::WheelOrders>;

class TimerWheel_Model : public testing::TestWithParam<std::size_t> {};

TEST_P(TimerWheel_Model, AnyThreads_EveryArmingEndsOnce) {
  const Shipped::Named& named = Shipped::kAll[GetParam()];
  const Result result = sim::explore(
      {.name = std::string("timer/") + named.name, .preemptions = named.preemptions, .stale = named.stale}, named.scenario);
  EXPECT_TRUE(result.ok()) << result;
}
INSTANTIATE_TEST_SUITE_P(All, TimerWheel_Model, testing::Range(std::size_t{0}, std::size(Shipped::kAll)));

// ---- mutants: one of the scenarios must fail, as often as not a race or a violated check.

template <class A, class Orders>
std::string killed_by() {
  for (const auto& named : Scenarios<A, Orders>::kAll) {
    const Result result = sim::explore({.name = std::string("timer mutant/") + named.name,
                                        .preemptions = named.preemptions,
                                        .stale = named.stale,
                                        .print = false},
                                       named.scenario);
    if (result.failure != Failure::kNone) return named.name + (": " + result.message.substr(0, result.message.find(',')));
  }
  return "";
}

constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
struct RelaxedLook : timer::WheelOrders {
  static constexpr std::memory_order kLook = kRelaxed;
};
struct RelaxedArm : timer::WheelOrders {
  static constexpr std::memory_order kArm = kRelaxed;
};
struct RelaxedOwnerLook : timer::WheelOrders {
  static constexpr std::memory_order kOwnerLook = kRelaxed;
};
struct RelaxedSettle : timer::WheelOrders {
  static constexpr std::memory_order kResolve = kRelaxed;
};
struct RelaxedWriteDue : timer::WheelOrders {
  static constexpr std::memory_order kWriteDue = kRelaxed;
};
struct RelaxedReadDue : timer::WheelOrders {
  static constexpr std::memory_order kReadDue = kRelaxed;
};
struct RelaxedTell : timer::WheelOrders {
  static constexpr std::memory_order kPost = kRelaxed;
};
struct RelaxedTake : timer::WheelOrders {
  static constexpr std::memory_order kTake = kRelaxed;
};

template <class Orders>
class TimerWheel_WeakenedOrders : public testing::Test {};
using Weakened = testing::Types<RelaxedLook, RelaxedArm, RelaxedOwnerLook, RelaxedSettle, RelaxedWriteDue, RelaxedReadDue,
                                RelaxedTell, RelaxedTake>;
TYPED_TEST_SUITE(TimerWheel_WeakenedOrders, Weakened);
TYPED_TEST(TimerWheel_WeakenedOrders, OneOrder_IsNoticed) {
  const std::string scenario = killed_by<SimAtomics, TypeParam>();
  EXPECT_NE(scenario, "");
  std::printf("killed by: %s\n", scenario.c_str());
}

// The protocol is mutated underneath: a timer's word is the one that is changed by compare-exchange.
template <class T, std::uint64_t kKept>
class MaskedAtomic : public sim::atomic<T> {
 public:
  using sim::atomic<T>::atomic;
  bool compare_exchange_weak(T& expected, T desired, sim::Order success, sim::Order failure) noexcept {
    if constexpr (sizeof(T) == 8) desired &= kKept;
    return sim::atomic<T>::compare_exchange_weak(expected, desired, success, failure);
  }
};
template <std::uint64_t kKept>
struct Masked : SimAtomics {
  template <class T>
  using atomic = MaskedAtomic<T, kKept>;
};
// What came and went in between is not noticed.
using NoVersions = Masked<~0xffff'ffe0ull>;
// A cancel() during a set() leaves no mark.
using NoCancelMark = Masked<~4ull>;
// A set() does not hold the timer.
using NoHold = Masked<~2ull>;
// Nobody remembers that the owner was told.
using NoToldMark = Masked<~8ull>;

// Changes by a load and a store.
template <class T, std::size_t kBytes>
class TornAtomic : public sim::atomic<T> {
 public:
  using sim::atomic<T>::atomic;
  bool compare_exchange_weak(T& expected, T desired, sim::Order success, sim::Order failure) noexcept {
    if constexpr (sizeof(T) != kBytes) return sim::atomic<T>::compare_exchange_weak(expected, desired, success, failure);
    const T old = this->load(std::memory_order_acquire);
    if (old == expected) {
      this->store(desired, std::memory_order_release);
      return true;
    }
    expected = old;
    return false;
  }
  T exchange(T value, sim::Order order) noexcept {
    if constexpr (sizeof(T) != kBytes) return sim::atomic<T>::exchange(value, order);
    const T old = this->load(std::memory_order_acquire);
    this->store(value, std::memory_order_release);
    return old;
  }
};
struct TornWord : SimAtomics {
  template <class T>
  using atomic = TornAtomic<T, 8>;
};
struct TornTell : SimAtomics {
  template <class T>
  using atomic = TornAtomic<T, 4>;
};

template <class A>
class TimerWheel_Mutants : public testing::Test {};
using Mutants = testing::Types<NoVersions, NoCancelMark, NoHold, NoToldMark, TornWord, TornTell>;
TYPED_TEST_SUITE(TimerWheel_Mutants, Mutants);
TYPED_TEST(TimerWheel_Mutants, OneStep_IsNoticed) {
  const std::string scenario = killed_by<TypeParam, timer::WheelOrders>();
  EXPECT_NE(scenario, "");
  std::printf("killed by: %s\n", scenario.c_str());
}

// ---- the driver's sleep, and waiting for a callback's end

// It is the sixth nanosecond, and time does not pass: who is not woken sleeps for ever, which is a deadlock.
template <class A>
struct SleepOn {
  static void wait_until(const typename A::template atomic<std::uint32_t>& word, std::uint32_t old,
                         std::optional<TimePoint> until) {
    if (!until || *until > at(6)) A::wait(word, old);
  }
};

// `in_place`: the owner finds the timer where it was, and is not told.
template <class A, class Orders>
Result earlier_time_wakes(const sim::Options& options, bool in_place) {
  return sim::explore(options, [=](Execution& run) {
    using Ledger = freehold::Ledger<A, timer::WheelOrders>;
    Ledger ledger;
    typename Ledger::Timer timer;
    timer::Alarm<A, SleepOn<A>, Orders> alarm;
    ledger.create_armed(timer, in_place ? 5 : 1000);
    if (in_place) ledger.set(timer, 1000);
    run.spawn([&] {
      while (timer.called == 0) {  // nobody else writes it
        const std::uint32_t looked = alarm.look();
        ledger.advance(in_place ? 4 : 6);
        if (timer.called == 0) alarm.sleep(ledger.wheel(), looked);
        if (in_place) ledger.advance(6);
      }
    });
    run.spawn([&] {
      ledger.set(timer, 6);
      alarm.wake_for(at(6));
    });
    run.check([&] { SIM_CHECK(timer.called == 1); });
  });
}

template <class A, class Orders>
Result stop_wakes(const sim::Options& options) {
  return sim::explore(options, [](Execution& run) {
    freehold::Ledger<A, timer::WheelOrders> ledger;
    timer::Alarm<A, SleepOn<A>, Orders> alarm;
    typename A::template atomic<std::uint32_t> stopped{0};
    run.spawn([&] {
      for (;;) {
        const std::uint32_t looked = alarm.look();
        if (stopped.load(std::memory_order_relaxed) != 0) return;
        alarm.sleep(ledger.wheel(), looked);
      }
    });
    run.spawn([&] {
      stopped.store(1, std::memory_order_relaxed);
      alarm.wake();
    });
    run.check([] {});
  });
}

template <class A, class Orders>
Failure sleeper(bool print) {
  for (const bool in_place : {false, true}) {
    const Result woken = earlier_time_wakes<A, Orders>(
        {.name = in_place ? "timer/alarm, in place" : "timer/alarm", .preemptions = 3, .stale = 1, .print = print},
        in_place);
    if (!woken.ok()) return woken.failure;
  }
  const Result stopped = stop_wakes<A, Orders>({.name = "timer/alarm, stop", .preemptions = 3, .stale = 1, .print = print});
  return stopped.ok() ? Failure::kNone : stopped.failure;
}

struct NoFence : timer::AlarmOrders {
  static constexpr std::memory_order kFence = std::memory_order_acq_rel;
};
struct RelaxedWakeLook : timer::AlarmOrders {
  static constexpr std::memory_order kLook = kRelaxed;
};
struct RelaxedWake : timer::AlarmOrders {
  static constexpr std::memory_order kWake = kRelaxed;
};
struct NobodyIsWoken : SimAtomics {
  static void notify_one(atomic<std::uint32_t>&) noexcept {}
};

TEST(Alarm_Model, EarlierTimeOrStop_NoSleeperIsLeft) {
  EXPECT_EQ((sleeper<SimAtomics, timer::AlarmOrders>(true)), Failure::kNone);
}
TEST(Alarm_Mutants, EachOrderWeakenedNobodyWoken_Deadlock) {
  EXPECT_EQ((sleeper<SimAtomics, NoFence>(false)), Failure::kDeadlock);
  EXPECT_EQ((sleeper<SimAtomics, RelaxedWakeLook>(false)), Failure::kDeadlock);
  EXPECT_EQ((sleeper<SimAtomics, RelaxedWake>(false)), Failure::kDeadlock);
  EXPECT_EQ((sleeper<NobodyIsWoken, timer::AlarmOrders>(false)), Failure::kDeadlock);
}

// After cancel() or destroy() and quiesce(), nothing of the callback races with who takes its context away.
template <class A, class Orders>
Result context_goes(const sim::Options& options, bool destroy) {
  return sim::explore(options, [=](Execution& run) {
    using Ledger = freehold::Ledger<A, timer::WheelOrders>;
    Ledger ledger;
    typename Ledger::Timer timer;
    timer::Rounds<A, Orders> rounds;
    ledger.create_armed(timer, 5);
    run.spawn([&] {
      for (const int now : {5, 6}) {
        rounds.begin();
        ledger.advance(now);
        rounds.end();
      }
    });
    run.spawn([&] {
      destroy ? ledger.destroy(timer) : ledger.cancel(timer);
      rounds.quiesce();
      timer.note.store(-1);
    });
    run.check([] {});
  });
}
template <class A, class Orders>
Failure quiescence(bool print) {
  for (const bool destroy : {false, true}) {
    const Result result = context_goes<A, Orders>({.name = destroy ? "timer/quiesce destroyed" : "timer/quiesce cancelled",
                                                   .preemptions = 4,
                                                   .stale = 2,
                                                   .print = print},
                                                  destroy);
    if (!result.ok()) return result.failure;
  }
  return Failure::kNone;
}

// Who waits for a round to pass finds that the owner saw what was written before; nobody waits for ever. The owner's second
// round waits until it is asked for; with one round it ends while the other thread may not have begun.
template <class A, class Orders>
Result round_passes(const sim::Options& options, std::uint32_t rounds_in_all) {
  return sim::explore(options, [=](Execution& run) {
    timer::Rounds<A, Orders> rounds;
    typename A::template atomic<std::uint32_t> asked{0}, wakes{0};
    typename A::template atomic<std::uint32_t> seen{0};
    run.spawn([&] {
      for (std::uint32_t round = 0; round < rounds_in_all; ++round) {
        while (wakes.load(std::memory_order_acquire) < round) A::wait(wakes, round - 1);
        rounds.begin();
        seen.store(asked.load(std::memory_order_relaxed), std::memory_order_relaxed);
        rounds.end();
      }
      rounds.finish();
    });
    run.spawn([&] {
      asked.store(1, std::memory_order_relaxed);
      const bool passed = rounds.pass([&] {
        wakes.fetch_add(1, std::memory_order_release);
        A::notify_one(wakes);
      });
      if (passed) SIM_CHECK(seen.load(std::memory_order_relaxed) == 1);
    });
    run.check([] {});
  });
}
template <class A, class Orders>
Failure passing(bool print) {
  for (const std::uint32_t rounds : {1U, 2U}) {
    const Result result = round_passes<A, Orders>(
        {.name = "timer/round passes of " + std::to_string(rounds), .preemptions = 4, .stale = 2, .print = print}, rounds);
    if (!result.ok()) return result.failure;
  }
  return Failure::kNone;
}

struct RelaxedRoundLook : timer::RoundsOrders {
  static constexpr std::memory_order kLook = kRelaxed;
};
struct RelaxedEnd : timer::RoundsOrders {
  static constexpr std::memory_order kEnd = kRelaxed;
};
struct NoBeginFence : timer::RoundsOrders {
  static constexpr std::memory_order kBegin = std::memory_order_acq_rel;
};
struct NoRoundFence : timer::RoundsOrders {
  static constexpr std::memory_order kFence = std::memory_order_acq_rel;
};

TEST(Rounds_Model, CancelledOrDestroyedAndQuiet_TheContextMayGo) {
  EXPECT_EQ((quiescence<SimAtomics, timer::RoundsOrders>(true)), Failure::kNone);
}
TEST(Rounds_Mutants, EachOrderWeakened_RaceOrDeadlock) {
  EXPECT_EQ((quiescence<SimAtomics, RelaxedRoundLook>(false)), Failure::kRace);
  EXPECT_EQ((quiescence<SimAtomics, RelaxedEnd>(false)), Failure::kRace);
  EXPECT_EQ((quiescence<SimAtomics, NoRoundFence>(false)), Failure::kDeadlock);
}
TEST(Rounds_Model, RoundAwaited_OwnerSawWhatCameBefore) {
  EXPECT_EQ((passing<SimAtomics, timer::RoundsOrders>(true)), Failure::kNone);
}
TEST(Rounds_Mutants, RoundAwaitedWithOrderWeakened_RaceOrDeadlock) {
  EXPECT_EQ((passing<SimAtomics, RelaxedRoundLook>(false)), Failure::kDeadlock);
  EXPECT_EQ((passing<SimAtomics, RelaxedEnd>(false)), Failure::kCheck);
  EXPECT_EQ((passing<SimAtomics, NoBeginFence>(false)), Failure::kCheck);
  EXPECT_EQ((passing<SimAtomics, NoRoundFence>(false)), Failure::kDeadlock);
}

}  // namespace
}  // namespace freehold
