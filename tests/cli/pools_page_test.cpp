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

}  // namespace
}  // namespace freehold::tests
