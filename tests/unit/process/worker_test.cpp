// SPDX-License-Identifier: MIT
// The worker program as a stranger starts it, or a pool whose table is not the one that the worker was promised: it ends
// with a status that says so. And the facts that it asks the system for.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "freehold/process/process_info.hpp"
#include "freehold/process/table/shared_memory.hpp"
#include "freehold/process/table/task_table.hpp"
#include "freehold/process/worker/confinement.hpp"
#include "freehold/process/worker/worker_protocol.hpp"

namespace freehold::process {
namespace {

struct Ended {
  int status = 0;
  std::string printed;
};
// Runs the worker program; its descriptor of the table is `table`, or closed if that is -1.
Ended run_worker(const std::string& variable, int table = -1, const char* argument = FREEHOLD_TEST_COMPONENT) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
  if (table >= 0) ::posix_spawn_file_actions_adddup2(&files, table, kTableDescriptor);
  std::string program = FREEHOLD_WORKER_PROGRAM, argument_text = argument != nullptr ? argument : "", environment;
  char* const words[] = {program.data(), argument != nullptr ? argument_text.data() : nullptr, nullptr};
  environment = std::string(kWorkerVariable) + "=" + variable;
  std::string counts = std::string("LLVM_PROFILE_FILE=") +
                       (std::getenv("LLVM_PROFILE_FILE") != nullptr ? std::getenv("LLVM_PROFILE_FILE") : "/dev/null");
  char* const variables[] = {counts.data(), variable.empty() ? nullptr : environment.data(), nullptr};
  pid_t pid = 0;
  Ended ended;
  const int error = ::posix_spawn(&pid, program.c_str(), &files, nullptr, words, variables);
  ::posix_spawn_file_actions_destroy(&files);
  ::close(ends[1]);
  char some[1024];
  for (ssize_t n = 0; error == 0 && (n = ::read(ends[0], some, sizeof some)) > 0;)
    ended.printed.append(some, static_cast<std::size_t>(n));
  ::close(ends[0]);
  if (error != 0 || ::waitpid(pid, &ended.status, 0) != pid || !WIFEXITED(ended.status)) return {-1, ended.printed};
  ended.status = WEXITSTATUS(ended.status);
  return ended;
}
// The variable of a worker in this slot that this process has started.
std::string variable(unsigned slot, unsigned epoch) {
  return std::to_string(slot) + " " + std::to_string(::getpid()) + " " + std::to_string(epoch) + " 0 0 0 0";
}

TEST(WorkerProgram, StartedByAPerson_SaysWhoStartsIt) {
  const Ended help = run_worker("", -1, "--help");
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.printed.find("--help"), std::string::npos) << help.printed;
  for (const char* argument : {static_cast<const char*>(nullptr), FREEHOLD_TEST_COMPONENT}) {
    const Ended ended = run_worker("", -1, argument);
    EXPECT_EQ(ended.status, static_cast<int>(WorkerExit::kNoTable));
    EXPECT_NE(ended.printed.find("only a process pool can start it"), std::string::npos) << ended.printed;
  }
}

TEST(WorkerProgram, NoTableOrAnother_EndsBeforeItsComponentRuns) {
  constexpr unsigned kWorkers = 2;
  SharedMemory memory = SharedMemory::create("table", Table::bytes({.workers = kWorkers}));
  Table::create(memory.data(), {.workers = kWorkers});
  const Table table(memory.data());
  SharedMemory none = SharedMemory::create("no table", 1 << 16);
  const int not_sealed = ::memfd_create("not ours", MFD_CLOEXEC);
  struct Case {
    const char* what;
    std::string variable;
    int table;
    WorkerExit end;
  };
  const Case cases[] = {{"no words of a pool", "nonsense", memory.fd(), WorkerExit::kNoTable},
                        {"a descriptor that is no memory", variable(0, 0), not_sealed, WorkerExit::kNoTable},
                        {"memory that is no table", variable(0, 0), none.fd(), WorkerExit::kNoTable},
                        {"a slot beyond the table", variable(kWorkers, 0), memory.fd(), WorkerExit::kNoTable},
                        {"another pool's process", "0 1 0 0 0 0 0", memory.fd(), WorkerExit::kClosed},
                        {"a former supervisor's table", variable(0, 7), memory.fd(), WorkerExit::kClosed}};
  for (const Case& one : cases) {
    const Ended ended = run_worker(one.variable, one.table);
    EXPECT_EQ(ended.status, static_cast<int>(one.end)) << one.what;
    EXPECT_EQ(ended.printed.find("of another version of Freehold, or its table is damaged") != std::string::npos,
              one.end == WorkerExit::kNoTable)
        << one.what << ": " << ended.printed;
    for (unsigned slot = 0; slot < kWorkers; ++slot) EXPECT_FALSE(table.workers().is_up(slot)) << one.what;
  }
  ::close(not_sealed);
}

TEST(ProcessInfo, ProcessThatIsNoMore_NothingIsKnown) {
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  EXPECT_EQ(own_resident_bytes(dead), 0u);
  EXPECT_EQ(time_without_cpu(dead), 0u);
  EXPECT_EQ(identity_of(dead), 0u);
  EXPECT_GT(own_resident_bytes(::getpid()), 0u);
  EXPECT_EQ(pid_of(identity_of(::getpid())), ::getpid());
}

TEST(Confinement_Unit, Text_ThereAndBack) {
  const Confinement confinement{.no_network = true, .files = true, .readable = {"/a", "/b c"}, .writable = {"/d"}};
  const Confinement back = confinement_of(text_of(confinement));
  EXPECT_TRUE(back.no_network && back.files);
  EXPECT_EQ(back.readable, confinement.readable);
  EXPECT_EQ(back.writable, confinement.writable);
  EXPECT_FALSE(confinement_of("").wanted());
  EXPECT_EQ(confinement_of("\nf\n\nr/a\n\n").readable, std::vector<std::string>{"/a"}) << "empty lines are no paths";
}

}  // namespace
}  // namespace freehold::process
