// SPDX-License-Identifier: MIT
// freehold simulate from outside: that every row is there, the same in every run, and what Ctrl-C leaves.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/command.hpp"
#include "tests/cli/terminal.hpp"

namespace freehold::tests {
namespace {
using nlohmann::json;

Ended simulate(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "simulate");
  return freehold(std::move(arguments));
}

TEST(Simulate, SomeRows_TableAndJson) {
  const Folder folder;
  const auto rows = [&] {
    const Ended ended =
        simulate({"--workload", "own,producer", "--size", "64,1048576", "--cores", "1,4,8", "--json", folder / "s.json"});
    EXPECT_TRUE(ended.exited_with(0)) << ended.err;
    EXPECT_EQ(ended.err, "");  // progress is for terminals
    for (const char* word : {"MISSES", "LOCKS", "producer", "1048576", "flat", "grows"})
      EXPECT_NE(ended.out.find(word), std::string::npos) << word << '\n' << ended.out;
    const json results = json::parse(content_of(folder / "s.json"));
    EXPECT_EQ(results.at("format"), "freehold-simulate");
    EXPECT_EQ(results.at("complete"), true);
    return results.at("rows");
  };
  const json first = rows();
  ASSERT_EQ(first.size(), 4u);
  for (const json& row : first) {
    ASSERT_EQ(row.at("counts").size(), 3u);
    EXPECT_EQ(row.at("counts")[0].at("misses"), 0.0) << "one core has nobody to take lines from";
    for (const json& count : row.at("counts")) EXPECT_GT(count.at("pairs"), 0);
  }
  EXPECT_EQ(first[0].at("flat"), true) << "own small blocks";
  EXPECT_EQ(rows(), first);
}

TEST(Simulate, Places_NameTheSourceAndTheObject) {
  const Ended ended = simulate({"--workload", "churn", "--size", "64", "--cores", "4", "--places", "40"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  for (const char* word : {"PLACES", "lock.hpp:", "(a lock)"})
    EXPECT_NE(ended.out.find(word), std::string::npos) << word << '\n' << ended.out;
}

TEST(Simulate, TwoNodes_SayWhatTheOtherOneServes) {
  const Folder folder;
  const auto count = [&](const char* workload, const char* far_cost) {
    const Ended ended = simulate({"--workload", workload, "--size", "64", "--cores", "1,4", "--nodes", "2", "--far-cost",
                                  far_cost, "--json", folder / "n.json"});
    EXPECT_TRUE(ended.exited_with(0)) << ended.err;
    EXPECT_NE(ended.out.find("FAR"), std::string::npos) << ended.out;
    return json::parse(content_of(folder / "n.json")).at("rows")[0].at("counts")[1];
  };
  const json own = count("own", "200"), dear = count("churn", "300"), cheap = count("churn", "100");
  EXPECT_GE(own.at("served"), 1.0) << "the block's own line";
  EXPECT_LE(own.at("far"), 0.05);
  EXPECT_GT(dear.at("far"), 0.1);
  EXPECT_DOUBLE_EQ(cheap.at("line_cost").get<double>(), cheap.at("served").get<double>());
  EXPECT_NEAR(dear.at("line_cost").get<double>(), dear.at("served").get<double>() + 2 * dear.at("far").get<double>(), 1e-9);
}

TEST(Simulate, OnATerminalCtrlC_KeepsWhatWasFinished) {
  OnATerminal command({"simulate", "--workload", "many", "--cores", "64,128"});
  ASSERT_TRUE(command.wait_for("simulated cores"));
  command.type(kCtrlC);
  const int status = command.end();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGINT) << status;
  EXPECT_NE(command.seen().find("Interrupted"), std::string::npos) << command.seen();
}

}  // namespace
}  // namespace freehold::tests
