// SPDX-License-Identifier: MIT
// Folders that are no memory cgroup, though they look like one; process_pool_test.cpp has a pool in a real one.
#include "freehold/process/supervisor/memory_groups.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/folder.hpp"

namespace freehold::process {
namespace {

namespace fs = std::filesystem;

class MemoryGroups_Unit : public testing::Test {
 protected:
  void put(const char* file, const char* text) const { temporary_.file(file, text); }
  [[nodiscard]] std::string refusal() const {
    const MemoryGroups groups(folder_, 2, 1 << 20);
    const std::string prefix = "the memory cgroup " + folder_ + " cannot be used: ";
    return groups.error().starts_with(prefix) ? groups.error().substr(prefix.size()) : "? " + groups.error();
  }
  [[nodiscard]] bool is_left() const {
    for (const auto& file : fs::directory_iterator(folder_))
      if (file.is_directory()) return true;
    return false;
  }
  const test::Folder temporary_;
  const std::string folder_ = temporary_.path();
};

TEST_F(MemoryGroups_Unit, SecondVersionWithoutMemory_Refused) {
  put("cgroup.controllers", "cpu io\n");
  EXPECT_EQ(refusal(), "it has no memory controller");
}
TEST_F(MemoryGroups_Unit, SecondVersionThatCannotHandOnItsMemory_Refused) {
  put("cgroup.controllers", "cpu memory\n");
  EXPECT_EQ(refusal(), "No such file or directory");
}
TEST_F(MemoryGroups_Unit, GroupWithoutALimit_RefusedAndRemoved) {
  put("cgroup.controllers", "memory\n");
  put("cgroup.subtree_control", "");
  EXPECT_EQ(refusal(), "No such file or directory");
  EXPECT_FALSE(is_left());
  fs::remove(folder_ + "/cgroup.controllers");
  put("memory.limit_in_bytes", "");
  EXPECT_EQ(refusal(), "No such file or directory");
  EXPECT_FALSE(is_left());
}

}  // namespace
}  // namespace freehold::process
