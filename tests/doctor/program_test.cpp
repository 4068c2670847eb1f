// SPDX-License-Identifier: MIT
// Runs of programs whose end, time and needs are known.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "tests/support/folder.hpp"
#include "tools/doctor/run/attendance.hpp"
#include "tools/doctor/run/child.hpp"
#include "tools/doctor/run/cpu_group.hpp"
#include "tools/doctor/run/event_count.hpp"
#include "tools/doctor/run/lock_sleepers.hpp"
#include "tools/doctor/run/program.hpp"

namespace freehold::doctor {
namespace {
namespace fs = std::filesystem;

// Two processes that a shell starts at once, each of which takes some CPU time.
constexpr const char* kBusyTwice = "busy() { i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done; }; busy & busy & wait";

// The kernel's own clock counts everywhere where events are permitted; instructions do so where the machine has a counter.
TEST(EventCount, ProgramThatIsExecuted_IsCountedWithItsChildrenFromItsStart) {
  constexpr double kBefore_ns = 40e6, kForkAndExec_ns = 15e6;
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  const pid_t process = ::fork();
  if (process == 0) {
    char byte = 0;
    while (::read(go[0], &byte, 1) != 1) {
    }
    timespec used{};
    do ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while (static_cast<double>(used.tv_nsec) < kBefore_ns);
    ::execl("/bin/sh", "sh", "-c", kBusyTwice, nullptr);
    ::_exit(127);
  }
  EventCount cpu_ns, instructions;
  cpu_ns.begin(process, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
  instructions.begin_instructions(process);
  ASSERT_EQ(::write(go[1], "x", 1), 1);
  int status = 0;
  struct rusage usage{};
  ASSERT_EQ(::wait4(process, &status, 0, &usage), process);
  ASSERT_EQ(status, 0);
  for (const int end : go) ::close(end);
  EXPECT_GT(instructions.read().value_or(1e9), 1e5);
  const auto count = cpu_ns.read();
  if (!count) GTEST_SKIP() << "the kernel does not permit events";
  const auto ns = [](const timeval& time) {
    return 1e9 * static_cast<double>(time.tv_sec) + 1e3 * static_cast<double>(time.tv_usec);
  };
  EXPECT_NEAR(*count, ns(usage.ru_utime) + ns(usage.ru_stime) - kBefore_ns, kForkAndExec_ns);
  EXPECT_FALSE(EventCount().read());
}

Command shell(const std::string& text) { return {.file = "/bin/sh", .arguments = {"sh", "-c", text}}; }

Host host() {
  Host host;
  sigemptyset(&host.mask);
  return host;
}

Run run_shell(const std::string& text, const LaunchOptions& options = {}, double seconds = 20) {
  return run(shell(text), options, seconds, host());
}

TEST(Child, ProgramThatCannotBeExecuted_LeavesNoZombie) {
  const Host here = host();
  const Command command{.file = "/no/such/program", .arguments = {"x"}};
  const Child child(command, {}, here);
  EXPECT_FALSE(child.is_up());
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Child, NoDescriptorIsLeftForAPipe_IsNotStartedAndSaysWhy) {
  const Host here = host();
  Command command = shell("exit 0");
  command.keep_output = true;
  const int lowest = ::dup(STDIN_FILENO);
  ::close(lowest);
  struct rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  for (int room = 0; room < 6; ++room) {  // two for the socket, two for each pipe
    const struct rlimit few{static_cast<rlim_t>(lowest + room), before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    const Child child(command, {}, here);
    ::setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_FALSE(child.is_up()) << room;
    EXPECT_EQ(child.why_not(), "Too many open files") << room;
  }
}

TEST(Child, GroupWhoseNumberIsAnothers_IsNotSignalled) {
  const Host here = host();
  auto child = std::make_unique<Child>(shell("exit 0"), LaunchOptions{}, here);
  const pid_t number = child->pid();
  while (child->is_up()) child->attend();
  pid_t other = -1;
  for (int i = 0; i < 100 && other != number; ++i) {  // others may take it before
    if (other > 0) {
      ::kill(other, SIGKILL);
      ::waitpid(other, nullptr, 0);
    }
    std::ofstream("/proc/sys/kernel/ns_last_pid") << number - 1 << std::flush;
    other = ::fork();
    if (other == 0) {
      ::pause();
      ::_exit(0);
    }
  }
  ::setpgid(other, other);
  child.reset();
  ::kill(other, SIGTERM);
  int status = 0;
  ::waitpid(other, &status, 0);
  if (other != number) GTEST_SKIP() << "no process can be given a number here";
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(Program, ScriptWithoutInterpreterLine_IsRunByTheShell) {
  const test::Folder folder;
  const std::string script = folder.file("script", "exit 7\n");
  fs::permissions(script, fs::perms::owner_all);
  EXPECT_EQ(failure_of(run({.file = script, .arguments = {"script"}}, {}, 20, host()), 20), "exit code 7");
}

// A malloc in the program's own file is an allocator all the same: its atomic operations and the loop that it spins in are
// not the program's own.
TEST(Program, SampledWithItsOwnMalloc_TimeInMallocIsTheAllocators) {
  Command command{.file = FREEHOLD_SPINNING_MALLOC, .arguments = {"spinning_malloc", "2", "4000000"}};
  command.sample_code = true;
  const auto sampled = run(command, {}, 60, host());
  ASSERT_EQ(failure_of(sampled, 60), "");
  if (sampled.code.samples < 100) GTEST_SKIP() << "the kernel does not permit sampling";
  double blamed_s = 0, allocator_s = 0, all_s = sampled.code.unknown_s;
  for (const auto& [place, time] : sampled.code.places) {
    all_s += time.seconds;
    if (time.origin == CodeOrigin::kAllocator) allocator_s += time.seconds;
    if (time.origin != CodeOrigin::kAllocator && time.instruction >= Instruction::kAtomic) blamed_s += time.seconds;
  }
  EXPECT_GT(allocator_s, 0.7 * all_s);
  EXPECT_LT(blamed_s, 0.1 * all_s);
}

TEST(LockSleepers, StateOfAThread_IsRead) {
  EXPECT_TRUE(LockSleepers::sleeps_in_lock("202 0x7f3a 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f3b"));
  EXPECT_TRUE(LockSleepers::sleeps_in_lock("202 0x7f3a 0x189 0x2 0x0 0x0 0xffffffff 0x7ffe 0x7f3b")) << "Rust's";
  EXPECT_TRUE(LockSleepers::sleeps_in_lock("202 0x7f3a 0x86 0x0 0x0 0x0 0x0 0x7ffe 0x7f3b")) << "a priority lock";
  EXPECT_FALSE(LockSleepers::sleeps_in_lock("202 0x7f3a 0x80 0x0 0x0 0x0 0x0 0x7ffe 0x7f3b")) << "waits for work";
  EXPECT_FALSE(LockSleepers::sleeps_in_lock("202 0x7f3a 0x81 0x2 0x0 0x0 0x0 0x7ffe 0x7f3b")) << "wakes others";
  EXPECT_FALSE(LockSleepers::sleeps_in_lock("0 0x2 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f3b")) << "reads";
  for (const char* const other : {"running", "-1 0x7ffe 0x7f3b", ""}) EXPECT_FALSE(LockSleepers::sleeps_in_lock(other));
}

double lock_sleepers_of(const char* role) {
  Command command{.file = FREEHOLD_SUBJECT, .arguments = {"subject", role}};
  command.sample_code = true;
  const auto sampled = run(command, {}, 20, host());
  EXPECT_EQ(failure_of(sampled, 20), "");
  return sampled.code.lock_sleepers;
}
TEST(LockSleepers, ThreadsAtOneStream_AreSeenAsleep) {
  EXPECT_GT(lock_sleepers_of("stream"), 0.05);
  EXPECT_EQ(lock_sleepers_of("counts"), 0);
}

TEST(Program, StandardError_LastWordsAreKept) {
  const auto done = run_shell("i=0; while [ $i -lt 3000 ]; do echo line $i >&2; i=$((i+1)); done; echo the end >&2; exit 3");
  EXPECT_EQ(failure_of(done, 20), "exit code 3");
  EXPECT_TRUE(done.last_words.ends_with("\nline 2999\nthe end")) << done.last_words;
  EXPECT_LE(done.last_words.size(), 2048u);
  EXPECT_TRUE(done.last_words.starts_with("line ")) << "a line was cut: " << done.last_words.substr(0, 20);
}

TEST(Program, Deadline_EndsEvenWhatIgnoresSigterm) {
  const double begin = now_s();
  const auto done = run_shell("trap '' TERM; while :; do sleep 0.01; done", {}, 0.2);
  EXPECT_EQ(done.ending, Ending::kOutOfTime);
  EXPECT_EQ(failure_of(done, 0.2), "no end after 0.2 s");
  EXPECT_LT(now_s() - begin, 8);
}

TEST(Program, Deadline_EndsEvenWhatLeftItsGroup) {
  const double begin = now_s();
  const auto done = run({.file = FREEHOLD_SUBJECT, .arguments = {"subject", "leaves_its_group"}}, {}, 0.5, host());
  EXPECT_EQ(done.ending, Ending::kOutOfTime);
  EXPECT_LT(now_s() - begin, 8);
}

// A process that keeps one CPU busy for as long as it lives.
class Neighbour {
 public:
  explicit Neighbour(unsigned cpu) : pid_(::fork()) {
    if (pid_ != 0) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    ::sched_setaffinity(0, sizeof set, &set);
    for (volatile unsigned long turns = 0;;) turns = turns + 1;
  }
  ~Neighbour() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

 private:
  pid_t pid_;
};

constexpr const char* kBusyShell = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";

// Others took CPUs that the program would have used: a CPU that it left idle was not taken from it.
TEST(Program, BusyNeighbour_TakesOnlyWhatWasWanted) {
  const unsigned cpu = cpus_in_order().front();
  const Neighbour neighbour(cpu);
  const Trial busy = run_shell(kBusyShell, {.preload = {}, .environment = {}, .cpus = {cpu}}).trial;
  EXPECT_GE(busy.taken_s, 0.25 * busy.wall_s) << "both wanted the CPU all the time";
  EXPECT_LE(busy.taken_s, busy.stolen_s);
  EXPECT_GE(busy.cpu_s() + busy.taken_s, 0.8 * busy.wall_s) << "it was never idle";
  const Trial idle = run_shell("sleep 0.4", {.preload = {}, .environment = {}, .cpus = {cpu}}).trial;
  EXPECT_GE(idle.stolen_s, 0.25);
  EXPECT_LE(idle.taken_s, 0.5 * idle.stolen_s) << "it wanted none";
}

// The first run would wait for them.
TEST(Busy, EveryCpuHasAProcess_MachineIsBusy) {
  const std::vector<unsigned> cpus = cpus_in_order();
  std::vector<pid_t> others(cpus.size());
  for (pid_t& other : others) {
    other = ::fork();
    while (other == 0) static_cast<void>(now_s());
  }
  EXPECT_TRUE(is_machine_busy(cpus));
  for (const pid_t other : others) {
    ::kill(other, SIGKILL);
    ::waitpid(other, nullptr, 0);
  }
}
// A quota of one CPU that is used up: what runs on the other one takes nothing from the program.
TEST(Program, QuotaIsUsedUp_OthersTookNothing) {
  const auto taken_of = [](double quota_cpus, double cpu_s, double copies) {
    doctor::Run over;
    over.quota_cpus = quota_cpus;
    over.trial.wall_s = 2;
    add_stolen(over, {.all_s = 4}, cpu_s, copies, {.ran_s = cpu_s, .waited_s = 2});
    return over.trial.taken_s;
  };
  EXPECT_EQ(taken_of(0, 2, 1), 2);
  EXPECT_EQ(taken_of(1, 2, 1), 0);
  EXPECT_DOUBLE_EQ(taken_of(1, 1.5, 1), 0.5) << "others left it less than its quota";
  EXPECT_DOUBLE_EQ(taken_of(1, 1.5, 2), 0.25);
}
// Threads that lived for moments, one at a time, had a CPU all the time; others used the CPU that they left idle.
TEST(Program, WaitsAreNotSeen_OthersTookNoMoreThanReadyThreadsWanted) {
  doctor::Run run;
  run.trial.wall_s = 2, run.trial.ready_share = 1;
  add_stolen(run, {.all_s = 4}, 2, 1, {.ran_s = 0.1, .waited_s = 0, .ready = 1});
  EXPECT_NEAR(run.trial.taken_s, 0.2, 1e-9) << "as far as looks miss";
  EXPECT_FALSE(run.trial.run_delay_s);
}
// One thread had its CPU all the time, and others the other one.
TEST(Program, OneThreadOnTwoCpus_OthersTookNothing) {
  Trial trial;
  trial.wall_s = trial.user_s = trial.taken_s = 0.5;
  hold_taken_to(trial, 2);
  EXPECT_EQ(trial.taken_s, 0.5);
  hold_taken_to(trial, 1);
  EXPECT_EQ(trial.taken_s, 0);
}
// Both had to share one of two CPUs, and each was ready while the other one ran.
TEST(Program, TwoThreadsBoundToOneCpu_OthersTookNothingThatTheyCouldHaveUsed) {
  Trial trial;
  trial.wall_s = 0.5, trial.user_s = 0.4, trial.taken_s = 0.6, trial.own_cpus = 1;
  hold_taken_to(trial, 2);
  EXPECT_DOUBLE_EQ(trial.taken_s, 0.1);
}
// Threads that come and go between two looks, in a program that sleeps most of the time.
TEST(Program, TimesWereNotSeen_OthersTookOnlyWhatLooksFoundWanted) {
  const auto taken_of = [](std::optional<double> ready_share, double seen_s) {
    doctor::Run over;
    over.trial.wall_s = 1;
    over.trial.ready_share = ready_share;
    add_stolen(over, {.all_s = 1.8}, 0.2, 1, {.ran_s = seen_s, .waited_s = 1.5, .ready = 2});
    return over.trial.taken_s;
  };
  EXPECT_DOUBLE_EQ(taken_of(0.1, 0), 0.32);
  EXPECT_DOUBLE_EQ(taken_of(1, 0), 1.6);
  EXPECT_DOUBLE_EQ(taken_of({}, 0), 1.6) << "too few looks";
  EXPECT_DOUBLE_EQ(taken_of(0.1, 0.2), 1.5) << "what threads waited is known";
}
// A look or two before it bound itself say nothing of the rest.
TEST(Program, BindsItselfToOneCpu_OneCpuAndItsThreadsWaitForEachOther) {
  if (cpus_in_order().size() < 2) GTEST_SKIP() << "It takes two CPUs.";
  const Command binds{.file = FREEHOLD_SUBJECT, .arguments = {FREEHOLD_SUBJECT, "binds_itself"}};
  const Trial trial = run(binds, {}, 60, host()).trial;
  EXPECT_EQ(trial.own_cpus, 1U);
  EXPECT_GE(trial.run_delay_s, 0.1) << "each waited for the other's turns";
  EXPECT_FALSE(trial.apart_share) << "there is one CPU for them";
}
TEST(Program, StopDescriptor_EndsTheRun) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  Host stopping = host();
  stopping.stop_fd = ends[0];
  const double begin = now_s();
  EXPECT_EQ(run(shell("sleep 60"), {}, 60, stopping).ending, Ending::kStopped);
  EXPECT_LT(now_s() - begin, 8);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Program, Copies_EachOnItsOwnCpu_LongestWallCounts) {
  std::vector<LaunchOptions> places;
  for (const unsigned cpu : cpus_in_order())
    places.push_back({.preload = {}, .environment = {{"PAUSE", "0.1"}}, .cpus = {cpu}});
  places.back().environment = {{"PAUSE", "0.4"}};
  const auto done = run_copies(shell("[ $(nproc) = 1 ] && sleep $PAUSE"), places, 20, host());
  EXPECT_EQ(failure_of(done, 20), "");
  EXPECT_GE(done.trial.wall_s, 0.4);
}

TEST(Program, Surroundings_EnvironmentAndPreloadReachIt) {
  ::setenv("FREEHOLD_TEST_OUTER", "outer", 1);
  ::setenv("FREEHOLD_TEST_CHANGED", "before", 1);
  const LaunchOptions options{.preload = {"/a.so", "/b.so"}, .environment = {{"FREEHOLD_TEST_CHANGED", "after"}}};
  EXPECT_EQ(failure_of(run_shell("[ $FREEHOLD_TEST_OUTER$FREEHOLD_TEST_CHANGED = outerafter ]", options), 20), "");
  EXPECT_EQ(failure_of(run_shell("[ $LD_PRELOAD = /a.so:/b.so ]", options), 20), "");
  ::setenv("LD_PRELOAD", "/own.so", 1);
  EXPECT_EQ(failure_of(run_shell("[ $LD_PRELOAD = /a.so:/b.so:/own.so ]", options), 20), "");
  ::unsetenv("LD_PRELOAD");
}

// Only some machines count instructions.
TEST(Program, Instructions_ThoseOfAllItsProcessesAreCounted) {
  const auto done = run_shell(kBusyTwice);
  EXPECT_GT(done.trial.instructions.value_or(1e9), 2 * 40'000 * 100.0) << "a turn of the shell's loop takes hundreds";
}

TEST(Program, DescriptorsOfTheDoctor_AreNotPassedOn) {
  std::string absent;
  for (int fd = 3; fd < 64; ++fd)
    if (const int flags = ::fcntl(fd, F_GETFD); flags < 0 || (flags & FD_CLOEXEC) != 0) absent += ' ' + std::to_string(fd);
  EXPECT_EQ(failure_of(run_shell("for fd in" + absent + "; do [ ! -e /proc/self/fd/$fd ] || exit 9; done"), 20), "");
}

// The doctor holds more the later it starts a program: it has read recordings by then.
TEST(Program, DoctorHoldsMemory_ProgramsPeakIsItsOwn) {
  constexpr std::size_t kHeld = 64 << 20;
  const std::vector<char> held(kHeld, 1);
  const std::uint64_t peak = run_shell("sleep 0.5").trial.peak_rss_bytes;
  EXPECT_GT(peak, 100'000U);
  EXPECT_LT(peak, kHeld / 4) << int{held[kHeld / 2]};
}

TEST(Program, CpuTime_CountsChildrenThatWereWaitedFor) {
  const auto done = run_shell("sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; exit 0");
  EXPECT_GT(done.trial.cpu_s(), 0.02);
  EXPECT_LT(done.trial.cpu_s(), done.trial.wall_s * 1.5 + 0.1);
}

TEST(Service, TimeIsUp_LoadIsEndedAndItsOutputKept) {
  const Service service{.ready = "sleep 0.01", .load = "echo rate 9; exec sleep 60", .seconds = 0.3};
  const auto done = run_service(shell("exec sleep 60"), {}, service, 30, host());
  EXPECT_EQ(failure_of(done, 30), "");
  EXPECT_EQ(done.output, "rate 9\n");
  EXPECT_LT(done.trial.wall_s, 5);
}

TEST(Service, ServerAndLoadIgnoreSigterm_DeadlineIsKept) {
  const std::string stubborn = "trap '' TERM; while :; do sleep 0.01; done";
  const Service service{.ready = "sleep 0.01", .load = stubborn};
  const double begin = now_s();
  EXPECT_EQ(run_service(shell(stubborn), {}, service, 0.5, host()).ending, Ending::kOutOfTime);
  EXPECT_LT(now_s() - begin, 0.5 + kGrace_s) << "twice the time that a program has for its end";
}

TEST(CpuGroup, Version2_TightestOfTheBranchCounts) {
  const test::Folder folder;
  folder.file("a/cpu.max", "150000 100000\n");
  folder.file("a/cpu.stat", "usage_usec 5\nnr_throttled 1\nthrottled_usec 2500000\n");
  folder.file("a/b/cpu.max", "max 100000\n");
  folder.file("a/b/cpu.stat", "usage_usec 5\nthrottled_usec 1000\n");
  const CpuGroup group("0::/a/b\n", folder.path());
  EXPECT_EQ(group.quota_cpus(), 1.5);
  EXPECT_EQ(group.throttled_s(), 2.5);
  EXPECT_EQ(CpuGroup("0::/elsewhere\n", folder.path()).quota_cpus(), 0);
  folder.file("a/wider/cpu.max", "400000 100000\n");
  EXPECT_EQ(CpuGroup("0::/a/wider\n", folder.path()).quota_cpus(), 1.5);
  folder.file("a/tighter/cpu.max", "50000 100000\n");
  EXPECT_EQ(CpuGroup("0::/a/tighter\n", folder.path()).quota_cpus(), 0.5);
}

TEST(CpuGroup, Weight_IsOfTheGroupWhereTheControllerIs) {
  const test::Folder folder;
  for (const char* const file :
       {"two/root/cpu.stat", "two/root/with/cpu.stat", "two/root/with/cpu.weight", "two/root/with/in/cpu.stat",
        "two/root/without/cpu.stat", "one/cpu/cpu.shares", "one/cpu/cpu.stat", "one/cpu/x/cpu.shares", "one/cpu/x/cpu.stat"})
    folder.file(file, "100\n");
  const auto is_weighed = [&](const std::string& membership, const std::string& root) {
    return CpuGroup(membership, folder.path() / root).is_weighed();
  };
  EXPECT_TRUE(is_weighed("0::/with/in\n", "two/root"));
  EXPECT_FALSE(is_weighed("0::/without\n", "two/root"));
  EXPECT_FALSE(is_weighed("0::/\n", "two/root"));
  EXPECT_TRUE(is_weighed("0::/\n", "two/root/with")) << "a container's root";
  EXPECT_TRUE(is_weighed("1:cpu,cpuacct:/x\n0::/\n", "one"));
  EXPECT_FALSE(is_weighed("1:cpu,cpuacct:/\n0::/\n", "one"));
}
TEST(Throttling, GroupThatIsChanged_TimeOfBothCounts) {
  const test::Folder folder;
  folder.file("a/cpu.stat", "throttled_usec 1000000\n");
  folder.file("b/cpu.stat", "throttled_usec 5000000\n");
  Throttling throttling("0::/a\n", folder.path());
  EXPECT_EQ(throttling.seconds(), 0);
  folder.file("a/cpu.stat", "throttled_usec 3000000\n");
  throttling.look("");  // the program has ended
  throttling.look("0::/b\n");
  folder.file("b/cpu.stat", "throttled_usec 6000000\n");
  EXPECT_EQ(throttling.seconds(), 3);
}

TEST(CpuGroup, Version1_QuotaAndNanoseconds) {
  const test::Folder folder;
  folder.file("cpu/x/cpu.cfs_quota_us", "50000\n");
  folder.file("cpu/x/cpu.cfs_period_us", "100000\n");
  folder.file("cpu/x/cpu.stat", "nr_periods 9\nthrottled_time 3000000000\n");
  folder.file("cpu/cpu.cfs_quota_us", "-1\n");
  folder.file("cpu/cpu.cfs_period_us", "100000\n");
  const CpuGroup group("3:memory:/m\n1:cpu,cpuacct:/x\n0::/\n", folder.path());
  EXPECT_EQ(group.quota_cpus(), 0.5);
  EXPECT_EQ(group.throttled_s(), 3);
  // A container's own group is mounted as the root.
  folder.file("cpu/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(CpuGroup("1:cpu:/not/here\n", folder.path()).quota_cpus(), 2);
}

}  // namespace
}  // namespace freehold::doctor
