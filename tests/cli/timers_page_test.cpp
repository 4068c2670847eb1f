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

}  // namespace
}  // namespace freehold::tests
