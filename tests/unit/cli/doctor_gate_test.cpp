// SPDX-License-Identifier: MIT
// --fail-if: what it understands, what it answers, and what it says of what it does not understand.
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/doctor/gate.hpp"
#include "cli/doctor/results_json.hpp"
#include "cli/support/failure.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/cli/doctor_support.hpp"

namespace freehold::cli::doctor {
namespace {

Facts some_facts() {
  Facts facts;
  facts.figures = {{"allocator", {0.1, 0.2, 0.3}},      {"lost", {0.4, 0.5, 0.6}},       {"speedup", {1.5, 1.6, 1.7}},
                   {"gain(freehold)", {1.8, 1.9, 2.0}}, {"gain(my lib)", {0.9, 1, 1.1}}, {"memory(best)", {0.5, 0.5, 0.5}}};
  facts.flags = {{"failed", true}, {"failed(freehold)", false}, {"noisy", false}};
  facts.cause = name_of(Cause::kAllocatorLock);
  return facts;
}

Answer answer(const std::string& text, const Facts& facts = some_facts()) {
  return Condition("--fail-if", text, report_words()).judge(facts).answer;
}

TEST(DoctorCondition, Understood_AnsweredByTheLimits) {
  const std::vector<std::pair<std::string, Answer>> table{
      {"allocator > 9%", Answer::kYes},
      {"allocator > 0.09", Answer::kYes},
      {"allocator>9%", Answer::kYes},
      {"allocator > 10%", Answer::kUndecided},  // its lower limit is 10%
      {"allocator >= 10%", Answer::kYes},
      {"allocator > 25 %", Answer::kUndecided},
      {"allocator > 30%", Answer::kNo},
      {"allocator >= 30%", Answer::kUndecided},
      {"allocator < 30%", Answer::kUndecided},
      {"allocator <= 30%", Answer::kYes},
      {"allocator < 10%", Answer::kNo},
      {"gain(freehold) > 1.5", Answer::kYes},
      {"gain( freehold ) > 1.5x", Answer::kYes},
      {"gain(my lib) > 1.05", Answer::kUndecided},
      {"gain(\"my lib\") > 1.2", Answer::kNo},
      {"gain('my lib') > 1.2", Answer::kNo},
      {"gain(jemalloc) > 1", Answer::kUndecided},  // was not measured
      {"memory(best) < 0.6", Answer::kYes},
      {"speedup < 1.2", Answer::kNo},
      {"cause == lock", Answer::kYes},
      {"cause == allocator-lock", Answer::kYes},
      {"cause == allocator", Answer::kYes},
      {"cause == own", Answer::kNo},
      {"cause != own", Answer::kYes},
      {"cause = own-lock", Answer::kNo},
      {"failed", Answer::kYes},
      {"failed(freehold)", Answer::kNo},
      {"failed(jemalloc)", Answer::kUndecided},
      {"not failed", Answer::kNo},
      {"!noisy", Answer::kYes},
      {"not not noisy", Answer::kNo},
      {"not allocator > 20%", Answer::kUndecided},
      {"allocator > 20% and lost > 70%", Answer::kNo},
      {"allocator > 20% and lost > 30%", Answer::kUndecided},
      {"allocator > 20% or lost > 30%", Answer::kYes},
      {"allocator > 20% || lost > 70%", Answer::kUndecided},
      {"lost > 70% and noisy or failed", Answer::kYes},  // "and" binds more tightly
      {"lost > 70% and (noisy or failed)", Answer::kNo},
      {"lost > 30% && !noisy && cause == lock", Answer::kYes},
      {"((((lost > 30%))))", Answer::kYes},
      {"\tlost\n>\n30%", Answer::kYes},
  };
  for (const auto& [text, expected] : table) EXPECT_EQ(answer(text), expected) << text;
}

TEST(DoctorCondition, NotUnderstood_OneLineWithTheWayOut) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"", "a figure is missing"},
      {"   ", "a figure is missing"},
      {"alocator > 10%", "'alocator' is not one of allocator"},
      {"allocator", "one of >, >=, <, <="},
      {"allocator >", "a number belongs"},
      {"allocator > ten", "allocator > 10%"},
      {"allocator > 10", "10%"},
      {"allocator > 110%", "a share"},
      {"allocator > -1%", "a number belongs"},
      {"allocator > nan", "a number belongs"},
      {"allocator > inf", "a number belongs"},
      {"allocator > 1e400", "a number belongs"},
      {"allocator == 10%", "never equal"},
      {"allocator != 10%", "never equal"},
      {"allocator => 10%", "never equal"},
      {"allocator > 10%%", "after its end"},
      {"allocator > 10% lost > 2%", "'and' or 'or'"},
      {"allocator > 0.1pct", "behind the number"},
      {"allocator > 10pct", "10%"},
      {"allocator(freehold) > 1%", "without parentheses"},
      {"gain > 1", "of which treatment"},
      {"gain() > 1", "of which treatment"},
      {"gain(freehold > 1", "does not end"},
      {"gain(freehold) > 20%", "1.1 for a tenth more"},
      {"cause", "cause == allocator"},
      {"cause == ", "is no cause"},
      {"cause == weather", "there are allocator, own"},
      {"cause > lock", "== or !="},
      {"failed > 1", "after its end"},
      {"(lost > 1%", "')' is missing"},
      {"lost > 1%)", "after its end"},
      {"and", "'and' is not one of"},
      {"lost > 1% and", "a figure is missing"},
      {"lost > 1% or or lost > 2%", "'or' is not one of"},
      {"not", "a figure is missing"},
      {"lost > 1% # comment", "after its end"},
      {"lost\x01> 1%", "?"},
      {"\xff\xfe", "a figure belongs"},
      {std::string(3000, ' '), "characters"},
      {std::string(200, '(') + "lost > 1%" + std::string(200, ')'), "parentheses within each other"},
  };
  for (const auto& [text, expected] : table) {
    try {
      static_cast<void>(answer(text));
      ADD_FAILURE() << "understood: " << text;
    } catch (const Failure& failure) {
      const std::string line = failure.what();
      EXPECT_EQ(failure.exit_code(), kExitRefused);
      EXPECT_EQ(line.rfind("--fail-if: '", 0), 0u) << line;
      EXPECT_NE(line.find(expected), std::string::npos) << line;
      EXPECT_EQ(line.find_first_of("\n\r\t\x01"), std::string::npos) << line;
      EXPECT_LT(line.size(), 600u) << line;
    }
  }
}

