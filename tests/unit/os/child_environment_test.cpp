// SPDX-License-Identifier: MIT
#include "freehold/os/child_environment.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace freehold::os {
namespace {

std::vector<std::string> entries_of(const std::vector<std::string>& environment, const std::string& name) {
  std::vector<std::string> found;
  for (const std::string& entry : environment) {
    if (entry.starts_with(name + '=')) found.push_back(entry);
  }
  return found;
}

class ChildEnvironment : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("FREEHOLD_TEST_OLD", "old", 1);
    ::setenv("FREEHOLD_TEST_OLDER", "older", 1);
  }
  void TearDown() override {
    ::unsetenv("FREEHOLD_TEST_OLD");
    ::unsetenv("FREEHOLD_TEST_OLDER");
  }
};

TEST_F(ChildEnvironment, VariableSet_IsThereOnce) {
  const auto environment = environment_with({{"FREEHOLD_TEST_OLD", "new"}, {"FREEHOLD_TEST_NEW", "a=b"}});
  EXPECT_EQ(entries_of(environment, "FREEHOLD_TEST_OLD"), std::vector<std::string>{"FREEHOLD_TEST_OLD=new"});
  EXPECT_EQ(entries_of(environment, "FREEHOLD_TEST_NEW"), std::vector<std::string>{"FREEHOLD_TEST_NEW=a=b"});
  EXPECT_EQ(entries_of(environment, "FREEHOLD_TEST_OLDER").size(), 1u) << "its name only begins like the other's";
}

TEST_F(ChildEnvironment, VariableUnset_IsGone) {
  const auto environment = environment_with({}, {"FREEHOLD_TEST_OLD"});
  EXPECT_TRUE(entries_of(environment, "FREEHOLD_TEST_OLD").empty());
  EXPECT_EQ(entries_of(environment, "FREEHOLD_TEST_OLDER").size(), 1u);
}

TEST_F(ChildEnvironment, Pointers_EndWithNull) {
  std::vector<std::string> texts{"one", "", "three"};
  const auto pointers = pointers_to(texts);
  ASSERT_EQ(pointers.size(), 4u);
  EXPECT_STREQ(pointers[0], "one");
  EXPECT_STREQ(pointers[1], "");
  EXPECT_STREQ(pointers[2], "three");
  EXPECT_EQ(pointers[3], nullptr);
}

}  // namespace
}  // namespace freehold::os
