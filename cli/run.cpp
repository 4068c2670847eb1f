// SPDX-License-Identifier: MIT
// freehold run [--stats] [--json FILE] [--live] [--check] [--leaks] [--stacks N] [--guard-rate N] [--] PROGRAM ARGS…
// Runs a program under libfreehold.so. The program's output and exit status pass through untouched; the stats go to
// standard error and into the file. docs/run.md has the exit codes.
#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.hpp"
#include "tools/launch/launch.hpp"
#include "tools/launch/program.hpp"
#include "tools/output/json.hpp"
#include "tools/support/arguments.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/library.hpp"
#include "tools/support/machine.hpp"
#include "tools/support/output_file.hpp"
#include "tools/support/units.hpp"

namespace freehold::cli {
namespace {
using nlohmann::ordered_json;

struct RunOptions {
  bool stats = false, live = false;
  bool check = false, leaks = false;
  std::optional<std::string> stacks, guard_rate;
  std::optional<std::string> json;
};

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "-" : fmt::format("{:.0f}%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

bool saw_work(const alloc::ClassStats& c) { return c.spans != 0 || c.refills != 0; }

// A text of the stats, which ends where its array does if not before.
template <std::size_t N>
std::string text_of(const char (&array)[N]) {
  return {array, ::strnlen(array, N)};
}

// The memory that the engine holds and why, then the size classes that were used.
std::string stats_table(const alloc::Stats& s) {
  const std::string system_huge_pages = huge_pages_mode();
  std::string out;
  const auto line = [&out](const char* name, const std::string& value, const char* meaning) {
    out += fmt::format("  {:<22}{:>10}   {}\n", name, value, meaning);
  };
  out += "memory\n";
  line("reserved", bytes_text(s.reserved_bytes), "address space to grow into");
  line("committed", bytes_text(s.committed_bytes), "readable and writable");
  line("small blocks", bytes_text(s.small_span_bytes), "spans of size classes");
  line("page runs", bytes_text(s.run_bytes), "blocks above 32 KiB");
  line("mapped one by one", bytes_text(s.direct_bytes), "blocks too large for the arena");
  line("free, kept", bytes_text(s.free_dirty_bytes), "for reuse, until purged");
  line("caches, at most", bytes_text(s.cached_limit_bytes), "limit of all thread caches now");
  line("metadata, at most", bytes_text(s.metadata_bytes), "bitmaps, caches and maps");
  out += "events\n";
  line("given back", bytes_text(s.purged_bytes), fmt::format("to the system, in {} calls", s.purge_calls).c_str());
  line("spans claimed", std::to_string(s.span_claims), fmt::format("and {} returned", s.span_returns).c_str());
  line("threads, peak", std::to_string(s.peak_threads), fmt::format("{} at the end", s.threads).c_str());
  line("waits for a lock", std::to_string(s.lock_waits), "of the engine's own locks");
  line("late frees", std::to_string(s.late_frees), "after a thread's cache was gone");
  out += fmt::format("in force: {} CPUs ({}), caches by {}, huge pages {} (the system's mode: {})\n", s.cpus,
                     text_of(s.cpus_source), text_of(s.cache_mode), text_of(s.huge_pages),
                     system_huge_pages.empty() ? "unknown" : system_huge_pages);
  out += fmt::format("{:>10} {:>8} {:>12} {:>8} {:>12} {:>12}\n", "slot", "spans", "slots", "free", "refills", "drains");
  for (std::uint32_t i = 0; i < s.class_count; ++i) {
    const alloc::ClassStats& c = s.classes[i];
    if (!saw_work(c)) continue;
    out += fmt::format("{:>10} {:>8} {:>12} {:>8} {:>12} {:>12}\n", bytes_text(c.slot_bytes), c.spans, c.slots,
                       percent(c.free_slots, c.slots), c.refills, c.drains);
  }
  return out;
}

// Uses the names of freehold/alloc/observe/stats.hpp.
ordered_json stats_json(const alloc::Stats& s) {
  ordered_json json = {{"version", s.version}}, classes = ordered_json::array();
#define FREEHOLD_ADD(name, public_name) json[#name] = s.name;
  FREEHOLD_FIGURES(FREEHOLD_ADD)
#undef FREEHOLD_ADD
  json["cpus"] = s.cpus;
  json["cpus_source"] = text_of(s.cpus_source);
  json["cache_mode"] = text_of(s.cache_mode);
  json["huge_pages"] = text_of(s.huge_pages);
  for (std::uint32_t i = 0; i < s.class_count; ++i) {
#define FREEHOLD_PAIR(name) {#name, s.classes[i].name},
    classes.push_back({FREEHOLD_CLASS_FIGURES(FREEHOLD_PAIR)});
#undef FREEHOLD_PAIR
  }
  json["classes"] = std::move(classes);
  return json;
}

// Arguments and paths may be any bytes; those that are not UTF-8 are replaced.
std::string dump(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

ordered_json exit_json(int status) {
  if (WIFSIGNALED(status)) return {{"signal", WTERMSIG(status)}};
  return {{"code", WEXITSTATUS(status)}};
}

ordered_json run_json(const Launch& launch, const Outcome& outcome) {
  return {
      {"format", "freehold-run"},
      {"version", 1},
      {"program", launch.arguments},
      {"library", launch.library},
      {"exit", exit_json(outcome.wait_status)},
      {"elapsed_seconds", outcome.elapsed_seconds},
      {"user_seconds", outcome.user_seconds},
      {"system_seconds", outcome.system_seconds},
      {"peak_rss_bytes", outcome.peak_rss_bytes},
      {"machine", machine_json(this_machine())},
      {"stats", outcome.has_stats ? stats_json(outcome.stats) : ordered_json(nullptr)},
  };
}

void print_missing_stats(const Launch& launch, int status) {
  const std::string name = printable(launch.arguments.front());
  if (WIFSIGNALED(status)) {
    say(fmt::format("freehold: {} was killed by signal {} before it could leave stats\n", name, WTERMSIG(status)));
  } else {
    say(fmt::format(
        "freehold: {} left no stats: it allocated nothing, did not load libfreehold.so, or did not end by exit() in "
        "the process that was started\n",
        name));
  }
}

void print_stats(const Launch& launch, const Outcome& outcome) {
  say(fmt::format("freehold: {}: {:.2f} s, user {:.2f} s, system {:.2f} s, peak memory {}\n{}",
                  printable(launch.arguments.front()), outcome.elapsed_seconds, outcome.user_seconds, outcome.system_seconds,
                  bytes_text(outcome.peak_rss_bytes), outcome.has_stats ? stats_table(outcome.stats) : ""));
}

// Sets the library's options in its environment.
std::vector<std::pair<std::string, std::string>> settings_of(const RunOptions& options) {
  std::vector<std::pair<std::string, std::string>> settings;
  if (options.check || options.leaks || options.stacks) settings.emplace_back("FREEHOLD_CHECK", "1");
  if (options.leaks) settings.emplace_back("FREEHOLD_CHECK_LEAKS", "1");
  if (options.live) settings.emplace_back("FREEHOLD_LIVE", "1");
  const auto add_number = [&](const char* name, const char* option, const std::optional<std::string>& text,
                              std::uint32_t most) {
    std::uint32_t number = 0;
    if (!text) return;
    parse_into(number, option, text, 1, most);
    settings.emplace_back(name, std::to_string(number));
  };
  constexpr std::uint32_t kMostFrames = 64, kMostRate = 1U << 30;
  add_number("FREEHOLD_CHECK_STACKS", "--stacks", options.stacks, kMostFrames);
  add_number("FREEHOLD_GUARD_RATE", "--guard-rate", options.guard_rate, kMostRate);
  return settings;
}

void run(const RunOptions& options, const std::vector<std::string>& program) {
  if (program.empty())
    throw Failure(kExitRefused, "run: no program given: freehold run [--stats] [--json FILE] -- PROGRAM ARGS...");
  Launch launch{.program = {}, .arguments = program, .library = find_freehold_library(), .settings = settings_of(options)};
  launch.program = find_program(program.front());
  check_program(launch.program, launch.library);
  if (options.json) check_writable(*options.json);
  const bool wants_stats = options.stats || options.json;
  if (!wants_stats && !options.check && !options.leaks && !options.stacks) become(launch);

  const Outcome outcome = supervise(launch);
  if (options.stats) print_stats(launch, outcome);
  if (wants_stats && !outcome.has_stats) print_missing_stats(launch, outcome.wait_status);
  if (options.json) write_file(*options.json, dump(run_json(launch, outcome)));
  end_like(outcome.wait_status);
}

}  // namespace

void add_run(CLI::App& app, Invocation& invocation) {
  static RunOptions options;
  Command command(app, "run", "Run a program under Freehold's malloc: freehold run -- PROGRAM ARGS...");
  command.add_flag("--stats", options.stats, "Print allocator statistics to standard error when the program has ended");
  command.add_option("--json", options.json,
                     "Write the statistics as JSON to a file; standard output belongs to the program", "FILE");
  command.add_flag("--live", options.live,
                   "Let freehold stats of the same user read the program's memory where kernel.yama.ptrace_scope is 1");
  command.add_flag("--check", options.check,
                   "Look at every allocation and free, and end the program at the first misuse (docs/hardening.md)");
  command.add_flag("--leaks", options.leaks, "As --check, and list at the exit what is still allocated, and where from");
  command.add_option("--stacks", options.stacks, "As --check, and keep call stacks of N frames of allocations and frees",
                     "N");
  command.add_option("--guard-rate", options.guard_rate,
                     "Put one allocation in N on a separate page, so that its misuse is a fault that is reported", "N");
  command.footer("The exit status is the program's. docs/run.md has the exit codes and the environment.");
  command.on_use([&invocation] { run(options, invocation.program); });
}

}  // namespace freehold::cli
