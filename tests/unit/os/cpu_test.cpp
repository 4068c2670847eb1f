// SPDX-License-Identifier: MIT
#include "freehold/os/cpu.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "freehold/os/memory_limit.hpp"
#include "tests/support/child.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/test.hpp"

namespace freehold::os {
namespace {

// A directory that looks like /sys/fs/cgroup, and a file that looks like /proc/self/cgroup.
class CgroupQuota : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) { folder_.file(path, text); }
  [[nodiscard]] unsigned quota(const std::string& self) {
    write("self", self);
    return cgroup_quota_cpus(root_.c_str(), (root_ / "self").c_str());
  }

  const test::Folder folder_;
  const std::filesystem::path& root_ = folder_.path();
};

TEST_F(CgroupQuota, OfEitherVersion_TheSmallestRoundedUp) {
  const std::string pod = "/kubepods/burstable/pod" + std::string(36, 'a') + "/" + std::string(64, 'b');
  std::string long_lines;
  for (int i = 13; i > 1; --i) long_lines += std::to_string(i) + ":controller" + std::to_string(i) + ":" + pod + "\n";
  const std::pair<std::string, std::string> v1[] = {{"cpu/a/cpu.cfs_quota_us", "250000\n"},
                                                    {"cpu/a/cpu.cfs_period_us", "100000\n"}};
  using Files = std::vector<std::pair<std::string, std::string>>;
  struct Case {
    Files files;
    std::string self;
    unsigned cpus;
  };
  const Case cases[] = {
      {{{"a/cpu.max", "200000 100000\n"}}, "0::/a\n", 2},
      {{{"a/cpu.max", "150000 100000\n"}}, "0::/a\n", 2},
      {{{"a/cpu.max", "1000 100000\n"}}, "0::/a\n", 1},
      {{{"a/cpu.max", "250000 50000"}}, "0::/a\n", 5},
      {{{"a/cpu.max", "400000 100000 \n"}}, "0::/a\n", 4},
      {{{"cpu.max", "900000 100000\n"},
        {"a/cpu.max", "300000 100000\n"},
        {"a/b/cpu.max", "max 100000\n"},
        {"a/b/c/cpu.max", "700000 100000\n"}},
       "0::/a/b/c",  // no newline at the end
       3},
      {{v1[0], v1[1]}, "5:memory:/b\n4:cpu:/a\n1:name=systemd:/c\n", 3},
      {{v1[0], v1[1]}, "5:memory:/b\n4:cpu,cpuacct:/a\n", 3},
      {{v1[0], v1[1]}, "4:cpuacct,cpu:/a\n", 3},
      {{v1[0], v1[1]}, "4:x,cpu,y:/a\n", 3},
      {{v1[0], v1[1]}, "0::/a\n4:cpu,cpuacct:/a\n", 3},                                // both, and version 2 has none
      {{{"cpu/cpu.cfs_quota_us", "100000\n"}, {"cpu/cpu.cfs_period_us", "100000\n"}},  // a container: the mounted root
       "4:cpu,cpuacct:/docker/0123456789abcdef\n",
       1},
      {{{"cpu" + pod + "/cpu.cfs_quota_us", "200000"}, {"cpu" + pod + "/cpu.cfs_period_us", "100000"}},
       long_lines + "1:cpu,cpuacct:" + pod + "\n",
       2},
      {{}, "0::/" + std::string(3000, 'x') + "\n", 0},  // no overrun
      {{{"a/cpu.max", ""}}, "0::/a\n", 0},
      {{{"a/cpu.max", "\n"}}, "0::/a\n", 0},
      {{{"a/cpu.max", "abc"}}, "0::/a\n", 0},
      {{{"a/cpu.max", "100000"}}, "0::/a\n", 0},
      {{{"a/cpu.max", "100000 0\n"}}, "0::/a\n", 0},
      {{{"a/cpu.max", "-1 100000\n"}}, "0::/a\n", 0},
      {{{"a/cpu.max", "max"}}, "0::/a\n", 0},
  };
  for (const auto& [files, self, cpus] : cases) {
    std::filesystem::remove_all(root_);
    for (const auto& [path, text] : files) write(path, text);
    EXPECT_EQ(quota(self), cpus) << self << (files.empty() ? "" : files[0].second);
  }
}

TEST_F(CgroupQuota, PossibleCpus_IsOneMoreThanTheHighestNumber) {
  for (const auto& [text, cpus] :
       {std::pair{"0\n", 1U}, {"0-1\n", 2U}, {"0-127\n", 128U}, {"0-3,8-11\n", 12U}, {"5", 6U}, {"", 0U}, {"\n", 0U}}) {
    write("possible", text);
    EXPECT_EQ(possible_cpus((root_ / "possible").c_str()), cpus) << text;
  }
  EXPECT_EQ(possible_cpus((root_ / "missing").c_str()), 0U);
}

// ---- limits of memory -------------------------------------------------------------------------------------------------

