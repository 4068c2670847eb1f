// SPDX-License-Identifier: MIT
// Shared by the tests of OwnerPages: an upstream that records its pages, and small policies over it.
#pragma once
#include <mutex>

#include "freehold/thread_alloc/owner_pages.hpp"
#include "tests/support/test.hpp"

namespace freehold::thread_alloc::test {

// Hands out pages and remembers which are out. Fails the call number `fail_at` (from 1). A
// returned page is filled with rubbish before it is freed, so that a late read of it shows.
class PageBooks {
 public:
  ~PageBooks() { EXPECT_TRUE(out_.empty()) << out_.size() << " pages were never returned"; }

  void* allocate_page() {
    const std::scoped_lock lock(mutex_);
    ++calls_;
    if (calls_ == fail_at) return nullptr;
    void* const page = std::aligned_alloc(4096, 4096);
    std::memset(page, 0xA5, 4096);
    out_.insert(page);
    return page;
  }
  void free_page(void* page) {
    const std::scoped_lock lock(mutex_);
    if (out_.erase(page) != 1) {
      ADD_FAILURE() << "a page was returned that is not out: " << page;
      return;
    }
    std::memset(page, 0xDD, 4096);
    std::free(page);
  }
  [[nodiscard]] std::size_t out() const {
    const std::scoped_lock lock(mutex_);
    return out_.size();
  }
  [[nodiscard]] std::uint64_t calls() const {
    const std::scoped_lock lock(mutex_);
    return calls_;
  }

  std::uint64_t fail_at = 0;

 private:
  mutable std::mutex mutex_;
  std::set<void*> out_;
  std::uint64_t calls_ = 0;
};

// The upstream is copied into the allocator; the books stay with the test.
struct BookedPages {
  PageBooks* books;
  void* allocate_page() noexcept { return books->allocate_page(); }
  void free_page(void* page) noexcept { books->free_page(page); }
};

template <std::uint32_t kSlots>
struct GatherMutex : OwnerPagesConfig {
  using Upstream = BookedPages;
  static constexpr std::uint32_t kHandOver = kSlots;
};
template <std::uint32_t kSlots>
struct GatherLockFree : GatherMutex<kSlots> {
  template <class A>
  using List = LockFreeList<A>;
};

}  // namespace freehold::thread_alloc::test
