// SPDX-License-Identifier: MIT
// alloc::Arena on the simulated machine, with spans of two pages: claim against claim, drain against the claim of another
// class that needs the span, trim against refill and drain, runs against spans.
// Oracle: the stamps of tiny_arena.hpp; at rest the arena's invariants hold, no slot and no page is lost, and after
// everything is freed a trim gives every span back.
#include "freehold/alloc/arena.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "tests/model/tiny_arena.hpp"

namespace freehold {
namespace {

using alloc::kNoSpan;
using alloc::SpanIndex;
using model::Faithful;
using model::kChunk;
using model::OneWord;
using model::TwoWords;
using pool::Cursor;
using pool::Taken;
using sim::Failure;
using sim::Options;
using sim::Result;

// Slots of one word of a class; bits == 0: none.
struct Slots {
  unsigned c = 0;
  Taken taken;
  explicit operator bool() const { return taken.bits != 0; }
};

// Off: their hints decide nothing about who owns memory, and the executions that matter come within the bound.
alloc::HugePages g_huge_pages = alloc::HugePages::kOff;

template <class Traits, class Layout = OneWord>
class World {
 public:
  using A = typename Traits::Atomics;
  using Pages = model::TinyPages<Layout>;
  using Arena = alloc::Arena<A, model::TinyConfig<Traits, Layout>, Pages>;

  World() {
    std::fill(std::begin(trims_), std::end(trims_), false);  // the former execution may have been cut short
    const bool ready = arena_.init(pages_, {.capacity_bytes = std::size_t{2 * kChunk} << Layout::kSpanShift,
                                            .stripes = 1,
                                            .purge_delay_ms = 0,
                                            .huge_pages = g_huge_pages});
    SIM_CHECK(ready);
    arena_.free_spans().expect_threads(2);
    pages_.memory = arena_.base();
  }

  // ---- what threads do, and the set-up before them on behalf of a thread

  // One slot, from the pool or from a new span, as Core does it; `keep`: of a new span.
  Slots allocate(unsigned c, unsigned thread, unsigned keep = 1) {
    Cursor cursor;
    Taken taken = arena_.slots().take_slots(alloc::SizeClass{c}, cursor, 1, thread + 1, 0);
    if (taken.bits == 0) taken = arena_.claim(alloc::SizeClass{c}, keep, thread + 1, kNow);
    write_stamps(c, taken, 0, thread + 1);
    return {c, taken};
  }
  Slots allocate(unsigned c) { return allocate(c, sim::thread_index()); }

  void free(const Slots& s, unsigned thread) {
    if (!s) return;
    write_stamps(s.c, s.taken, thread + 1, 0);
    SIM_CHECK(arena_.slots().give_slots(alloc::SizeClass{s.c}, s.taken) == 0);
  }
  void free(const Slots& s) { free(s, sim::thread_index()); }

  void trim() {
    trims_[sim::thread_index()] = true;
    (void)arena_.purge().trim(kNow);
    trims_[sim::thread_index()] = false;
  }
  void tick(std::uint64_t now) { arena_.purge().tick(now); }

  SpanIndex allocate_run(SpanIndex length, unsigned thread) {
    const SpanIndex first = arena_.runs().allocate_run(length * 2, 1, kNow).first;
    if (first != kNoSpan) pages_.write(first * 2, length * 2, 0, thread + 1);
    return first;
  }
  void free_run(SpanIndex first, SpanIndex length, unsigned thread) {
    if (first == kNoSpan) return;
    pages_.write(first * 2, length * 2, thread + 1, 0);
    SIM_CHECK(arena_.runs().free_run(first, kNow));
  }
  // Makes the run longer or shorter in place. Returns whether it did.
  bool resize_run(SpanIndex first, SpanIndex length, SpanIndex next, unsigned thread) {
    if (next < length) pages_.write((first + next) * 2, (length - next) * 2, thread + 1, 0);
    if (!arena_.runs().resize_run(first, next * 2, kNow)) return false;
    if (next > length) pages_.write((first + length) * 2, (next - length) * 2, 0, thread + 1);
    return true;
  }

  bool holds() { return arena_.check_invariants(); }

