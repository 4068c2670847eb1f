#include "freehold/os/pages.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "freehold/base/bits.hpp"

namespace freehold::os {
namespace {

const std::size_t kPage = page_bytes();

TEST(PageBytes, DivideTheLargestPage) {
  EXPECT_EQ(kLargestPageBytes % page_bytes(), 0U);
  EXPECT_TRUE(base::is_aligned(kLargestPageBytes, 4096));
}

// A range from Pages, released at the end of the test.
class Range {
 public:
  Range(void* start, std::size_t bytes) : start_(static_cast<unsigned char*>(start)), bytes_(bytes) {}
  ~Range() {
    if (start_ != nullptr) Pages::release(start_, bytes_);
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  static Range reserved(std::size_t bytes, std::size_t alignment) { return {Pages::reserve(bytes, alignment), bytes}; }
  static Range mapped(std::size_t bytes) { return {Pages::map(bytes), bytes}; }

  [[nodiscard]] unsigned char* start() const { return start_; }
  [[nodiscard]] unsigned char& operator[](std::size_t i) const { return start_[i]; }
  [[nodiscard]] bool all(unsigned char value, std::size_t from, std::size_t to) const {
    return std::all_of(start_ + from, start_ + to, [=](unsigned char byte) { return byte == value; });
  }

 private:
  unsigned char* start_;
  std::size_t bytes_;
};

// Whether the kernel can read the byte: a write() of it to a pipe fails with EFAULT where a load would fault.
bool readable(const void* address) {
  int ends[2];
  if (::pipe(ends) != 0) return false;
  const bool ok = ::write(ends[1], address, 1) == 1;
  ::close(ends[0]);
  ::close(ends[1]);
  return ok;
}

TEST(Pages, Reserve_AnyAlignment_IsAlignedAndInaccessible) {
  for (std::size_t alignment = kPage; alignment <= std::size_t{1} << 30; alignment *= 4) {
    const Range r = Range::reserved(8 * kPage, alignment);
    ASSERT_NE(r.start(), nullptr);
    EXPECT_TRUE(base::is_aligned(reinterpret_cast<std::uintptr_t>(r.start()), alignment));
    EXPECT_FALSE(readable(r.start()));
  }
}

TEST(Pages, Reserve_TooMuch_ReturnsNull) {
  EXPECT_EQ(Pages::reserve(std::size_t{1} << 60, kPage), nullptr);
  EXPECT_EQ(Pages::reserve(SIZE_MAX - kPage + 1, std::size_t{1} << 30), nullptr) << "the sum overflows";
}

TEST(Pages, Reserve_LeavesNothingAround) {  // what was trimmed off can be mapped by others
  const Range r = Range::reserved(4 * kPage, std::size_t{1} << 26);
  EXPECT_TRUE(Pages::reserve_at(r.start() - kPage, kPage));
  EXPECT_TRUE(Pages::reserve_at(r.start() + 4 * kPage, kPage));
  Pages::release(r.start() - kPage, kPage);
  Pages::release(r.start() + 4 * kPage, kPage);
}

TEST(Pages, ReserveAt_Occupied_FailsAndReplacesNothing) {
  const Range r = Range::mapped(4 * kPage);
  std::memset(r.start(), 7, 4 * kPage);
  EXPECT_FALSE(Pages::reserve_at(r.start() + kPage, kPage));
  EXPECT_FALSE(Pages::reserve_at(r.start() - kPage, 2 * kPage)) << "only its end is occupied";
  EXPECT_TRUE(r.all(7, 0, 4 * kPage));
}

TEST(Pages, ReserveAt_Free_IsInaccessibleUntilCommitted) {
  void* place = nullptr;
  {
    place = Range::reserved(4 * kPage, kPage).start();
  }  // free again
  ASSERT_TRUE(Pages::reserve_at(place, 4 * kPage));
  const Range r(place, 4 * kPage);
  EXPECT_FALSE(readable(r.start()));
  EXPECT_TRUE(Pages::commit(r.start() + kPage, 2 * kPage));
  EXPECT_FALSE(readable(r.start()));
  EXPECT_FALSE(readable(r.start() + 3 * kPage));
  EXPECT_TRUE(r.all(0, kPage, 3 * kPage));
}

TEST(Pages, Commit_Twice_KeepsTheContent) {
  const Range r = Range::reserved(4 * kPage, kPage);
  ASSERT_TRUE(Pages::commit(r.start(), 2 * kPage));
  std::memset(r.start(), 5, 2 * kPage);
  ASSERT_TRUE(Pages::commit(r.start(), 4 * kPage));
  EXPECT_TRUE(r.all(5, 0, 2 * kPage));
  EXPECT_TRUE(r.all(0, 2 * kPage, 4 * kPage));
}

TEST(Pages, Commit_NothingThere_Fails) {
  void* place = nullptr;
  {
    place = Range::reserved(4 * kPage, kPage).start();
  }
  EXPECT_FALSE(Pages::commit(place, 4 * kPage));
}

TEST(Pages, Purge_ReadsZero_NeighboursKeepTheirContent) {
  const Range r = Range::mapped(4 * kPage);
  std::memset(r.start(), 9, 4 * kPage);
  EXPECT_TRUE(Pages::purge(r.start() + kPage, 2 * kPage));
  unsigned char resident[4] = {};
  ASSERT_EQ(::mincore(r.start(), 4 * kPage, resident), 0);
  EXPECT_EQ(resident[2] & 1, 0) << "the page went back to the system";
  EXPECT_TRUE(r.all(9, 0, kPage));
  EXPECT_TRUE(r.all(0, kPage, 3 * kPage));
  EXPECT_TRUE(r.all(9, 3 * kPage, 4 * kPage));
  r[kPage] = 1;  // committed still
}

TEST(Pages, Map_TooMuch_ReturnsNull) { EXPECT_EQ(Pages::map(std::size_t{1} << 60), nullptr); }

TEST(Pages, Move_Content_ArrivesAndBothRangesStayOurs) {
  for (const std::size_t pages : {1, 16, 64, 1024}) {
    const Range r = Range::mapped(2 * pages * kPage);
    for (std::size_t i = 0; i < pages; ++i) std::memset(r.start() + i * kPage, static_cast<int>(i % 251 + 1), kPage);
    if (!Pages::move(r.start(), r.start() + pages * kPage, pages * kPage)) GTEST_SKIP() << "the kernel cannot";
    for (std::size_t i = 0; i < pages; ++i)
      ASSERT_TRUE(r.all(static_cast<unsigned char>(i % 251 + 1), (pages + i) * kPage, (pages + i + 1) * kPage));
    std::memset(r.start(), 3, 2 * pages * kPage);
    EXPECT_FALSE(Pages::reserve_at(r.start(), kPage)) << "the old place may not be free for others";
  }
}

// What realloc does again and again: a block is moved, grows behind what was moved, and is moved again. Its range lies in
// several mappings then, wherever the boundaries are.
TEST(Pages, Move_RangeOfSeveralMappings_ArrivesWhole) {
  constexpr std::size_t kSlots = 6;
  for (const std::size_t first : {1, 3, 15, 16, 17, 64, 100, 255}) {
    const std::size_t pages = 256;
    const Range r = Range::mapped(kSlots * pages * kPage);
    unsigned char* block = r.start();
    std::size_t length = first;
    std::memset(block, 11, length * kPage);
    for (std::size_t place = 1; place < kSlots; ++place) {
      unsigned char* const next = r.start() + place * pages * kPage;
      if (!Pages::move(block, next, length * kPage)) GTEST_SKIP() << "the kernel cannot";
      const std::size_t longer = std::min(pages, length + 1 + place * 7);
      std::memset(next + length * kPage, 11, (longer - length) * kPage);
      block = next;
      length = longer;
      ASSERT_TRUE(r.all(11, place * pages * kPage, (place * pages + length) * kPage)) << first << " pages, move " << place;
    }
    std::memset(r.start(), 1, kSlots * pages * kPage);  // no hole anywhere
  }
}

TEST(AddressSpaceLimit, Unlimited_IsTheLargestSize) {
  rlimit as{}, data{};
  ::getrlimit(RLIMIT_AS, &as);
  ::getrlimit(RLIMIT_DATA, &data);
  if (as.rlim_cur != RLIM_INFINITY || data.rlim_cur != RLIM_INFINITY) GTEST_SKIP() << "this shell is limited";
  EXPECT_EQ(address_space_limit(), SIZE_MAX);
}

// In a child, since limits stay.
TEST(AddressSpaceLimit, TheSmallerLimit_Decides) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    rlimit as{}, data{};
    ::getrlimit(RLIMIT_AS, &as);
    ::getrlimit(RLIMIT_DATA, &data);
    as.rlim_cur = std::size_t{1} << 45;
    data.rlim_cur = std::size_t{1} << 44;
    if (::setrlimit(RLIMIT_AS, &as) != 0 || ::setrlimit(RLIMIT_DATA, &data) != 0) ::_exit(2);
    if (address_space_limit() != std::size_t{1} << 44) ::_exit(1);
    as.rlim_cur = std::size_t{1} << 43;
    if (::setrlimit(RLIMIT_AS, &as) != 0) ::_exit(2);
    ::_exit(address_space_limit() == std::size_t{1} << 43 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) GTEST_SKIP() << "limits cannot be set here";
  EXPECT_EQ(status, 0);
}

TEST(PhysicalMemory, IsPlausible) {
  EXPECT_GE(physical_memory_bytes(), std::size_t{16} << 20);
  EXPECT_TRUE(base::is_aligned(physical_memory_bytes(), kPage));
}

}  // namespace
}  // namespace freehold::os
