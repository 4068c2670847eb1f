// SPDX-License-Identifier: MIT
// stress_scenario NAME [ARGUMENT…]: runs one scenario. No name: lists them.
#include "tests/stress/scenarios/scenario.hpp"
#include "tests/support/active_malloc.hpp"

int main(int argc, char** argv) {
  using namespace freehold::test;
  if (argc < 2) {
    for (const auto& [name, body] : scenarios()) std::puts(name.c_str());
    return 0;
  }
  require(!freehold_is_expected() || freehold_answers(), "another malloc answers");
  const auto found = scenarios().find(argv[1]);
  if (found == scenarios().end()) fail(std::string("no scenario ") + argv[1]);
  found->second(Arguments(argv + 2, argv + argc));
  return 0;
}
