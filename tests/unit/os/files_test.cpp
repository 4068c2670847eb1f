// SPDX-License-Identifier: MIT
// Memory files and mapped files: sealed sizes, sharing, guards, and what a child of fork() has of them.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "freehold/os/mapped_file.hpp"
#include "freehold/os/memory_file.hpp"
#include "freehold/os/pages.hpp"
#include "tests/support/child.hpp"
#include "tests/support/emulated.hpp"
#include "tests/support/proc.hpp"
#include "tests/support/test.hpp"

namespace freehold::os {
namespace {

const std::size_t kPage = page_bytes();

// The signal that ended a child which ran `act`; 0: it ended by itself.
int signal_of_child(const std::function<void()>& act) {
  return -test::run_in_child([&act] {
    ::signal(SIGSEGV, SIG_DFL);  // not a sanitizer's report
    act();
    return 0;
  });
}

class MemoryFile : public testing::Test {
 protected:
  void SetUp() override { ASSERT_GE(fd_, 0) << std::strerror(errno); }
  ~MemoryFile() override { ::close(fd_); }
  const std::size_t bytes_ = 3 * kPage;
  const int fd_ = create_memory_file("freehold test", bytes_);
};

TEST_F(MemoryFile, Guarded_OutsideIsAFaultInsideIsNot) {
  auto* const data = static_cast<volatile char*>(MappedFile::map_shared_guarded(fd_, bytes_));
  ASSERT_NE(data, nullptr);
  data[0] = 1;
  data[bytes_ - 1] = 1;
  EXPECT_EQ(signal_of_child([&] { data[-1] = 1; }), SIGSEGV);
  EXPECT_EQ(signal_of_child([&] { data[bytes_] = 1; }), SIGSEGV);
  EXPECT_EQ(signal_of_child([&] { data[bytes_ - 1] = 2; }), 0);
  EXPECT_EQ(data[bytes_ - 1], 2);
  MappedFile::unmap_guarded(const_cast<char*>(data), bytes_);
}

TEST_F(MemoryFile, ForbiddenOrKeptFromChildren_IsAFaultThere) {
  FREEHOLD_SKIP_IF_EMULATED("no MADV_DONTFORK");
  auto* const data = static_cast<volatile char*>(MappedFile::map_shared(fd_, bytes_));
  ASSERT_NE(data, nullptr);
  ASSERT_TRUE(MappedFile::forbid(const_cast<char*>(data) + kPage, kPage));
  EXPECT_EQ(signal_of_child([&] { data[kPage] = 1; }), SIGSEGV);
  EXPECT_EQ(signal_of_child([&] { data[0] = 1; }), 0);
  ASSERT_TRUE(MappedFile::keep_from_children(const_cast<char*>(data), bytes_));
  EXPECT_EQ(signal_of_child([&] { data[0] = 1; }), SIGSEGV);
  EXPECT_EQ(data[0], 1);
  MappedFile::unmap(const_cast<char*>(data), bytes_);
}

TEST(MappedFile, ZeroInChildren_ParentKeepsItsValue) {
  FREEHOLD_SKIP_IF_EMULATED("no MADV_WIPEONFORK");
  auto* const mark = static_cast<volatile char*>(MappedFile::map_zero_in_children(kPage));
  ASSERT_NE(mark, nullptr);
  *mark = 7;
  EXPECT_EQ(signal_of_child([&] {
              if (*mark != 0) ::raise(SIGUSR1);
            }),
            0);
  EXPECT_EQ(*mark, 7);
  MappedFile::unmap(const_cast<char*>(mark), kPage);
}

TEST(MappedFile, WrongDescriptor_NullAndErrno) {
  errno = 0;
  EXPECT_EQ(MappedFile::map_shared(-1, kPage), nullptr);
  EXPECT_EQ(errno, EBADF);
  errno = 0;
  EXPECT_EQ(MappedFile::map_for_reading(-1, kPage), nullptr);
  EXPECT_EQ(errno, EBADF);
  errno = 0;
  EXPECT_EQ(MappedFile::map_shared_guarded(-1, kPage), nullptr);
  EXPECT_EQ(errno, EBADF);
}

TEST(MappedFile, RefusedBetweenGuards_LeavesNoRoom) {
  FREEHOLD_SKIP_IF_EMULATED("the address space is the emulator's");
  constexpr std::size_t kBytes = std::size_t{64} << 20, kTimes = 64;
  const std::size_t before = test::own_memory().mapped;
  ASSERT_NE(before, 0U);
  for (std::size_t i = 0; i < kTimes; ++i) ASSERT_EQ(MappedFile::map_shared_guarded(-1, kBytes), nullptr);
  EXPECT_LT(test::own_memory().mapped, before + kTimes / 2 * kBytes);
}

}  // namespace
}  // namespace freehold::os
