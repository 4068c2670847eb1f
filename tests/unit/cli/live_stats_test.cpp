// SPDX-License-Identifier: MIT
// Names in Prometheus's text format. tests/cli/stats_test.cpp and stats.py compare the figures with processes.
#include "cli/stats/sample.hpp"
#include "tests/support/test.hpp"

namespace freehold::cli::stats {
namespace {

Sample sample() {
  Sample sample;
  sample.pid = 4711;
  const auto heap = [](std::uint64_t bytes, std::optional<std::uint64_t> limit) {
    live::LiveHeapFigures figures;
    figures.name = "h";
    figures.live_bytes = bytes;
    figures.limit_bytes = limit;
    return figures;
  };
  sample.stats.heaps = {heap(200, 1 << 20), heap(300, {})};
  sample.stats.pools = {{.name = "p", .slot_bytes = 40, .capacity = 100, .opened_slots = 64, .taken_slots = 10},
                        {.name = "q", .slot_bytes = 40, .capacity = {}, .opened_slots = {}, .taken_slots = {}}};
  return sample;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

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
