// SPDX-License-Identifier: MIT
// OwnerPagesHeap as a process sees it: sizes, reallocation, large blocks beside pages, threads that come and go, fork.
#include "freehold/thread_alloc/owner_pages_heap.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test.hpp"

namespace freehold::thread_alloc {
namespace {

// Each test instantiates another heap: a heap is one per policy and process.
template <class Heap>
OwnerPagesStats stats_of() {
  OwnerPagesStats out;
  Heap::stats(out);
  return out;
}

void in_a_thread(const std::function<void()>& work) { std::thread(work).join(); }

template <class Policy>
class OwnerPagesHeapTest : public testing::Test {};
using Policies = testing::Types<MutexPages<SystemUpstream>, LockFreePages<>>;
TYPED_TEST_SUITE(OwnerPagesHeapTest, Policies);

// An upstream whose large blocks look as much like pages of slots as they can: page-aligned and filled with a page's head.
struct Impostors {
  static inline std::atomic<int> large = 0;
  static inline const void* model = nullptr;
  static inline std::size_t offset = 0;  // offset of a block in its page
  static void* allocate_page() { return std::aligned_alloc(4096, 4096); }
  static void free_page(void* page) { std::free(page); }
  static void* allocate(std::size_t) {
    ++large;
    auto* const memory = static_cast<char*>(std::aligned_alloc(4096, 8192));
    if (model != nullptr) std::memcpy(memory, model, 4096);
    return memory + offset;
  }
  static void* allocate_aligned(std::size_t, std::size_t bytes) { return allocate(bytes); }
  static void* reallocate(void* block, std::size_t) { return block; }
  static void deallocate(void* block) {
    if (block == nullptr) return;
    --large;
    std::free(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(block) & ~std::uintptr_t{4095}));
  }
  static std::size_t usable_size(void*) { return 4096; }
};

TEST(OwnerPagesHeap, LargeBlockWithAForgedPageHead_GoesToTheUpstream) {
  using Heap = OwnerPagesHeap<MutexPages<Impostors>>;
  void* const slot = Heap::allocate(128);
  Impostors::model = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(slot) & ~std::uintptr_t{4095});
  const std::uint64_t pages = stats_of<Heap>().pages;
  for (const std::size_t offset : {0, 16, 64, 192}) {
    Impostors::offset = offset;
    void* const block = Heap::allocate(1000);
    EXPECT_EQ(Heap::usable_size(block), 4096U);
    EXPECT_EQ(Heap::reallocate(block, 2000), block);
    EXPECT_EQ(Impostors::large, 1);
    Heap::deallocate(block);
    EXPECT_EQ(Impostors::large, 0);
  }
  EXPECT_EQ(stats_of<Heap>().pages, pages);
  Heap::deallocate(slot);
}

// Destructors of a thread that run after the heap's own: pthread keys are destroyed in the order of their making, and every
// key set anew by a destructor gets another round.
TYPED_TEST(OwnerPagesHeapTest, DestructorsLaterThanOurs_AllocateAndFree) {
  struct Policy : TypeParam {};
  using Heap = OwnerPagesHeap<Policy>;
  static std::atomic<int> ran;
  static pthread_key_t key;
  static std::vector<void*> left_behind;
  ran = 0;
  left_behind.clear();
  Heap::deallocate(Heap::allocate(1));  // the heap's key comes first
  const auto destructor = [](void* block) {
    std::memset(block, 0x5A, 100);
    Heap::deallocate(block);
    void* const late = Heap::allocate(100);
    std::memset(late, 0x33, 100);
    left_behind.push_back(Heap::allocate(100));
    if (++ran % 3 != 0)
      pthread_setspecific(key, late);
    else
      Heap::deallocate(late);
  };
  ASSERT_EQ(pthread_key_create(&key, destructor), 0);
  for (int i = 0; i < 5; ++i) in_a_thread([] { pthread_setspecific(key, Heap::allocate(100)); });
  EXPECT_EQ(ran, 15);
  pthread_key_delete(key);
  for (void* block : left_behind) Heap::deallocate(block);
  Heap::trim();
  const OwnerPagesStats stats = stats_of<Heap>();
  EXPECT_EQ(stats.owners_left, 0U);
  EXPECT_EQ(stats.owners, 2U) << "this thread's and the late owner";
  EXPECT_LE(stats.pages, 2U) << "the late owner's";
}

// Has every other thread that begins to use the heap fail to join it, for want of the key that makes it leave. False: this C
// library does not give the lowest free key.
template <class Heap>
bool take_key_away() {
  pthread_key_t key = 0;
  if (pthread_key_create(&key, nullptr) != 0 || pthread_key_delete(key) != 0) return false;
  Heap::deallocate(Heap::allocate(16));  // makes its key, which is this one then
  return pthread_getspecific(key) != nullptr && pthread_key_delete(key) == 0;
}
TYPED_TEST(OwnerPagesHeapTest, ThreadCannotJoin_LeavesNoDescriptorBehind) {
  struct Policy : TypeParam {};
  using Heap = OwnerPagesHeap<Policy>;
  TypeParam::Upstream::deallocate(TypeParam::Upstream::allocate(16));  // which may need a key as well
  if (!take_key_away<Heap>()) GTEST_SKIP() << "the heap's key is not known";
  std::uint64_t descriptors = 0;
  for (int thread = 0; thread < 4; ++thread) {
    in_a_thread([] {
      for (int i = 0; i < 200; ++i) {
        void* const block = Heap::allocate(40);
        ASSERT_NE(block, nullptr);
        std::memset(block, i, 40);
        Heap::deallocate(block);
      }
    });
    if (thread == 0) descriptors = stats_of<Heap>().descriptors;
  }
  EXPECT_EQ(stats_of<Heap>().descriptors, descriptors);
  EXPECT_LE(descriptors, 64U);
  EXPECT_EQ(stats_of<Heap>().owners, 2U) << "this thread's and the late owner";
}

// As many holds of the locks as there can be.
template <class Policy>
struct AtOnce : Policy {
  static constexpr std::uint32_t kHandOver = 1;
};

// A child of fork has one thread, and every lock in its hands.
TYPED_TEST(OwnerPagesHeapTest, ForkWhileOthersFreeAcrossThreads_ChildAllocates) {
  using Heap = OwnerPagesHeap<AtOnce<TypeParam>>;
  std::atomic<bool> stop = false;
  std::atomic<void*> box = nullptr;
  std::thread producer([&] {
    while (!stop) Heap::deallocate(box.exchange(Heap::allocate(64)));
  });
  std::thread consumer([&] {
    while (!stop) Heap::deallocate(box.exchange(nullptr));
  });
  for (int i = 0; i < 30; ++i) {
    void* const mine = Heap::allocate(64);
    const auto use_heap = [&] {
      Heap::deallocate(mine);
      Heap::deallocate(box.exchange(nullptr));  // the block of a thread that the child does not have
      for (int n = 0; n < 1000; ++n) Heap::deallocate(Heap::allocate(n % 300));
      std::atomic<bool> ok = false;
      std::thread([&] { ok = Heap::allocate(10) != nullptr; }).join();
      return ok ? 0 : 1;
    };
    EXPECT_EQ(freehold::test::run_in_child(use_heap), 0);
    Heap::deallocate(mine);
  }
  stop = true;
  producer.join();
  consumer.join();
  Heap::deallocate(box);
}

}  // namespace
}  // namespace freehold::thread_alloc
