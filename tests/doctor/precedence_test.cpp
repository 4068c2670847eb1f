// SPDX-License-Identifier: MIT
// Runs that go before other processes: what is taken, what is given back, and what Ctrl-Z does to it.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/folder.hpp"
#include "tools/doctor/run/attendance.hpp"
#include "tools/doctor/run/child.hpp"
#include "tools/doctor/run/cpu_group.hpp"
#include "tools/doctor/run/precedence.hpp"
#include "tools/doctor/run/program.hpp"
#include "tools/live/process.hpp"

namespace freehold::doctor {
namespace {

std::string group_of_session() { return test::content_of("/proc/self/autogroup"); }
bool is_weighed() { return CpuGroup(membership_of(::getpid())).is_weighed(); }

TEST(Precedence, GivenBackAtTheEnd) {
  const int nice = ::getpriority(PRIO_PROCESS, 0);
  const std::string group = group_of_session();
  bool taken = false;
  {
    Precedence precedence;
    taken = precedence.take();
    EXPECT_EQ(precedence.is_taken(), taken);
    EXPECT_EQ(precedence.take(), taken);
    EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), taken ? -20 : nice);
    EXPECT_TRUE(!taken || group.empty() || is_weighed() || group_of_session().ends_with(" nice -20\n"))
        << group_of_session();
  }
  EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), nice);
  EXPECT_EQ(group_of_session(), group);
  if (::geteuid() != 0) GTEST_SKIP() << "Only root may take precedence for certain.";
}

