// SPDX-License-Identifier: MIT
// The free runs and mappings that threads keep (alloc/run_cache.hpp) on the simulated machine: their owner against a thread
// that reclaims them, against its own end, against frees by others, and the note by which the purger hears of them. Oracle:
// the pages' and mappings' stamps; at rest every span is in one place, the accounts are exact, and a purger that sleeps has
// nothing to do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "freehold/alloc/core.hpp"
#include "tests/model/mutants.hpp"
#include "tests/model/scenarios.hpp"
#include "tests/model/tiny_arena.hpp"

namespace freehold {
namespace {

using alloc::Due;
using model::Faithful;
using model::kChunk;
using model::OneWord;
using sim::Failure;

struct StoppedClock {
  static std::uint64_t now() noexcept { return 1000; }
};

// Memory for the records of caches and of direct blocks, for the table of these, and for three of them with a stamp each.
struct Pages : model::TinyPages<OneWord> {
  static constexpr std::size_t kBlockBytes = (2 * kChunk << OneWord::kSpanShift) + kPage;  // no run is as long
  static constexpr std::size_t kRecordBytes = 256 * 1024;

  void* map(std::size_t bytes) {
    if (bytes == kRecordBytes) return std::exchange(chunk, std::exchange(next_chunk, nullptr));
    if (bytes != kBlockBytes) return bytes == sizeof table ? std::exchange(next_table, nullptr) : nullptr;
    const auto b = static_cast<unsigned>(std::ranges::find(is_mapped, false) - is_mapped);
    if (b == kBlocks) return nullptr;
    is_mapped[b] = true;
    system.fetch_add(1, std::memory_order_acq_rel);
    return blocks[b];
  }
  bool unmap(void* address, std::size_t bytes) {
    if (bytes != kBlockBytes) return model::TinyPages<OneWord>::unmap(address, bytes);
    write_block(address, 0, 0);
    system.fetch_add(1, std::memory_order_acq_rel);
    is_mapped[number_of(address)] = false;
    return true;
  }
  void write_block(const void* block, unsigned expected, unsigned next) {
    auto& stamp = block_stamps[number_of(block)];
    SIM_CHECK(stamp.load() == expected);
    stamp.store(next);
  }

  [[nodiscard]] std::size_t number_of(const void* block) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(block) - blocks[0]) / kBlockBytes;
  }

  static constexpr unsigned kBlocks = 3;
  alignas(kPage) std::byte table[64 * sizeof(void*)] = {};
  std::byte *next_table = table, *next_chunk = nullptr;
  alignas(kPage) std::byte blocks[kBlocks][kBlockBytes];
  bool is_mapped[kBlocks] = {};
  sim::SimAtomics::atomic<unsigned> system{0};  // orders the calls for blocks, as the system does
  sim::SimAtomics::var<unsigned> block_stamps[kBlocks];
};

// A thread that does not say that it is inside.
struct Unmarked : Faithful {};

template <class Traits>
class World {
 public:
  using A = typename Traits::Atomics;
  using Core = alloc::Core<A, model::TinyConfig<Traits, OneWord>, Pages, StoppedClock>;
  using Cache = typename Core::Cache;

  World() {
    static std::vector<std::byte> chunk(Pages::kRecordBytes), next_chunk(Pages::kRecordBytes);
    for (auto* records : {&chunk, &next_chunk}) std::memset(records->data(), 0, 8192);
    pages_.chunk = chunk.data();
    pages_.next_chunk = next_chunk.data();
    gate_.init();
    const alloc::ArenaSettings settings{.capacity_bytes = std::size_t{2 * kChunk} << OneWord::kSpanShift,
                                        .stripes = 2,
                                        .purge_delay_ms = 0,
                                        .huge_pages = alloc::HugePages::kOff};
    const bool ready = core_.init(pages_, settings, 2 * OneWord::kPage, 1, &gate_);
    SIM_CHECK(ready);
    pages_.memory = core_.arena().base();
  }

  Core& core() { return core_; }
  Cache* attach() {
    Cache* const cache = core_.attach();
    SIM_CHECK(cache != nullptr);
    return cache;
  }

  // A run of `spans` for thread `thread`, or null. `cache`: the running thread's, or null.
  void* allocate(Cache* cache, unsigned spans, unsigned thread) {
    enter(cache);
    bool zero = false;
    void* const run = core_.large().allocate_large(cache, spans * kSpanBytes, 1, zero);
    leave(cache);
    if (run != nullptr) pages_.write(pages_.page_of(run), spans * 2, 0, thread + 1);
    return run;
  }
  void free(Cache* cache, void* run, unsigned spans, unsigned thread) {
    if (run == nullptr) return;
    pages_.write(pages_.page_of(run), spans * 2, thread + 1, 0);
    enter(cache);
    core_.free_large(cache, run);
    leave(cache);
  }
  void hand_over(void* run, unsigned spans, unsigned from, unsigned to) {
    pages_.write(pages_.page_of(run), spans * 2, from + 1, to + 1);
  }

