// SPDX-License-Identifier: MIT
// `freehold doctor --memory` as a user types it: the commands of docs/memory.md, its files, and what it refuses. Whether it
// is right is memory_faults/run.py's business.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/command.hpp"

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

// As a shell would split them, with single quotes.
std::vector<std::string> words_of(const std::string& command) {
  std::istringstream in(command);
  std::vector<std::string> words;
  bool is_quoted = false;
  for (std::string word; in >> word;) {
    if (is_quoted)
      words.back() += ' ' + word;
    else
      words.push_back(word);
    is_quoted = std::ranges::count(words.back(), '\'') % 2 == 1;
  }
  for (std::string& word : words) std::erase(word, '\'');
  return words;
}

TEST(DoctorMemory, CommandsOfThePage_SayWhatTheProgramHolds) {
  const Folder folder;
  const auto commands = commands_of_page();
  ASSERT_GE(commands.size(), 4u);
  for (const std::string& command : commands) {
    std::vector<std::string> words;
    for (const std::string& word : words_of(command)) {
      // As typed, but two rounds with one treatment: the options are what is tested here.
      if (word == "--quick") continue;
      if (word == "--" && command.find("--repeat") == std::string::npos)
        words.insert(words.end(), {"--repeat", "2", "--allocators", "arenas"});
      words.push_back(word == "./prog" ? FREEHOLD_CAPACITY : word.starts_with("memory.") ? folder / word : word);
    }
    const Ended ended = freehold(words);
    EXPECT_TRUE(ended.exited_with(0)) << command << '\n' << ended.err;
    EXPECT_TRUE(ended.out.starts_with("It takes ")) << command << '\n' << ended.out;
    EXPECT_NE(ended.out.find("live data"), std::string::npos) << ended.out;
  }
  EXPECT_NE(content_of(folder / "memory.md").find("| what | mean over the run | at the resident peak |"), std::string::npos);
  const json report = json::parse(content_of(folder / "memory.json"));
  EXPECT_EQ(report.at("schema"), "freehold-doctor-memory/1");
  double sum = 0;
  for (const json& part : report.at("verdict").at("parts")) {
    EXPECT_GE(part.at("mean_bytes").get<double>(), 0) << part;
    sum += part.at("mean_bytes").get<double>();
  }
  EXPECT_NEAR(sum, report.at("verdict").at("mean_bytes").get<double>(), 1);
  EXPECT_EQ(report.at("trials").at(0).at("trials").size(), 2u);
  ASSERT_FALSE(report.at("recording").at("sites").empty());
  EXPECT_NE(report["recording"]["sites"][0].at("site").get<std::string>().find("capacity.cpp"), std::string::npos);
}

TEST(DoctorMemory, OptionsOfTheOtherQuestion_AreRefusedInOneLine) {
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{{"--threads", "1,2"},
                                                                                       {"--env", "N"},
                                                                                       {"--throughput", "([0-9]+)"},
                                                                                       {"--export", "pprof=x"},
                                                                                       {"--work", "fixed"}}) {
    std::vector<std::string> words{"doctor", "--memory"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "true"});
    const Ended ended = freehold(words);
    EXPECT_TRUE(ended.exited_with(2)) << options[0];
    EXPECT_EQ(ended.err, "freehold: --memory: " + options[0] + " is for the question of time; leave it out\n");
  }
}

TEST(DoctorMemory, TwoOutputsToOneFile_AreRefusedInOneLine) {
  const Folder folder;
  const std::string file = folder / "m.x";
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"doctor", "--memory", "--json", file, "--summary", file, "--", "true"},
           {"doctor", "--memory", "--json", file, "--html", folder / "./m.x", "--", "true"},
           {"doctor", "--threads", "1,2", "--env", "N", "--json", file, "--summary", file, "--", "true"},
           {"doctor", "--threads", "1,2", "--env", "N", "--export", "pprof=" + file, "--summary", file, "--", "true"},
           {"doctor", "compare", "--json", file, "--summary", file, "a.json", "b.json"}}) {
    const Ended ended = freehold(words);
    EXPECT_TRUE(ended.exited_with(2)) << ended.err;
    EXPECT_TRUE(ended.err.starts_with("freehold: --")) << ended.err;
    EXPECT_NE(ended.err.find(" would both write "), std::string::npos) << ended.err;
    EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << ended.err;
    EXPECT_EQ(content_of(file), "");
  }
}