  // ---- the end; `held`: what the threads still hold

  void check_at_rest(std::initializer_list<Slots> held, std::initializer_list<unsigned> threads) {
    SIM_CHECK(arena_.check_invariants());
    auto thread = threads.begin();
    for (const Slots& s : held) free(s, *thread++);
    SIM_CHECK(arena_.check_invariants());
    // Every slot of every span of a class is free and found.
    arena_.for_each_span([&](SpanIndex i, alloc::SizeClass c) {
      if (c.is_slot()) SIM_CHECK(arena_.pool(c).free_slots(i) == arena_.pool(c).shape().slots);
    });
    (void)arena_.purge().trim(kNow);
    SIM_CHECK(arena_.check_invariants());
    arena_.for_each_span([&](SpanIndex i, alloc::SizeClass c) {
      SIM_CHECK(!c.is_slot());
      SIM_CHECK(arena_.runs().run_pages(i) == 0);
    });
    SIM_CHECK(arena_.free_dirty_bytes() == 0);
  }

  // For mutants: whether the running thread is in trim().
  static bool trims() { return trims_[sim::thread_index()]; }

 private:
  static constexpr std::uint64_t kNow = 1000;

  void write_stamps(unsigned c, const Taken& taken, unsigned expected, unsigned next) {
    for (std::uint64_t bits = taken.bits; bits != 0; bits &= bits - 1) {
      const std::uintptr_t at = arena_.geometry(alloc::SizeClass{c}).address(taken.word, base::lowest_bit(bits));
      pages_.write_slot(reinterpret_cast<void*>(at), c, expected, next);
    }
  }

  Pages pages_;
  Arena arena_;
  static inline bool trims_[sim::kMaxThreads] = {};
};

// ---- scenarios

// Uses up all of the memory, so that claims must reclaim spans.
template <class Traits>
struct Crowded {
  explicit Crowded(World<Traits>& w) : world(w) {
    run = world.allocate_run(kChunk, 6);
    for (Slots& s : slots) s = world.allocate(1, 6);
  }
  void release(unsigned i) { world.free(std::exchange(slots[i], {}), 6); }
  void release_all() {
    for (unsigned i = 0; i < 2 * kChunk; ++i) release(i);
    world.free_run(run, kChunk, 6);
  }
  World<Traits>& world;
  SpanIndex run;
  Slots slots[2 * kChunk];  // two of each span
};

// Two threads need a first span at the same time.
template <class Traits>
Result claim_against_claim(Options options, unsigned c0, unsigned c1) {
  options.name += "claim" + std::to_string(c0) + "/claim" + std::to_string(c1);
  return sim::explore(options, [=](sim::Execution& run) {
    World<Traits> world;
    Slots held[2];
    for (unsigned i = 0; i < 2; ++i) {
      run.spawn([&, i] { held[i] = world.allocate(i == 0 ? c0 : c1); });
    }
    run.check([&] {
      SIM_CHECK(held[0] && held[1]);
      world.check_at_rest({held[0], held[1]}, {0, 1});
    });
  });
}

// Two threads need the one span that can be taken from class 1.
template <class Traits>
Result claim_against_claim_of_the_last(Options options) {
  options.name += "last/last";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world;
    Crowded<Traits> crowd(world);
    crowd.release(2), crowd.release(3);
    Slots held[2];
    for (unsigned i = 0; i < 2; ++i) run.spawn([&, i] { held[i] = world.allocate(2); });
    run.check([&] {
      SIM_CHECK(!!held[0] != !!held[1]);
      crowd.release_all();
      world.check_at_rest({held[0], held[1]}, {0, 1});
    });
  });
}

