// SPDX-License-Identifier: MIT
// freehold run with the real library: the stats arrive, and arrive nowhere else.
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command.hpp"

namespace freehold::tests {
namespace {

TEST(RunStats, ProgramThatAllocates_TableOnStandardError) {
  const Ended ended = freehold({"run", "--stats", "ls", "/"});
  EXPECT_TRUE(ended.exited_with(0));
  EXPECT_NE(ended.out.find("tmp"), std::string::npos);
  EXPECT_EQ(ended.out.find("committed"), std::string::npos);
  for (const char* word : {"freehold: ls: ", "peak memory", "committed", "spans claimed", "in force: ", "refills"}) {
    EXPECT_NE(ended.err.find(word), std::string::npos) << word << '\n' << ended.err;
  }
}

TEST(RunStats, ProgramThatAllocates_JsonHoldsTheEnginesFigures) {
  const Folder folder;
  EXPECT_TRUE(freehold({"run", "--json", folder / "run.json", "ls", "/"}).exited_with(0));
  const auto json = nlohmann::json::parse(content_of(folder / "run.json"));
  EXPECT_EQ(json.at("format"), "freehold-run");
  const auto& stats = json.at("stats");
  EXPECT_GT(stats.at("reserved_bytes"), 0);
  EXPECT_GE(stats.at("reserved_bytes"), stats.at("committed_bytes"));
  EXPECT_EQ(stats.at("threads_peak"), 1);
  ASSERT_FALSE(stats.at("classes").empty());
  std::uint64_t spans = 0;
  for (const auto& c : stats.at("classes")) {
    spans += c.at("spans").get<std::uint64_t>();
    EXPECT_GE(c.at("slots"), c.at("free_slots"));
  }
  EXPECT_GT(spans, 0u);
  EXPECT_GT(json.at("peak_rss_bytes"), 0);
}

TEST(RunStats, ChildThatExitsBeforeItsParentIsKilled_StatsAreNotTheChilds) {
  const Folder folder;
  const Ended ended = freehold({"run", "--json", folder / "run.json", built("child_exits_first")});
  EXPECT_TRUE(ended.killed_by(SIGKILL)) << ended.status;
  EXPECT_NE(ended.err.find("killed by signal 9"), std::string::npos) << ended.err;
  EXPECT_TRUE(nlohmann::json::parse(content_of(folder / "run.json")).at("stats").is_null());
}

TEST(RunStats, LeaksOfACleanProgram_NothingIsSaid) {
  const Ended clean = freehold({"run", "--leaks", "--", built("ends_clean")});
  EXPECT_EQ(clean.out, "clean\n");
  EXPECT_EQ(clean.err, "");
  const Ended leaks = freehold({"run", "--leaks", "--", built("ends_clean"), "12 letters."});
  EXPECT_EQ(leaks.err.rfind("freehold: leaked: 12 bytes in 1 blocks\n", 0), 0u) << leaks.err;
}

TEST(RunStats, SettingsThatAreWrongAndOfNoUse_OneLineEach) {
  const std::string library = freehold({"run", "--", "sh", "-c", "printf %s \"$LD_PRELOAD\""}).out;
  for (const std::string name : {"FREEHOLD_STATS_FD", "FREEHOLD_CHECK_FILL", "FREEHOLD_CHECK_STACKS"}) {
    const Ended ended = Process({built("ends_clean")}, {{"LD_PRELOAD", library}, {name, "garbage"}}).wait();
    EXPECT_TRUE(ended.exited_with(0)) << name;
    EXPECT_EQ(lines_of(ended.err), 1) << ended.err;
    EXPECT_NE(ended.err.find(name), std::string::npos) << ended.err;
  }
}

}  // namespace
}  // namespace freehold::tests
