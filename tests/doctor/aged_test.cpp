// SPDX-License-Identifier: MIT
// Histories: from recordings, made up, and played in a program; and what is concluded from trials on an aged heap.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/support/folder.hpp"
#include "tests/support/process.hpp"
#include "tools/doctor/facts/aged.hpp"

namespace freehold::doctor {
namespace {

BlockSample block(std::uint64_t bytes, double began_s, std::optional<double> ended_s = {}) {
  return {.bytes = bytes, .weight = 1, .began_s = began_s, .ended_s = ended_s};
}
std::uint64_t freed(std::uint64_t malloc) { return kFreed | malloc; }

TEST(History, Recording_KeepsOrderAndSurvivors) {
  Recording recording;
  recording.blocks = {block(10, 1, 4), block(20, 2, 3), block(30, 3.5), block(40, 5, 6)};
  const History history = history_of(recording);
  EXPECT_EQ(history.calls, (std::vector<std::uint64_t>{10, 20, freed(1), 30, freed(0), 40, freed(3)}));
  EXPECT_EQ(history.mallocs, 4u);
  EXPECT_EQ(history.survivors, 1u);
  EXPECT_EQ(history.peak_bytes, counted_bytes(30) + counted_bytes(40));
  EXPECT_EQ(history.live_bytes, counted_bytes(30));
}

TEST(History, MadeUp_SameAgainHalfOfTheProgramsSizesSurvive) {
  const History history = made_up({{32, 3}, {480, 1}}, UINT64_MAX);
  EXPECT_EQ(history.calls, made_up({{32, 3}, {480, 1}}, UINT64_MAX).calls);
  EXPECT_EQ(history.mallocs, kMadeUpMallocs);
  EXPECT_EQ(history.survivors, kMadeUpMallocs / 2);
  const auto small = std::ranges::count(history.calls, 32u), large = std::ranges::count(history.calls, 480u);
  EXPECT_EQ(small + large, static_cast<std::ptrdiff_t>(kMadeUpMallocs));
  EXPECT_NEAR(static_cast<double>(small) / kMadeUpMallocs, 0.75, 0.01);
}

TEST(History, LittleMemory_BoundsWhatIsMadeUp) {
  const History history = made_up({{984, 1}}, 1'000'000);
  EXPECT_EQ(history.mallocs, 1000u);
  EXPECT_LE(history.peak_bytes, 1'000'000u);
}

Trial trial_of(double wall_s, double cpu_s) {
  Trial trial;
  trial.wall_s = wall_s;
  trial.user_s = 0.75 * cpu_s;
  trial.system_s = 0.25 * cpu_s;
  return trial;
}
Side side(double cpu_s) {
  Side side;
  for (const double factor : {0.99, 1.0, 1.01}) side.all.push_back(trial_of(1, factor * cpu_s));
  return side;
}

TEST(AgedHeap, BetterMalloc_IsFasterThereBeyondChance) {
  std::vector<AgedMalloc> mallocs;
  for (const double aged_s : {1.6, 1.59, 1.0})
    mallocs.push_back({.variant = {}, .fresh = side(1), .aged = side(aged_s), .failure = {}});
  EXPECT_NEAR(cpu_change(mallocs[0].fresh, mallocs[0].aged)->ratio->value, 1.6, 0.01);
  EXPECT_EQ(better_aged(mallocs), &mallocs[2]);
  mallocs[2].failure = "SIGSEGV";
  EXPECT_EQ(better_aged(mallocs), nullptr);
}

TEST(AgedHeap, WhatTheHistoryTook_IsNotTheProgram) {
  Trial trial = trial_of(3, 2);
  take_off({.programs = 1, .wall_ns = 1'000'000'000, .cpu_ns = 500'000'000}, trial);
  EXPECT_DOUBLE_EQ(trial.cpu_s(), 1.5);
  EXPECT_DOUBLE_EQ(trial.wall_s, 2);
  Trial several = trial_of(2, 4);
  take_off({.programs = 4, .wall_ns = 4'000'000'000, .cpu_ns = 2'000'000'000}, several);
  EXPECT_DOUBLE_EQ(several.wall_s, 1) << "they ran at the same time";
}

class Played : public ::testing::Test {
 protected:
  // The heap that the program meets with these libraries preloaded.
  std::map<std::string, double> run(const std::string& phase, const std::string& preload,
                                    std::vector<std::pair<std::string, std::string>> environment = {}) {
    environment.emplace_back("LD_PRELOAD", preload);
    environment.emplace_back("FREEHOLD_HISTORY", file_);
    outcome_ = test::run({.argv = {FREEHOLD_AGES, "parse", "list", phase}, .environment = std::move(environment)});
    EXPECT_TRUE(outcome_.ok()) << outcome_.describe();
    return outcome_.figures();
  }

  test::Folder folder_;
  std::string file_ = folder_ / "history";
  test::Outcome outcome_;
};

// Half of a million blocks in random order: a quarter of them are free beside one that is not.
TEST_F(Played, MadeUp_IsThereBeforeThePrograms) {
  const auto fresh = run("meet", FREEHOLD_AGE);
  EXPECT_LT(fresh.at("chunks"), 100) << "no file of a history is there";
  ASSERT_TRUE(write_history(made_up({{48, 1}, {400, 1}}, UINT64_MAX), file_));
  const auto aged = run("meet", FREEHOLD_AGE);
  EXPECT_GT(aged.at("constructed"), 200'000) << "its constructors run after the history";
  EXPECT_NEAR(aged.at("chunks"), aged.at("constructed"), 100);
  EXPECT_GT(aged.at("live") - fresh.at("live"), 100'000'000);
  const HistoryHeader sums = read_sums(file_);
  EXPECT_EQ(sums.programs, 1u);
  EXPECT_EQ(sums.refused, 0u);
  EXPECT_EQ(run("meet", FREEHOLD_AGE), aged) << "the same history leaves the same heap";
}

TEST_F(Played, TheProgramsMalloc_StaysWhatItIs) {
  ASSERT_TRUE(write_history(made_up({{48, 1}}, 1 << 20), file_));
  run("meet", FREEHOLD_AGE);
  EXPECT_NE(outcome_.out.find("/libc.so"), std::string::npos) << outcome_.out;
  run("meet", FREEHOLD_AGE + std::string(":") + FREEHOLD_MALLOC);
  EXPECT_NE(outcome_.out.find("/libfreehold.so"), std::string::npos) << outcome_.out;
  EXPECT_EQ(read_sums(file_).programs, 2u);
}

TEST_F(Played, DamagedFile_IsNotPlayed) {
  ASSERT_TRUE(write_history(made_up({{48, 1}}, 1 << 20), file_));
  std::filesystem::resize_file(file_, 1000);
  EXPECT_LT(run("meet", FREEHOLD_AGE).at("chunks"), 100);
  EXPECT_EQ(read_sums(file_).programs, 0u);
}

// The load of 360,000 blocks, of which a third survives, leaves as much behind when it is played as when it was recorded.
TEST_F(Played, RecordedLoad_LeavesTheSameHeap) {
  run("load", FREEHOLD_PROBE, {{"FREEHOLD_PROBE_DIRECTORY", folder_.path()}, {"FREEHOLD_PROBE_SAMPLE", "all"}});
  std::filesystem::path trace;
  for (const auto& each : std::filesystem::directory_iterator(folder_.path()))
    if (each.path().extension() == ".trace") trace = each.path();
  NoRecording no;
  const auto recording = read_recording(trace, no);
  ASSERT_TRUE(recording) << no.why;
  EXPECT_TRUE(recording->is_whole);
  EXPECT_EQ(recording->dropped, 0u);
  const History history = history_of(*recording);
  EXPECT_NEAR(static_cast<double>(history.mallocs), 360'000, 200);
  EXPECT_NEAR(static_cast<double>(history.survivors), 120'000, 100);
  const auto real = run("loaded", "");
  ASSERT_TRUE(write_history(history, file_));
  const auto played = run("meet", FREEHOLD_AGE);
  EXPECT_GT(real.at("chunks"), 50'000);
  EXPECT_NEAR(played.at("chunks"), real.at("chunks"), 0.01 * real.at("chunks"));
  EXPECT_NEAR(played.at("live"), real.at("live"), 0.01 * real.at("live"));
}

}  // namespace
}  // namespace freehold::doctor