// The kernel weighs its members in their group. The session has others, which would be raised above them.
TEST(Precedence, MemberOfAControlGroup_SessionKeepsItsWeight) {
  namespace fs = std::filesystem;
  const fs::path root = fs::exists("/sys/fs/cgroup/cpu/cpu.shares") ? "/sys/fs/cgroup/cpu" : "/sys/fs/cgroup";
  const fs::path group = root / ("freehold-precedence-test-" + std::to_string(::getpid()));
  std::error_code error;
  if (!fs::create_directory(group, error)) GTEST_SKIP() << "Control groups cannot be made here.";
  const pid_t child = ::fork();
  if (child == 0) {
    if (!(std::ofstream(group / "cgroup.procs") << 0 << std::flush) || !is_weighed()) ::_exit(2);
    const std::string before = group_of_session();
    Precedence precedence;
    ::_exit(precedence.take() && group_of_session() != before ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  for (const double until = now_s() + 5; !fs::remove(group, error) && now_s() < until;) ::usleep(1000);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "The controller is not handed on to groups.";
  EXPECT_EQ(status, 0);
}

// A user who may not take it notices nothing.
TEST(Precedence, NotPermitted_NothingChanges) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{};
    ::setrlimit(RLIMIT_NICE, &none);
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(2);
    const int nice = ::getpriority(PRIO_PROCESS, 0);
    Precedence precedence;
    ::_exit(!precedence.take() && !precedence.is_taken() && ::getpriority(PRIO_PROCESS, 0) == nice ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// A process with so many threads beside its first one, which sleeps.
class Threads {
 public:
  explicit Threads(std::size_t n, int policy = SCHED_OTHER) : pid_(::fork()) {
    if (pid_ == 0) live(n, policy);
    const auto has_begun = [&] { return live::threads_of(pid_).size() == n + 1 && policies()[n] == policy; };
    for (const double until = now_s() + 10; now_s() < until && !has_begun();) ::usleep(1000);
  }
  ~Threads() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::vector<int> policies() const {
    std::vector<int> policies;
    for (const pid_t thread : live::threads_of(pid_)) policies.push_back(::sched_getscheduler(thread));
    return policies;
  }

 private:
  [[noreturn]] static void live(std::size_t n, int policy) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < n; ++i)
      threads.emplace_back([policy] {
        const sched_param none{};
        ::sched_setscheduler(0, policy, &none);
        for (;;) ::pause();
      });
    for (;;) ::pause();
  }
  pid_t pid_;
};

TEST(RealTime, NoMoreThreadsThanCpus_All) {
  if (::geteuid() != 0) GTEST_SKIP() << "Only root may have real-time threads for certain.";
  const std::size_t cpus = cpus_in_order().size();
  const Threads program(cpus), larger(cpus + 1);
  {
    RealTime real_time(program.pid());
    EXPECT_EQ(::sched_getscheduler(0), SCHED_FIFO | SCHED_RESET_ON_FORK);
    real_time.look();
    EXPECT_EQ(program.policies(), std::vector<int>(cpus + 1, SCHED_RR | SCHED_RESET_ON_FORK)) << "the first thread sleeps";
  }
  EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
  {
    RealTime real_time(larger.pid());
    real_time.look();
    EXPECT_EQ(larger.policies(), std::vector<int>(cpus + 2, SCHED_OTHER));
  }
}

// Threads of the kernel are ordinary, and a program waits for them.
TEST(RealTime, LookedAtForLong_OthersGetATurn) {
  if (::geteuid() != 0) GTEST_SKIP() << "Only root may have real-time threads for certain.";
  const Threads program(1);
  RealTime real_time(program.pid());
  std::size_t ordinary = 0, looks = 0;
  for (const double until = now_s() + 3.5 * RealTime::kOthersTurnEvery_s; now_s() < until; ::usleep(5000)) {
    real_time.look();
    ++looks;
    ordinary += program.policies()[1] == SCHED_OTHER ? 1 : 0;
  }
  EXPECT_GE(ordinary, 1U);
  EXPECT_LE(ordinary, 3U) << looks;
}

// It had no more threads than CPUs, and begins another.
TEST(RealTime, MoreThreadsLater_NoneAnyMore) {
  if (::geteuid() != 0) GTEST_SKIP() << "Only root may have real-time threads for certain.";
  const std::size_t cpus = cpus_in_order().size();
  const Threads program(cpus + 1);
  const sched_param lowest{1};
  const std::vector<pid_t> threads = live::threads_of(program.pid());
  for (std::size_t i = 0; i < cpus; ++i) {
    ASSERT_EQ(::setpriority(PRIO_PROCESS, static_cast<id_t>(threads[i]), kNiceBeforeOthers), 0);
    ASSERT_EQ(::sched_setscheduler(threads[i], SCHED_RR | SCHED_RESET_ON_FORK, &lowest), 0);
  }
  RealTime real_time(program.pid());
  real_time.look();
  EXPECT_EQ(program.policies(), std::vector<int>(cpus + 2, SCHED_OTHER));
  for (const pid_t thread : threads) EXPECT_EQ(::getpriority(PRIO_PROCESS, static_cast<id_t>(thread)), -20);
}

// A process that a program starts between two looks is ordinary, whether or not a look follows.
TEST(RealTime, ChildrenDoNotInheritIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "Only root may have real-time threads for certain.";
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char go = 0;
    if (::read(ends[0], &go, 1) != 1) ::_exit(2);
    const pid_t grandchild = ::fork();
    if (grandchild == 0) ::_exit(::sched_getscheduler(0) == SCHED_OTHER ? 0 : 1);
    int status = 0;
    ::waitpid(grandchild, &status, 0);
    ::_exit(WEXITSTATUS(status));
  }
  RealTime real_time(child);
  real_time.look();
  EXPECT_EQ(::sched_getscheduler(child), SCHED_RR | SCHED_RESET_ON_FORK);
  ASSERT_EQ(::write(ends[1], "", 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const int end : ends) ::close(end);
}

TEST(RealTime, ProgramChoosesPriorities_LeftAlone) {
  const Threads batch(1, SCHED_BATCH), nice(1);
  RealTime(batch.pid()).look();
  EXPECT_EQ(batch.policies(), (std::vector<int>{SCHED_OTHER, SCHED_BATCH}));
  ASSERT_EQ(::setpriority(PRIO_PROCESS, static_cast<id_t>(live::threads_of(nice.pid())[1]), 10), 0);
  RealTime(nice.pid()).look();
  EXPECT_EQ(nice.policies(), (std::vector<int>{SCHED_OTHER, SCHED_OTHER}));
  const Threads own(1);
  const sched_param ten{10};
  if (::sched_setscheduler(own.pid(), SCHED_RR, &ten) != 0) return;  // only root may for certain
  RealTime(own.pid()).look();
  EXPECT_EQ(own.policies(), (std::vector<int>{SCHED_RR, SCHED_OTHER}));
}

// A wait for a program spins in the kernel until its threads, ordinary at their end, have removed their entries in /proc:
// with real-time priority the doctor kept such a thread from its CPU for a second, in six of 54 runs, and a shell its
// child's, in 14 of 84.
TEST(RealTime, ProgramOrItsChildEndsBesideItsThread_IsReapedAtOnce) {
  if (::geteuid() != 0) GTEST_SKIP() << "Only root may have real-time threads for certain.";
  std::vector<pid_t> busy(cpus_in_order().size());
  for (pid_t& pid : busy) {
    pid = ::fork();
    if (pid != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) asm volatile("");
  }
  Command command{.file = FREEHOLD_SUBJECT,
                  .arguments = {FREEHOLD_SUBJECT, "ends_beside_a_thread"},
                  .before_others = true,
                  .real_time = true};
  Host host;
  sigemptyset(&host.mask);
  const auto late = [&](unsigned runs) {
    unsigned late = 0;
    for (unsigned i = 0; i < runs; ++i) {
      const auto done = run(command, {}, 20, host);
      EXPECT_EQ(failure_of(done, 20), "");
      late += done.trial.system_s > 0.3 ? 1 : 0;
    }
    return late;
  };
  EXPECT_LE(late(200), 2U);
  command.file = "/bin/sh";
  command.arguments = {"sh", "-c", "\"$0\" ends_beside_a_thread; exit $?", FREEHOLD_SUBJECT};
  EXPECT_LE(late(60), 2U);
  for (const pid_t pid : busy) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

TEST(Precedence, TwoInOneSession_TheFirstGivesTheGroupBack) {
  const std::string group = group_of_session();
  auto first = std::make_unique<Precedence>();
  auto second = std::make_unique<Precedence>();
  if (!first->take() || group.empty()) GTEST_SKIP() << "There is nothing to take.";
  EXPECT_TRUE(second->take());
  first.reset();
  second.reset();
  EXPECT_EQ(group_of_session(), group);
}

// True if the condition comes true within ten seconds.
template <class Condition>
bool comes(const Condition& condition) {
  for (const double until = now_s() + 10; now_s() < until; ::usleep(1000))
    if (condition()) return true;
  return false;
}

// Runs the test in a new session: 0 if its weight is given back when the process that took it gets the signal, as its
// terminal would send it.
int exit_code_of_session(int signal) {
  const pid_t leader = ::fork();
  if (leader == 0) {
    ::setsid();
    const std::string before = group_of_session();
    const pid_t child = ::fork();
    if (child == 0) {
      ::setpgid(0, 0);
      Precedence precedence;
      if (!precedence.take() || before.empty() || group_of_session() == before) ::_exit(77);
      ::kill(signal == SIGTSTP ? 0 : ::getpid(), signal);
      for (;;) ::pause();
    }
    int status = 0;
    ::waitpid(child, &status, WUNTRACED);
    if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
    const bool is_back = comes([&] { return group_of_session() == before; });
    ::kill(-child, SIGCONT);
    const bool is_taken_again = signal == SIGKILL || comes([&] { return group_of_session() != before; });
    ::kill(child, SIGKILL);
    ::_exit(is_back && is_taken_again && comes([&] { return group_of_session() == before; }) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(leader, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Precedence, KilledOrStoppedByCtrlZ_TheGroupIsGivenBack) {
  const int killed = exit_code_of_session(SIGKILL);
  if (killed == 77) GTEST_SKIP() << "There is nothing to take.";
  EXPECT_EQ(killed, 0);
  EXPECT_EQ(exit_code_of_session(SIGTSTP), 0);
}

char state_of(pid_t pid) {
  const std::string text = test::content_of("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t end = text.rfind(')');
  return end == std::string::npos || end + 2 >= text.size() ? '-' : text[end + 2];
}

// A program that goes before others must stop when the doctor stops.
TEST(Suspension, CtrlZ_TheProgramStopsAndGoesOnWithTheDoctor) {
  const std::string go = testing::TempDir() + "freehold-go-" + std::to_string(::getpid());
  const pid_t doctor = ::fork();
  if (doctor == 0) {
    ::setpgid(0, 0);
    Host host;
    sigemptyset(&host.mask);
    const Command waits{.file = "/bin/sh",
                        .arguments = {"sh", "-c", "while [ ! -e " + go + " ]; do sleep 0.01; done; exit 7"}};
    ::_exit(failure_of(run(waits, {}, 60, host), 60) == "exit code 7" ? 0 : 1);
  }
  const auto family = [&] { return live::family_of(doctor); };
  const auto all_are_stopped = [&] {
    return std::ranges::all_of(family(), [](pid_t each) { return state_of(each) == 'T'; });
  };
  ASSERT_TRUE(comes([&] { return family().size() >= 3; })) << "the shell and its sleep";
  ::kill(doctor, SIGTSTP);
  int status = 0;
  ASSERT_EQ(::waitpid(doctor, &status, WUNTRACED), doctor);
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_TRUE(comes(all_are_stopped)) << "the program runs on";
  std::ofstream(go) << "go";
  ::kill(doctor, SIGCONT);
  ASSERT_EQ(::waitpid(doctor, &status, 0), doctor);
  EXPECT_EQ(status, 0);
  std::filesystem::remove(go);
}

}  // namespace
}  // namespace freehold::doctor
