// SPDX-License-Identifier: MIT
// The outcomes that the simulated machine shows of litmus programs. Of the standard ones the literature says which it must
// show and which it must not. Of all, these with other orders and fences, small ones of two threads, and random ones, a
// digest is stored. It was made when every outcome was compared with an enumeration of RC11's axioms: the machine showed
// none that is forbidden, and each that is allowed and that one order of execution explains (sim/README.md). A change
// of a digest needs that comparison again.
#include <cstdio>
#include <stdexcept>

#include "tests/litmus/machine.hpp"
#include "tests/litmus/standard_programs.hpp"
#include "tests/support/test.hpp"

namespace freehold::litmus {
namespace {

using Order = std::memory_order;

// ---- programs

constexpr Order kOrdersOfLoads[] = {Order::relaxed, Order::acquire, Order::seq_cst};
constexpr Order kOrdersOfStores[] = {Order::relaxed, Order::release, Order::seq_cst};
constexpr Order kOrdersOfModifications[] = {Order::relaxed, Order::acq_rel, Order::seq_cst};
constexpr unsigned kChoices = 3;

Order order_of(Kind kind, unsigned choice) {
  if (kind == Kind::kLoad) return kOrdersOfLoads[choice];
  return kind == Kind::kStore ? kOrdersOfStores[choice] : kOrdersOfModifications[choice];
}

// The same accesses with other orders, and with a fence or none between any two: all of them are numbered.
class Variants {
 public:
  explicit Variants(const Program& shape) : shape_(shape) {
    for (Thread& thread : shape_.threads) std::erase_if(thread, [](const Instruction& i) { return i.kind == Kind::kFence; });
    for (const Thread& thread : shape_.threads) choices_ += thread.empty() ? 0 : 2 * thread.size() - 1;
    for (std::size_t i = 0; i < choices_; ++i) count_ *= kChoices;
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] Program at(std::uint64_t number) const {
    const auto next = [&number] {
      const auto choice = static_cast<unsigned>(number % kChoices);
      number /= kChoices;
      return choice;
    };
    Program program;
    for (const Thread& thread : shape_.threads) {
      Thread& variant = program.threads.emplace_back();
      for (Instruction instruction : thread) {
        const unsigned fence = variant.empty() ? 0 : next();
        if (fence != 0) variant.push_back({.order = fence == 1 ? Order::acq_rel : Order::seq_cst});
        instruction.order = order_of(instruction.kind, next());
        variant.push_back(instruction);
      }
    }
    return program;
  }

