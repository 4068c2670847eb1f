// SPDX-License-Identifier: MIT
// The page of freehold doctor in a browser: it draws everything, complains about nothing, fetches nothing, and can be used.
#include <gtest/gtest.h>

#include "tests/cli/page_fixture.hpp"
#include "tests/unit/cli/doctor_support.hpp"
#include "tools/doctor/report/results_json.hpp"

namespace freehold::tests {
namespace {
using namespace doctor::report;

class DoctorPage : public PageTest {
 protected:
  Seen look_at_page_of(const Diagnosis& diagnosis, const View& view = {}, const std::string& script = {}) {
    return look_at_text(page_of(report_of(diagnosis)), view, script);
  }
};

TEST_F(DoctorPage, OfADiagnosis_DrawsEveryPart) {
  const Seen seen = look_at_page_of(diagnosis_with(Cause::kRemoteFrees));
  expect_quiet(seen);
  EXPECT_EQ(count(seen.dom, "data-ready=\"3\""), 1u);  // speed-up, memory, allocations
  EXPECT_EQ(count(seen.dom, "<canvas"), 3u);
  EXPECT_EQ(count(seen.dom, "<section"), 12u);
  EXPECT_EQ(count(seen.dom, "The allocator explains 60% (50 to 70%) of the time"), 1u + 1u);  // and in the data
  EXPECT_EQ(count(seen.dom, "Is the allocator why parser does not scale?"), 1u);
  EXPECT_EQ(count(seen.dom, "class=\"fill won\""), 3u);
  EXPECT_EQ(count(seen.dom, "class=\"step\""), 3u + 2u);  // to do, to repeat
  EXPECT_EQ(count(seen.dom, "NaN") + count(seen.dom, ">undefined<"), 0u);
}

// Sorted by share at first. Pressing a title sorts by it, pressing it again turns the order; a place unfolds its stacks.
TEST_F(DoctorPage, CallSites_SortAndUnfold) {
  const Seen seen = look_at_page_of(diagnosis_with(Cause::kRemoteFrees), {}, R"(
    const table = document.getElementById('sites-table');
    const first = () => table.querySelector('tbody b').textContent;
    const press = (title) => [...table.querySelectorAll('button')].find((b) => b.textContent === title).click();
    const sorted = () => table.querySelector('[aria-sort$="cending"]').textContent + ' ' + table.querySelector('[aria-sort$="cending"]').ariaSort;
    const told = [first(), sorted()];
    press('bytes each'); told.push(first(), sorted());
    press('bytes each'); told.push(sorted());
    press('where'); told.push(first(), sorted());
    const place = table.querySelector('details');
    told.push(place.querySelectorAll('li').length);
    place.open = true; place.dispatchEvent(new Event('toggle'));
    told.push(place.querySelectorAll('li').length);
    table.querySelector('button').focus();
    told.push(document.activeElement.tagName);
    return told.join('|');)");
  expect_quiet(seen);
  EXPECT_EQ(told_by(seen),
            "parse.cpp:210|share of time descending|parse.cpp:222|bytes each descending|bytes each ascending|"
            "parse.cpp:210|where ascending|0|6|BUTTON");
}

TEST_F(DoctorPage, InTheDarkAndOnAPhone_FitsTheWidth) {
  expect_to_fit(page_of(report_of(diagnosis_with(Cause::kRemoteFrees))));
}

// Wide ranges are rounded to tens: 34, 33 and 33% are no 90%.
TEST_F(DoctorPage, PartsOfTheLoss_AddUpToTheBar) {
  const std::string script = R"(
    const widths = [...document.querySelectorAll('#parts-bar > div')].map((part) => Math.round(parseFloat(part.style.width)));
    return [...document.querySelectorAll('#parts-legend > span')].map((label) => label.textContent.split(': ')[1]).join('+') + '|' + widths.join('+');)";
  Diagnosis d = diagnosis_with(Cause::kRemoteFrees);
  d.verdict.parts = {{Cause::kRemoteFrees, {0.2, 0.34, 0.5}},
                     {Cause::kOwnLock, {0.2, 0.33, 0.5}},
                     {Cause::kMemoryBandwidth, {0.2, 0.33, 0.5}}};
  EXPECT_EQ(told_by(look_at_page_of(d, {}, script)), "30%+40%+30%|34+33+33");
  d.verdict.parts = {{Cause::kRemoteFrees, {0.58, 0.6, 0.62}}, {Cause::kOwnLock, {0.28, 0.3, 0.32}}};
  EXPECT_EQ(told_by(look_at_page_of(d, {}, script)), "60%+30%+10%|60+30+10");
}

// A gain in large letters beside "Undecided" looks like a decision.
TEST_F(DoctorPage, Undecided_NoGainIsShownAsTheAnswer) {
  const std::string script = R"(
    return document.querySelectorAll('.tile').length + '|' + document.getElementById('tiles').textContent.includes('as fast with')
      + '|' + document.querySelectorAll('#fixes-table .ours').length;)";
  EXPECT_EQ(told_by(look_at_page_of(diagnosis_with(Cause::kRemoteFrees), {}, script)), "3|true|1");
  EXPECT_EQ(told_by(look_at_page_of(diagnosis_with(Cause::kUndecided), {}, script)), "1|false|0");
}

TEST_F(DoctorPage, HostileNames_AreShownAsText) {
  Diagnosis d = diagnosis_with(Cause::kOwnLock);
  const std::string evil = "</script><img src=x onerror=\"document.body.remove()\">&amp;<!--";
  d.settings.command = {evil, evil};
  d.program = evil;
  d.notes = {evil};
  d.machine.cpu_model = evil;
  d.repetitions = {{evil, evil}};
  d.experiment.variants[kPeerAt].name = evil;
  d.experiment.cells[0].failure = evil;
  auto recorded = attribution_with(3);
  for (auto& site : recorded.sites) {
    for (auto& stack : site.place.stacks) stack.frames[0] = {evil, evil, 1, evil, false};
    site.place.via = evil;
  }
  recorded.lock_waits[0].place = recorded.sites[0].place;
  recorded.remote_sites[0].freed_at = recorded.sites[0].place;
  recorded.sharing[0].places[0] = recorded.sites[0].place;
  d.recorded = std::make_shared<const Attribution>(recorded);
  const Seen seen = look_at_page_of(d, {}, R"(
    document.querySelectorAll('details').forEach((one) => { one.open = true; one.dispatchEvent(new Event('toggle')); });
    return document.images.length + '|' + document.querySelectorAll('section').length;)");
  expect_quiet(seen);
  EXPECT_EQ(told_by(seen), "0|12");
  EXPECT_EQ(count(seen.dom, "<img"), 0u);
  EXPECT_GT(count(seen.dom, "&lt;/script&gt;&lt;img src=x"), 20u);
}

}  // namespace
}  // namespace freehold::tests
