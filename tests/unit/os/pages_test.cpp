// SPDX-License-Identifier: MIT
#include "freehold/os/pages.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "freehold/base/bits.hpp"
#include "tests/support/child.hpp"
#include "tests/support/emulated.hpp"
#include "tests/support/test.hpp"

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

// Returns whether the kernel can read the byte: a write() of it to a pipe fails with EFAULT where a load would fault.
bool readable(const void* address) {
  int ends[2];
  if (::pipe(ends) != 0) return false;
  const bool ok = ::write(ends[1], address, 1) == 1;
  ::close(ends[0]);
  ::close(ends[1]);
  return ok;
}

// ---- at a place -------------------------------------------------------------------------------------------------------

TEST(Pages, MapAt_Free_IsCommittedAndZero) {
  void* place = nullptr;
  {
    place = Range::reserved(4 * kPage, kPage).start();
  }  // free again
  ASSERT_TRUE(Pages::map_at(place, 4 * kPage));
  const Range r(place, 4 * kPage);
  EXPECT_TRUE(r.all(0, 0, 4 * kPage));
  std::memset(r.start(), 1, 4 * kPage);
}

TEST(Pages, GuardAt_NoAccessAndNothingElseThere) {
  void* place = nullptr;
  {
    place = Range::reserved(4 * kPage, kPage).start();
  }  // free again
  ASSERT_TRUE(Pages::guard_at(place, kPage));
  const Range r(place, kPage);
  EXPECT_FALSE(Pages::map_at(place, kPage));
  EXPECT_FALSE(Pages::guard_at(place, kPage)) << "something is there";
  EXPECT_FALSE(readable(place));
}

TEST(Pages, MapAt_Occupied_FailsAndReplacesNothing) {
  const Range r = Range::mapped(4 * kPage);
  std::memset(r.start(), 7, 4 * kPage);
  for (const std::ptrdiff_t from : {-1, 0, 1, 3}) {
    errno = 0;
    EXPECT_FALSE(Pages::map_at(r.start() + from * static_cast<std::ptrdiff_t>(kPage), 2 * kPage)) << from;
    EXPECT_EQ(errno, EEXIST) << "so that the caller looks elsewhere";
  }
  EXPECT_TRUE(r.all(7, 0, 4 * kPage));
}

TEST(Pages, MapAt_ReservedBySomebody_Fails) {
  const Range r = Range::reserved(4 * kPage, kPage);
  EXPECT_FALSE(Pages::map_at(r.start() + kPage, kPage));
  EXPECT_FALSE(readable(r.start() + kPage));
}

TEST(Pages, Place_EveryAttempt_IsAlignedAndUsable) {
  const std::size_t bytes = std::size_t{1} << 33, alignment = std::size_t{1} << 30;
  std::set<void*> places;
  unsigned usable = 0, attempt = 0;
  for (; attempt < 100; ++attempt) {
    char* const place = static_cast<char*>(Pages::place(attempt, bytes, alignment));
    if (place == nullptr) break;
    EXPECT_TRUE(base::is_aligned(reinterpret_cast<std::uintptr_t>(place), alignment));
    places.insert(place);
    if (!Pages::map_at(place, kPage)) continue;  // taken, or beyond this machine's address space
    EXPECT_TRUE(Pages::map_at(place + bytes - kPage, kPage)) << "to its end";
    place[0] = place[bytes - 1] = 1;
    Pages::release(place, kPage);
    Pages::release(place + bytes - kPage, kPage);
    ++usable;
  }
  EXPECT_GE(attempt, 4U);
  EXPECT_LT(attempt, 100U) << "somewhere it ends";
  EXPECT_GE(usable, 2U);
  EXPECT_GE(places.size(), 4U) << "another place for each attempt";
}

// ---- commit, purge, unmap ---------------------------------------------------------------------------------------------

bool is_resident(void* page) {
  unsigned char resident = 0;
  return ::mincore(page, 1, &resident) == 0 && (resident & 1) != 0;
}

TEST(Pages, Purge_ReadsZero_NeighboursKeepTheirContent) {
  const Range r = Range::mapped(4 * kPage);
  std::memset(r.start(), 9, 4 * kPage);
  EXPECT_TRUE(Pages::purge(r.start() + kPage, 2 * kPage));
  EXPECT_TRUE(is_resident(r.start() + 3 * kPage));
  EXPECT_FALSE(is_resident(r.start() + 2 * kPage)) << "the page went back to the system";
  EXPECT_TRUE(r.all(9, 0, kPage));
  EXPECT_TRUE(r.all(0, kPage, 3 * kPage));
  EXPECT_TRUE(r.all(9, 3 * kPage, 4 * kPage));
  r[kPage] = 1;  // committed still
}

// ---- remap and move_out -----------------------------------------------------------------------------------------------

