// SPDX-License-Identifier: MIT
// Workers that cannot be started, or are confined as they start: each has its reason.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "tests/unit/process/process_pool_support.hpp"

namespace freehold {
namespace {

using namespace process_test;

// Why the kernel cannot confine a worker so; empty if it can.
std::string refusal_of(const ProcessPoolOptions& how) {
  ProcessPool pool(how);
  return pool.call("echo x").ok() ? "" : pool.error();
}
TEST(ProcessPool_Unit, ConfinedToFiles_OthersCannotBeOpened) {
  const Deployed folder;
  folder.put();
  for (const char* name : {"in", "out", "other"}) std::filesystem::create_directory(folder.path(name));
  for (const char* name : {"in/a", "other/a"}) std::ofstream(folder.path(name)) << "x";
  ProcessPoolOptions how = options();
  how.component = folder.component();
  how.max_rss_bytes = 1ull << 40;  // so that the worker looks at its own memory
  how.confinement = {.files = true, .readable = {folder.path("in")}, .writable = {folder.path("out")}};
  if (const std::string why = refusal_of(how); !why.empty()) GTEST_SKIP() << why;
  ProcessPool pool(how);
  const auto errno_of = [&](const std::string& task) {
    return pool.call(task).text() == "0" ? 0 : std::stoi(std::string(pool.call(task).text()));
  };
  EXPECT_EQ(errno_of("read " + folder.path("in/a")), 0);
  EXPECT_EQ(errno_of("write " + folder.path("in/a")), EACCES);
  EXPECT_EQ(errno_of("write " + folder.path("out/new")), 0);
  EXPECT_EQ(errno_of("read " + folder.path("out/new")), 0);
  EXPECT_EQ(errno_of("read " + folder.path("other/a")), EACCES);
  EXPECT_EQ(errno_of("read /etc/passwd"), EACCES);
  EXPECT_EQ(errno_of("read /proc/self/statm"), 0);
  EXPECT_EQ(errno_of("socket"), 0);
  EXPECT_NE(errno_of("run /bin/true"), 0) << "the shell is not among the files";
}
TEST(ProcessPool_Unit, ConfinedWithoutNetwork_NoSocketsNorInPrograms) {
  ProcessPoolOptions how = options();
  how.confinement.no_network = true;
  if (const std::string why = refusal_of(how); !why.empty()) GTEST_SKIP() << why;
  ProcessPool pool(how);
  EXPECT_EQ(pool.call("socket").text(), std::to_string(EACCES));
  EXPECT_EQ(pool.call("socket 1").text(), std::to_string(EACCES));
  EXPECT_EQ(pool.call("read /etc/passwd").text(), "0");
  EXPECT_EQ(pool.call("run grep -q 'NoNewPrivs:.1' /proc/self/status").text(), "0");
  EXPECT_EQ(pool.call("run grep -q 'Seccomp:.2' /proc/self/status").text(), "0");
}
TEST(ProcessPool_Unit, WorkerProgramOfAnInstallation_FoundByItsHeader) {
  const test::Folder folder;
  const std::filesystem::path prefix = folder.path() / "prefix";
  for (const char* place : {"bin", "tools/freehold"}) {
    const std::filesystem::path worker = prefix / place / "freehold-worker";
    std::filesystem::create_directories(worker.parent_path());
    std::filesystem::create_symlink("/bin/true", worker);
    EXPECT_EQ(find_worker_program((prefix / "include/freehold/detail/process/process_pool.hpp").c_str()), worker);
    std::filesystem::remove(worker);
    std::filesystem::copy_file("/bin/true", worker);
    std::filesystem::permissions(worker, std::filesystem::perms::all);  // anybody may have written it
    EXPECT_NE(find_worker_program((prefix / "include/freehold/detail/process/process_pool.hpp").c_str()), worker);
    std::filesystem::permissions(worker, std::filesystem::perms::owner_all);
    std::filesystem::permissions(worker.parent_path(), std::filesystem::perms::all);
    EXPECT_NE(find_worker_program((prefix / "include/freehold/detail/process/process_pool.hpp").c_str()), worker);
    std::filesystem::remove_all(prefix);
  }
  EXPECT_EQ(find_worker_program("freehold/detail/process/process_pool.hpp"), find_worker_program("/"));
}
// A pipe that stands in for this program's standard input.
class PipedInput {
 public:
  explicit PipedInput(const char* text) : before_(::dup(STDIN_FILENO)) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    EXPECT_GT(::write(ends[1], text, std::strlen(text)), 0);
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
    writer_ = ends[1];  // open, as a silent terminal
  }
  ~PipedInput() {
    ::dup2(before_, STDIN_FILENO);
    ::close(before_);
    ::close(writer_);
  }
  PipedInput(const PipedInput&) = delete;
  PipedInput& operator=(const PipedInput&) = delete;

