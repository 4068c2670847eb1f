// SPDX-License-Identifier: MIT
// freehold check-preload [--json FILE] PID
// freehold check-preload [--json FILE] [--] PROGRAM ARGS...
// For each process of a tree: whether Freehold's malloc serves it, and if not, why and what to do. docs/run.md.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>

#include "cli/command.hpp"
#include "tools/launch/preload_check.hpp"
#include "tools/launch/program.hpp"
#include "tools/launch/traced_tree.hpp"
#include "tools/live/process.hpp"
#include "tools/live/refusal.hpp"
#include "tools/output/json.hpp"
#include "tools/support/arguments.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/library.hpp"
#include "tools/support/live_process.hpp"
#include "tools/support/output_file.hpp"

namespace freehold::cli {
namespace {
using nlohmann::ordered_json;

struct CheckOptions {
  std::optional<std::string> json;
};

// Equal processes are one line.
std::string table_of(const std::vector<PreloadCheck>& checks) {
  std::vector<std::pair<PreloadCheck, int>> lines;
  for (PreloadCheck one : checks) {
    one.process = 0;
    const auto known = std::ranges::find(lines, one, [](const auto& line) { return line.first; });
    if (known == lines.end())
      lines.emplace_back(std::move(one), 1);
    else
      ++known->second;
  }
  std::ranges::stable_partition(lines, [](const auto& line) { return line.first.preload != Preload::kServed; });
  std::string text;
  for (const auto& [check, count] : lines) {
    const bool is_served = check.preload == Preload::kServed;
    const std::string times = count > 1 ? fmt::format(" ({} processes)", count) : "";
    const std::string program = check.program.empty() ? "a process" : printable(check.program);
    text += fmt::format("{}{}: {}{}\n", program, times, is_served ? "served by " : "not served: ", printable(check.why));
    if (!check.way_out.empty()) text += fmt::format("  {}\n", printable(check.way_out));
  }
  const auto served = std::ranges::count(checks, Preload::kServed, &PreloadCheck::preload);
  return text + fmt::format("{} of {} processes are served by Freehold's malloc\n", served, checks.size());
}

std::string json_of(const std::vector<PreloadCheck>& checks, const std::string& library) {
  const ordered_json json = {{"format", "freehold-check-preload"},
                             {"version", 1},
                             {"library", library},
                             {"processes", list_json(checks, [](const PreloadCheck& check) {
                                return ordered_json{{"pid", check.process},
                                                    {"program", check.program},
                                                    {"served", check.preload == Preload::kServed},
                                                    {"cause", name_of(check.preload)},
                                                    {"why", check.why},
                                                    {"way_out", text_or_null(check.way_out)}};
                              })}};
  return text_of(json);
}

bool is_number(const std::string& word) {
  return !word.empty() && std::ranges::all_of(word, [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

std::vector<PreloadCheck> check_tree(const std::string& pid, const std::string& library) {
  const pid_t root = process_number("check-preload", pid);
  std::vector<PreloadCheck> checks;
  for (const pid_t process : freehold::live::family_of(root)) checks.push_back(check_preload(process, library));
  if (freehold::live::refusal_of(root) == freehold::live::LiveRefusal::kNoProcess)
    throw Failure(kExitRefused, fmt::format("there is no process {}; pgrep NAME tells its number", root));
  return checks;
}

// Starts it as 'freehold run' would, unless LD_PRELOAD names the library already: that is what is checked then.
std::vector<PreloadCheck> check_command(const std::vector<std::string>& words, const std::string& library) {
  Launch launch{.program = find_program(words.front()), .arguments = words};
  const char* const present = std::getenv("LD_PRELOAD");
  if (present == nullptr || std::string_view(present).find("libfreehold.so") == std::string_view::npos)
    launch.library = library;
  std::vector<PreloadCheck> checks;
  static_cast<void>(run_traced(launch, [&](pid_t process) { checks.push_back(check_preload(process, library, true)); }));
  return checks;
}

int run_check(const CheckOptions& options, const std::vector<std::string>& words) {
  open_standard_files();
  if (words.empty())
    throw Failure(kExitRefused,
                  "check-preload: which process, or program? freehold check-preload PID, or -- PROGRAM ARGS...");
  check_report(options.json);
  const std::string library = find_freehold_library();
  const bool is_pid = words.size() == 1 && is_number(words.front());
  const std::vector<PreloadCheck> checks = is_pid ? check_tree(words.front(), library) : check_command(words, library);
  write_report(options.json, json_of(checks, library), table_of(checks));
  const bool all = std::ranges::all_of(checks, [](const auto& check) { return check.preload == Preload::kServed; });
  return all ? 0 : 1;
}

}  // namespace

void add_check_preload(CLI::App& app, Invocation& invocation) {
  static CheckOptions options;
  Command command(
      app, "check-preload",
      "Whether Freehold's malloc serves each process of a tree: freehold check-preload PID, or -- PROGRAM ARGS...");
  command.add_option("--json", options.json, "Write JSON; - for standard output", "FILE");
  command.footer(
      "A number is that of a process that runs; it and its descendants are looked at. A program is run to its end, its "
      "standard output goes to standard error. Exit code: 0 if all are served, 1 if not. docs/run.md");
  command.on_use([&invocation] { invocation.exit_code = run_check(options, invocation.program); });
}

}  // namespace freehold::cli
