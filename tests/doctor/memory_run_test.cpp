// SPDX-License-Identifier: MIT
// `freehold doctor --memory` as a user types it: the commands of docs/memory.md, its files, and what it refuses. Whether it
// is right is the corpus's business.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/measured.hpp"

namespace freehold::tests {
namespace {
using nlohmann::json;

// The commands that the page shows, without their comments.
std::vector<std::string> commands_of_page() {
  constexpr std::string_view kBegin = "    freehold ";
  std::ifstream in(FREEHOLD_MEMORY_PAGE);
  std::vector<std::string> commands;
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(kBegin)) commands.push_back(line.substr(kBegin.size(), line.find(" #") - kBegin.size()));
  return commands;
}

TEST(DoctorMemory, CommandsOfThePage_SayWhatTheProgramHolds) {
  const Folder folder;
  const auto commands = commands_of_page();
  ASSERT_GE(commands.size(), 4u);
  for (const std::string& command : commands) {
    std::vector<std::string> words;
    for (const std::string& word : words_of(command)) {
      // As typed, but two rounds with one treatment: the options are what is tested here.
      if (word == "--budget" || word == "20s") continue;
      if (word == "--" && command.find("--repeat") == std::string::npos)
        words.insert(words.end(), {"--repeat", "2", "--allocators", "arenas"});
      words.push_back(word == "./prog" ? FREEHOLD_MEMORY_REASONS : word.starts_with("memory.") ? folder / word : word);
      if (word == "./prog") words.emplace_back("capacity");
    }
    const Ended ended = freehold(words);
    EXPECT_TRUE(ended.exited_with(0)) << command << '\n' << ended.err;
    EXPECT_NE(ended.out.find("Answer   It takes "), std::string::npos) << command << '\n' << ended.out;
    EXPECT_NE(ended.out.find("live data"), std::string::npos) << ended.out;
  }
  EXPECT_NE(content_of(folder / "memory.md").find("| share | mean | resident peak | what |"), std::string::npos);
  const json report = results_in(folder / "memory.json");
  EXPECT_EQ(report.at("schema"), "freehold-doctor-memory/1");
  double sum = 0;
  for (const json& part : report.at("verdict").at("parts")) {
    EXPECT_GE(part.at("mean_bytes").get<double>(), 0) << part;
    sum += part.at("mean_bytes").get<double>();
  }
  EXPECT_NEAR(sum, report.at("verdict").at("mean_bytes").get<double>(), 1);
  EXPECT_EQ(report.at("trials").at(0).at("trials").size(), 2u);
  ASSERT_FALSE(report.at("recording").at("sites").empty());
  EXPECT_NE(report["recording"]["sites"][0].at("site").get<std::string>().find("memory_reasons.cpp"), std::string::npos);
}

TEST(DoctorMemory, OptionsOfTheOtherQuestion_AreRefusedInOneLine) {
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{
           {"--threads", "1,2"}, {"--env", "N"}, {"--throughput", "([0-9]+)"}, {"--pprof", "x"}, {"--work", "fixed"}}) {
    std::vector<std::string> words{"doctor", "--memory"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "true"});
    const Ended ended = freehold(words);
    EXPECT_TRUE(ended.exited_with(2)) << options[0];
    EXPECT_EQ(ended.err, "freehold: --memory: " + options[0] + " is for the question of time; leave it out\n");
  }
}

