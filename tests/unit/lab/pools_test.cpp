// SPDX-License-Identifier: MIT
#include <span>

#include "lab/pools/run.hpp"
#include "lab/strategies/registry.hpp"
#include "tests/support/test.hpp"

namespace freehold::cli::pools {
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
  [[nodiscard]] sync::Contention contention() const noexcept { return {}; }

 private:
  std::vector<char> slot_;
};

TEST(PoolsLoops, SlotHandedOutTwice_IsNoticed) {
  for (const Trial test : {Trial::kLong, Trial::kSingle, Trial::kRandom})
    EXPECT_EQ(run<SameSlotPool>(job_with(test, Context::kFresh)).correct, 0u) << name_of(test);
}

}  // namespace
}  // namespace freehold::cli::pools
