// SPDX-License-Identifier: MIT
// alloc::Core on the simulated machine: thread caches of two slots over the arena of tiny_arena.hpp. Thread exit against
// drain, refill, claim and another exit; slots freed by another thread than their allocator; frees after a thread's cache
// is gone. Oracle: the pages' stamps; at rest every slot is free in the bitmap and found, no thread is registered, the
// common budget is whole, and a trim gives every span back.
#include "freehold/alloc/core.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/model/mutants.hpp"
#include "tests/model/scenarios.hpp"
#include "tests/model/tiny_arena.hpp"

namespace freehold {
namespace {

using model::Faithful;
using model::kChunk;
using model::OneWord;
using sim::Failure;
using sim::within;

struct StoppedClock {
  static std::uint64_t now() noexcept { return 1000; }
};

inline constexpr std::size_t kRecordBytes = 8192;  // bytes of the chunk, more than a scenario uses
inline constexpr std::size_t kBudget = 2 * OneWord::kPage;

template <class Traits>
class World {
 public:
  using A = typename Traits::Atomics;
  using Core = alloc::Core<A, model::TinyConfig<Traits, OneWord>, model::TinyPages<OneWord>, StoppedClock>;
  using Cache = typename Core::Cache;

  World() {
    static std::vector<std::byte> chunk(256 * 1024);
    std::memset(chunk.data(), 0, kRecordBytes);
    pages_.chunk = chunk.data();
    const alloc::ArenaSettings settings{.capacity_bytes = std::size_t{2 * kChunk} << OneWord::kSpanShift,
                                        .stripes = 2,
                                        .purge_delay_ms = 0,
                                        .huge_pages = alloc::HugePages::kOff};
    const bool ready = core_.init(pages_, settings, kBudget, 1);
    SIM_CHECK(ready);
    core_.registry().expect_threads(2);
    pages_.memory = core_.arena().base();
    std::fill(std::begin(exits_), std::end(exits_), false);  // the former execution may have been cut short
  }

  Core& core() { return core_; }
  Cache* attach() {
    Cache* const cache = core_.attach();
    SIM_CHECK(cache != nullptr);
    return cache;
  }
  void detach(Cache* cache) {
    exits_[sim::thread_index()] = true;
    core_.detach(cache);
    exits_[sim::thread_index()] = false;
  }

  // A slot of class c for thread `thread`, or null.
  void* allocate(Cache& cache, unsigned c, unsigned thread) {
    void* slot = cache.pop(alloc::SizeClass{c});
    if (slot == nullptr) slot = core_.refill(cache, alloc::SizeClass{c});
    return taken(slot, c, thread);
  }
  void* allocate(Cache& cache, unsigned c) { return allocate(cache, c, sim::thread_index()); }
  void free(Cache& cache, unsigned c, void* slot, unsigned thread) {
    if (slot == nullptr) return;
    pages_.write_slot(slot, c, thread + 1, 0);
    if (!cache.push(alloc::SizeClass{c}, slot)) core_.drain(cache, alloc::SizeClass{c}, slot);
  }
  void free(Cache& cache, unsigned c, void* slot) { free(cache, c, slot, sim::thread_index()); }
  // Without a cache.
  void* allocate_late(unsigned c, unsigned thread) { return taken(core_.allocate_uncached(alloc::SizeClass{c}), c, thread); }
  void free_late(unsigned c, void* slot, unsigned thread) {
    if (slot == nullptr) return;
    pages_.write_slot(slot, c, thread + 1, 0);
    core_.free_uncached(alloc::SizeClass{c}, slot);
  }
  // Another thread goes on with the slot.
  void hand_over(void* slot, unsigned c, unsigned from, unsigned to) { pages_.write_slot(slot, c, from + 1, to + 1); }

  // Uses up all memory but `spare` spans of the chunk of small classes; the slots are thread 6's.
  void crowd(unsigned spare) {
    for (void*& slot : crowd_) slot = allocate_late(1, 6);
    crowd_run_ = core_.large().allocate_large(nullptr, kChunk * 2 * OneWord::kPage, 1, zero_);
    for (unsigned i = 0; i < 2 * spare; ++i) free_late(1, std::exchange(crowd_[i], nullptr), 6);
  }

  // All caches are detached and all slots freed.
  void check_at_rest() {
    for (void*& slot : crowd_) free_late(1, slot, 6);
    core_.free_large(nullptr, crowd_run_);
    SIM_CHECK(core_.check_invariants());
    core_.arena().for_each_span([&](alloc::SpanIndex i, alloc::SizeClass c) {
      if (c.is_slot()) SIM_CHECK(core_.arena().pool(c).free_slots(i) == core_.arena().pool(c).shape().slots);
    });
    SIM_CHECK(core_.registry().threads() == 0);
    (void)core_.relief().trim();
    unsigned with_class = 0;
    core_.arena().for_each_span([&](alloc::SpanIndex, alloc::SizeClass c) { with_class += c.is_slot() ? 1 : 0; });
    SIM_CHECK(with_class == 0);
    SIM_CHECK(core_.arena().free_dirty_bytes() == 0);
    // BUDGET
  }

