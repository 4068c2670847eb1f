// SPDX-License-Identifier: MIT
// The reasoning, on experiments of which the truth is known because they are made up.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/doctor/made_experiment.hpp"
#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/facts.hpp"
#include "tools/doctor/facts/resampled.hpp"
#include "tools/doctor/facts/scalability.hpp"
#include "tools/doctor/verdict/verdict.hpp"

namespace freehold::doctor {
namespace {

CodeGrowth seen(double spinning, double contended) {
  return {.known = true, .work_known = true, .spinning = spinning, .contended = contended};
}

// A program that was asked about with so short a budget that there was one trial of each setting: it seemed to scale, and
// loses a third of its time. "None" needs evidence, as a cause does.
TEST(Verdict, OneTrialOfEach_UndecidedNotNone) {
  const Verdict verdict = Made(0.01, 1).takes(0, 1, 0.28).verdict();
  EXPECT_EQ(found(verdict), "undecided");
  EXPECT_EQ(verdict.doubt, Doubt::kChance);
  EXPECT_EQ(found(Made(0.01, 2).takes(0, 1, 0.26).verdict()), "none") << "two of each";
}

TEST(Verdict, LimitsThatReachALoss_UndecidedNotNone) {
  Made made(0.001, 2);
  made.takes(0, 1, 0.25);
  made.experiment_.cells[1].trials[1].wall_s = 0.4;
  const Verdict verdict = made.verdict();
  EXPECT_GE(verdict.lost.high, 0.24);
  EXPECT_EQ(found(verdict), "undecided");
}

// Scaling is not all: what costs time on one CPU as on all stands in the verdict, too.
TEST(Verdict, ScalesButElevenTimesAsFastWithAnother_NeverNone) {
  Made made = Made().takes(0, 11, 2.8).takes(1, 11, 2.8).takes(2, 11, 2.8).takes(3, 1, 0.255).takes(4, 1, 0.255).copies(11);
  EXPECT_EQ(found(made.verdict()), "undecided");
  EXPECT_EQ(made.verdict().suspected, Cause::kNone);
  EXPECT_EQ(made.verdict().missing, Fact::kUnexplainedGain);
  for (const std::size_t v : {0, 1, 2})
    made.trials(v, [](Trial& trial) { trial.page_faults = 1'000'000, trial.system_s = 5 * trial.user_s; });
  EXPECT_EQ(found(made.verdict()), "page-faults");
  EXPECT_TRUE(made.verdict().parts.empty()) << "of scaling they cost nothing";
}

// Threads that spin need more CPU time, as threads with more work do: without other evidence neither is said.
TEST(Verdict, OnlyCpuTimeSaysThatWorkGrows_UndecidedWhereItMatters) {
  Made made = Made().takes(0, 1, 1.01).treated(1, 1.01).copies(1);
  made.experiment_.work_grows = true;
  EXPECT_EQ(found(made.verdict()), "none") << "the allocations have grown";
  made.experiment_.work_is_guessed = true;
  const Verdict verdict = made.verdict();
  EXPECT_EQ(found(verdict), "undecided");
  EXPECT_EQ(verdict.suspected, Cause::kNone);
  EXPECT_EQ(verdict.missing, Fact::kLost);
  made = Made().takes(0, 1, 4).treated(1, 4).copies(1);
  made.experiment_.work_grows = made.experiment_.work_is_guessed = true;
  EXPECT_EQ(found(made.verdict()), "own-sharing") << "slower than alone: so it is either way";
}

TEST(Verdict, OnlyOtherAllocatorsScale_AllocatorLock) {
  const Verdict verdict = Made().takes(0, 1, 0.8).takes(1, 1, 0.9).takes(2, 1, 0.8).takes(3, 1, 0.25).copies(1).verdict();
  EXPECT_EQ(found(verdict), "allocator-lock");
  EXPECT_NEAR(verdict.allocator_share.value, 1, 0.05);
  EXPECT_NEAR(verdict.lost.value, 1 - 0.25 / 0.8, 0.02);
  ASSERT_TRUE(verdict.best_fix);
  EXPECT_EQ(verdict.fixes[*verdict.best_fix].variant, 3U);
}

// Threads that wait for a lock of the program's took 5.2 s and 4.0 s with two mallocs, by chance.
TEST(Verdict, NothingRecordedAndOneTrial_AllocatorIsNotBlamed) {
  Made made = Made().takes(0, 1, 0.8).takes(3, 1, 0.25).copies(1);
  EXPECT_EQ(found(made.verdict()), "allocator-lock");
  made.experiment_.cells[1].trials.resize(1);
  EXPECT_EQ(found(made.verdict()), "undecided");
}

TEST(Verdict, BlocksFreedByOthers_RemoteFrees) {
  Attribution recorded;
  recorded.remote_share = recorded.cpu_share = 0.8;
  EXPECT_EQ(found(Made().takes(0, 1, 0.8).takes(2, 1, 0.27).takes(3, 1, 0.27).copies(1).verdict(&recorded)),
            "allocator-false-sharing")
      << "padding is among the treated";
  const Verdict verdict = Made().takes(0, 1, 0.8).takes(2, 1, 0.8).takes(3, 1, 0.27).copies(1).verdict(&recorded);
  EXPECT_EQ(found(verdict), "remote-frees");
}

// Waking threads is the kernel's work, too: a third of the time on all CPUs, none on one, and some faults beside.
TEST(Verdict, LocksKeepTheKernelBusy_FaultsAreNotTheCause) {
  Attribution recorded;
  recorded.remote_share = recorded.cpu_share = 0.8;
  Made made = Made().takes(0, 1, 1.5).takes(1, 1, 1.5).takes(2, 1, 1.5).takes(3, 1, 0.26).takes(4, 1, 0.26).copies(1);
  made.trials(0, [](Trial& trial) {
    trial.page_faults = 30'000;
    trial.system_s = trial.wall_s > 1.2 ? trial.user_s : 0.02;
  });
  EXPECT_EQ(found(made.verdict(&recorded)), "remote-frees");
}

TEST(Verdict, OnlyPaddingHelps_AllocatorFalseSharing) {
  const Verdict verdict = Made().takes(0, 1, 0.8).takes(1, 1, 0.8).takes(2, 1, 0.3).takes(3, 1, 0.8).copies(1).verdict();
  EXPECT_EQ(found(verdict), "allocator-false-sharing");
  ASSERT_TRUE(verdict.best_fix);
  EXPECT_EQ(verdict.fixes[*verdict.best_fix].variant, 2U);
}

TEST(Verdict, FaultsGoWithAnotherAllocator_PageFaults) {
  const Verdict verdict = Made()
                              .takes(0, 1, 0.8)
                              .takes(3, 0.9, 0.25)
                              .copies(1)
                              .trials(0, [](Trial& trial) { trial.system_s = trial.user_s, trial.page_faults = 100'000; })
                              .verdict();
  EXPECT_EQ(found(verdict), "page-faults");
}

// Time that copies wait for the CPUs of others is no wait for memory.
TEST(Verdict, CopiesHadNoCpu_NotMemoryBandwidth) {
  Made made;
  made.takes(0, 1, 0.75).treated(1, 0.75).copies(3);
  for (Trial& trial : made.experiment_.cells.back().trials) trial.user_s = 1;
  EXPECT_EQ(found(made.verdict()), "own-sharing");
}

TEST(Verdict, ThreadsWaitOnALock_OwnLock) {
  Attribution recorded;
  recorded.lock_wait_share = 0.7;
  const Made made = Made().takes(0, 1, 1).treated(1, 0.99).copies(1).busy(0, 0.3).busy(1, 0.3);
  EXPECT_EQ(found(made.verdict(&recorded)), "own-lock");
  EXPECT_EQ(found(made.verdict()), "serial") << "it was not seen what they wait for";
}

// A lock that is held for moments: its waiters seldom sleep for long, and the kernel is busy with putting them to sleep and
// waking them.
TEST(Verdict, WaitsShortlyWhileTheKernelWakes_OwnLock) {
  Attribution recorded;
  recorded.lock_wait_share = 0.2;
  Made made = Made().takes(0, 1, 1).treated(1, 1).copies(1);
  EXPECT_EQ(found(made.verdict(&recorded)), "own-sharing");
  for (std::size_t v = 0; v < made.experiment_.variants.size(); ++v)
    made.trials(v, [](Trial& trial) { trial.system_s = 0.3 * trial.user_s, trial.user_s *= 0.7; });
  EXPECT_EQ(found(made.verdict(&recorded)), "own-lock");
  recorded.lock_wait_share = 0.02;
  EXPECT_EQ(found(made.verdict(&recorded)), "own-sharing") << "the kernel may be busy with something else";
}

// The C library's own locks, of a stream for example, are taken without a call that the probe could see.
TEST(Verdict, ThreadsSleepInLocksThatNoCallTook_OwnLock) {
  Attribution recorded;
  Made made = Made().takes(0, 1, 1).treated(1, 0.99).copies(1).busy(0, 0.6).busy(1, 0.6);
  EXPECT_EQ(found(made.verdict(&recorded)), "serial");
  made.experiment_.code.lock_sleepers = 0.3 * 4;
  EXPECT_EQ(found(made.verdict(&recorded)), "own-lock");
  made.experiment_.code.lock_sleepers = 0.1 * 4;
  EXPECT_EQ(found(made.verdict(&recorded)), "serial") << "a quarter of what idles";
  made.experiment_.code.lock_sleeps = 0.9;
  made.trials(0, [](Trial& trial) { trial.voluntary_switches = 50'000; });
  EXPECT_EQ(found(made.verdict(&recorded)), "own-lock") << "short sleeps, but many";
  made.experiment_.code.lock_sleeps = 0.4;
  EXPECT_EQ(found(made.verdict(&recorded)), "undecided") << "in locks or elsewhere";
  made.experiment_.code.lock_sleeps = 0.1;
  EXPECT_EQ(found(made.verdict(&recorded)), "serial") << "most of them are elsewhere";
  made.experiment_.code.lock_sleepers = 0.3 * 4;
  recorded.blocked_share = 0.1;
  EXPECT_EQ(found(made.verdict(&recorded)), "serial") << "they may be malloc's locks";
}

// Memory that all CPUs wait for costs each of them no more than their number.
TEST(Verdict, MoreThanMemoryCanCost_OwnSharingWithoutCopies) {
  const auto with = [](double all, bool is_sampled) {
    Made made = Made().takes(0, 1, all).treated(1, all);
    made.experiment_.code.known = is_sampled;
    return found(made.verdict());
  };
  EXPECT_EQ(with(2, true), "own-sharing");
  EXPECT_EQ(with(2, false), "undecided") << "it may be a lock";
  EXPECT_EQ(with(1.2, true), "undecided");
}

// A spin lock in a malloc of the program's own, in whose place no other one can be put.
TEST(Verdict, GrowsInABuiltInMalloc_OwnMalloc) {
  Made made = Made().takes(0, 1, 2).copies(1);
  made.experiment_.variants.resize(1);
  made.experiment_.code.known = true;
  made.experiment_.code.contended = 0.75;
  EXPECT_EQ(found(made.verdict()), "own-sharing");
  std::swap(made.experiment_.code.contended, made.experiment_.code.allocator);
  EXPECT_EQ(found(made.verdict()), "own-malloc");
}

// OpenMP's threads spin while one of them works, which counts as idle.
TEST(Verdict, ATeamWaitsForWork_Serial) {
  Made made = Made().takes(0, 1, 0.6).treated(1, 0.6).copies(1);
  made.experiment_.code.known = true;
  made.experiment_.code.team_waiting = 0.58;
  EXPECT_EQ(found(made.verdict()), "serial");
  std::swap(made.experiment_.code.team_waiting, made.experiment_.code.spinning);
  EXPECT_EQ(found(made.verdict()), "own-lock");
}

TEST(Verdict, CpusAreBusyForNothing_OwnSharing) {
  EXPECT_EQ(found(Made().takes(0, 1, 0.9).treated(1, 0.9).copies(1).verdict()), "own-sharing");
}

TEST(Verdict, FaultsStayWithAnyAllocator_OwnPageFaults) {
  Made made;
  made.takes(0, 1, 0.9).treated(1, 0.9).copies(1);
  for (std::size_t v = 0; v < made.experiment_.variants.size(); ++v)
    made.trials(v, [](Trial& trial) { trial.system_s = trial.user_s, trial.page_faults = 100'000; });
  Attribution recorded;
  recorded.mapped_bytes = 1e5 * 4096;
  EXPECT_EQ(found(made.verdict(&recorded)), "own-page-faults");
  EXPECT_EQ(found(made.verdict()), "undecided") << "malloc may have mapped it";
}

TEST(Verdict, LessMemoryWithFewerArenas_ArenaBloat) {
  const Verdict verdict = Made()
                              .takes(0, 1, 0.26)
                              .takes(1, 1, 0.26)
                              .copies(1)
                              .trials(1, [](Trial& trial) { trial.peak_rss_bytes /= 2; })
                              .verdict();
  EXPECT_EQ(found(verdict), "arena-bloat");
}

// Layout and chance make other allocators faster, too. Where the threads neither work nor wait inside malloc, it is not
// that.
TEST(Verdict, FasterElsewhereButMallocIsIdle_NotTheAllocator) {
  Attribution recorded;
  Made made = Made().takes(0, 1, 0.8).takes(1, 1, 0.8).takes(2, 1, 0.8).takes(3, 1, 0.5).takes(4, 1, 0.5).copies(1);
  EXPECT_EQ(found(made.verdict()), "mixed") << "without a recording the trials decide";
  EXPECT_EQ(found(made.verdict(&recorded)), "own-sharing");
  made = Made().takes(0, 1, 0.4).takes(3, 1, 0.26).copies(1);
  recorded.cpu_share = 0.5;
  made.busy(0, 0.6);
  EXPECT_FALSE(blames_allocator(made.verdict(&recorded).cause)) << "calls that cost no more than on one CPU";
  recorded.blocked_share = 0.1;
  EXPECT_EQ(found(made.verdict(&recorded)), "allocator-lock");
}

// A part that one thread does, full of mallocs. A malloc that shortens it on all CPUs does so on one as well, where it was
// not tried for want of time.
TEST(Verdict, FasterMallocWasNotTriedAlone_WhatItSavesIsNoScaling) {
  Attribution recorded;
  recorded.cpu_share = 0.6;
  Made made = Made().takes(0, 1, 0.6).takes(3, 0.9, 0.54).takes_on_all(4, 0.45).copies(1);
  for (std::size_t v : {0, 3, 4}) made.busy(v, 0.45);
  EXPECT_EQ(found(made.verdict(&recorded)), "serial");
  recorded.blocked_share = 0.1;
  EXPECT_EQ(found(made.verdict(&recorded)), "serial") << "also where threads are asleep in malloc";
}

// Two blocks of malloc's on one line, or data of the program's own: only padding tells.
TEST(Verdict, ContendedLinesAndPaddingWasNotTried_Undecided) {
  Made made = Made().takes(0, 1, 0.9).takes(3, 1, 0.9).copies(1);
  made.experiment_.code = seen(0, 0.6);
  EXPECT_EQ(found(made.verdict()), "undecided");
  EXPECT_EQ(made.verdict().doubt, Doubt::kNoPadding);
  made.takes_on_all(2, 0.9);
  EXPECT_EQ(found(made.verdict()), "own-sharing");
  made.experiment_.variants.erase(made.experiment_.variants.begin() + 2);
  made.experiment_.cells.clear();
  made.takes(0, 1, 0.9).takes(2, 1, 0.9).copies(1);
  EXPECT_EQ(found(made.verdict()), "own-sharing") << "padding was not wanted";
}

// Two threads that hand each other every block: another allocator needs less memory and is six times as fast. What is
// fetched from the kernel once is not what takes that time.
TEST(Verdict, LessMemoryAndSixTimesAsFast_NotMemoryAlone) {
  Attribution recorded;
  recorded.cpu_share = 0.6;
  recorded.remote_share = 1;
  Made made = Made().takes(0, 1, 1.2).takes(1, 1, 1.2).takes(3, 1, 0.26).takes(4, 0.9, 0.2).copies(1);
  made.trials(0, [](Trial& trial) { trial.page_faults = 30'000, trial.system_s = 0.2, trial.peak_rss_bytes *= 4; });
  EXPECT_EQ(found(made.verdict(&recorded)), "remote-frees");
}

// Padding, fewer arenas and other allocators ask different things: one answer to all is that the first trials were slow.
TEST(Verdict, EveryTreatmentHelpsAlike_Undecided) {
  const Verdict verdict = Made().takes(0, 1, 0.8).treated(1, 0.26).copies(1).verdict();
  EXPECT_EQ(found(verdict), "undecided");
  EXPECT_EQ(verdict.doubt, Doubt::kContradiction);
  EXPECT_EQ(verdict.missing, Fact::kAlikeGains);
}

// The demo's example beside compilers: threads that wanted CPUs that others had are not idle.
TEST(Verdict, OthersTookTheCpus_NotIdleness) {
  Attribution recorded;
  recorded.cpu_share = 0.66;
  recorded.blocked_share = 0.1;
  Made made = Made().takes(0, 1, 1.2).treated(1, 0.5).takes(2, 1, 1.2).copies(1);
  for (Cell& cell : made.experiment_.cells) {
    for (Trial& trial : cell.trials) {
      trial.taken_s = trial.stolen_s = trial.wall_s * cell.setting.cpus;
      trial.wall_s *= 2;
    }
  }
  const Verdict verdict = made.verdict(&recorded);
  EXPECT_TRUE(found(verdict) == "allocator-lock" || found(verdict) == "undecided") << found(verdict);
  EXPECT_TRUE(verdict.noisy);
  EXPECT_NEAR(verdict.disturbance, 0.5, 0.01);
}

// CPUs that are threads of one core at times: copies need twice the CPU time in one trial and not in the next.
TEST(Verdict, CopiesDifferBetweenTrials_NotSure) {
  const auto with_slow_copies = [](std::size_t slow) {
    Made made = Made().takes(0, 1, 0.4).treated(1, 0.4).copies(1);
    Cell& copies = made.experiment_.cells.back();
    for (std::size_t i = 0; i < slow; ++i) copies.trials[i].wall_s *= 1.8, copies.trials[i].user_s *= 1.8;
    return made.verdict();
  };
  EXPECT_EQ(found(with_slow_copies(0)), "own-sharing");
  EXPECT_EQ(found(with_slow_copies(5)), "memory-bandwidth");
  for (const std::size_t slow : {2U, 3U}) {
    const Verdict verdict = with_slow_copies(slow);
    EXPECT_EQ(found(verdict), "undecided") << slow;
    EXPECT_EQ(verdict.doubt, Doubt::kChance);
    EXPECT_NE(verdict.suspected, Cause::kUndecided);
  }
}

TEST(Verdict, HalfAndHalf_MixedWithItsShares) {
  // Another allocator saves 0.375 s of the 0.75 s that are lost.
  Attribution recorded;
  recorded.cpu_share = recorded.blocked_share = 0.3;
  recorded.lock_wait_share = 0.4;
  const Verdict verdict = Made().takes(0, 1, 1).takes(3, 1, 0.625).copies(1).verdict(&recorded);
  EXPECT_EQ(found(verdict), "mixed");
  EXPECT_NEAR(verdict.allocator_share.value, 0.5, 0.05);
  ASSERT_EQ(verdict.parts.size(), 2U);
  for (const Part& part : verdict.parts) {
    EXPECT_NEAR(part.share.value, 0.5, 0.05);
    EXPECT_LT(part.share.low, part.share.value);
    EXPECT_GT(part.share.high, part.share.value);
    EXPECT_LT(part.share.high - part.share.low, 0.2);
  }
}

TEST(Verdict, AFixThatFails_IsNoFix) {
  Made made;
  made.takes(0, 1, 0.8).takes(3, 1, 0.3).copies(1);
  for (Cell& cell : made.experiment_.cells)
    if (cell.variant == 3) cell.failure = "exit code 1";
  const Verdict verdict = made.verdict();
  EXPECT_FALSE(verdict.best_fix);
  EXPECT_EQ(verdict.allocator_share.value, 0);
  ASSERT_EQ(verdict.fixes.size(), 1U);
  EXPECT_TRUE(verdict.fixes[0].failed);
}

TEST(Verdict, EveryThreadBringsItsWork_TimeThatStaysIsScaling) {
  Made made;
  made.takes(0, 1, 1.03).treated(1, 1.03).copies(1).experiment_.work_grows = true;
  EXPECT_EQ(found(made.verdict()), "none");
  EXPECT_NEAR(made.verdict().speedup.value, 4 / 1.03, 0.1);
  Made worse;
  worse.takes(0, 1, 3).takes(3, 1, 1.02).copies(1).experiment_.work_grows = true;
  EXPECT_EQ(found(worse.verdict()), "allocator-lock");
}

// However noisy the machine, and however few the trials: no difference is no verdict against the allocator.
TEST(Verdict, NoiseAlone_SeldomBlamesTheAllocator) {
  for (const unsigned trials : {1U, 3U, 5U, 9U}) {
    for (const double spread : {0.02, 0.1}) {
      unsigned wrong = 0;
      for (std::uint64_t seed = 0; seed < 50; ++seed) {
        const Verdict verdict = Made(spread, trials, seed).takes(0, 1, 0.6).treated(1, 0.6).copies(1).verdict();
        wrong += blames_allocator(verdict.cause);
      }
      EXPECT_LE(wrong, trials == 1 && spread > 0.05 ? 7U : 2U) << trials << " trials that differ by " << spread;
    }
  }
}

// A program that spends a known share of its time in malloc and free: a million calls of 50 ns in a second are 5%.
TEST(Bound, KnownShareInMalloc_NoAllocatorDoesMore) {
  for (const double share : {0.0, 0.02, 0.05, 0.3, 0.6}) {
    Attribution recorded;
    recorded.allocating.calls = recorded.freeing.calls = std::max(1.0, share / 50e-9 / 2);
    recorded.allocating.cpu_s = recorded.freeing.cpu_s = share / 2;
    recorded.cpu_share = share / kCpus;
    Made made = Made(0.003).takes(0, 4, 1).takes(3, 4, 1).copies(1);
    for (const double delay : {30e-9, 90e-9}) {
      Delayed& delayed = made.experiment_.delayed.emplace_back(Delayed{.delay_s = delay, .trials = {}});
      for (const Trial& trial : made.experiment_.cells[1].trials) {
        delayed.trials.push_back(trial);
        delayed.trials.back().wall_s += share / 50e-9 * delay;
      }
    }
    const auto most = made.verdict(&recorded).most_gain;
    if (share > 0.5) {
      EXPECT_FALSE(most && most->high < 1 / (1 - share)) << "malloc is most of it";
      continue;
    }
    ASSERT_TRUE(most) << share;
    EXPECT_NEAR(most->value, 1 / (1 - share), 0.02 + 0.1 * share) << share;
    EXPECT_GE(most->high, 1 / (1 - share)) << "a bound, however the trials differ: " << share;
    EXPECT_LE(most->high, 1.05 + 4 * share) << "and one that says something: " << share;
  }
}

// Others had half of the CPU while the program ran as it is, and none of it while its calls were delayed: what the delay
// costs is the same, and so is the bound. The other way round, too.
TEST(Bound, OthersTookTime_DoesNotChangeIt) {
  Attribution recorded;
  recorded.allocating.calls = recorded.freeing.calls = 1e6;
  recorded.allocating.cpu_s = recorded.freeing.cpu_s = 0.1;
  recorded.cpu_share = 0.2 / kCpus;
  const auto most_with = [&](bool as_it_is, bool delayed) {
    Made made = Made(0.003).takes(0, 4, 1).takes(3, 4, 1).copies(1);
    auto& trials = made.experiment_.cells[1].trials;
    made.experiment_.delayed = {{.delay_s = 90e-9, .trials = trials}};
    for (Trial& trial : made.experiment_.delayed[0].trials) trial.wall_s += 0.18, trial.user_s += 0.18;
    const auto disturb = [](Trial& trial) {
      trial.taken_s = trial.cpu_s();
      trial.wall_s *= 2;
    };
    if (as_it_is) std::ranges::for_each(trials, disturb);
    if (delayed) std::ranges::for_each(made.experiment_.delayed[0].trials, disturb);
    return made.verdict(&recorded).most_gain;
  };
  const auto quiet = most_with(false, false), before = most_with(true, false), after = most_with(false, true);
  ASSERT_TRUE(quiet);
  EXPECT_NEAR(quiet->value, 1.25, 0.01);
  for (const auto& most : {before, after}) {
    if (!most) continue;  // too uncertain to say
    EXPECT_NEAR(most->value, quiet->value, 0.1);
    EXPECT_GE(most->high, quiet->value) << "less would be wrong";
  }
}

// Each of several looks at the trials may find by chance that a treatment helps: each needs more for it than one alone.
TEST(Verdict, ManyLooks_ShareOneError) {
  unsigned at_once = 0, at_one_of_six = 0;
  for (unsigned step = 0; step < 60; ++step) {
    Made made = Made(0.03, 3).takes(0, 1, 0.6).takes(3, 1, 0.6 - 0.0025 * step).copies(1);
    at_once += made.verdict().fixes[0].helps;
    made.experiment_.looks = 6;
    at_one_of_six += made.verdict().fixes[0].helps;
  }
  EXPECT_LT(at_one_of_six, at_once);
  EXPECT_GT(at_one_of_six, at_once / 2) << "what is clear stays so";
}

TEST(Scalability, PointsOfTheLaw_FoundAgain) {
  const Scalability truth{.contention = 0.1, .coherency = 0.02};
  std::vector<Speed> speeds;
  for (const double n : {1.0, 2.0, 4.0, 8.0, 16.0}) speeds.push_back({n, speed_at(truth, n)});
  const Scalability law = fit(speeds);
  EXPECT_NEAR(law.contention, 0.1, 1e-9);
  EXPECT_NEAR(law.coherency, 0.02, 1e-9);
  EXPECT_LT(law.worst_error, 1e-9);
  EXPECT_TRUE(law.has_coherency);
}

}  // namespace
}  // namespace freehold::doctor
