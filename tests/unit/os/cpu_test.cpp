// SPDX-License-Identifier: MIT
#include "freehold/os/cpu.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace freehold::os {
namespace {

// A directory that looks like /sys/fs/cgroup, and a file that looks like /proc/self/cgroup.
class CgroupQuota : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "freehold-cgroup-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  [[nodiscard]] unsigned quota(const std::string& self) {
    write("self", self);
    return cgroup_quota_cpus(root_.c_str(), (root_ / "self").c_str());
  }

  std::filesystem::path root_;
};

TEST_F(CgroupQuota, V2Quota_RoundedUp) {
  for (const auto& [text, cpus] : {std::pair{"200000 100000\n", 2U},
                                   {"150000 100000\n", 2U},
                                   {"1000 100000\n", 1U},
                                   {"250000 50000", 5U},
                                   {"400000 100000 \n", 4U}}) {
    write("a/cpu.max", text);
    EXPECT_EQ(quota("0::/a\n"), cpus) << text;
  }
}

TEST_F(CgroupQuota, V2Ancestors_TheSmallestCounts) {
  write("cpu.max", "900000 100000\n");
  write("a/cpu.max", "300000 100000\n");
  write("a/b/cpu.max", "max 100000\n");
  write("a/b/c/cpu.max", "700000 100000\n");
  EXPECT_EQ(quota("0::/a/b/c\n"), 3U);
  EXPECT_EQ(quota("0::/a/b/c"), 3U) << "no newline at the end";
}

TEST_F(CgroupQuota, V2Nonsense_None) {
  for (const char* text : {"", "\n", "abc", "100000", "100000 0\n", "-1 100000\n", "max"}) {
    write("a/cpu.max", text);
    EXPECT_EQ(quota("0::/a\n"), 0U) << text;
  }
}

TEST_F(CgroupQuota, V1Quota_RoundedUp) {
  write("cpu/a/cpu.cfs_quota_us", "250000\n");
  write("cpu/a/cpu.cfs_period_us", "100000\n");
  for (const char* controllers : {"cpu", "cpu,cpuacct", "cpuacct,cpu", "x,cpu,y"})
    EXPECT_EQ(quota("5:memory:/b\n4:" + std::string(controllers) + ":/a\n1:name=systemd:/c\n"), 3U) << controllers;
}

TEST_F(CgroupQuota, V1InAContainer_TheMountedRootCounts) {
  write("cpu/cpu.cfs_quota_us", "100000\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota("4:cpu,cpuacct:/docker/0123456789abcdef\n"), 1U);
}

TEST_F(CgroupQuota, V1ManyLongLines_TheCpuLineIsFoundAtTheEnd) {
  const std::string pod = "/kubepods/burstable/pod" + std::string(36, 'a') + "/" + std::string(64, 'b');
  write("cpu" + pod + "/cpu.cfs_quota_us", "200000");
  write("cpu" + pod + "/cpu.cfs_period_us", "100000");
  std::string self;
  for (int i = 13; i > 1; --i) self += std::to_string(i) + ":controller" + std::to_string(i) + ":" + pod + "\n";
  EXPECT_EQ(quota(self + "1:cpu,cpuacct:" + pod + "\n"), 2U);
}

TEST_F(CgroupQuota, Hybrid_V2LineWithoutQuota_V1Counts) {
  write("cpu/a/cpu.cfs_quota_us", "400000\n");
  write("cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota("0::/a\n4:cpu,cpuacct:/a\n"), 4U);
}

TEST_F(CgroupQuota, PathTooLong_NoneAndNoOverrun) { EXPECT_EQ(quota("0::/" + std::string(3000, 'x') + "\n"), 0U); }

TEST_F(CgroupQuota, PossibleCpus_IsOneMoreThanTheHighestNumber) {
  for (const auto& [text, cpus] :
       {std::pair{"0\n", 1U}, {"0-1\n", 2U}, {"0-127\n", 128U}, {"0-3,8-11\n", 12U}, {"5", 6U}, {"", 0U}, {"\n", 0U}}) {
    write("possible", text);
    EXPECT_EQ(possible_cpus((root_ / "possible").c_str()), cpus) << text;
  }
  EXPECT_EQ(possible_cpus((root_ / "missing").c_str()), 0U);
}

// In a child, since the mask stays.
TEST(UsableCpus, AffinityToOneCpu_IsOne) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    cpu_set_t mask;
    ::sched_getaffinity(0, sizeof mask, &mask);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &mask)) ++cpu;
    CPU_ZERO(&mask);
    CPU_SET(cpu, &mask);
    if (::sched_setaffinity(0, sizeof mask, &mask) != 0) ::_exit(2);
    const CpuCount count = usable_cpus();
    ::_exit(count.cpus == 1 && std::string(count.source) == "affinity" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
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