  // For mutants: whether the running thread is in detach().
  static bool exits() { return exits_[sim::thread_index()]; }

 private:
  void* taken(void* slot, unsigned c, unsigned thread) {
    if (slot != nullptr) pages_.write_slot(slot, c, 0, thread + 1);
    return slot;
  }

  model::TinyPages<OneWord> pages_;
  Core core_;
  void* crowd_[2 * kChunk] = {};
  void* crowd_run_ = nullptr;
  bool zero_ = false;
  static inline bool exits_[sim::kMaxThreads] = {};
};

// ---- scenarios

// A thread ends with slots in its cache while another frees more slots of the same span than its cache holds.
template <class Traits>
void exit_against_drain(sim::Execution& run) {
  World<Traits> world;
  auto* ending = world.attach();
  auto* freeing = world.attach();
  void* cached = world.allocate(*ending, 1, 0);
  void* other = world.allocate(*ending, 1, 0);
  void* third = world.allocate(*ending, 1, 0);
  world.hand_over(other, 1, 0, 1);
  world.hand_over(third, 1, 0, 1);
  run.spawn([&] {
    world.free(*ending, 1, cached);
    world.detach(ending);
  });
  run.spawn([&] {
    world.free(*freeing, 1, other);
    world.free(*freeing, 1, third);
  });
  run.check([&] {
    world.detach(freeing);
    world.check_at_rest();
  });
}

// Memory is short: what an ending thread gives back is all that the other can get.
template <class Traits, unsigned kClass>
void exit_against_refill(sim::Execution& run) {
  World<Traits> world;
  world.crowd(1);
  auto* ending = world.attach();
  auto* asking = world.attach();
  world.free(*ending, 1, world.allocate(*ending, 1, 0), 0);
  void* slot = nullptr;
  run.spawn([&] { world.detach(ending); });
  run.spawn([&] { slot = world.allocate(*asking, kClass); });
  run.check([&] {
    world.free(*asking, kClass, slot, 1);
    world.detach(asking);
    world.check_at_rest();
  });
}

template <class Traits>
void exit_against_exit(sim::Execution& run) {
  World<Traits> world;
  typename World<Traits>::Cache* caches[2];
  for (unsigned i = 0; i < 2; ++i) caches[i] = world.attach();
  void* slots[2] = {world.allocate(*caches[0], 1, 0), world.allocate(*caches[0], 1, 0)};
  world.free(*caches[0], 1, slots[0], 0);
  world.hand_over(slots[1], 1, 0, 1);
  world.free(*caches[1], 1, slots[1], 1);
  for (unsigned i = 0; i < 2; ++i) run.spawn([&, i] { world.detach(caches[i]); });
  run.check([&] { world.check_at_rest(); });
}

// Whole lives: attach, allocate, free, detach.
template <class Traits>
void life_against_life(sim::Execution& run) {
  World<Traits> world;
  for (unsigned i = 0; i < 2; ++i) {
    run.spawn([&, i] {
      auto* cache = world.attach();
      world.free(*cache, 1 + i, world.allocate(*cache, 1 + i));
      world.detach(cache);
    });
  }
  run.check([&] { world.check_at_rest(); });
}

// Span claim, thread exit and refill at once: the case in which an earlier prototype crashed.
template <class Traits>
void exit_against_claim_and_refill(sim::Execution& run) {
  World<Traits> world;
  world.crowd(1);
  auto* ending = world.attach();
  auto* asking = world.attach();
  world.free(*ending, 1, world.allocate(*ending, 1, 0), 0);
  void* small = nullptr;
  run.spawn([&] { world.detach(ending); });
  run.spawn([&] { world.free_late(2, world.allocate_late(2, 1), 1); });
  run.spawn([&] { small = world.allocate(*asking, 1); });
  run.check([&] {
    world.free(*asking, 1, small, 2);
    world.detach(asking);
    world.check_at_rest();
  });
}

// Frees after the thread's cache is gone, against a thread that lives on.
template <class Traits>
void late_free_against_refill(sim::Execution& run) {
  World<Traits> world;
  world.crowd(1);
  auto* living = world.attach();
  void* late = world.allocate_late(1, 0);
  void* slots[2] = {};
  run.spawn([&] { world.free_late(1, late, 0); });
  run.spawn([&] {
    for (void*& slot : slots) slot = world.allocate(*living, 1);
  });
  run.check([&] {
    for (void* slot : slots) world.free(*living, 1, slot, 1);
    world.detach(living);
    world.check_at_rest();
  });
}

// A block moves to a lower span, which is empty, while that may go to another class.
unsigned g_moves = 0;  // in how many executions it did
template <class Traits>
void moving_against_claim(sim::Execution& run) {
  World<Traits> world;
  world.crowd(2);
  auto* moving = world.attach();
  void* slots[3] = {};
  for (void*& slot : slots) slot = world.allocate(*moving, 1, 0);
  std::ranges::sort(slots, std::less<>());
  for (void* slot : {slots[0], slots[1]}) world.free_late(1, slot, 0);
  run.spawn([&] {
    if (!world.core().moving().find_slot_below(*moving, alloc::SizeClass{1}, slots[2])) return;
    void* const to = world.allocate(*moving, 1);
    SIM_CHECK(std::less<>()(to, slots[2]));
    world.free(*moving, 1, std::exchange(slots[2], to));
    ++g_moves;
  });
  run.spawn([&] { world.free_late(2, world.allocate_late(2, 1), 1); });
  run.check([&] {
    world.free(*moving, 1, slots[2], 0);
    world.detach(moving);
    world.check_at_rest();
  });
}

// Threads that come and go, two classes, slots handed to another thread through a mailbox; for random schedules.
template <class Traits>
void everything(sim::Execution& run) {
  World<Traits> world;
  world.crowd(2);
  sim::SimAtomics::atomic<void*> mailbox{nullptr};
  for (unsigned i = 0; i < 4; ++i) {
    run.spawn([&, i] {
      for (int life = 0; life < 2; ++life) {
        auto* cache = world.attach();
        const unsigned c = 1 + (i + static_cast<unsigned>(life)) % 2;
        void* slots[2] = {world.allocate(*cache, c), world.allocate(*cache, c)};
        world.free(*cache, c, slots[0]);
        if (c == 1 && slots[1] != nullptr) {
          world.hand_over(slots[1], 1, i, 5);
          slots[1] = mailbox.exchange(slots[1], std::memory_order_acq_rel);
          if (slots[1] != nullptr) world.hand_over(slots[1], 1, 5, i);
        }
        world.free(*cache, c, slots[1]);
        world.detach(cache);
      }
    });
  }
  run.spawn([&] { (void)world.core().relief().trim(); });
  run.check([&] {
    world.free_late(1, mailbox.load(std::memory_order_relaxed), 5);
    world.check_at_rest();
  });
}

// ---- the shipped algorithm; the mutex has its own model, so here it never spins

template <class Traits>
sim::Scenarios scenarios() {
  return {{within("exit/refill1", 4, 1), exit_against_refill<Traits, 1>},
          {within("exit/refill2", 4, 1), exit_against_refill<Traits, 2>},
          {within("exit/drain", 4, 1), exit_against_drain<Traits>},
          {within("exit/exit", 4, 1), exit_against_exit<Traits>},
          {within("late/refill", 4, 1), late_free_against_refill<Traits>},
          {within("life/life", 2, 1), life_against_life<Traits>},
          {within("exit/claim/refill", 2, 1), exit_against_claim_and_refill<Traits>},
          {within("moving/claim", 2, 1), moving_against_claim<Traits>}};
}

TEST(Core_Model, EveryScenario_NothingTwiceNothingLost) {
  g_moves = 0;
  sim::expect_all_ok("core", scenarios<Faithful>());
  EXPECT_GT(g_moves, 0U);
}
TEST(Core_Model, EverythingAtOnce_Pct_NothingTwiceNothingLost) {
  sim::expect_all_ok("core", {{sim::at_random("everything", 2, 5, 20'000), everything<Faithful>}});
}

// ---- mutants

template <class Traits>
Failure killed() {
  return sim::first_failure("core", scenarios<Traits>(), 2);
}

FREEHOLD_WEAKER(TakeRelaxed, pool::WordPoolOrders, kTake, relaxed);
FREEHOLD_WEAKER(PutAcquire, pool::WordPoolOrders, kPut, acquire);
// An ending thread takes with it what its cache held.
template <class T>
struct ExitKeepsItsSlots : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  T fetch_add(T value, std::memory_order order) noexcept {
    return World<model::On<ExitKeepsItsSlots>>::exits() ? T{1} << (8 * sizeof(T) - 1)
                                                        : sim::atomic<T>::fetch_add(value, order);
  }
};
// An ending thread gives slots back by a load and a store.
template <class T>
struct ExitTearsWords : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  T fetch_add(T value, std::memory_order order) noexcept {
    if (!World<model::On<ExitTearsWords>>::exits()) return sim::atomic<T>::fetch_add(value, order);
    const T old = this->load(std::memory_order_seq_cst);
    this->store(static_cast<T>(old + value), std::memory_order_seq_cst);
    return old;
  }
};

TEST(Core_Mutants, EachAlone_IsNoticed) {
  EXPECT_EQ(killed<model::Ordered<TakeRelaxed>>(), Failure::kRace);
  EXPECT_EQ(killed<model::Ordered<PutAcquire>>(), Failure::kRace);
  EXPECT_EQ(killed<model::On<ExitKeepsItsSlots>>(), Failure::kCheck);
  EXPECT_NE(killed<model::On<ExitTearsWords>>(), Failure::kNone);
  EXPECT_NE(killed<model::On<model::Open>>(), Failure::kNone);
}

}  // namespace
}  // namespace freehold
