// SPDX-License-Identifier: MIT
// The wheel for any thread under every interleaving within the bounds: an owner that advances against threads that set,
// cancel and destroy. The oracle is a ledger: every arming ends in exactly one of a call, a cancel() that said true, or a
// destroy(). No call comes before its time, and none is missing when all times have come. The writes of a thread before
// set() are visible to the callback, else there is a race on plain data. Each order weakened by one step, and mutants of the
// protocol, are caught.
#include <gtest/gtest.h>

#include <optional>

#include "tests/model/mutants.hpp"
#include "tests/model/scenarios.hpp"
#include "tests/model/timer_ledger.hpp"

namespace freehold::model {
namespace {

using sim::Execution;
using sim::Failure;
using sim::SimAtomics;

// One scenario of each kind of meeting.
template <class A, class Orders>
struct Scenarios {
  using Ledger = model::Ledger<A, Orders>;
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
  // A thread that holds a handle of a former life meets the next one in the same node.
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
      SIM_CHECK(!ledger.wheel().create([] {}));
    });
  }

  inline static const sim::Scenarios kAll = {
      {{.name = "cancel while due", .preemptions = 5, .stale = 2}, cancel_while_due},
      {{.name = "two cancel", .preemptions = 3, .stale = 1}, two_cancel},
      {{.name = "postpone while due", .preemptions = 4, .stale = 2}, postpone_while_due},
      {{.name = "set while moved on", .preemptions = 4, .stale = 2}, set_while_moved<false, false>},
      {{.name = "set while forgotten", .preemptions = 4, .stale = 2}, set_while_moved<true, false>},
      {{.name = "set while looked at", .preemptions = 4, .stale = 2}, set_while_moved<false, true>},
      {{.name = "set while looked at and forgotten", .preemptions = 4, .stale = 2}, set_while_moved<true, true>},
      {{.name = "expiry while the node is used again", .preemptions = 3, .stale = 3}, expiry_while_reused},
      {{.name = "expiry while set", .preemptions = 3, .stale = 2}, expiry_while_set},
      {{.name = "set sooner", .preemptions = 4, .stale = 2}, set_sooner},
      {{.name = "set in place", .preemptions = 4, .stale = 2}, set_in_place},
      {{.name = "set against set", .preemptions = 3, .stale = 1}, set_against_set},
      {{.name = "set against cancel", .preemptions = 3, .stale = 1}, set_against_cancel},
      {{.name = "tell of two", .preemptions = 3, .stale = 1}, tell_of_two},
      {{.name = "tell again", .preemptions = 3, .stale = 2}, tell_again},
      {{.name = "destroy while set and due", .preemptions = 3, .stale = 1}, destroy_while_set_and_due},
      {{.name = "stale handle", .preemptions = 4, .stale = 2}, stale_handle},
      {{.name = "destroy twice", .preemptions = 3, .stale = 1}, destroy_twice},
  };
};

TEST(TimerWheel_Model, AnyThreads_EveryArmingEndsOnce) {
  sim::expect_all_ok("timer", Scenarios<SimAtomics, timer::WheelOrders>::kAll);
}

// ---- mutants: one of the scenarios must fail, as often as not a race or a violated check.

template <class A, class Orders>
bool is_noticed() {
  constexpr unsigned kMostPreemptions = 5;
  return sim::first_failure("timer", Scenarios<A, Orders>::kAll, kMostPreemptions) != Failure::kNone;
}

FREEHOLD_WEAKER(RelaxedLook, timer::WheelOrders, kLook, relaxed);
FREEHOLD_WEAKER(RelaxedArm, timer::WheelOrders, kArm, relaxed);
FREEHOLD_WEAKER(RelaxedOwnerLook, timer::WheelOrders, kOwnerLook, relaxed);
FREEHOLD_WEAKER(RelaxedSettle, timer::WheelOrders, kResolve, relaxed);
FREEHOLD_WEAKER(RelaxedWriteDue, timer::WheelOrders, kWriteDue, relaxed);
FREEHOLD_WEAKER(RelaxedReadDue, timer::WheelOrders, kReadDue, relaxed);
FREEHOLD_WEAKER(RelaxedTell, timer::WheelOrders, kPost, relaxed);
FREEHOLD_WEAKER(RelaxedTake, timer::WheelOrders, kTake, relaxed);

template <class Orders>
class TimerWheel_WeakenedOrders : public testing::Test {};
using Weakened = testing::Types<RelaxedLook, RelaxedArm, RelaxedOwnerLook, RelaxedSettle, RelaxedWriteDue, RelaxedReadDue,
                                RelaxedTell, RelaxedTake>;
TYPED_TEST_SUITE(TimerWheel_WeakenedOrders, Weakened);
TYPED_TEST(TimerWheel_WeakenedOrders, OneOrder_IsNoticed) { EXPECT_TRUE((is_noticed<SimAtomics, TypeParam>())); }

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
// Changes that came and went in between are not noticed.
using NoVersions = Masked<~0xffff'ffe0ull>;
// A cancel() during a set() leaves no mark.
using NoCancelMark = Masked<~4ull>;
// A set() does not hold the timer.
using NoHold = Masked<~2ull>;
// The word does not keep that the timer was posted to the owner.
using NoToldMark = Masked<~8ull>;

// Changes by a load and a store, of the atomics of so many bytes.
template <std::size_t kBytes>
struct TornWhere : SimAtomics {
  template <class T>
  using atomic =
      std::conditional_t<sizeof(T) == kBytes, model::Torn<T, model::kExchange | model::kCompareExchange>, sim::atomic<T>>;
};
using TornWord = TornWhere<8>;
using TornTell = TornWhere<4>;

template <class A>
class TimerWheel_Mutants : public testing::Test {};
using Mutants = testing::Types<NoVersions, NoCancelMark, NoHold, NoToldMark, TornWord, TornTell>;
TYPED_TEST_SUITE(TimerWheel_Mutants, Mutants);
TYPED_TEST(TimerWheel_Mutants, OneStep_IsNoticed) { EXPECT_TRUE((is_noticed<TypeParam, timer::WheelOrders>())); }

}  // namespace
}  // namespace freehold::model
