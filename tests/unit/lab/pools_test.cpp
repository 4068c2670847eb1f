// SPDX-License-Identifier: MIT
#include <span>

#include "lab/pools/run.hpp"
#include "lab/strategies/registry.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/lab/pools_support.hpp"

namespace freehold::lab::pools {
namespace {

// ---- what a test finds when it begins

using Stack = pool::NativePool<pool::TaggedStack>;

Job job_with(Trial test, Context context, std::uint32_t threads = 1) {
  return {
      .test = test, .context = context, .threads = threads, .operations = 5000, .slot_bytes = 12, .milliseconds = 20'000};
}

std::vector<void*> free_slots_after_preparing(const Job& job) {
  const pool::PoolShape shape = shape_of(job);
  Stack pool(shape);
  prepare(pool, job, shape.slots);
  std::vector<void*> free;
  while (void* const slot = pool.acquire()) free.push_back(slot);
  std::ranges::sort(free);
  return free;
}

TEST(PoolsContext, Free_IsWhatTheContextSays) {
  for (const Context context : kContexts) {
    const Job job = job_with(Trial::kLong, context);
    const std::size_t slots = shape_of(job).slots;
    const std::vector<void*> free = free_slots_after_preparing(job);
    const std::size_t one_in = context == Context::kFresh ? 1 : context == Context::kAlmostFull ? 100 : 2;
    EXPECT_NEAR(static_cast<double>(free.size()), static_cast<double>(slots) / static_cast<double>(one_in), 1)
        << name_of(context);
    const auto distance = [&](std::size_t a, std::size_t b) {
      return static_cast<char*>(free[b]) - static_cast<char*>(free[a]);
    };
    const auto last = free.size() - 1;
    if (context == Context::kPolluted) {
      EXPECT_EQ(distance(0, 1), 2 * 16);
    }
    if (context == Context::kAlmostFull) {
      EXPECT_EQ(distance(0, 1), 100 * 16);
    }
    if (context == Context::kHalfUsed) {
      EXPECT_EQ(distance(0, last), static_cast<long>(16 * last));
    }
  }
}

// Never hands out a slot again; counts the calls.
class EndlessPool {
 public:
  explicit EndlessPool(const pool::PoolShape& shape) : bytes_(shape.slot_bytes), blocks_(1'000'000 * bytes_) {}
  [[nodiscard]] void* acquire() noexcept { return &blocks_[bytes_ * acquired_++ % blocks_.size()]; }
  void release(void*) noexcept { ++released_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  std::size_t bytes_, capacity_ = pool::kNoLimit;
  std::vector<char> blocks_;
  static inline std::atomic<std::size_t> acquired_ = 0, released_ = 0;
};

TEST(PoolsContext, Fresh_NothingWasAcquiredBefore) {
  const Job job = job_with(Trial::kLong, Context::kFresh);
  EndlessPool pool(shape_of(job));
  for (const std::size_t capacity : {pool::kNoLimit, shape_of(job).slots}) {
    pool.capacity_ = capacity;
    prepare(pool, job, shape_of(job).slots);
    keep_blocks(pool, job);
  }
  EXPECT_EQ(pool.acquired_, 0u);
}

TEST(PoolsContext, PollutedWithoutSlots_EachThreadKeepsHalfOfWhatItWillAllocate) {
  const Job job = job_with(Trial::kLong, Context::kPolluted, 4);
  const auto once = run_on<EndlessPool>(job, [](const pool::PoolShape& shape, const Job&) { return EndlessPool(shape); });
  EXPECT_EQ(once.operations, 4 * 5000u);
  EXPECT_EQ(EndlessPool::acquired_ - EndlessPool::released_, 4 * 2500u);
}

// ---- how far live slots lie from each other

TEST(PoolsScatter, Replaced_RoundRobinScattersWhatAFirstFitPoolKeepsTogether) {
  const auto scatter = [](auto strategy, Trial test) {
    return run_on<pool::NativePool<decltype(strategy)>>(job_with(test, Context::kFresh),
                                                        make_plain<pool::NativePool<decltype(strategy)>>)
        .scatter;
  };
  EXPECT_LT(scatter(pool::LockedFlags{}, Trial::kAlike), 1.3);
  EXPECT_GT(scatter(pool::LockedFlags{}, Trial::kMixed), 2);
  EXPECT_LT(scatter(pool::LockedBitmapTree{}, Trial::kMixed), 1.1);
  EXPECT_EQ(candidates()[2].bookkeeping(12), 4.0) << "S2's";
  EXPECT_GE(candidates()[1].bookkeeping(12), 4.0) << "the heap's";
}

// ---- the loops

constexpr auto kMake = []<class P>(std::type_identity<P>) {
  return [](const pool::PoolShape& shape, const Job&) { return P(shape); };
};
template <class P>
Report run(const Job& job) {
  return run_on<P>(job, kMake(std::type_identity<P>{}));
}

TEST(PoolsLoops, EveryTest_DoesItsOperationsAndFindsNothingWrong) {
  for (const Trial test : kTests) {
    const std::uint32_t threads = is_single_threaded(test) ? 1 : 4;
    const Report report = run<Stack>(job_with(test, Context::kFresh, threads));
    EXPECT_EQ(report.correct, 1u) << name_of(test);
    EXPECT_EQ(report.failures, 0u) << name_of(test);
    if (test == Trial::kRing)
      EXPECT_EQ(report.operations, 2 * 6144u);  // whole blocks of each producer
    else
      EXPECT_EQ(report.operations, 5000u * threads) << name_of(test);
  }
}

// Hands the same slot out again and again.
class SameSlotPool {
 public:
  explicit SameSlotPool(const pool::PoolShape& shape) : slot_(shape.slot_bytes) {}
  [[nodiscard]] void* acquire() noexcept { return slot_.data(); }
  void release(void*) noexcept {}
  [[nodiscard]] std::size_t capacity() const noexcept { return 1; }

 private:
  std::vector<char> slot_;
};

TEST(PoolsLoops, SlotHandedOutTwice_IsNoticed) {
  for (const Trial test : {Trial::kLong, Trial::kSingle, Trial::kRandom})
    EXPECT_EQ(run<SameSlotPool>(job_with(test, Context::kFresh)).correct, 0u) << name_of(test);
  // Article 1's buffers. Threads spend nearly all of their time inside such large ones, so that they meet on any machine.
  Job crc = job_with(Trial::kCrc, Context::kFresh, 4);
  crc.slot_bytes = 4096;
  crc.reads = 4;
  const Report report = run<SameSlotPool>(crc);
  EXPECT_EQ(report.correct, 0u);
  EXPECT_NE(crc.complaint(report), "");
}

TEST(PoolsLoops, NoTimeLimit_AllOperations) {
  Job job = job_with(Trial::kShort, Context::kFresh, 2);
  job.milliseconds = 0;
  job.operations = 3'000'000;
  EXPECT_EQ(run<Stack>(job).operations, 2 * job.operations);
  EXPECT_GE(job.limit(), std::chrono::seconds(60));
}

// ---- results

TEST(PoolsResults, Contention_IsConflictsInIterations) {
  const Results results = results_with([](const Job&, std::size_t) { return 10; });
  EXPECT_DOUBLE_EQ(*contention(results.find({Trial::kCrc, Context::kFresh, 8}, "spread", 4, true)), 0.04);
}

}  // namespace
}  // namespace freehold::lab::pools
