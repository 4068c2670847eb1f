// SPDX-License-Identifier: MIT
// The probe in a program whose behaviour is known: what comes out of its recording is compared with what the program did.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>
#include <vector>

#include "tests/support/folder.hpp"
#include "tests/support/process.hpp"
#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/recording.hpp"
#include "tools/doctor/facts/symbols.hpp"
#include "tools/doctor/probe/trace_format.hpp"

namespace freehold {
namespace {
namespace fs = std::filesystem;
using doctor::BlockSample;
using doctor::Recording;

constexpr double kMany = 400'000;

class Probe : public testing::Test {
 protected:
  [[nodiscard]] test::Outcome run(const std::string& role, std::vector<std::pair<std::string, std::string>> more = {},
                                  const std::string& program = FREEHOLD_SUBJECT) const {
    std::vector<std::pair<std::string, std::string>> environment{{"LD_PRELOAD", FREEHOLD_PROBE},
                                                                 {"FREEHOLD_PROBE_DIRECTORY", folder_.string()}};
    environment.insert(environment.end(), more.begin(), more.end());
    return test::run({.argv = {program, role}, .environment = environment});
  }
  [[nodiscard]] std::vector<Recording> recordings() const {
    std::vector<Recording> found;
    for (const auto& file : fs::directory_iterator(folder_)) {
      if (file.path().extension() != ".trace") continue;
      doctor::NoRecording no;
      auto recording = doctor::read_recording(file.path(), no);
      EXPECT_TRUE(recording) << no.why;
      if (recording) found.push_back(std::move(*recording));
    }
    return found;
  }
  [[nodiscard]] fs::path trace() const {
    for (const auto& file : fs::directory_iterator(folder_))
      if (file.path().extension() == ".trace") return file.path();
    return {};
  }
  // Records a role that ends well, in one process.
  [[nodiscard]] Recording recorded(const std::string& role) const {
    const test::Outcome outcome = run(role);
    EXPECT_TRUE(outcome.ok()) << outcome.describe();
    EXPECT_EQ(outcome.out, "ok\n");
    auto found = recordings();
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? Recording{} : found[0];
  }

