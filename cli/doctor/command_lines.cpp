// SPDX-License-Identifier: MIT
#include "cli/doctor/command_lines.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#include "cli/support/library.hpp"
#include "cli/support/shell.hpp"
#include "freehold/doctor/run/launch.hpp"

namespace freehold::cli::doctor {
namespace {
using freehold::doctor::Cell;
using freehold::doctor::LaunchOptions;

// "env LD_PRELOAD=/x.so taskset -c 0 ./prog"
std::string shell_line(const Settings& settings, const freehold::doctor::Command& command, const LaunchOptions& options) {
  std::string line;
  for (const auto& [name, value] : options.environment) line += ' ' + shell_word(name + '=' + value);
  std::string preload = options.preload.empty() ? "" : std::getenv("LD_PRELOAD") != nullptr ? std::getenv("LD_PRELOAD") : "";
  for (auto library = options.preload.rbegin(); library != options.preload.rend(); ++library)
    preload = preload_value(*library, preload.c_str());
  if (!preload.empty()) line += ' ' + shell_word("LD_PRELOAD=" + preload);
  if (!line.empty()) line = "env" + line + ' ';
  if (!options.cpus.empty()) line += fmt::format("taskset -c {} ", fmt::join(options.cpus, ","));
  line += shell_words(command.arguments);
  if (!settings.input.empty()) line += " < " + shell_word(settings.input);
  return line;
}

std::string shell_text(const Settings& settings, const freehold::doctor::Command& command,
                       const std::vector<LaunchOptions>& copies) {
  if (copies.size() == 1) return shell_line(settings, command, copies.front());
  std::string text;
  for (const LaunchOptions& options : copies) text += shell_line(settings, command, options) + " & ";
  return text + "wait";
}

}  // namespace

std::vector<Repetition> repetitions_of(const Diagnosis& diagnosis, const std::vector<unsigned>& cpus) {
  std::vector<Repetition> repetitions;
  for (const Cell& cell : diagnosis.experiment.cells) {
    const auto command = freehold::doctor::command_of(diagnosis.settings, diagnosis.program, cell.setting);
    const auto copies = freehold::doctor::launch_options_of(diagnosis.settings, diagnosis.experiment.variants[cell.variant],
                                                            cell.setting, cpus);
    repetitions.push_back({.what = describe(diagnosis.experiment, cell.variant, cell.setting),
                           .shell = shell_text(diagnosis.settings, command, copies)});
  }
  return repetitions;
}

}  // namespace freehold::cli::doctor
