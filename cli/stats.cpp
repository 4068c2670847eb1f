// SPDX-License-Identifier: MIT
// freehold stats PID [--json FILE | --prometheus] [--watch SECONDS] [--count N]
// The statistics of a process that runs under Freehold, read from its memory: it is neither stopped nor signalled.
// docs/stats.md says what each figure means, and whose processes may be read.
#include <fmt/format.h>
#include <poll.h>

#include <chrono>
#include <optional>

#include "cli/command.hpp"
#include "cli/stats/sample.hpp"
#include "tools/live/process.hpp"
#include "tools/live/stats.hpp"
#include "tools/support/arguments.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/interrupts.hpp"
#include "tools/support/live_process.hpp"
#include "tools/support/machine.hpp"
#include "tools/support/output_file.hpp"

namespace freehold::cli {
namespace {
using freehold::live::LiveRefusal;
using stats::Sample;

struct StatsOptions {
  std::optional<std::string> pid, watch, count, json;
  bool prometheus = false;
};

constexpr std::uint32_t kMostCount = 1'000'000'000;

// Throws Failure with one line.
Sample take_sample(pid_t pid) {
  freehold::live::LiveAnswer answer = freehold::live::read_live_stats(pid);
  if (answer.refusal != LiveRefusal::kNone)
    throw Failure(kExitRefused, why_refused(answer.refusal, pid, {"statistics", alloc::kLiveVersion}, answer.version));
  Sample sample;
  sample.at_s = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  sample.pid = pid;
  sample.command = freehold::live::short_name_of(pid);
  sample.date = today();
  sample.stats = std::move(answer.stats);
  return sample;
}

std::string text_of(const StatsOptions& options, const Sample& sample, const Sample* before) {
  if (options.json == "-") return stats::json_of(sample, before);
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
      print_to_stdout((options.json == "-" ? "" : "\n") + text_of(options, sample, &before));
      before = std::move(sample);
    } catch (const Failure&) {
      const LiveRefusal now = freehold::live::read_live_stats(pid).refusal;
      if (now != LiveRefusal::kNoProcess && now != LiveRefusal::kEnded) throw;
      say(fmt::format("freehold: process {} has ended\n", pid));
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
  const pid_t pid = process_number("stats", options.pid);
  if (options.json && options.prometheus) throw Failure(kExitRefused, "stats: --json or --prometheus, not both");
  if (options.prometheus && options.watch)
    throw Failure(kExitRefused, "stats: --prometheus shows one moment; Prometheus itself asks again and makes the rates");
  if (options.json && options.json != "-" && options.watch)
    throw Failure(kExitRefused, "stats: --watch shows many moments; --json - prints a line for each");
  check_report(options.json);
  if (options.count && !options.watch) throw Failure(kExitRefused, "stats: --count N needs --watch SECONDS");
  std::optional<std::uint32_t> count;
  if (options.count) count = parse_number("--count", *options.count, 1, kMostCount);
  if (options.watch) return watch(options, pid, seconds_of(*options.watch), count);
  const Sample sample = take_sample(pid);
  write_report(options.json, stats::json_of(sample, nullptr), text_of(options, sample, nullptr));
  return 0;
}

}  // namespace

void add_stats(CLI::App& app, Invocation& invocation) {
  static StatsOptions options;
  Command command(app, "stats", "Statistics of a process that runs under Freehold, which it does not notice");
  command.add_option("pid", options.pid, "Number of the process", "PID");
  command.add_option("--json", options.json, "Write JSON, one line; - for standard output", "FILE");
  command.add_flag("--prometheus", options.prometheus, "Print the text format of Prometheus");
  command.add_option("--watch", options.watch, "Print them again each so many seconds, with rates, until Ctrl-C", "SECONDS");
  command.add_option("--count", options.count, "With --watch: so many times", "N");
  command.footer(
      "The process is neither stopped nor signalled. The same user or root may read it; where kernel.yama.ptrace_scope "
      "is 1, the same user may if the program was started by freehold run --live. docs/stats.md");
  command.on_use([&invocation] { invocation.exit_code = run_stats(options); });
}

}  // namespace freehold::cli
