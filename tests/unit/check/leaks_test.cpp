// SPDX-License-Identifier: MIT
// A list of more leaks than it shows. (Of a whole program: tests/misuse.)
#include "freehold/check/leaks.hpp"

#include <sstream>

#include "freehold/os/pages.hpp"
#include "tests/support/test.hpp"

namespace freehold::check {
namespace {

// More than are listed, and more than there is room for: all of them count in the sum.
TEST(LeakList, ManyPlaces_TheSumHasThemAllTheListTheLargest) {
  os::Pages pages;
  LeakList leaks(pages);
  constexpr std::uint32_t kPlaces = 10'000;
  for (std::uint32_t i = 1; i <= kPlaces; ++i)
    leaks.add({.bytes = i <= 100 ? 1'000 + i : 1,
               .alignment = 0,
               .family = Family::kAny,
               .offset = 0,
               .allocated_at = i,
               .freed_at = 0});
  testing::internal::CaptureStderr();
  leaks.write();
  std::istringstream text(testing::internal::GetCapturedStderr());
  std::string line;
  std::getline(text, line);
  EXPECT_EQ(line, "freehold: leaked: " + std::to_string(100 * 1'000 + 5'050 + 9'900) + " bytes in 10000 blocks");
  unsigned next = 1'100;
  for (; std::getline(text, line); --next)
    EXPECT_EQ(line, "freehold:   " + std::to_string(next) + " bytes in 1 blocks by any");
  EXPECT_EQ(next, 1'100U - 64U);
}

TEST(LeakList, BlockOfNoBytes_ItsPlaceIsListed) {
  os::Pages pages;
  LeakList leaks(pages);
  leaks.add({.bytes = 0, .alignment = 0, .family = Family::kAny, .offset = 0, .allocated_at = 1});
  testing::internal::CaptureStderr();
  leaks.write();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("freehold:   0 bytes in 1 blocks by any\n"), std::string::npos);
}

}  // namespace
}  // namespace freehold::check
