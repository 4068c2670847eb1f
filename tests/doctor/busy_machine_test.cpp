// SPDX-License-Identifier: MIT
// Beside other processes the doctor says only what they could not have made up.
#include <gtest/gtest.h>

#include "tests/doctor/made_experiment.hpp"

namespace freehold::doctor {
namespace {

// Beside other processes: what is said on a quiet machine, and what is said there.
std::string beside_others(Made made, double share, const Attribution* recorded) {
  const Verdict quiet = made.verdict(recorded);
  const Verdict busy = made.beside_others(share).verdict(recorded);
  return std::string(found(quiet)) + ", " + std::string(found(busy));
}

TEST(BusyMachine, CopiesNeedMore_NoRecordingNeeded) {
  Made made = Made().takes(0, 1, 0.75).treated(1, 0.75).copies(3);
  EXPECT_EQ(beside_others(made, 0.2, nullptr), "memory-bandwidth, memory-bandwidth");
}

// A malloc that takes no time can put blocks of two threads on one line all the same.
TEST(BusyMachine, PaddingMayHelp_NotOwnSharing) {
  Attribution recorded;
  Made made = Made().takes(0, 1, 0.8).treated(1, 0.8).copies(1);
  EXPECT_EQ(beside_others(made, 0.2, &recorded), "own-sharing, own-sharing");
  made.trials(2, [n = 0](Trial& trial) mutable {
    if (trial.cpu_s() > 2 && n++ % 2 == 0) trial.wall_s *= 0.3, trial.user_s *= 0.3;
  });
  EXPECT_EQ(beside_others(made, 0.2, &recorded), "own-sharing, undecided");
}

// The trials do not tell what padding saves where others had the CPUs. Blocks that share a line let no thread sleep in
// malloc.
TEST(BusyMachine, ThreadsAsleepInMalloc_ItsLockWhateverPaddingMightSave) {
  Attribution recorded;
  recorded.cpu_share = 0.9;
  Made made = Made().takes(0, 1, 0.9).takes(1, 1, 0.9).takes(2, 1, 0.9).takes(3, 1, 0.26).takes(4, 1, 0.26).copies(1);
  made.trials(2, [n = 0](Trial& trial) mutable {
    if (trial.cpu_s() > 2 && n++ % 2 == 0) trial.wall_s *= 0.3, trial.user_s *= 0.3;
  });
  recorded.blocked_share = 0.01;
  EXPECT_EQ(beside_others(made, 0.2, &recorded), "allocator-lock, undecided");
  recorded.blocked_share = 0.08;
  EXPECT_EQ(beside_others(made, 0.2, &recorded), "allocator-lock, allocator-lock");
}

// Others' turns on the CPU of a thread that holds a spin lock, or comes late to a barrier, let its fellows spin; no longer.
TEST(BusyMachine, Spins_UndecidedUnlessOthersTookTooLittleToBeWhy) {
  const auto told = [](double seconds, double taken) {
    Attribution recorded;
    Made made = Made().takes(0, 1, seconds).treated(1, seconds).copies(1);
    made.experiment_.code.known = true;
    made.experiment_.code.spinning = 0.6;
    return beside_others(made, taken, &recorded);
  };
  EXPECT_EQ(told(0.8, 0.3), "own-lock, undecided");
  EXPECT_EQ(told(1.6, 0.2), "own-lock, undecided");
  EXPECT_EQ(told(1.6, 0.09), "own-lock, own-lock");
}

TEST(BusyMachine, WaitsAreShortWhereTheTimeIs_OwnLock) {
  Attribution recorded;
  recorded.lock_wait_share = 0.7;
  Made made = Made().takes(0, 1, 1).treated(1, 0.99).copies(1);
  for (std::size_t v = 0; v < 5; ++v) made.busy(v, 0.3);
  EXPECT_EQ(beside_others(made, 0.3, &recorded), "own-lock, undecided") << "how long they wait was not seen";
  const auto wait = [](double count, double seconds) {
    WaitSite site;
    site.count = count;
    site.seconds = seconds;
    return site;
  };
  recorded.lock_waits = {wait(10'000, 2)};
  EXPECT_EQ(beside_others(made, 0.3, &recorded), "own-lock, own-lock");
  recorded.lock_waits = {wait(400, 2)};
  EXPECT_EQ(beside_others(made, 0.3, &recorded), "own-lock, undecided") << "5 ms each: the turn of another process";
  recorded.lock_waits = {wait(400, 2), wait(100'000, 0.1)};
  EXPECT_EQ(beside_others(made, 0.3, &recorded), "own-lock, undecided") << "many short waits elsewhere";
}

// Beside many others each ready thread gets a fifth of a CPU. Two of four threads sleep in a lock at any time, so that two
// get twice as much as the one thread of the other setting: the clock shows no loss, what was counted does.
TEST(BusyMachine, LockThatTheClockDoesNotShow_OwnLockByWhatWasCounted) {
  const auto told = [](bool is_ready_time_known) {
    Made made = Made().takes(0, 5, 1.25).treated(5, 1.25).copies(5);
    for (Cell& cell : made.experiment_.cells)
      for (Trial& trial : cell.trials) {
        const double width = cell.setting.cpus, ready = width > 1 ? width / 2 : 1;
        trial.user_s = ready * trial.wall_s / 5;
        trial.taken_s = trial.stolen_s = ready * trial.wall_s - trial.user_s;
        if (is_ready_time_known) trial.run_delay_s = trial.taken_s;
      }
    Attribution recorded;
    recorded.lock_wait_share = 0.5;
    WaitSite site;
    site.count = 100'000;
    site.seconds = 2;
    recorded.lock_waits = {site};
    return std::string(found(made.verdict(&recorded)));
  };
  EXPECT_EQ(told(true), "own-lock");
  EXPECT_EQ(told(false), "undecided");
}

TEST(BusyMachine, CpusIdleForLong_Serial) {
  Attribution recorded;
  Made made = Made().takes(0, 1, 0.8).treated(1, 0.8).copies(1);
  for (std::size_t v = 0; v < 5; ++v) made.busy(v, 0.32);
  EXPECT_EQ(beside_others(made, 0.3, &recorded), "serial, serial");
  recorded.lock_wait_share = 0.2;
  EXPECT_EQ(beside_others(made, 0.3, &recorded), "serial, undecided") << "locks explain a part of it";
  recorded.lock_wait_share = 0;
  made.trials(0, [](Trial& trial) { trial.voluntary_switches = 20'000; });
  EXPECT_EQ(beside_others(made, 0.3, &recorded), "serial, undecided") << "many short sleeps, for unknown reasons";
}

// Threads that others crowd onto one CPU never meet, so that a lock or a shared line would cost nothing.
TEST(BusyMachine, ThreadsOnOneCpu_NotNone) {
  const auto told = [](std::optional<double> apart, double taken) {
    const Attribution recorded;
    Made made = Made(0.002).takes(0, 1, 0.25).treated(1, 0.25).copies(1);
    made.trials(0, [=](Trial& trial) { trial.apart_share = apart; });
    return beside_others(made, taken, &recorded);
  };
  EXPECT_EQ(told(1, 0.8), "none, none");
  EXPECT_EQ(told(0.02, 0.8), "none, undecided");
  EXPECT_EQ(told({}, 0.8), "none, undecided");
  EXPECT_EQ(told({}, 0.2), "none, none") << "by the CPU time that they had they met";
}

// A little more CPU time and a little idleness: with all CPUs they would be much. A trial without idleness excuses nothing.
TEST(BusyMachine, IdleInMostTrials_NotNone) {
  Attribution recorded;
  Made made = Made(0.002).takes(0, 1, 0.25).treated(1, 0.25).copies(1);
  made.trials(0, [](Trial& trial) { trial.apart_share = 1; });
  EXPECT_EQ(beside_others(made, 0.65, &recorded), "none, none");
  for (std::size_t v = 0; v < 5; ++v)
    made.trials(v, [n = 0](Trial& trial) mutable {
      if (trial.wall_s > 0.5) return;
      trial.user_s *= 1.1;
      trial.wall_s *= n++ % 5 < 2 ? 1.2 : 1.1;
    });
  EXPECT_EQ(beside_others(made, 0.65, &recorded), "none, undecided");
}

// Others take nothing of a run of milliseconds, or a step of the kernel's clock: no treatment is faster for that.
TEST(BusyMachine, RunsShorterThanTheClocksStep_NoTreatmentHelps) {
  constexpr int kTrials = 15;
  const Attribution recorded;
  Made made(0.01, kTrials);
  made.takes(0, 0.006, 0.006).treated(0.006, 0.006).copies(0.006);
  for (std::size_t v = 0; v < 5; ++v)
    made.trials(v, [v, n = 0](Trial& trial) mutable {
      trial.user_s = 0.003;
      if (n >= kTrials && n % 5 < (v == 1 || v == 2 ? 4 : 2)) trial.taken_s = trial.stolen_s = kTick_s;
      ++n;
    });
  EXPECT_EQ(found(made.verdict(&recorded)), "serial");
}

// Others leave its threads less than one CPU: they take locks, and write lines, one after the other.
TEST(BusyMachine, ThreadsNeverMeet_NotNone) {
  Attribution recorded;
  const Made made = Made().takes(0, 1, 0.25).treated(1, 0.25).copies(1);
  for (const double in_malloc : {0.2, 0.01}) {
    recorded.cpu_share = in_malloc;
    EXPECT_EQ(beside_others(made, 0.5, &recorded), "none, none");
    EXPECT_EQ(beside_others(made, 0.8, &recorded), "none, undecided");
  }
}

// Others leave it less than its quota: that it would be throttled without them does not show.
TEST(BusyMachine, QuotaOfFewerCpus_NotNone) {
  const Attribution recorded;
  Made made;
  made.takes(0, 1, 0.25).treated(1, 0.25).beside_others(0.6);
  ASSERT_EQ(found(made.verdict(&recorded)), "none");
  made.experiment_.quota_cpus = 2;
  EXPECT_EQ(found(made.verdict(&recorded)), "undecided");
  made.experiment_.quota_cpus = kCpus;
  EXPECT_EQ(found(made.verdict(&recorded)), "none");
}

// Fewer arenas do with a third of the memory; whether much time is lost beside, these trials do not tell.
TEST(BusyMachine, MuchTimeMayBeLost_NotMemoryAlone) {
  Attribution recorded;
  Made made = Made().takes(0, 1, 0.29).treated(1, 0.29).copies(1);
  for (const std::size_t v : {1, 3}) made.trials(v, [](Trial& trial) { trial.peak_rss_bytes /= 3; });
  EXPECT_EQ(beside_others(made, 0.2, &recorded), "arena-bloat, arena-bloat");
  made.trials(0, [n = 0](Trial& trial) mutable {
    if (trial.wall_s < 0.5 && n++ % 5 >= 3) trial.wall_s *= 2.5, trial.user_s *= 2.5;
  });
  EXPECT_EQ(beside_others(made, 0.2, &recorded), "arena-bloat, undecided");
}

// Only the trials that could tell against the allocator were disturbed.
TEST(BusyMachine, OthersTookTheCpusOfPaddedTrials_NotOwnSharing) {
  Attribution recorded;
  Made made = Made().takes(0, 1, 0.8).treated(1, 0.8).copies(1);
  made.trials(2, [n = 0](Trial& trial) mutable {
    if (trial.cpu_s() <= 2) return;
    if (n++ % 2 == 0) trial.wall_s *= 0.3, trial.user_s *= 0.3;
    trial.taken_s = trial.stolen_s = trial.cpu_s() / 2;
    trial.wall_s *= 1.5;
  });
  EXPECT_EQ(found(made.verdict(&recorded)), "undecided");
}

}  // namespace
}  // namespace freehold::doctor
