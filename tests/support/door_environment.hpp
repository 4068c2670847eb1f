// A GoogleTest program that includes this fails at once if another malloc answers than the one it was promised.
#pragma once
#include <gtest/gtest.h>

#include "tests/support/door.hpp"

namespace freehold::test {

class DoorEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    if (door_is_promised()) {
      ASSERT_TRUE(door_is_active()) << "another malloc answers";
    }
  }
};
inline ::testing::Environment* const g_door_environment = ::testing::AddGlobalTestEnvironment(new DoorEnvironment);

}  // namespace freehold::test
