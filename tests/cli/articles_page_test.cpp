// SPDX-License-Identifier: MIT
// The page of freehold articles in a browser: it draws everything, complains about nothing, fetches nothing.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lab/articles/page.hpp"
#include "lab/articles/results_json.hpp"
#include "tests/cli/page_fixture.hpp"
#include "tests/unit/lab/articles_support.hpp"

namespace freehold::tests {
namespace {
using namespace cli::articles;

class ArticlesPage : public PageTest {
 protected:
  Seen look_at_page_of(const Results& results) { return look_at_text(page_of(results_json(results, findings_of(results)))); }
};

TEST_F(ArticlesPage, OfARun_ShowsEveryClaimAndTable) {
  const Results results = results_with(as_in_the_articles());
  const Findings findings = findings_of(results);
  const Seen seen = look_at_page_of(results);
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "class=\"pill "), findings.claims.size());
  EXPECT_EQ(count(seen.dom, "<table"), 3 + findings.tables.size());
  EXPECT_EQ(count(seen.dom, "<h2>Article "), 3u);
  EXPECT_EQ(count(seen.dom, "<canvas"), 2u);  // figure 9 of the first
}

}  // namespace
}  // namespace freehold::tests