// The last slot of a span comes back while a claim of another class needs that span, and a refill of its own class wants
// the slot.
template <class Traits>
Result drain_against_claim(Options options, bool refill) {
  options.name += refill ? "drain/claim/refill" : "drain/claim";
  return sim::explore(options, [=](sim::Execution& run) {
    World<Traits> world;
    Crowded<Traits> crowd(world);
    crowd.release(2);
    const Slots last = crowd.slots[3];
    crowd.slots[3] = {};
    world.free(last, 6);
    const Slots mine = world.allocate(1, 0);  // slot 2 or 3 of span 1, now thread 0's
    Slots held[3];
    run.spawn([&] { world.free(mine); });
    run.spawn([&] {
      held[1] = world.allocate(2);
      if (held[1]) world.free(std::exchange(held[1], {}));
    });
    if (refill) run.spawn([&] { held[2] = world.allocate(1); });
    run.check([&] {
      crowd.release_all();
      world.check_at_rest({held[1], held[2]}, {1, 2});
    });
  });
}

// A wholly free span: one wants a slot of its class, one the span for another class, which then gives it back at once.
template <class Traits>
Result refill_against_claim(Options options, bool trim) {
  options.name += trim ? "refill/claim/trim" : "refill/claim";
  return sim::explore(options, [=](sim::Execution& run) {
    World<Traits> world;
    Crowded<Traits> crowd(world);
    crowd.release(2), crowd.release(3);
    run.spawn([&] {
      if (const Slots s = world.allocate(1)) world.free(s);
    });
    run.spawn([&] {
      if (const Slots s = world.allocate(2)) world.free(s);
    });
    if (trim) run.spawn([&] { world.trim(); });
    run.check([&] {
      crowd.release_all();
      world.check_at_rest({}, {});
    });
  });
}

// A span changes its class in one thread while another takes slots of the new class: it must see all that happened to the
// span under the old one.
template <class Traits>
Result change_of_class_against_refill(Options options) {
  options.name += "change/refill";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world;
    const Slots old = world.allocate(2, 0);
    Slots held[2];
    run.spawn([&] {
      world.free(old);
      held[0] = world.allocate(1);
    });
    run.spawn([&] {
      held[1] = world.allocate(1);
      world.free(std::exchange(held[1], {}));
      held[1] = world.allocate(2);
    });
    run.check([&] { world.check_at_rest({held[0], held[1]}, {0, 1}); });
  });
}

// Trim takes back spans and single pages while another thread takes and gives slots of them.
template <class Traits>
Result trim_against_refill_and_drain(Options options) {
  options.name += "trim/refill/drain";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world;
    const Slots pinned = world.allocate(1, 1);  // pins span 0, whose other page is free
    world.free(world.allocate(2, 1), 1);        // span 1 is wholly free
    Slots held;
    run.spawn([&] { world.trim(); });
    run.spawn([&] {
      held = world.allocate(1);
      world.free(pinned);
    });
    run.check([&] { world.check_at_rest({held}, {1}); });
  });
}

// The purge that slow paths run now and then, against a claim and a drain.
template <class Traits>
Result tick_against_claim_and_drain(Options options) {
  options.name += "tick/claim/drain";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world;
    const Slots one = world.allocate(2, 2);
    world.free(world.allocate(1, 1), 1);
    Slots held;
    run.spawn([&] { world.tick(2000); });
    run.spawn([&] { held = world.allocate(2); });
    run.spawn([&] { world.free(one); });
    run.check([&] { world.check_at_rest({held}, {1}); });
  });
}

// The last slots of two words of a span come back at the same time: one thread must notice that the span is free, and of
// a thread that looks in between, that it is not.
template <class Traits>
Result drain_against_drain(Options options, bool tick) {
  options.name += tick ? "drain/drain/tick" : "drain/drain";
  return sim::explore(options, [=](sim::Execution& run) {
    World<Traits, TwoWords> world;
    const Slots low = world.allocate(1, 0, 64);  // all of word 0
    Slots high = world.allocate(1, 1);           // one slot of word 1
    SIM_CHECK(pool::word_in_span(low.taken.word) == 0 && pool::word_in_span(high.taken.word) == 1);
    run.spawn([&] { world.free(low); });
    run.spawn([&] { world.free(high); });
    if (tick) run.spawn([&] { world.tick(2000); });
    run.check([&] { world.check_at_rest({}, {}); });
  });
}

