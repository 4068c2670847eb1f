// SPDX-License-Identifier: MIT
#include "lab/timers/run.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/lab/timers_support.hpp"

namespace freehold::lab::timers {
namespace {

// ---- the loops

Job job_with(Trial test, std::uint32_t users = 1) {
  return {.test = test, .load = Load::kAlone, .timers = 500, .users = users, .background = 0, .milliseconds = 20};
}

const Cost& cost_of(const Report& report, Phase phase) { return report.costs[static_cast<std::size_t>(phase)]; }

using Simple = OwnTimers<ArticleOnProgramHeap<timer::SingleThreaded>>;

TEST(TimersLoops, Life_EveryPhaseIsTimedForEveryTimer) {
  for (const Trial test : kTests) {
    if (!is_life(test)) continue;
    const Report report = run_on<Simple>(job_with(test));
    EXPECT_EQ(report.correct, 1u) << name_of(test);
    const std::uint64_t operations = cost_of(report, Phase::kCreate).operations;
    EXPECT_GT(operations, 0u);
    EXPECT_EQ(operations % 500, 0u);
    EXPECT_EQ(is_fresh(test), operations == 500) << name_of(test);
    for (const Phase phase : phases_of(test)) {
      if (phase == Phase::kAll) continue;
      EXPECT_EQ(cost_of(report, phase).operations, operations) << name_of(phase);
      EXPECT_GT(cost_of(report, phase).cpu_ns, 0u) << name_of(phase);
    }
    EXPECT_EQ(cost_of(report, Phase::kRearm).operations, 0u);
  }
}

enum class Defect { kNone, kLosesOne, kFiresTwice, kDisorder, kCancelsInVain, kForgetsToSet };

// A queue that does one thing wrong.
template <Defect kDefect>
class Defective : public Simple {
 public:
  using Simple::Simple;
  void set(std::uint32_t i, Nanoseconds time) noexcept {
    if (kDefect == Defect::kForgetsToSet && i == 7) return;
    if (kDefect == Defect::kDisorder && i == 7) time = kHour / 7 * (++calls_ % 7);
    Simple::set(i, time);
  }
  [[nodiscard]] bool cancel(std::uint32_t i) noexcept {
    if (kDefect == Defect::kCancelsInVain && i == 7) return true;
    return Simple::cancel(i);
  }
  void expire() noexcept {
    if (kDefect == Defect::kLosesOne) (void)Simple::cancel(7);
    Simple::expire();
    if (kDefect == Defect::kFiresTwice) g_fired.note(7);
  }

 private:
  std::int64_t calls_ = 0;
};

TEST(TimersLoops, Defects_AreNoticed) {
  EXPECT_EQ(run_on<Defective<Defect::kNone>>(job_with(Trial::kRandom)).correct, 1u);
  EXPECT_EQ(run_on<Defective<Defect::kLosesOne>>(job_with(Trial::kRandom)).correct, 0u);
  EXPECT_EQ(run_on<Defective<Defect::kFiresTwice>>(job_with(Trial::kRandom)).correct, 0u);
  EXPECT_EQ(run_on<Defective<Defect::kDisorder>>(job_with(Trial::kRandom)).correct, 0u);
  EXPECT_EQ(run_on<Defective<Defect::kCancelsInVain>>(job_with(Trial::kCancel)).correct, 0u);
  EXPECT_EQ(run_on<Defective<Defect::kForgetsToSet>>(job_with(Trial::kRearm)).correct, 0u);
}

// ---- what is computed

TEST(TimersMoved, ArticlesQueue_MillisecondsOf100000TimersBeforeAndAfter) {
  const Results results = results_with([](const Job& job, std::size_t set) {
    return job.name() == kArticlesQueue ? 600.0 + 10 * static_cast<double>(set) : 400.0;
  });
  const std::vector<Moved> all = moved_of(results);
  ASSERT_EQ(all.size(), 8u);  // two tests of four phases; the article's wheel was not measured
  EXPECT_EQ(all[0].before, kArticlesQueue);
  EXPECT_EQ(all[0].after, kArticlesPrivate);
  EXPECT_EQ(all[0].phase, Phase::kCreate);
  EXPECT_DOUBLE_EQ(all[0].before_ms.median, 61);
  EXPECT_DOUBLE_EQ(all[0].before_ms.greatest, 62);
  EXPECT_DOUBLE_EQ(all[0].after_ms.median, 40);
  EXPECT_EQ(all[3].phase, Phase::kAll);
  EXPECT_DOUBLE_EQ(all[3].before_ms.median, 183);
}

}  // namespace
}  // namespace freehold::lab::timers
