// SPDX-License-Identifier: MIT
// OwnerPages on the simulated machine: remote frees against the owner's allocations, its exit, and each other.
// The oracles: a slot's payload is plain data, so a slot that two threads hold is a data race or a wrong stamp. A page that
// goes back to the upstream is overwritten with plain stores, so a thread that still uses it races with them, and it goes
// back once. At the end the upstream has every page but the descriptors', and the equations of check_invariants() hold on
// the way.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "freehold/thread_alloc/owner_pages.hpp"
#include "freehold/thread_alloc/page_map.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/mutants.hpp"
#include "tests/model/scenarios.hpp"

namespace freehold::thread_alloc {
namespace {

using sim::Execution;
using sim::Failure;
using sim::SimAtomics;

constexpr std::size_t kModelPage = 1024;
constexpr std::size_t kPages = 12;
constexpr std::size_t kModelSlot = 448;  // two slots a page

// An upstream of pages that are used once each; the addresses are the same in every execution.
class OncePages {
 public:
  OncePages() { memory.fill(std::byte{0}); }

  void* allocate_page() {
    // relaxed: a real upstream synchronises with the next user of a page; here no order is needed.
    const std::uint32_t i = next_.fetch_add(1, std::memory_order_relaxed);
    SIM_CHECK(i < kPages);
    out_[i].store(1);
    return &memory[i * kModelPage];
  }
  void free_page(void* page) {
    const std::size_t i = static_cast<std::size_t>(static_cast<std::byte*>(page) - memory.data()) / kModelPage;
    SIM_CHECK(page == &memory[i * kModelPage] && out_[i].load() == 1);
    out_[i].store(2);
    for (std::size_t at = 0; at < kModelPage; at += 8)
      if (at < 64 || (at - 64) % kModelSlot < 16)
        reinterpret_cast<SimAtomics::var<std::uint64_t>*>(&memory[i * kModelPage + at])->store(0);
  }
  [[nodiscard]] unsigned out() const {
    unsigned n = 0;
    for (const auto& page : out_) n += page.load() == 1 ? 1 : 0;
    return n;
  }

 private:
  alignas(kModelPage) static inline std::array<std::byte, kPages * kModelPage> memory;
  SimAtomics::atomic<std::uint32_t> next_{0};
  std::array<SimAtomics::var<unsigned>, kPages> out_;  // 0 not yet, 1 out, 2 back
};
struct ModelUpstream {
  OncePages* pages;
  void* allocate_page() noexcept { return pages->allocate_page(); }
  void free_page(void* page) noexcept { pages->free_page(page); }
};

template <template <class> class L, std::uint32_t kGather = 1, class O = OwnerPagesOrders>
struct Small : OwnerPagesConfig {
  static constexpr std::size_t kPageBytes = kModelPage;
  static constexpr std::array<std::uint16_t, 1> kSlotBytes{kModelSlot};
  static constexpr std::uint32_t kHandOver = kGather;
  static constexpr std::uint32_t kCollectAt = 2;
  static constexpr std::uint32_t kOutboxes = 1;
  static constexpr std::size_t kColours = 1;
  template <class A>
  using List = L<A>;
  using Orders = O;
  using Upstream = ModelUpstream;
};
template <class A>
using Mutexed = MutexPendingList<A>;
template <class A>
using LockFree = LockFreeList<A>;

// The allocator of one execution, and what the program does with its slots.
template <class Config, class A = SimAtomics>
struct Scene {
  using Pages = OwnerPages<A, Config>;
  using Owner = typename Pages::Owner;
  struct Held {
    FreeNode<A> of_the_allocator;
    SimAtomics::var<unsigned> stamp;
  };

  OncePages upstream;
  Pages pages{ModelUpstream{&upstream}};

