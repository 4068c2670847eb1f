// SPDX-License-Identifier: MIT
// A GoogleTest program that includes this fails at once if another malloc is active than the expected one.
#pragma once
#include <gtest/gtest.h>

#include "tests/support/active_malloc.hpp"

namespace freehold::test {

class ExpectedMalloc : public ::testing::Environment {
 public:
  void SetUp() override {
    if (freehold_is_expected()) {
      ASSERT_TRUE(freehold_answers()) << "another malloc answers";
    }
  }
};
inline ::testing::Environment* const g_expected_malloc = ::testing::AddGlobalTestEnvironment(new ExpectedMalloc);

}  // namespace freehold::test
