// SPDX-License-Identifier: MIT
// The texts that freehold stats writes of figures that are known: table, JSON, and Prometheus's text format.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/stats/sample.hpp"

namespace freehold::cli::stats {
namespace {
using freehold::live::LiveFigure;

Sample sample() {
  Sample sample;
  sample.pid = 4711;
  sample.command = "server";
  sample.date = "2026-11-23T00:00:00Z";
  sample.at_s = 100;
  auto& stats = sample.stats;
  stats.figures.set(LiveFigure::kSlotBytes, 3 << 20);
  stats.figures.set(LiveFigure::kFreeDirtyBytes, 1000);
  stats.figures.set(LiveFigure::kKeptBytes, 24);
  stats.figures.set(LiveFigure::kLimitBytes, 0);
  stats.figures.set(LiveFigure::kPurgedBytes, 4096);
  stats.refills = 10;
  stats.drains = 4;
  stats.classes = {
      {.slot_bytes = 16, .spans = 1, .slots = 4096, .free_slots = 4000, .cached_slots = 50, .refills = 10, .drains = 4},
      {.slot_bytes = 32, .spans = 0, .slots = 0, .free_slots = 0, .cached_slots = 0, .refills = 0, .drains = 0}};
  stats.threads = {{.thread = 12,
                    .name = "main",
                    .cached_bytes = 800,
                    .granted_bytes = 1024,
                    .refills = 10,
                    .drains = 4,
                    .remote_frees = 3}};
  stats.heaps = {{.name = "h",
                  .live_objects = 2,
                  .live_bytes = 200,
                  .used_bytes = 4096,
                  .held_bytes = 65536,
                  .limit_bytes = 1 << 20,
                  .slabs = 1,
                  .large_blocks = 0,
                  .conflicts = 5},
                 {.name = "h",
                  .live_objects = 3,
                  .live_bytes = 300,
                  .used_bytes = 4096,
                  .held_bytes = 65536,
                  .limit_bytes = {},
                  .slabs = 1,
                  .large_blocks = 0,
                  .conflicts = 6}};
  stats.pools = {{.name = "p", .slot_bytes = 40, .capacity = 100, .opened_slots = 64, .taken_slots = 10},
                 {.name = "q", .slot_bytes = 40, .capacity = {}, .opened_slots = {}, .taken_slots = {}}};
  return sample;
}

// Two seconds later.
Sample later() {
  Sample later = sample();
  later.at_s = 102;
  later.stats.refills = 30;
  later.stats.classes[0].refills = 30;
  later.stats.figures.set(LiveFigure::kPurgedBytes, 4096 + 2048);
  return later;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(LiveStatsFigures, WhatTheProcessDoesNotHave_IsLeftOut) {
  std::vector<std::string> names;
  for (const Figure& figure : figures_of(sample().stats)) {
    names.emplace_back(figure.name);
    if (names.back() == "free_bytes") {
      EXPECT_EQ(figure.value, 1024U) << "free spans and kept mappings";
    }
    if (names.back() == "cached_bytes") {
      EXPECT_EQ(figure.value, 800U);
    }
  }
  const std::vector<std::string> wanted{"slot_bytes", "cached_bytes", "free_bytes",  "refills",
                                        "drains",     "remote_frees", "purged_bytes"};
  EXPECT_EQ(names, wanted) << "no limit: none is shown";
}

TEST(LiveStatsTable, TwoMoments_RatesOfCounters) {
  const Sample before = sample();
  const std::string table = table_of(later(), &before);
  EXPECT_TRUE(has(table, "10/s\n")) << table;
  EXPECT_TRUE(has(table, "0.0/s\n")) << table;
  EXPECT_TRUE(has(table, "1.0 KiB/s\n")) << table;
  EXPECT_TRUE(has(table, "refills/s\n")) << table;
}

TEST(LiveStatsJson, TwoMoments_OneLineWithRates) {
  const Sample before = sample();
  const std::string text = json_of(later(), &before);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json.at("rates").at("seconds"), 2.0);
  EXPECT_EQ(json.at("rates").at("refills"), 10.0);
  EXPECT_EQ(json.at("rates").at("purged_bytes"), 1024.0);
  EXPECT_FALSE(json.at("rates").contains("slot_bytes")) << "a level has none";
  EXPECT_EQ(json.at("classes").size(), 1U);
  EXPECT_EQ(json.at("classes")[0].at("used_slots"), 46);
  EXPECT_TRUE(json.at("pools")[1].at("taken_slots").is_null());
}

TEST(LiveStatsPrometheus, HeapsOfOneName_AreAddedUp) {
  const std::string text = prometheus_of(sample());
  EXPECT_TRUE(has(text, "freehold_heaps{pid=\"4711\",heap=\"h\"} 2\n")) << text;
  EXPECT_TRUE(has(text, "freehold_heap_live_bytes{pid=\"4711\",heap=\"h\"} 500\n")) << text;
  EXPECT_TRUE(has(text, "freehold_heap_limit_bytes{pid=\"4711\",heap=\"h\"} 1048576\n")) << text;
  EXPECT_TRUE(has(text, "# TYPE freehold_heap_conflicts_total counter\n")) << text;
  EXPECT_TRUE(has(text, "freehold_pool_taken_slots{pid=\"4711\",pool=\"p\"} 10\n")) << text;
  EXPECT_FALSE(has(text, "freehold_pool_taken_slots{pid=\"4711\",pool=\"q\"}")) << text;
}

TEST(LiveStatsPrometheus, NamesOfAnyBytes_AreEscaped) {
  Sample odd = sample();
  odd.stats.heaps.resize(1);
  const auto named = [&](const std::string& name, const std::string& wanted) {
    odd.stats.heaps[0].name = name;
    EXPECT_TRUE(has(prometheus_of(odd), "freehold_heaps{pid=\"4711\",heap=\"" + wanted + "\"} 1\n")) << prometheus_of(odd);
  };
  named("a\"b\\c", "a\\\"b\\\\c");
  named("a\nb\x7f", "a?b?");
  named("größe €", "größe €");
  named(
      "\xff"
      "a\xc3",
      "?a?");
  named("\xed\xa0\x80", "???");  // half of a pair
  named("\xf4\x90\x80\x80", "????");
  named("\xc0\xaf", "??");
  named("", "");
}

}  // namespace
}  // namespace freehold::cli::stats