  Held* allocate(Owner& owner) {
    auto* const slot = static_cast<Held*>(pages.allocate(owner, kModelSlot));
    SIM_CHECK(slot != nullptr);
    slot->stamp.store(1);
    return slot;
  }
  void free(Owner* owner, Held* slot) {
    SIM_CHECK(slot->stamp.load() == 1);
    slot->stamp.store(2);
    pages.deallocate(owner, slot);
  }
  // Every slot is freed, every owner has left.
  void check_empty() {
    OwnerPagesStats stats;
    pages.stats(stats);
    SIM_CHECK(stats.pages == 0 && stats.pending == 0 && stats.gathered == 0);
    SIM_CHECK(stats.owners == 0 && stats.owners_left == 0);
    pages.release_descriptors();
    SIM_CHECK(upstream.out() == 0);
  }
};

// The owner allocates while another thread frees both slots of its full page.
template <class S>
void allocate_against_frees(Execution& run) {
  S scene;
  auto& owner = *scene.pages.join();
  auto *a = scene.allocate(owner), *b = scene.allocate(owner), *c = a, *d = a;
  run.spawn([&] {
    c = scene.allocate(owner);
    d = scene.allocate(owner);
    SIM_CHECK(scene.pages.check_invariants(owner));
  });
  run.spawn([&] {
    scene.free(nullptr, a);
    scene.free(nullptr, b);
  });
  run.check([&] {
    SIM_CHECK(scene.pages.check_invariants(owner));
    scene.free(&owner, c);
    scene.free(&owner, d);
    scene.pages.leave(owner);
    scene.check_empty();
  });
}

// The owner leaves while another thread frees one of two slots, or both.
template <class S>
void leave_against_frees(Execution& run) {
  S scene;
  auto& owner = *scene.pages.join();
  auto *a = scene.allocate(owner), *b = scene.allocate(owner), *c = scene.allocate(owner);
  run.spawn([&] {
    scene.free(&owner, c);
    scene.pages.leave(owner);
  });
  run.spawn([&] {
    scene.free(nullptr, a);
    scene.free(nullptr, b);
  });
  run.check([&] { scene.check_empty(); });
}

// The owner leaves; two threads free the two slots of its page: one of three is the last.
template <class S>
void leave_against_two(Execution& run) {
  S scene;
  auto& owner = *scene.pages.join();
  auto *a = scene.allocate(owner), *b = scene.allocate(owner);
  run.spawn([&] { scene.pages.leave(owner); });
  run.spawn([&] { scene.free(nullptr, a); });
  run.spawn([&] { scene.free(nullptr, b); });
  run.check([&] { scene.check_empty(); });
}

// Two threads free the last two slots of an owner that has left, on one page or on two, and then each becomes an owner: one
// may get the descriptor again.
template <class S, unsigned kPages>
void last_frees_then_join(Execution& run) {
  S scene;
  auto& owner = *scene.pages.join();
  auto *a = scene.allocate(owner), *b = scene.allocate(owner);
  if (kPages == 2) {
    auto* const c = scene.allocate(owner);
    scene.free(&owner, b);
    b = c;
  }
  scene.pages.leave(owner);
  for (auto* slot : {a, b}) {
    run.spawn([&scene, slot] {
      scene.free(nullptr, slot);
      auto& self = *scene.pages.join();
      auto* const own = scene.allocate(self);
      scene.free(&self, own);
      scene.pages.leave(self);
    });
  }
  run.check([&] { scene.check_empty(); });
}

// A thread that frees the last slot of an owner that is leaving, and then becomes an owner: perhaps with its descriptor.
template <class S>
void leave_against_free_and_join(Execution& run) {
  S scene;
  auto& owner = *scene.pages.join();
  auto* const a = scene.allocate(owner);
  run.spawn([&] { scene.pages.leave(owner); });
  run.spawn([&] {
    scene.free(nullptr, a);
    auto& self = *scene.pages.join();
    auto* const own = scene.allocate(self);
    scene.free(&self, own);
    scene.pages.leave(self);
  });
  run.check([&] { scene.check_empty(); });
}

// A thread gathers slots of an owner that leaves, and leaves itself.
template <class S>
void gather_against_leave(Execution& run) {
  S scene;
  auto &owner = *scene.pages.join(), &other = *scene.pages.join();
  auto *a = scene.allocate(owner), *b = scene.allocate(owner), *c = scene.allocate(owner);
  run.spawn([&] { scene.pages.leave(owner); });
  run.spawn([&] {
    scene.free(&other, a);
    scene.free(&other, c);
    scene.free(&other, b);
    scene.pages.leave(other);
  });
  run.check([&] { scene.check_empty(); });
}

// Two owners free into each other and leave.
template <class S>
void exchange_and_leave(Execution& run) {
  S scene;
  auto &one = *scene.pages.join(), &two = *scene.pages.join();
  auto *a = scene.allocate(one), *b = scene.allocate(two);
  run.spawn([&] {
    scene.free(&one, b);
    scene.pages.leave(one);
  });
  run.spawn([&] {
    scene.free(&two, a);
    scene.pages.leave(two);
  });
  run.check([&] { scene.check_empty(); });
}

// A thread forks: it holds every lock for a while, beside a remote free and a thread that joins and leaves.
template <class S>
void hold_against_free_and_join(Execution& run) {
  S scene;
  auto& owner = *scene.pages.join();
  auto* const a = scene.allocate(owner);
  run.spawn([&] {
    scene.pages.before_fork();
    scene.pages.after_fork();
  });
  run.spawn([&] { scene.free(nullptr, a); });
  run.spawn([&] { scene.pages.leave(*scene.pages.join()); });
  run.check([&] {
    scene.pages.leave(owner);
    scene.check_empty();
  });
}

// The article's policy: every allocation looks at the list, and may drain it while the page still has slots.
template <class Config>
struct LooksAlways : Config {
  static constexpr bool kLookAlways = true;
  static constexpr std::uint32_t kCollectAt = 1;
};

// Exits: every mutant goes through these.
template <class Config, class A = SimAtomics>
sim::Scenarios exits() {
  using S = Scene<Config, A>;
  return {{{.name = "leave, 2 frees", .preemptions = 3}, leave_against_frees<S>},
          {{.name = "leave, free, free", .preemptions = 2}, leave_against_two<S>},
          {{.name = "leave, free and join", .preemptions = 3}, leave_against_free_and_join<S>},
          {{.name = "last frees of a page, join", .preemptions = 2}, last_frees_then_join<S, 1>},
          {{.name = "last frees of two pages, join", .preemptions = 2}, last_frees_then_join<S, 2>}};
}
template <template <class> class L>
sim::Scenarios others() {
  using S = Scene<Small<L>>;
  using Gathers = Scene<Small<L, 2>>;
  using Looks = Scene<LooksAlways<Small<L>>>;
  return {{{.name = "allocate, 2 frees", .preemptions = 3}, allocate_against_frees<S>},
          {{.name = "allocate and look, 2 frees", .preemptions = 3}, allocate_against_frees<Looks>},
          {{.name = "look, leave, 2 frees", .preemptions = 3}, leave_against_frees<Looks>},
          {{.name = "gather, leave", .preemptions = 3}, gather_against_leave<Gathers>},
          {{.name = "exchange, leave", .preemptions = 3}, exchange_and_leave<Gathers>},
          {{.name = "hold, free, join", .preemptions = 2, .stale = 0}, hold_against_free_and_join<S>}};
}
TEST(OwnerPages_Model, MutexList_NoSlotTwiceEveryPageReturned) {
  sim::expect_all_ok("owner_pages/mutex", exits<Small<Mutexed>>());
  sim::expect_all_ok("owner_pages/mutex", others<Mutexed>());
}
TEST(OwnerPages_Model, LockFreeList_NoSlotTwiceEveryPageReturned) {
  sim::expect_all_ok("owner_pages/lock-free", exits<Small<LockFree>>());
  sim::expect_all_ok("owner_pages/lock-free", others<LockFree>());
}

template <class Config, class A = SimAtomics>
Failure killed() {
  return sim::first_failure("owner_pages", exits<Config, A>(), 2);
}

FREEHOLD_WEAKER(PageAcquires, OwnerPagesOrders, kPageCountDown, acquire);
FREEHOLD_WEAKER(PageReleases, OwnerPagesOrders, kPageCountDown, release);
FREEHOLD_WEAKER(OwnerAcquires, OwnerPagesOrders, kOwnerCountDown, acquire);
FREEHOLD_WEAKER(OwnerReleases, OwnerPagesOrders, kOwnerCountDown, release);

TEST(OwnerPages_Mutants, EachAlone_IsNoticed) {
  EXPECT_EQ((killed<Small<Mutexed, 1, PageAcquires>>()), Failure::kRace);
  EXPECT_EQ((killed<Small<Mutexed, 1, PageReleases>>()), Failure::kRace);
  EXPECT_EQ((killed<Small<LockFree, 1, PageAcquires>>()), Failure::kRace);
  EXPECT_EQ((killed<Small<LockFree, 1, PageReleases>>()), Failure::kRace);
  // With the mutex list alone: what a late freer of the lock-free list looks at is one atomic, which needs no such order.
  EXPECT_EQ((killed<Small<Mutexed, 1, OwnerAcquires>>()), Failure::kRace);
  EXPECT_EQ((killed<Small<Mutexed, 1, OwnerReleases>>()), Failure::kRace);
}

// The count goes down in two halves.
using TearsSubtract = model::Tearing<model::kSubtract>;
TEST(OwnerPages_Mutants, CountDownTorn_PageLostOrReturnedTwice) {
  EXPECT_NE((killed<Small<Mutexed>, TearsSubtract>()), Failure::kNone);
  EXPECT_NE((killed<Small<LockFree>, TearsSubtract>()), Failure::kNone);
}

// The owner leaves and lets others go on pushing.
template <class A>
struct NeverClosesMutex : MutexPendingList<A> {
  FreeNode<A>* close() noexcept { return this->drain(); }
};
template <class A>
struct NeverClosesLockFree : LockFreeList<A> {
  FreeNode<A>* close() noexcept { return this->drain(); }
};
// The owner leaves without a last look.
template <class List, class A>
struct LooksAwayList : List {
  FreeNode<A>* close() noexcept {
    static_cast<void>(List::close());
    return nullptr;
  }
};
template <class A>
using LooksAwayMutex = LooksAwayList<MutexPendingList<A>, A>;
template <class A>
using LooksAwayLockFree = LooksAwayList<LockFreeList<A>, A>;

TEST(OwnerPages_Mutants, ExitWithoutCloseOrLastLook_PageLost) {
  EXPECT_EQ(killed<Small<NeverClosesMutex>>(), Failure::kCheck);
  EXPECT_EQ(killed<Small<NeverClosesLockFree>>(), Failure::kCheck);
  EXPECT_EQ(killed<Small<LooksAwayMutex>>(), Failure::kCheck);
  EXPECT_EQ(killed<Small<LooksAwayLockFree>>(), Failure::kCheck);
}

// The page map: two threads bring the first two pages of a leaf; both map a leaf, one of which is used.
struct TwoLeaves {
  static inline std::array<std::array<std::uint64_t, 8>, 2> leaves;
  static inline SimAtomics::atomic<std::uint32_t> mapped{0}, released{0};
  static void* map(std::size_t bytes) {
    SIM_CHECK(bytes == sizeof leaves[0]);
    return &leaves[mapped.fetch_add(1, std::memory_order_relaxed)];
  }
  static void release(void*, std::size_t) { released.fetch_add(1, std::memory_order_relaxed); }
};

template <class A>
void two_inserts(Execution& run) {
  TwoLeaves::leaves = {};
  TwoLeaves::mapped.store(0);
  TwoLeaves::released.store(0);
  PageMap<A, TwoLeaves, 30> map;
  const auto page = [](unsigned i) { return reinterpret_cast<const void*>((std::uintptr_t{i} + 1) * 4096); };
  for (unsigned i = 0; i < 2; ++i) {
    run.spawn([&map, page, i] {
      SIM_CHECK(map.insert(page(i)));
      SIM_CHECK(map.contains(page(i)) && !map.contains(page(2)));
      SIM_CHECK(map.insert(page(i + 3)));
      map.erase(page(i + 3));
    });
  }
  run.check([&] {
    SIM_CHECK(map.contains(page(0)) && map.contains(page(1)));
    SIM_CHECK(!map.contains(page(2)) && !map.contains(page(3)) && !map.contains(page(4)));
    SIM_CHECK(TwoLeaves::mapped.load() - TwoLeaves::released.load() == 1);
  });
}

TEST(PageMap_Model, TwoThreadsBringALeafsFirstPages_BothAreIn) {
  sim::expect_all_ok("page_map", {{{.name = "two inserts", .preemptions = 5, .stale = 2}, two_inserts<SimAtomics>}});
}

// A read-modify-write in two halves.
struct BitsTorn : SimAtomics {
  template <class T>
  using atomic = std::conditional_t<std::is_integral_v<T>, model::Torn<T, model::kOr>, sim::atomic<T>>;
};
TEST(PageMap_Mutants, StepsTorn_PageMissing) {
  const sim::Options options{.name = "page_map/torn", .preemptions = 3, .stale = 0, .print = false};
  EXPECT_EQ(sim::explore(options, two_inserts<BitsTorn>).failure, Failure::kCheck);
  EXPECT_EQ(sim::explore(options, two_inserts<model::Tearing<model::kCompareExchange>>).failure, Failure::kCheck);
}

}  // namespace
}  // namespace freehold::thread_alloc
