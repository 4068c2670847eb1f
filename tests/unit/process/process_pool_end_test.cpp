// SPDX-License-Identifier: MIT
// Nothing is left behind when a worker, a pool or the process that has it ends, and a component that writes over the table
// harms its own tasks.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <memory>
#include <vector>

#include "tests/unit/process/process_pool_support.hpp"

// A process that is started comes back only when it has ended: the supervisor was held up so long.
static std::atomic<bool> g_starts_slowly{false};

extern "C" int posix_spawnp(pid_t* pid, const char* program, const posix_spawn_file_actions_t* actions,
                            const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]) {
  static const auto spawn = reinterpret_cast<decltype(&posix_spawnp)>(::dlsym(RTLD_NEXT, "posix_spawnp"));
  const int error = spawn(pid, program, actions, attributes, arguments, environment);
  for (int i = 0; i < 1000 && error == 0 && g_starts_slowly && ::kill(*pid, 0) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return error;
}

namespace freehold {
namespace {

using namespace process_test;

// A length beyond the output, with or without a reason of the component's, was taken for damage of the whole table.
TEST(ProcessPool_Unit, ComponentSaysMoreThanThereIsRoomFor_ItsTaskFailsAlone) {
  ProcessPoolOptions how = options();
  how.max_workers = 1;
  ProcessPool pool(how);
  const std::string worker(pool.call("pid").text());
  EXPECT_EQ(pool.call("lie 0").error(), (Failure{FailureKind::kComponent, -1}));
  EXPECT_EQ(pool.call("lie 42").error(), (Failure{FailureKind::kComponent, 42}));
  EXPECT_EQ(pool.call("pid").text(), worker) << "it goes on";
}
// The process that inherits the dead reaps them some time; until then they are zombies, which run no more.
bool is_gone(int pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  return !std::getline(stat, text) || text.find(") Z ") != std::string::npos;
}
int number_in(const std::string& file) {
  int number = 0;
  std::ifstream(file) >> number;
  return number;
}
TEST(ProcessPool_Unit, ComponentLeavesAChild_GoneWithTheWorker) {
  const std::string file = testing::TempDir() + "freehold_child_" + std::to_string(::getpid());
  ProcessPoolOptions how = options();
  how.max_attempts = 1;
  int children[2] = {};
  {
    ProcessPool pool(how);
    ASSERT_TRUE(pool.call("leave " + file).ok());
    children[0] = number_in(file);
    EXPECT_FALSE(is_gone(children[0]));
    Future hangs = pool.submit("leavehang " + file, {.run_timeout = 100ms});
    EXPECT_EQ(hangs.get().error().kind, FailureKind::kDeadline);
    children[1] = number_in(file);
    EXPECT_TRUE(comes_true([&] { return is_gone(children[1]); }));
  }
  EXPECT_TRUE(comes_true([&] { return is_gone(children[0]); }));
  std::filesystem::remove(file);
}
// Such a worker can be gone before it is watched: it was not killed by the pool, and its program is not broken.
TEST(ProcessPool_Unit, ProgramIgnoresItsChildren_OneDiesBeforeItIsWatched) {
  const auto former = ::signal(SIGCHLD, SIG_IGN);
  ProcessPoolOptions how = options();
  how.max_attempts = how.max_workers = 1;
  ProcessPool pool(how);
  g_starts_slowly = true;
  const Failure seen = pool.call("crash").error();
  g_starts_slowly = false;
  EXPECT_EQ(seen, (Failure{FailureKind::kSignal, 0}));
  EXPECT_EQ(ended(pool, ExitReason::kNeverUp), 0u) << text(pool.stats());
  EXPECT_EQ(ended(pool, ExitReason::kSignal), 1u) << text(pool.stats());
  EXPECT_EQ(pool.call("echo x").text(), "x");
  ::signal(SIGCHLD, former);
}
TEST(ProcessPool_Unit, ForkedChildDestroysItsCopy_ParentGoesOn) {
  auto pool = std::make_unique<ProcessPool>(options());
  ASSERT_TRUE(pool->call("echo x").ok());
  std::atomic<int> called{0};
  const auto call_back = [&] {  // by a thread that the child has not got
    const int before = called;
    pool->submit("echo x").then([&](const Result&) { ++called; });
    return comes_true([&] { return called == before + 1; });
  };
  EXPECT_TRUE(call_back());
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    pool.reset();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_TRUE(call_back());
  EXPECT_EQ(pool->call("echo x").text(), "x");
}
// Its function uses the pool, which another thread destroys: refused, or accepted and called all the same.
TEST(ProcessPool_Unit, PoolEndsWhileACallbackSubmits_EachFunctionOnce) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> submitted{1}, called{0};
    ProcessPool* used = nullptr;
    const std::function<void(Result)> submit_again = [&](const Result& result) {
      ++called;
      if (!result.ok()) return;
      ++submitted;
      used->submit("echo x").then(submit_again);
    };
    {
      ProcessPool pool(options());
      used = &pool;
      pool.submit("echo x").then(submit_again);
      ASSERT_TRUE(comes_true([&] { return called >= 3; }));
    }
    EXPECT_EQ(called, submitted);
  }
}
// A process with a pool that serves one end of a socket pair; this process has the other end.
class ServingProcess {
 public:
  explicit ServingProcess(void (*then)(ProcessPool&) = [](ProcessPool&) {}) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    child_ = ::fork();
    if (child_ == 0) {
      ::close(ends[1]);
      ProcessPool pool(options());
      pool.serve(ends[0]);
      then(pool);
      ::pause();
    }
    ::close(ends[0]);
    socket_ = ends[1];
  }
  ~ServingProcess() {
    kill();
    EXPECT_EQ(::waitpid(child_, nullptr, 0), child_);
  }
  ServingProcess(const ServingProcess&) = delete;
  ServingProcess& operator=(const ServingProcess&) = delete;

  // For an AttachedClient, which closes it.
  [[nodiscard]] int socket() const { return socket_; }
  void kill() const { ::kill(child_, SIGKILL); }

 private:
  pid_t child_ = 0;
  int socket_ = -1;
};
// The pool's process has forked a child that did not exec and has a copy of the socket.
TEST(ProcessPool_Unit, PoolGoneButForkedChildLives_AttachedClientFails) {
  const ServingProcess pool([](ProcessPool& served) {
    static_cast<void>(served.call("echo up"));
    if (::fork() == 0) {
      ::sleep(30);
      ::_exit(0);
    }
  });
  process::AttachedClient attached(pool.socket());
  ASSERT_TRUE(attached.ok());
  ASSERT_EQ(attached.submit("echo y").get().text(), "y");
  Future hangs = attached.submit("hang");
  pool.kill();
  EXPECT_TRUE(hangs.wait_for(10s));
  EXPECT_EQ(hangs.get().error().kind, FailureKind::kNoWorker);
}
// The process of pool and supervisor is killed: its workers die, too.
TEST(ProcessPool_Unit, ClientKilled_WorkersDieWithIt) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ProcessPoolOptions how = options();
    how.min_workers = 2;
    ProcessPool pool(how);
    Future hangs = pool.submit("hang");
    static_cast<void>(pool.call("echo up"));
    comes_true([&] { return pool.worker_pids().size() == 2; });
    const std::vector<int> pids = pool.worker_pids();
    [[maybe_unused]] const ssize_t written = ::write(pipe_ends[1], pids.data(), 2 * sizeof(int));
    ::pause();
  }
  int pids[2] = {};
  ASSERT_EQ(::read(pipe_ends[0], pids, sizeof pids), static_cast<ssize_t>(sizeof pids));
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  for (const int pid : pids) EXPECT_TRUE(comes_true([&] { return is_gone(pid); })) << pid;
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

}  // namespace
}  // namespace freehold