// VerdictText of the grammar and rubbish, thrown together: it is understood, or refused in one line, and never anything
// else.
TEST(DoctorCondition, Rubbish_UnderstoodOrRefused) {
  std::istringstream text_of_pieces(
      "allocator lost gain (freehold) ( ) > <= == 10% 1.5 0 cause lock and or not ! && noisy failed % \" 9e99 . - x "
      "\xc3\xa4");
  std::vector<std::string> pieces{" ", std::string(1, '\0')};
  for (std::string piece; text_of_pieces >> piece;) pieces.push_back(piece);
  std::mt19937 random(13);
  int understood = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (unsigned piece = random() % 9; piece > 0; --piece)
      text += pieces[random() % pieces.size()] + (random() % 2 ? " " : "");
    try {
      const Condition condition("--fail-if", text, report_words());
      ++understood;
      // Kleene: a condition and its negation never agree, but for being undecided.
      const Answer yes = condition.judge(some_facts()).answer;
      const Answer no = answer("not (" + text + ")");
      EXPECT_EQ(static_cast<int>(yes) + static_cast<int>(no), 2) << text;
    } catch (const Failure& failure) {
      EXPECT_EQ(std::string(failure.what()).find('\n'), std::string::npos) << text;
    }
  }
  EXPECT_GT(understood, 20);
}

// Whatever is decided within limits is what every value within them says.
TEST(DoctorCondition, Decided_AgreesWithEveryValueWithinTheLimits) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> any(0, 1);
  for (int i = 0; i < 2000; ++i) {
    const double a = any(random), b = any(random), limit = std::round(any(random) * 100) / 100;
    Facts facts;
    facts.figures["lost"] = {std::min(a, b), (a + b) / 2, std::max(a, b)};
    const std::string text = "lost > " + std::to_string(limit);
    const Answer whole = answer(text, facts);
    bool some = false, all = true;
    for (int step = 0; step <= 50; ++step) {
      const double value = std::min(a, b) + std::abs(a - b) * step / 50;
      some = some || value > limit;
      all = all && value > limit;
    }
    EXPECT_EQ(whole, all ? Answer::kYes : some ? Answer::kUndecided : Answer::kNo) << text;
  }
}

