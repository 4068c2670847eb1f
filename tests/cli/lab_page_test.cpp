// SPDX-License-Identifier: MIT
// The pages of the experiments in a browser: each draws everything, complains about nothing, fetches nothing.
#include <nlohmann/json.hpp>

#include "lab/articles/findings.hpp"
#include "lab/pools/experiment.hpp"
#include "lab/scale/experiment.hpp"
#include "lab/timers/experiment.hpp"
#include "tests/cli/page_fixture.hpp"
#include "tests/unit/lab/articles_support.hpp"
#include "tests/unit/lab/pools_support.hpp"
#include "tests/unit/lab/scale_support.hpp"
#include "tests/unit/lab/timers_support.hpp"

namespace freehold::tests {
namespace {
namespace articles = lab::articles;
namespace pools = lab::pools;
namespace scale = lab::scale;
namespace timers = lab::timers;

class LabPage : public PageTest {
 protected:
  Seen look_at_page_of(const scale::Results& results) {
    return look_at_text(tools::page_of(scale::page_parts(), results_json(results)));
  }
};

// Otherwise the other tests would prove nothing.
TEST_F(LabPage, WithAnErrorAndRequests_TheTestNotices) {
  const Seen seen =
      look_at(folder_.file("bad.html",
                           "<!DOCTYPE html><script>noSuchFunction()</script><img src='http://example.invalid/a.png'>"
                           "<link rel=stylesheet href='https://example.invalid/b.css'>"));
  EXPECT_EQ(seen.console.size(), 1u);
  EXPECT_EQ(seen.requested, (std::vector<std::string>{"http://example.invalid/a.png", "https://example.invalid/b.css"}));
}

TEST_F(LabPage, OfScale_EveryPlotAndTable) {
  const scale::Results results = scale::results_with(scale::as_in_the_article);
  const Seen seen = look_at_page_of(results);
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "data-ready=\"6\""), 1u);  // two allocators, threads and processes; allocate and mixed compared
  EXPECT_EQ(count(seen.dom, "<canvas"), 6u);
  EXPECT_EQ(count(seen.dom, "class=\"pill reproduced\""), 3u);
  EXPECT_EQ(count(seen.dom, "<td class=\"name\">threads</td>") + count(seen.dom, "<td class=\"name\">processes</td>"),
            results.series.size());
}

TEST_F(LabPage, OfPools_EveryPlotAndTableAndTheRowThatIsLostFirst) {
  pools::Results results = pools::results_with(pools::ours_loses_the_ring);
  for (const std::string_view workload : pools::kSimulatedWorkloads)
    for (const unsigned quantum : pools::quanta_of(workload))
      for (const std::string_view pool : {pools::kOurs, std::string_view("spread")})
        results.simulated.push_back(
            {std::string(pool), workload, quantum, std::vector<double>(pools::kSimulatedCores.size(), 0.5)});
  const Seen seen = look_at_text(tools::page_of(pools::page_parts(), results_json(results)));
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "data-ready=\"12\""), 1u);  // time and contention for 8 and 16 threads; eight simulations
  EXPECT_EQ(count(seen.dom, "<canvas"), 12u);
  EXPECT_EQ(count(seen.dom, "within 5% of it in 18 of 19 rows"), 1u);
  EXPECT_EQ(count(seen.dom, "class=\"fill lost\""), 1u);
  EXPECT_LT(seen.dom.find("class=\"fill lost\""), seen.dom.find("class=\"fill won\""));
  EXPECT_EQ(count(seen.dom, " best\"") + count(seen.dom, " best first\""), 17u);
}

TEST_F(LabPage, OfTimers_EveryPlotAndTable) {
  const timers::Results results = timers::results_with(timers::wheel_suffers);
  const Seen seen = look_at_text(tools::page_of(timers::page_parts(), results_json(results)));
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "data-ready=\"3\""), 1u);  // one for each load
  EXPECT_EQ(count(seen.dom, "<canvas"), 3u);
  EXPECT_EQ(count(seen.dom, "14 of 18 targets reached, 0 undecided"), 1u);
  EXPECT_EQ(count(seen.dom, "class=\"switch\" aria-pressed=\"true\""), 5u);
  EXPECT_EQ(count(seen.dom, "class=\"fill lost\""), 4u);
  EXPECT_EQ(count(seen.dom, "<h3>"), rows_of(results.settings).size());
}

