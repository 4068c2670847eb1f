// SPDX-License-Identifier: MIT
// freehold pools from outside, on tiny amounts of work: that every row is there. Bad arguments and Ctrl-C: lab_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "lab/strategies/registry.hpp"
#include "tests/cli/command.hpp"

namespace freehold::tests {
namespace {
using nlohmann::json;

Ended pools(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "pools");
  return freehold(std::move(arguments));
}

json results_in(const std::string& path) { return json::parse(content_of(path)); }

TEST(Pools, EveryPool_IsMeasuredAndWritten) {
  const Folder folder;
  const Ended ended = pools({"--operations",  "500",
                             "--repeat",      "1",
                             "--time",        "5",
                             "--threads",     "2",
                             "--tests",       "short,ring,pair,crc",
                             "--contexts",    "full",
                             "--crc-threads", "2",
                             "--crc-pools",   "2",
                             "--json",        folder / "r.json",
                             "--html",        folder / "r.html"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err << ended.out;
  EXPECT_EQ(ended.err, "");  // progress is for terminals
  for (const char* word : {"NANOSECONDS", "CRC", "boost-pool", "short life"})
    EXPECT_NE(ended.out.find(word), std::string::npos) << word << '\n' << ended.out;
  const json results = results_in(folder / "r.json");
  EXPECT_EQ(results.at("complete"), true);
  std::map<std::string, int> rows;
  for (const json& series : results.at("series")) {
    EXPECT_TRUE(series.at("failure").is_null()) << series;
    EXPECT_GT(series.at("ns"), 0) << series;
    EXPECT_EQ(series.at("samples").size(), 1u);
    EXPECT_EQ(series.at("counted"), series.at("samples")[0].at("counted") > 0) << series;
    ++rows[series.at("pool")];
  }
  pool::for_each_strategy([&]<class S> { EXPECT_EQ(rows[std::string(S::kName)], 5) << S::kName; });  // crc counted, too
  EXPECT_EQ(rows["boost-pool"], 4);
  EXPECT_EQ(rows["baseline"], 2);  // neither in a full pool nor at the ring
  EXPECT_TRUE(content_of(folder / "r.html").starts_with("<!DOCTYPE html>"));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"r.html", "r.json"}));
}

TEST(Pools, List_NamesEveryStrategyWithItsSource) {
  const Ended ended = pools({"--list"});
  EXPECT_TRUE(ended.exited_with(0));
  pool::for_each_strategy([&]<class S> {
    EXPECT_NE(ended.out.find(std::string(S::kName) + ' '), std::string::npos) << S::kName;
    EXPECT_NE(ended.out.find(S::kSource), std::string::npos) << S::kSource;
  });
}

TEST(Pools, Simulated_TheSameFiguresEveryTime) {
  const Folder folder;
  const auto simulated = [&](const std::string& pools_chosen) {
    const Ended ended = pools({"--simulate", "--pools", pools_chosen, "--json", folder / "r.json"});
    EXPECT_TRUE(ended.exited_with(0)) << ended.err;
    return results_in(folder / "r.json").at("simulated");
  };
  const json first = simulated("tagged-stack,stacks-by-thread,boost-pool");
  EXPECT_EQ(first.at("series").size(), 2u * (2 * 3 + 2));
  for (const json& again : simulated("stacks-by-thread").at("series"))
    EXPECT_EQ(std::ranges::count(first.at("series"), again), 1) << again;
  for (const json& series : first.at("series")) {
    if (series.at("workload") != "own" || series.at("quantum") != 1) continue;
    const double last = series.at("misses").back();
    // One stack for all gets worse with every core; one for each thread does not.
    if (series.at("pool") == "tagged-stack") {
      EXPECT_GT(last, 100);
    } else {
      EXPECT_EQ(last, 0);
    }
  }
}

}  // namespace
}  // namespace freehold::tests