// Class 3 lives among runs: its spans become parts of runs, and parts of runs its spans.
template <class Traits>
Result run_against_claim(Options options) {
  options.name += "run/claim";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world;
    world.free(world.allocate(3, 1), 1);
    const SpanIndex first = world.allocate_run(2, 0);
    Slots held;
    run.spawn([&] {
      world.free_run(first, 2, 0);
      const SpanIndex all = world.allocate_run(kChunk, 0);
      world.free_run(all, kChunk, 0);
    });
    run.spawn([&] {
      if (const Slots s = world.allocate(3)) world.free(s);
      held = world.allocate(3);
    });
    run.check([&] { world.check_at_rest({held}, {1}); });
  });
}

// Runs of two threads in one chunk, and their pages going back meanwhile: what one frees the other may take at once, zeroed
// or as it was left, and nobody gets a span that the purger has in hand.
template <class Traits>
Result run_against_run(Options options, bool trim) {
  options.name += trim ? "run/run/trim" : "run/run";
  return sim::explore(options, [=](sim::Execution& run) {
    World<Traits> world;
    SpanIndex firsts[2] = {world.allocate_run(2, 0), world.allocate_run(2, 1)};
    const SpanIndex rest = world.allocate_run(kChunk, 6);  // of the other kind: nothing is left
    SIM_CHECK(firsts[1] != kNoSpan && rest != kNoSpan);
    for (unsigned i = 0; i < 2; ++i)
      run.spawn([&, i] {
        world.free_run(firsts[i], 2, i);
        firsts[i] = world.allocate_run(2, i);
        SIM_CHECK(trim || firsts[i] != kNoSpan);
      });
    if (trim) run.spawn([&] { world.trim(); });
    run.check([&] {
      for (unsigned i = 0; i < 2; ++i) world.free_run(firsts[i], 2, i);
      world.free_run(rest, kChunk, 6);
      world.check_at_rest({}, {});
    });
  });
}

// All memory is in use. One thread frees a run while another looks for one: whether it finds it or not, the trees must lead
// to what is free in the end.
template <class Traits>
Result free_run_against_search(Options options) {
  options.name += "free/search";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world;
    const SpanIndex first = world.allocate_run(2, 0), second = world.allocate_run(2, 6);
    const SpanIndex rest = world.allocate_run(kChunk, 6);
    SpanIndex found = kNoSpan;
    run.spawn([&] { world.free_run(first, 2, 0); });
    run.spawn([&] { found = world.allocate_run(1, 1); });
    run.check([&] {
      SIM_CHECK(world.holds());
      world.free_run(found, 1, 1);
      world.free_run(second, 2, 6);
      world.free_run(rest, kChunk, 6);
      world.check_at_rest({}, {});
    });
  });
}

// A run grows into what another thread frees behind it, shrinks, and a third thread takes what it leaves.
template <class Traits>
Result resize_against_run(Options options) {
  options.name += "resize/run";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world;
    const SpanIndex mine = world.allocate_run(1, 0), behind = world.allocate_run(1, 1);
    SIM_CHECK(behind == mine + 1);
    SpanIndex taken = kNoSpan;
    bool grown = false;
    run.spawn([&] {
      grown = world.resize_run(mine, 1, 2, 0);
      if (grown) SIM_CHECK(world.resize_run(mine, 2, 1, 0));
    });
    run.spawn([&] {
      world.free_run(behind, 1, 1);
      taken = world.allocate_run(2, 1);
    });
    run.check([&] {
      SIM_CHECK(taken != kNoSpan);
      world.free_run(mine, 1, 0);
      world.free_run(taken, 2, 1);
      world.check_at_rest({}, {});
    });
  });
}

// Everything at once, for random schedules.
template <class Traits>
Result everything(Options options) {
  options.name += "everything";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world;
    Crowded<Traits> crowd(world);
    crowd.release(2), crowd.release(3), crowd.release(4);
    const Slots last = std::exchange(crowd.slots[5], {});
    world.free(last, 6);
    const Slots mine = world.allocate(1, 0);
    Slots held[4];
    run.spawn([&] {
      world.free(mine);
      for (int i = 0; i < 2; ++i) world.free(world.allocate(1));
    });
    run.spawn([&] {
      for (int i = 0; i < 2; ++i) world.free(world.allocate(2));
      held[1] = world.allocate(2);
    });
    run.spawn([&] {
      for (int i = 0; i < 2; ++i) world.free(world.allocate(1));
      held[2] = world.allocate(1);
    });
    run.spawn([&] {
      world.trim();
      world.tick(2000);
      held[3] = world.allocate(2);
    });
    run.check([&] {
      crowd.release_all();
      world.check_at_rest({held[1], held[2], held[3]}, {1, 2, 3});
    });
  });
}

