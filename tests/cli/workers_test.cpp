// SPDX-License-Identifier: MIT
// freehold workers from outside: outputs in order, what fails is named and the rest answered, and nothing is left behind
// whatever ends it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "tests/cli/command.hpp"
#include "tests/cli/terminal.hpp"

namespace freehold::tests {
namespace {
using namespace std::chrono_literals;
using nlohmann::json;

std::string component() { return built("libworkers_component.so"); }

Ended workers(const std::string& tasks, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"workers", "--component", component(), "--tasks", tasks});
  return freehold(std::move(arguments));
}

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Workers, Tasks_OutputsInTheirOrder) {
  const Folder folder;
  std::string tasks;
  std::string expected;
  for (int i = 0; i < 5000; ++i) {
    tasks += i % 7 == 0 ? "\n" : "task " + std::to_string(i) + '\n';
    expected += i % 7 == 0 ? "\n" : "TASK " + std::to_string(i) + '\n';
  }
  const Ended ended = workers(folder.file("tasks", tasks + "the last"), {"--workers", "3"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_EQ(ended.out, expected + "THE LAST\n");
  EXPECT_EQ(lines_of(ended.err), 1) << ended.err;
  EXPECT_TRUE(contains(ended.err, "5001 done, 0 failed")) << ended.err;
}

TEST(Workers, FailingTasks_NamedWithTheirReasonsAndTheRestAnswered) {
  const Folder folder;
  const std::string tasks =
      folder.file("tasks", "a\ncrash\nb\nexit 3\nrefuse 7\nlines\nsleep 60000\nprint to standard output\n" +
                               std::string(300, 'x') + "\n");
  const Ended ended = workers(tasks, {"--run-timeout", "200", "--max-attempts", "2", "--workers", "2", "--max-bytes", "256",
                                      "--json", folder / "r.json"});
  EXPECT_TRUE(ended.exited_with(1)) << ended.status << ended.err;
  EXPECT_EQ(ended.out, "A\n\nB\n\n\n\n\nPRINT TO STANDARD OUTPUT\n\n");
  for (const char* line :
       {"task 2: its worker was killed by signal 6 (Aborted), 2 times", "task 4: its worker exited with status 3",
        "task 5: the component returned 7", "task 6: its output has several lines",
        "task 7: it took longer than 200 ms, 2 times", "task 9: it is longer than --max-bytes 256"})
    EXPECT_TRUE(contains(ended.err, std::string("freehold: ") + line)) << line << '\n' << ended.err;
  EXPECT_TRUE(contains(ended.err, "to standard output\n")) << ended.err;
  EXPECT_TRUE(contains(ended.err, " workers started, ended: 2 signal, ")) << ended.err;
  const json results = json::parse(content_of(folder / "r.json"));
  EXPECT_EQ(results.at("complete"), true);
  EXPECT_EQ(results.at("tasks").at("done"), 3);
  EXPECT_EQ(results.at("tasks").at("failed"), 6);
  EXPECT_EQ(results.at("tasks").at("unanswered"), 0);
  EXPECT_EQ(results.at("failures").size(), 6u);
  EXPECT_EQ(results.at("failures")[0].at("task"), 2);
  EXPECT_EQ(results.at("workers").at("ended").at("signal"), 2);
  EXPECT_EQ(results.at("workers").at("ended").at("exit"), 2);
  EXPECT_EQ(results.at("workers").at("ended").at("deadline"), 2);
  EXPECT_EQ(results.at("workers").at("handed_on"), 3);
  EXPECT_GT(results.at("latency_ns").at("p99"), 0);
}

TEST(Workers, Retries_OfATaskThatItsComponentRejects) {
  const Folder folder;
  const Ended ended = workers(folder.file("tasks", "again 7 " + (folder / "a") + "\n"), {"--retries", "3"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_EQ(content_of((folder / "a")), "xx");
}
TEST(Workers, Null_TasksAndOutputsMayHaveLines) {
  const Folder folder;
  const Ended ended = workers(folder.file("tasks", std::string("a\nb\0\0lines\0xyz", 14)), {"--null", "--quiet"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_EQ(ended.out, std::string("A\nB\0\0a\nb\n\0XYZ\0", 14));
  EXPECT_EQ(ended.err, "");
}

TEST(Workers, Command_AWorkerProgramOfOnesOwn) {
  const Folder folder;
  const char* const worker = std::getenv("FREEHOLD_TEST_WORKER");
  ASSERT_NE(worker, nullptr);
  const Ended ended = freehold({"workers", "--command", std::string(worker) + "  " + component(), "--tasks",
                                folder.file("tasks", "a\nb\n"), "--quiet"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  EXPECT_EQ(ended.out, "A\nB\n");
}

TEST(Workers, MaxTasks_ReplacesWorkers) {
  const Folder folder;
  std::string tasks;
  for (int i = 0; i < 40; ++i) tasks += "pid\n";
  const Ended ended =
      workers(folder.file("tasks", tasks), {"--workers", "1", "--max-tasks", "10", "--json", folder / "r.json"});
  EXPECT_TRUE(ended.exited_with(0)) << ended.err;
  const std::vector<std::string> pids = lines_in(ended.out);
  EXPECT_EQ(pids.size(), 40u);
  EXPECT_EQ(std::set(pids.begin(), pids.end()).size(), 4u) << ended.out;
  for (const std::string& pid : pids) EXPECT_EQ(std::ranges::count(pids, pid), 10) << pid;
}

TEST(Workers, BadArguments_OneLineAndExit2) {
  const Folder folder;
  const std::string some = "--tasks " + folder.file("tasks", "a\n"), so = "--component " + component();
  const std::string text = folder.file("text.so", "no component"), missing = folder / "missing";
  for (const std::string& line : std::vector<std::string>{
           some, so, so + " --command x " + some, so + " --tasks " + missing, so + " --tasks /",
           "--component " + missing + ' ' + some, "--component " + text + ' ' + some,
           "--component " + built("libpreloadable.so") + ' ' + some, "--component / " + some, "--command ' ' " + some,
           "--command /bin/false " + some, "--command " + missing + ' ' + some, "--bogus", "stray"})
    expect_refused(freehold(words_of("workers " + line)), "");
  for (const std::string option :
       {"--retries x", "--workers 0", "--workers many", "--max-open-tasks 0", "--run-timeout -1", "--max-attempts 1000",
        "--max-rss 1.5", "--json /no/such/folder/x", "--json -"})  // the outputs' place
    expect_refused(freehold(words_of("workers " + so + ' ' + some + ' ' + option)), "");
}

TEST(Workers, TasksTypedOnATerminal_AnsweredOneByOne) {
  OnATerminal command({"workers", "--component", component(), "--tasks", "-"});
  for (const char c : std::string("hello\n")) command.type(c);
  ASSERT_TRUE(command.wait_for("HELLO")) << command.seen();
  ASSERT_TRUE(command.wait_for("waiting 0, running 0")) << command.seen();
  for (const char c : std::string("world\n\4")) command.type(c);
  ASSERT_TRUE(command.wait_for("WORLD")) << command.seen();
  EXPECT_EQ(command.exit_code(), 0) << command.seen();
  EXPECT_TRUE(contains(command.seen(), "2 done, 0 failed")) << command.seen();
}

TEST(Workers, CtrlC_StopsAndLeavesNoWorker) {
  const Folder folder;
  const std::string tasks = folder.file("tasks", "pid\nsleep 60000\nb\n");
  OnATerminal command(
      {"workers", "--component", component(), "--tasks", tasks, "--workers", "1", "--json", folder / "r.json"});
  ASSERT_TRUE(command.wait_for("pid ")) << command.seen();
  ASSERT_TRUE(command.wait_for("1 done, 0 failed")) << command.seen();
  const pid_t worker = std::stoi(command.seen().substr(command.seen().find("pid ") + 4));
  EXPECT_EQ(::kill(worker, 0), 0);
  command.type(kCtrlC);
  EXPECT_EQ(command.exit_code(), 130);
  EXPECT_TRUE(is_gone(worker));
  EXPECT_TRUE(contains(command.seen(), "1 done, 0 failed, 2 unanswered")) << command.seen();
  EXPECT_TRUE(contains(command.seen(), "interrupted")) << command.seen();
  EXPECT_EQ(json::parse(content_of(folder / "r.json")).at("complete"), false);
}

TEST(Workers, CtrlC_WhatHasEndedBehindAHungTaskIsWritten) {
  const Folder folder;
  const std::string tasks = folder.file("tasks", "sleep 60000\nkept b\nkept c\n");
  OnATerminal command({"workers", "--component", component(), "--tasks", tasks, "--workers", "2"});
  ASSERT_TRUE(command.wait_for("running 1 of")) << command.seen();
  ASSERT_TRUE(command.wait_for("2 done")) << command.seen();
  EXPECT_FALSE(contains(command.seen(), "KEPT"));
  command.type(kCtrlC);
  EXPECT_EQ(command.exit_code(), 130);
  EXPECT_TRUE(contains(command.seen(), "KEPT B")) << command.seen();
  EXPECT_TRUE(contains(command.seen(), "KEPT C")) << command.seen();
  EXPECT_TRUE(contains(command.seen(), "2 done, 0 failed, 1 unanswered")) << command.seen();
}

TEST(Workers, CtrlCAgainAfterASecond_EndsAtOnce) {
  const Folder folder;
  const std::string pipe = folder / "r.json";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);  // which is never read: the results cannot be written
  OnATerminal command(
      {"workers", "--component", component(), "--tasks", folder.file("tasks", "pid\nsleep 60000\n"), "--json", pipe});
  ASSERT_TRUE(command.wait_for("pid ")) << command.seen();
  ASSERT_TRUE(command.wait_for("1 done, 0 failed")) << command.seen();
  const pid_t worker = std::stoi(command.seen().substr(command.seen().find("pid ") + 4));
  std::jthread fingers([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      command.type(kCtrlC);
      std::this_thread::sleep_for(40ms);
    }
  });
  EXPECT_EQ(command.exit_code(), -SIGINT) << command.seen();
  EXPECT_TRUE(is_gone(worker));
}

TEST(Workers, BrokenPipe_EndsItAndItsWorkers) {
  const std::string script = "(yes pid | '" + command_path() + "' workers --workers 1 --tasks - --component '" +
                             component() + "'; echo status $? >&2) | head -n 1";
  Process shell({"sh", "-c", script});
  const Ended ended = shell.wait();
  EXPECT_TRUE(contains(ended.err, "status 141")) << ended.err;  // SIGPIPE
  ASSERT_NE(ended.out, "");
  EXPECT_TRUE(is_gone(std::stoi(ended.out.substr(4))));
}

TEST(Workers, ReaderWhoDoesNotRead_CtrlCStillEndsIt) {
  const Folder folder;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::string tasks;
  for (int i = 0; i < 50'000; ++i) tasks += "a task whose output fills the pipe\n";
  Process command({command_path(), "workers", "--tasks", folder.file("tasks", tasks), "--component", component()}, {},
                  [&] { ::dup2(ends[1], STDOUT_FILENO); });
  std::this_thread::sleep_for(200ms);
  ::kill(command.pid(), SIGINT);
  const Ended ended = command.wait();
  EXPECT_TRUE(ended.exited_with(130)) << ended.status << ended.err;
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace freehold::tests
