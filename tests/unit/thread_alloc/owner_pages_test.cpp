// SPDX-License-Identifier: MIT
// OwnerPages in one thread: a test plays several owners by turns, so that every step of a remote free is deterministic.
#include "freehold/thread_alloc/owner_pages.hpp"
#include "tests/support/heap_errors.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/thread_alloc/support.hpp"

namespace freehold::thread_alloc::test {
namespace {

template <class Config>
class OwnerPagesTest : public testing::Test {
 public:
  using Pages = OwnerPages<sync::NativeAtomics, Config>;
  using Owner = typename Pages::Owner;
  static constexpr std::uint32_t kGather = Config::kHandOver;

  ~OwnerPagesTest() override { pages_.release_descriptors(); }

  Owner& join() {
    Owner* const owner = pages_.join();
    EXPECT_NE(owner, nullptr);
    return *owner;
  }
  OwnerPagesStats stats() {
    OwnerPagesStats out;
    pages_.stats(out);
    return out;
  }
  std::vector<void*> allocate(Owner& owner, std::size_t count, std::size_t bytes) {
    std::vector<void*> slots;
    for (std::size_t i = 0; i < count; ++i) {
      void* const slot = pages_.allocate(owner, bytes);
      EXPECT_NE(slot, nullptr);
      std::memset(slot, static_cast<int>(i), bytes);
      slots.push_back(slot);
    }
    return slots;
  }

  PageBooks books_;
  Pages pages_{BookedPages{&books_}};
};

using Policies = testing::Types<GatherMutex<1>, GatherMutex<100>, GatherLockFree<5>>;
TYPED_TEST_SUITE(OwnerPagesTest, Policies);

TYPED_TEST(OwnerPagesTest, UpstreamFailsAtCallK_NullWithEnomemAndNothingLost) {
  for (std::uint64_t k = 1; k <= 12; ++k) {
    PageBooks books;
    books.fail_at = k;
    typename TestFixture::Pages pages{BookedPages{&books}};
    int failures = 0;
    auto* owner = pages.join();
    if (owner == nullptr) {
      EXPECT_EQ(errno, ENOMEM);
      ++failures;
      owner = pages.join();
    }
    ASSERT_NE(owner, nullptr);
    std::vector<void*> slots;
    while (slots.size() < 300) {
      errno = 0;
      void* const slot = pages.allocate(*owner, 128);
      if (slot == nullptr) {
        EXPECT_EQ(errno, ENOMEM);
        ++failures;
        continue;
      }
      slots.push_back(slot);
    }
    EXPECT_EQ(failures, k <= books.calls() ? 1 : 0) << k;
    EXPECT_TRUE(pages.check_invariants(*owner));
    EXPECT_EQ(std::set<void*>(slots.begin(), slots.end()).size(), slots.size());
    for (void* slot : slots) pages.deallocate(owner, slot);
    pages.leave(*owner);
    pages.release_descriptors();
    EXPECT_EQ(books.out(), 0U) << k;
  }
}

TYPED_TEST(OwnerPagesTest, DoubleFreeSeenForNothing_IsFatalAndDropped) {
  const freehold::test::HeapErrors errors;
  auto& owner = this->join();
  const std::vector<void*> slots = this->allocate(owner, 3, 16);
  this->pages_.deallocate(&owner, slots[0]);
  this->pages_.deallocate(&owner, slots[1]);
  errors.expect_none();
  this->pages_.deallocate(&owner, slots[1]);  // the slot freed last
  errors.expect(base::HeapError::kDoubleFree, slots[1]);
  EXPECT_TRUE(this->pages_.check_invariants(owner));
  this->pages_.deallocate(&owner, slots[2]);
  errors.expect_none();
  this->pages_.deallocate(&owner, slots[0]);  // into an empty page
  errors.expect(base::HeapError::kDoubleFree, slots[0]);
  EXPECT_TRUE(this->pages_.check_invariants(owner));
  this->pages_.leave(owner);
}

// Another table of classes, one of them with a single slot a page.
struct OddClasses : GatherMutex<3> {
  static constexpr std::array<std::uint16_t, 3> kSlotBytes{16, 400, 2064};
};

TEST(OwnerPages, OwnTableOfClasses_ServesIt) {
  PageBooks books;
  OwnerPages<sync::NativeAtomics, OddClasses> pages{BookedPages{&books}};
  static_assert(decltype(pages)::kMaxBytes == 2064);
  auto& owner = *pages.join();
  std::vector<void*> slots;
  for (const std::size_t bytes : {1, 17, 399, 401, 2064, 2064, 2000}) {
    slots.push_back(pages.allocate(owner, bytes));
    EXPECT_EQ(pages.usable_size(slots.back()), bytes <= 16 ? 16U : bytes <= 400 ? 400U : 2064U);
  }
  EXPECT_EQ(books.out(), 1U + 1 + 1 + 4);
  EXPECT_TRUE(pages.check_invariants(owner));
  for (void* slot : slots) pages.deallocate(&owner, slot);
  EXPECT_TRUE(pages.check_invariants(owner));
  EXPECT_EQ(books.out(), 1U + 1 + 1 + 2);
  pages.leave(owner);
  pages.release_descriptors();
}

}  // namespace
}  // namespace freehold::thread_alloc::test