 private:
  int before_, writer_ = -1;
};
TEST(ProcessPool_Unit, StandardInput_EmptyUnlessItIsKept) {
  const PipedInput input("typed");
  ProcessPoolOptions how = options();
  how.run_timeout = 5s;
  EXPECT_EQ(ProcessPool(how).call("input 0").text(), "");
  how.keep_standard_input = true;
  EXPECT_EQ(ProcessPool(how).call("input 0").text(), "typed");
}
TEST(ProcessPool_Unit, Inherited_EachWorkerHasThem_AndNoOthers) {
  int one[2], two[2];
  ASSERT_TRUE(::pipe2(one, O_CLOEXEC) == 0 && ::pipe2(two, O_CLOEXEC) == 0);
  ProcessPoolOptions how = options();
  how.inherited = {one[0], two[0]};
  {
    ProcessPool pool(how);
    ::close(one[0]);
    ::close(two[0]);
    ASSERT_TRUE(::write(one[1], "first", 5) == 5 && ::write(two[1], "second", 6) == 6);
    EXPECT_EQ(pool.call("input 5").text(), "first");
    EXPECT_EQ(pool.call("input 6").text(), "second");
    EXPECT_EQ(pool.call("open").text(), "0 1 2 3 4 5 6 ");
  }
  ::signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(::write(one[1], "x", 1), -1) << "the pool has kept a copy";
  for (const std::vector<int>& wrong : {std::vector<int>{one[0]}, std::vector<int>(6, STDIN_FILENO)}) {
    how.inherited = wrong;
    EXPECT_FALSE(ProcessPool(how).ok());
  }
  ::close(one[1]);
  ::close(two[1]);
}
TEST(ProcessPool_Unit, Ok_AWorkerHasAnswered_OrNoneCan) {
  const ProcessPool pool(options());
  EXPECT_TRUE(pool.error().empty());
  EXPECT_EQ(pool.stats().workers.started, 0u);
  EXPECT_TRUE(pool.ok());
  EXPECT_EQ(pool.stats().workers.started, 1u);
  EXPECT_TRUE(pool.ok());
  EXPECT_EQ(pool.stats().workers.started, 1u);
  ProcessPoolOptions missing = options();
  missing.worker_program = "/nowhere/freehold-worker";
  const ProcessPool without(missing);
  EXPECT_FALSE(without.ok());
  EXPECT_FALSE(without.error().empty());
}
TEST(ProcessPool_Unit, OkInTheLogOrInAChildOfFork_DoesNotWait) {
  ProcessPoolOptions how = options();
  how.worker_program = "/nowhere/freehold-worker";
  std::atomic<const ProcessPool*> shown{nullptr};
  std::atomic<unsigned> asked{0};
  how.log = [&](const process::PoolEvent&) {
    if (const ProcessPool* pool = shown.load()) asked += pool->ok() ? 1 : 1;
  };
  const ProcessPool pool(how);
  shown = &pool;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(5);
    (void)pool.ok();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(pool.ok());
  EXPECT_GE(asked, 1u);
}
TEST(ProcessPool_Unit, LoadingHangs_KilledWithAReason) {
  const Deployed deployed;
  ProcessPoolOptions how = options();
  how.worker_program = deployed.path("hung.sh");
  std::ofstream(how.worker_program) << "#!/bin/sh\nmkdir 2>/dev/null " << deployed.path("1") << " && exec sleep 1000\n"
                                    << "exec " FREEHOLD_WORKER_PROGRAM " \"$@\"\n";
  std::filesystem::permissions(how.worker_program, std::filesystem::perms::owner_all);
  how.load_timeout = 300ms;
  how.max_workers = 1;
  ProcessPool pool(how);
  Future task = pool.submit("echo x");
  EXPECT_TRUE(task.wait_for(10s)) << text(pool.stats());
  EXPECT_EQ(ended(pool, ExitReason::kNeverUp), 1u);
}
TEST(ProcessPool_Unit, NoProgramOrNothingAtAll_BrokenWithAReason) {
  for (const char* program : {"/nowhere/program", "no-program-of-the-path"}) {
    ProcessPoolOptions how = options();
    how.worker_program = program;
    how.component = "no-library-of-the-path.so";
    how.keep_standard_error = true;
    ProcessPool pool(how);
    EXPECT_EQ(pool.call("echo x").error().kind, FailureKind::kNoWorker);
    EXPECT_NE(pool.error().find(std::string(program) + " cannot be started"), std::string::npos) << pool.error();
    EXPECT_NE(pool.error().find("FREEHOLD_WORKER_PROGRAM"), std::string::npos) << pool.error();
  }
  EXPECT_FALSE(ProcessPool({}).ok());
}
TEST(ProcessPool_Unit, ComponentComesLate_PoolMendsItself) {
  const Deployed deployed;
  ProcessPoolOptions how = options();
  how.component = deployed.component();
  ProcessPool pool(how);
  EXPECT_EQ(pool.call("echo x").error().kind, FailureKind::kNoWorker);
  EXPECT_NE(pool.error().find("status 85"), std::string::npos) << pool.error();
  EXPECT_EQ(pool.submit("echo x").error().kind, FailureKind::kNoWorker);
  EXPECT_FALSE(pool.ok());
  deployed.put();
  EXPECT_TRUE(comes_true([&] { return pool.ok(); })) << pool.error();
  EXPECT_EQ(pool.call("echo x").text(), "x");
}
// Those that have ended tasks say nothing against the next one, however many die.
TEST(ProcessPool_Unit, WorkersKilledBetweenTasks_TheNextStartsWithoutABackOff) {
  ProcessPoolOptions how = options();
  how.max_workers = 1;
  ProcessPool pool(how);
  auto least = std::chrono::nanoseconds::max();
  for (unsigned killed = 0; killed < 18; ++killed) {
    const auto begin = std::chrono::steady_clock::now();
    const Result worker = pool.call("pid");
    ASSERT_TRUE(worker.ok()) << text(pool.stats());
    if (killed >= 14) least = std::min<std::chrono::nanoseconds>(least, std::chrono::steady_clock::now() - begin);
    ASSERT_TRUE(comes_true([&] { return pool.stats().tasks.delivered == killed + 1; }));
    ::kill(std::stoi(std::string(worker.text())), SIGKILL);
    ASSERT_TRUE(comes_true([&] { return ended(pool, ExitReason::kSignal) == killed + 1; })) << text(pool.stats());
  }
  EXPECT_LT(least, 900ms) << "after 14 deaths the back-off is 1.02 s";
}

}  // namespace
}  // namespace freehold
