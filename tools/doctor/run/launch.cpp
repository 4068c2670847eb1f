// SPDX-License-Identifier: MIT
#include "tools/doctor/run/launch.hpp"

#include <string_view>

namespace freehold::doctor {
namespace {

std::string with_number(std::string text, unsigned n) {
  constexpr std::string_view kMark = "{n}";
  const std::string number = std::to_string(n);
  for (auto at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at + number.size()))
    text.replace(at, kMark.size(), number);
  return text;
}

}  // namespace

Command command_of(const Settings& settings, const std::string& program, const Setting& setting) {
  Command command;
  command.file = program;
  command.arguments = settings.command;
  if (settings.parallelism == ParallelismControl::kArgument) {
    for (std::string& argument : command.arguments) argument = with_number(argument, setting.threads);
  }
  if (!settings.input.empty()) command.input = settings.input;
  command.keep_output = !settings.server.throughput.empty() && settings.server.load.empty();
  return command;
}

std::vector<LaunchOptions> launch_options_of(const Settings& settings, const Variant& variant, const Setting& setting,
                                             const std::vector<unsigned>& cpus) {
  LaunchOptions options{.preload = variant.preload, .environment = variant.environment};
  if (settings.parallelism == ParallelismControl::kEnvironment)
    options.environment.emplace_back(settings.parallelism_text, std::to_string(setting.threads));
  std::vector<LaunchOptions> copies(setting.copies, options);
  if (setting.copies * setting.cpus > cpus.size()) return copies;
  if (setting.copies == 1 && setting.cpus == cpus.size()) return copies;  // the caller's affinity mask as it is
  auto next = cpus.begin();
  for (LaunchOptions& each : copies) {
    each.cpus.assign(next, next + setting.cpus);
    next += setting.cpus;
  }
  return copies;
}

}  // namespace freehold::doctor