// Each of its processes ends while it is looked at, sooner or later.
TEST(DoctorMemory, ProgramOfManyShortProcesses_TheirEndsAreNoError) {
  const Ended ended = freehold({"doctor", "--memory", "--repeat", "2", "--allocators", "arenas", "--", "sh", "-c",
                                "i=0; while [ $i -lt 150 ]; do /bin/true; /bin/ls >/dev/null; i=$((i+1)); done"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_NE(ended.out.find("Answer   It takes "), std::string::npos) << ended.out;
}

std::vector<double> seconds_of_runs(const std::string& file) {
  std::vector<double> seconds;
  const json report = results_in(file);
  for (const json& cell : report.at("trials")) {
    EXPECT_TRUE(cell.at("failure").is_null()) << cell;
    for (const json& trial : cell.at("trials")) seconds.push_back(trial.at("wall_s").get<double>());
  }
  return seconds;
}

// They keep the number, and nothing of what they had.
TEST(DoctorMemory, ProgramThatOthersExecute_IsJudgedByItsOwnRecording) {
  const json report = doctor_report({"--memory", "--repeat", "2", "--allocators", "arenas,caches,trimmed"},
                                    {"env", "sh", "-c", "exec " + built("keeps")});
  EXPECT_EQ(report.at("verdict").at("cause"), "live-data") << report.at("verdict");
}

TEST(DoctorMemory, Holes_ALineSaysWhichCallsPinThem) {
  const json report = doctor_report({"--memory", "--repeat", "2", "--allocators", "freehold,arenas,caches,trimmed"},
                                    {FREEHOLD_MEMORY_REASONS, "survivors"});
  EXPECT_EQ(report.at("verdict").at("cause"), "holes") << report.at("verdict");
  const std::string notes = report.at("notes").dump();
  EXPECT_NE(notes.find(" of free memory are pinned by "), std::string::npos) << notes;
  EXPECT_NE(notes.find("rebuilt::block"), std::string::npos) << notes;
}

// First run, recorded run, a second one: 1.2 s at least. In what is left of 3 s four treatments have no room, of 3.2 s.
TEST(DoctorMemory, Budget_IsKeptAndSaysWhatWasLeftOut) {
  const Folder folder;
  const Ended ended = freehold({"doctor", "--memory", "--budget", "3s", "--allocators", "freehold,trimmed,caches,arenas",
                                "--json", folder / "m.json", "--", built("keeps")});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_NE(ended.out.find("Left out, to end within 3 s: "), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("freehold. A longer --budget"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("includes them."), std::string::npos) << ended.out;
  const json report = results_in(folder / "m.json");
  EXPECT_GE(report.at("trials").at(0).at("trials").size(), 2u);
  double seconds = 0;
  for (const double one : seconds_of_runs(folder / "m.json")) seconds += one;
  EXPECT_LE(seconds, 3);
}

// Quick until the budget is divided; then the first treatment takes all of what is left.
TEST(DoctorMemory, TreatmentForWhichTimeRanOut_IsNamed) {
  const Folder folder;
  const std::string runs = folder / "runs";
  const Ended ended = freehold(
      {"doctor", "--memory", "--budget", "4s", "--allocators", "arenas,caches", "--json", folder / "m.json", "--", "sh",
       "-c", "echo x >> " + runs + "; if [ $(wc -l < " + runs + ") -gt 3 ]; then sleep 4; else sleep 0.1; fi"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err << ended.out;
  EXPECT_NE(ended.out.find("Left out, to end within 4 s: "), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("glibc, no caches. A longer --budget includes them."), std::string::npos) << ended.out;
  const json report = results_in(folder / "m.json");
  for (const json& fix : report.at("fixes"))
    EXPECT_TRUE(fix.at("name") != "glibc, no caches" || fix.at("saved_bytes").is_null()) << fix;
}

TEST(DoctorMemory, NoProgramOrOneThatFails_IsRefusedInOneLine) {
  const Ended none = freehold({"doctor", "--memory"});
  EXPECT_TRUE(none.exited_with(2));
  EXPECT_EQ(none.err, "freehold: --memory: which program? freehold doctor --memory -- PROGRAM ARGS…\n");
  expect_refused(freehold({"doctor", "--memory", "--", "false"}), "freehold: false fails as it is: exit code 1");
}

// Another program fills a tmpfs during all runs; this one holds a few MiB, and none of that.
TEST(DoctorMemory, FilesThatAnotherProgramWritesIntoTmpfs_AreNotTheProgramsOwn) {
  const Folder folder;
  std::atomic<bool> is_over = false;
  std::jthread other([&] {
    const std::string name = "/dev/shm/freehold-others-" + std::to_string(::getpid());
    std::ofstream file(name, std::ios::binary);
    std::filesystem::remove(name);
    const std::string step(64 << 10, 'x');
    for (int written = 0; written < 512 && !is_over; ++written) {
      file << step << std::flush;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  const Ended ended = freehold(
      {"doctor", "--memory", "--repeat", "2", "--allocators", "arenas", "--json", folder / "m.json", "--", built("keeps")});
  is_over = true;
  ASSERT_TRUE(ended.exited_with(0)) << ended.err;
  const json report = results_in(folder / "m.json");
  for (const json& trial : report.at("trials").at(0).at("trials")) EXPECT_EQ(trial.at("files_bytes"), 0) << trial;
  EXPECT_EQ(report.at("verdict").at("cause"), "live-data") << ended.out;
}

// ---- the page and the gate --------------------------------------------------------------------------------------------

TEST(DoctorMemory, FailOn_ExitCodesAndAnswers) {
  const std::tuple<const char*, int, const char*> cases[] = {
      {"live-data,leak,one-block,mixed", 1, "fails: --fail-on live-data"},
      {"stacks", 0, "passes: --fail-on stacks: the cause is "}};
  for (const auto& [causes, exit_code, answer] : cases) {
    const Folder folder;
    const Ended ended = freehold({"doctor", "--memory", "--repeat", "2", "--allocators", "arenas", "--fail-on", causes,
                                  "--summary", folder / "m.md", "--", built("keeps")});
    EXPECT_TRUE(ended.exited_with(exit_code)) << causes << ended.status << ended.err << ended.out;
    EXPECT_NE(ended.out.find(answer), std::string::npos) << ended.out;
    EXPECT_NE(content_of(folder / "m.md").find(answer), std::string::npos);
  }
  expect_refused(freehold({"doctor", "--memory", "--fail-on", "own-lock", "--", "true"}), "live-data, leak, ");
}

// ---- servers ----------------------------------------------------------------------------------------------------------

TEST(DoctorMemory, ServerWithALoad_RunsUntilTheLoadEnds) {
  const Folder folder;
  const std::string load = built("serving") + ' ' + (folder / "socket") + " 500; echo x >> " + (folder / "loads");
  const Ended ended = freehold({"doctor", "--memory", "--repeat", "2", "--allocators", "freehold", "--load", load, "--json",
                                folder / "m.json", "--", built("serving"), folder / "socket"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err << ended.out;
  EXPECT_EQ(seconds_of_runs(folder / "m.json").size(), 4u);
  EXPECT_EQ(content_of(folder / "loads"), "x\nx\nx\nx\nx\n") << "one for each run, the recorded one, too";
  const json report = results_in(folder / "m.json");
  EXPECT_FALSE(report.at("recording").is_null());
}

}  // namespace
}  // namespace freehold::tests
