// SPDX-License-Identifier: MIT
#include "freehold/os/futex.hpp"
#include "tests/support/test.hpp"

namespace freehold::os {
namespace {

// malloc fences during calls that succeed. This process is not registered, so that the system refuses.
TEST(Membarrier, Refused_ErrnoStays) {
  errno = 42;
  EXPECT_FALSE(Membarrier::run_in_all_threads());
  EXPECT_EQ(errno, 42);
  if (!Membarrier::register_process()) GTEST_SKIP() << "the system has no membarrier";
  EXPECT_TRUE(Membarrier::run_in_all_threads());
  EXPECT_EQ(errno, 42);
}

}  // namespace
}  // namespace freehold::os