TEST(DoctorGate, OfAReport_HasItsFigures) {
  const Facts facts = facts_of(results_json(diagnosis_with(Cause::kRemoteFrees)));
  EXPECT_EQ(facts.cause, name_of(Cause::kRemoteFrees));
  // 0.6 of the time is lost, of that 0.61 is the allocator's.
  EXPECT_NEAR(facts.figures.at("allocator").value, 0.366, 1e-9);
  EXPECT_NEAR(facts.figures.at("allocator").low, 0.57 * 0.5, 1e-9);
  EXPECT_EQ(facts.figures.at("gain(arenas)").value, 1.1);
  EXPECT_EQ(facts.figures.at("gain(best)").low, 1.8);
  EXPECT_NEAR(facts.figures.at("memory(arenas)").value, 80.0 / 130, 1e-6);
  EXPECT_EQ(facts.flags.at("failed"), false);
}

// A decided verdict that does not name the allocator is an answer to a gate about it, also where what was tried differed.
TEST(DoctorGate, CauseOfItsOwn_AllocatorIsExcluded) {
  Diagnosis diagnosis = diagnosis_with(Cause::kOwnLock);
  diagnosis.verdict.allocator_share = {0, 0, 0};
  diagnosis.verdict.lost = {0.5, 0.6, 0.7};
  const Facts facts = facts_of(results_json(diagnosis));
  EXPECT_LE(facts.figures.at("allocator").high, 0.1);
  EXPECT_EQ(Condition("--fail-if", "allocator > 10%", report_words()).judge(facts).answer, Answer::kNo);
  diagnosis.verdict.cause = Cause::kUndecided;
  diagnosis.verdict.lost = {0, 0.05, 0.11};
  EXPECT_LE(facts_of(results_json(diagnosis)).figures.at("allocator").high, 0.11) << "no more than is lost";
}

TEST(DoctorGate, Text_SaysWhetherTheConditionHoldsAndWhyItIsOpen) {
  Facts facts;
  facts.figures["lost"] = {0.1, 0.2, 0.3};
  const auto text = [&facts](const char* condition) {
    return text_of(judge(std::vector{Condition("--fail-if", condition, report_words())}, facts));
  };
  EXPECT_TRUE(text("lost > 5%").starts_with("fails: the condition holds"));
  EXPECT_TRUE(text("lost > 50%").starts_with("passes: the condition does not hold"));
  EXPECT_NE(text("lost > 20%").find("both sides"), std::string::npos);
  EXPECT_EQ(text("bound > 2").find("both sides"), std::string::npos) << "it was not measured";
}

TEST(DoctorMarkdown, HostileNames_StayText) {
  Diagnosis d = diagnosis_with(Cause::kAllocatorLock);
  d.settings.command = {"/x/a|b`<script>\n*c*"};
  const Gate gate =
      judge(conditions_of("--fail-if", std::vector<std::string>{"lost > 10%"}, report_words()), facts_of(results_json(d)));
  const std::string page = markdown_of(results_json(d), gate);
  EXPECT_EQ(page.find("<script"), std::string::npos) << page;
  EXPECT_NE(page.find("a\\|b\\`&lt;script&gt;?\\*c\\*"), std::string::npos) << page;
  EXPECT_NE(page.find("❌ fails"), std::string::npos) << page;
  EXPECT_NE(page.find("| Freehold ← | 1.9 | 1.8–2.0 |"), std::string::npos) << page;
  // Every row of a table has as many columns as its head.
  std::istringstream lines(page);
  long columns = 0;
  for (std::string line; std::getline(lines, line);) {
    long bars = 0;
    for (std::size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\') ? 1 : 0;
    if (!line.starts_with("|"))
      columns = 0;
    else if (columns == 0)
      columns = bars;
    else
      EXPECT_EQ(bars, columns) << line;
  }
}

}  // namespace
}  // namespace freehold::cli::doctor
