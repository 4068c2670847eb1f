// SPDX-License-Identifier: MIT
// "Practical testing 30: reducing contention": C(threads that use the queue) with a private heap against C(threads that use
// the program's heap) without. On simulated cores, counted: a thread on a private heap touches no line that others touch,
// however many of them allocate elsewhere; a thread that allocates from the heap that all use pays for all.
#include <gtest/gtest.h>

#include <ostream>

#include "freehold/heap/private_heap.hpp"
#include "sim/coherence.hpp"

namespace freehold {
namespace {

using sim::CoherenceCount;
using sim::CoherentAtomics;

struct ManyCpus : heap::HeapGeometry {
  static constexpr unsigned shards() noexcept { return 64; }
};
// A heap behind one lock: what the article's program heap was, and what an owner-locked heap and its users' lock are.
struct alignas(base::kCacheLine) LockedHeap {
  sync::Mutex<CoherentAtomics> lock;
  heap::BasicOwnerLockedHeap<CoherentAtomics, heap::HeapGeometry, heap::EngineSlabs> heap;

  void* allocate() noexcept {
    const sync::Guard guard(lock);
    return heap.allocate(40, 8);
  }
  void deallocate(void* block) noexcept {
    const sync::Guard guard(lock);
    heap.deallocate(block, 40, 8);
  }
};
struct alignas(base::kCacheLine) SharedHeap {
  heap::BasicPrivateHeap<CoherentAtomics, ManyCpus, heap::EngineSlabs, heap::Unregistered> heap;

  void* allocate() noexcept { return heap.allocate(40, 8); }
  void deallocate(void* block) noexcept { heap.deallocate(block, 40, 8); }
};

// The first `users` cores work on one heap, the others on another, or on the same one.
template <class H>
struct TwoHeaps {
  TwoHeaps(unsigned the_users, bool has_own) noexcept : users(the_users), is_private(has_own) {}

  H of_users, of_program;
  unsigned users;
  bool is_private;

  H& mine() noexcept { return is_private && sim::coherent::core() < users ? of_users : of_program; }
};

template <class H>
CoherenceCount count(unsigned users, unsigned others, bool is_private) {
  sim::end_outside_of_cores();
  TwoHeaps<H> heaps(users, is_private);
  using T = TwoHeaps<H>;
  const sim::PoolCalls calls{&heaps, [](void* both) { return static_cast<T*>(both)->mine().allocate(); },
                             [](void* both, void* block) { static_cast<T*>(both)->mine().deallocate(block); }};
  return sim::count_misses({.cores = users + others, .pairs = 64, .warm_up = 512, .counted = users}, calls);
}

TEST(HeapContention, OwnerLockedHeap_OnlyItsUsersLines) {
  for (const unsigned users : {1U, 2U, 4U}) {
    const CoherenceCount alone = count<LockedHeap>(users, 0, true);
    for (const unsigned others : {1U, 8U, 60U}) {
      const CoherenceCount among_others = count<LockedHeap>(users, others, true);
      EXPECT_EQ(among_others.lines_with_company, 0U) << users << " users, " << others << " others";
      EXPECT_EQ(among_others.misses, alone.misses) << users << " users, " << others << " others";
    }
  }
  EXPECT_EQ(count<LockedHeap>(1, 0, true).misses, 0U);
}
TEST(HeapContention, ProgramHeap_EverybodysLines) {
  const CoherenceCount alone = count<LockedHeap>(1, 0, false);
  const CoherenceCount among_others = count<LockedHeap>(1, 8, false);
  EXPECT_EQ(alone.misses, 0U);
  EXPECT_GT(among_others.lines_with_company, 0U);
  EXPECT_GT(among_others.misses_per_pair(), 1.5);  // whoever had the lock and the free list last was somebody else
}
// The kind for any thread: not even its own users' lines, as long as each has a CPU.
TEST(HeapContention, PrivateHeap_UsersOnCpusOfTheirOwn_NoMisses) {
  for (const unsigned users : {1U, 8U, 32U}) {
    const CoherenceCount found = count<SharedHeap>(users, 8, true);
    EXPECT_EQ(found.lines_with_company, 0U) << users;
    EXPECT_EQ(found.misses, 0U) << users;
  }
}

}  // namespace
}  // namespace freehold