// The six that matter are drawn, and the rest waits for its switch; a run of few structures draws them all.
TEST_F(LabPage, OfTimersWithAllStructures_SixLinesAreOn) {
  timers::Settings settings;
  for (const timers::Candidate& candidate : timers::candidates()) settings.structures.push_back(&candidate);
  settings.tests = {timers::Trial::kRearm};
  settings.repeat = 1;
  const Seen seen = look_at_text(tools::page_of(
      timers::page_parts(), results_json(timers::results_of(settings, [](const auto&, auto) { return 5.0; }))));
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "class=\"switch\" aria-pressed=\"true\""), 6u);
  EXPECT_EQ(count(seen.dom, "class=\"switch\" aria-pressed=\"false\""), settings.structures.size() - 6);
}

TEST_F(LabPage, OfArticles_EveryClaimAndTable) {
  const articles::Results results = articles::results_with(articles::as_in_the_articles());
  const articles::Findings findings = findings_of(results);
  const Seen seen = look_at_text(tools::page_of(articles::page_parts(), results_json(results)));
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "class=\"pill "), findings.claims.size());
  EXPECT_EQ(count(seen.dom, "<table"), 3 + findings.tables.size());
  EXPECT_EQ(count(seen.dom, "<h2>Article "), 3u);
  EXPECT_EQ(count(seen.dom, "<canvas"), 4u);  // figures 5, 8 and 9 of the first
  EXPECT_EQ(count(seen.dom, "class=\"histogram compared\""), findings.bars.size());
  std::size_t bars = 0;
  for (const articles::Bars& figure : findings.bars) bars += figure.bars.size();
  EXPECT_EQ(count(seen.dom, "class=\"column\""), bars);
  EXPECT_EQ(count(seen.dom, ">with the default</button>"), 3u);  // the charts of the second
}

TEST_F(LabPage, OfTheFourthArticle_ItsThreeDiagrams) {
  const articles::Results results = articles::scaling_with(articles::as_in_the_articles(), 4);
  const Seen seen = look_at_text(tools::page_of(articles::page_parts(), results_json(results)));
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "<canvas"), 3u);
  EXPECT_EQ(count(seen.dom, "class=\"theirs\""), 2u);  // a legend of the first two
}

TEST_F(LabPage, HostileNames_AreShownAsText) {
  scale::Results results = scale::results_with(scale::as_in_the_article);
  const std::string hostile = "</script><img src=x onerror=\"document.body.remove()\">&amp;";
  results.settings.subjects[1].name = hostile;
  for (scale::Series& series : results.series)
    if (series.job.subject == "freehold") series.job.subject = hostile;
  const Seen seen = look_at_page_of(results);
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "<canvas"), 6u);
  EXPECT_EQ(count(seen.dom, "<img"), 0u);
  EXPECT_GT(count(seen.dom, "&lt;/script&gt;&lt;img src=x"), 0u);
}

TEST_F(LabPage, OfAnInterruptedRun_StaysWhole) {
  scale::Results results = scale::results_with(scale::as_in_the_article);
  results.complete = false;
  for (std::size_t i = 0; i < results.series.size(); i += 3) results.series[i].samples.clear();
  const Seen some = look_at_page_of(results);
  expect_quiet(some);
  EXPECT_EQ(count(some.dom, "<canvas"), 6u);
  EXPECT_GT(count(some.dom, "Interrupted"), 0u);
  for (scale::Series& series : results.series) series.samples.clear();
  const Seen none = look_at_page_of(results);
  expect_quiet(none);
  EXPECT_GT(count(none.dom, "No verdict"), 0u);
  EXPECT_EQ(count(none.dom, "NaN"), 0u);
}

}  // namespace
}  // namespace freehold::tests
