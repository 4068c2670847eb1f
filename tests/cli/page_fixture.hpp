// SPDX-License-Identifier: MIT
// For tests of pages: looks at one in the browser, and what every page must be.
#pragma once
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "tests/cli/browser.hpp"
#include "tests/cli/command.hpp"

namespace freehold::tests {

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

class PageTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_browser()) GTEST_SKIP() << "no Chromium";
  }
  Seen look_at_text(const std::string& page) { return look_at(folder_.file("page.html", page)); }
  // Complains about nothing, fetches nothing.
  static void expect_quiet(const Seen& seen) {
    EXPECT_EQ(seen.console, std::vector<std::string>{});
    EXPECT_EQ(seen.requested, std::vector<std::string>{});
  }

  const Folder folder_;
};

}  // namespace freehold::tests
