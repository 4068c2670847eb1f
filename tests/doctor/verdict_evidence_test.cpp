// SPDX-License-Identifier: MIT
// Evidence that a verdict may rest on: a treatment that has trials on one CPU and on all, counts rather than times, and
// advice that keeps within the bound.
#include <gtest/gtest.h>

#include "tests/doctor/made_experiment.hpp"

namespace freehold::doctor {
namespace {

void add_delays(Made& made, double calls, const Cell& to) {
  for (const double delay : {30e-9, 90e-9}) {
    Delayed& delayed = made.experiment_.delayed.emplace_back(Delayed{.delay_s = delay, .trials = to.trials});
    for (Trial& trial : delayed.trials) trial.wall_s += calls * delay;
  }
}

// A serial part full of mallocs beside atomics: jemalloc shortens the serial part, which on one CPU was not tried.
TEST(Evidence, TreatmentWithoutItsOwnTimeAlone_DecidesNothing) {
  Attribution recorded;
  recorded.cpu_share = 0.5;
  recorded.blocked_share = 0.02;
  Made made = Made().takes(0, 1, 0.6).takes(2, 1, 0.6).takes(3, 1, 0.6).takes_on_all(4, 0.3).copies(1);
  const Verdict verdict = made.verdict(&recorded);
  EXPECT_FALSE(blames_allocator(verdict.cause)) << found(verdict);
  EXPECT_EQ(verdict.allocator_share.value, 0);
  made = Made().takes(0, 1, 0.6).takes(3, 1, 0.6).takes_on_all(2, 0.26).copies(1);
  EXPECT_NE(found(made.verdict(&recorded)), "allocator-false-sharing") << "padding needs its own time alone, too";
}

TEST(Evidence, FaultsThatTheProgramDoesNotMap_NotItsOwn) {
  Attribution recorded;
  recorded.cpu_share = 0.04;
  Made made;
  made.takes(0, 1, 0.9).treated(1, 0.9).copies(1);
  for (std::size_t v = 0; v < made.experiment_.variants.size(); ++v)
    made.trials(v, [](Trial& trial) { trial.system_s = trial.user_s, trial.page_faults = 100'000; });
  EXPECT_EQ(found(made.verdict(&recorded)), "undecided") << "malloc maps it, whichever malloc it is";
  recorded.mapped_bytes = 1e5 * 4096;
  EXPECT_EQ(found(made.verdict(&recorded)), "own-page-faults");
}

// With its thresholds raised glibc keeps what it would give back: the faults go, though Freehold has as many.
TEST(Evidence, FaultsGoWithGlibcsThresholds_PageFaults) {
  Attribution recorded;
  recorded.cpu_share = 0.04;
  Made made;
  made.experiment_.variants.push_back({Treatment::kHighThresholds, "glibc, high thresholds", {}});
  made.takes(0, 4, 3.6).takes(2, 4, 3.6).takes(3, 4, 3.6).takes(5, 0.4, 0.11).copies(4);
  for (std::size_t v = 0; v < 5; ++v)
    made.trials(v, [](Trial& trial) { trial.system_s = 3 * trial.user_s, trial.page_faults = 400'000; });
  EXPECT_EQ(found(made.verdict(&recorded)), "page-faults");
}

// Threads count in one line what they allocate. Freehold is faster, so that they come back to the line less often while it
// is elsewhere; the time is lost where the program counts.
TEST(Evidence, AnotherAllocatorHealsWhatGrowsOutsideMalloc_OwnSharing) {
  Attribution recorded;
  recorded.cpu_share = 0.7;
  Made made = Made().takes(0, 1, 0.5).takes(1, 1, 0.5).takes(2, 1, 0.52).takes(3, 1, 0.27).takes(4, 1, 0.4).copies(1);
  EXPECT_EQ(found(made.verdict(&recorded)), "allocator-lock") << "the trials alone";
  Made half = Made().takes(0, 1, 0.5).takes(1, 1, 0.5).takes(2, 1, 0.52).takes(3, 1, 0.4).takes(4, 1, 0.4).copies(1);
  EXPECT_EQ(found(half.verdict(&recorded)), "own-sharing") << "a part of it, and nothing that was seen says why";
  made.experiment_.code = {.known = true, .work_known = true, .slowed = 0.34, .allocator = 0.07};
  EXPECT_EQ(found(made.verdict(&recorded)), "own-sharing");
  made.experiment_.code.allocator = 0.3;
  EXPECT_EQ(found(made.verdict(&recorded)), "allocator-lock") << "half of it is malloc's";
  made.experiment_.code.allocator = 0.07;
  made.takes(2, 1, 0.26);
  made.experiment_.cells.erase(made.experiment_.cells.begin() + 4, made.experiment_.cells.begin() + 6);
  EXPECT_NE(found(made.verdict(&recorded)), "own-sharing") << "where blocks lie may be why";
}

// The C library's locks sleep seldom and cost the line of the lock. Its own are malloc's only where malloc is used.
TEST(Evidence, TimeGrowsWhereLocksAreTaken_OwnLock) {
  Attribution recorded;
  Made made = Made().takes(0, 1, 0.8).treated(1, 0.8).copies(1);
  made.experiment_.code = {.known = true, .work_known = true, .contended = 0.05, .slowed = 0.3};
  EXPECT_EQ(found(made.verdict(&recorded)), "own-sharing");
  made.experiment_.code.locking = 0.3;
  EXPECT_EQ(found(made.verdict(&recorded)), "own-lock");
  made.experiment_.code.locking = 0.05;
  EXPECT_EQ(found(made.verdict(&recorded)), "own-sharing") << "a lock that is seldom taken";
  made.experiment_.code.private_locking = made.experiment_.code.allocator = 0.3;
  EXPECT_EQ(found(made.verdict(&recorded)), "own-lock");
  recorded.cpu_share = 0.2;
  EXPECT_EQ(found(made.verdict(&recorded)), "own-sharing") << "it may be malloc's lock";
  made.experiment_.code = {.known = true, .work_known = true, .spinning = 0.32, .contended = 0.38};
  EXPECT_EQ(found(made.verdict(&recorded)), "own-lock") << "a lock by test-and-set, which yields between two attempts";
  made.experiment_.code.spinning = 0.1;
  EXPECT_EQ(found(made.verdict(&recorded)), "own-sharing");
}

// Trials that differ leave open whether it scales. Less than half of the time is left without malloc's faults, and less than
// that may be lost in scaling.
TEST(Evidence, FaultsTakeMoreThanMayBeLost_PageFaultsWhetherOrNotItScales) {
  const auto with_gain = [](double gain) {
    Made made(0.01, 4);
    made.experiment_.variants.push_back({Treatment::kHighThresholds, "glibc, high thresholds", {}});
    made.takes(0, 4, 1.05).takes(3, 4, 1.05).takes(5, 4 / gain, 1.05 / gain).copies(4);
    for (const std::size_t v : {0, 3, 5})
      made.trials(v, [n = 0](Trial& trial) mutable {
        if (++n % 2 == 0) trial.wall_s *= 1.3, trial.user_s *= 1.3;
      });
    for (const std::size_t v : {0, 3})
      made.trials(v, [](Trial& trial) { trial.page_faults = 400'000, trial.system_s = trial.user_s *= 0.5; });
    return made;
  };
  const Verdict verdict = with_gain(4).verdict();
  EXPECT_LT(verdict.lost.low, 0.12);
  EXPECT_GT(verdict.lost.high, 0.24);
  EXPECT_EQ(found(verdict), "page-faults");
  EXPECT_EQ(found(with_gain(1.2).verdict()), "undecided");
  EXPECT_EQ(found(with_gain(8).beside_others(0.3).verdict()), "page-faults") << "faults are counted";
}

// It loses scaling as well, a fifth of the time; twice as fast without malloc's faults, on one CPU as on all.
TEST(Evidence, FaultsTakeMoreThanIsLost_PageFaultsThoughItLoses) {
  const auto with_gain = [](double gain) {
    Made made = Made().takes(0, 1, 0.31).takes(2, 1, 0.31).takes(3, 1 / gain, 0.31 / gain).copies(1.2);
    for (const std::size_t v : {0, 2})
      made.trials(v, [](Trial& trial) { trial.page_faults = 400'000, trial.system_s = trial.user_s *= 0.5; });
    return made;
  };
  const Verdict verdict = with_gain(2).verdict();
  EXPECT_GT(verdict.lost.low, 0.12);
  EXPECT_EQ(found(verdict), "page-faults");
  EXPECT_FALSE(explains_loss(verdict)) << "copies lose as much: it is the machine's";
  EXPECT_FALSE(blames_allocator(with_gain(1.1).verdict().cause));
}

// All memory by realloc: Freehold has as many faults, and moves less. Nine tenths of the time are the kernel's, in malloc.
TEST(Evidence, KernelWorksForMallocAndFaultsStay_NotItsLock) {
  Attribution recorded;
  recorded.cpu_share = 0.8;
  recorded.blocked_share = 0.02;
  Made made;
  made.experiment_.variants.push_back({Treatment::kHighThresholds, "glibc, high thresholds", {}});
  made.takes(0, 4, 3.6).takes(2, 4, 3.6).takes(3, 1.6, 0.5).copies(4);
  const auto fault = [](std::uint64_t faults) {
    return [faults](Trial& trial) { trial.user_s -= trial.system_s = 0.95 * trial.user_s, trial.page_faults = faults; };
  };
  for (const std::size_t v : {0, 2, 3}) made.trials(v, fault(400'000));
  const Verdict verdict = made.verdict(&recorded);
  EXPECT_EQ(found(verdict), "undecided") << "nothing tried has fewer";
  EXPECT_EQ(name_of(verdict.suspected), "page-faults");
  made.takes(5, 0.4, 0.11).trials(5, fault(400));
  EXPECT_EQ(found(made.verdict(&recorded)), "page-faults");
}

// One slow trial made a program seem to lose a fifth. No thread sleeps in malloc, and samples see no time that grows there.
TEST(Evidence, SamplesSeeNothingGrowInMalloc_NotItsLock) {
  Attribution recorded;
  recorded.cpu_share = 0.5;
  Made made = Made().takes(0, 1, 0.33).takes(1, 1, 0.33).takes(2, 1, 0.33).takes(3, 0.7, 0.175).copies(1);
  EXPECT_EQ(found(made.verdict(&recorded)), "allocator-lock") << "the trials alone";
  made.experiment_.code = {.known = true, .work_known = true, .same = 0.92, .in_malloc = 0.4};
  EXPECT_FALSE(blames_allocator(made.verdict(&recorded).cause));
  made.experiment_.code.allocator = 0.2;
  EXPECT_EQ(found(made.verdict(&recorded)), "allocator-lock");
}

// Half of the loss goes with Freehold; that copies lose the other half may be chance.
// Half of the loss goes with another allocator. Without copies it is open why the rest is lost.
TEST(Evidence, OtherPartIsNotKnown_NotMixed) {
  Attribution recorded;
  recorded.cpu_share = recorded.blocked_share = 0.3;
  Made made = Made().takes(0, 1, 1).takes(3, 1, 0.625);
  EXPECT_EQ(found(made.verdict(&recorded)), "allocator-lock");
  EXPECT_EQ(found(made.copies(1).verdict(&recorded)), "mixed");
}
TEST(Evidence, OtherPartMayBeNothing_NotMixed) {
  Attribution recorded;
  recorded.cpu_share = 0.5;
  recorded.blocked_share = 0.2;
  Made made = Made().takes(0, 1, 0.6).takes(1, 1, 0.6).takes(2, 1, 0.6).takes(3, 1, 0.4).copies(1.7);
  EXPECT_EQ(found(made.verdict(&recorded)), "mixed");
  std::vector<Trial>& copies = made.experiment_.cells.back().trials;
  for (std::size_t i = 0; i < copies.size(); ++i) copies[i].user_s *= i % 2 == 0 ? 1.3 : 0.55;
  EXPECT_EQ(found(made.verdict(&recorded)), "allocator-lock");
}

// Four fifths of the time are malloc's on one CPU as on all: one that is faster is no riddle.
TEST(Evidence, FarFasterAndMallocsTimeWasSeen_None) {
  Attribution recorded;
  recorded.cpu_share = 1;
  Made made = Made().takes(0, 1, 0.25).takes(1, 1, 0.25).takes(2, 1, 0.25).takes(3, 0.35, 0.09).copies(1);
  EXPECT_EQ(found(made.verdict(&recorded)), "undecided");
  made.experiment_.code = {.known = true, .work_known = true, .same = 0.9, .in_malloc = 0.81};
  EXPECT_EQ(found(made.verdict(&recorded)), "none");
  made.experiment_.code.in_malloc = 0.3;
  EXPECT_EQ(found(made.verdict(&recorded)), "undecided") << "less than it saves";
}

// Processes that share nothing lose a seventh as well: it scales as far as this machine does.
TEST(Evidence, MachineExplainsALittleLoss_None) {
  const Attribution recorded;
  EXPECT_EQ(found(Made().takes(0, 1, 0.29).treated(1, 0.29).copies(1.3).verdict(&recorded)), "none");
  EXPECT_EQ(found(Made().takes(0, 1, 0.4).treated(1, 0.4).copies(1.6).verdict(&recorded)), "memory-bandwidth");
}

// One thread of four has all the work that a thread alone has, the others less and less: CPUs idle in the end.
TEST(Evidence, ThreadsBringWorkOfTheirOwnButLess_Serial) {
  const Attribution recorded;
  const auto with_work = [&](double busy) {
    Made made = Made().takes(0, 1, 1).treated(1, 1).copies(1);
    for (std::size_t v = 0; v < made.experiment_.variants.size(); ++v) made.busy(v, busy);
    made.experiment_.work_grows = true;
    return made.verdict(&recorded);
  };
  EXPECT_EQ(found(with_work(1)), "none");
  EXPECT_EQ(found(with_work(0.625)), "serial");
  EXPECT_NEAR(with_work(0.625).lost.value, 0.375, 0.03);
  EXPECT_NEAR(with_work(0.625).speedup.value, 2.5, 0.1);
}

// The first of four threads does the work of all, the second three quarters of it, and so on. Samples cannot tell that from
// lines that they share; all of them on one CPU can.
TEST(Evidence, ThreadsRepeatWorkOfOthers_Serial) {
  const Attribution recorded;
  const auto with = [&](std::optional<double> crowded_s) {
    Made made = Made().takes(0, 1, 1).treated(1, 1).copies(1);
    for (std::size_t v = 0; v < made.experiment_.variants.size(); ++v) made.busy(v, 0.625);
    made.experiment_.code = {.known = true, .work_known = true, .same = 0.7, .grown = 0.3, .slowed = 0.4};
    if (crowded_s) made.experiment_.crowded.emplace_back().user_s = *crowded_s;
    return made.verdict(&recorded);
  };
  EXPECT_EQ(found(with(std::nullopt)), "own-sharing");
  EXPECT_EQ(found(with(2.5)), "serial");
  EXPECT_EQ(found(with(1)), "own-sharing") << "the lines of one CPU cost nothing";
  EXPECT_EQ(found(with(1.8)), "own-sharing") << "some of both";
  EXPECT_EQ(found(with(5)), "own-sharing") << "they spin for a thread that does not run";
}

// The threads keep all CPUs busy, a third of the time in the kernel, which one thread alone does not need.
TEST(Evidence, KernelsTimeComesWithTheThreads_NoWorkOfTheirs) {
  Attribution recorded;
  recorded.lock_wait_share = 0.2;
  Made made = Made().takes(0, 1, 1).treated(1, 1).copies(1);
  for (std::size_t v = 0; v < made.experiment_.variants.size(); ++v)
    made.trials(v, [](Trial& trial) {
      if (trial.cpu_s() > 2) trial.user_s -= trial.system_s = trial.user_s / 3;
    });
  for (const bool grows : {false, true}) {
    made.experiment_.work_grows = grows;
    EXPECT_EQ(found(made.verdict(&recorded)), "own-lock");
  }
  EXPECT_NEAR(made.verdict(&recorded).lost.value, 0.33, 0.03);
  made.trials(0, [](Trial& trial) {
    if (trial.cpu_s() < 2) trial.user_s -= trial.system_s = trial.user_s / 3;
  });
  EXPECT_EQ(found(made.verdict(&recorded)), "none") << "each thread needs it";
}

// Without samples, CPU time that grows by less than the threads is shared lines, or threads of which some have less work.
TEST(Evidence, OnlyCpuTimeSaysThatLinesAreShared_UndecidedWhereItMatters) {
  const Attribution recorded;
  Made made = Made().takes(0, 1, 1).treated(1, 1).copies(1);
  for (std::size_t v = 0; v < made.experiment_.variants.size(); ++v) made.busy(v, 0.65);
  EXPECT_EQ(found(made.verdict(&recorded)), "own-sharing");
  made.experiment_.work_is_guessed = true;
  EXPECT_EQ(found(made.verdict(&recorded)), "undecided");
}

// Two threads that pass each other every block: most memory lies in arenas, and that is a consequence.
TEST(Evidence, EveryBlockFreedByTheOther_RemoteFreesBeforeArenas) {
  Attribution recorded;
  recorded.cpu_share = 0.6;
  recorded.remote_share = 1;
  Made made = Made().takes(0, 1, 1.2).takes(1, 1, 1.2).takes(2, 1, 1.2).takes(3, 1, 0.26).takes(4, 0.9, 0.2).copies(1);
  for (const std::size_t v : {0, 1, 2})
    made.trials(
        v, [](Trial& trial) { trial.page_faults = 60'000, trial.system_s = 0.9 * trial.user_s, trial.peak_rss_bytes *= 4; });
  EXPECT_EQ(found(made.verdict(&recorded)), "remote-frees");
}

// 110 MiB, 30 with one arena, 56 under Freehold, and the faults go with the arenas.
TEST(Evidence, FaultsGoWithFewerArenas_ArenaBloat) {
  Attribution recorded;
  recorded.cpu_share = 0.2;
  Made made = Made().takes(0, 1, 0.4).takes(1, 0.9, 0.26).takes(2, 1, 0.4).takes(3, 0.9, 0.28).copies(1);
  for (const std::size_t v : {0, 2})
    made.trials(v, [](Trial& trial) {
      trial.page_faults = 80'000, trial.system_s = trial.user_s, trial.peak_rss_bytes = 110 << 20;
    });
  made.trials(1, [](Trial& trial) { trial.page_faults = 8'000, trial.peak_rss_bytes = 30 << 20; });
  made.trials(3, [](Trial& trial) { trial.page_faults = 14'000, trial.peak_rss_bytes = 56 << 20; });
  EXPECT_EQ(found(made.verdict(&recorded)), "arena-bloat");
}

// A readers-writer lock, whose program as it is was slow in its trials: no allocator does that where malloc is idle.
TEST(Evidence, MallocIsIdle_NoAllocatorIsAdvised) {
  Attribution recorded;
  recorded.cpu_share = 0.004;
  recorded.allocating.calls = recorded.freeing.calls = 1000;
  Made made = Made().takes(0, 1, 0.9).treated(1, 0.3).copies(1);
  const Verdict verdict = made.verdict(&recorded);
  EXPECT_FALSE(verdict.best_fix);
  EXPECT_FALSE(blames_allocator(verdict.cause)) << found(verdict);
  made = Made().takes(0, 1, 0.9).takes(2, 1, 0.9).takes(3, 1, 0.3).copies(1);
  EXPECT_FALSE(made.verdict(&recorded).best_fix);
  made.experiment_.variants.push_back({Treatment::kHighThresholds, "glibc, high thresholds", {}});
  made.experiment_.variants.back().environment = {{"MALLOC_TRIM_THRESHOLD_", "1000000000"}};
  made.takes(5, 1, 0.3);
  EXPECT_FALSE(made.verdict(&recorded).best_fix) << "a setting of a malloc that is idle";
  recorded.lines_watched = 40'000;
  const double most = made.verdict(&recorded).most_gain.value().high;
  recorded.lines_shared = 1;
  EXPECT_FALSE(made.verdict(&recorded).best_fix) << "one line among many";
  EXPECT_EQ(made.verdict(&recorded).most_gain.value().high, most);
  recorded.lines_shared = 4'000;
  EXPECT_TRUE(made.verdict(&recorded).best_fix) << "where blocks lie matters as well";
}

// Under any cause: what helps alike to every question is a slow baseline, and nothing is advised.
TEST(Evidence, EveryTreatmentHelpsAlike_NothingIsAdvised) {
  Attribution recorded;
  recorded.cpu_share = 0.3;
  recorded.lock_wait_share = 0.6;
  const Verdict verdict = Made().takes(0, 1, 0.8).treated(1, 0.5).copies(1).busy(0, 0.4).verdict(&recorded);
  EXPECT_EQ(found(verdict), "undecided");
  EXPECT_FALSE(verdict.best_fix);
  for (const Fix& fix : verdict.fixes) EXPECT_FALSE(fix.helps);
}

// SQLite: 4% of the CPU time in malloc, trials that differ by some percent, and few of them.
TEST(Evidence, BoundIsThreeTimesTheShareAtMost) {
  for (const double share : {0.01, 0.02, 0.04, 0.1, 0.2}) {
    for (const double spread : {0.01, 0.05, 0.1}) {
      for (const bool has_delays : {true, false}) {
        Attribution recorded;
        recorded.cpu_share = share;
        recorded.allocating.calls = recorded.freeing.calls = share * 2 / 50e-9;
        recorded.allocating.cpu_s = recorded.freeing.cpu_s = share;
        Made made(spread, 2, 7);
        made.takes(0, 1, 0.5).takes(3, 1, 0.5).copies(1).busy(0, 0.5);  // two of the four CPUs are busy
        if (has_delays) add_delays(made, share * 2 / 50e-9 / 2, made.experiment_.cells[1]);
        const auto most = made.verdict(&recorded).most_gain;
        ASSERT_TRUE(most) << "a bound stands in each report: " << share << ", " << spread;
        EXPECT_GE(most->high, 1 / (1 - share)) << share;
        EXPECT_LE(1 - 1 / most->high, 3 * share + 0.005) << share << ", trials differ by " << spread;
      }
    }
  }
}

// Four fifths of its CPU time in malloc, and it sleeps for most of the time: no malloc shortens its sleep.
TEST(Evidence, ProgramThatSleeps_BoundLeavesTheSleep) {
  Attribution recorded;
  recorded.cpu_share = 0.8;
  recorded.allocating.calls = recorded.freeing.calls = 1e6;
  Made made = Made().takes(0, 1, 0.95).takes(3, 1, 0.95).copies(1);
  for (const std::size_t v : {0, 3})
    made.trials(v, [](Trial& trial) { trial.user_s = 0.1 * trial.wall_s, trial.system_s = 0; });
  const auto most = made.verdict(&recorded).most_gain;
  ASSERT_TRUE(most);
  EXPECT_GE(most->high, 1 / (1 - 0.08));
  EXPECT_LE(most->high, 1.2);
}

// Two fifths in malloc, and all CPUs busy: three fifths of the work remain, whatever malloc does.
TEST(Evidence, BoundLeavesTheWorkOutsideMalloc) {
  Attribution recorded;
  recorded.cpu_share = 0.4;
  recorded.allocating.calls = recorded.freeing.calls = 1e7;
  const auto most = Made().takes(0, 1, 0.25).takes(3, 1, 0.25).copies(1).verdict(&recorded).most_gain;
  ASSERT_TRUE(most);
  EXPECT_GE(most->high, 1 / 0.6);
  EXPECT_LE(most->high, 2.6);
  // Delays that take twice as long as they should look like calls that are waited for in turn.
  Made made = Made().takes(0, 1, 0.25).takes(3, 1, 0.25).copies(1);
  recorded.allocating.cpu_s = recorded.freeing.cpu_s = 0.2;
  add_delays(made, 4e7, made.experiment_.cells[1]);
  made.experiment_.code = {.known = true, .in_malloc = 0.4};
  EXPECT_LE(made.verdict(&recorded).most_gain.value().high, 2.6);
  made.experiment_.code.spinning = 0.3;
  EXPECT_GT(made.verdict(&recorded).most_gain.value().high, 3) << "what spins may wait for malloc";
}

TEST(Evidence, NothingRecorded_BoundOfTheSamples) {
  Made made = Made().takes(0, 1, 0.25).takes(3, 1, 0.25).copies(1);
  EXPECT_FALSE(made.verdict().most_gain) << "nothing says what malloc takes";
  for (const double share : {0.0, 0.04, 0.2}) {
    made.experiment_.code = {.known = true, .in_malloc = share, .in_malloc_error = 0.003};
    const auto most = made.verdict().most_gain;
    ASSERT_TRUE(most) << share;
    EXPECT_GE(most->high, 1 / (1 - share));
    EXPECT_LE(1 - 1 / most->high, 2 * share + 0.01) << share;
  }
  add_delays(made, 1e9, made.experiment_.cells[1]);
  EXPECT_LE(made.verdict().most_gain.value().high, 1.7) << "it is unknown what a call takes";
  made.experiment_.code.lock_sleepers = kCpus / 4.0;
  EXPECT_FALSE(made.verdict().most_gain) << "they may be malloc's locks";
}

// Few calls were timed: all of the time, or three fifths. Two thousand samples say two thirds.
TEST(Evidence, SamplesWithinTheRecordingsError_BoundOfTheSamples) {
  Attribution recorded;
  recorded.cpu_share = 1;
  recorded.cpu_share_error = 0.38;
  recorded.allocating.calls = recorded.freeing.calls = 1e7;
  Made made = Made().takes(0, 1, 0.25).takes(3, 1, 0.25).copies(1);
  const double apart = made.verdict(&recorded).most_gain.value().high;
  made.experiment_.code = {.known = true, .in_malloc = 0.65, .in_malloc_error = 0.01};
  const double together = made.verdict(&recorded).most_gain.value().high;
  EXPECT_GT(apart, 20);
  EXPECT_GE(together, 1 / (1 - 0.65));
  EXPECT_LE(together, 4);
  recorded.cpu_share_error = 0.01;
  EXPECT_EQ(made.verdict(&recorded).most_gain.value().high, apart) << "what they do not agree in is not known";
}

// A machine whose trials differ by a fifth: the threads of one run are as slow as each other, and idle a quarter all the
// same.
TEST(Evidence, TrialsDifferButIdleAlike_Serial) {
  const Attribution recorded;
  unsigned serial = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Made made = Made(0.2, 4, seed).takes(0, 1, 1).treated(1, 1).copies(1);
    for (std::size_t v = 0; v < made.experiment_.variants.size(); ++v) made.busy(v, 0.75);
    made.experiment_.work_grows = true;
    const Verdict verdict = made.verdict(&recorded);
    EXPECT_NEAR(verdict.lost.low, 0.25, 0.05) << seed;
    serial += verdict.cause == Cause::kSerial;
    EXPECT_TRUE(verdict.cause == Cause::kSerial || verdict.cause == Cause::kUndecided) << found(verdict);
  }
  EXPECT_GE(serial, 16U);
}

// One of all trials took eleven times as long as the others of its cell. Nothing else differs.
TEST(Evidence, OneTrialStoodStill_OthersTellAsMuch) {
  Made made(0.01, 2);
  made.takes(0, 1, 0.5).takes(2, 1, 0.5).takes(3, 1, 0.5).copies(1);
  for (Cell& cell : made.experiment_.cells)
    for (unsigned round = 0; round < 2; ++round) cell.trials[round].round = round;
  made.experiment_.cells[3].trials[1].wall_s *= 11;
  const Estimate lost = made.verdict().lost;
  EXPECT_LT(lost.high - lost.low, 0.1);
}

TEST(Evidence, AdviceKeepsWithinTheBound) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Attribution recorded;
    recorded.cpu_share = 0.05;
    recorded.allocating.calls = recorded.freeing.calls = 1e6;
    recorded.allocating.cpu_s = recorded.freeing.cpu_s = 0.025;
    Made made(0.1, 3, seed);
    made.takes(0, 1, 0.5).treated(0.97, 0.45).copies(1);
    add_delays(made, 1e6, made.experiment_.cells[1]);
    const Verdict verdict = made.verdict(&recorded);
    ASSERT_TRUE(verdict.most_gain);
    for (const Fix& fix : verdict.fixes) {
      if (!fix.helps) continue;
      EXPECT_LE(fix.gain.value, verdict.most_gain->high) << seed;
      EXPECT_LE(fix.gain.high, verdict.most_gain->high) << seed;
    }
  }
}

TEST(Evidence, WhatAVerdictRestsOn) {
  Made made = Made().takes(0, 1, 0.8).takes(1, 1, 0.9).takes(2, 1, 0.8).takes(3, 1, 0.25).copies(1);
  ASSERT_TRUE(made.verdict().rests_on);
  EXPECT_EQ(name_of(*made.verdict().rests_on), "time") << "nothing was recorded";
  Attribution recorded;
  recorded.cpu_share = 0.5;
  recorded.blocked_share = 0.2;
  ASSERT_TRUE(made.verdict(&recorded).rests_on);
  EXPECT_EQ(name_of(*made.verdict(&recorded).rests_on), "both");
  Made bloat =
      Made().takes(0, 1, 0.26).takes(1, 1, 0.26).copies(1).trials(1, [](Trial& trial) { trial.peak_rss_bytes /= 3; });
  ASSERT_EQ(found(bloat.verdict()), "arena-bloat");
  EXPECT_EQ(name_of(*bloat.verdict().rests_on), "counts");
  EXPECT_FALSE(Made().takes(0, 1, 0.8).treated(1, 0.26).copies(1).verdict().rests_on) << "undecided";
}

}  // namespace
}  // namespace freehold::doctor
