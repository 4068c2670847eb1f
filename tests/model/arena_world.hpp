// SPDX-License-Identifier: MIT
// alloc::Arena over the stamped pages of tiny_arena.hpp, and what threads of its model do with it.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "freehold/alloc/spans/arena.hpp"
#include "tests/model/tiny_arena.hpp"

namespace freehold::model {

using alloc::kNoSpan;
using alloc::SpanIndex;
using pool::Cursor;
using pool::Taken;

// Slots of one word of a class; bits == 0: none.
struct Slots {
  unsigned c = 0;
  Taken taken;
  explicit operator bool() const { return taken.bits != 0; }
};

// Off: their hints decide nothing about who owns memory, and the executions that matter come within the bound.
inline alloc::HugePages g_huge_pages = alloc::HugePages::kOff;
// Beyond 1, what is there before the threads begin belongs to another group of CPUs than theirs.
inline unsigned g_groups = 1;

template <class Traits, class Layout = OneWord>
class ArenaWorld {
 public:
  using A = typename Traits::Atomics;
  using Pages = TinyPages<Layout>;
  using Arena = alloc::Arena<A, TinyConfig<Traits, Layout>, Pages>;

  ArenaWorld() {
    std::fill(std::begin(trims_), std::end(trims_), false);  // the former execution may have been cut short
    const bool ready = arena_.init(pages_, {.capacity_bytes = std::size_t{2 * kChunk} << Layout::kSpanShift,
                                            .stripes = 1,
                                            .chunk_stripes = g_groups,
                                            .purge_delay_ms = 0,
                                            .huge_pages = g_huge_pages});
    SIM_CHECK(ready);
    arena_.free_spans().expect_threads(2 * g_groups);
    sim::set_outside_cpu((g_groups - 1) * alloc::Searcher::kGroupCpus);
    if (Traits::kNodes > 1) (void)arena_.slots().thread_ids().next(0, 8, Traits::kNodes - 1);
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
  // Another mapping is refused, which is as large as a chunk.
  bool unmap_a_chunk() { return arena_.unmap_for(std::size_t{kChunk} << Layout::kSpanShift, kNow); }
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
    SIM_CHECK(arena_.slots().find_empty(0) == kNoSpan);
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

// Uses up all of the memory, so that claims must reclaim spans.
template <class Traits>
struct Crowded {
  explicit Crowded(ArenaWorld<Traits>& w) : world(w) {
    run = world.allocate_run(kChunk, 6);
    for (Slots& s : slots) s = world.allocate(1, 6);
  }
  void release(unsigned i) { world.free(std::exchange(slots[i], {}), 6); }
  void release_all() {
    for (unsigned i = 0; i < 2 * kChunk; ++i) release(i);
    world.free_run(run, kChunk, 6);
  }
  ArenaWorld<Traits>& world;
  SpanIndex run;
  Slots slots[2 * kChunk];  // two of each span
};

}  // namespace freehold::model
