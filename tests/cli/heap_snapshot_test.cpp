// SPDX-License-Identifier: MIT
// freehold heap snapshot, start and stop: what is said of processes with known live sets that run on, that no sample is read
// half-written while others come and go, and what is said where nothing can be read.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/cli/command.hpp"
#include "tests/cli/live_program.hpp"

namespace freehold::tests {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

// tests/cli/programs/heap_held.c
class Subject : public LiveProgram {
 public:
  explicit Subject(const std::string& mode, const std::string& distance = "4096")
      : LiveProgram("heap_held", mode, {{"FREEHOLD_PROFILE", distance}}) {}
};

Ended snapshot(pid_t pid, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"heap", "snapshot", std::to_string(pid)});
  return freehold(options);
}

struct Held {
  double blocks = 0, bytes = 0, peak_bytes = 0;
};

// By site, where a stack ends: the size of its blocks is in its name ("held_48_site"), so that a sample that was read
// half-written is seen.
std::map<std::string, Held> held_by(const std::string& text) {
  const json profile = json::parse(text);
  std::map<std::string, Held> held;
  for (const json& stack : profile.at("stacks")) {
    const auto value = [&](std::size_t i) { return stack.at("values").at(i).get<double>(); };
    if (stack.at("frames").empty()) continue;
    // The innermost function calls malloc. Freehold's own thread, whose memory glibc takes, may be started by any call.
    const auto innermost = stack.at("frames").at(0).get<std::size_t>();
    const std::string function = profile.at("frames").at(innermost).at("function");
    if (function.find("_site") == std::string::npos) continue;
    const double size = std::atof(function.substr(function.find('_') + 1).c_str());
    for (const std::size_t moment : {0, 2}) {
      if (value(moment) == 0) continue;
      EXPECT_NEAR(value(moment + 1) / value(moment), size, 1e-6 * size) << function << ": a sample of another site's";
    }
    held[function].blocks += value(0);
    held[function].bytes += value(1);
    held[function].peak_bytes += value(3);
  }
  return held;
}

constexpr const char* kHeldSites[] = {"held_48_site", "held_200_site", "held_3000_site", "held_50000_site"};
constexpr double kHeldBytes = 16 << 20;

// ---- figures ------------------------------------------------------------------------------------------------------------

TEST(HeapSnapshot, QuietProgram_EachSiteWithinFivePercent) {
  const Subject subject("quiet");
  const Ended ended = snapshot(subject.pid(), {"--format", "json"});
  ASSERT_TRUE(ended.exited_with(0)) << ended.err;
  const json profile = json::parse(ended.out);
  EXPECT_EQ(profile.at("pid"), subject.pid());
  EXPECT_EQ(profile.at("distance_bytes"), 4096);
  EXPECT_EQ(fs::path(profile.at("program").get<std::string>()).filename(), "heap_held");
  auto held = held_by(ended.out);
  for (const char* site : kHeldSites) {
    EXPECT_NEAR(held[site].bytes / kHeldBytes, 1, 0.05) << site;  // 4,000 samples: a deviation of 1.6%
    EXPECT_NEAR(held[site].peak_bytes / kHeldBytes, 1, 0.05) << site;
  }
  EXPECT_TRUE(subject.is_alive());
  // Nothing has changed, so that nothing is said otherwise.
  const Ended again = snapshot(subject.pid(), {"--format", "json"});
  EXPECT_EQ(json::parse(again.out).at("stacks"), profile.at("stacks"));
}

