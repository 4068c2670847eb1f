// SPDX-License-Identifier: MIT
// The simulated machine against the axioms of the memory model (axiomatic.hpp), program by program: every outcome that the
// machine shows must be allowed, and it must show every outcome that is allowed and that one order of execution explains.
// The others, which it cannot show (sim/README.md), are counted. The programs are the standard ones, these with all orders
// and fences, all small ones of two threads, and random ones; those of the latter two are a sample, of which
// FREEHOLD_TEST_SCALE takes more.
#include <cstdio>

#include "tests/litmus/machine.hpp"
#include "tests/litmus/standard_programs.hpp"
#include "tests/support/test.hpp"

namespace freehold::litmus {
namespace {

using Order = std::memory_order;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}
std::uint64_t scale() { return from_environment("FREEHOLD_TEST_SCALE", 1); }

// ---- the comparison

// Compares program after program, and says in the end how much the machine has shown.
class Comparison {
 public:
  Comparison() = default;
  Comparison(const Comparison&) = delete;
  Comparison& operator=(const Comparison&) = delete;
  ~Comparison() {
    std::printf("[ compared ] %u programs: %u outcomes shown\n", programs_, count(Needs::kNothing));
    std::printf("             not shown: %u of load buffering, %u of a modification order, %u of an order of seq_cst\n",
                count(Needs::kLoadBuffering), count(Needs::kModificationOrder), count(Needs::kOrderOfSeqCst));
  }

  void add(const Program& program) {
    ++programs_;
    const Allowed allowed = allowed_by_axioms(program);
    const Shown shown = shown_by_machine(program);
    std::string wrong;
    if (!shown.result.ok()) wrong += " the exploration failed;";
    for (const std::string& outcome : shown.outcomes)
      if (!allowed.outcomes.contains(outcome)) wrong += " shows " + outcome + ", which is forbidden;";
    for (const auto& [outcome, needs] : allowed.outcomes) {
      ++outcomes_[static_cast<unsigned>(needs)];
      const bool is_shown = shown.outcomes.contains(outcome);
      if (is_shown && needs != Needs::kNothing) wrong += " shows " + outcome + ", which no order of execution explains;";
      if (!is_shown && needs == Needs::kNothing) wrong += " does not show " + outcome + ";";
    }
    if (wrong.empty()) return;
    ++disagreements_;
    ADD_FAILURE() << text(program) << ":" << wrong;
  }

  // Once something is wrong, more of the same says nothing.
  [[nodiscard]] bool goes_on() const noexcept { return disagreements_ < 10; }
  [[nodiscard]] unsigned count(Needs needs) const noexcept { return outcomes_[static_cast<unsigned>(needs)]; }

 private:
  unsigned programs_ = 0, disagreements_ = 0;
  std::array<unsigned, 4> outcomes_{};
};

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

// ---- the tests

TEST(MachineAgainstAxioms, StandardPrograms_AllOutcomes_Same) {
  Comparison comparison;
  for (const Known& known : kStandard) comparison.add(parse(known.program));
  EXPECT_GT(comparison.count(Needs::kLoadBuffering), 0u);
  EXPECT_GT(comparison.count(Needs::kModificationOrder), 0u);
  EXPECT_GT(comparison.count(Needs::kOrderOfSeqCst), 0u);
}

TEST(MachineAgainstAxioms, StandardShapes_OtherOrdersAndFences_Same) {
  Comparison comparison;
  std::set<std::string> seen;
  for (const Known& known : kStandard) {
    const Variants variants(parse(known.program));
    if (!seen.insert(text(variants.at(0))).second) continue;  // another line has these accesses, too
    sample(30 * scale(), variants.count(), [&](std::uint64_t number) {
      if (comparison.goes_on()) comparison.add(variants.at(number));
    });
  }
}

TEST(MachineAgainstAxioms, SmallPrograms_AllOutcomes_Same) {
  Comparison comparison;
  sample(4'000 * scale(), kSmallPrograms, [&](std::uint64_t number) {
    if (comparison.goes_on()) comparison.add(small_program(number));
  });
}

TEST(MachineAgainstAxioms, RandomPrograms_AllOutcomes_Same) {
  Comparison comparison;
  const std::uint64_t seed = from_environment("FREEHOLD_TEST_SEED", scale() == 1 ? 1 : std::random_device{}());
  std::printf("FREEHOLD_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  RandomPrograms programs(seed);
  for (std::uint64_t i = 0; i < 2'000 * scale() && comparison.goes_on(); ++i) comparison.add(programs.next());
}

}  // namespace
}  // namespace freehold::litmus
