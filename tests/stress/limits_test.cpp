// SPDX-License-Identifier: MIT
// Limits of the system: exhaustion is an answer, not a crash, and small programs work under small limits.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/stress/stress.hpp"
#include "tests/support/folder.hpp"

namespace freehold::test {
namespace {

constexpr rlim_t kMiB = rlim_t{1} << 20;

struct Limit {
  const char* name;
  int resource;
  rlim_t bytes;
};
void PrintTo(const Limit& limit, std::ostream* out) { *out << limit.name; }
class Limits : public ::testing::TestWithParam<Limit> {
 protected:
  static Outcome expect_passes_under_it(const std::string& name) {
    Command command = scenario({name});
    command.limits = {{GetParam().resource, GetParam().bytes}};
    return expect_passes(command);
  }
};

TEST_P(Limits, OneSizeAfterAnother_EachGetsMostOfTheMemory) {
  const double least = figure_of(expect_passes_under_it("limits_exhaust_and_recover"), "least_mib");
  EXPECT_GE(least, 0.6 * static_cast<double>(GetParam().bytes / kMiB));  // glibc: 0.77
}
TEST_P(Limits, FourThreadsExhaustMemory_AllRecover) { expect_passes_under_it("limits_four_threads_exhaust"); }
TEST_P(Limits, ThreadsBeginAtExhaustion_GetNullOrABlock) { expect_passes_under_it("limits_threads_at_exhaustion"); }
TEST_P(Limits, OperatorNewAtExhaustion_Throws) { expect_passes_under_it("limits_operator_new_throws"); }

INSTANTIATE_TEST_SUITE_P(Of, Limits,
                         ::testing::Values(Limit{"AddressSpace200MiB", RLIMIT_AS, 200 * kMiB},
                                           Limit{"Data64MiB", RLIMIT_DATA, 64 * kMiB}),
                         [](const auto& instance) { return instance.param.name; });

// Free memory counts under a limit until it is unmapped.
TEST(Limits, LargeBlockAfterSmallOnes_Fits) {  // with glibc, too
  for (const Limit& limit : {Limit{"", RLIMIT_DATA, 32 * kMiB}, Limit{"", RLIMIT_AS, 40 * kMiB}}) {
    Command command = scenario({"limits_large_after_small", "20"});
    command.limits = {{limit.resource, limit.bytes}};
    expect_passes(command);
  }
}

TEST(Limits, LimitBytesAndLargeBlocksAtOnce_NoMoreThanFit) {
  Command command = scenario({"limits_large_blocks_at_once"});
  command.environment.emplace_back("FREEHOLD_LIMIT_BYTES", "1073741824");
  const Outcome outcome = expect_passes(command);
  EXPECT_EQ(figure_of(outcome, "most_at_once"), 1) << outcome.describe();
}

TEST(Limits, LimitBytesMetByAThreadThatIsToBeCancelled_NotCancelledInMalloc) {
  Command command = scenario({"limits_cancelled"});
  command.environment.emplace_back("FREEHOLD_LIMIT_BYTES", "10000000");
  const Outcome outcome = expect_passes(command);
  EXPECT_NE(outcome.err.find("limit is reached"), std::string::npos) << outcome.describe();
}

TEST(Limits, SmallProgramsUnderUlimit_Work) {
  const std::pair<rlim_t, std::vector<std::string>> programs[] = {{32 * kMiB, {"/bin/true"}},
                                                                  {32 * kMiB, {"/bin/ls", "/usr/bin"}},
                                                                  {32 * kMiB, {FREEHOLD_PLAIN_C, "sizes"}},
                                                                  {64 * kMiB, {"/usr/bin/perl", "-e", "print 1"}},
                                                                  {64 * kMiB, {FREEHOLD_SCENARIO, "lifecycle_smoke"}}};
  for (const auto& [bytes, argv] : programs)
    for (const int resource : {RLIMIT_AS, RLIMIT_DATA}) {
      Command command = under(Malloc::kFreehold, argv);
      command.limits = {{resource, bytes}};
      command.environment.emplace_back("FREEHOLD_VERBOSE", "1");
      const Outcome outcome = expect_passes(command);
      const bool allocates = argv[0] != "/bin/true";
      EXPECT_EQ(outcome.err.find("freehold: active") != std::string::npos, allocates) << outcome.describe();
    }
}

// The stacks of threads need addresses, too: what one thread's blocks are given beforehand must not be all that there is.
TEST(Limits, ThreadsUnderASmallUlimit_AllStart) {
  constexpr int kRuns = 20;  // which thread is first is chance
  Command command = scenario({"lifecycle_smoke"});
  command.limits = {{RLIMIT_AS, 64 * kMiB}};
  for (int i = 0; i < kRuns; ++i) expect_passes(command);
}

// ---- limits of the kernel's that end the program -----------------------------------------------------------------------

// A memory cgroup with a limit, beside those of the test's own; its programs begin in it.
class MemoryCgroup {
 public:
  explicit MemoryCgroup(rlim_t bytes) {
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
      const std::size_t first = line.find(":memory:"), second = line.find("0::");
      const bool is_second = second == 0;
      if (!is_second && first == std::string::npos) continue;
      const std::string parent =
          is_second ? "/sys/fs/cgroup" + line.substr(3) : "/sys/fs/cgroup/memory" + line.substr(first + 8);
      folder_ = parent + "/freehold-limits-" + std::to_string(::getpid());
      if (::mkdir(folder_.c_str(), 0755) != 0) continue;
      file_ = folder_ + (is_second ? "/memory.max" : "/memory.limit_in_bytes");
      std::ofstream limit(file_);
      if (limit << bytes << std::flush; limit.good()) return;
      ::rmdir(folder_.c_str());
    }
    folder_.clear();
  }
  ~MemoryCgroup() {
    for (int i = 0; i < 50 && !folder_.empty() && ::rmdir(folder_.c_str()) != 0; ++i) ::usleep(20'000);
  }
  MemoryCgroup(const MemoryCgroup&) = delete;
  MemoryCgroup& operator=(const MemoryCgroup&) = delete;
  [[nodiscard]] bool exists() const { return !folder_.empty(); }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] Command enter(const std::vector<std::string>& arguments) const {
    Command command = scenario(arguments);
    command.argv.insert(command.argv.begin(),
                        {"/bin/sh", "-c", "echo $$ > " + folder_ + "/cgroup.procs; exec \"$@\"", "sh"});
    return command;
  }

