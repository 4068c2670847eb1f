// SPDX-License-Identifier: MIT
#include "cli/experiments.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/library.hpp"

namespace freehold::cli {
namespace {

constexpr const char* kLaboratory = "freehold-lab";

// A name without a path is looked up in PATH.
std::string laboratory() {
  try {
    return find_own_program(kLaboratory);
  } catch (const Failure&) {
    return kLaboratory;
  }
}

}  // namespace

const Experiment* find_experiment(std::string_view name) {
  const auto found = std::ranges::find(kExperiments, name, &Experiment::name);
  return found == kExperiments.end() ? nullptr : &*found;
}

void add_experiments(CLI::App& app) {
  for (const Experiment& one : kExperiments) app.add_subcommand(one.name, one.summary)->group("Experiments (freehold-lab)");
}

void start_experiment(char** argv) {
  std::vector<char*> words;
  std::string name = kFreehold;
  words.push_back(name.data());
  for (char** word = argv + 1; *word != nullptr; ++word) words.push_back(*word);
  words.push_back(nullptr);
  const std::string program = laboratory();
  ::execvp(program.c_str(), words.data());
  const int error = errno;
  if (error != ENOENT)
    throw Failure(kExitRefused, fmt::format("cannot start {}: {}", printable(program), error_text(error)));
  throw Failure(kExitRefused, fmt::format("{}: {} is not installed: Debian's package {} has it, or build it from the "
                                          "source with Boost and libuv: docs/install.md",
                                          argv[1], kLaboratory, kLaboratory));
}

}  // namespace freehold::cli
