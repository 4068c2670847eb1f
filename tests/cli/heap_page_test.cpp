// SPDX-License-Identifier: MIT
// The page of freehold heap in a browser: it draws the flame graph and the sites of every view, complains about nothing,
// fetches nothing, and takes no name for markup.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cli/heap/table.hpp"
#include "tests/cli/page_fixture.hpp"

namespace freehold::tests {
namespace {
using cli::heap::HeapProfile;
using cli::heap::Moment;

constexpr double kMiB = 1 << 20;

// Stacks of one function each below "main".
struct Row {
  std::string function;
  double now, peak;  // bytes, in blocks of 100
};
HeapProfile profile_of(const std::vector<Row>& rows) {
  HeapProfile profile;
  profile.program = "/usr/bin/shop";
  profile.pid = 4711;
  profile.mean = 524'288;
  profile.stacks.measures.resize(4);
  profile.stacks.time_ns = 1'790'000'000'000'000'000;
  profile.stacks.frames = {{.function = "main", .file = "/src/main.cpp", .line = 12, .module = "/usr/bin/shop"},
                           {.function = "operator new(unsigned long)", .file = {}, .module = "/usr/lib/libstdc++.so.6"}};
  for (const Row& row : rows) {
    const auto number = static_cast<std::uint32_t>(profile.stacks.frames.size());
    profile.stacks.frames.push_back(
        {.function = row.function, .file = "/src/" + row.function + ".cpp", .line = 7, .module = "/usr/bin/shop"});
    profile.stacks.rows.push_back({{1, number, 0}, {row.now / 100, row.now, row.peak / 100, row.peak}});
    profile.samples.push_back({16, 16});
    profile.variances.push_back({row.now * row.now / 16, row.peak * row.peak / 16});
  }
  return profile;
}

class HeapPage : public PageTest {
 protected:
  Seen look_at_view(const std::string& page, const std::string& part, const View& view = {}) {
    return look_at(folder_.file("page.html", page) + "#" + part, view);
  }
};

// Most programs free what they had.
TEST_F(HeapPage, NothingLeft_ThePeakIsTheHeadline) {
  const Seen seen = look_at_text(page_of(profile_of({{"parse", 0, 60 * kMiB}, {"index", 0, 20 * kMiB}})));
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "shop had 80 MiB in use at the peak, 75.0% of it at parse"), 1u) << seen.dom.substr(0, 2000);
  EXPECT_EQ(count(seen.dom, "parse.cpp:7; nothing is left"), 1u) << seen.dom.substr(0, 2000);
}

TEST_F(HeapPage, OfAProfile_FlameGraphAndSites) {
  const std::string page = page_of(profile_of({{"parse", 60 * kMiB, 60 * kMiB}, {"index", 20 * kMiB, 40 * kMiB}}));
  const Seen seen = look_at_text(page);
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "shop has 80 MiB in use, 75.0% of it at parse"), 1u) << seen.dom.substr(0, 2000);
  EXPECT_EQ(count(seen.dom, "data-frames=\"6\""), 1u);  // all, main, two functions with operator new below each
  EXPECT_EQ(count(seen.dom, "class=\"frame own\""), 3u);
  EXPECT_EQ(count(seen.dom, "class=\"frame library\""), 2u);
  EXPECT_EQ(count(seen.dom, "<details class=\"place\">"), 2u);
  EXPECT_LT(seen.dom.find("width: 75%"), seen.dom.find("width: 25%"));
  const Seen peak = look_at_view(page, "view=1");
  expect_quiet(peak);
  EXPECT_GT(count(peak.dom, "width: 40%"), 0u);
}

TEST_F(HeapPage, PressedAndWalked_FunctionAloneAndItsCaller) {
  std::string page = page_of(profile_of({{"parse", 60 * kMiB, 60 * kMiB}, {"index", 20 * kMiB, 40 * kMiB}}));
  const std::string user = R"(<script>
    [...document.querySelectorAll('.frame')].find((button) => button.textContent === 'parse').click();
    document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowUp' }));
    [...document.querySelectorAll('.sort')].find((button) => button.textContent === 'blocks').click();
  </script>)";
  page.insert(page.rfind("</body>"), user);
  const Seen seen = look_at_text(page);
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "data-frames=\"4\""), 1u);  // all, main, parse, operator new
  EXPECT_EQ(count(seen.dom, ">index<"), 0u);
  EXPECT_EQ(count(seen.dom, "main (main.cpp:12 in shop): 80 MiB"), 1u);
  EXPECT_EQ(
      count(seen.dom, "<th class=\"\" scope=\"col\" aria-sort=\"descending\"><button type=\"button\" class=\"sort\">blocks"),
      1u);
}

TEST_F(HeapPage, OfTwoProfiles_WhatGrewAndWhatShrank) {
  const std::string page =
      growth_page_of(profile_of({{"parse", 60 * kMiB, 60 * kMiB}, {"index", 20 * kMiB, 20 * kMiB}}),
                     profile_of({{"parse", 30 * kMiB, 60 * kMiB}, {"index", 64 * kMiB, 64 * kMiB}}), Moment::kNow);
  const Seen grew = look_at_text(page);
  expect_quiet(grew);
  EXPECT_EQ(count(grew.dom, "shop grew by 44 MiB, 100.0% of the growth at index"), 1u);
  EXPECT_EQ(count(grew.dom, ">all: +44 MiB<"), 1u);
  EXPECT_EQ(count(grew.dom, "data-frames=\"4\""), 1u);
  const Seen shrank = look_at_view(page, "view=1");
  expect_quiet(shrank);
  EXPECT_EQ(count(shrank.dom, ">all: −30 MiB<"), 1u);
  EXPECT_EQ(count(look_at_view(page, "view=2").dom, ">all: 94 MiB<"), 1u);
  EXPECT_EQ(count(look_at_view(page, "view=3").dom, ">all: 80 MiB<"), 1u);
}

TEST_F(HeapPage, HostileName_IsShownAsText) {
  const Seen seen =
      look_at_text(page_of(profile_of({{"</script><img src=x onerror=\"document.body.remove()\">&amp;", kMiB, kMiB}})));
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "<img"), 0u);
  EXPECT_GT(count(seen.dom, "&lt;/script&gt;&lt;img src=x"), 0u);
}

}  // namespace
}  // namespace freehold::tests
