// SPDX-License-Identifier: MIT
// The page of freehold doctor --memory in a browser: it draws everything, complains about nothing, fetches nothing, and can
// be used.
#include <gtest/gtest.h>

#include "tests/cli/page_fixture.hpp"
#include "tests/unit/cli/memory_support.hpp"
#include "tools/doctor/report/results_json.hpp"

namespace freehold::tests {
namespace {
using doctor::report::memory_page_of;
using doctor::report::MemoryDiagnosis;
using freehold::doctor::MemoryCause;

class MemoryPage : public PageTest {
 protected:
  Seen look_at_page_of(const MemoryDiagnosis& diagnosis, const View& view = {}, const std::string& script = {}) {
    return look_at_text(memory_page_of(json_of(diagnosis)), view, script);
  }
};

TEST_F(MemoryPage, OfADiagnosis_DrawsEveryPart) {
  const Seen seen = look_at_page_of(memory_diagnosis(), {}, R"(
    const text = (id) => document.getElementById(id).textContent;
    const first = (id) => [...document.querySelectorAll(`#${id} tbody tr`)].map((row) => row.textContent).slice(0, 2).join(' / ');
    return [document.querySelector('h1').textContent, text('pill'), text('parts-legend'), first('parts-table'), text('untouched'), first('fixes-table')].join('|');)");
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "data-ready=\"1\""), 1u);
  EXPECT_EQ(count(seen.dom, "<section"), 6u);
  EXPECT_EQ(count(seen.dom, "class=\"fill won\""), 1u);
  EXPECT_EQ(count(seen.dom, "NaN") + count(seen.dom, ">undefined<"), 0u);
  EXPECT_EQ(
      told_by(seen),
      "Why does store take so much memory?|Not the allocator|live data: 70%free in malloc: holes between live blocks: 25%"
      "code, variables, mapped files: 5%|live data70%70 MiB70 MiB / free in malloc: holes between live blocks25%25 MiB25 "
      "MiB|"
      "Allocated and never used, so not resident: 3.0 MiB.|freehold20 MiB less (18.0 to 22.0) / jemallocfailed");
}

TEST_F(MemoryPage, NothingRecordedAndNothingTried_SaysWhatThereIs) {
  MemoryDiagnosis d = memory_diagnosis();
  d.experiment.record.reset();
  d.experiment.cells.resize(1);
  d.verdict.fixes.clear();
  d.verdict.best_fix.reset();
  d.verdict.cause = MemoryCause::kUndecided;
  d.verdict.missing = freehold::doctor::MemoryFact::kDropped;
  const Seen seen = look_at_page_of(d);
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "<section"), 3u) << "verdict, parts, runs";
  EXPECT_EQ(count(seen.dom, ">Undecided<"), 1u);
  EXPECT_EQ(count(seen.dom, "NaN") + count(seen.dom, ">undefined<"), 0u);
}

TEST_F(MemoryPage, InTheDarkAndOnAPhone_FitsTheWidth) { expect_to_fit(memory_page_of(json_of(memory_diagnosis()))); }

TEST_F(MemoryPage, HostileNames_AreShownAsText) {
  MemoryDiagnosis d = memory_diagnosis();
  const std::string evil = "</script><img src=x onerror=\"document.body.remove()\">&amp;<!--";
  d.settings.command = {evil};
  d.program = evil;
  d.notes = {evil};
  d.machine.cpu_model = evil;
  d.experiment.cells[1].variant.how.name = d.experiment.cells[2].failure = evil;
  for (auto& site : d.experiment.record->sites) {
    site.place.via = evil;
    site.place.stacks[0].frames[0] = {evil, evil, 1, evil, false};
  }
  const Seen seen = look_at_page_of(d, {}, R"(
    document.querySelectorAll('details').forEach((one) => { one.open = true; });
    return document.images.length + '|' + document.querySelectorAll('section').length;)");
  expect_quiet(seen);
  EXPECT_EQ(told_by(seen), "0|6");
  EXPECT_GT(count(seen.dom, "&lt;img src=x"), 10u);
}

}  // namespace
}  // namespace freehold::tests
