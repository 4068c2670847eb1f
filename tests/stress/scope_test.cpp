// SPDX-License-Identifier: MIT
// Threads in scopes of private heaps: they allocate there, free each other's blocks, and go on while a heap ends. The
// oracle: a block has its user's stamp from its allocation to its free, and nothing is left at the end. The engine is called
// by itself, without malloc's names, so that a sanitizer sees all of it; what threads keep of freed blocks only models see.
#include "freehold/alloc/front/fast_path.hpp"
#include "freehold/heap_scope.hpp"
#include "tests/support/inside.hpp"
#include "tests/support/test.hpp"
#include "tests/support/trace.hpp"

// Belongs to malloc's library, which is not here.
extern "C" const freehold::alloc::ScopeEngine* freehold_scope_engine() noexcept { return &freehold::alloc::kScopeEngine; }

namespace freehold::test {
namespace {

using heap::HeapStats;

constexpr unsigned kThreads = 3;
constexpr std::size_t kPlaces = 64;
std::uint64_t rounds(std::uint64_t n) { return n * number_from_environment("FREEHOLD_TEST_SCALE", 1); }

// A block whose first words say how long it is, and whose last byte says so, too.
struct Stamp {
  std::uint64_t bytes, complement;
};
Stamp* made(std::size_t bytes) {
  auto* const block = static_cast<Stamp*>(alloc::allocate_inline(bytes));
  if (block == nullptr) return nullptr;
  *block = {bytes, ~bytes};
  if (bytes > sizeof(Stamp)) reinterpret_cast<unsigned char*>(block)[bytes - 1] = static_cast<unsigned char>(bytes);
  return block;
}
void end(Stamp* block) {
  if (block == nullptr) return;
  const std::size_t bytes = block->bytes;
  ASSERT_EQ(bytes, ~block->complement);
  if (bytes > sizeof(Stamp)) {
    ASSERT_EQ(reinterpret_cast<unsigned char*>(block)[bytes - 1], static_cast<unsigned char>(bytes));
  }
  *block = {};
  alloc::deallocate_inline(block);
}

// Blocks that any thread puts, and any other one ends.
class Mailbox {
 public:
  void put(std::size_t place, Stamp* block) { end(places_[place % kPlaces].exchange(block, std::memory_order_acq_rel)); }
  void empty() {
    for (std::size_t place = 0; place < kPlaces; ++place) put(place, nullptr);
  }

 private:
  std::atomic<Stamp*> places_[kPlaces]{};
};

struct Sizes {
  std::uint64_t state;
  std::uint64_t next() { return state = state * 6364136223846793005U + 1442695040888963407U; }
  std::size_t bytes() {
    const std::uint64_t random = next() >> 33;
    return random % 64 == 0 ? 16 + random % 50'000 : 16 + random % 1000;
  }
};

void work(Mailbox& mailbox, Sizes& sizes, unsigned blocks) {
  for (unsigned i = 0; i < blocks; ++i) {
    mailbox.put(sizes.next() >> 40, made(sizes.bytes()));
    end(made(sizes.bytes()));
  }
}
unsigned ended_heaps() {
  unsigned n = 0;
  for_each_heap([&n](const HeapStats& stats) { n += stats.has_ended ? 1 : 0; });
  return n;
}

// Scopes of two heaps, one within the other, and of none. A fourth thread looks at the heaps.
TEST(Scopes, ThreadsFreeEachOthersBlocks_NothingIsLost) {
  PrivateHeap heaps[2];
  Mailbox mailbox;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Sizes sizes{t};
      for (std::uint64_t round = 0; round < rounds(400); ++round) {
        const HeapScope outer(heaps[round % 2]);
        work(mailbox, sizes, 10);
        const HeapScope inner(round % 3 == 0 ? nullptr : &heaps[1 - round % 2]);
        work(mailbox, sizes, 5);
      }
    });
  std::atomic<bool> is_over{false};
  std::thread looks([&] {
    while (!is_over.load(std::memory_order_relaxed))
      for (PrivateHeap& heap : heaps) {
        EXPECT_LE(heap.stats().live_objects, 1U << 20);
        (void)heap.trim();
      }
  });
  for (std::thread& thread : threads) thread.join();
  is_over.store(true, std::memory_order_relaxed);
  looks.join();
  mailbox.empty();
  for (PrivateHeap& heap : heaps) {
    EXPECT_EQ(heap.stats().live_objects, 0U);
    EXPECT_EQ(heap.stats().live_bytes, 0U);
    heap::Inside::check_invariants(heap);
  }
}

// Each heap ends while all threads are in a scope of it, and allocate: they get slabs of it at that moment, too.
TEST(Scopes, HeapsEndInOpenScopes_NothingIsLost) {
  Mailbox mailbox;
  std::unique_ptr<PrivateHeap> heap;
  std::atomic<std::uint64_t> begun{0}, entered{0}, left{0};
  const auto reaches = [](const std::atomic<std::uint64_t>& count, std::uint64_t n) {
    while (count.load() < n) std::this_thread::yield();
  };
  const std::uint64_t heaps = rounds(300);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Sizes sizes{t};
      for (std::uint64_t n = 1; n <= heaps; ++n) {
        reaches(begun, n);
        {
          const HeapScope scope(*heap);
          entered.fetch_add(1);
          work(mailbox, sizes, 40);
        }
        left.fetch_add(1);
      }
    });
  for (std::uint64_t n = 1; n <= heaps; ++n) {
    heap = std::make_unique<PrivateHeap>();
    begun.store(n);
    reaches(entered, n * kThreads);
    heap.reset();
    reaches(left, n * kThreads);
  }
  for (std::thread& thread : threads) thread.join();
  mailbox.empty();
  EXPECT_EQ(ended_heaps(), 0U);
}

}  // namespace
}  // namespace freehold::test
