// SPDX-License-Identifier: MIT
// The arithmetic of `freehold doctor --memory`, on made-up inputs: whose the resident pages are, and what is live at which
// moment. Which cause follows is memory_verdict_test.cpp's, that it is right about programs is the corpus's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tools/doctor/verdict/memory_verdict.hpp"

namespace freehold::doctor {
namespace {

constexpr std::uint64_t kArena = std::uint64_t{64} << 20;

ResidentMapping mapping(std::uint64_t begin, std::uint64_t bytes, const std::string& name, double resident,
                        const std::string& rights = "rw-p") {
  return {begin, begin + bytes, rights, name, resident};
}

// ---- snapshots ----

TEST(ResidentMappings, TextOfTheKernel_GivesPlacesNamesAndPages) {
  const auto all = resident_mappings(
      "55d0c0000000-55d0c0021000 rw-p 00000000 00:00 0                          [heap]\n"
      "Size:                132 kB\nRss:                  80 kB\nPss:                  76 kB\nPss_Dirty:             4 kB\n"
      "7f0000000000-7f0000001000 ---p 00000000 00:00 0 \n"
      "Pss:                   0 kB\nVmFlags: rd wr mr\n"
      "7f1000000000-7f1000002000 r--p 00001000 fd:00 4711   /usr/lib/a b.so\n"
      "Pss:                   8 kB\n");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "[heap]");
  EXPECT_EQ(all[0].begin, 0x55d0c0000000u);
  EXPECT_EQ(all[0].end, 0x55d0c0021000u);
  EXPECT_DOUBLE_EQ(all[0].resident_bytes, 76 * 1024);
  EXPECT_EQ(all[1].rights, "---p");
  EXPECT_EQ(all[1].name, "");
  EXPECT_EQ(all[2].name, "/usr/lib/a b.so");
}

TEST(FilesInTmpfs, Mappings_AreToldByTheirDeviceWhereverItIsMounted) {
  auto all = resident_mappings(
      "10000-20000 rw-s 00000000 00:2a 5   /run/state\nPss: 40 kB\n"
      "30000-40000 rw-s 00000000 fd:2a 5   /var/state\nPss: 40 kB\n"
      "50000-60000 rw-s 00000000 00:01 7   /dev/zero (deleted)\nPss: 40 kB\n"
      "70000-80000 rw-p 00000000 00:00 0\nPss: 40 kB\n"
      "90000-a0000 rw-s 00000000 00:2a 6   /tmp/gone (deleted)\nPss: 40 kB\n");
  ASSERT_EQ(all.size(), 5u);
  TmpfsDevices devices;
  int asked = 0;
  const auto mountinfo = [&asked] {
    ++asked;
    return std::string(
        "36 27 0:42 / /run rw,nosuid shared:5 - tmpfs tmpfs rw,size=1k\n"
        "37 27 253:42 / /var rw - ext4 /dev/tmpfs rw\n"
        "damaged\n");
  };
  mark_files_in_tmpfs(all, devices, mountinfo);
  EXPECT_EQ(asked, 2) << "at first, and for a device that is not mounted";
  mark_files_in_tmpfs(all, devices, mountinfo);
  EXPECT_EQ(asked, 2) << "all of them are known";
  std::vector<bool> in_tmpfs;
  for (const ResidentMapping& one : all) in_tmpfs.push_back(one.is_in_tmpfs);
  EXPECT_EQ(in_tmpfs, (std::vector<bool>{true, false, false, false, true}));
}

// Else it counts twice: as a file that is mapped, and as one that is written.
TEST(FilesInTmpfs, MappedOnes_AreSharedMemoryOnce) {
  ProcessMemory process{1, {mapping(0x100000, 0x10000, "/run/state", 60'000, "rw-s")}, 0};
  process.mappings[0].is_in_tmpfs = true;
  const MemoryParts parts = parts_of(process, nullptr, nullptr, true);
  EXPECT_DOUBLE_EQ(parts[MemoryPart::kShared], 60'000);
  EXPECT_DOUBLE_EQ(parts[MemoryPart::kFiles], 0);
  process.mappings[0].device = 42;
  process.mappings[0].inode = 5;
  const std::vector<FileInTmpfs> written{{.device = 42, .inode = 5, .bytes = 70'000},
                                         {.device = 42, .inode = 6, .bytes = 8'000}};
  EXPECT_DOUBLE_EQ(unmapped_bytes(written, {process, process}), 8'000) << "two processes map all of the first";
  process.mappings[0].resident_bytes = 20'000;
  EXPECT_DOUBLE_EQ(unmapped_bytes(written, {process, process}), 38'000);
}

TEST(WeightsOf, Moments_StandForTheTimeAroundThem) {
  EXPECT_EQ(weights_of({{.at_s = 1, .processes = {}}, {.at_s = 2, .processes = {}}, {.at_s = 5, .processes = {}}}),
            (std::vector<double>{0.5, 2, 1.5}));
  EXPECT_EQ(weights_of({{.at_s = 7, .processes = {}}}), std::vector<double>{1});
}

// ---- parts ----

TEST(PartsOf, HeapAndArenas_AreMallocsAndDivided) {
  ProcessMemory process{1, {}, 1000};
  process.mappings = {mapping(0x10000, 0x10000, "[heap]", 60'000), mapping(4 * kArena, 0x20000, "", 40'000),
                      mapping(4 * kArena + 0x20000, kArena - 0x20000, "", 0, "---p")};
  const LiveData live{1, 50'000, 7'000, {}, 0};
  const MemoryParts parts = parts_of(process, &live, nullptr, true);
  EXPECT_DOUBLE_EQ(parts[MemoryPart::kLive], 50'000);
  EXPECT_DOUBLE_EQ(parts[MemoryPart::kRounding], 7'000);
  EXPECT_DOUBLE_EQ(parts.free_bytes, 43'000);
  EXPECT_DOUBLE_EQ(parts[MemoryPart::kMappings], 0);
  EXPECT_DOUBLE_EQ(parts[MemoryPart::kPageTables], 1000);
  EXPECT_DOUBLE_EQ(parts.sum(), 101'000);
}

TEST(PartsOf, AnotherMallocsMappings_AreThoseWhereBlocksWereSeen) {
  ProcessMemory process{1, {mapping(0x100000, 0x10000, "", 5'000), mapping(0x900000, 0x10000, "", 3'000)}, 0};
  const SeenBlocks seen{1, {0x100040, 0x100080}};
  const LiveData live{1, 1'000, 0, {}, 0};
  const MemoryParts parts = parts_of(process, &live, &seen, false);
  EXPECT_DOUBLE_EQ(parts[MemoryPart::kLive], 1'000);
  EXPECT_DOUBLE_EQ(parts.free_bytes, 4'000);
  EXPECT_DOUBLE_EQ(parts[MemoryPart::kMappings], 3'000);
}

TEST(PartsOf, FilesAndSharedMemory_AreNotMallocs_AndTheDoctorsAreNobodys) {
  ProcessMemory process{1, {}, 0};
  process.mappings = {mapping(0x100000, 0x1000, "/usr/bin/prog", 100),
                      mapping(0x101000, 0x1000, "", 20),
                      mapping(0x200000, 0x1000, "/dev/zero (deleted)", 400, "rw-s"),
                      mapping(0x300000, 0x1000, "/usr/lib/libfreehold-probe.so", 10'000),
                      mapping(0x301000, 0x1000, "", 20'000),
                      mapping(0x400000, 0x1000, "/tmp/x/1.trace", 30'000, "rw-s")};
  const MemoryParts parts = parts_of(process, nullptr, nullptr, true);
  EXPECT_DOUBLE_EQ(parts[MemoryPart::kFiles], 120);
  EXPECT_DOUBLE_EQ(parts[MemoryPart::kShared], 400);
  EXPECT_DOUBLE_EQ(parts.sum(), 520);
}

// The recording may be wrong in any way: the parts add up to what was there, and none is negative.
TEST(PartsOf, AnyInput_AddsUpAndIsNeverNegative) {
  std::mt19937_64 random(18);
  const auto draw = [&random](std::uint64_t most) { return random() % (most + 1); };
  const std::vector<std::string> names{
      "", "", "", "[heap]", "[stack]", "/usr/lib/a.so", "/dev/shm/x", "[anon:freehold small]"};
  for (int times = 0; times < 3000; ++times) {
    ProcessMemory process{1, {}, static_cast<double>(draw(100'000))};
    double whole = process.page_table_bytes;
    std::uint64_t at = kArena;
    SeenBlocks seen{1, {}};
    LiveData live{1, static_cast<double>(draw(3'000'000)), static_cast<double>(draw(300'000)), {}, 0};
    for (std::uint64_t i = 0, count = draw(12); i < count; ++i) {
      if (draw(3) == 0) at += draw(3) * 4096;
      if (draw(9) == 0) at = (at / kArena + 1) * kArena;
      const std::uint64_t pages = 1 + draw(100);
      const bool is_guard = draw(4) == 0;
      const auto resident = is_guard ? 0 : static_cast<double>(draw(pages * 4096));
      process.mappings.push_back(
          mapping(at, pages * 4096, names[draw(names.size() - 1)], resident, is_guard ? "---p" : "rw-p"));
      whole += resident;
      if (draw(2) == 0) seen.addresses.push_back(at + 64 * draw(60));
      if (draw(3) == 0) {
        live.mapped.push_back({at, at + 4096 * (1 + draw(pages))});
        live.mapped_rounding += static_cast<double>(draw(4095));
      }
      at += pages * 4096;
    }
    const bool is_glibc = draw(1) == 1;
    MemoryParts parts = parts_of(process, draw(4) == 0 ? nullptr : &live, draw(4) == 0 ? nullptr : &seen, is_glibc);
    ASSERT_NEAR(parts.sum(), whole, 1e-6);
    ASSERT_GE(parts.free_bytes, 0);
    ASSERT_GE(parts.untouched_bytes, 0);
    const auto saved = [&] { return static_cast<double>(draw(1'000'000)) - 300'000; };
    parts = divided(parts, {saved(), saved(), saved()});
    ASSERT_NEAR(parts.sum(), whole, 1e-6);
    ASSERT_DOUBLE_EQ(parts.free_bytes, 0);
    for (const double bytes : parts.bytes) ASSERT_GE(bytes, 0);
  }
}

TEST(Divided, WhatIsSavedByOneMeans_IsNotCountedForTheNext) {
  MemoryParts parts;
  parts.free_bytes = 100;
  const MemoryParts all = divided(parts, {.by_one_arena = 60, .without_caches = 30, .by_trimming = 60});
  EXPECT_DOUBLE_EQ(all[MemoryPart::kArenas], 60);
  EXPECT_DOUBLE_EQ(all[MemoryPart::kCaches], 30);
  EXPECT_DOUBLE_EQ(all[MemoryPart::kFreePages], 10);
  EXPECT_DOUBLE_EQ(all[MemoryPart::kHoles], 0);
  EXPECT_DOUBLE_EQ(divided(parts, {})[MemoryPart::kHoles], 100);
}

// ---- live data ----

class LiveHistoryOf : public testing::Test {
 protected:
  LiveHistoryOf() {
    recording_.pid = 7;
    recording_.began_s = 100;
    recording_.seconds = 8;
    recording_.stacks = {{1}, {2}};
  }
  void add(double began_s, std::optional<double> ended_s, std::uint64_t bytes, double weight = 1, StackId stack = 0,
           std::uint64_t address = 0) {
    BlockSample block;
    block.address = address != 0 ? address : 0x1000 * (recording_.blocks.size() + 1);
    block.bytes = bytes;
    block.weight = weight;
    block.began_s = began_s;
    block.ended_s = ended_s;
    block.stack = stack;
    recording_.blocks.push_back(block);
  }
  [[nodiscard]] LiveHistory history(const std::vector<double>& moments, bool is_glibc = true) const {
    const std::vector<double> weights(moments.size(), 1);
    const Evidence evidence{recording_, [](std::uint64_t address) -> const std::vector<Frame>& {
                              static const std::vector<Frame> frames[] = {
                                  {{.function = "a", .file = "a.cpp", .line = 1, .module = {}, .inlined = false}},
                                  {{.function = "b", .file = "b.cpp", .line = 2, .module = {}, .inlined = false}}};
                              return frames[address == 1 ? 0 : 1];
                            }};
    return live_history_of(std::span(&evidence, 1), moments, weights, is_glibc);
  }
  Recording recording_;
};

TEST_F(LiveHistoryOf, Blocks_CountFromTheirBeginningsToTheirEnds) {
  add(1, 3, 100, 10);
  add(2, std::nullopt, 24, 5);
  const LiveHistory live = history({100.5, 102.5, 104});
  ASSERT_EQ(live.at.size(), 3u);
  EXPECT_DOUBLE_EQ(live.at[0].at(0).bytes, 0);
  EXPECT_DOUBLE_EQ(live.at[1].at(0).bytes, 1120);
  EXPECT_DOUBLE_EQ(live.at[1].at(0).rounding_bytes, 10 * 12 + 5 * 8);
  EXPECT_DOUBLE_EQ(live.at[2].at(0).bytes, 120);
  EXPECT_DOUBLE_EQ(live.peak_bytes, 1120);
  EXPECT_DOUBLE_EQ(live.end_bytes, 120);
  EXPECT_DOUBLE_EQ(live.mean_bytes, (1120 + 120) / 3.0);
}

const std::vector<Frame>& frame_of_all(std::uint64_t) {
  static const std::vector<Frame> one = {{.function = "a", .file = "a.cpp", .line = 1, .module = {}, .inlined = false}};
  return one;
}

// Two children one after the other, each of which ends with all that it has.
TEST(LiveHistoryOfChildren, BlocksOfAProcessThatEnded_AreGoneWithIt) {
  Recording first, second;
  first.pid = 7;
  first.began_s = 100;
  second.pid = 8;
  second.began_s = 105;
  for (Recording* const one : {&first, &second}) {
    one->seconds = 1;
    one->stacks = {{1}};
    BlockSample block;
    block.address = 0x1000;
    block.bytes = 100;
    block.weight = 10;
    block.began_s = 0.5;
    one->blocks = {block};
  }
  const Evidence processes[] = {{first, frame_of_all}, {second, frame_of_all}};
  const auto at = [](double at_s, std::uint32_t pid) {
    return MemorySnapshot{.at_s = at_s, .processes = {{pid, {mapping(0x10000, 0x10000, "[heap]", 1000)}, 0}}};
  };
  const MemorySnapshot snapshots[] = {at(101, 7), at(103, 7), at(106, 8), at(108, 8)};
  const std::vector<double> ends = ends_of(processes, snapshots);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_DOUBLE_EQ(ends[0], 103);
  EXPECT_GT(ends[1], 1e9) << "it was there until the end";
  const double moments[] = {101, 103, 106, 108}, weights[] = {1, 1, 1, 1};
  const LiveHistory live = live_history_of(processes, moments, weights, true, ends);
  ASSERT_EQ(live.at[1].size(), 1u);
  EXPECT_DOUBLE_EQ(live.at[1][0].bytes, 1000) << "where it was seen last, it still had them";
  ASSERT_EQ(live.at[2].size(), 1u);
  EXPECT_EQ(live.at[2][0].pid, 8u);
  EXPECT_DOUBLE_EQ(live.mean_bytes, 1000);
  EXPECT_DOUBLE_EQ(live.peak_bytes, 1000);
  EXPECT_DOUBLE_EQ(live.end_bytes, 1000);
  EXPECT_DOUBLE_EQ(live.sites.at(0).at_peak, 1000);
  EXPECT_TRUE(live.sites[0].is_kept()) << "they were not freed";
  // A process that executes another program keeps its number.
  second.pid = 7;
  EXPECT_DOUBLE_EQ(ends_of(processes, snapshots)[0], 103);
  const MemorySnapshot same[] = {at(101, 7), at(106, 7)};
  EXPECT_DOUBLE_EQ(ends_of(processes, same)[0], 105);
}

TEST_F(LiveHistoryOf, BlocksWhoseEndsAreNotWatched_AreCountedForByTheOthers) {
  add(1, 2, 100, 10);
  add(1, std::nullopt, 100, 10);
  recording_.blocks.back().is_end_watched = false;
  EXPECT_DOUBLE_EQ(history({101.5}).at[0].at(0).bytes, 2000);
  EXPECT_DOUBLE_EQ(history({103}).at[0].at(0).bytes, 0);
}

TEST_F(LiveHistoryOf, Sites_AreToldApartByWhatBecomesOfTheirBlocks) {
  for (double at = 0.5; at < 8; at += 1) add(at, std::nullopt, 100, 1, 0);  // all along, never freed
  add(0.5, std::nullopt, 300, 1, 1);                                        // at the beginning, never freed
  LiveHistory live = history({101, 107.9});
  ASSERT_EQ(live.sites.size(), 2u);
  EXPECT_EQ(live.sites[0].place.frame().function, "a");
  EXPECT_TRUE(live.sites[0].grows());
  EXPECT_DOUBLE_EQ(live.sites[0].at_peak, 800);
  EXPECT_DOUBLE_EQ(live.sites[0].in_mean, (100 + 800) / 2.0);
  EXPECT_TRUE(live.sites[1].is_kept());
  EXPECT_FALSE(live.sites[1].grows());
  for (double at = 0.6; at < 8; at += 0.1) add(at, at + 0.05, 100, 1, 0);  // nine of ten are freed soon
  EXPECT_TRUE(history({101, 107.9}).sites[0].grows()) << "a leak of each tenth block";
  EXPECT_FALSE(history({101, 107.9}).sites[0].is_kept());
  add(1, 7.95, 100, 1, 0);  // some of it is freed at the end
  EXPECT_FALSE(history({101, 107.9}).sites[0].grows()) << "old ones are freed as well: a cache";
  EXPECT_FALSE(history({101, 107.9}).sites[0].is_kept());
}

TEST(RecordOf, MoreSeemsToLiveThanThereIs_SitesAddUpToWhatThereIs) {
  const MemorySnapshot snapshot{.at_s = 1, .processes = {{1, {mapping(0x10000, 0x10000, "[heap]", 50'000)}, 0}}};
  LiveHistory live;
  live.at = {{{1, 60'000, 0, {}, 0}}};
  live.seen = {{1, {}}};
  live.peak_bytes = 200'000;
  live.sites = {{.place = {}, .at_peak = 150'000}, {.place = {}, .at_peak = 50'000}};
  const MemoryRecord record = record_of({snapshot}, live, true);
  EXPECT_DOUBLE_EQ(record.peak_live, 50'000);
  EXPECT_DOUBLE_EQ(record.sites[0].at_peak, 37'500);
  EXPECT_DOUBLE_EQ(record.sites[1].at_peak, 12'500);
}

}  // namespace
}  // namespace freehold::doctor