// ---- the shipped algorithm; the mutex has a model of its own, so here it never spins

Options options_for(unsigned preemptions, unsigned stale) {
  return {.name = "arena/", .preemptions = preemptions, .stale = stale, .decide = sim::Decide::kAlternative};
}
Options deep() { return options_for(6, 2); }
Options three() { return options_for(4, 2); }

TEST(Arena_Model, ClaimAgainstClaim_TwoSpans) {
  for (const auto& [a, b] : {std::pair{1U, 1U}, {1U, 2U}, {2U, 2U}, {3U, 3U}, {1U, 3U}}) {
    const Result result = claim_against_claim<Faithful>(options_for(4, 2), a, b);
    EXPECT_TRUE(result.ok()) << result;
  }
}
TEST(Arena_Model, ClaimAgainstClaimOfTheLast_OneGetsIt) {
  const Result result = claim_against_claim_of_the_last<Faithful>(deep());
  EXPECT_TRUE(result.ok()) << result;
}
TEST(Arena_Model, DrainAgainstClaim_NothingTwiceNothingLost) {
  const Result result = drain_against_claim<Faithful>(deep(), false);
  EXPECT_TRUE(result.ok()) << result;
}
TEST(Arena_Model, RefillAgainstClaim_NothingTwiceNothingLost) {
  const Result result = refill_against_claim<Faithful>(deep(), false);
  EXPECT_TRUE(result.ok()) << result;
}
TEST(Arena_Model, ChangeOfClassAgainstRefill_NothingTwiceNothingLost) {
  const Result result = change_of_class_against_refill<Faithful>(options_for(3, 1));
  EXPECT_TRUE(result.ok()) << result;
}
TEST(Arena_Model, RefillAgainstClaimAndTrim_NothingTwiceNothingLost) {
  const Result result = refill_against_claim<Faithful>(options_for(2, 1), true);
  EXPECT_TRUE(result.ok()) << result;
}
TEST(Arena_Model, TrimAgainstRefillAndDrain_NothingTwiceNothingLost) {
  const Result result = trim_against_refill_and_drain<Faithful>(deep());
  EXPECT_TRUE(result.ok()) << result;
}
TEST(Arena_Model, DrainAgainstDrain_EmptySpanNoticed) {
  const Result result = drain_against_drain<Faithful>(deep(), false);
  EXPECT_TRUE(result.ok()) << result;
}
TEST(Arena_Model, DrainAgainstDrainAndTick_EmptySpanNoticed) {
  const Result result = drain_against_drain<Faithful>(three(), true);
  EXPECT_TRUE(result.ok()) << result;
}
TEST(Arena_Model, RunAgainstClaim_NothingTwiceNothingLost) {
  for (const Result& result : {run_against_claim<Faithful>(deep()), run_against_claim<model::Reclaiming>(options_for(3, 2))})
    EXPECT_TRUE(result.ok()) << result;
}
TEST(Arena_Model, DrainAgainstClaimAndRefill_NothingTwiceNothingLost) {
  const Result result = drain_against_claim<Faithful>(options_for(3, 2), true);
  EXPECT_TRUE(result.ok()) << result;
}
TEST(Arena_Model, TickAgainstClaimAndDrain_NothingTwiceNothingLost) {
  const Result result = tick_against_claim_and_drain<Faithful>(three());
  EXPECT_TRUE(result.ok()) << result;
}
TEST(Arena_Model, RunAgainstRun_NoSpanTwiceNoneLost) {
  const Result result = run_against_run<Faithful>(three(), false);
  EXPECT_TRUE(result.ok()) << result;
}
TEST(Arena_Model, RunAgainstRunAndTrim_NoSpanTwiceNoneLost) {
  const Result result = run_against_run<Faithful>(options_for(2, 1), true);
  EXPECT_TRUE(result.ok()) << result;
}
TEST(Arena_Model, FreeRunAgainstSearch_TheTreesLeadToIt) {
  const Result result = free_run_against_search<Faithful>(three());
  EXPECT_TRUE(result.ok()) << result;
}
TEST(Arena_Model, ResizeAgainstRun_NoSpanTwiceNoneLost) {
  const Result result = resize_against_run<Faithful>(three());
  EXPECT_TRUE(result.ok()) << result;
}
TEST(Arena_Model, EverythingAtOnce_Pct_NothingTwiceNothingLost) {
  Options options = three();
  options.strategy = sim::Strategy::kPct;
  options.depth = 5;
  options.stale = 2;
  options.executions = 50'000;
  const Result result = everything<Faithful>(options);
  EXPECT_TRUE(result.ok()) << result;
}

