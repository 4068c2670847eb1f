// SPDX-License-Identifier: MIT
// The list of leaks: sums by place and family, the largest first. (Of a whole program: tests/misuse.)
#include "freehold/check/leaks.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "freehold/check/settings.hpp"
#include "freehold/os/pages.hpp"

namespace freehold::check {
namespace {

Contents block(std::size_t bytes, Family family, std::uint32_t stack) {
  return {.bytes = bytes, .alignment = 0, .family = family, .offset = 0, .allocated_at = stack, .freed_at = 0};
}

std::string written(LeakList& leaks) {
  testing::internal::CaptureStderr();
  leaks.write();
  return testing::internal::GetCapturedStderr();
}

TEST(LeakList, BlocksOfThreePlaces_SumsAndTheLargestFirst) {
  os::Pages pages;
  LeakList leaks(pages);
  for (int i = 0; i < 3; ++i) leaks.add(block(10, Family::kMalloc, 7));
  leaks.add(block(500, Family::kNewArray, 7));
  leaks.add(block(100, Family::kMalloc, 8));
  EXPECT_EQ(written(leaks),
            "freehold: leaked: 630 bytes in 5 blocks\n"
            "freehold:   500 bytes in 1 blocks by new[]\n"
            "freehold:   100 bytes in 1 blocks by malloc\n"
            "freehold:   30 bytes in 3 blocks by malloc\n");
}

// More than are listed, and more than there is room for: all of them count in the sum.
TEST(LeakList, ManyPlaces_TheSumHasThemAllTheListTheLargest) {
  os::Pages pages;
  LeakList leaks(pages);
  constexpr std::uint32_t kPlaces = 10'000;
  for (std::uint32_t i = 1; i <= kPlaces; ++i) leaks.add(block(i <= 100 ? 1'000 + i : 1, Family::kAny, i));
  std::istringstream text(written(leaks));
  std::string line;
  std::getline(text, line);
  EXPECT_EQ(line, "freehold: leaked: " + std::to_string(100 * 1'000 + 5'050 + 9'900) + " bytes in 10000 blocks");
  unsigned next = 1'100;
  for (; std::getline(text, line); --next)
    EXPECT_EQ(line, "freehold:   " + std::to_string(next) + " bytes in 1 blocks by any");
  EXPECT_EQ(next, 1'100U - 64U);
}

// In an option string.
TEST(CheckSettings, NamesOfOptions_OursAndOthers) {
  for (const std::string name : {"check", "check_leaks", "check_abort"})
    EXPECT_TRUE(is_setting(name.data(), name.size())) << name;
  for (const std::string name : {"checked", "profile", "check_", "chec", ""})
    EXPECT_FALSE(is_setting(name.data(), name.size())) << name;
}

}  // namespace
}  // namespace freehold::check
