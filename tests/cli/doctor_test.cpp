// SPDX-License-Identifier: MIT
// freehold doctor from outside: options, what it leaves behind, and programs that misbehave. Its verdicts on programs with a
// known fault are tested in tests/doctor.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/cli/measured.hpp"
#include "tests/cli/terminal.hpp"
#include "tests/unit/cli/doctor_schema.hpp"

namespace freehold::tests {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

Ended doctor(std::vector<std::string> arguments, const Environment& extra = {}) {
  arguments.insert(arguments.begin(), "doctor");
  return freehold(std::move(arguments), extra);
}

// Processes whose command line has this word.
int processes_with(const std::string& word) {
  int found = 0;
  for (const auto& entry : fs::directory_iterator("/proc"))
    if (content_of(entry.path() / "cmdline").find(word) != std::string::npos) ++found;
  return found;
}
bool all_gone(const std::string& word) {
  for (int i = 0; i < 5000 && processes_with(word) > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return processes_with(word) == 0;
}

// The variant's first cell: that of all CPUs. Null: the variant was not tried.
json cell_of(const json& results, const std::string& variant) {
  const json& experiment = results.at("experiment");
  for (const json& cell : experiment.at("cells"))
    if (experiment.at("variants").at(cell.at("variant").get<std::size_t>()).at("name") == variant) return cell;
  return nullptr;
}

TEST(Doctor, ShortProgram_VerdictAndNothingLeftBehind) {
  const Folder folder;
  fs::create_directory(folder / "tmp");
  const Ended ended =
      doctor({"--repeat", "2", "--json", folder / "r.json", "--html", folder / "r.html", "--", example(), "20000"},
             {{"TMPDIR", folder / "tmp"}});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err << ended.out;
  EXPECT_EQ(ended.err, "");  // progress is for terminals
  EXPECT_NE(ended.out.find("freehold-doctor-example"), std::string::npos) << ended.out;
  const json results = results_in(folder / "r.json");
  DoctorSchema({FREEHOLD_DOCTOR_SCHEMA}).value("report", results, "report");
  EXPECT_EQ(content_of(folder / "r.html").substr(0, 15), "<!DOCTYPE html>");
  EXPECT_EQ(results.at("complete"), true);
  EXPECT_EQ(results.at("settings").at("knob"), "affinity");
  EXPECT_FALSE(results.at("recording").is_null()) << results.at("notes");
  for (const json& cell : results.at("experiment").at("cells")) {
    EXPECT_EQ(cell.at("trials").size(), 2u) << cell;
    for (const json& trial : cell.at("trials")) EXPECT_GT(trial.at("wall_s"), 0) << trial;
  }
  EXPECT_TRUE(fs::is_empty(folder / "tmp"));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"r.html", "r.json", "tmp"}));
}

// Minutes of runs are in the answer.
TEST(Doctor, FileThatCannotBeWritten_TheOthersAre) {
  const Folder folder;
  const Ended ended = doctor({"--repeat", "1", "--allocators", "freehold", "--html", "/dev/full", "--json",
                              folder / "r.json", "--summary", folder / "s.md", "--", example(), "20000"});
  EXPECT_TRUE(ended.exited_with(2)) << ended.status;
  EXPECT_EQ(ended.err, "freehold: cannot write /dev/full: No space left on device\n");
  EXPECT_NE(ended.out.find("Answer "), std::string::npos) << ended.out;
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"r.json", "s.md"}));
}

