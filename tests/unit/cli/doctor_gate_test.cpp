// SPDX-License-Identifier: MIT
// --fail-on and --worse-than: what they answer, and what they say of what they do not understand. The page of --summary.
#include <sstream>

#include "tests/support/test.hpp"
#include "tests/unit/cli/doctor_support.hpp"
#include "tools/doctor/report/compare_answer.hpp"
#include "tools/doctor/report/gate.hpp"
#include "tools/doctor/report/time_answer.hpp"
#include "tools/support/quantities.hpp"

namespace freehold::doctor::report {
namespace {

TEST(DoctorGate, FailOn_AnsweredByTheCause) {
  const struct {
    Question question;
    const char* list;
    const char* cause;
    Answer answer;
  } table[] = {
      {Question::kTime, "own-lock", "own-lock", Answer::kYes},
      {Question::kTime, "own-lock", "serial", Answer::kNo},
      {Question::kTime, "own-lock,serial", "serial", Answer::kYes},
      {Question::kTime, "allocator", "remote-frees", Answer::kYes},
      {Question::kTime, "allocator", "mixed", Answer::kYes},
      {Question::kTime, "allocator", "own-sharing", Answer::kNo},
      {Question::kTime, "allocator", "none", Answer::kNo},
      {Question::kTime, "allocator", "undecided", Answer::kUndecided},
      {Question::kTime, "allocator,undecided", "undecided", Answer::kYes},
      {Question::kMemory, "leak,live-data", "leak", Answer::kYes},
      {Question::kMemory, "allocator", "holes", Answer::kYes},
      {Question::kMemory, "allocator", "stacks", Answer::kNo},
      {Question::kMemory, "leak", "undecided", Answer::kUndecided},
  };
  for (const auto& [question, list, cause, answer] : table)
    EXPECT_EQ(FailOn(question, list).judge(cause).fails, answer) << list << ", " << cause;
  EXPECT_EQ(text_of(FailOn(Question::kTime, "serial,own-lock").judge("serial")),
            "❌ fails: --fail-on serial,own-lock: the cause is serial");
  EXPECT_TRUE(text_of(FailOn(Question::kTime, std::nullopt).judge("serial")).empty());
}

std::string refusal_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit_code(), kExitRefused);
    return failure.what();
  }
  return "understood";
}

TEST(DoctorGate, NoCauseOrPercentage_OneLineWithTheWayOut) {
  for (const char* const list : {"", "own-lock,", "weather", "own-lock,weather", "allocator > 10%", "leak", "a\x01\n"}) {
    const std::string line = refusal_of([list] { FailOn(Question::kTime, list); });
    EXPECT_TRUE(line.starts_with("--fail-on: ")) << line;
    EXPECT_TRUE(line.find("remote-frees, ") != std::string::npos || line.find("empty entry") != std::string::npos) << line;
    EXPECT_EQ(line.find_first_of("\n\x01"), std::string::npos) << line;
  }
  EXPECT_NE(refusal_of([] { FailOn(Question::kMemory, "own-lock"); }).find("live-data, leak, "), std::string::npos);
  for (const char* const text : {"", "10", "%", "ten%", "-1%", "nan%", "inf%", "1e9%", "10 %", "10%%", "10%x"})
    EXPECT_NE(refusal_of([text] { (void)parse_percentage("--worse-than", text); }).find("10%, 2.5%"), std::string::npos)
        << text;
  EXPECT_DOUBLE_EQ(parse_percentage("--worse-than", "2.5%"), 0.025);
}

// A decision within limits is what every value within them says.
TEST(DoctorGate, WorseThan_AnsweredByTheLimits) {
  const auto answer = [](double low, double high) {
    ComparisonReport report;
    report.comparison.changes.emplace_back().ratio = Estimate{low, (low + high) / 2, high};
    return worse_than(report, "10%", 0.1).fails;
  };
  EXPECT_EQ(answer(1.11, 1.2), Answer::kYes);
  EXPECT_EQ(answer(1.05, 1.2), Answer::kUndecided);
  EXPECT_EQ(answer(1.05, 1.1), Answer::kNo);
  EXPECT_EQ(answer(0.8, 0.9), Answer::kNo);
}

TEST(DoctorMarkdown, HostileNames_StayText) {
  Diagnosis d = diagnosis_with(Cause::kAllocatorLock);
  d.settings.command = {"/x/a|b`<script>\n*c*"};
  const Gate gate = FailOn(Question::kTime, "allocator").judge("allocator-lock");
  const std::string page = markdown_of(document_of(d, words_of(d), gate, ""));
  EXPECT_EQ(page.find("<script"), std::string::npos) << page;
  EXPECT_NE(page.find("a\\|b\\`&lt;script&gt;?\\*c\\*"), std::string::npos) << page;
  EXPECT_NE(page.find("❌ fails"), std::string::npos) << page;
  EXPECT_NE(page.find("| Freehold | 1.9 | 1.8–2.0 |"), std::string::npos) << page;
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
}  // namespace freehold::doctor::report
