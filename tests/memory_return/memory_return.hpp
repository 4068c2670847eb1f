// SPDX-License-Identifier: MIT
// How the tests of this folder start their scenarios: under Freehold, or, to see what others do, under another malloc:
//   FREEHOLD_TEST_MALLOC=system           glibc's
//   FREEHOLD_TEST_MALLOC=/usr/lib/x86_64-linux-gnu/libjemalloc.so.2
// Every figure is printed, whoever is judged.
#pragma once
#include <cstdlib>
#include <iostream>

#include "tests/stress/stress.hpp"

namespace freehold::test {

inline std::string malloc_under_test() {
  const char* other = std::getenv("FREEHOLD_TEST_MALLOC");
  if (other == nullptr || *other == '\0') return FREEHOLD_LIBRARY;
  return std::string(other) == "system" ? "" : other;
}

inline Command case_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), FREEHOLD_SCENARIO);
  Command command{std::move(arguments)};
  command.environment = {{"LD_PRELOAD", malloc_under_test()}};
  command.timeout_seconds = 120;
  return command;
}

inline Outcome run_and_print(const Command& command) {
  Outcome outcome = expect_passes(command);
  std::cout << outcome.out << std::flush;
  return outcome;
}
inline Outcome run_and_print(std::vector<std::string> arguments) { return run_and_print(case_of(std::move(arguments))); }

}  // namespace freehold::test