TEST(Doctor, NoProgram_TheExampleIsExamined) {
  const Folder folder;
  const Ended ended = doctor({"--budget", "8s", "--allocators", "freehold", "--json", folder / "r.json"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_EQ(ended.out.rfind("freehold doctor: the bundled example\n", 0), 0U) << ended.out;
  EXPECT_NE(content_of(folder / "r.json").find("/freehold-doctor-example\""), std::string::npos);
}

// Without --threads, too: else the program would read {n} as a number itself, and be told that it has one thread.
TEST(Doctor, ThreadsByArgument_ProgramGetsThem) {
  for (const bool are_named : {true, false}) {
    const Folder folder;
    // Notes what it was called with.
    const std::string script = folder.file("prog", "#!/bin/sh\necho \"$*\" >> " + folder / "calls" + "\n", 0755);
    std::vector<std::string> words{"--repeat", "1", "--allocators", "freehold", "--json", folder / "r.json"};
    if (are_named) words.insert(words.end(), {"--threads", "1,3"});
    words.insert(words.end(), {"--", script, "-t", "{n} threads", "file"});
    const Ended ended = doctor(words);
    EXPECT_TRUE(ended.exited_with(0)) << ended.err;
    const std::string calls = content_of(folder / "calls");
    EXPECT_NE(calls.find("-t 1 threads file\n"), std::string::npos) << calls;
    EXPECT_NE(calls.find(are_named ? "-t 3 threads file\n" : "-t 2 threads file\n"), std::string::npos) << calls;
    EXPECT_EQ(results_in(folder / "r.json").at("settings").at("knob"), "argument");
  }
}

TEST(Doctor, BadArguments_OneLineAndExit2) {
  std::vector<std::vector<std::string>> bad{{"--allocators", "none=" + built("libpreloadable.so")}};
  for (const char* const line : {"--threads 0",
                                 "--threads 1,,2 --env N",
                                 "--threads 1,2",
                                 "--threads 2 --env N",
                                 "--env ''",
                                 "--env A=B",
                                 "--env N -- true {n}",
                                 "--work hard",
                                 "--allocators nomalloc",
                                 "--allocators freehold,freehold",
                                 "--allocators ''",
                                 "--budget 0",
                                 "--budget -3",
                                 "--budget soon",
                                 "--budget nan",
                                 "--budget '5 parsecs'",
                                 "--repeat 0",
                                 "--repeat 2 --budget 5s",
                                 "--for 5s",
                                 "--for never --throughput (x)",
                                 "--ready true",
                                 "--load ''",
                                 "--load true --throughput (open",
                                 "--load true --throughput 'no group'",
                                 "--json /no/such/folder/x",
                                 "--html /",
                                 "--html -",
                                 "--bogus",
                                 "--json"})
    bad.push_back(words_of(line));
  for (std::vector<std::string>& arguments : bad) {
    SCOPED_TRACE(arguments[0] + ' ' + (arguments.size() > 1 ? arguments[1] : ""));
    arguments.insert(arguments.end(), {"--", "true"});
    expect_refused(doctor(arguments), "");
  }
}

TEST(Doctor, ProgramsThatCannotBeExamined_OneLine) {
  const Folder folder;
  const std::vector<std::tuple<std::vector<std::string>, int, std::string>> programs{
      {{folder / "missing"}, 127, "no such program"},
      {{"no-such-program-in-path"}, 127, "no such program"},
      {{folder.file("text", "words")}, 126, "chmod +x"},
      {{built("static_program")}, 2, "a static program has no dynamic linker"},
      {{"false"}, 2, "false fails as it is: exit code 1; to examine it all the same: --allow-failure"},
      {{"sh", "-c", "echo first >&2; echo the reason >&2; exit 3"}, 2, "exit code 3: the reason;"},
      {{"sh", "-c", "kill -SEGV $$"}, 2, "SIGSEGV"},
  };
  for (const auto& [program, code, text] : programs) {
    std::vector<std::string> arguments{"--budget", "20s", "--"};
    arguments.insert(arguments.end(), program.begin(), program.end());
    expect_refused(doctor(arguments), text, code);
  }
}

TEST(Doctor, ProgramThatDoesNotEnd_WayOutIsNamed) {
  const Ended ended = doctor({"--budget", "1s", "--", "sleep", "4712.5"});
  EXPECT_TRUE(ended.exited_with(2)) << ended.status;
  EXPECT_NE(ended.err.find("did not end within 1 s"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("--for"), std::string::npos) << ended.err;
  EXPECT_EQ(lines_of(ended.err), 1);
  EXPECT_EQ(processes_with("4712.5"), 0);
}

TEST(Doctor, AllowFailure_ItsExitCodeIsTheRightOne) {
  const Folder folder;
  const Ended ended = doctor({"--allow-failure", "--repeat", "1", "--allocators", "freehold", "--json", folder / "r.json",
                              "--", "sh", "-c", "case $LD_PRELOAD in *libfreehold.so*) exit 0;; esac; exit 4"});
  EXPECT_TRUE(ended.exited_with(1)) << ended.err;  // a finding: it ends well where it should not
  const json results = results_in(folder / "r.json");
  EXPECT_TRUE(cell_of(results, "system").at("failure").is_null());
  EXPECT_FALSE(cell_of(results, "freehold").at("failure").is_null());
}

TEST(Doctor, MallocBuiltIn_IsSaidAndNothingElseTried) {
  const Folder folder;
  const Ended ended = doctor({"--repeat", "1", "--json", folder / "r.json", "--", built("own_malloc")});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  const json results = results_in(folder / "r.json");
  EXPECT_EQ(cell_of(results, "freehold"), nullptr);
  EXPECT_NE(results.at("notes").dump().find("its own malloc built in"), std::string::npos) << results.at("notes");
  EXPECT_TRUE(results.at("recording").is_null());
}

// Its standard input is the command's file, from the beginning in each run.
TEST(Doctor, InputFromAFile_EachRunReadsItAll) {
  const Folder folder;
  const std::string script = folder.file("prog", "#!/bin/sh\ncat >> " + folder / "seen" + "\n", 0755);
  const std::string input = folder.file("in", "line\n");
  Process doctor({"sh", "-c",
                  command_path() + " doctor --repeat 1 --allocators freehold --json " + (folder / "r.json") + " -- " +
                      script + " < " + input});
  const Ended ended = doctor.wait();
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_GE(lines_of(content_of(folder / "seen")), 4);
  EXPECT_EQ(results_in(folder / "r.json").at("settings").at("input"), input);
}

TEST(Doctor, Server_ThroughputOfItsLoadIsWhatCounts) {
  const Folder folder;
  const std::string socket = folder / "socket";
  const Ended ended =
      doctor({"--repeat", "1", "--allocators", "freehold", "--load", built("serving") + ' ' + socket + " 2000",
              "--throughput", "rate: ([0-9.]+)/s", "--json", folder / "r.json", "--", built("serving"), socket});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err << ended.out;
  const json results = results_in(folder / "r.json");
  for (const json& cell : results.at("experiment").at("cells")) {
    EXPECT_TRUE(cell.at("failure").is_null()) << cell;
    EXPECT_GT(cell.at("trials").at(0).at("throughput"), 100) << cell;
  }
  EXPECT_TRUE(all_gone(socket));
}

TEST(Doctor, ServerWithoutALoad_ItsOwnOutputCounts) {
  const Folder folder;
  const Ended ended =
      doctor({"--repeat", "1", "--allocators", "freehold", "--for", "100ms", "--throughput", "rate: ([0-9]+)", "--json",
              folder / "r.json", "--", "sh", "-c", "echo rate: 1234; exec sleep 4718.5"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err << ended.out;
  EXPECT_EQ(cell_of(results_in(folder / "r.json"), "freehold").at("trials").at(0).at("throughput"), 1234);
  EXPECT_TRUE(all_gone("4718.5"));
}

TEST(Doctor, ServerThatIsNeverReady_WayOutIsNamed) {
  const Ended ended = doctor({"--budget", "1s", "--load", "true", "--", "sleep", "4713.5"});
  EXPECT_TRUE(ended.exited_with(2)) << ended.status;
  EXPECT_NE(ended.err.find("--ready 'sleep 3'"), std::string::npos) << ended.err;
  EXPECT_EQ(processes_with("4713.5"), 0);
}

TEST(Doctor, CtrlC_KeepsWhatIsFinished) {
  const Folder folder;
  fs::create_directory(folder / "tmp");
  ::setenv("TMPDIR", (folder / "tmp").c_str(), 1);
  OnATerminal command({"doctor", "--repeat", "1000", "--allocators", "freehold", "--json", folder / "r.json", "--", "sh",
                       "-c", "sleep 0.0471; : 4714.5"});
  ::unsetenv("TMPDIR");
  ASSERT_TRUE(command.wait_for("round 3: ")) << command.seen();
  command.type(kCtrlC);
  EXPECT_EQ(command.exit_code(), 130);
  EXPECT_NE(command.seen().find(" left)"), std::string::npos) << "no time left was shown";
  EXPECT_NE(command.seen().find("MEASURED"), std::string::npos) << command.seen();
  const json results = results_in(folder / "r.json");
  EXPECT_EQ(results.at("complete"), false);
  EXPECT_GE(cell_of(results, "system").at("trials").size(), 2u);
  EXPECT_TRUE(all_gone("4714.5"));
  EXPECT_TRUE(fs::is_empty(folder / "tmp"));
}

TEST(Doctor, CommandThatIsKilled_TakesTheProgramAlong) {
  const Folder folder;  // who is killed cannot remove its temporary files
  ::setenv("TMPDIR", (folder / "").c_str(), 1);
  OnATerminal command({"doctor", "--", "sleep", "4716.5"});
  ::unsetenv("TMPDIR");
  ASSERT_TRUE(command.wait_for("first run"));
  for (int i = 0; i < 5000 && processes_with("4716.5") < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ::kill(command.pid(), SIGKILL);
  static_cast<void>(command.end());
  EXPECT_TRUE(all_gone("4716.5"));
}

}  // namespace
}  // namespace freehold::tests
