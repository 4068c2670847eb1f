// SPDX-License-Identifier: MIT
// expect_ok() checks that every execution that was explored ends well.
#pragma once
#include <gtest/gtest.h>

#include "sim/explore.hpp"

namespace freehold::sim {

inline void expect_ok(const Result& result) { EXPECT_TRUE(result.ok()) << result; }

}  // namespace freehold::sim
