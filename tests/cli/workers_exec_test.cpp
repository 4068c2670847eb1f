// SPDX-License-Identifier: MIT
// freehold workers --exec from outside: what xargs and GNU parallel promise, by the same names.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "tests/cli/command.hpp"
#include "tests/cli/terminal.hpp"

namespace freehold::tests {
namespace {
using namespace std::chrono_literals;

Ended exec(const std::string& command, std::vector<std::string> options, const std::vector<std::string>& arguments = {}) {
  options.insert(options.begin(), {"workers", "--exec", command});
  if (!arguments.empty()) options.emplace_back("--");
  options.insert(options.end(), arguments.begin(), arguments.end());
  return freehold(std::move(options));
}
std::string numbers(int n) {
  std::string text;
  for (int i = 1; i <= n; ++i) text += std::to_string(i) + '\n';
  return text;
}
std::size_t lines(const std::string& text) { return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')); }

TEST(WorkersExec, Template_EveryPlaceIsFilledAndQuoted) {
  const Ended ended = exec("echo {} {.} {/} {//} {/.} {#} $FREEHOLD_SEQ", {"-k"}, {"a.d/b c.txt", "it's $HOME; `x`", "/e"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_EQ(ended.out,
            "a.d/b c.txt a.d/b c b c.txt a.d b c 1 1\n"
            "it's $HOME; `x` it's $HOME; `x` it's $HOME; `x` . it's $HOME; `x` 2 2\n"
            "/e /e e / e 3 3\n");
  EXPECT_EQ(exec("echo", {}, {"added at the end"}).out, "added at the end\n");
  EXPECT_EQ(exec("rm -rf", {"--dry-run"}, {"a b"}).out, "rm -rf 'a b'\n");
}
TEST(WorkersExec, KeepOrder_OutputsAsTheArguments_EachInOnePiece) {
  const Folder folder;
  const std::string tasks = folder.file("tasks", numbers(200));
  const Ended ended = exec("test {} = 1 && sleep 0.2; echo {}; echo {}", {"-k", "--tasks", tasks, "--workers", "4"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  std::string expected;
  for (int i = 1; i <= 200; ++i) expected += std::to_string(i) + '\n' + std::to_string(i) + '\n';
  EXPECT_EQ(ended.out, expected);
}
// A job stood in the log before its output was written, and --resume skipped it.
TEST(WorkersExec, OutputCannotBeWritten_JobsAreNotInTheLog) {
  const Folder folder;
  const std::string log = folder / "log", line = "workers --exec 'echo {}' -k --joblog " + log;
  const Ended full = Process({"sh", "-c", "'" + command_path() + "' " + line + " -- 1 2 3 >/dev/full"}).wait();
  EXPECT_TRUE(full.exited_with(2)) << full.err;
  const Ended rest = exec("echo {}", {"-k", "--joblog", log, "--resume"}, {"1", "2", "3"});
  EXPECT_EQ(rest.out, "1\n2\n3\n") << rest.err;
}
TEST(WorkersExec, WithoutOrder_FirstCome) {
  const Ended ended = exec("sleep {}; echo {}", {"--workers", "2"}, {"0.5", "0"});
  EXPECT_EQ(ended.out, "0\n0.5\n") << ended.err;
}
TEST(WorkersExec, FailedJobs_ExitCodeIsTheirNumber) {
  const Folder folder;
  EXPECT_TRUE(exec("exit {}", {}, {"0", "3", "0", "1"}).exited_with(2));
  EXPECT_TRUE(exec("false {}", {"--tasks", folder.file("tasks", numbers(150))}).exited_with(101));
  const Ended killed = exec("kill -9 $$ {}", {}, {"x"});
  EXPECT_TRUE(killed.exited_with(1)) << killed.err;
  for (const std::string& path : {folder / "none", std::string("/tmp")})
    expect_refused(exec("true", {"--tasks", path}), "cannot read " + path, 255);
  EXPECT_TRUE(exec("true", {"--resume"}, {"x"}).exited_with(255));
}
TEST(WorkersExec, StandardErrorAndLargeOutput_Whole) {
  const Ended ended = exec("yes | head -c {}; echo 'said so' >&2", {}, {"3000000"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_EQ(ended.out.size(), 3'000'000u);
  EXPECT_EQ(ended.err, "said so\n");
  const Ended large = exec("yes | head -c {}", {"--max-output", "100000"}, {"3000000"});
  EXPECT_TRUE(large.exited_with(1));
  EXPECT_TRUE(contains(large.err, "job 1: it printed more than --max-output 100000")) << large.err;
}
TEST(WorkersExec, Limit_JobAndWhatItHasStartedEnd) {
  const Folder folder;
  const Ended ended = exec("sleep 1000 & echo $! > {}; wait", {"--run-timeout", "200"}, {folder / "pid"});
  EXPECT_TRUE(ended.exited_with(1));
  EXPECT_TRUE(contains(ended.err, "job 1: it took longer than 200 ms")) << ended.err;
  EXPECT_TRUE(is_gone(std::stoi(content_of(folder / "pid"))));
}
TEST(WorkersExec, Retries_UntilItSucceeds) {
  const Folder folder;
  const std::string command = "echo x >> {}; test $(wc -l < {}) = 3";
  EXPECT_TRUE(exec(command, {"--retries", "5", "--retry-delay", "10"}, {folder / "a"}).exited_with(0));
  EXPECT_EQ(content_of(folder / "a"), "x\nx\nx\n");
  EXPECT_TRUE(exec(command, {"--retries", "2"}, {folder / "b"}).exited_with(1));
}
TEST(WorkersExec, Confined_OtherFilesCannotBeRead) {
  const Folder folder, other;
  const std::string in = folder.file("a", "in\n"), out = other.file("b", "out\n");
  const Ended ended = freehold({"workers", "--exec", "cat {}", "--readable", folder / "", "--readable", "/bin", "--readable",
                                "/usr/bin", "--no-network", "-k", "--", in, out});
  if (contains(ended.err, "cannot confine")) GTEST_SKIP() << ended.err;
  EXPECT_TRUE(ended.exited_with(1)) << ended.err;
  EXPECT_EQ(ended.out, "in\n");
  EXPECT_TRUE(contains(ended.err, "Permission denied")) << ended.err;
}
TEST(WorkersExec, JobLog_ResumedRunDoesTheRest) {
  const Folder folder;
  const std::string log = folder / "log";
  EXPECT_TRUE(exec("test {} != 3", {"--joblog", log, "--tasks", folder.file("tasks", numbers(5))}).exited_with(1));
  EXPECT_EQ(lines(content_of(log)), 6u);
  EXPECT_TRUE(content_of(log).starts_with("Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"));
  EXPECT_TRUE(contains(content_of(log), "\t1\t0\ttest 3 != 3\n")) << content_of(log);
  std::ofstream(log, std::ios::app) << "6";  // the machine has failed in the middle of a line
  const Ended rest = exec("echo {}", {"-k", "--joblog", log, "--resume", "--tasks", folder.file("more", numbers(7))});
  EXPECT_TRUE(rest.exited_with(0)) << rest.err;
  EXPECT_EQ(rest.out, "6\n7\n");
  EXPECT_TRUE(contains(content_of(log), "\n6\t:\t")) << content_of(log);
}
TEST(WorkersExec, KeepOrder_OutputAndJobLogComeWhileJobsRun_ResumeAfterAKillRunsNoneAgain) {
  const Folder folder;
  const std::string log = folder / "log", ran = folder / "ran", tasks = folder.file("tasks", numbers(60));
  std::vector<std::string> words = words_of("-k --workers 2 --tasks " + tasks + " --joblog " + log);
  words.insert(words.begin(), {command_path(), "workers", "--exec", "sleep 0.02; echo {} >> " + ran + "; echo {}"});
  std::size_t logged = 0;
  {
    Process command(words);
    ASSERT_TRUE(command.wait_for_output("3\n"));
    EXPECT_LT(lines(content_of(ran)), 30u);
    ::kill(command.pid(), SIGKILL);
    (void)command.wait();
    logged = lines(content_of(log)) - 1;
    EXPECT_GE(logged, 2u);              // the third one's line follows its output
    std::this_thread::sleep_for(50ms);  // jobs that ran when it was killed
  }
  const std::size_t before = lines(content_of(ran));
  EXPECT_LE(before, logged + 7);  // that ran, or had ended since it looked last
  words.emplace_back("--resume");
  EXPECT_TRUE(Process(words).wait().exited_with(0));
  EXPECT_EQ(lines(content_of(ran)), before + 60 - logged);
  EXPECT_EQ(lines(content_of(log)), 61u);
}
TEST(WorkersExec, InterruptedBeforeItsTurn_AJobIsNotInTheLog) {
  const Folder folder;
  const std::string ran = folder / "ran";
  Process command({command_path(), "workers", "-k", "--workers", "2", "--joblog", folder / "log", "--exec",
                   "[ {} = 2 ] && sleep 100; echo {}; echo {} >> " + ran, "--", "1", "2", "3", "4"});
  for (int i = 0; i < 4000 && lines(content_of(ran)) < 3; ++i) std::this_thread::sleep_for(5ms);
  std::this_thread::sleep_for(100ms);  // it sees that 3 and 4 have ended
  ::kill(command.pid(), SIGINT);
  EXPECT_TRUE(command.wait().exited_with(130));
  EXPECT_EQ(lines(content_of(folder / "log")), 2u) << content_of(folder / "log");  // the head and job 1
}
TEST(WorkersExec, DryRun_LeavesTheLogOfAnEarlierRun) {
  const Folder folder;
  EXPECT_TRUE(exec("true", {"--joblog", folder / "log"}, {"a"}).exited_with(0));
  const std::string before = content_of(folder / "log");
  EXPECT_TRUE(exec("true", {"--joblog", folder / "log", "--dry-run"}, {"a"}).exited_with(0));
  EXPECT_EQ(lines(before), 2u);
  EXPECT_EQ(content_of(folder / "log"), before);
}
TEST(WorkersExec, LogIntoAPipe_HasTheLines) {
  const Ended ended =
      Process(
          {"sh", "-c", "'" + command_path() + "' workers --exec 'exit 0' --joblog /dev/stderr -- a 2>&1 >/dev/null | cat"})
          .wait();
  EXPECT_TRUE(ended.exited_with(0));
  EXPECT_EQ(lines(ended.out), 2u) << ended.out;
}
TEST(WorkersExec, Interrupted_NoMoreJobsStart) {
  for (const std::string order : {"--bar", "-k"}) {
    const Folder folder;
    const std::string ran = folder / "ran";
    Process command({command_path(), "workers", "--exec", "sleep 0.02; echo {} >> " + ran, order, "--tasks",
                     folder.file("tasks", numbers(200)), "--workers", "2"});
    for (int i = 0; i < 4000 && lines(content_of(ran)) < 3; ++i) std::this_thread::sleep_for(5ms);
    const std::size_t before = lines(content_of(ran));
    ::kill(command.pid(), SIGINT);
    EXPECT_TRUE(command.wait().exited_with(130));
    EXPECT_LE(lines(content_of(ran)), before + 40);
  }
}
TEST(WorkersExec, ReaderWhoDoesNotRead_JobsEnd_AndThoseWhoseOutputIsInThePipeAreLogged) {
  const Folder folder;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Process command({command_path(), "workers", "--exec", "head -c 5000 /dev/zero; echo {} >> " + (folder / "ran"), "--joblog",
                   folder / "log", "--tasks", folder.file("tasks", numbers(20))},
                  {}, [&] { ::dup2(ends[1], STDOUT_FILENO); });
  constexpr std::size_t kFit = 65536 / 5000, kLeast = 5;  // a page of the pipe is seldom full
  for (int i = 0; i < 1000 && (lines(content_of(folder / "ran")) < 20 || lines(content_of(folder / "log")) < 1 + kLeast);
       ++i)
    std::this_thread::sleep_for(5ms);
  EXPECT_EQ(lines(content_of(folder / "ran")), 20u);
  EXPECT_GE(lines(content_of(folder / "log")), 1 + kLeast);
  EXPECT_LE(lines(content_of(folder / "log")), 1 + kFit) << "of the others --resume would lose the output";
  ::kill(command.pid(), SIGINT);
  EXPECT_TRUE(command.wait().exited_with(130));
  ::close(ends[0]);
  ::close(ends[1]);
}
TEST(WorkersExec, ZeroBytes_EndArgumentsWithNull_AreRefusedWithout) {
  using namespace std::string_literals;
  const Folder folder;
  const std::string tasks = folder.file("tasks", "a b\0c\nd'\0e"s);
  const Ended ended = exec("printf '<%s>'", {"-k", "-0", "--tasks", tasks, "--joblog", folder / "log"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_EQ(ended.out, "<a b><c\nd'><e>");
  EXPECT_EQ(lines(content_of(folder / "log")), 4u) << content_of(folder / "log");
  const Ended lines_of_it = exec("echo", {"--tasks", folder.file("lines", "a\nb\0; echo $HOME\nc\n"s)});
  EXPECT_TRUE(lines_of_it.exited_with(255)) << lines_of_it.status;
  EXPECT_EQ(lines_of_it.out, "a\n");
  EXPECT_TRUE(contains(lines_of_it.err, "argument 2 has a zero byte")) << lines_of_it.err;
  EXPECT_EQ(lines(lines_of_it.err), 1u);
}
TEST(WorkersExec, OptionsOfComponents_AreRefused) {
  const Folder folder;
  for (const std::string& option :
       {"--json " + (folder / "f"), std::string("--max-attempts 2"), std::string("--length-prefixed")})
    expect_refused(exec("true", words_of(option), {"x"}), "go with --component or --command", 255);
}
TEST(WorkersExec, EmptyCommand_IsRefused) { expect_refused(exec(" ", {}, {"echo no"}), ""); }
TEST(WorkersExec, CtrlC_JobsEndToo) {
  const Folder folder;
  OnATerminal command({"workers", "--exec", "echo $$ > {}; echo up >&2; sleep 1000", "--", folder / "pid"});
  for (int i = 0; i < 1000 && content_of(folder / "pid").empty(); ++i) std::this_thread::sleep_for(10ms);
  command.type(kCtrlC);
  EXPECT_EQ(command.exit_code(), 130);
  EXPECT_TRUE(is_gone(std::stoi(content_of(folder / "pid"))));
}
// The command itself cannot end them: the workers do, with all that their jobs have started.
TEST(WorkersExec, KilledInAnyWay_JobsEndToo) {
  for (const int signal : {SIGKILL, SIGPIPE}) {
    const Folder folder;
    const std::string job = "sh -c 'echo $$ > " + (folder / "pid") + "; echo up; sleep 1000; true'; true";
    Process command({command_path(), "workers", "--exec", job, "--", "x"});
    for (int i = 0; i < 1000 && content_of(folder / "pid").empty(); ++i) std::this_thread::sleep_for(10ms);
    ASSERT_FALSE(content_of(folder / "pid").empty());
    ::kill(command.pid(), signal);
    EXPECT_TRUE(command.wait().killed_by(signal));
    EXPECT_TRUE(is_gone(std::stoi(content_of(folder / "pid")))) << signal;
  }
}

}  // namespace
}  // namespace freehold::tests