 private:
  std::string folder_, file_;
};

TEST(MemoryCgroups, LiveDataOf83Percent_IsNotKilled) {
  const MemoryCgroup group(200 * kMiB);
  if (!group.exists()) GTEST_SKIP() << "no memory cgroup can be made here";
  const Outcome outcome = expect_passes(group.enter({"limits_live_data", "166"}));
  EXPECT_NE(outcome.err.find(" of 200 MiB are in use ("), std::string::npos) << outcome.err;
}
// Memory that goes back counts until it is gone, and others must not grow into that.
TEST(MemoryCgroups, EightThreadsWithLiveDataOf83Percent_AreNotKilled) {
  constexpr int kRuns = 5;  // three of ten were killed while threads did not wait for each other's trim
  const MemoryCgroup group(200 * kMiB);
  if (!group.exists()) GTEST_SKIP() << "no memory cgroup can be made here";
  for (int i = 0; i < kRuns; ++i) expect_passes(group.enter({"limits_live_data", "166", "8"}));
}
// As Kubernetes does it to a pod.
TEST(MemoryCgroups, CutBy40PercentToLiveDataOf83_IsNotKilled) {
  constexpr int kRuns = 5;
  for (int i = 0; i < kRuns; ++i) {
    const MemoryCgroup group(200 * kMiB);
    if (!group.exists()) GTEST_SKIP() << "no memory cgroup can be made here";
    expect_passes(group.enter({"limits_live_data_and_cut", "100", group.file(), std::to_string(120 * kMiB)}));
  }
}
TEST(MemoryCgroups, SizesThatChange_LiveAt70MiB) {  // glibc does, too
  const MemoryCgroup group(70 * kMiB);
  if (!group.exists()) GTEST_SKIP() << "no memory cgroup can be made here";
  expect_passes(group.enter({"limits_sizes_that_change"}));
}

// A folder that looks like a group's.
class FakeCgroup : public ::testing::Test {
 protected:
  void put(const char* file, rlim_t number) const { temporary_.file(file, std::to_string(number) + "\n"); }
  [[nodiscard]] Command beside(std::vector<std::string> arguments) const {
    Command command = scenario(std::move(arguments));
    command.environment.emplace_back("FREEHOLD_CGROUP", folder_);
    return command;
  }
  const Folder temporary_;
  const std::string folder_ = temporary_.path();
};

TEST_F(FakeCgroup, AlmostFull_OneLineAndTheProgramIsCalled) {
  put("memory.max", 100 * kMiB);
  put("memory.current", 99 * kMiB);
  for (const char* bytes : {"1048576", "20000", "64"}) {
    SCOPED_TRACE(bytes);
    const Outcome outcome = expect_passes(beside({"limits_callback", bytes}));
    EXPECT_GE(figure_of(outcome, "calls"), 10);
    EXPECT_EQ(figure_of(outcome, "used_mib"), 99);
    EXPECT_EQ(figure_of(outcome, "limit_mib"), 100);
    const std::string line = "freehold: 99 of 100 MiB are in use (" + folder_ + "): ";
    EXPECT_EQ(outcome.err.substr(0, line.size()), line);
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}
TEST_F(FakeCgroup, CallbackFreesWhatIsBeingAllocated_NothingIsLost) {
  put("memory.max", 100 * kMiB);
  put("memory.current", 99 * kMiB);
  EXPECT_GE(figure_of(beside({"limits_callback_frees"}), "calls"), 10);
}
TEST_F(FakeCgroup, GrowthAndWhatIsNeverUsed_AreNotTakenForTheWholeBlock) {
  put("memory.max", 100 * kMiB);
  put("memory.current", 40 * kMiB);
  const Outcome outcome = expect_passes(beside({"limits_growth"}));
  EXPECT_EQ(figure_of(outcome, "calls"), 0);
  EXPECT_EQ(outcome.err, "");
}
TEST_F(FakeCgroup, ThreadThatIsToBeCancelled_IsNotCancelledByALook) {
  put("memory.max", 100 * kMiB);
  put("memory.current", 40 * kMiB);
  expect_passes(beside({"limits_cancelled"}));
}
TEST_F(FakeCgroup, HalfFullOrSilenced_NoLine) {
  put("memory.max", 100 * kMiB);
  put("memory.current", 40 * kMiB);
  const Outcome half = expect_passes(beside({"limits_callback"}));
  EXPECT_EQ(figure_of(half, "calls"), 0);
  EXPECT_EQ(half.err, "");
  put("memory.current", 99 * kMiB);
  Command silenced = beside({"limits_callback"});
  silenced.environment.emplace_back("FREEHOLD_LIMIT_WARNING", "0");
  EXPECT_EQ(expect_passes(silenced).err, "");
}
TEST_F(FakeCgroup, LittleIsLeft_LessIsKept) {
  put("memory.high", 60 * kMiB);  // "memory.current" is not there: the limit alone is known
  EXPECT_LE(figure_of(beside({"limits_sizes_that_change"}), "peak_mib"), 68);  // 105 without a limit
}
TEST_F(FakeCgroup, FolderWithoutALimitsFile_OneLine) {
  EXPECT_EQ(expect_passes(beside({"limits_callback"})).err,
            "freehold: ignoring FREEHOLD_CGROUP: expected a folder with memory.max or memory.limit_in_bytes, or off\n");
  std::ofstream(folder_ + "/memory.max") << "max\n";
  EXPECT_EQ(expect_passes(beside({"limits_callback"})).err, "");
}
TEST_F(FakeCgroup, UnderAFilterOfSystemCalls_NothingIsRead) {
  if (emulated()) GTEST_SKIP() << "the emulator's own calls would be filtered";
  put("memory.max", 50 * kMiB);
  put("memory.current", 30 * kMiB);
  expect_passes(beside({"filters", "at_once", "five", "kill"}));
}

// After the start malloc and free use mmap, munmap, mremap, madvise and futex: filters of system calls, those of real
// programs too, end no program.
struct Filter {
  const char* when;
  const char* whose;
};
void PrintTo(const Filter& filter, std::ostream* out) { *out << filter.when << " " << filter.whose; }
class Filters : public ::testing::TestWithParam<Filter> {};

TEST_P(Filters, WhatIsRefusedEndsTheProgramOrFails_MallocWorks) {
  if (emulated()) GTEST_SKIP() << "the emulator's own calls would be filtered";
  for (const char* action : {"kill", "errno"}) {
    SCOPED_TRACE(action);
    expect_passes(scenario({"filters", GetParam().when, GetParam().whose, action}));
  }
}

TEST(OwnFilter, ByTheNumberOfTheCall_MallocWorks) {
  if (emulated()) GTEST_SKIP() << "the emulator's own calls would be filtered";
  if (::geteuid() != 0) GTEST_SKIP() << "without no_new_privs root alone may set a filter";
  expect_passes(scenario({"filters", "by_number", "five", "kill"}));
}
TEST(OwnFilter, InCheckedMode_TheProgramEndsAsItWouldWithout) {
  if (emulated()) GTEST_SKIP() << "the emulator's own calls would be filtered";
  Command command = scenario({"filters", "at_once", "five_and_threads", "kill"});  // mprotect is among these
  command.environment.emplace_back("FREEHOLD_CHECK", "1");
  expect_passes(command);
}
TEST(OwnFilter, InAChildOfVfork_TheParentIsNotConfined) {
  EXPECT_EQ(figure_of(scenario({"filter_in_vfork"}), "threads"), 3);  // one is Freehold's
}
TEST(OwnFilter, BeforeTheFirstMalloc_MallocWorks) {
  if (emulated()) GTEST_SKIP() << "the emulator's own calls would be filtered";
  expect_passes(under(Malloc::kFreehold, {FREEHOLD_PLAIN_C, "confined"}));
}

INSTANTIATE_TEST_SUITE_P(
    Of, Filters,
    ::testing::Values(Filter{"at_once", "five"}, Filter{"at_once", "five_and_threads"}, Filter{"at_once", "systemd_default"},
                      Filter{"at_once", "openssh"}, Filter{"at_once", "chromium"}, Filter{"child", "five"},
                      Filter{"child", "openssh"}, Filter{"child", "chromium"}, Filter{"threads", "five"},
                      Filter{"threads", "five_and_threads"}, Filter{"threads", "chromium"}, Filter{"purger_starts", "five"},
                      Filter{"exec", "systemd_system_service"}, Filter{"exec", "docker"}, Filter{"exec", "podman"},
                      Filter{"at_once", "podman"}, Filter{"at_once", "firejail"}),
    [](const auto& instance) { return std::string(instance.param.when) + "_" + instance.param.whose; });

// Strict overcommit concerns the whole machine, so it is asked for: FREEHOLD_TEST_OVERCOMMIT=1, as root, nothing else
// running.
class StrictOvercommit {
 public:
  StrictOvercommit() {
    std::ifstream(kFile) >> before_;
    // Restores the setting even if this process is killed: the pipe's other end closes with it.
    if (::pipe2(pipe_, O_CLOEXEC) != 0) return;
    guardian_ = ::fork();
    if (guardian_ == 0) {
      ::setsid();
      ::close(pipe_[1]);
      char c;
      [[maybe_unused]] const auto ended = ::read(pipe_[0], &c, 1);
      write(before_);
      ::_exit(0);
    }
    ::close(pipe_[0]);
    set_ = write(2);
  }
  ~StrictOvercommit() {
    ::close(pipe_[1]);
    ::waitpid(guardian_, nullptr, 0);
  }
  StrictOvercommit(const StrictOvercommit&) = delete;
  StrictOvercommit& operator=(const StrictOvercommit&) = delete;
  [[nodiscard]] bool is_set() const { return set_; }
  static bool write(int mode) {
    std::ofstream file(kFile);
    file << mode << std::flush;
    return file.good();
  }

 private:
  static constexpr const char* kFile = "/proc/sys/vm/overcommit_memory";
  int before_ = 0;
  int pipe_[2] = {-1, -1};
  pid_t guardian_ = -1;
  bool set_ = false;
};

TEST(Limits, StrictOvercommit_ProgramsWork) {
  if (std::getenv("FREEHOLD_TEST_OVERCOMMIT") == nullptr)
    GTEST_SKIP() << "changes vm.overcommit_memory of the machine; FREEHOLD_TEST_OVERCOMMIT=1 asks for it";
  const StrictOvercommit strict;
  if (!strict.is_set()) GTEST_SKIP() << "vm.overcommit_memory cannot be set here";
  expect_passes(under(Malloc::kFreehold, {FREEHOLD_PLAIN_C, "sizes"}));
  expect_passes("lifecycle_smoke");
  expect_passes("lifecycle_before_main_and_after_exit");
  expect_passes("fork_nested");
  expect_passes(scenario({"memory_of_blocks", "1000"}));
}

}  // namespace
}  // namespace freehold::test