  // The same for blocks with a mapping, as the engine serves them.
  void* map(Cache* cache, unsigned thread) {
    enter(cache);
    void* block = cache != nullptr ? core_.kept().allocate_mapped(*cache, Pages::kBlockBytes) : nullptr;
    bool zero = false;
    if (block == nullptr) block = core_.large().allocate_large(cache, Pages::kBlockBytes, 1, zero);
    leave(cache);
    SIM_CHECK(block != nullptr);
    pages_.write_block(block, 0, thread + 1);
    return block;
  }
  void unmap(Cache* cache, void* block, unsigned thread) {
    pages_.write_block(block, thread + 1, 0);
    enter(cache);
    if (cache == nullptr || !core_.free_mapped(*cache, block)) core_.free_large(cache, block);
    leave(cache);
  }
  [[nodiscard]] std::size_t blocks_in_use() {
    alloc::Stats stats;
    core_.stats(stats);
    return stats.direct_blocks;
  }

  // Nothing is in use; the caches live or are detached.
  void check_at_rest() {
    SIM_CHECK(core_.check_invariants());
    SIM_CHECK(core_.check_accounts());
    core_.relief().reclaim_all_runs(nullptr);
    (void)core_.relief().trim();
    SIM_CHECK(core_.arena().free_dirty_bytes() == 0);
    SIM_CHECK(core_.check_accounts());
    SIM_CHECK(std::ranges::count(pages_.is_mapped, true) == 0);
  }

 private:
  static constexpr std::size_t kSpanBytes = std::size_t{1} << OneWord::kSpanShift;

  void enter(Cache* cache) {
    if (cache == nullptr || std::is_same_v<Traits, Unmarked>) return;
    const bool entered = gate_.enter(cache->inside, 0);
    SIM_CHECK(entered);
  }
  void leave(Cache* cache) {
    if (cache != nullptr && !std::is_same_v<Traits, Unmarked>) gate_.leave(cache->inside);
  }

  Pages pages_;
  typename Core::Gate gate_;
  Core core_;
};

// ---- scenarios

template <class Traits>
void pair_against_reclaim(sim::Execution& run) {
  World<Traits> world;
  auto* const owner = world.attach();
  world.free(owner, world.allocate(owner, 1, 6), 1, 6);
  run.spawn([&] {
    void* const mine = world.allocate(owner, 2, 0);
    world.free(owner, mine, 2, 0);
  });
  run.spawn([&] { world.core().relief().reclaim_all_runs(nullptr); });
  run.check([&] {
    world.core().detach(owner);
    world.check_at_rest();
  });
}

// The owner finds what the reclaimer has left, and the other way round.
template <class Traits>
void reclaim_against_two(sim::Execution& run) {
  World<Traits> world;
  auto* const owner = world.attach();
  world.free(owner, world.allocate(owner, 1, 6), 1, 6);
  void* mine = nullptr;
  void* others = nullptr;
  run.spawn([&] { mine = world.allocate(owner, 2, 0); });
  run.spawn([&] {
    world.core().relief().reclaim_all_runs(nullptr);
    others = world.allocate(nullptr, 2, 1);
  });
  run.check([&] {
    world.free(owner, mine, 2, 0);
    world.free(nullptr, others, 2, 1);
    world.core().detach(owner);
    world.check_at_rest();
  });
}

template <class Traits, bool kMapped>
void exit_against_reclaim(sim::Execution& run) {
  World<Traits> world;
  auto* const owner = world.attach();
  void* const kept = kMapped ? world.map(owner, 0) : world.allocate(owner, 1, 0);
  run.spawn([&] {
    kMapped ? world.unmap(owner, kept, 0) : world.free(owner, kept, 1, 0);
    world.core().detach(owner);
  });
  run.spawn([&] { world.core().relief().reclaim_all_runs(nullptr); });
  run.check([&] { world.check_at_rest(); });
}

// Another thread frees into the chunk from which the owner takes what is missing.
template <class Traits>
void foreign_free_against_reserve(sim::Execution& run) {
  World<Traits> world;
  auto* const owner = world.attach();
  void* const low = world.allocate(owner, 2, 0);
  void* const high = world.allocate(owner, 2, 0);
  world.hand_over(low, 2, 0, 1);
  void* next = nullptr;
  run.spawn([&] {
    world.free(owner, high, 2, 0);
    next = world.allocate(owner, 3, 0);
  });
  run.spawn([&] { world.free(nullptr, low, 2, 1); });
  run.check([&] {
    world.free(owner, next, 3, 0);
    world.core().detach(owner);
    world.check_at_rest();
  });
}

// A purger that goes to sleep has seen what was freed, or the note of it stands.
template <class Traits>
void free_against_purger(sim::Execution& run) {
  World<Traits> world;
  auto* const owner = world.attach();
  void* const freed = world.allocate(owner, 1, 0);
  owner->runs_use.store(alloc::RunsUse::kNone, std::memory_order_relaxed);  // as if it had been looked at
  Due due = Due::kNow;
  run.spawn([&] { world.free(owner, freed, 1, 0); });
  run.spawn([&] { due = world.core().relief().purge_idle(); });
  run.check([&] {
    SIM_CHECK(due != Due::kNothing || world.core().arena().due().something());
    world.core().detach(owner);
    world.check_at_rest();
  });
}

