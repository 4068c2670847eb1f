// SPDX-License-Identifier: MIT
// The experiments that measure, from outside, on tiny amounts of work: every row is there. Bad arguments, Ctrl-C, and the
// experiments that are made of others: lab_test.cpp.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <tuple>

#include "lab/strategies/registry.hpp"
#include "tests/cli/measured.hpp"
#include "tests/cli/terminal.hpp"

namespace freehold::tests {
namespace {
using nlohmann::json;

TEST(Pools, EveryPool_IsMeasuredAndWritten) {
  const json results = measured({"pools", "--operations", "500", "--repeat", "1", "--time", "5", "--threads", "2", "--tests",
                                 "short,ring,pair,crc", "--contexts", "full", "--crc-threads", "2", "--crc-pools", "2"},
                                {"NANOSECONDS", "CRC", "boost-pool", "short life"});
  std::map<std::string, int> rows;
  for (const json& series : results.at("series")) {
    EXPECT_TRUE(series.at("failure").is_null()) << series;
    EXPECT_GT(series.at("ns"), 0) << series;
    EXPECT_EQ(series.at("samples").size(), 1u);
    EXPECT_EQ(series.at("counted"), !series.at("contention").is_null()) << series;
    ++rows[series.at("pool")];
  }
  pool::for_each_strategy([&]<class S> { EXPECT_EQ(rows[std::string(S::kName)], 5) << S::kName; });  // crc counted, too
  EXPECT_EQ(rows["boost-pool"], 4);
  EXPECT_EQ(rows["baseline"], 2);  // neither in a full pool nor at the ring
}

TEST(Pools, List_NamesEveryStrategyWithItsSource) {
  const Ended ended = freehold({"pools", "--list"});
  EXPECT_TRUE(ended.exited_with(0));
  pool::for_each_strategy([&]<class S> {
    EXPECT_NE(ended.out.find(std::string(S::kName) + ' '), std::string::npos) << S::kName;
    EXPECT_NE(ended.out.find(pool::kStudy<S>.source), std::string::npos) << pool::kStudy<S>.source;
  });
}

TEST(Pools, Simulated_TheSameFiguresEveryTime) {
  const Folder folder;
  const auto simulated = [&](const std::string& pools_chosen) {
    const Ended ended = freehold({"pools", "--simulate", "--pools", pools_chosen, "--json", folder / "r.json"});
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

TEST(Timers, EveryStructure_IsMeasuredAndWritten) {
  const json results =
      measured({"timers", "--tests", "fresh-random,random,cancel,rearm,shared", "--count", "3000", "--live", "300",
                "--users", "2", "--loads", "alone,heap", "--background", "2", "--repeat", "1", "--time", "1"},
               {"NANOSECONDS", "SLEEPS", "article-private", "libuv"});
  std::map<std::string, int> rows;
  std::map<std::string, std::uint64_t> load_operations;
  for (const json& series : results.at("series")) {
    EXPECT_TRUE(series.at("failure").is_null()) << series;
    EXPECT_EQ(series.at("samples").size(), 1u);
    for (const json& phase : series.at("phases")) EXPECT_GT(phase.at("cpu_ns"), 0) << series;
    if (series.at("samples").empty()) continue;
    load_operations[series.at("load")] += series.at("samples")[0].at("background_operations").get<std::uint64_t>();
    ++rows[series.at("structure")];
  }
  for (const char* name : {"article", "article-containers", "article-private", "article-scopes", "article-wheel",
                           "article-wheel-containers", "article-wheel-private", "article-pool-resource"})
    EXPECT_EQ(rows[name], 2 * 5);
  EXPECT_EQ(rows["libuv"], 2 * 4);  // each of its loops is one thread's
  EXPECT_EQ(rows["baseline"], 2);
  EXPECT_EQ(load_operations["alone"], 0u);
  EXPECT_GT(load_operations["heap"], 0u);
  EXPECT_EQ(static_cast<long>(rows.size()), lines_of(freehold({"timers", "--list"}).out));
}

TEST(Scale, Quick_EveryRowIsMeasuredAndWritten) {
  const json results = measured({"scale", "--quick", "--time", "5"},
                                {"THREADS", "PROCESSES", "BLOCKS", "ideal", "owner-lock-free", "On this machine with"});
  EXPECT_EQ(results.at("verdict").at("claims").size(), 3u);
  std::set<std::tuple<std::string, std::string, std::string, int>> rows;
  for (const json& series : results.at("series")) {
    EXPECT_TRUE(series.at("failure").is_null()) << series;
    EXPECT_GT(series.at("median_seconds"), 0) << series;
    EXPECT_GT(series.at("peak_rss_bytes"), 1 << 19) << series;
    EXPECT_EQ(series.at("samples").size(), 1u);
    EXPECT_GT(series.at("samples")[0].at("cpu_ns"), 0);
    rows.emplace(series.at("test"), series.at("mode"), series.at("subject"), series.at("workers"));
  }
  EXPECT_EQ(rows.size(), 4u * 2 * 2 * 5 + 5 * 5 + 5 * 3);
}

TEST(Scale, ViaPool_MeasuredBesideThreadsAndProcesses) {
  const Folder folder;
  const Ended ended =
      freehold({"scale", "--via", "pool", "--time", "5", "--repeat", "1", "--workers", "2", "--json", folder / "r.json"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err << ended.out;
  EXPECT_NE(ended.out.find("THREADS THAT CALL A POOL"), std::string::npos) << ended.out;
  const json results = results_in(folder / "r.json");
  EXPECT_EQ(results.at("verdict").at("claims").size(), 5u);
  int in_pool = 0;
  for (const json& series : results.at("series")) {
    EXPECT_TRUE(series.at("failure").is_null()) << series;
    if (series.at("mode") != "pool") continue;
    ++in_pool;
    // The work is done by other processes, whose CPU time counts.
    const json& sample = series.at("samples")[0];
    EXPECT_GT(sample.at("cpu_ns").get<double>(), sample.at("elapsed_ns").get<double>() / 10) << series;
  }
  EXPECT_EQ(in_pool, 3 * 2 * 2);
}

TEST(Scale, AllocatorThatDies_OthersAreMeasured) {
  const Folder folder;
  const Ended ended =
      freehold({"scale", "--time", "1", "--repeat", "1", "--tests", "allocate", "--workers", "2", "--allocators",
                "system,crashing=" + built("libcrashing_malloc.so"), "--json", folder / "r.json"});
  EXPECT_TRUE(ended.exited_with(1)) << ended.status;
  int died = 0;
  const json results = results_in(folder / "r.json");
  for (const json& series : results.at("series")) {
    const bool crashes = series.at("subject") == "crashing" && series.at("mode") == "threads";
    EXPECT_EQ(series.at("failure").is_null(), !crashes) << series;
    EXPECT_EQ(series.at("median_seconds").is_null(), crashes) << series;
    if (crashes) {
      EXPECT_EQ(series.at("failure"), "killed by signal 6");
      ++died;
    }
  }
  EXPECT_EQ(died, 2);
}

pid_t child_of(pid_t parent) {
  const std::string path = "/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children";
  const std::string children = content_of(path);
  return children.empty() ? 0 : std::stoi(children);
}

TEST(Scale, CommandThatIsKilled_TakesItsWorkersAlong) {
  OnATerminal command(
      {"scale", "--time", "5000", "--repeat", "1", "--tests", "compute", "--mode", "processes", "--workers", "2"});
  ASSERT_TRUE(command.wait_for("   1/"));
  pid_t worker = 0;
  while ((worker = child_of(command.pid())) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  pid_t grandchild = 0;
  for (int i = 0; i < 2000 && (grandchild = child_of(worker)) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_NE(grandchild, 0);
  ::kill(command.pid(), SIGKILL);
  EXPECT_TRUE(is_gone(worker));
  EXPECT_TRUE(is_gone(grandchild));
}

}  // namespace
}  // namespace freehold::tests
