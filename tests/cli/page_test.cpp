// SPDX-License-Identifier: MIT
// The page of freehold scale in a browser: it draws everything, complains about nothing, fetches nothing.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lab/scale/page.hpp"
#include "lab/scale/results_json.hpp"
#include "tests/cli/page_fixture.hpp"
#include "tests/unit/lab/scale_support.hpp"

namespace freehold::tests {
namespace {
using namespace cli::scale;

class Page : public PageTest {
 protected:
  Seen look_at_page_of(const Results& results) { return look_at_text(page_of(results_json(results, verdict_of(results)))); }
};

// Otherwise the other tests would prove nothing.
TEST_F(Page, WithAnErrorAndRequests_TheTestNotices) {
  const Seen seen =
      look_at(folder_.file("bad.html",
                           "<!DOCTYPE html><script>noSuchFunction()</script><img src='http://example.invalid/a.png'>"
                           "<link rel=stylesheet href='https://example.invalid/b.css'>"));
  EXPECT_EQ(seen.console.size(), 1u);
  EXPECT_EQ(seen.requested, (std::vector<std::string>{"http://example.invalid/a.png", "https://example.invalid/b.css"}));
}

TEST_F(Page, OfARun_DrawsEveryPlotAndTable) {
  const Results results = results_with(as_in_the_article);
  const Seen seen = look_at_page_of(results);
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "data-ready=\"6\""), 1u);  // two allocators, threads and processes; allocate and mixed compared
  EXPECT_EQ(count(seen.dom, "<canvas"), 6u);
  EXPECT_EQ(count(seen.dom, "class=\"pill reproduced\""), 3u);
  EXPECT_EQ(count(seen.dom, "<td class=\"name\">threads</td>") + count(seen.dom, "<td class=\"name\">processes</td>"),
            results.series.size());
}

TEST_F(Page, HostileNames_AreShownAsText) {
  Results results = results_with(as_in_the_article);
  const std::string name = "</script><img src=x onerror=\"document.body.remove()\">&amp;";
  results.settings.subjects[1].name = name;
  const Seen seen = look_at_page_of(results);
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "<canvas"), 6u);
  EXPECT_EQ(count(seen.dom, "<img"), 0u);
  EXPECT_GT(count(seen.dom, "&lt;/script&gt;&lt;img src=x"), 0u);
}

TEST_F(Page, OfAnInterruptedRun_StaysWhole) {
  Results results = results_with(as_in_the_article);
  results.complete = false;
  for (std::size_t i = 0; i < results.series.size(); ++i) {
    if (i % 3 == 0) results.series[i].samples.clear();
  }
  const Seen some = look_at_page_of(results);
  expect_quiet(some);
  EXPECT_EQ(count(some.dom, "<canvas"), 6u);
  EXPECT_GT(count(some.dom, "Interrupted"), 0u);
  for (Series& series : results.series) series.samples.clear();
  const Seen none = look_at_page_of(results);
  expect_quiet(none);
  EXPECT_GT(count(none.dom, "No verdict"), 0u);
  EXPECT_EQ(count(none.dom, "NaN"), 0u);
}

}  // namespace
}  // namespace freehold::tests
