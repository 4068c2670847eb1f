// SPDX-License-Identifier: MIT
// freehold stats PID [--json | --prometheus] [--watch SECONDS] [--count N]
// The statistics of a process that runs under Freehold, read from its memory: it is neither stopped nor signalled.
// docs/stats.md says what each figure means, and whose processes may be read.
#include <fmt/format.h>
#include <poll.h>

#include <chrono>
#include <optional>

#include "cli/command.hpp"
#include "cli/stats/sample.hpp"
#include "cli/support/arguments.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/interrupts.hpp"
#include "cli/support/standard_streams.hpp"
#include "freehold/doctor/run/attached.hpp"

namespace freehold::cli {
namespace {
using freehold::doctor::LiveRefusal;
using stats::Sample;

struct StatsOptions {
  std::optional<std::string> pid, watch, count;
  bool json = false, prometheus = false;
};

constexpr std::uint32_t kMostPid = 4'194'304;  // the kernel's own limit
constexpr std::uint32_t kMostCount = 1'000'000'000;

std::string why_refused(const freehold::doctor::LiveAnswer& answer, pid_t pid) {
  switch (answer.refusal) {
    case LiveRefusal::kNone: break;
    case LiveRefusal::kNoProcess: return fmt::format("there is no process {}; pgrep NAME tells its number", pid);
    case LiveRefusal::kEnded:
      return fmt::format("process {} has ended already; its parent has not asked for its end yet", pid);
    case LiveRefusal::kKernelThread: return fmt::format("process {} is a thread of the kernel's, which has no malloc", pid);
    case LiveRefusal::kNotAllowed:
      return fmt::format(
          "process {} belongs to user {} or does not let itself be looked at; run freehold as that user, or as root", pid,
          freehold::doctor::user_of(pid));
    case LiveRefusal::kMemoryNotToBeRead:
      return fmt::format(
          "the system does not let you read the memory of process {} (kernel.yama.ptrace_scope, or a filter of system "
          "calls); run freehold as root, or start the program by freehold run --live",
          pid);
    case LiveRefusal::kNoFreehold:
      return fmt::format("process {} does not run under Freehold; start the program by freehold run -- PROGRAM", pid);
    case LiveRefusal::kNotBegun:
      return fmt::format(
          "process {} has loaded libfreehold.so, but its statistics were not found: it has not allocated yet, or that "
          "Freehold is older than this command",
          pid);
    case LiveRefusal::kOtherVersion:
      return fmt::format(
          "the Freehold of process {} keeps statistics of version {}, this command reads version {}; use the command of "
          "that Freehold",
          pid, answer.version, alloc::kLiveVersion);
  }
  return {};
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

// Throws Failure with one line.
Sample take_sample(pid_t pid) {
  freehold::doctor::LiveAnswer answer = freehold::doctor::read_live_stats(pid);
  if (answer.refusal != LiveRefusal::kNone) throw Failure(kExitRefused, why_refused(answer, pid));
  Sample sample;
  sample.at_s = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  sample.pid = pid;
  sample.command = freehold::doctor::short_name_of(pid);
  sample.date = utc_now();
  sample.stats = std::move(answer.stats);
  return sample;
}

std::string text_of(const StatsOptions& options, const Sample& sample, const Sample* before) {
  if (options.json) return stats::json_of(sample, before);
  if (options.prometheus) return stats::prometheus_of(sample);
  return stats::table_of(sample, before);
}

int watch(const StatsOptions& options, pid_t pid, double seconds, std::optional<std::uint32_t> count) {
  Interrupts interrupts;
  Sample before = take_sample(pid);
  print_to_stdout(text_of(options, before, nullptr));
  for (std::uint32_t shown = 1; !count || shown < *count; ++shown) {
    pollfd stop{.fd = interrupts.fd(), .events = POLLIN, .revents = 0};
    static_cast<void>(::poll(&stop, 1, static_cast<int>(seconds * 1000)));
    if (const int signal = interrupts.arrived(); signal != 0) return 128 + signal;
    try {
      Sample sample = take_sample(pid);
      print_to_stdout((options.json ? "" : "\n") + text_of(options, sample, &before));
      before = std::move(sample);
    } catch (const Failure&) {
      const LiveRefusal now = freehold::doctor::read_live_stats(pid).refusal;
      if (now != LiveRefusal::kNoProcess && now != LiveRefusal::kEnded) throw;
      fmt::print(stderr, "freehold: process {} has ended\n", pid);
      return 0;
    }
  }
  return 0;
}

double seconds_of(const std::string& text) {
  constexpr double kLeast = 0.01, kMost = 86'400;
  double value = 0;
  std::size_t used = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used > 0 && text.substr(used) == "s") ++used;
  if (used == 0 || used != text.size() || !(value >= kLeast && value <= kMost))
    throw Failure(kExitRefused,
                  fmt::format("--watch: '{}' is no number of seconds from 0.01 to 86400: 1, 0.5, 10", printable(text)));
  return value;
}

int run_stats(const StatsOptions& options) {
  open_standard_files();
  if (!options.pid) throw Failure(kExitRefused, "stats: which process? pgrep NAME tells its number");
  const auto pid = static_cast<pid_t>(parse_number("stats", *options.pid, 1, kMostPid));
  if (options.json && options.prometheus) throw Failure(kExitRefused, "stats: --json or --prometheus, not both");
  if (options.prometheus && options.watch)
    throw Failure(kExitRefused, "stats: --prometheus shows one moment; Prometheus itself asks again and makes the rates");
  if (options.count && !options.watch) throw Failure(kExitRefused, "stats: --count N needs --watch SECONDS");
  std::optional<std::uint32_t> count;
  if (options.count) count = parse_number("--count", *options.count, 1, kMostCount);
  if (options.watch) return watch(options, pid, seconds_of(*options.watch), count);
  print_to_stdout(text_of(options, take_sample(pid), nullptr));
  return 0;
}

}  // namespace

void add_stats(CLI::App& app, Invocation& invocation) {
  static StatsOptions options;
  Command command(app, "stats", "Statistics of a process that runs under Freehold, which it does not notice");
  command.add_option("pid", options.pid, "Number of the process", "PID");
  command.add_flag("--json", options.json, "Print JSON, one line");
  command.add_flag("--prometheus", options.prometheus, "Print the text format of Prometheus");
  command.add_option("--watch", options.watch, "Print them again each so many seconds, with rates, until Ctrl-C", "SECONDS");
  command.add_option("--count", options.count, "With --watch: so many times", "N");
  command.footer(
      "The process is neither stopped nor signalled. The same user or root may read it; where kernel.yama.ptrace_scope "
      "is 1, the same user may if the program was started by freehold run --live. docs/stats.md");
  command.on_use([&invocation] { invocation.exit_code = run_stats(options); });
}

}  // namespace freehold::cli
