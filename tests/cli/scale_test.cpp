// SPDX-License-Identifier: MIT
// freehold scale from outside, on tiny amounts of work: that every row is there. Bad arguments and Ctrl-C: lab_test.cpp.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <tuple>

#include "tests/cli/command.hpp"
#include "tests/cli/terminal.hpp"

namespace freehold::tests {
namespace {
using nlohmann::json;

Ended scale(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "scale");
  return freehold(std::move(arguments));
}

json results_in(const std::string& path) { return json::parse(content_of(path)); }

TEST(Scale, Quick_EveryRowIsMeasuredAndWritten) {
  const Folder folder;
  const Ended ended = scale({"--quick", "--time", "5", "--json", folder / "r.json", "--html", folder / "r.html"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_EQ(ended.err, "");  // progress is for terminals
  for (const char* word : {"THREADS", "PROCESSES", "BLOCKS", "ideal", "owner-lock-free", "On this machine with"}) {
    EXPECT_NE(ended.out.find(word), std::string::npos) << word << '\n' << ended.out;
  }
  const json results = results_in(folder / "r.json");
  EXPECT_EQ(results.at("complete"), true);
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
  EXPECT_TRUE(content_of(folder / "r.html").starts_with("<!DOCTYPE html>"));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"r.html", "r.json"}));
}

TEST(Scale, ViaPool_MeasuredBesideThreadsAndProcesses) {
  const Folder folder;
  const Ended ended =
      scale({"--via", "pool", "--time", "5", "--repeat", "1", "--workers", "2", "--json", folder / "r.json"});
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
  const Ended ended = scale({"--time", "1", "--repeat", "1", "--tests", "allocate", "--workers", "2", "--allocators",
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

// Dead, or a zombie that nobody waits for.
bool is_gone(pid_t pid) {
  const std::string status = content_of("/proc/" + std::to_string(pid) + "/stat");
  return status.empty() || status.find(") Z ") != std::string::npos;
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
  for (int i = 0; i < 2000 && !(is_gone(worker) && is_gone(grandchild)); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(is_gone(worker));
  EXPECT_TRUE(is_gone(grandchild));
}

}  // namespace
}  // namespace freehold::tests
