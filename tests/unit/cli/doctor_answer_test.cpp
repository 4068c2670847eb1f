// SPDX-License-Identifier: MIT
// The report on the terminal.
#include <sstream>

#include "tests/support/test.hpp"
#include "tests/unit/cli/doctor_support.hpp"
#include "tools/doctor/report/time_answer.hpp"

namespace freehold::doctor::report {
namespace {

std::string text_of(const Diagnosis& diagnosis, const std::string& page = {}) {
  return report::text_of(document_of(diagnosis, words_of(diagnosis), Gate{}, page));
}

TEST(DoctorAnswer, OfADiagnosis_HasTheVerdictBeforeTheFigures) {
  const std::string text = text_of(diagnosis_with(Cause::kRemoteFrees), "/tmp/report.html");
  std::size_t at = 0;
  for (const char* part : {"./bin/parser --input 'two words.txt'",
                           "The allocator explains 60% (50 to 70%)",
                           "Sure ",
                           "On 4 CPUs it runs 1.6 times",
                           "Do ",
                           "Run it with Freehold",
                           "freehold run -- ./bin/parser",
                           "Brings ",
                           "1.9 times (1.8 to 2.0) as fast with Freehold; jemalloc cannot be told apart from it",
                           "────",
                           "EVIDENCE",
                           "cross threads: another thread",
                           "its own locks",
                           "STEPS",
                           "LD_PRELOAD",
                           "MEASURED",
                           "jemalloc",
                           "4 copies",
                           "TRIED",
                           "1.8–2.0",
                           "CALL SITES",
                           "parse.cpp:210",
                           "LOCKS",
                           "queue.hpp:33",
                           "/tmp/report.html"}) {
    const std::size_t found = text.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << "\n" << text;
    at = found;
  }
}

TEST(DoctorAnswer, OfEveryCause_AboveTheLineIsAScreenAndNoMore) {
  for (std::size_t i = 0; i < freehold::doctor::kCauses; ++i) {
    const std::string text = text_of(diagnosis_with(static_cast<Cause>(i)));
    const std::string top = text.substr(0, text.find("────"));
    EXPECT_LT(top.size(), text.size()) << "no line is drawn";
    EXPECT_LE(std::ranges::count(top, '\n'), 14) << top;
    EXPECT_EQ(top.find("MEASURED"), std::string::npos);
  }
}

TEST(DoctorAnswer, HostileNames_DriveNoTerminal) {
  Diagnosis d = diagnosis_with(Cause::kAllocatorLock);
  const std::string evil = "\x1b]0;owned\x07\n\rrm";
  d.settings.command = {evil, evil};
  d.notes = {evil};
  d.experiment.variants[kPeerAt].name = evil;
  d.experiment.cells[0].failure = evil;
  auto recorded = attribution_with(1);
  recorded.sites[0].place.stacks[0].frames[0] = {evil, evil, 1, evil, false};
  recorded.lock_waits[0].place = recorded.sites[0].place;
  d.recorded = std::make_shared<const Attribution>(recorded);
  const std::string text = text_of(d, evil);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x07'), std::string::npos);
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

// jemalloc was not run at all, the capped arenas not on one CPU: no row of dashes, no speed-up over something else.
TEST(DoctorAnswer, OutOfTime_ShowsWhatWasMeasured) {
  Diagnosis d = diagnosis_with(Cause::kAllocatorLock);
  for (auto& cell : d.experiment.cells) {
    if (cell.variant == kPeerAt || (cell.variant == kCappedAt && cell.setting.cpus == 1)) cell.trials.clear();
  }
  d.verdict.fixes.pop_back();
  const std::string text = text_of(d);
  EXPECT_NE(text.find("There was no time for jemalloc"), std::string::npos) << text;
  EXPECT_EQ(text.find("\njemalloc"), std::string::npos);
  EXPECT_NE(text.find("glibc with 2 arenas       -        2.96 s        2.45 s        2.32 s"), std::string::npos) << text;
}

// Without a verdict the reader is told what would decide it, by the command for that.
TEST(DoctorAnswer, Undecided_SaysWhatDecides) {
  const std::string text = text_of(diagnosis_with(Cause::kUndecided));
  const std::string top = text.substr(0, text.find("────"));
  EXPECT_NE(top.find("Decide "), std::string::npos) << top;
  EXPECT_NE(top.find("freehold doctor --repeat 15 -- ./bin/parser"), std::string::npos) << top;
  EXPECT_EQ(top.find("Brings"), std::string::npos) << top;
}

}  // namespace
}  // namespace freehold::doctor::report