TEST(HeapSnapshot, ProgramThatAllocatesHard_NoSampleHalfWritten) {
  const Subject subject("busy", "2048");
  for (int i = 0; i < 10; ++i) {
    const Ended ended = snapshot(subject.pid(), {"--format", "json"});
    ASSERT_TRUE(ended.exited_with(0)) << ended.err;
    auto held = held_by(ended.out);
    for (const char* site : kHeldSites) {
      EXPECT_NEAR(held[site].bytes / kHeldBytes, 1, 0.05) << site;
      EXPECT_NEAR(held[site].peak_bytes / kHeldBytes, 1, 0.05) << site;
    }
    // Three threads with at most 128 blocks, half of them of each size.
    EXPECT_LT(held["moving_70000_site"].bytes, 2.0 * 3 * 64 * 70'000);
    EXPECT_GT(held["moving_70000_site"].bytes, 0.3 * 3 * 64 * 70'000);
  }
  EXPECT_TRUE(subject.is_alive());
}

TEST(HeapSnapshot, EveryFormat_OfTheProcess) {
  const Subject subject("quiet", "65536");
  const Folder folder;
  const Ended table = snapshot(subject.pid(), {"--stacks", "--top", "0"});
  ASSERT_TRUE(table.exited_with(0)) << table.err;
  for (const char* site : kHeldSites) EXPECT_NE(table.out.find(site), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("heap_held (process " + std::to_string(subject.pid())), std::string::npos) << table.out;
  for (const char* format : {"table", "pprof", "json"}) {
    const Ended ended = snapshot(subject.pid(), {"--format", format, "--output", folder / format});
    EXPECT_TRUE(ended.exited_with(0)) << ended.err;
    EXPECT_FALSE(content_of(folder / format).empty()) << format;
  }
  const Ended shown = freehold({"heap", "show", folder / "json"});
  EXPECT_NE(shown.out.find("held_48_site"), std::string::npos) << shown.out << shown.err;
  const Ended diff = freehold({"heap", "diff", folder / "json", folder / "json"});
  EXPECT_NE(diff.out.find("nothing changed"), std::string::npos) << diff.out << diff.err;
}

// ---- where nothing can be read ------------------------------------------------------------------------------------------

// Whenever it ends: a whole snapshot, or one line.
TEST(HeapSnapshot, ProcessThatEndsMeanwhile_WholeOrOneLine) {
  Subject subject("ends", "2048");
  unsigned refused = 0;
  for (int i = 0; i < 100 && refused < 2; ++i) {
    const Ended ended = snapshot(subject.pid(), {"--format", "json"});
    if (ended.exited_with(0)) {
      auto held = held_by(ended.out);
      for (const char* site : kHeldSites) EXPECT_NEAR(held[site].bytes / kHeldBytes, 1, 0.05) << site;
    } else {
      expect_refused(ended, "has ended already");
      ++refused;
    }
  }
  EXPECT_EQ(refused, 2u);
  const pid_t pid = subject.pid();
  EXPECT_TRUE(subject.process().wait().exited_with(0));
  expect_refused(snapshot(pid), "there is no process");
}

TEST(HeapSnapshot, BadInput_OneLine) {
  expect_refused(freehold({"heap", "snapshot"}), "which process");
  expect_refused(freehold({"heap", "snapshot", "0"}), "heap snapshot");
  expect_refused(freehold({"heap", "snapshot", "many"}), "heap snapshot");
  expect_refused(freehold({"heap", "snapshot", "4194304"}), "there is no process 4194304");
  expect_refused(freehold({"heap", "snapshot", "--format", "svg", "1"}), "--format");
  expect_refused(freehold({"heap", "snapshot", "--output", "/no/such/folder/x", "1"}), "/no/such/folder/x");
}

// ---- switched from outside -----------------------------------------------------------------------------------------------

Ended ask(const char* what, pid_t pid, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"heap", what, std::to_string(pid)});
  return freehold(options);
}
void expect_said(const Ended& ended, const std::string& words) {
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_EQ(lines_of(ended.err), 1) << ended.err;
  EXPECT_NE(ended.err.find(words), std::string::npos) << ended.err;
}
double sampled_by(pid_t pid) {
  const Ended ended = snapshot(pid, {"--format", "json"});
  return ended.exited_with(0) ? json::parse(ended.out).at("sampled_blocks").get<double>() : -1;
}
using Clock = std::chrono::steady_clock;
template <class F>
bool soon(F&& holds) {  // the machine may be busy
  for (const auto end = Clock::now() + std::chrono::seconds(10); !holds();)
    if (Clock::now() > end) return false;
  return true;
}
bool has_one_thread(pid_t pid) {
  const auto tasks = fs::directory_iterator("/proc/" + std::to_string(pid) + "/task");
  return std::distance(begin(tasks), end(tasks)) == 1;
}