// The mapping that the owner keeps goes to the one or to the other.
template <class Traits>
void mapping_against_reclaim(sim::Execution& run) {
  World<Traits> world;
  auto* const owner = world.attach();
  world.unmap(owner, world.map(owner, 6), 6);
  run.spawn([&] { world.unmap(owner, world.map(owner, 0), 0); });
  run.spawn([&] {
    world.core().relief().reclaim_all_runs(nullptr);
    world.unmap(nullptr, world.map(nullptr, 1), 1);
  });
  run.check([&] {
    SIM_CHECK(world.blocks_in_use() == 0);
    world.core().detach(owner);
    world.check_at_rest();
  });
}

// The record at which the owner looks becomes another block's, or that of no block.
template <class Traits>
void foreign_free_against_last_mapped(sim::Execution& run) {
  World<Traits> world;
  auto* const owner = world.attach();
  void* const first = world.map(nullptr, 0);
  void* const last = world.map(owner, 1);
  run.spawn([&] { world.unmap(owner, first, 0); });
  run.spawn([&] {
    world.unmap(nullptr, last, 1);
    world.unmap(nullptr, world.map(nullptr, 1), 1);
  });
  run.check([&] {
    world.unmap(owner, world.map(owner, 0), 0);
    SIM_CHECK(world.blocks_in_use() == 0);
    world.core().detach(owner);
    world.check_at_rest();
  });
}

// The purger does not wait for the thread that holds the lock, and looks again.
template <class Traits>
void mapping_against_purger(sim::Execution& run) {
  World<Traits> world;
  auto* const owner = world.attach();
  world.unmap(owner, world.map(owner, 6), 6);
  owner->runs_use.store(alloc::RunsUse::kIdle, std::memory_order_relaxed);  // as if it had been looked at
  Due due = Due::kNow;
  run.spawn([&] { world.unmap(nullptr, world.map(nullptr, 1), 1); });
  run.spawn([&] { due = world.core().relief().purge_idle(); });
  run.check([&] {
    SIM_CHECK(due != Due::kNothing || world.core().arena().due().something());
    for (int i = 0; i < 4; ++i) due = world.core().relief().purge_idle();
    SIM_CHECK(due == Due::kNothing);
    world.check_at_rest();
    world.core().detach(owner);
  });
}

// ---- the shipped algorithm

template <class Traits>
sim::Scenarios mapping_scenarios() {
  return {{sim::within("mapping/reclaim", 3, 1), mapping_against_reclaim<Traits>},
          {sim::within("exit/reclaim of a mapping", 3, 1), exit_against_reclaim<Traits, true>},
          {sim::within("foreign/last mapped", 3, 1), foreign_free_against_last_mapped<Traits>},
          {sim::within("mapping/purger", 3, 1), mapping_against_purger<Traits>}};
}

template <class Traits>
sim::Scenarios scenarios() {
  return {{sim::within("pair/reclaim", 3, 1), pair_against_reclaim<Traits>},
          {sim::within("reclaim/two", 3, 1), reclaim_against_two<Traits>},
          {sim::within("exit/reclaim", 3, 1), exit_against_reclaim<Traits, false>},
          {sim::within("foreign/reserve", 3, 1), foreign_free_against_reserve<Traits>},
          {sim::within("free/purger", 3, 1), free_against_purger<Traits>}};
}

TEST(RunCache_Model, EveryScenario_NothingTwiceNothingLostNothingForgotten) {
  sim::expect_all_ok("run_cache", scenarios<Faithful>());
  sim::expect_all_ok("run_cache", mapping_scenarios<Faithful>());
}

// ---- mutants

template <class Traits>
void expect_killed() {
  EXPECT_NE(sim::first_failure("run_cache", scenarios<Traits>(), 2), Failure::kNone);
  EXPECT_NE(sim::first_failure("run_cache", mapping_scenarios<Traits>(), 2), Failure::kNone);
}

template <class O>
struct RunsOrdered : Faithful {
  using RunOrders = O;
};
// kNoteUse and kLookForUse have no mutants: the note's own orders, seq_cst, show the simulator what came before it.
FREEHOLD_WEAKER(AskClosedRelaxed, alloc::RunCacheOrders, kAskClosed, relaxed);
FREEHOLD_WEAKER(OpenRelaxed, alloc::RunCacheOrders, kOpen, relaxed);
// The reclaiming thread does not make others see that it has closed them.
struct NoHeavyFence : Faithful {
  struct Atomics : sim::SimAtomics {
    static void heavy_fence() noexcept {}
  };
};

TEST(RunCache_Mutants, EachAlone_IsNoticed) {
  expect_killed<RunsOrdered<AskClosedRelaxed>>();
  expect_killed<RunsOrdered<OpenRelaxed>>();
  expect_killed<NoHeavyFence>();
  expect_killed<Unmarked>();
}

}  // namespace
}  // namespace freehold
