// SPDX-License-Identifier: MIT
// How the tests of this folder start their scenarios.
#pragma once
#include "tests/support/emulated.hpp"
#include "tests/support/process.hpp"
#include "tests/support/test.hpp"

// The build says where they are (CMakeLists.txt beside this file); the check that headers compile alone does not.
#if !defined(FREEHOLD_SCENARIO)
#define FREEHOLD_SCENARIO ""
#define FREEHOLD_LIBRARY ""
#endif

namespace freehold::test {

enum class Malloc { kSystem, kFreehold };

// Under the given malloc; the rest of the environment, FREEHOLD_… too, is inherited.
inline Command under(Malloc which, std::vector<std::string> argv) {
  Command command{std::move(argv)};
  command.environment = {{"LD_PRELOAD", which == Malloc::kFreehold ? FREEHOLD_LIBRARY : ""}};
  return command;
}

inline Command scenario(std::vector<std::string> arguments, Malloc which = Malloc::kFreehold) {
  arguments.insert(arguments.begin(), FREEHOLD_SCENARIO);
  return under(which, std::move(arguments));
}

// For what grows by the process's resident memory: the kernel's collector of huge pages fills up to 4 MiB of a chunk at any
// moment.
inline Command without_huge_pages(Command command) {
  command.environment.emplace_back("FREEHOLD_HUGE_PAGES", "off");
  return command;
}

// How often a scenario does something that takes an emulator much longer.
inline std::string fewer_if_emulated(int usual, int emulated_count) {
  return std::to_string(emulated() ? emulated_count : usual);
}

// Runs a scenario that says itself whether all was well.
inline Outcome expect_passes(const Command& command) {
  Outcome outcome = run(command);
  EXPECT_TRUE(outcome.ok()) << outcome.describe();
  return outcome;
}
inline Outcome expect_passes(const std::string& name) { return expect_passes(scenario({name})); }

// One figure of a scenario that has to pass; NaN if it is not there, which compares as false.
inline double figure_of(const Outcome& outcome, const std::string& name) {
  const auto all = outcome.figures();
  const auto found = all.find(name);
  return found != all.end() ? found->second : __builtin_nan("");
}
inline double figure_of(const Command& command, const std::string& name) { return figure_of(expect_passes(command), name); }

}  // namespace freehold::test
