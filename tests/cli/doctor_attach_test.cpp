// SPDX-License-Identifier: MIT
// freehold doctor attach: what is said of a process that runs, and that nothing happens to it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/cli/command.hpp"
#include "tests/unit/cli/doctor_schema.hpp"

namespace freehold::tests {
namespace {

// Returns whether one child of ours may read the memory of another.
bool may_trace_siblings() {
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  return scope == 0 || (scope < 3 && geteuid() == 0);
}
namespace fs = std::filesystem;
using nlohmann::json;

// The bundled example with work for minutes; killed at its end.
Process busy() { return Process({example(), "900000000"}); }

// Until it has used some CPU time: then it is in its work.
void wait_for_work(pid_t pid) {
  for (int i = 0; i < 10'000; ++i) {
    const std::string stat = content_of("/proc/" + std::to_string(pid) + "/schedstat");
    if (!stat.empty() && fs::read_symlink("/proc/" + std::to_string(pid) + "/exe") == example() &&
        std::distance(fs::directory_iterator("/proc/" + std::to_string(pid) + "/task"), {}) > 1)
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool is_alive(pid_t pid) {
  int status = 0;
  return ::waitpid(pid, &status, WNOHANG) == 0;
}

Ended attach(pid_t pid, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"doctor", "attach", std::to_string(pid)});
  return freehold(options);
}

TEST(DoctorAttach, RunningProgram_SaidAndUnharmed) {
  const Folder folder;
  const Process program = busy();
  wait_for_work(program.pid());
  const Ended ended = attach(program.pid(), {"--for", "1s", "--json", folder / "a.json"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_TRUE(is_alive(program.pid()));
  const json report = json::parse(content_of(folder / "a.json"));
  DoctorSchema check({FREEHOLD_DOCTOR_ATTACH, FREEHOLD_DOCTOR_SCHEMA});
  check.value("attached", report, "attached");
  EXPECT_EQ(report.at("pid"), program.pid());
  EXPECT_TRUE(report.at("held").is_null());
  EXPECT_EQ(ended.out.find("HELD: by Freehold"), std::string::npos) << ended.out;
  EXPECT_GE(report.at("threads"), 2);
  EXPECT_GT(report.at("user_s"), 0);
  EXPECT_NE(report.at("malloc_file").get<std::string>().find("libc.so"), std::string::npos);
  EXPECT_NE(ended.out.find("WHAT CANNOT BE KNOWN"), std::string::npos);
  if (report.at("in_malloc").is_null()) {  // not permitted: then a note says so
    EXPECT_NE(ended.out.find("could not be sampled"), std::string::npos) << ended.out;
    return;
  }
  // It does little else than to allocate, in all of its threads.
  EXPECT_GT(report["in_malloc"].at("high"), 0.1) << ended.out;
  EXPECT_FALSE(report.at("functions").empty());
}

// As a process that was started a moment before: none of its libraries is loaded yet.
TEST(DoctorAttach, ProgramThatBeginsMeanwhile_FunctionsAndMallocAreNamed) {
  const Folder folder;
  const Process program({"sh", "-c", "sleep 0.4; exec " + example() + " 900000000"});
  const Ended ended = attach(program.pid(), {"--for", "2s", "--json", folder / "a.json"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  const json report = json::parse(content_of(folder / "a.json"));
  EXPECT_NE(report.at("malloc_file").get<std::string>().find("libc.so"), std::string::npos);
  if (report.at("in_malloc").is_null()) GTEST_SKIP() << "sampling is not permitted";
  EXPECT_NE(ended.out.find("malloc and free in libc.so"), std::string::npos) << ended.out;
}

// Nothing can be read of a process that ended: what was not seen is no zero.
TEST(DoctorAttach, EndsWhileItIsWatched_NoZerosAsFacts) {
  const Folder folder;
  const Process program({"/bin/sleep", "0.3"});
  const Ended ended = attach(program.pid(), {"--for", "2s", "--json", folder / "a.json"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  const json report = json::parse(content_of(folder / "a.json"));
  EXPECT_EQ(report.at("complete"), false);
  EXPECT_LT(report.at("seconds"), 1) << "the time that it was there";
  EXPECT_NE(report.at("threads"), 0);
  if (report.at("threads").is_null()) {
    EXPECT_TRUE(report.at("page_faults").is_null() && report.at("user_s").is_null()) << report.dump();
    EXPECT_EQ(ended.out.find("CPUs that it keeps busy"), std::string::npos) << ended.out;
  }
  EXPECT_NE(ended.out.find("The process ended while it was watched"), std::string::npos) << ended.out;
}

TEST(DoctorAttach, UnderFreehold_IsNamed) {
  const Folder folder;
  const Process program({command_path(), "run", "--", example(), "900000000"});
  wait_for_work(program.pid());
  const Ended ended = attach(program.pid(), {"--for", "500ms", "--json", "-"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  const json report = json::parse(ended.out);
  EXPECT_EQ(report.at("is_freehold"), true) << report;
  EXPECT_NE(ended.err.find(report.at("held").is_null() ? "freehold run --stats" : "freehold stats PID"), std::string::npos)
      << ended.err;
  DoctorSchema check({FREEHOLD_DOCTOR_ATTACH, FREEHOLD_DOCTOR_SCHEMA});
  check.value("attached", report, "attached");
  const json& held = report.at("held");
  if (held.is_null() && !may_trace_siblings()) GTEST_SKIP() << "kernel.yama.ptrace_scope: memory of descendants only";
  ASSERT_FALSE(held.is_null()) << report;
  EXPECT_NE(ended.err.find("HELD: by Freehold"), std::string::npos) << ended.err;
  EXPECT_GE(held.at("threads"), 2);
  EXPECT_GT(held.at("span_claims"), 0);
  EXPECT_GE(held.at("class_span_bytes"), 65'536);
  EXPECT_FALSE(held.contains("limit_bytes")) << "no limit is set";
}

TEST(DoctorAttach, CtrlC_EndsTheWatchingAlone) {
  Process program({"sh", "-c", "sleep 1; exit 7"});
  Process doctor({command_path(), "doctor", "--attach", std::to_string(program.pid()), "--for", "50s"});
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  ::kill(doctor.pid(), SIGINT);
  const Ended ended = doctor.wait(std::chrono::seconds(20));
  EXPECT_TRUE(ended.exited_with(130)) << ended.status << ended.err;
  EXPECT_NE(ended.out.find("Interrupted"), std::string::npos) << ended.out;
  EXPECT_TRUE(program.wait().exited_with(7));
}

TEST(DoctorAttach, ProcessThatCannotBeLookedAt_OneLine) {
  const pid_t zombie = ::fork();
  if (zombie == 0) ::_exit(0);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(zombie), &info, WEXITED | WNOWAIT);
  const std::vector<std::pair<std::string, std::string>> table{{"attach 4194303", "there is no process"},
                                                               {"--attach 4194303", "there is no process"},
                                                               {"attach " + std::to_string(zombie), "has ended already"},
                                                               {"attach 0", "is not a number"},
                                                               {"attach -5", "-5"},
                                                               {"attach init", "is not a number"},
                                                               {"attach", "which process"},
                                                               {"attach 1 --for soon", "is not a time"},
                                                               {"attach 1 --json /no/such/folder/x", "cannot write"},
                                                               {"attach 1 2", ""}};
  for (const auto& [line, words] : table) expect_refused(freehold(words_of("doctor " + line)), words);
  ::waitpid(zombie, nullptr, 0);
}

}  // namespace
}  // namespace freehold::tests
