#include "cli/doctor/placement.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "cli/support/library.hpp"
#include "cli/support/shell.hpp"

namespace freehold::cli::doctor {
namespace {
using freehold::doctor::Cell;
using freehold::doctor::Command;
using freehold::doctor::Knob;
using freehold::doctor::Setting;
using freehold::doctor::Surroundings;
using freehold::doctor::Variant;

std::string with_number(std::string text, unsigned n) {
  constexpr std::string_view kMark = "{n}";
  const std::string number = std::to_string(n);
  for (auto at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at + number.size()))
    text.replace(at, kMark.size(), number);
  return text;
}

// "env LD_PRELOAD=/x.so taskset -c 0 ./prog"
std::string shell_line(const Settings& settings, const Command& command, const Surroundings& place) {
  std::string line;
  for (const auto& [name, value] : place.environment) line += ' ' + shell_word(name + '=' + value);
  std::string preload = place.preload.empty() ? "" : std::getenv("LD_PRELOAD") != nullptr ? std::getenv("LD_PRELOAD") : "";
  for (auto library = place.preload.rbegin(); library != place.preload.rend(); ++library)
    preload = preload_value(*library, preload.c_str());
  if (!preload.empty()) line += ' ' + shell_word("LD_PRELOAD=" + preload);
  if (!line.empty()) line = "env" + line + ' ';
  if (!place.cpus.empty()) line += fmt::format("taskset -c {} ", fmt::join(place.cpus, ","));
  line += shell_words(command.arguments);
  if (!settings.input.empty()) line += " < " + shell_word(settings.input);
  return line;
}

std::string shell_text(const Settings& settings, const Command& command, const std::vector<Surroundings>& places) {
  if (places.size() == 1) return shell_line(settings, command, places.front());
  std::string text;
  for (const Surroundings& place : places) text += shell_line(settings, command, place) + " & ";
  return text + "wait";
}

}  // namespace

Command command_of(const Settings& settings, const std::string& program, const Setting& setting) {
  Command command;
  command.file = program;
  command.arguments = settings.command;
  if (settings.knob == Knob::kArgument) {
    for (std::string& argument : command.arguments) argument = with_number(argument, setting.threads);
  }
  if (!settings.input.empty()) command.input = settings.input;
  command.show_output = settings.show_output;
  command.keep_output = !settings.server.throughput.empty() && settings.server.load.empty();
  return command;
}

std::vector<Surroundings> places_of(const Settings& settings, const Variant& variant, const Setting& setting,
                                    const std::vector<unsigned>& cpus) {
  Surroundings place{.preload = variant.preload, .environment = variant.environment};
  if (settings.knob == Knob::kEnvironment)
    place.environment.emplace_back(settings.knob_text, std::to_string(setting.threads));
  std::vector<Surroundings> places(setting.copies, place);
  if (setting.copies * setting.cpus > cpus.size()) return places;
  if (setting.copies == 1 && setting.cpus == cpus.size()) return places;  // as it is
  auto next = cpus.begin();
  for (Surroundings& each : places) {
    each.cpus.assign(next, next + setting.cpus);
    next += setting.cpus;
  }
  return places;
}

std::vector<Repetition> repetitions_of(const Diagnosis& diagnosis, const std::vector<unsigned>& cpus) {
  std::vector<Repetition> repetitions;
  for (const Cell& cell : diagnosis.experiment.cells) {
    const Command command = command_of(diagnosis.settings, diagnosis.program, cell.setting);
    const auto places = places_of(diagnosis.settings, diagnosis.experiment.variants[cell.variant], cell.setting, cpus);
    repetitions.push_back({.what = describe(diagnosis.experiment, cell.variant, cell.setting),
                           .shell = shell_text(diagnosis.settings, command, places)});
  }
  return repetitions;
}

}  // namespace freehold::cli::doctor
