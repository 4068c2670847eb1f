// SPDX-License-Identifier: MIT
// The page of freehold timers in a browser: it draws everything, complains about nothing, fetches nothing.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lab/timers/page.hpp"
#include "lab/timers/results_json.hpp"
#include "tests/cli/page_fixture.hpp"
#include "tests/unit/lab/timers_support.hpp"

namespace freehold::tests {
namespace {
using namespace cli::timers;

class TimersPage : public PageTest {
 protected:
  Seen look_at_page_of(const Results& results) { return look_at_text(page_of(results_json(results))); }
};

TEST_F(TimersPage, OfARun_DrawsEveryPlotAndTable) {
  const Results results = results_with(wheel_suffers);
  const Seen seen = look_at_page_of(results);
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "data-ready=\"3\""), 1u);  // one for each load
  EXPECT_EQ(count(seen.dom, "<canvas"), 3u);
  EXPECT_EQ(count(seen.dom, "14 of 18 targets reached"), 1u);
  EXPECT_EQ(count(seen.dom, "class=\"fill lost\""), 4u);
  EXPECT_EQ(count(seen.dom, "<h3>"), rows_of(results.settings).size());
}

TEST_F(TimersPage, HostileFailure_IsShownAsText) {
  Results results = results_with(wheel_suffers);
  results.series.front().samples.clear();
  results.series.front().failure = "</script><img src=x onerror=\"document.body.remove()\">&amp;";
  const Seen seen = look_at_page_of(results);
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "<img"), 0u);
  EXPECT_GT(count(seen.dom, "&lt;/script&gt;&lt;img src=x"), 0u);
}

TEST_F(TimersPage, OfAnInterruptedRun_StaysWhole) {
  Results results = results_with(wheel_suffers);
  results.complete = false;
  for (std::size_t i = 0; i < results.series.size(); ++i) {
    if (i % 3 == 0) results.series[i].samples.clear();
  }
  const Seen some = look_at_page_of(results);
  expect_quiet(some);
  EXPECT_EQ(count(some.dom, "<canvas"), 3u);
  EXPECT_GT(count(some.dom, "Interrupted"), 0u);
  for (Series& series : results.series) series.samples.clear();
  const Seen none = look_at_page_of(results);
  expect_quiet(none);
  EXPECT_EQ(count(none.dom, "NaN"), 0u);
}

}  // namespace
}  // namespace freehold::tests
