// SPDX-License-Identifier: MIT
// `freehold doctor --aged` as a user types it: what it answers, and what it refuses. Whether it is right says
// script/doctor_corpus --aged.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/cli/command.hpp"
#include "tests/unit/cli/doctor_schema.hpp"
#include "tools/doctor/facts/aged.hpp"

namespace freehold::tests {
namespace {
using nlohmann::json;

std::vector<std::string> question(std::vector<std::string> options, std::vector<std::string> program) {
  std::vector<std::string> words{"doctor"};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

TEST(DoctorAged, MadeUp_EveryMallocFreshAndAged) {
  const Folder folder;
  const Ended ended = freehold(question(
      {"--aged", "--repeat", "2", "--allocators", "freehold", "--json", folder / "a.json", "--summary", folder / "a.md"},
      {FREEHOLD_AGES, "parse", "list", "nothing"}));
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_TRUE(contains(ended.out, "aged heap")) << ended.out;
  EXPECT_TRUE(contains(ended.out, "aged / fresh")) << ended.out;
  EXPECT_TRUE(contains(content_of(folder / "a.md"), "1.0 million mallocs")) << content_of(folder / "a.md");
  const json report = json::parse(content_of(folder / "a.json"));
  DoctorSchema check({FREEHOLD_DOCTOR_AGED, FREEHOLD_DOCTOR_SCHEMA});
  check.value("aged", report, "aged");
  EXPECT_EQ(report.at("complete"), true);
  EXPECT_EQ(report.at("history").at("survivors"), doctor::kMadeUpMallocs / 2);
  ASSERT_EQ(report.at("mallocs").size(), 2u);
  for (const json& malloc : report.at("mallocs")) EXPECT_EQ(malloc.at("trials"), 2) << malloc;
}

// All that is left of the history then is that its memory goes back, which is not the program's: 1.1 ms for 1.1, 6.3 if it
// counted.
TEST(DoctorAged, ProgramOfNoMallocs_IsAsFast) {
  const Folder folder;
  const Ended ended = freehold(
      question({"--aged", "--repeat", "9", "--allocators", "freehold", "--json", folder / "a.json"}, {"/bin/true"}));
  ASSERT_TRUE(ended.exited_with(0)) << ended.err;
  const json own = json::parse(content_of(folder / "a.json")).at("mallocs").at(0);
  EXPECT_LT(own.at("ratio").at("low"), 2) << own;
}

// The file of a recorded run; `sample`: FREEHOLD_PROBE_SAMPLE.
std::string recorded(const Folder& folder, const std::string& phase, const std::string& sample) {
  Process program(
      {FREEHOLD_AGES, "parse", "list", phase},
      {{"LD_PRELOAD", FREEHOLD_PROBE}, {"FREEHOLD_PROBE_DIRECTORY", folder.path()}, {"FREEHOLD_PROBE_SAMPLE", sample}});
  EXPECT_TRUE(program.wait().exited_with(0));
  for (const std::string& name : folder.names())
    if (name.ends_with(".trace")) return folder / name;
  return "no recording";
}

TEST(DoctorAged, RecordedLoad_IsPlayed) {
  const Folder folder, sampled;
  const std::string file = recorded(folder, "load", "all");
  const Ended ended = freehold(question({"--aged=" + file, "--repeat", "1", "--allocators", "freehold", "--json", "-"},
                                        {FREEHOLD_AGES, "parse", "list", "nothing"}));
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  const json report = json::parse(ended.out);
  EXPECT_EQ(report.at("recording"), file);
  EXPECT_NEAR(report.at("history").at("survivors").get<double>(), 120'000, 100);

  const auto refused = [](const std::string& history, const std::string& why) {
    expect_refused(freehold(question({"--aged=" + history}, {"/bin/true"})), why);
  };
  refused("/nowhere/history", "--aged: /nowhere/history cannot be read");
  refused(folder.file("damaged", "fhtrace"), "/damaged is too short for a recording");
  refused(folder.file("other", std::string(1000, 'x')), "/other is not a recording of this version");
  refused(recorded(sampled, "nothing", ""), "is a sample of the calls");
  std::filesystem::resize_file(file, 65536);
  refused(file, "has no allocation");
}

TEST(DoctorAged, WhatHasNoMeaning_IsRefusedInOneLine) {
  const auto refused = [](const std::vector<std::string>& options, const std::string& words) {
    expect_refused(freehold(question(options, {"/bin/true"})), words);
  };
  refused({"--aged", "--memory"}, "--aged: --memory is for other questions");
  refused({"--aged", "--threads", "1,2"}, "--aged: --threads is for the question of time");
  expect_refused(freehold({"doctor", "--aged"}), "which program?");
  expect_refused(freehold(question({"--aged"}, {"/nowhere/program"})), "/nowhere/program", 127);
  expect_refused(freehold(question({"--aged"}, {FREEHOLD_AGES, "nothing"})), "fails: exit code 2");
  expect_refused(freehold(question({"--aged"}, {built("static_program")})), "static");
  EXPECT_TRUE(freehold({"doctor", "attach", "--aged", "1"}).exited_with(2));
}

// The answer rests on the runs that were finished.
TEST(DoctorAged, CtrlC_KeepsWhatWasFinished) {
  const Folder folder;
  Process doctor({command_path(), "doctor", "--aged", "--allocators", "freehold", "--repeat", "1000", "--json",
                  folder / "a.json", "--", FREEHOLD_AGES, "parse", "list", "nothing"});
  std::this_thread::sleep_for(std::chrono::seconds(5));
  ::kill(doctor.pid(), SIGINT);
  const Ended ended = doctor.wait();
  EXPECT_TRUE(ended.exited_with(130)) << ended.status << ended.err;
  const json report = json::parse(content_of(folder / "a.json"));
  EXPECT_EQ(report.at("complete"), false);
  EXPECT_GE(report.at("mallocs").at(0).at("trials"), 1);
}

}  // namespace
}  // namespace freehold::tests
