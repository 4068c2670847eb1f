// SPDX-License-Identifier: MIT
// Mutants of the pools' algorithms, each with one step left out or done wrong: the scenarios that find nothing wrong with
// the strategies find each of these. Most are made underneath, by atomics that misbehave; the pool's own source is
// untouched.
#include <gtest/gtest.h>

#include "tests/model/mutants.hpp"
#include "tests/model/pool_scenarios.hpp"

namespace freehold::model {
namespace {

using sim::Failure;
using sim::SimAtomics;

// The failure that the first scenario to notice reports.
template <class P>
Failure killed(const char* name, bool finds_last = true, bool many_steps = false) {
  const Subject mutant = subject_of<P>(name, finds_last, many_steps);
  Effort effort;
  effort.print = false;
  const sim::Result result = hunt(mutant, effort);
  std::printf("[ mutant   ] %s: %s%s\n", name, result.failure == Failure::kNone ? "survives" : "killed, ",
              result.message.c_str());
  EXPECT_NE(result.failure, Failure::kScenario) << result;
  return result.failure;
}
template <class S, class A>
Failure killed_on(const char* name) {
  return killed<typename S::template Pool<A>>(name, S::kFindsLast, has_many_steps<S>());
}

// Atomics of 64 bits that differ from sim::atomic, which all others are.
template <template <class> class Odd>
struct On : SimAtomics {
  template <class T>
  using atomic = std::conditional_t<std::is_same_v<T, std::uint64_t>, Odd<T>, sim::atomic<T>>;
};

// No tag: the head holds the number alone, so a slot that was popped and pushed back goes unnoticed (ABA).
template <class T>
class Untagged : public sim::atomic<T> {
 public:
  using sim::atomic<T>::atomic;
  bool compare_exchange_weak(T& expected, T desired, std::memory_order success, std::memory_order failure) noexcept {
    return sim::atomic<T>::compare_exchange_weak(expected, desired & 0xffffffff, success, failure);
  }
};
TEST(Pools_Mutants, TagLeftOut_Killed) {
  EXPECT_NE((killed_on<pool::TaggedStack, On<Untagged>>("tagged-stack without tag")), Failure::kNone);
  EXPECT_NE((killed_on<pool::StacksByThread, On<Untagged>>("stacks-by-thread without tag")), Failure::kNone);
}

// Missed recheck: who clears a summary's bit does not look again, but believes the word to be still empty.
template <class T>
class Unchecked : public sim::atomic<T> {
 public:
  using sim::atomic<T>::atomic;
  T fetch_and(T value, std::memory_order order) noexcept {
    cleared_[sim::thread_index()] = true;
    return sim::atomic<T>::fetch_and(value, order);
  }
  T load(std::memory_order order = std::memory_order_seq_cst) const noexcept {
    const T value = sim::atomic<T>::load(order);
    return std::exchange(cleared_[sim::thread_index()], false) ? T{} : value;
  }

 private:
  static inline bool cleared_[sim::kMaxThreads + 1] = {};
};
TEST(Pools_Mutants, BitmapTreeWithoutRecheck_Killed) {
  EXPECT_NE((killed_on<pool::LockFreeBitmapTree, On<Unchecked>>("lock-free-bitmap-tree without recheck")), Failure::kNone);
}

// Double publish: a released slot is made free twice, the second time when it may be somebody's already.
template <class T>
class Twice : public sim::atomic<T> {
 public:
  using sim::atomic<T>::atomic;
  T fetch_add(T value, std::memory_order order) noexcept {
    const T old = sim::atomic<T>::fetch_add(value, order);
    (void)sim::atomic<T>::fetch_or(value, order);
    return old;
  }
};
TEST(Pools_Mutants, PublishedTwice_Killed) {
  EXPECT_NE((killed_on<pool::LockFreeBits, On<Twice>>("lock-free-bits published twice")), Failure::kNone);
  EXPECT_NE((killed_on<pool::LockFreeBitmapTree, On<Twice>>("lock-free-bitmap-tree published twice")), Failure::kNone);
}

// A torn take: what was looked at is taken by a plain store, whatever happened in between.
template <class T>
using TornTake = model::Torn<T, model::kCompareExchange>;
TEST(Pools_Mutants, BitsTakenByAStore_Killed) {
  EXPECT_NE((killed_on<pool::LockFreeBits, On<TornTake>>("lock-free-bits taken by a store")), Failure::kNone);
}

// A lock that does not lock.
struct NeverLocked : SimAtomics {
  template <class T>
  class Open : public sim::atomic<T> {
   public:
    using sim::atomic<T>::atomic;
    bool compare_exchange_strong(T& expected, T desired, std::memory_order success, std::memory_order failure) noexcept {
      (void)sim::atomic<T>::compare_exchange_strong(expected, desired, success, failure);
      return true;
    }
  };
  template <class T>
  using atomic = std::conditional_t<std::is_same_v<T, std::uint32_t>, Open<T>, sim::atomic<T>>;
};
TEST(Pools_Mutants, NeverLocked_Killed) {
  EXPECT_NE((killed_on<pool::LockedFlags, NeverLocked>("locked-flags without lock")), Failure::kNone);
  EXPECT_NE((killed_on<pool::LockedBitmapTree, NeverLocked>("locked-bitmap-tree without lock")), Failure::kNone);
  EXPECT_NE((killed_on<pool::LockedBitmapTree32, NeverLocked>("locked-bitmap-tree-32 without locks")), Failure::kNone);
}

// A restartable sequence that does not restart.
struct Heedless : sim::Sequence {
  static bool goes_on() noexcept { return true; }
  template <class T>
  static bool store(sim::atomic<T>& to, T value) noexcept {
    if (!sim::Sequence::store(to, value)) to.store(value, std::memory_order_relaxed);
    return true;
  }
  template <class T>
  static bool commit(sim::atomic<T>& to, T value) noexcept {
    if (!sim::Sequence::commit(to, value)) to.store(value, std::memory_order_relaxed);
    return true;
  }
};
struct NeverRestarts : SimAtomics {
  using CpuStacks = sim::SequenceStacks<Heedless>;
};
TEST(Pools_Mutants, CpuStacksWithoutRestart_Killed) {
  EXPECT_NE((killed_on<pool::CpuStacks, NeverRestarts>("cpu-stacks without restart")), Failure::kNone);
}

// A thief without its fences: the owner of an array does not learn of it, nor it of the owner's last steps.
TEST(Pools_Mutants, BestStealingWithoutHeavyFence_Killed) {
  EXPECT_NE((killed_on<pool::Best, NoHeavyFence>("best, stealing without heavy fence")), Failure::kNone);
}
// One of the two is not enough either.
template <unsigned kLeftOut>
struct OneHeavyFence : SimAtomics {
  static void heavy_fence() noexcept {
    if (turns_++ % 2 != kLeftOut) SimAtomics::heavy_fence();
  }
  // A steal makes two in a row, under the pool's lock; an execution that was cut short may have left one out.
  static bool may_fence_heavily() noexcept { return turns_ = 0, true; }