TEST(Pages, MoveOut_Content_ArrivesAndTheOldRangeStaysOurs) {
  for (const std::size_t pages : {1, 16, 64, 1024})
    for (const std::size_t more : {std::size_t{0}, std::size_t{1}, pages}) {
      const Range r = Range::mapped((pages + 2) * kPage);
      std::memset(r.start(), 77, (pages + 2) * kPage);
      for (std::size_t i = 1; i <= pages; ++i) std::memset(r.start() + i * kPage, static_cast<int>(i % 70 + 1), kPage);
      void* const out = Pages::move_out(r.start() + kPage, pages * kPage, (pages + more) * kPage);
      if (out == nullptr) GTEST_SKIP() << "the kernel cannot";
      const Range moved(out, (pages + more) * kPage);
      for (std::size_t i = 0; i < pages; ++i)
        ASSERT_TRUE(moved.all(static_cast<unsigned char>((i + 1) % 70 + 1), i * kPage, (i + 1) * kPage));
      EXPECT_TRUE(moved.all(0, pages * kPage, (pages + more) * kPage));
      EXPECT_TRUE(r.all(77, 0, kPage)) << "its neighbours";
      EXPECT_TRUE(r.all(77, (pages + 1) * kPage, (pages + 2) * kPage));
      EXPECT_FALSE(Pages::map_at(r.start() + kPage, kPage)) << "the old place may not be free for others";
      unsigned char page = 0;
      EXPECT_EQ(::mincore(r.start() + kPage, 1, &page), 0) << "an emulator, too, knows that it is still ours";
      std::memset(r.start(), 3, (pages + 2) * kPage);
      EXPECT_TRUE(moved.all(2, 0, kPage)) << "apart";
    }
}

// The kernel would move the pages, and unlock those that the range leaves behind.
TEST(Pages, MoveOut_LockedMemory_RefusedAndStaysLocked) {
  const Range r = Range::mapped(8 * kPage);
  if (::mlock(r.start(), 8 * kPage) != 0) GTEST_SKIP() << "mlock is not allowed here";
  EXPECT_EQ(Pages::move_out(r.start() + 2 * kPage, 4 * kPage, 5 * kPage), nullptr);
  for (std::size_t page = 0; page < 8; ++page) EXPECT_TRUE(Pages::is_locked(r.start() + page * kPage)) << page;
}

// A caller that copies instead succeeds: that the system refused is no error of the program's. The kernel moves no range
// that lies in two mappings; a flag makes two of one.
TEST(Pages, RemapAndMoveOut_Refused_LeaveErrnoAlone) {
  FREEHOLD_SKIP_IF_EMULATED("no MADV_DONTFORK, so that the range is one mapping and is moved");
  const Range r = Range::mapped(64 * kPage);
  std::memset(r.start(), 6, 64 * kPage);
  ASSERT_EQ(::madvise(r.start() + 32 * kPage, 32 * kPage, MADV_DONTFORK), 0);
  errno = EBADMSG;
  EXPECT_EQ(Pages::move_out(r.start(), 64 * kPage, 128 * kPage), nullptr);
  EXPECT_EQ(errno, EBADMSG);
  EXPECT_EQ(Pages::move_out(r.start(), 32 * kPage, std::size_t{1} << 60), nullptr);
  EXPECT_EQ(errno, EBADMSG);
  EXPECT_EQ(Pages::remap(r.start(), 64 * kPage, 128 * kPage), nullptr);
  EXPECT_EQ(errno, EBADMSG);
  EXPECT_TRUE(r.all(6, 0, 64 * kPage));
}

// ---- advice -----------------------------------------------------------------------------------------------------------

TEST(Pages, PopulateToRead_FromWithinAPage_PagesOfTheRangeAreThere) {
  const Range whole = Range::mapped(kPage), r = Range::mapped(4 * kPage);
  unsigned char there[4] = {};
  Pages::populate_to_read(whole.start(), kPage);
  if (::mincore(whole.start(), kPage, there) != 0 || there[0] == 0) GTEST_SKIP() << "the kernel does not do it";
  Pages::populate_to_read(r.start() + 100, 2 * kPage);
  ASSERT_EQ(::mincore(r.start(), 4 * kPage, there), 0);
  EXPECT_TRUE(there[0] == 1 && there[1] == 1 && there[2] == 1 && there[3] == 0);
}

TEST(Pages, IsLocked_LockedAloneAndErrnoStays) {
  const Range r = Range::mapped(2 * kPage);
  errno = 123;
  EXPECT_FALSE(Pages::is_locked(r.start() + kPage));
  if (::mlock(r.start() + kPage, kPage) != 0) GTEST_SKIP() << "mlock is not allowed here";
  EXPECT_TRUE(Pages::is_locked(r.start() + kPage));
  EXPECT_FALSE(Pages::is_locked(r.start()));
  EXPECT_EQ(errno, 123);
}

// ---- the machine ------------------------------------------------------------------------------------------------------

TEST(AddressSpaceLimit, TheSmallerLimit_Decides) {
  FREEHOLD_SKIP_IF_EMULATED("limits of memory are not set");
  const int result = test::run_in_child([] {
    rlimit as{}, data{};
    ::getrlimit(RLIMIT_AS, &as);
    ::getrlimit(RLIMIT_DATA, &data);
    as.rlim_cur = std::size_t{1} << 45;
    data.rlim_cur = std::size_t{1} << 44;
    if (::setrlimit(RLIMIT_AS, &as) != 0 || ::setrlimit(RLIMIT_DATA, &data) != 0) return 2;
    if (Pages::address_limit() != std::size_t{1} << 44) return 1;
    as.rlim_cur = std::size_t{1} << 43;
    if (::setrlimit(RLIMIT_AS, &as) != 0) return 2;
    return Pages::address_limit() == std::size_t{1} << 43 ? 0 : 1;
  });
  if (result == 2) GTEST_SKIP() << "limits cannot be set here";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace freehold::os