  const test::Folder own_;
  const fs::path folder_ = own_.path();
};

double allocations(const Recording& recording) {
  double sum = 0;
  for (const auto& block : recording.blocks) sum += block.weight;
  return sum;
}

TEST_F(Probe, Counts_WeightsAddUpToWhatWasAllocated) {
  const Recording recording = recorded("counts");
  EXPECT_EQ(recording.dropped, 0U);
  ASSERT_FALSE(recording.blocks.empty());
  EXPECT_LT(recording.blocks.size(), 20'000U) << "that is no sample";
  EXPECT_NEAR(allocations(recording), kMany, 0.01 * kMany);
  double frees = 0;
  for (const auto& end : recording.frees) frees += end.weight;
  EXPECT_NEAR(frees, kMany, 0.01 * kMany);
  // Each block lives for 64 others.
  double ended = 0, lived = 0;
  for (const auto& block : recording.blocks) {
    if (block.bytes != 100 || !block.ended_s) continue;
    ++ended;
    lived += *block.ended_s - block.began_s;
    EXPECT_EQ(block.thread, block.ending_thread);
  }
  EXPECT_GT(ended, 0.9 * static_cast<double>(recording.blocks.size()) - 20);
  EXPECT_LT(lived / ended, 0.1 * recording.seconds);
}

// Calls that are counted down to are not made yet.
TEST_F(Probe, Counts_TotalsOfAThreadAreExact) {
  const auto total = [&] {
    const Recording recording = recorded("counts");
    EXPECT_EQ(recording.threads.size(), 1U);
    for (const auto& file : fs::directory_iterator(folder_)) fs::remove(file.path());
    return recording.threads.begin()->second.allocations;
  };
  for (int i = 0; i < 3; ++i) {
    const auto allocations = total();
    EXPECT_GE(allocations, kMany);
    EXPECT_LE(allocations, kMany + 8) << "what a program of C++ allocates at its start";
  }
}

// Two threads take turns at a lock of which the one that waits waits for nearly all of its turn, and nothing at their own.
// A tenth of the time at least, where a fault for each call is all that is done beside.
TEST_F(Probe, RegionsMappedAndUnmapped_TheirBytesAndTheTimeInTheCalls) {
  const Recording recording = recorded("maps");
  EXPECT_GE(recording.mapped_bytes, 1000.0 * (1 << 20));
  EXPECT_LE(recording.mapped_bytes, 1000.0 * (1 << 20) + (64 << 20)) << "and what a thread needs";
  EXPECT_GE(recording.mapping_s, 0.1 * recording.cpu_s);
  EXPECT_LE(recording.mapping_s, 2 * recording.seconds);
}

TEST_F(Probe, ContendedMutex_ItsSiteIsFoundWithItsShare) {
  const Recording recording = recorded("locks");
  doctor::Symbols symbols(trace().replace_extension(".maps"));
  const doctor::Attribution found = doctor::attribution_of(recording, symbols);
  ASSERT_FALSE(found.lock_waits.empty());
  EXPECT_NE(found.lock_waits[0].place.text().find("subject_locks.cpp:"), std::string::npos)
      << found.lock_waits[0].place.text();
  EXPECT_EQ(found.lock_waits[0].kind, doctor::WaitKind::kMutex);
  double waited = 0;
  for (const auto& wait : recording.waits)
    if (!doctor::is_idleness(wait.kind)) waited += wait.weight * wait.waited_s;
  EXPECT_GT(found.lock_waits[0].seconds, 0.9 * waited) << "at the one lock that is shared";
  // While one thread sleeps the other waits: 0.4 s in all.
  EXPECT_GT(waited, 0.3);
  EXPECT_LT(waited, 0.6);
  EXPECT_NEAR(found.idle_s, 0.2, 0.08);
}
// A futex that is released by those who waited for it is a lock; one that somebody else wakes is not.
TEST_F(Probe, FutexesAndC11_LocksAreToldFromWaitsForWork) {
  const Recording recording = recorded("other_locks");
  std::map<doctor::WaitKind, double> waited;
  for (const auto& wait : recording.waits) waited[wait.kind] += wait.weight * wait.waited_s;
  EXPECT_GT(waited[doctor::WaitKind::kFutexLock], 0.15);
  EXPECT_GT(waited[doctor::WaitKind::kMutex], 0.15);
  EXPECT_GT(waited[doctor::WaitKind::kFutexWait], 0.4) << "the worker's wait";
}
struct Lives {
  unsigned children = 0;
  double waited_s = 0, lived_s = 0;
};
Lives lives_of_children(const std::vector<Recording>& recordings) {
  Lives lives;
  for (const Recording& recording : recordings) {
    if (recording.parent == 0) continue;
    ++lives.children;
    for (const auto& wait : recording.waits)
      lives.waited_s += wait.kind == doctor::WaitKind::kMutex ? wait.weight * wait.waited_s : 0;
    for (const auto& [id, thread] : recording.threads) lives.lived_s += thread.last_s - thread.began_s;
  }
  return lives;
}
// C programs need not allocate before they fork, nor at all.
TEST_F(Probe, ProcessesThatNeverAllocate_WaitsForTheirSharedMutexAreRecorded) {
  const test::Outcome outcome = run("", {}, FREEHOLD_WORKERS);
  ASSERT_TRUE(outcome.ok()) << outcome.describe();
  const Lives lives = lives_of_children(recordings());
  EXPECT_EQ(lives.children, 2U);
  EXPECT_GT(lives.waited_s, 0.2);
  EXPECT_LT(lives.waited_s, 0.8);
  EXPECT_GT(lives.lived_s, 0.3) << "both, for 0.4 s, from their first wait on";
}

TEST_F(Probe, LockResults_AreThoseOfTheLibrary) { static_cast<void>(recorded("lock_results")); }

TEST_F(Probe, Remote_AttributionNamesWhoAllocatesAndWhoFrees) {
  const Recording recording = recorded("remote");
  doctor::Symbols symbols(trace().replace_extension(".maps"));
  const doctor::Attribution found = doctor::attribution_of(recording, symbols);
  EXPECT_GT(found.remote_share, 0.95);
  ASSERT_FALSE(found.remote_sites.empty());
  const auto& row = found.remote_sites[0];
  EXPECT_GT(row.share, 0.95);
  EXPECT_NE(found.sites[row.site].place.text().find("subject.cpp:"), std::string::npos)
      << found.sites[row.site].place.text();
  EXPECT_NE(row.freed_at.text().find("subject.cpp:"), std::string::npos) << row.freed_at.text();
  EXPECT_NE(row.freed_at.text(), found.sites[row.site].place.text());
  EXPECT_TRUE(found.sites[row.site].fixed_size);
  EXPECT_EQ(found.sites[row.site].typical_bytes, 64);
  EXPECT_NEAR(found.sites[row.site].time.calls, kMany, 0.05 * kMany);
  EXPECT_GT(found.cpu_share, 0);
}

// Processes that keep the CPUs busy, four for each.
class Busy {
 public:
  Busy() {
    for (unsigned i = 0; i < 4 * std::max(std::thread::hardware_concurrency(), 1u); ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile unsigned long turns = 0;;) turns = turns + 1;
      }
      children_.push_back(child);
    }
  }
  ~Busy() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  std::vector<pid_t> children_;
};

// The time for which a thread had no CPU during a record is not the probe's: else the program seems to have had none.
TEST_F(Probe, OthersHaveTheCpus_RecordingTakesNoMore) {
  const Busy busy;
  const Recording recording = recorded("remote");
  doctor::Symbols symbols(trace().replace_extension(".maps"));
  const doctor::Attribution found = doctor::attribution_of(recording, symbols);
  EXPECT_LT(found.probe_share, 0.9);
  EXPECT_GT(found.cpu_s, 0);
}

// Samples tell what is live. With one at each doubling of the gap, the last one stood for half of the burst.
TEST_F(Probe, BurstAtTheBeginning_NoSampleStandsForMuchOfIt) {
  const Recording recording = recorded("burst");
  double all = 0, heaviest = 0, kept = 0;
  for (const auto& block : recording.blocks) {
    if (block.bytes != 100) continue;
    all += block.weight;
    heaviest = std::max(heaviest, block.weight);
    if (!block.ended_s) kept += block.weight;
  }
  EXPECT_NEAR(all / 200'000, 1, 0.1);
  EXPECT_LT(heaviest, 0.1 * all);
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 3 * 20'000) << "a deviation is a third";
}

// Large blocks are all recorded. One at the end of a countdown stood for itself and for all the calls before it, too.
TEST_F(Probe, LargeBlocksAmongOthers_EachStandsForItselfOnly) {
  for (const char* const sample : {"calls", "bytes"}) {
    const test::Outcome outcome = run("sizes", {{"FREEHOLD_PROBE_SAMPLE", sample}});
    EXPECT_TRUE(outcome.ok()) << outcome.describe();
  }
  const auto all = recordings();
  ASSERT_EQ(all.size(), 2U);
  for (const Recording& recording : all) {
    unsigned large = 0;
    for (const auto& block : recording.blocks) {
      if (block.bytes != 100'000) continue;
      ++large;
      EXPECT_EQ(block.weight, 1);
    }
    EXPECT_EQ(large, 200U);
  }
}

// With counted calls, a few samples of 4'000 bytes stand for tens of thousands of calls, most of them for 50 bytes.
TEST_F(Probe, BytesAreCounted_NoSampleStandsForManyOfThem) {
  const test::Outcome outcome = run("sizes", {{"FREEHOLD_PROBE_SAMPLE", "bytes"}});
  EXPECT_TRUE(outcome.ok()) << outcome.describe();
  const auto all = recordings();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_LT(all[0].blocks.size(), 20'000U) << "that is no sample";
  std::map<std::uint64_t, double> bytes;
  for (const auto& block : all[0].blocks) {
    const double stands_for = block.weight * static_cast<double>(block.bytes);
    EXPECT_LT(stands_for, 3 << 20);
    bytes[block.bytes] += stands_for;
  }
  EXPECT_NEAR(bytes[50] / 20e6, 1, 0.5) << "a deviation is a seventh or less";
  EXPECT_NEAR(bytes[4'000] / 40e6, 1, 0.5);
  EXPECT_NEAR(bytes[100'000] / 20e6, 1, 1e-9);
}

// As of CPython with PYTHONPERFSUPPORT=1: the stack goes on behind code that has no unwind information, and has its name.
TEST_F(Probe, CodeMadeAtRunTime_StackGoesThroughItWithItsNames) {
  for (const char* const role : {"trampoline", "framed_trampoline"}) {
    const Recording recording = recorded(role);
    doctor::Symbols symbols(fs::path(trace()).replace_extension(".maps"));
    std::string longest;
    for (const auto& block : recording.blocks) {
      std::string stack;
      for (const std::uint64_t address : recording.stacks[block.stack]) {
        const doctor::Frame& frame = symbols.frames(address).back();
        stack += frame.function + (frame.function == "build" ? '@' + frame.module : "") + ';';
      }
      const bool is_it = block.bytes < 200 && stack.find("allocate_through") != std::string::npos;
      if (is_it && stack.size() > longest.size()) longest = stack;
    }
    const std::string pair = "build@/home/me/work.py;";
    const std::size_t first = longest.find(pair), second = longest.find(pair, first + 1), end = longest.find("main;");
    EXPECT_NE(second, std::string::npos) << role << ' ' << longest;
    EXPECT_NE(end, std::string::npos) << role << ' ' << longest;
    EXPECT_LT(second, end);
    // From calls that are deeper than what a record holds, too, each block is there.
    std::map<std::size_t, std::size_t> depths;
    for (const auto& block : recording.blocks)
      if (block.bytes > std::size_t{1} << 17)
        depths[block.bytes - (std::size_t{1} << 17)] = recording.stacks[block.stack].size();
    EXPECT_EQ(depths.size(), 37U) << role;
    EXPECT_EQ(depths[39], doctor::kMaxDepth) << role;
    fs::remove("/tmp/perf-" + std::to_string(recording.pid) + ".map");
    for (const auto& file : fs::directory_iterator(folder_)) fs::remove(file.path());
  }
}

TEST_F(Probe, EveryEntryPoint_KeepsItsPromise) {
  const Recording recording = recorded("entries");
  EXPECT_NEAR(allocations(recording), 9000, 200);
}

TEST_F(Probe, ForkAndExec_ARecordingForEachProcess) {
  const test::Outcome outcome = run("forks");
  ASSERT_TRUE(outcome.ok()) << outcome.describe();
  const auto found = recordings();
  unsigned children = 0, busy = 0;
  for (const Recording& recording : found) {
    children += recording.parent != 0;
    busy += allocations(recording) > 0.02 * kMany;
  }
  EXPECT_EQ(children, 2U) << "the one that worked on, and the one before it became another program";
  EXPECT_EQ(busy, 2U);
  // The child's calls stand in its own recording alone.
  for (const Recording& recording : found) {
    const bool is_parent = std::ranges::any_of(found, [&](const Recording& other) { return other.parent == recording.pid; });
    if (!is_parent) continue;
    EXPECT_EQ(std::ranges::count_if(recording.blocks, [](const auto& block) { return block.bytes == 100; }), 0);
  }
  // From its first one on.
  double first_ones = 0;
  for (const Recording& recording : found)
    if (recording.parent != 0)
      first_ones += static_cast<double>(std::ranges::count(recording.blocks, 70'001U, &BlockSample::bytes));
  EXPECT_EQ(first_ones, 20);
}

// Records of different sizes find no room.
TEST_F(Probe, NoRoom_TheProgramGoesOn) {
  for (const char* const role : {"remote", "neighbours", "apart", "apart", "apart"}) {
    const test::Outcome outcome = run(role, {{"FREEHOLD_PROBE_BYTES", "1"}});
    EXPECT_TRUE(outcome.ok()) << role << ' ' << outcome.describe();
    const auto found = recordings();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_LE(fs::file_size(trace()), 4 * doctor::kExtentBytes);
    for (const auto& file : fs::directory_iterator(folder_)) fs::remove(file.path());
  }
}

TEST_F(Probe, NotARecording_SaysWhy) {
  doctor::NoRecording no;
  EXPECT_FALSE(doctor::read_recording(folder_ / "missing", no));
  EXPECT_NE(no.why.find("cannot be read"), std::string::npos);
  const fs::path text = folder_ / "text";
  std::ofstream(text) << std::string(500, 'x');
  EXPECT_FALSE(doctor::read_recording(text, no));
  EXPECT_NE(no.why.find("not a recording"), std::string::npos);
}

// A program may close descriptors that it did not open, and have another file under the number of the probe's.
TEST_F(Probe, DescriptorIsAnotherFilesNow_ThatIsLeftAloneAndTheRecordingGoesOn) {
  constexpr std::size_t kBlocks = 5'000;
  for (const std::string& folder : {folder_.string(), fs::relative(folder_).string()}) {
    const std::string data = folder_ / "data";
    const test::Outcome outcome =
        run("takes_numbers", {{"FREEHOLD_SUBJECT_FILE", data}, {"FREEHOLD_PROBE_DIRECTORY", folder}});
    EXPECT_TRUE(outcome.ok()) << folder << outcome.describe();
    EXPECT_EQ(fs::file_size(data), 6U) << folder;
    const auto found = recordings();
    std::size_t whole = 0;
    for (const Recording& recording : found) {
      EXPECT_EQ(recording.dropped, 0U) << folder;
      whole += std::ranges::count(recording.blocks, 70'001U, &BlockSample::bytes) == kBlocks ? 1 : 0;
    }
    EXPECT_EQ(whole, 3U) << folder << ": of the program and of two children";
    for (const auto& file : fs::directory_iterator(folder_)) fs::remove(file);
  }
}
TEST_F(Probe, RecordingIsOutOfReach_RecordsAreDroppedAndNoOtherFileIsWritten) {
  const fs::path data = folder_.string() + "-data", moved = folder_.string() + "-moved";
  const test::Outcome outcome = run("loses_recording", {{"FREEHOLD_SUBJECT_FILE", data}});
  EXPECT_TRUE(outcome.ok()) << outcome.describe();
  EXPECT_EQ(fs::file_size(data), 6U);
  EXPECT_EQ(test::content_of(trace()), "other\n");
  doctor::NoRecording no;
  ASSERT_TRUE(fs::is_directory(moved));
  const auto recording = doctor::read_recording(moved / trace().filename(), no);
  ASSERT_TRUE(recording) << no.why;
  EXPECT_GT(recording->dropped, 1'000U);
  fs::remove_all(moved);
  fs::remove(data);
}

// A recording that ends in the middle of anything is read as far as it is whole.
TEST_F(Probe, CutShort_ReadAsFarAsWhole) {
  ASSERT_TRUE(run("counts").ok());
  const fs::path file = trace();
  const auto whole = fs::file_size(file);
  std::size_t last = ~std::size_t{0};
  for (auto bytes = whole; bytes > doctor::kExtentBytes; bytes -= std::min<std::uintmax_t>(bytes, 4999)) {
    fs::resize_file(file, bytes);
    doctor::NoRecording no;
    const auto recording = doctor::read_recording(file, no);
    ASSERT_TRUE(recording);
    EXPECT_LE(recording->blocks.size(), last);
    last = recording->blocks.size();
  }
}

// The size of a record that is damaged says nothing about where the next one begins: the rest of its extent is left out.
TEST_F(Probe, RecordShorterThanItsHeader_IsNotRead) {
  ASSERT_TRUE(run("counts").ok());
  std::string bytes = test::content_of(trace());
  unsigned damaged = 0;
  for (std::size_t at = doctor::kExtentBytes; at + sizeof(doctor::ExtentHeader) <= bytes.size();
       at += doctor::kExtentBytes) {
    doctor::ExtentHeader extent{};
    std::memcpy(&extent, bytes.data() + at, sizeof extent);
    const std::size_t begin = at + sizeof extent, end = begin + extent.used;
    doctor::RecordHeader header{};
    for (std::size_t record = begin; record + sizeof header <= end; record += header.bytes) {
      std::memcpy(&header, bytes.data() + record, sizeof header);
      if (header.kind != doctor::RecordKind::kAllocate) continue;
      ++damaged;
      header.bytes = 4;
      std::memcpy(bytes.data() + record, &header, sizeof header);
      break;
    }
  }
  ASSERT_GT(damaged, 0U);
  const fs::path file = folder_ / "damaged";
  std::ofstream(file, std::ios::binary) << bytes;
  doctor::NoRecording no;
  const auto recording = doctor::read_recording(file, no);
  ASSERT_TRUE(recording) << no.why;
  EXPECT_EQ(recording->blocks.size(), 0U);
}

// A recording of these events in pages that are watched, each by a separate thread.
void write_page_events(const fs::path& file, const std::vector<doctor::PageEvent>& events) {
  std::string bytes(doctor::kExtentBytes * (1 + events.size()), '\0');
  const auto put = [&](std::size_t at, const auto& value) { std::memcpy(bytes.data() + at, &value, sizeof value); };
  put(0, doctor::FileHeader{.magic = doctor::kTraceMagic,
                            .pid = 1,
                            .parent = 0,
                            .begin = {0, 0},
                            .last = {1000, 1000},
                            .cpu_ns = 1000,
                            .extents = 1 + events.size(),
                            .dropped = 0,
                            .empty_call_ticks = 0,
                            .fast_path_picoseconds = 0,
                            .mapped_bytes = 0,
                            .mapping_ticks = 0,
                            .is_by_bytes = 0,
                            .is_whole = 0});
  for (std::size_t i = 0; i < events.size(); ++i) {
    const std::size_t at = doctor::kExtentBytes * (1 + i);
    constexpr std::uint32_t kBytes = sizeof(doctor::RecordHeader) + sizeof(doctor::PageEvent);
    put(at, doctor::ExtentHeader{.thread = static_cast<std::uint32_t>(i + 1), .used = kBytes});
    put(at + sizeof(doctor::ExtentHeader), doctor::RecordHeader{doctor::RecordKind::kPageAllocate, 0, kBytes});
    put(at + sizeof(doctor::ExtentHeader) + sizeof(doctor::RecordHeader), events[i]);
  }
  std::ofstream(file, std::ios::binary) << bytes;
}

// Nothing is known of a page while it was not watched: the blocks on its lines may be gone since.
TEST_F(Probe, NeighboursOfDifferentEpochs_ShareNoLine) {
  const auto shared = [&](std::uint64_t second_epoch) {
    write_page_events(folder_ / "pages", {{.ticks = 100, .block = 0x1000, .size = 16, .epoch = 1},
                                          {.ticks = 200, .block = 0x1010, .size = 16, .epoch = second_epoch}});
    doctor::NoRecording no;
    const auto recording = doctor::read_recording(folder_ / "pages", no);
    EXPECT_TRUE(recording) << no.why;
    return recording ? recording->shared_lines.size() : 99;
  };
  EXPECT_EQ(shared(1), 1U);
  EXPECT_EQ(shared(2), 0U);
}

}  // namespace
}  // namespace freehold