 private:
  static inline unsigned turns_ = 0;
};
TEST(Pools_Mutants, OneHeavyFenceLeftOut_Killed) {
  EXPECT_NE((killed_on<pool::Best, OneHeavyFence<0>>("best, stealing without its first heavy fence")), Failure::kNone);
  EXPECT_NE((killed_on<pool::Best, OneHeavyFence<1>>("best, stealing without its second heavy fence")), Failure::kNone);
}

// A thread that ends and leaves behind what it kept.
struct NobodyLeaves : SimAtomics {
  static void at_thread_exit(sync::ExitCall) noexcept {}
};
TEST(Pools_Mutants, KeptByThreadsThatEnded_Killed) {
  EXPECT_NE((killed_on<pool::Best, NobodyLeaves>("best, kept by threads that ended")), Failure::kNone);
  EXPECT_NE((killed_on<pool::Magazines, NobodyLeaves>("magazines, kept by threads that ended")), Failure::kNone);
}

// Hazards that are not published: the slot at the top may come back while a thread has read the link below it (ABA).
template <class T>
class Unpublished : public sim::atomic<T> {
 public:
  using sim::atomic<T>::atomic;
  // The pool writes hazards by exchange, and nothing else.
  T exchange(T, std::memory_order order) noexcept { return sim::atomic<T>::load(order); }
};
// A slot that is pushed back although a thread is about to pop it.
template <class T>
class NeverParked : public sim::atomic<T> {
 public:
  using sim::atomic<T>::atomic;
  bool compare_exchange_strong(T& expected, T desired, std::memory_order success, std::memory_order failure) noexcept {
    constexpr T kParked = T{1} << 30;
    if ((desired & kParked) != 0 && (expected & kParked) == 0) return false;
    return sim::atomic<T>::compare_exchange_strong(expected, desired, success, failure);
  }
};
template <template <class> class Odd>
struct On32 : SimAtomics {
  template <class T>
  using atomic = std::conditional_t<std::is_same_v<T, std::uint32_t>, Odd<T>, sim::atomic<T>>;
};
TEST(Pools_Mutants, HazardsLeftOut_Killed) {
  EXPECT_NE((killed_on<pool::HazardStack, On32<Unpublished>>("hazard-stack without hazards")), Failure::kNone);
  EXPECT_NE((killed_on<pool::HazardStack, On32<NeverParked>>("hazard-stack, pushed back at once")), Failure::kNone);
}

// Shards that take back what is another's: a release to the wrong home.
template <class P>
class Misrouted {
 public:
  explicit Misrouted(const pool::PoolShape& shape) : pool_(shape), number_(made_++) { shards_[number_] = this; }
  ~Misrouted() { --made_; }
  Misrouted(const Misrouted&) = delete;
  Misrouted& operator=(const Misrouted&) = delete;
  void* acquire() noexcept { return pool_.acquire(); }
  void release(void* slot) noexcept { shards_[(number_ + 1) % made_]->pool_.release(slot); }
  [[nodiscard]] std::size_t capacity() const noexcept { return pool_.capacity(); }
  [[nodiscard]] sync::Contention contention() const noexcept { return pool_.contention(); }

 private:
  static inline unsigned made_ = 0;  // made by the one distributed pool there is
  static inline Misrouted* shards_[8] = {};
  P pool_;
  unsigned number_;
};
TEST(Pools_Mutants, DistributedToTheWrongHome_Killed) {
  using Shard = Misrouted<pool::TaggedStack::Pool<SimAtomics>>;
  EXPECT_NE((killed<pool::Distributed<Shard, pool::ByThread<SimAtomics>>>("distributed to the wrong home")), Failure::kNone);
}

}  // namespace
}  // namespace freehold::model