 private:
  Program shape_;
  std::size_t choices_ = 0;
  std::uint64_t count_ = 1;
};

// So many numbers below `of`, spread evenly and without a pattern; all of them if there are no more.
template <class Visit>
void sample(std::uint64_t count, std::uint64_t of, Visit&& visit) {
  constexpr std::uint64_t kStride = 1'000'003;  // a prime that divides no count here: every number comes once
  for (std::uint64_t i = 0; i < std::min(count, of); ++i) visit(i * kStride % of);
}

// Two threads of two accesses each, to two locations: loads, stores and exchanges of three orders. Every store has its own
// value.
Program small_program(std::uint64_t number) {
  Program program;
  std::uint8_t value = 1;
  for (unsigned thread = 0; thread < 2; ++thread) {
    program.threads.emplace_back();
    for (unsigned i = 0; i < 2; ++i) {
      constexpr Kind kKinds[] = {Kind::kLoad, Kind::kStore, Kind::kExchange};
      Instruction instruction;
      instruction.location = static_cast<std::uint8_t>(number % 2);
      instruction.kind = kKinds[number / 2 % 3];
      instruction.order = order_of(instruction.kind, static_cast<unsigned>(number / 6 % 3));
      if (instruction.may_write()) instruction.operand = value++;
      program.threads.back().push_back(instruction);
      number /= 18;
    }
  }
  return program;
}
constexpr std::uint64_t kSmallPrograms = 18ull * 18 * 18 * 18;

TEST(LitmusProgram, Text_OfEveryInstruction_ReadAgain) {
  const char* const all = "x=1/rel F/sc y/acq | z+2/ar x<3/rlx x?0:2/sc/rlx | y~1:0/ar/acq";
  EXPECT_EQ(text(parse(all)), all);
  EXPECT_EQ(parse(all).locations(), 3u);
  EXPECT_EQ(parse(all).instructions(), 7u);
}
TEST(LitmusProgram, Text_ThatIsNone_Refused) {
  for (const char* wrong : {"w=1/rlx", "x=/rlx", "x=1", "x/seq", "x?0/sc/sc", "x?0:1/sc", "x=1/rlx/rlx", "F"}) {
    EXPECT_THROW(parse(wrong), std::invalid_argument) << wrong;
  }
}
TEST(LitmusProgram, Outcome_FailureForNoReason_Marked) {
  const Program program = parse("x~0:1/rlx/rlx y/rlx");
  Observed observed;
  EXPECT_EQ(outcome(program, observed), "0!0;00");
  observed.swapped[0] = true;
  observed.last[0] = 1;
  EXPECT_EQ(outcome(program, observed), "00;10");
}

// ---- the machine

// Shows what the machine makes of program after program: how many outcomes, and a digest of all (FNV-1a).
class Digest {
 public:
  void add(const Program& program) {
    const Shown shown = shown_by_machine(program);
    EXPECT_TRUE(shown.result.ok()) << text(program);
    mix(text(program));
    for (const std::string& outcome : shown.outcomes) mix(outcome);
    outcomes += static_cast<unsigned>(shown.outcomes.size());
  }

  std::uint64_t value = 0xcbf29ce484222325;
  unsigned outcomes = 0;

 private:
  void mix(const std::string& text) noexcept {
    for (const char c : text + '\n') value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
};

TEST(MachineOutcomes, StandardPrograms_KnownOutcome_AsInTheLiterature) {
  Digest digest;
  for (const Known& known : kStandard) {
    const Program program = parse(known.program);
    digest.add(program);
    bool is_shown = false;
    for (const std::string& outcome : shown_by_machine(program).outcomes) is_shown |= fits(outcome, known.outcome);
    EXPECT_EQ(is_shown, known.verdict == kPlain) << known.name << ": " << known.program;
  }
  EXPECT_EQ(digest.outcomes, 594u);
  EXPECT_EQ(digest.value, 0xa8e0f93911efaf51u);
}

TEST(MachineOutcomes, OneThread_AnyOrders_ReadsItsOwnStores) {
  EXPECT_EQ(shown_by_machine(parse("x=1/rlx x/rlx x+2/rlx x?3:5/rlx/rlx x/rlx")).outcomes, std::set<std::string>{"1135;5"});
}

TEST(MachineOutcomes, StandardShapes_OtherOrdersAndFences_AsStored) {
  Digest digest;
  std::set<std::string> seen;
  for (const Known& known : kStandard) {
    const Variants variants(parse(known.program));
    if (!seen.insert(text(variants.at(0))).second) continue;  // another line has these accesses, too
    sample(30, variants.count(), [&](std::uint64_t number) { digest.add(variants.at(number)); });
  }
  EXPECT_EQ(digest.outcomes, 8472u);
  EXPECT_EQ(digest.value, 0x870f6dd7bd076c9bu);
}

TEST(MachineOutcomes, SmallPrograms_AsStored) {
  Digest digest;
  sample(4'000, kSmallPrograms, [&](std::uint64_t number) { digest.add(small_program(number)); });
  EXPECT_EQ(digest.outcomes, 11759u);
  EXPECT_EQ(digest.value, 0xc0ccc5ab0a65221au);
}

TEST(MachineOutcomes, RandomPrograms_AsStored) {
  Digest digest;
  RandomPrograms programs(1);
  for (int i = 0; i < 2'000; ++i) digest.add(programs.next());
  EXPECT_EQ(digest.outcomes, 10246u);
  EXPECT_EQ(digest.value, 0x01c94bc8d2cecb81u);
}

}  // namespace
}  // namespace freehold::litmus