// ---- mutants

// What the first of the scenarios to notice says; kNone if the mutant survives them all.
template <class Traits>
Failure killed() {
  Options options = options_for(3, 2);
  options.name = "arena/mutant/";
  options.print = false;
  for (const unsigned c : {1U, 3U}) {
    if (const Result r = claim_against_claim<Traits>(options, 1, c); !r.ok()) return r.failure;
  }
  for (auto* scenario :
       {&claim_against_claim_of_the_last<Traits>, &trim_against_refill_and_drain<Traits>,
        &change_of_class_against_refill<Traits>, &run_against_claim<Traits>, &tick_against_claim_and_drain<Traits>,
        &free_run_against_search<Traits>, &resize_against_run<Traits>}) {
    if (const Result r = scenario(options); !r.ok()) return r.failure;
  }
  for (const bool third : {false, true}) {
    options.preemptions = third ? 2 : 3;
    for (auto* scenario : {&run_against_run<Traits>, &drain_against_claim<Traits>, &refill_against_claim<Traits>,
                           &drain_against_drain<Traits>}) {
      if (const Result r = scenario(options, third); !r.ok()) return r.failure;
    }
  }
  return Failure::kNone;
}

struct TakeRelaxed : Faithful {
  struct Orders : pool::WordPoolOrders {
    static constexpr auto kTake = std::memory_order_relaxed;
  };
};
struct PutAcquire : Faithful {
  struct Orders : pool::WordPoolOrders {
    static constexpr auto kPut = std::memory_order_acquire;
  };
};
struct PublishRelaxed : Faithful {
  struct Orders : pool::WordPoolOrders {
    static constexpr auto kPublish = std::memory_order_relaxed;
  };
};
struct LookFullAcquire : Faithful {
  struct Orders : pool::WordPoolOrders {
    static constexpr auto kLookFull = std::memory_order_acquire;
  };
};
struct TakeSpansRelaxed : Faithful {
  struct ChunkOrders : alloc::ChunkPoolOrders {
    static constexpr auto kTake = std::memory_order_relaxed;
  };
};
struct GiveSpansAcquire : Faithful {
  struct ChunkOrders : alloc::ChunkPoolOrders {
    static constexpr auto kGive = std::memory_order_acquire;
  };
};
struct GiveSpansRelease : Faithful {
  struct ChunkOrders : alloc::ChunkPoolOrders {
    static constexpr auto kGive = std::memory_order_release;
  };
};
struct RereadSpansAcquire : Faithful {
  struct ChunkOrders : alloc::ChunkPoolOrders {
    static constexpr auto kReread = std::memory_order_acquire;
  };
};
struct SetClassRelease : Faithful {
  struct SpanOrders : alloc::ArenaOrders {
    static constexpr auto kSetClass = std::memory_order_release;
  };
};
struct AskClassAcquire : Faithful {
  struct SpanOrders : alloc::ArenaOrders {
    static constexpr auto kAskClass = std::memory_order_acquire;
  };
};
TEST(Arena_Mutants, SetClassRelease_Killed) { EXPECT_EQ(killed<SetClassRelease>(), Failure::kCheck); }
TEST(Arena_Mutants, AskClassAcquire_Killed) { EXPECT_EQ(killed<AskClassAcquire>(), Failure::kCheck); }
TEST(Arena_Mutants, TakeSpansRelaxed_Killed) { EXPECT_EQ(killed<TakeSpansRelaxed>(), Failure::kRace); }
TEST(Arena_Mutants, GiveSpansAcquire_Killed) { EXPECT_EQ(killed<GiveSpansAcquire>(), Failure::kRace); }
TEST(Arena_Mutants, GiveSpansRelease_Killed) { EXPECT_NE(killed<GiveSpansRelease>(), Failure::kNone); }
TEST(Arena_Mutants, RereadSpansAcquire_Killed) { EXPECT_NE(killed<RereadSpansAcquire>(), Failure::kNone); }
TEST(Arena_Mutants, TakeRelaxed_Killed) { EXPECT_NE(killed<TakeRelaxed>(), Failure::kNone); }
TEST(Arena_Mutants, PutAcquire_Killed) { EXPECT_EQ(killed<PutAcquire>(), Failure::kRace); }
TEST(Arena_Mutants, PublishRelaxed_Killed) { EXPECT_NE(killed<PublishRelaxed>(), Failure::kNone); }
TEST(Arena_Mutants, LookFullAcquire_Killed) { EXPECT_EQ(killed<LookFullAcquire>(), Failure::kCheck); }

