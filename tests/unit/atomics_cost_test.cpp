// SPDX-License-Identifier: MIT
// The Atomics policy costs nothing: what NativeAtomics compiles to is what hand-written code compiles to, instruction by
// instruction and operand by operand. Reads the disassembly of atomics_cost_pairs.cpp, whose path is compiled in.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

using Instructions = std::vector<std::string>;

// Every function of the object file, by name; jumps are relative to its start and the function's own name is "self".
std::map<std::string, Instructions> disassemble() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(
      popen("objdump -dr --no-show-raw-insn --no-addresses '" FREEHOLD_PAIRS_OBJECT "'", "r"), pclose);
  std::map<std::string, Instructions> functions;
  std::string name;
  char buffer[512];
  while (pipe != nullptr && std::fgets(buffer, sizeof buffer, pipe.get()) != nullptr) {
    std::string line = buffer;
    if (line.starts_with("<")) {  // <name>:
      name = line.substr(1, line.find('>') - 1);
      continue;
    }
    const std::size_t begin = line.find_first_not_of(" \t");
    if (name.empty() || begin == std::string::npos || line[0] == '\n') continue;
    line = line.substr(begin, line.find_last_not_of(" \t\n") + 1 - begin);
    // Padding after and between functions.
    if (line.find("nop") != std::string::npos || line.starts_with("data16") || line == "xchg   %ax,%ax") continue;
    for (std::size_t at = line.find(name); at != std::string::npos; at = line.find(name))
      line.replace(at, name.size(), "self");
    functions[name].push_back(line);
  }
  return functions;
}

std::string joined(const Instructions& instructions) {
  std::string text;
  for (const std::string& line : instructions) text += line + "\n";
  return text;
}

class AtomicsCost : public testing::TestWithParam<const char*> {
 protected:
  static const Instructions& code(const std::string& name) {
    static const auto functions = disassemble();
    static const Instructions none;
    const auto found = functions.find(name);
    return found == functions.end() ? none : found->second;
  }
};

TEST_P(AtomicsCost, PolicyAndHand_SameInstructions) {
  const Instructions& policy = code("policy_" + std::string(GetParam()));
  const Instructions& hand = code("hand_" + std::string(GetParam()));
  ASSERT_GE(policy.size(), 2U) << "not found, or not disassembled";
  EXPECT_EQ(joined(policy), joined(hand));
}
INSTANTIATE_TEST_SUITE_P(Pairs, AtomicsCost,
                         testing::Values("push", "drain", "words", "vars", "fences", "spin", "cpu", "wait", "notify",
                                         "lock"),
                         [](const auto& pair) { return std::string(pair.param); });

class AtomicsCostControl : public AtomicsCost {};
TEST_P(AtomicsCostControl, SlightlyOtherCode_Noticed) {
  const Instructions& policy = code("policy_" + std::string(GetParam()));
  const Instructions& other = code("other_" + std::string(GetParam()));
  ASSERT_GE(other.size(), 2U);
  EXPECT_NE(joined(policy), joined(other));
}
INSTANTIATE_TEST_SUITE_P(Controls, AtomicsCostControl, testing::Values("words", "fences", "wait"),
                         [](const auto& pair) { return std::string(pair.param); });

}  // namespace
