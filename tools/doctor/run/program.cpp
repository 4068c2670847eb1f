// SPDX-License-Identifier: MIT
#include "tools/doctor/run/program.hpp"

#include <sched.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "freehold/os/cgroup_files.hpp"
#include "freehold/os/memory_limit.hpp"
#include "tools/doctor/run/attendance.hpp"

namespace freehold::doctor {
namespace {

// Sums up how copies ended and what they took.
Trial mean_of(const std::vector<std::unique_ptr<Child>>& children) {
  Trial sum;
  const double count = static_cast<double>(children.size());
  double peak = 0, faults = 0, voluntary = 0, involuntary = 0, instructions = 0;
  bool are_counted = true;
  for (const auto& child : children) {
    const Trial& each = child->trial();
    sum.wall_s = std::max(sum.wall_s, each.wall_s);
    sum.user_s += each.user_s / count;
    sum.system_s += each.system_s / count;
    are_counted = are_counted && each.instructions;
    instructions += each.instructions.value_or(0) / count;
    peak += static_cast<double>(each.peak_rss_bytes) / count;
    faults += static_cast<double>(each.page_faults) / count;
    voluntary += static_cast<double>(each.voluntary_switches) / count;
    involuntary += static_cast<double>(each.involuntary_switches) / count;
    if (ended_well(sum)) sum.wait_status = each.wait_status;
  }
  if (are_counted) sum.instructions = instructions;
  sum.peak_rss_bytes = static_cast<std::uint64_t>(peak);
  sum.page_faults = static_cast<std::uint64_t>(faults);
  sum.voluntary_switches = static_cast<std::uint64_t>(voluntary);
  sum.involuntary_switches = static_cast<std::uint64_t>(involuntary);
  return sum;
}

}  // namespace

Run run(const Command& command, const LaunchOptions& options, double seconds, const Host& host) {
  return run_copies(command, std::span(&options, 1), seconds, host);
}

Run run_copies(const Command& command, std::span<const LaunchOptions> copies, double seconds, const Host& host) {
  Run run;
  Attendance attendance(host);
  const std::vector<unsigned> cpus = cpus_of(copies);
  const Busy busy_before = busy_on(cpus);
  const double deadline = attendance.now() + seconds;
  for (const LaunchOptions& each : copies) {
    const Child& child = attendance.start(command, each);
    if (child.why_not().empty()) continue;
    run.ending = Ending::kNotStarted;
    run.why = child.why_not();
    attendance.end_all();
    return run;
  }
  while (attendance.any_up() && run.ending == Ending::kEnded) {
    attendance.wait(deadline);
    if (!attendance.any_up()) break;
    if (attendance.stopped()) run.ending = Ending::kStopped;
    if (run.ending == Ending::kEnded && attendance.now() >= deadline) run.ending = Ending::kOutOfTime;
  }
  if (attendance.any_up()) attendance.end_all();
  const double count = static_cast<double>(copies.size());
  run.trial = mean_of(attendance.all());
  attendance.report(run);
  run.trial.throttled_s /= count;
  run.trial.stolen_s = attendance.absent_s() * count;  // a stopped doctor took no CPU, but cost the program its time
  add_stolen(run, busy_on(cpus) - busy_before, run.trial.cpu_s() * count, count, attendance.times());
  for (const auto& child : attendance.all()) {
    if (run.last_words.empty() || !ended_well(child->trial())) run.last_words = last_words_of(*child);
  }
  run.output = attendance.all().front()->out().text();
  return run;
}

std::string failure_of(const Run& run, double seconds) {
  switch (run.ending) {
    case Ending::kNotStarted: return "it could not be started: " + run.why;
    case Ending::kOutOfTime: {
      std::ostringstream text;
      text.precision(2);
      text << "no end after " << (seconds < 10 ? seconds : static_cast<double>(static_cast<long>(seconds))) << " s";
      return text.str();
    }
    case Ending::kNotReady: return "it did not become ready to serve";
    case Ending::kLoadFailed: return run.why.empty() ? "its load failed" : "its load failed: " + run.why;
    case Ending::kStopped: return "it was stopped";
    case Ending::kEnded:
    case Ending::kEndedEarly: break;
  }
  const int status = run.trial.wait_status;
  std::string text;
  if (WIFSIGNALED(status)) {
    const char* const name = ::sigabbrev_np(WTERMSIG(status));
    text = name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0) {
    text = "exit code " + std::to_string(WEXITSTATUS(status));
  }
  if (run.ending == Ending::kEndedEarly) return "it ended before its load" + (text.empty() ? text : ": " + text);
  return text;
}

std::vector<unsigned> cpus_in_order() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {};
  std::vector<std::pair<unsigned, unsigned>> ranked;  // which of its core's it is, and its number
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    std::ifstream in("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    unsigned rank = 0;
    unsigned sibling = 0;
    for (char separator = ','; in >> sibling && sibling < cpu; ++rank)
      if (!(in >> separator)) break;
    ranked.emplace_back(rank, cpu);
  }
  std::ranges::sort(ranked);
  std::vector<unsigned> cpus;
  for (const auto& [rank, cpu] : ranked) cpus.push_back(cpu);
  return cpus;
}

std::uint64_t available_bytes() {
  std::uint64_t kibibytes = 0, left = UINT64_MAX;
  os::Path root("");
  if (os::number_in_file(root, "/proc/meminfo", kibibytes, "MemAvailable:")) left = kibibytes * 1024;
  os::MemoryLimit limit;
  limit.find("");
  const auto use = limit.use();
  if (limit.bytes() > 0) left = std::min(left, limit.bytes() - std::min(limit.bytes(), use ? use->bytes : 0));
  return left;
}

}  // namespace freehold::doctor