class CgroupMemory : public CgroupQuota {
 protected:
  void SetUp() override {
    CgroupQuota::SetUp();
    rlimit limit{};
    if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) GTEST_SKIP() << "run under ulimit -v";
  }
  void find(const std::string& self) {
    write("self", self);
    limit_.find("", root_.c_str(), (root_ / "self").c_str());
  }
  MemoryLimit limit_;
};

TEST_F(CgroupMemory, LimitOfTheProcessBeyondEveryMachine_IsNone) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_DATA, &before), 0);
  const rlimit huge{rlim_t{1} << 63, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &huge), 0);
  find("0::/\n");
  EXPECT_EQ(::setrlimit(RLIMIT_DATA, &before), 0);
  EXPECT_EQ(limit_.bytes(), 0U);
}
TEST_F(CgroupMemory, OfVersion2_TheSmallestOfMaxAndHighOfAllAncestors) {
  write("a/memory.max", "500000000\n");
  write("a/memory.high", "400000000\n");
  write("a/b/memory.max", "max\n");
  write("a/b/memory.high", "max\n");
  find("0::/a/b\n");
  EXPECT_EQ(limit_.bytes(), 400000000U);
  EXPECT_EQ(limit_.source(), root_ / "a");
}

TEST_F(CgroupMemory, OfVersion1InAContainer_TheMountedRootCounts) {
  write("memory/memory.limit_in_bytes", "300000000\n");
  find("4:memory:/docker/0123\n0::/\n");
  EXPECT_EQ(limit_.bytes(), 300000000U);
}

TEST_F(CgroupMemory, NoLimit_NoneAndNoDescriptorStaysOpen) {
  write("memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  write("memory/a/memory.usage_in_bytes", "1000\n");
  write("memory.max", "max\n");
  find("4:memory:/a\n0::/\n");
  EXPECT_EQ(limit_.bytes(), 0U);
  EXPECT_FALSE(limit_.use().has_value());
}

TEST_F(CgroupMemory, Use_ReadAnewWithoutPagesOfFiles) {
  write("a/memory.max", "1000\n");
  write("a/memory.current", "400\n");
  write("a/memory.stat", "anon 300\nfile 9\ninactive_file 200\nactive_file 100\n");
  write("a/memory.pressure", "some avg10=3.00 avg60=0.00\nfull avg10=0.99 avg60=0.00 avg300=0.00 total=1\n");
  find("0::/a\n");
  ASSERT_TRUE(limit_.use().has_value());
  EXPECT_EQ(limit_.use()->bytes, 400U) << "far from the limit nothing is taken off";
  write("a/memory.current", "900\n");
  EXPECT_EQ(limit_.use()->bytes, 600U);
  EXPECT_FALSE(limit_.use()->is_stalling);
  write("a/memory.pressure", "some avg10=30.00\nfull avg10=12.50 avg60=0.00\n");
  EXPECT_TRUE(limit_.use()->is_stalling);
}

TEST_F(CgroupMemory, ChangedWhileRunning_ReadAgainUpToTheNextLimit) {
  write("a/memory.max", "8000\n");
  write("a/b/memory.max", "4000\n");
  write("a/b/memory.high", "max\n");
  find("0::/a/b\n");
  for (const auto& [text, bytes] : {std::pair{"2500", 2500U}, {"6000", 6000U}, {"max", 8000U}, {"0", 1U}, {"4000", 4000U}}) {
    write("a/b/memory.max", std::string(text) + "\n");
    limit_.read_again();
    EXPECT_EQ(limit_.bytes(), bytes) << text;
  }
}

TEST_F(CgroupMemory, DescriptorsClosedAndTaken_NothingIsReadFromThem) {
  write("a/memory.max", "1000\n");
  write("a/memory.current", "400\n");
  find("0::/a\n");
  ASSERT_TRUE(limit_.use().has_value());
  for (int fd = 100; fd < 110; ++fd) {
    const int other = ::dup2(STDERR_FILENO, fd);
    ASSERT_EQ(other, fd);
  }
  EXPECT_FALSE(limit_.use().has_value());
  for (int fd = 100; fd < 110; ++fd) ::close(fd);
}

TEST(UsableCpus, AffinityToOneCpu_IsOne) {
  EXPECT_EQ(test::run_in_child([] {
              cpu_set_t mask;
              ::sched_getaffinity(0, sizeof mask, &mask);
              int cpu = 0;
              while (!CPU_ISSET(cpu, &mask)) ++cpu;
              CPU_ZERO(&mask);
              CPU_SET(cpu, &mask);
              if (::sched_setaffinity(0, sizeof mask, &mask) != 0) return 2;
              const CpuCount count = usable_cpus();
              return count.cpus == 1 && std::string(count.source) == "affinity" ? 0 : 1;
            }),
            0);
}

TEST(HasAvx2, AgreesWithTheCompilersRuntime) {
#if defined(__x86_64__)
  EXPECT_EQ(has_avx2(), __builtin_cpu_supports("avx2") != 0);
#else
  EXPECT_FALSE(has_avx2());
#endif
}

}  // namespace
}  // namespace freehold::os
