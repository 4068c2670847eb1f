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

// Returns what the test's script found out about the page: it stands in the attribute data-told of the root.
inline std::string told_by(const Seen& seen) {
  const std::string mark = "data-told=\"";
  const std::size_t at = seen.dom.find(mark);
  if (at == std::string::npos) return "nothing";
  const std::size_t begin = at + mark.size();
  return seen.dom.substr(begin, seen.dom.find('"', begin) - begin);
}

class PageTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_browser()) GTEST_SKIP() << "Chromium is not installed";
  }
  // `script`: the body of a function, which returns what told_by() is to say.
  Seen look_at_text(std::string page, const View& view = {}, const std::string& script = {}) {
    if (!script.empty()) page += "<script>document.documentElement.dataset.told = (() => {" + script + "})()</script>";
    return look_at(folder_.file("page.html", page), view);
  }
  // In the light on a desk, and in the dark on a phone.
  void expect_to_fit(const std::string& page) {
    const std::string script = R"(
      return [matchMedia('(prefers-color-scheme: dark)').matches, getComputedStyle(document.body).backgroundColor,
        document.documentElement.scrollWidth - document.documentElement.clientWidth].join('|');)";
    const Seen light = look_at_text(page, {.width = 1280, .height = 900}, script);
    const Seen dark = look_at_text(page, {.width = 500, .height = 900, .dark = true}, script);
    expect_quiet(light);
    expect_quiet(dark);
    EXPECT_EQ(told_by(light), "false|rgb(251, 250, 247)|0");
    EXPECT_EQ(told_by(dark), "true|rgb(20, 23, 26)|0");
  }
  // Complains about nothing, fetches nothing.
  static void expect_quiet(const Seen& seen) {
    EXPECT_EQ(seen.console, std::vector<std::string>{});
    EXPECT_EQ(seen.requested, std::vector<std::string>{});
  }

  const Folder folder_;
};

}  // namespace freehold::tests
