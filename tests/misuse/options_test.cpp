// SPDX-License-Identifier: MIT
// The options of checked mode: each switches what it says and nothing else; what is reported goes on, ends, or is listed as
// they say; a wrong value is one line, and the default stands.
#include <gtest/gtest.h>

#include <regex>

#include "tests/support/emulated.hpp"
#include "tests/support/process.hpp"

namespace freehold::test {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

Outcome run_kind(const std::string& kind, const Options& options) {
  Command command{{FREEHOLD_MISUSE_PROGRAM, kind}};
  command.environment = {{"LD_PRELOAD", FREEHOLD_LIBRARY}, {"FREEHOLD_CHECK", "1"}};
  command.environment.insert(command.environment.end(), options.begin(), options.end());
  command.timeout_seconds = 60;
  return run(command);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::size_t count_reports(const Outcome& outcome) {
  std::size_t reports = 0;
  for (const std::string& line : lines_of(outcome.err))
    reports += std::regex_match(line, std::regex("freehold: [^:]+: 0x[0-9a-f]+"));
  return reports;
}

void expect_silent(const Outcome& outcome) {
  EXPECT_TRUE(outcome.ok()) << outcome.describe();
  EXPECT_EQ(outcome.err, "");
}
void expect_ended(const Outcome& outcome, const std::string& kind) {
  EXPECT_EQ(outcome.signal, SIGABRT) << outcome.describe();
  EXPECT_EQ(outcome.err.rfind("freehold: " + kind + ": 0x", 0), 0u) << outcome.err;
}

struct Switch {
  const char* option;
  const char* kind;  // what it finds
  const char* report;
};
constexpr Switch kSwitches[] = {
    {"FREEHOLD_CHECK_FAMILY", "new_free", "free of a block by another family"},
    {"FREEHOLD_CHECK_SIZES", "sized_delete_too_small", "free of a block with a wrong size or alignment"},
    {"FREEHOLD_CHECK_CANARY", "overflow_small_by_1", "write behind the end of a block"},
    {"FREEHOLD_CHECK_FILL", "write_after_free_small_seen_at_exit", "write to a freed block"}};

TEST(CheckedOptions_OneSwitchedOff, NothingOfItIsReported) {
  for (const Switch& one : kSwitches) expect_silent(run_kind(one.kind, {{one.option, "0"}}));
}

TEST(CheckedOptions_OneSwitchedOff, TheOthersStillReport) {
  for (const Switch& off : kSwitches)
    for (const Switch& on : kSwitches)
      if (&off != &on) expect_ended(run_kind(on.kind, {{off.option, "0"}}), on.report);
}

TEST(CheckedOptions_AllSwitchedOff, DoubleAndWrongFreesAreReported) {
  Options options = {{"FREEHOLD_CHECK_QUARANTINE", "0"}, {"FREEHOLD_CHECK_CONTENTS", "none"}};
  for (const Switch& one : kSwitches) options.emplace_back(one.option, "0");
  expect_ended(run_kind("double_free_at_once", options), "double free");
  expect_ended(run_kind("free_inside_a_small_block", options), "free of a pointer into the middle of a block");
  expect_ended(run_kind("realloc_of_static_data", options), "free of a pointer that is not from this allocator");
}

TEST(CheckedOptions_NotInTheMode, NoneOfThemSwitchesAnythingOn_WhatIsSeenForNothingIsReported) {
  Command command{{FREEHOLD_MISUSE_PROGRAM, "overflow_small_by_1"}};
  command.environment = {{"LD_PRELOAD", FREEHOLD_LIBRARY}, {"FREEHOLD_CHECK_CANARY", "1"}, {"FREEHOLD_CHECK_LEAKS", "1"}};
  expect_silent(run(command));
  command.environment.emplace_back("FREEHOLD_CHECK", "0");
  expect_silent(run(command));
  // misuse.table has all of these, where no emulator is needed.
  for (const auto& [kind, report] : {std::pair{"double_free_then_trim", "double free"},
                                     {"free_of_the_stack", "free of a pointer that is not from this allocator"},
                                     {"free_inside_a_run", "free of a pointer into the middle of a block"}}) {
    command.argv[1] = kind;
    expect_ended(run(command), report);
  }
}

TEST(CheckedOptions_AbortOff, EachMisuseIsReportedOnceAndTheProgramGoesOn) {
  for (const char* kind : {"double_free_at_once", "free_of_static_data", "free_inside_a_small_block", "new_free",
                           "sized_delete_too_small", "overflow_small_by_1", "realloc_inside_a_small_block"}) {
    const Outcome outcome = run_kind(kind, {{"FREEHOLD_CHECK_ABORT", "0"}});
    EXPECT_TRUE(outcome.ok()) << kind << ": " << outcome.describe();
    EXPECT_EQ(outcome.out, "still alive\n") << kind;
    EXPECT_EQ(count_reports(outcome), 1u) << kind << ": " << outcome.err;
  }
}

TEST(CheckedOptions_AbortOff, ALookCountsAllDamagedBlocksAndReportsEach) {
  const Outcome outcome = run_kind("overflow_of_three_seen_on_demand", {{"FREEHOLD_CHECK_ABORT", "0"}});
  EXPECT_TRUE(outcome.ok()) << outcome.describe();
  EXPECT_EQ(outcome.out, "found 3\nstill alive\n");
  EXPECT_EQ(count_reports(outcome), 3u) << outcome.err;
}

TEST(CheckedOptions_Contents, NewBlocksHaveTheByte) {
  EXPECT_EQ(run_kind("uninitialised_read_small", {}).out, "contents: be\nstill alive\n");
  EXPECT_EQ(run_kind("uninitialised_read_small", {{"FREEHOLD_CHECK_CONTENTS", "0"}}).out, "contents: 00\nstill alive\n");
  EXPECT_EQ(run_kind("uninitialised_read_large", {{"FREEHOLD_CHECK_CONTENTS", "17"}}).out, "contents: 11\nstill alive\n");
}

TEST(CheckedOptions_Contents, None_BlocksAreLeftAsTheyWere) {
  // Nothing else writes to the block either, and it is handed out again.
  const Outcome outcome =
      run_kind("uninitialised_read_small",
               {{"FREEHOLD_CHECK_CONTENTS", "none"}, {"FREEHOLD_CHECK_FILL", "0"}, {"FREEHOLD_CHECK_QUARANTINE", "0"}});
  EXPECT_TRUE(outcome.ok()) << outcome.describe();
  EXPECT_EQ(outcome.out.find("contents: be"), std::string::npos) << outcome.out;
}

TEST(CheckedOptions_Random, AddressesAreInNoOrder) {
  const double ascending = run_kind("legal_order_of_addresses", {{"FREEHOLD_CHECK_RANDOM", "1"}}).figures()["ascending"];
  EXPECT_GE(ascending, 10);  // out of 63; each with one chance in two, about
  EXPECT_LE(ascending, 53);
}

TEST(CheckedOptions_Stacks, TheReportNamesTheProgram) {
  const Outcome without = run_kind("double_free_at_once", {});
  const Outcome with = run_kind("double_free_at_once", {{"FREEHOLD_CHECK_STACKS", "8"}});
  expect_ended(with, "double free");
  EXPECT_GT(lines_of(with.err).size(), lines_of(without.err).size() + 1) << with.err;
  EXPECT_NE(with.err.find("misuse_malloc_program"), std::string::npos) << with.err;
  EXPECT_EQ(without.err.find("misuse_malloc_program"), std::string::npos) << without.err;
}

TEST(CheckedOptions_Leaks, ListedByPlaceAndTheProgramsEndIsItsOwn) {
  const Outcome plain = run_kind("leak_of_a_thousand_blocks", {});
  const Outcome listed = run_kind("leak_of_a_thousand_blocks", {{"FREEHOLD_CHECK_LEAKS", "1"}});
  expect_silent(plain);
  EXPECT_TRUE(listed.ok()) << listed.describe();
  EXPECT_EQ(listed.out, plain.out);
  const std::vector<std::string> lines = lines_of(listed.err);
  ASSERT_GE(lines.size(), 2u) << listed.err;
  EXPECT_TRUE(std::regex_match(lines[0], std::regex("freehold: leaked: [0-9]+ bytes in [0-9]+ blocks"))) << lines[0];
  EXPECT_TRUE(std::regex_search(listed.err, std::regex("99000 bytes in 1000 blocks"))) << listed.err;
}

TEST(CheckedOptions_WrongValue, OneLineThatNamesItAndTheDefaultStands) {
  for (const char* option :
       {"FREEHOLD_CHECK_FAMILY", "FREEHOLD_CHECK_SIZES", "FREEHOLD_CHECK_CANARY", "FREEHOLD_CHECK_FILL",
        "FREEHOLD_CHECK_QUARANTINE", "FREEHOLD_CHECK_RANDOM", "FREEHOLD_CHECK_CONTENTS", "FREEHOLD_CHECK_LEAKS",
        "FREEHOLD_CHECK_STACKS", "FREEHOLD_CHECK_ABORT", "FREEHOLD_GUARD_RATE"}) {
    const Outcome outcome = run_kind("leak_of_nothing", {{option, "wrong"}});
    EXPECT_TRUE(outcome.ok()) << option << ": " << outcome.describe();
    EXPECT_EQ(lines_of(outcome.err).size(), 1u) << option << ": " << outcome.err;
    EXPECT_NE(outcome.err.find(option), std::string::npos) << outcome.err;
  }
  for (const Switch& one : kSwitches) {
    const Outcome outcome = run_kind(one.kind, {{one.option, "2"}});
    EXPECT_EQ(outcome.signal, SIGABRT) << one.option << ": " << outcome.describe();
    EXPECT_NE(outcome.err.find(one.report), std::string::npos) << outcome.err;
  }
}

TEST(CheckedReport_NobodyReadsIt, TheProcessEndsAllTheSame) {
  FREEHOLD_SKIP_IF_EMULATED("the shell starts the program without it");
  Command command{{"sh", "-c", std::string("exec ") + FREEHOLD_MISUSE_PROGRAM + " double_free_at_once 2>&-"}};
  command.environment = {{"LD_PRELOAD", FREEHOLD_LIBRARY}, {"FREEHOLD_CHECK", "1"}};
  command.timeout_seconds = 60;
  EXPECT_EQ(run(command).signal, SIGABRT);
}

}  // namespace
}  // namespace freehold::test