// The lock lets everybody in.
template <class T>
struct NoLock : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  bool compare_exchange_strong(T&, T, std::memory_order, std::memory_order) noexcept { return true; }
};
// The reclaimer takes a word by a load and a store.
template <class T>
struct TornExchange : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  T exchange(T value, std::memory_order order) noexcept {
    if constexpr (sizeof(T) < 8) return sim::atomic<T>::exchange(value, order);
    const T old = this->load(order);
    this->store(value, std::memory_order_release);
    return old;
  }
};
// The purger does not take the slots of the pages that it purges.
template <class T>
struct NothingBorrowed : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  bool compare_exchange_weak(T& expected, T desired, std::memory_order success, std::memory_order failure) noexcept {
    return World<model::On<NothingBorrowed>>::trims() ||
           sim::atomic<T>::compare_exchange_weak(expected, desired, success, failure);
  }
  T fetch_add(T value, std::memory_order order) noexcept {
    return World<model::On<NothingBorrowed>>::trims() ? T{1} << (8 * sizeof(T) - 1)
                                                      : sim::atomic<T>::fetch_add(value, order);
  }
};
// The purger keeps what it borrowed, and a failed reclaim what it took apart.
template <class T>
struct NothingPutBack : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  T fetch_add(T value, std::memory_order order) noexcept {
    return World<model::On<NothingPutBack>>::trims() ? T{1} << (8 * sizeof(T) - 1) : sim::atomic<T>::fetch_add(value, order);
  }
};
// A reclaimed span keeps its class until it gets another one.
template <class T>
struct OwnerKept : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  void store(T value, std::memory_order order) noexcept {
    if (!std::is_same_v<T, std::uint8_t> || value != T{}) sim::atomic<T>::store(value, order);
  }
};
// Seen where two threads grow the arena, which asks more with huge pages.
TEST(Arena_Mutants, NoLock_Killed) {
  g_huge_pages = alloc::HugePages::kAuto;
  EXPECT_NE(killed<model::On<NoLock>>(), Failure::kNone);
  g_huge_pages = alloc::HugePages::kOff;
}
TEST(Arena_Mutants, TornExchange_Killed) { EXPECT_NE(killed<model::On<TornExchange>>(), Failure::kNone); }
TEST(Arena_Mutants, NothingBorrowed_Killed) { EXPECT_NE(killed<model::On<NothingBorrowed>>(), Failure::kNone); }
TEST(Arena_Mutants, NothingPutBack_Killed) { EXPECT_EQ(killed<model::On<NothingPutBack>>(), Failure::kCheck); }
TEST(Arena_Mutants, OwnerKept_Killed) { EXPECT_EQ(killed<model::On<OwnerKept>>(), Failure::kCheck); }

}  // namespace
}  // namespace freehold