// Each of its processes ends while it is looked at, sooner or later.
TEST(DoctorMemory, ProgramOfManyShortProcesses_TheirEndsAreNoError) {
  const Ended ended = freehold({"doctor", "--memory", "--repeat", "2", "--allocators", "arenas", "--", "sh", "-c",
                                "i=0; while [ $i -lt 150 ]; do /bin/true; /bin/ls >/dev/null; i=$((i+1)); done"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_TRUE(ended.out.starts_with("It takes ")) << ended.out;
}

std::vector<double> seconds_of_runs(const std::string& file) {
  std::vector<double> seconds;
  const json report = json::parse(content_of(file));
  for (const json& cell : report.at("trials")) {
    EXPECT_TRUE(cell.at("failure").is_null()) << cell;
    for (const json& trial : cell.at("trials")) seconds.push_back(trial.at("wall_s").get<double>());
  }
  return seconds;
}

// What a child did not free goes with it: the program never has more than one of them.
TEST(DoctorMemory, ChildrenOneAfterTheOther_DoNotAddUp) {
  const Folder folder;
  const Ended ended =
      freehold({"doctor", "--memory", "--repeat", "2", "--allocators", "arenas,caches,trimmed", "--json", folder / "m.json",
                "--", "sh", "-c", built("keeps") + "; " + built("keeps") + "; " + built("keeps") + "; true"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  const json report = json::parse(content_of(folder / "m.json"));
  EXPECT_EQ(report.at("verdict").at("cause"), "live-data") << ended.out;
  constexpr double kEach = 24 << 20;
  EXPECT_NEAR(report.at("recording").at("peak_live_bytes").get<double>() / kEach, 1, 0.2);
  EXPECT_LT(report.at("recording").at("end_live_bytes").get<double>(), 1.2 * kEach);
}

// They keep the number, and nothing of what they had.
TEST(DoctorMemory, ProgramThatOthersExecute_IsJudgedByItsOwnRecording) {
  const Folder folder;
  const Ended ended = freehold({"doctor", "--memory", "--repeat", "2", "--allocators", "arenas,caches,trimmed", "--json",
                                folder / "m.json", "--", "env", "sh", "-c", "exec " + built("keeps")});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_EQ(json::parse(content_of(folder / "m.json")).at("verdict").at("cause"), "live-data") << ended.out;
}

// The probe's with its own, as a service does that detaches. It records on.
TEST(DoctorMemory, ProgramThatClosesAllFiles_IsJudgedAsOthers) {
  const Folder folder;
  const Ended ended = freehold({"doctor", "--memory", "--repeat", "2", "--allocators", "arenas,caches,trimmed", "--json",
                                folder / "m.json", "--", built("keeps"), "closed"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_EQ(json::parse(content_of(folder / "m.json")).at("verdict").at("cause"), "live-data") << ended.out;
}

// The probe's file may not grow. That ends no program, and no half of a recording is believed.
TEST(DoctorMemory, ProgramUnderALimitOfFileSizes_IsUndecidedAndSaysWhy) {
  const Folder folder;
  const Ended ended =
      freehold({"doctor", "--memory", "--repeat", "2", "--allocators", "arenas,caches,trimmed", "--fail-if", "free > 50%",
                "--json", folder / "m.json", "--", "prlimit", "--fsize=65536", built("keeps")});
  EXPECT_TRUE(ended.exited_with(3)) << ended.err << ended.out;
  EXPECT_NE(ended.out.find("undecided: the recording is not whole"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find(" records found no room, "), std::string::npos) << ended.out;
  EXPECT_EQ(json::parse(content_of(folder / "m.json")).at("verdict").at("doubt"), "recording-is-cut");
}

constexpr const char* kLeft = "behind when it ended";  // in the note on processes that ran on

double peak_of(const json& report) { return report.at("trials").at(0).at("trials").at(0).at("peak_bytes").get<double>(); }

// What a child holds whose parent has ended is the program's as before.
TEST(DoctorMemory, ChildWhoseParentHasEnded_IsMeasured) {
  for (const bool has_session : {false, true}) {
    const Folder folder;
    std::vector<std::string> words{"doctor", "--memory", "--repeat",        "2",  "--allocators",
                                   "arenas", "--json",   folder / "m.json", "--", built("leaves_parent")};
    if (has_session) words.emplace_back("session");
    const Ended ended = freehold(words);
    EXPECT_TRUE(ended.exited_with(0)) << ended.err;
    const json report = json::parse(content_of(folder / "m.json"));
    constexpr double kHeld = 96 << 20;
    EXPECT_NEAR(peak_of(report) / kHeld, 1, 0.2) << ended.out;
    EXPECT_EQ(ended.out.find(kLeft), std::string::npos) << ended.out;
  }
}

TEST(DoctorMemory, ProgramThatLeavesAProcessBehind_ANoteSaysSo) {
  for (const bool has_session : {false, true}) {
    const Folder folder;
    std::vector<std::string> words{"doctor", "--memory", "--repeat",        "2",  "--allocators",
                                   "arenas", "--json",   folder / "m.json", "--", built("leaves_parent"),
                                   "stays"};
    if (has_session) words.emplace_back("session");
    const Ended ended = freehold(words);
    EXPECT_TRUE(ended.exited_with(0)) << ended.err;
    EXPECT_NE(json::parse(content_of(folder / "m.json")).at("notes").dump().find(kLeft), std::string::npos) << ended.out;
  }
}

// The load's processes are not the program's, also where their parents have ended.
TEST(DoctorMemory, LoadThatLeavesAProcess_IsNotMeasured) {
  const Folder folder;
  const std::string load = built("leaves_parent") + "; " + built("serving") + ' ' + (folder / "socket") + " 20";
  const Ended ended = freehold({"doctor", "--memory", "--repeat", "1", "--allocators", "arenas", "--load", load, "--json",
                                folder / "m.json", "--", built("serving"), folder / "socket"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err << ended.out;
  constexpr double kHeld = 96 << 20;
  EXPECT_LT(peak_of(json::parse(content_of(folder / "m.json"))), kHeld / 2);
}

// First run, recorded run, a second one: 1.2 s at least. In what is left of 3 s four treatments have no room, of 3.2 s.
TEST(DoctorMemory, Budget_IsKeptAndSaysWhatWasLeftOut) {
  const Folder folder;
  const Ended ended = freehold({"doctor", "--memory", "--budget", "3s", "--allocators", "freehold,trimmed,caches,arenas",
                                "--json", folder / "m.json", "--", built("keeps")});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_NE(ended.out.find("Left out, to end within 3 s: "), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("freehold. A longer --budget includes them."), std::string::npos) << ended.out;
  const json report = json::parse(content_of(folder / "m.json"));
  EXPECT_GE(report.at("trials").at(0).at("trials").size(), 2u);
  double seconds = 0;
  for (const double one : seconds_of_runs(folder / "m.json")) seconds += one;
  EXPECT_LE(seconds, 3);
}

// Quick until the budget is divided; then the first treatment takes all of what is left.
TEST(DoctorMemory, TreatmentForWhichTimeRanOut_IsNamedAndDecidesNothing) {
  const Folder folder;
  const std::string runs = folder / "runs";
  const Ended ended =
      freehold({"doctor", "--memory", "--budget", "4s", "--allocators", "arenas,caches", "--fail-if", "saved(caches) < 50%",
                "--json", folder / "m.json", "--", "sh", "-c",
                "echo x >> " + runs + "; if [ $(wc -l < " + runs + ") -gt 3 ]; then sleep 4; else sleep 0.1; fi"});
  EXPECT_TRUE(ended.exited_with(3)) << ended.err << ended.out;
  EXPECT_NE(ended.out.find("Left out, to end within 4 s: "), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("glibc, no caches. A longer --budget includes them."), std::string::npos) << ended.out;
  for (const json& fix : json::parse(content_of(folder / "m.json")).at("fixes"))
    EXPECT_TRUE(fix.at("name") != "glibc, no caches" || fix.at("saved_bytes").is_null()) << fix;
}

TEST(DoctorMemory, NoProgramOrOneThatFails_IsRefusedInOneLine) {
  const Ended none = freehold({"doctor", "--memory"});
  EXPECT_TRUE(none.exited_with(2));
  EXPECT_EQ(none.err, "freehold: --memory: which program? freehold doctor --memory -- PROGRAM ARGS…\n");
  const Ended fails = freehold({"doctor", "--memory", "--", "false"});
  EXPECT_TRUE(fails.exited_with(2));
  EXPECT_TRUE(fails.err.starts_with("freehold: false fails as it is: exit code 1")) << fails.err;
}

// It may be seen after all, where the machine is busy with others.
TEST(DoctorMemory, ProgramThatEndsAtOnce_IsRefusedInOneLine) {
  for (int i = 0; i < 5; ++i) {
    const Ended ended = freehold({"doctor", "--memory", "--repeat", "1", "--allocators", "freehold", "--", "/bin/true"});
    if (ended.exited_with(0)) continue;
    EXPECT_TRUE(ended.exited_with(2)) << ended.err;
    EXPECT_EQ(ended.err, "freehold: /bin/true ended before its memory could be read; give it more to do\n");
  }
}

// ---- the page and the gate
// ------------------------------------------------------------------------------------------------

TEST(DoctorMemory, Page_IsWrittenBesideTheRest) {
  const Folder folder;
  const Ended ended = freehold({"doctor", "--memory", "--repeat", "2", "--allocators", "arenas", "--html",
                                folder / "memory.html", "--", FREEHOLD_CAPACITY});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  const std::string page = content_of(folder / "memory.html");
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_NE(page.find("capacity.cpp"), std::string::npos);
  const Ended none = freehold({"doctor", "--memory", "--html", "-", "--", "true"});
  EXPECT_TRUE(none.exited_with(2));
  EXPECT_EQ(none.err, "freehold: --html: the page goes to a file\n");
}

TEST(DoctorMemory, FailIf_ExitCodesAndAnswers) {
  const struct {
    const char* condition;
    int exit_code;
    const char* answer;
  } cases[] = {{"memory > 1M", 1, "FAILS: --fail-if 'memory > 1M': memory is "},
               {"memory > 1000G", 0, "holds: --fail-if 'memory > 1000G': memory is "},
               {"saved(best) > 99% or failed", 0, "holds: "}};
  for (const auto& [condition, exit_code, answer] : cases) {
    const Folder folder;
    const Ended ended = freehold({"doctor", "--memory", "--repeat", "2", "--allocators", "arenas", "--fail-if", condition,
                                  "--summary", folder / "m.md", "--", FREEHOLD_CAPACITY});
    EXPECT_TRUE(ended.exited_with(exit_code)) << condition << ended.status << ended.err;
    EXPECT_NE(ended.out.find(answer), std::string::npos) << ended.out;
    EXPECT_NE(content_of(folder / "m.md").find("| fail if |"), std::string::npos);
  }
}

TEST(DoctorMemory, ConditionThatIsWrong_IsRefusedBeforeAnythingRuns) {
  const Ended figure = freehold({"doctor", "--memory", "--fail-if", "lost > 10%", "--", "false"});
  EXPECT_TRUE(figure.exited_with(2));
  EXPECT_TRUE(figure.err.starts_with("freehold: --fail-if: 'lost > 10%': 'lost' is none of memory, peak")) << figure.err;
  const Ended treatment =
      freehold({"doctor", "--memory", "--allocators", "arenas", "--fail-if", "saved(freehold) > 10%", "--", "false"});
  EXPECT_TRUE(treatment.exited_with(2));
  EXPECT_EQ(treatment.err, "freehold: --fail-if: there is no treatment 'freehold' here; there are best, arenas\n");
}

// ---- servers
// --------------------------------------------------------------------------------------------------------------

TEST(DoctorMemory, ServerForATime_EveryRunIsEndedThen) {
  const Folder folder;
  const Ended ended = freehold({"doctor", "--memory", "--repeat", "2", "--allocators", "freehold", "--for", "300ms",
                                "--json", folder / "m.json", "--", built("serving"), folder / "socket"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err << ended.out;
  const auto seconds = seconds_of_runs(folder / "m.json");
  EXPECT_EQ(seconds.size(), 4u);
  for (const double one : seconds) EXPECT_GE(one, 0.29);
}

TEST(DoctorMemory, ServerWithALoad_RunsUntilTheLoadEnds) {
  const Folder folder;
  const std::string load = built("serving") + ' ' + (folder / "socket") + " 500; echo x >> " + (folder / "loads");
  const Ended ended = freehold({"doctor", "--memory", "--repeat", "2", "--allocators", "freehold", "--load", load, "--json",
                                folder / "m.json", "--", built("serving"), folder / "socket"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err << ended.out;
  EXPECT_EQ(seconds_of_runs(folder / "m.json").size(), 4u);
  EXPECT_EQ(content_of(folder / "loads"), "x\nx\nx\nx\nx\n") << "one for each run, the recorded one, too";
  const json report = json::parse(content_of(folder / "m.json"));
  EXPECT_FALSE(report.at("recording").is_null());
}

TEST(DoctorMemory, LoadWithoutEnd_IsEndedAfterTheTime) {
  const Folder folder;
  const Ended ended =
      freehold({"doctor", "--memory", "--repeat", "1", "--allocators", "freehold", "--for", "300ms", "--load",
                "while :; do " + built("serving") + ' ' + (folder / "socket") + " 20; done", "--ready-after", "100ms",
                "--json", folder / "m.json", "--", built("serving"), folder / "socket"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err << ended.out;
  EXPECT_EQ(seconds_of_runs(folder / "m.json").size(), 2u);
}

TEST(DoctorMemory, OptionsOfALoadWithoutALoad_AreRefusedInOneLine) {
  for (const char* option : {"--ready", "--ready-after"}) {
    const Ended ended = freehold({"doctor", "--memory", option, "1", "--", "true"});
    EXPECT_TRUE(ended.exited_with(2)) << option;
    EXPECT_EQ(ended.err, "freehold: --ready and --ready-after: for which load? --load 'COMMAND'\n");
  }
  const Ended time = freehold({"doctor", "--memory", "--for", "soon", "--", "true"});
  EXPECT_TRUE(time.exited_with(2));
  EXPECT_EQ(time.err, "freehold: --for: 'soon' is not a time: 10, 2.5s, 300ms, 2m\n");
}

TEST(DoctorMemory, UnknownAllocator_IsRefusedInOneLine) {
  const Ended ended = freehold({"doctor", "--memory", "--allocators", "nonesuch", "--", "true"});
  EXPECT_TRUE(ended.exited_with(2));
  EXPECT_TRUE(ended.err.starts_with("freehold: unknown allocator 'nonesuch'")) << ended.err;
}

}  // namespace
}  // namespace freehold::tests
