// SPDX-License-Identifier: MIT
#include "lab/scale/results.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/report/page.hpp"
#include "cli/report/text.hpp"
#include "lab/scale/page.hpp"
#include "lab/scale/results_json.hpp"
#include "lab/scale/table.hpp"
#include "lab/scale/verdict.hpp"
#include "tests/unit/lab/scale_support.hpp"

namespace freehold::cli::scale {
namespace {

TEST(ScaleResults, Speed_IsRelativeToOneWorker) {
  const Results results = results_with(as_in_the_article);
  EXPECT_DOUBLE_EQ(*speed(results, {Workload::kCompute, Mode::kThreads, kSystem, 4}), 2);
  EXPECT_DOUBLE_EQ(*speed(results, {Workload::kAllocate, Mode::kThreads, kSystem, 4}), 0.25);
  EXPECT_DOUBLE_EQ(*speed(results, {Workload::kHandover, Mode::kThreads, kSystem, 4}), 1);  // relative to one pair
  EXPECT_EQ(speed(results, {Workload::kAllocate, Mode::kThreads, kSystem, 3}), std::nullopt);
}

TEST(ScaleResults, MissingSample_MakesOnlyItsSetVanish) {
  Results results = results_with(as_in_the_article);
  const Cell cell{Workload::kCompute, Mode::kThreads, kSystem, 2};
  for (Series& series : results.series) {
    if (series.cell == cell) series.samples[1].reset();
  }
  EXPECT_EQ(speed_in_set(results, cell, 1), std::nullopt);
  EXPECT_DOUBLE_EQ(*speed(results, cell), 2);
  for (Series& series : results.series) series.samples.clear();
  EXPECT_EQ(speed(results, cell), std::nullopt);
  EXPECT_EQ(peak_rss(results.find(cell)), std::nullopt);
}

TEST(ScaleTable, Rows_OneForEachWorkloadAndSubject) {
  const Results results = results_with(as_in_the_article);
  const std::string table = table_of(results, verdict_of(results));
  EXPECT_NE(table.find("THREADS"), std::string::npos);
  EXPECT_NE(table.find("PROCESSES"), std::string::npos);
  EXPECT_NE(table.find("allocate   system            1.00   0.50   0.25  ▅▃▂"), std::string::npos) << table;
  EXPECT_NE(table.find("owner-lock-free"), std::string::npos);
  EXPECT_EQ(table.find("  nan"), std::string::npos) << table;
}

TEST(ScaleJson, EverySeries_WithItsSamples) {
  const Results results = results_with(as_in_the_article);
  const auto json = results_json(results, verdict_of(results));
  ASSERT_EQ(json.at("series").size(), results.series.size());
  EXPECT_EQ(json.at("series")[0].at("samples").size(), 3u);
  EXPECT_EQ(json.at("settings").at("ideal_speed"), (std::vector<double>{1, 2, 2}));
  EXPECT_EQ(json.at("verdict").at("claims").size(), 3u);
  EXPECT_EQ(json.at("complete"), true);
}

TEST(ScalePage, HostileNames_StayData) {
  Results results = results_with(as_in_the_article);
  results.settings.subjects[1].name = "</script><script>alert(1)</script><!--";
  const auto json = results_json(results, verdict_of(results));
  const std::string page = page_of(json);
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
  EXPECT_EQ(page.find("</script><script>alert"), std::string::npos);
  const std::string inside = json_for_script(json);
  EXPECT_EQ(inside.find('<'), std::string::npos);
  EXPECT_EQ(nlohmann::ordered_json::parse(inside), json);
}

TEST(ScalePage, NothingIsFetched_AndEveryPartIsInside) {
  const Results results = results_with(as_in_the_article);
  const std::string page = page_of(results_json(results, verdict_of(results)));
  for (const char* mark : {"/*{", "{data}", "src=\"", "@import", "url("}) {
    EXPECT_EQ(page.find(mark), std::string::npos) << mark;
  }
  for (const char* part : {"var uPlot = ", ".uplot", "default-src 'none'", "freehold-scale"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace freehold::cli::scale
