// SPDX-License-Identifier: MIT
// OwnerPages with real threads: blocks with checked contents are freed by any thread, while threads start and end.
// The oracles: every byte of a block is as its maker left it when it is freed; at the end the upstream has every page back.
#include "freehold/thread_alloc/owner_pages.hpp"
#include "freehold/thread_alloc/owner_pages_heap.hpp"
#include "tests/support/emulated.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/thread_alloc/support.hpp"

namespace freehold::thread_alloc::test {
namespace {

// A block carries its size and a stamp that depends on both its address and its maker.
struct Block {
  std::uint32_t bytes;
  std::uint32_t stamp;
  [[nodiscard]] unsigned char* payload() { return reinterpret_cast<unsigned char*>(this + 1); }
};

template <class Config>
class OwnerPagesStress : public testing::Test {
 public:
  using Pages = OwnerPages<sync::NativeAtomics, Config>;
  using Owner = typename Pages::Owner;
  static constexpr std::size_t kBoxes = 256;

  Block* make(Owner& owner, std::mt19937& random) {
    const std::uint32_t bytes = sizeof(Block) + random() % (Pages::kMaxBytes - sizeof(Block) + 1);
    auto* const block = static_cast<Block*>(pages_.allocate(owner, bytes));
    if (block == nullptr) return nullptr;
    block->bytes = bytes;
    block->stamp =
        static_cast<std::uint32_t>(random()) ^ static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(block));
    std::memset(block->payload(), static_cast<int>(block->stamp & 0xFF), bytes - sizeof(Block));
    return block;
  }
  void destroy(Owner* owner, Block* block) {
    if (block == nullptr) return;
    for (std::size_t i = 0; i < block->bytes - sizeof(Block); ++i)
      if (block->payload()[i] != static_cast<unsigned char>(block->stamp)) ++damaged_;
    std::memset(static_cast<void*>(block), 0xEE, block->bytes);
    pages_.deallocate(owner, block);
  }
  // Puts a block into a random box and frees what was in it: half of all frees are another thread's.
  void work(Owner& owner, std::mt19937& random, int steps) {
    for (int i = 0; i < steps; ++i) {
      destroy(random() % 64 == 0 ? nullptr : &owner, boxes_[random() % kBoxes].exchange(make(owner, random)));
      if (random() % 3 == 0) destroy(&owner, make(owner, random));
      if (random() % 4096 == 0) pages_.trim(owner);
    }
  }
  void finish() {
    for (auto& box : boxes_) destroy(nullptr, box.exchange(nullptr));
    OwnerPagesStats stats;
    pages_.stats(stats);
    EXPECT_EQ(damaged_, 0U);
    EXPECT_EQ(stats.pages, 0U);
    EXPECT_EQ(stats.pending + stats.gathered, 0U);
    EXPECT_EQ(stats.owners + stats.owners_left, 0U);
    EXPECT_GT(stats.remote_frees, 0U);
    pages_.release_descriptors();
  }

  PageBooks books_;
  Pages pages_{BookedPages{&books_}};
  std::array<std::atomic<Block*>, kBoxes> boxes_{};
  std::atomic<std::uint64_t> damaged_ = 0;
};

using Policies = testing::Types<GatherMutex<1>, GatherMutex<100>, GatherLockFree<1>, GatherLockFree<100>>;
TYPED_TEST_SUITE(OwnerPagesStress, Policies);

TYPED_TEST(OwnerPagesStress, FourThreadsExchangeBlocks_NothingDamagedNothingLost) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      std::mt19937 random(t);
      auto& owner = *this->pages_.join();
      this->work(owner, random, 200000);
      EXPECT_TRUE(this->pages_.check_invariants(owner));
      this->pages_.leave(owner);
    });
  }
  for (auto& thread : threads) thread.join();
  this->finish();
}

TYPED_TEST(OwnerPagesStress, ThreadsComeAndGoWithLiveBlocks_DescriptorsAndPagesAreReused) {
  std::vector<std::thread> starters;
  for (unsigned t = 0; t < 4; ++t) {
    starters.emplace_back([this, t] {
      for (unsigned i = 0; i < 150; ++i) {
        std::thread([this, t, i] {
          std::mt19937 random(t * 1000 + i);
          auto& owner = *this->pages_.join();
          this->work(owner, random, 100);
          this->pages_.leave(owner);
        }).join();
      }
    });
  }
  for (auto& starter : starters) starter.join();
  OwnerPagesStats stats;
  this->pages_.stats(stats);
  // A page is left behind for at most one block of each box; an owner for at most one page.
  EXPECT_LE(stats.pages, TestFixture::kBoxes);
  EXPECT_LE(stats.owners_left, TestFixture::kBoxes);
  this->finish();
}

// The process's allocator over the engine: threads whose only trace is a block for the next one to free.
template <class Policy>
void ten_thousand_short_threads() {
  using Heap = OwnerPagesHeap<Policy>;
  std::array<std::atomic<void*>, 8> carried{};
  const unsigned threads = freehold::test::emulated() ? 250 : 2500;  // threads of each starter
  const auto swap_in = [&](unsigned i, void* block) { Heap::deallocate(carried[i % carried.size()].exchange(block)); };
  std::vector<std::thread> starters;
  for (unsigned t = 0; t < 4; ++t) {
    starters.emplace_back([&, t] {
      for (unsigned i = 0; i < threads; ++i) std::thread([&] { swap_in(i + t, Heap::allocate(16 + i % 200)); }).join();
    });
  }
  for (auto& starter : starters) starter.join();
  OwnerPagesStats stats;
  Heap::stats(stats);
  EXPECT_LE(stats.pages, carried.size()) << "a page for each block that is left";
  EXPECT_LE(stats.descriptors, 40U);
  for (unsigned i = 0; i < carried.size(); ++i) swap_in(i, nullptr);
  Heap::trim();
  Heap::stats(stats);
  EXPECT_EQ(stats.pages + stats.owners_left, 0U);
}
TEST(OwnerPagesHeapStress, TenThousandShortThreads_HoldWhatIsLive) {
  ten_thousand_short_threads<MutexPages<>>();
  ten_thousand_short_threads<LockFreePages<>>();
}

}  // namespace
}  // namespace freehold::thread_alloc::test
