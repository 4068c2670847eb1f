// SPDX-License-Identifier: MIT
// How one round of checked_fuzz runs: the options of checked mode that its process gets, chosen by its seed.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/pattern.hpp"

namespace freehold::fuzz {

using test::Random;

struct Settings {
  bool check = true;   // false: sampled guards alone
  bool plants = true;  // misuse, in children of fork
  bool family = true, sizes = true, canary = true, fill = true, random = true, aborts = true;
  std::size_t quarantine = 16u << 20;
  int contents = 0xbe;  // -1: left as they are
  unsigned stacks = 0, guard_rate = 0;

  // The same for the process that starts a round and for the round itself.
  static Settings of(std::uint64_t seed) {
    Random random(seed);
    Settings s;
    for (bool* option : {&s.family, &s.sizes, &s.canary, &s.fill, &s.random, &s.aborts}) *option = random.below(8) != 0;
    constexpr std::size_t kQuarantines[] = {16u << 20, 16u << 20, 1u << 20, 64u << 10, 0};
    s.quarantine = kQuarantines[random.below(5)];
    constexpr int kContents[] = {0xbe, 0xbe, 0, 17, -1};
    s.contents = kContents[random.below(5)];
    constexpr unsigned kStacks[] = {0, 0, 4, 16};
    s.stacks = kStacks[random.below(4)];
    constexpr unsigned kRates[] = {0, 0, 0, 100, 10, 1};
    s.guard_rate = kRates[random.below(6)];
    s.check = s.guard_rate == 0 || random.below(4) != 0;
    s.plants = s.check && random.below(4) != 0;
    return s;
  }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> environment() const {
    const auto flag = [](bool on) { return std::string(on ? "1" : "0"); };
    return {{"FREEHOLD_CHECK", flag(check)},
            {"FREEHOLD_CHECK_FAMILY", flag(family)},
            {"FREEHOLD_CHECK_SIZES", flag(sizes)},
            {"FREEHOLD_CHECK_CANARY", flag(canary)},
            {"FREEHOLD_CHECK_FILL", flag(fill)},
            {"FREEHOLD_CHECK_RANDOM", flag(random)},
            {"FREEHOLD_CHECK_ABORT", flag(aborts)},
            {"FREEHOLD_CHECK_QUARANTINE", std::to_string(quarantine)},
            {"FREEHOLD_CHECK_CONTENTS", contents < 0 ? "none" : std::to_string(contents)},
            {"FREEHOLD_CHECK_STACKS", std::to_string(stacks)},
            {"FREEHOLD_GUARD_RATE", std::to_string(guard_rate)}};
  }
};

}  // namespace freehold::fuzz
