// SPDX-License-Identifier: MIT
// Checked mode over a source of a few slots: what is reported of which misuse, and that right use is not.
#include "freehold/check/checked_blocks.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/check/tiny_source.hpp"

namespace freehold::check {
namespace {

using base::HeapError;

class CheckedBlocksTest : public testing::Test {
 protected:
  static constexpr unsigned kSlots = 64;
  using Source = TinySource<kSlots>;
  using Blocks = CheckedBlocks<sync::NativeAtomics, Source>;

  CheckedBlocksTest() {
    base::set_fatal_handler([](HeapError error, const void* address) { seen().emplace_back(error, address); });
    begin(usual());
  }
  ~CheckedBlocksTest() override {
    base::set_fatal_handler(nullptr);
    seen().clear();
  }
  static Settings usual() {
    Settings settings;
    settings.quarantine = 64 * 1024;
    return settings;
  }
  void begin(const Settings& settings) {
    *source = {};
    memory.assign(Blocks::memory_bytes(settings) + 64, 0);
    void* at = memory.data();
    std::size_t room = memory.size();
    blocks.init(*source, settings, std::align(64, Blocks::memory_bytes(settings), at, room), 42);
  }

  using Seen = std::vector<std::pair<HeapError, const void*>>;
  static Seen& seen() {
    static Seen all;
    return all;
  }
  // The reports since the last call.
  static std::vector<HeapError> errors() {
    std::vector<HeapError> out;
    for (const auto& [error, address] : std::exchange(seen(), {})) out.push_back(error);
    return out;
  }
  using Errors = std::vector<HeapError>;

  char* allocate(std::size_t bytes, Family family = Family::kMalloc, std::size_t alignment = 0) {
    return static_cast<char*>(blocks.allocate({bytes, alignment, family}, false, 0));
  }
  void release(void* p, const Claim& claim = {}) { blocks.deallocate(p, claim, 0); }

  std::unique_ptr<Source> source = std::make_unique<Source>();
  std::vector<char> memory;
  Blocks blocks;
};

// Blocks that ended threads left make room for those that free now.
TEST_F(CheckedBlocksTest, QuarantineOfAThreadThatEnded_DoesNotStayFull) {
  Settings settings = usual();
  settings.quarantine = 20 * 256;
  begin(settings);
  std::vector<char*> theirs;
  for (int i = 0; i < 20; ++i) theirs.push_back(allocate(100));
  std::thread([&] {
    for (char* const p : theirs) release(p);
  }).join();
  std::vector<char*> mine;
  for (int i = 0; i < 10; ++i) mine.push_back(allocate(100));
  for (char* const p : mine) release(p);
  // Blocks that a program gets now were theirs, the first ones first; mine are still in the quarantine.
  for (int i = 0; i < 10; ++i) EXPECT_EQ(std::count(mine.begin(), mine.end(), allocate(100)), 0) << i;
}

TEST_F(CheckedBlocksTest, Exhausted_TheQuarantineIsGivenUpFirst) {
  std::vector<char*> all;
  while (char* const p = allocate(100)) all.push_back(p);
  EXPECT_EQ(all.size(), kSlots);
  for (char* const p : all) release(p);
  for (unsigned i = 0; i < kSlots; ++i) EXPECT_NE(allocate(100), nullptr) << i;
  EXPECT_EQ(allocate(100), nullptr);
  EXPECT_EQ(errors(), Errors{});
}

// Blocks that are allocated one after the other lie so, and are found by the processor before they are read.
TEST_F(CheckedBlocksTest, UsualSettings_NeighboursInTimeLieSideBySide) {
  unsigned neighbours = 0;
  const char* last = allocate(100);
  for (unsigned i = 1; i < kSlots; ++i) {
    const char* const p = allocate(100);
    neighbours += static_cast<std::size_t>(std::abs(p - last)) == Source::slot_bytes(1) ? 1 : 0;
    last = p;
  }
  EXPECT_GE(neighbours, kSlots * 3 / 4);
}

// A program that copies memory around a block does not make a block of it.
TEST_F(CheckedBlocksTest, CopyOfAHeader_IsNone) {
  char* const p = allocate(100);
  char* const q = allocate(100);
  std::memcpy(q - sizeof(Blocks::BlockHeader), p - sizeof(Blocks::BlockHeader), sizeof(Blocks::BlockHeader) + 100);
  release(q);
  EXPECT_EQ(errors(), Errors{HeapError::kWriteBefore});
}

}  // namespace
}  // namespace freehold::check
