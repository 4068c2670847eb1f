// SPDX-License-Identifier: MIT
// The page of freehold pools in a browser: it draws everything, complains about nothing, fetches nothing.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lab/pools/page.hpp"
#include "lab/pools/results_json.hpp"
#include "tests/cli/page_fixture.hpp"
#include "tests/unit/lab/pools_support.hpp"

namespace freehold::tests {
namespace {
using namespace cli::pools;

class PoolsPage : public PageTest {
 protected:
  Seen look_at_page_of(const Results& results) { return look_at_text(page_of(results_json(results))); }
};

Results with_simulation(Results results) {
  for (const std::string_view workload : kSimulatedWorkloads) {
    for (const unsigned quantum : quanta_of(workload)) {
      for (const std::string_view pool : {kOurs, std::string_view("spread")})
        results.simulated.push_back(
            {std::string(pool), workload, quantum, std::vector<double>(kSimulatedCores.size(), 0.5)});
    }
  }
  return results;
}

TEST_F(PoolsPage, OfARun_DrawsEveryPlotAndTable) {
  const Results results = with_simulation(results_with(ours_loses_the_ring));
  const Seen seen = look_at_page_of(results);
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "data-ready=\"12\""), 1u);  // time and contention for 8 and 16 threads; eight simulations
  EXPECT_EQ(count(seen.dom, "<canvas"), 12u);
  EXPECT_EQ(count(seen.dom, "within 5% of it in 16 of 17 rows"), 1u);
  EXPECT_EQ(count(seen.dom, "class=\"fill lost\""), 1u);
  // The row that is lost stands first.
  EXPECT_LT(seen.dom.find("class=\"fill lost\""), seen.dom.find("class=\"fill won\""));
  EXPECT_EQ(count(seen.dom, " best\"") + count(seen.dom, " best first\""), 15u);
}

TEST_F(PoolsPage, HostileFailure_IsShownAsText) {
  Results results = results_with(ours_loses_the_ring);
  results.series.front().samples.clear();
  results.series.front().failure = "</script><img src=x onerror=\"document.body.remove()\">&amp;";
  const Seen seen = look_at_page_of(results);
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "<img"), 0u);
  EXPECT_GT(count(seen.dom, "&lt;/script&gt;&lt;img src=x"), 0u);
}

TEST_F(PoolsPage, OfAnInterruptedRun_StaysWhole) {
  Results results = results_with(ours_loses_the_ring);
  results.complete = false;
  for (std::size_t i = 0; i < results.series.size(); ++i) {
    if (i % 3 == 0) results.series[i].samples.clear();
  }
  const Seen some = look_at_page_of(results);
  expect_quiet(some);
  EXPECT_EQ(count(some.dom, "<canvas"), 4u);
  EXPECT_GT(count(some.dom, "Interrupted"), 0u);
  for (Series& series : results.series) series.samples.clear();
  const Seen none = look_at_page_of(results);
  expect_quiet(none);
  EXPECT_EQ(count(none.dom, "NaN"), 0u);
}

}  // namespace
}  // namespace freehold::tests
