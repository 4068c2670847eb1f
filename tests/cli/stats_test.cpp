// SPDX-License-Identifier: MIT
// freehold stats: what is said of processes whose memory is known, that they do not notice, and what is said where nothing
// can be. Written from the text and the help.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "tests/cli/command.hpp"
#include "tests/cli/live_program.hpp"

namespace freehold::tests {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

// tests/cli/programs/live_subject.cpp
class Subject : public LiveProgram {
 public:
  explicit Subject(const std::string& mode, const Environment& extra = {}) : LiveProgram("live_subject", mode, extra) {}
};

bool may_read_siblings() {
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  return scope <= 1 || (scope < 3 && ::geteuid() == 0);
}

Ended stats(pid_t pid, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"stats", std::to_string(pid)});
  return freehold(options);
}

json json_of(pid_t pid) {
  const Ended ended = stats(pid, {"--json", "-"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_EQ(lines_of(ended.out), 1) << ended.out;
  return json::parse(ended.out);
}

std::vector<json> lines_as_json(const std::string& text) {
  std::vector<json> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) all.push_back(json::parse(line));
  return all;
}

class Stats : public testing::Test {
 protected:
  void SetUp() override {
    if (!may_read_siblings()) GTEST_SKIP() << "kernel.yama.ptrace_scope";
  }
};

// ---- figures ----------------------------------------------------------------------------------------------------------

TEST_F(Stats, ProcessOfKnownMemory_JsonIsNearTheTruth) {
  const Subject subject("hold");
  const json report = json_of(subject.pid());
  EXPECT_EQ(report.at("format"), "freehold-stats");
  EXPECT_EQ(report.at("version"), 1);
  EXPECT_EQ(report.at("pid"), subject.pid());
  EXPECT_EQ(report.at("command"), "live_subject");
  EXPECT_TRUE(report.at("rates").is_null());
  EXPECT_EQ(report.at("levels").at("threads"), 4);
  EXPECT_EQ(report.at("levels").at("peak_threads"), 4);
  EXPECT_GE(report.at("levels").at("slot_bytes"), 20'000 * 256 - 4 * 64 * 1024);

  json of_256;
  std::uint64_t refills = 0, spans = 0;
  for (const json& c : report.at("classes")) {
    if (c.at("slot_bytes") == 256) of_256 = c;
    refills += c.at("refills").get<std::uint64_t>();
    spans += c.at("spans").get<std::uint64_t>();
    EXPECT_EQ(c.at("slots"), c.at("used_slots").get<std::uint64_t>() + c.at("cached_slots").get<std::uint64_t>() +
                                 c.at("free_slots").get<std::uint64_t>());
  }
  ASSERT_FALSE(of_256.is_null());
  EXPECT_GE(of_256.at("used_slots"), 20'000) << of_256;
  EXPECT_LE(of_256.at("used_slots"), 20'200) << of_256;
  EXPECT_GE(of_256.at("spans"), 20'000 * 256 / 65'536);
  EXPECT_EQ(report.at("counters").at("refills"), refills);
  EXPECT_EQ(report.at("levels").at("class_span_bytes"), spans * 65'536);
}

// The system's collector of huge pages may make some between two readings.
TEST_F(Stats, HugePages_AsTheKernelSays) {
  const Subject subject("hold");
  const auto kernels = [&]() -> std::optional<std::uint64_t> {
    std::ifstream rollup("/proc/" + std::to_string(subject.pid()) + "/smaps_rollup");
    std::uint64_t kib = 0;
    for (std::string word; rollup >> word;)
      if (word == "AnonHugePages:" && rollup >> kib) return kib * 1024;
    return std::nullopt;
  };
  const auto before = kernels();
  if (!before) GTEST_SKIP() << "Linux before 4.14";
  const json levels = json_of(subject.pid()).at("levels");
  const std::string text = stats(subject.pid(), {"--prometheus"}).out;
  ASSERT_TRUE(levels.contains("huge_page_bytes")) << levels;
  EXPECT_GE(levels.at("huge_page_bytes"), *before);
  EXPECT_LE(levels.at("huge_page_bytes"), *kernels());
  EXPECT_NE(text.find("\nfreehold_huge_page_bytes{"), std::string::npos) << text;
  if (*before == 0) GTEST_SKIP() << "the system gave no huge page for 5 MB of small blocks";
}

TEST_F(Stats, Table_ShowsAllOfIt) {
  const Subject subject("hold");
  const Ended ended = stats(subject.pid());
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_TRUE(ended.err.empty()) << ended.err;
  for (const char* word : {"(live_subject)", "memory", "events since the start", "slow paths of malloc", "waits for a lock",
                           "remote frees", "given back", "resident in huge pages", "size classes", "256 B", "threads",
                           "worker-1", "private heaps", "orders", "64 MiB", "(no name)", "pools", "customers", "sessions"})
    EXPECT_NE(ended.out.find(word), std::string::npos) << word << '\n' << ended.out;
  EXPECT_EQ(ended.out.find("/s\n"), std::string::npos) << "one moment has no rates";
  EXPECT_EQ(ended.out.find("\\\n heap"), std::string::npos) << "a name must not break its line";
}

// ---- watching ---------------------------------------------------------------------------------------------------------

TEST_F(Stats, Watch_RatesFromTheSecondOn) {
  const Subject subject("churn");
  const Ended ended = stats(subject.pid(), {"--watch", "0.3", "--count", "3", "--json", "-"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  const std::vector<json> reports = lines_as_json(ended.out);
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_TRUE(reports[0].at("rates").is_null());
  for (const std::size_t i : {1, 2}) {
    const json& rates = reports[i].at("rates");
    EXPECT_GE(rates.at("seconds"), 0.29);
    const auto grown = [&](const char* name) {
      return reports[i].at("counters").at(name).get<double>() - reports[i - 1].at("counters").at(name).get<double>();
    };
    EXPECT_GT(rates.at("refills"), 0);
    EXPECT_NEAR(rates.at("refills").get<double>() * rates.at("seconds").get<double>(), grown("refills"), 1);
    EXPECT_NEAR(rates.at("span_claims").get<double>() * rates.at("seconds").get<double>(), grown("span_claims"), 1);
  }
  const Ended table = stats(subject.pid(), {"--watch", "0.2s", "--count", "2"});
  EXPECT_TRUE(table.exited_with(0)) << table.err;
  EXPECT_NE(table.out.find("/s\n"), std::string::npos) << table.out;
}

TEST_F(Stats, WatchedProcessThatEnds_OneLine) {
  Subject subject("hold");
  Process watching({command_path(), "stats", std::to_string(subject.pid()), "--watch", "0.1"});
  ASSERT_TRUE(watching.wait_for_output("worker-2"));
  ::kill(subject.pid(), SIGKILL);
  (void)subject.process().wait();
  const Ended ended = watching.wait();
  EXPECT_TRUE(ended.exited_with(0)) << ended.status;
  EXPECT_EQ(lines_of(ended.err), 1) << ended.err;
  EXPECT_NE(ended.err.find("has ended"), std::string::npos) << ended.err;
}

TEST_F(Stats, CtrlC_EndsTheWatchingAlone) {
  const Subject subject("hold");
  Process watching({command_path(), "stats", std::to_string(subject.pid()), "--watch", "50"});
  ASSERT_TRUE(watching.wait_for_output("worker-2"));
  ::kill(watching.pid(), SIGINT);
  EXPECT_TRUE(watching.wait(std::chrono::seconds(20)).exited_with(130));
  EXPECT_TRUE(subject.is_alive());
}

// While threads, heaps, pools and children come and go, counters never fall, no figure is made up, and the processes are not
// harmed.
TEST_F(Stats, ThreadsStartEndAndFork_CountersNeverFall) {
  const Subject subject("churn");
  const Ended ended = stats(subject.pid(), {"--watch", "0.01", "--count", "150", "--json", "-"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  const std::vector<json> reports = lines_as_json(ended.out);
  ASSERT_EQ(reports.size(), 150u);
  std::size_t whole = 0;
  std::map<std::string, std::uint64_t> before;
  for (const json& report : reports) {
    EXPECT_LE(report.at("threads").size(), 20u);
    for (const char* kind : {"heaps", "pools"}) {
      EXPECT_LE(report.at(kind).size(), 8u);
      for (const json& one : report.at(kind)) EXPECT_EQ(one.at("name"), "short-lived");
    }
    for (const json& pool : report.at("pools")) EXPECT_EQ(pool.at("capacity"), 1000);
    if (report.at("lists_changed").get<bool>()) continue;
    ++whole;
    for (const auto& [name, value] : report.at("counters").items()) {
      EXPECT_GE(value.get<std::uint64_t>(), before[name]) << name;
      before[name] = value;
    }
  }
  EXPECT_GT(whole, 50u) << "most looks find the lists at rest";
  EXPECT_GT(before["refills"], 1000u);
  EXPECT_TRUE(subject.is_alive());
}

TEST(StatsOfNone, ProcessThatCannotBeRead_OneLineWithTheWayOut) {
  const pid_t zombie = ::fork();
  if (zombie == 0) ::_exit(0);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(zombie), &info, WEXITED | WNOWAIT);
  expect_refused(stats(zombie), "has ended already");
  ::waitpid(zombie, nullptr, 0);
  expect_refused(stats(zombie), "there is no process");
  expect_refused(stats(4'194'303), "there is no process");
  if (!may_read_siblings()) return;
  const Process sleeper({"sleep", "60"});
  while (fs::read_symlink("/proc/" + std::to_string(sleeper.pid()) + "/exe").filename() == "cli_stats")
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  expect_refused(stats(sleeper.pid()), "does not run under Freehold; start the program by freehold run");
}

TEST(StatsOfNone, BadArguments_OneLine) {
  const std::pair<const char*, const char*> table[] = {{"", "which process"},
                                                       {"0", "is not a number"},
                                                       {"init", "is not a number"},
                                                       {"99999999999", "is not a number"},
                                                       {"1 --json - --prometheus", "not both"},
                                                       {"1 --json /no/such/folder/x", "cannot write"},
                                                       {"1 --json /tmp/x --watch 1", "--json - prints a line for each"},
                                                       {"1 --prometheus --watch 1", "one moment"},
                                                       {"1 --count 3", "needs --watch"},
                                                       {"1 --watch soon", "is no number of seconds"},
                                                       {"1 --watch 0", "is no number of seconds"},
                                                       {"1 --watch nan", "is no number of seconds"},
                                                       {"1 --watch 1x", "is no number of seconds"},
                                                       {"1 --watch", "--watch"},
                                                       {"1 --watch 1 --count 0", "is not a number"},
                                                       {"1 --such", "--such"},
                                                       {"1 2", "2"}};
  for (const auto& [line, words] : table) {
    SCOPED_TRACE(line);
    expect_refused(freehold(words_of(std::string("stats ") + line)), words);
  }
}

}  // namespace
}  // namespace freehold::tests
