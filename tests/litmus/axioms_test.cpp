// SPDX-License-Identifier: MIT
// The axioms (axiomatic.hpp) against what the literature says of the standard litmus programs.
#include "tests/litmus/axiomatic.hpp"

#include <stdexcept>

#include "tests/litmus/standard_programs.hpp"
#include "tests/support/test.hpp"

namespace freehold::litmus {
namespace {

// What the axioms say of the outcomes that fit the pattern: the least that any needs.
Verdict verdict(const Allowed& allowed, const char* pattern) {
  Verdict least = kForbidden;
  for (const auto& [outcome, needs] : allowed.outcomes)
    if (fits(outcome, pattern)) least = least ? std::min(*least, needs) : needs;
  return least;
}
Verdict verdict(const char* program, const char* pattern) { return verdict(allowed_by_axioms(parse(program)), pattern); }

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

TEST(Axioms, StandardPrograms_KnownOutcome_AsInTheLiterature) {
  for (const Known& known : kStandard)
    EXPECT_EQ(verdict(known.program, known.outcome), known.verdict) << known.name << ": " << known.program;
}

TEST(Axioms, OneThread_AnyOrders_ReadsItsOwnStores) {
  const Allowed allowed = allowed_by_axioms(parse("x=1/rlx x/rlx x+2/rlx x?3:5/rlx/rlx x/rlx"));
  ASSERT_EQ(allowed.outcomes.size(), 1u);
  EXPECT_EQ(allowed.outcomes.begin()->first, "1135;5");
}

}  // namespace
}  // namespace freehold::litmus