TEST(HeapStart, BusyThreads_WithinASecondOnAndOff) {
  const LiveProgram subject("heap_held", "busy", {});
  const pid_t pid = subject.pid();
  expect_refused(snapshot(pid), "freehold heap start " + std::to_string(pid));
  expect_refused(ask("stop", pid), "is not on");
  auto quickest = Clock::duration::max();
  for (int turn = 0; turn < 3; ++turn) {
    const auto begin = Clock::now();
    expect_said(ask("start", pid, {"--distance", "4096"}), "is on");
    std::map<std::string, Held> held;
    EXPECT_TRUE(soon([&] {
      held = held_by(snapshot(pid, {"--format", "json"}).out);
      return held["moving_1000_site"].bytes > 0 && held["moving_70000_site"].bytes > 0;
    }));
    quickest = std::min(quickest, Clock::now() - begin);
    EXPECT_EQ(held.count("held_48_site"), 0u);  // from before
    expect_said(ask("stop", pid), "is off");
    const double sampled = sampled_by(pid);
    EXPECT_GT(sampled, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_EQ(sampled_by(pid), sampled);
    expect_refused(ask("stop", pid), "is not on");
  }
  EXPECT_LT(quickest, std::chrono::seconds(1));
  EXPECT_TRUE(subject.is_alive());
}

TEST(HeapStart, OneThread_IsAloneAgainAfterwards) {
  const LiveProgram subject("heap_held", "alone", {});
  expect_said(ask("start", subject.pid(), {"--distance", "4096"}), "is on");
  EXPECT_TRUE(soon([&] { return held_by(snapshot(subject.pid(), {"--format", "json"}).out).size() >= 2; }));
  EXPECT_TRUE(soon([&] { return has_one_thread(subject.pid()); }));
  EXPECT_TRUE(subject.is_alive());
}

TEST(HeapStart, LimitOfMemory_TheSame) {
  const Folder folder;
  std::ofstream(folder / "memory.max") << (std::uint64_t{4} << 30);
  const LiveProgram subject("heap_held", "busy", {{"FREEHOLD_CGROUP", folder / ""}});
  expect_said(ask("start", subject.pid()), "is on");
  expect_said(ask("stop", subject.pid()), "is off");
}

// The children find a loader that another thread was in.
TEST(HeapStart, ProgramThatForks_ChildrenLoadLibraries) {
  for (int i = 0; i < 5; ++i) {
    const LiveProgram subject("heap_held", "forks", {});
    expect_said(ask("start", subject.pid()), "is on");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_TRUE(subject.is_alive());
  }
}

TEST(HeapStart, IdleProcess_BeginsLaterOrNever) {
  const LiveProgram subject("heap_held", "quiet", {});
  expect_said(ask("start", subject.pid()), "as soon as it does");
  Process interrupted({command_path(), "heap", "start", std::to_string(subject.pid())});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ::kill(interrupted.pid(), SIGINT);
  EXPECT_TRUE(interrupted.wait().killed_by(SIGINT));
  expect_said(ask("stop", subject.pid()), "is off");
  expect_refused(ask("stop", subject.pid()), "is not on");
  EXPECT_TRUE(subject.is_alive());
}

TEST(HeapStart, Sandboxes_OneLineSaysWhyNot) {
  const LiveProgram confined("heap_held", "confined", {});
  expect_refused(ask("start", confined.pid()), "has put itself under a filter of system calls");
  EXPECT_TRUE(confined.is_alive());
  const LiveProgram profiled("heap_held", "confined", {{"FREEHOLD_PROFILE", "1048576"}});  // has the unwinder
  expect_said(ask("stop", profiled.pid()), "is off");
  expect_said(ask("start", profiled.pid(), {"--distance", "4096"}), "is on");
  const auto filtered = [] {
    keep_input_open();
    sock_filter allows[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog filter{.len = 1, .filter = allows};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
      ::_exit(98);
  };
  const LiveProgram alone("heap_held", "alone", {}, filtered), busy("heap_held", "busy", {}, filtered);
  expect_refused(ask("start", alone.pid()), "has one thread and is under a filter of system calls");
  expect_said(ask("start", busy.pid()), "is on");
}

TEST(HeapStart, ProcessThatCannot_OneLineSaysWhyNot) {
  const LiveProgram checked("heap_held", "alone", {{"FREEHOLD_CHECK", "1"}});
  expect_refused(ask("start", checked.pid()), "FREEHOLD_CHECK=1");
  const LiveProgram without_threads("heap_held", "alone", {{"FREEHOLD_BACKGROUND_THREAD", "off"}});
  expect_refused(ask("start", without_threads.pid()), "FREEHOLD_BACKGROUND_THREAD=off");
  expect_refused(ask("stop", without_threads.pid()), "is not on");
  EXPECT_TRUE(checked.is_alive());
}

TEST(HeapStart, BadInput_OneLine) {
  for (const char* const what : {"start", "stop"}) {
    expect_refused(freehold({"heap", what}), "which process");
    expect_refused(freehold({"heap", what, "many"}), std::string("heap ") + what);
    expect_refused(freehold({"heap", what, "4194304"}), "there is no process 4194304");
    expect_refused(ask(what, ::getpid()), "does not run under Freehold");
  }
  expect_refused(freehold({"heap", "start", "--distance", "1", "1"}), "--distance");
}

// The table becomes resident by what is sampled, not by being read.
TEST(HeapSnapshot, Reading_TakesNoMemoryOfTheProcess) {
  const Subject subject("quiet", "1048576");
  const auto resident_kib = [&] {
    std::ifstream status("/proc/" + std::to_string(subject.pid()) + "/status");
    long kib = 0;
    for (std::string line; std::getline(status, line);)
      if (line.rfind("VmRSS:", 0) == 0) kib = std::atol(line.c_str() + 6);
    return kib;
  };
  const long before = resident_kib();
  ASSERT_TRUE(snapshot(subject.pid()).exited_with(0));
  EXPECT_LE(resident_kib(), before + 512);
}

}  // namespace
}  // namespace freehold::tests
