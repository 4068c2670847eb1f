// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/stats_json.hpp"
#include "cli/support/units.hpp"

namespace freehold::cli {
namespace {

alloc::Stats sample() {
  alloc::Stats stats{};
  stats.version = alloc::kStatsVersion;
  stats.class_count = 2;
  stats.reserved_bytes = 1ull << 38;
  stats.committed_bytes = 3 << 20;
  stats.lock_waits = 7;
  stats.cpus = 2;
  std::strcpy(stats.cpus_source, "affinity");
  std::memset(stats.cache_mode, 'x', sizeof stats.cache_mode);  // not terminated
  stats.classes[0] = {.slot_bytes = 16, .spans = 1, .slots = 4096, .free_slots = 1024, .refills = 5, .drains = 4};
  stats.classes[1] = {.slot_bytes = 48, .spans = 0, .slots = 0, .free_slots = 0, .refills = 0, .drains = 0};
  return stats;
}

TEST(StatsJson, EveryClassThatCounts_AndNoMore) {
  const auto json = stats_json(sample());
  EXPECT_EQ(json.at("reserved_bytes"), 1ull << 38);
  EXPECT_EQ(json.at("lock_waits"), 7);
  EXPECT_EQ(json.at("cpus_source"), "affinity");
  ASSERT_EQ(json.at("classes").size(), 2u);
  EXPECT_EQ(json.at("classes")[0].at("free_slots"), 1024);
}

TEST(BytesText, ThreeDigitsAtMost) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1000), "1.0 KiB");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(98 << 10), "98 KiB");
  EXPECT_EQ(bytes_text(1023 << 10), "1.0 MiB");
  EXPECT_EQ(bytes_text(UINT64_MAX), "16384 PiB");
}

}  // namespace
}  // namespace freehold::cli
