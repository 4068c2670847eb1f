// SPDX-License-Identifier: MIT
// Restrictions that a process puts on itself: each in a child, since they cannot be lifted.
#include "freehold/os/sandbox.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/child.hpp"
#include "tests/support/emulated.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/test.hpp"

namespace freehold::os {
namespace {

constexpr int kNone = 77;  // the kernel has no such thing

// 0, or the error of opening.
int error_of_opening(const std::string& path, int how) {
  const int file = ::open(path.c_str(), how | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  ::close(file);
  return 0;
}

class FileRulesTest : public testing::Test {
 protected:
  FileRulesTest() {
    for (const char* name : {"readable/file", "writable/file", "neither/file"}) folder_.file(name, "x");
  }
  [[nodiscard]] std::string at(const char* name) const { return folder_ / name; }

  const test::Folder folder_;
};

TEST_F(FileRulesTest, Enforced_OnlyWhatIsAllowedIsLeft) {
  FREEHOLD_SKIP_IF_EMULATED("QEMU knows no Landlock");
  const int result = test::run_in_child([this] {
    FileRules rules;
    if (forbid_new_privileges() != 0) return 1;
    if (rules.allow(at("readable").c_str(), FileAccess::kRead) != 0) return errno == EOPNOTSUPP ? kNone : 2;
    if (rules.allow(at("writable").c_str(), FileAccess::kAll) != 0) return 3;
    if (rules.allow(at("neither/file").c_str(), FileAccess::kReadWrite) != 0) return 4;  // a rule for a file, no folder
    if (rules.allow(at("missing").c_str(), FileAccess::kAll) != 0) return 5;
    if (error_of_opening(at("readable/file"), O_WRONLY) != 0) return 6;  // not yet
    if (rules.enforce() != 0) return 7;
    if (error_of_opening(at("readable/file"), O_RDONLY) != 0) return 8;
    if (error_of_opening(at("readable/file"), O_WRONLY) != EACCES) return 9;
    if (error_of_opening(at("readable/new"), O_WRONLY | O_CREAT) != EACCES) return 10;
    if (error_of_opening(at("writable/file"), O_WRONLY) != 0) return 11;
    if (error_of_opening(at("writable/new"), O_WRONLY | O_CREAT) != 0) return 12;
    if (error_of_opening(at("neither/file"), O_RDWR) != 0) return 13;
    if (error_of_opening(at("neither"), O_RDONLY | O_DIRECTORY) != EACCES) return 14;
    if (::unlink(at("neither/file").c_str()) == 0) return 15;
    return 0;
  });
  if (result == ENOSYS || result == kNone) GTEST_SKIP() << "the kernel has no Landlock";
  EXPECT_EQ(result, 0);
}

TEST_F(FileRulesTest, PathBelowAFile_IsRefused) {
  FREEHOLD_SKIP_IF_EMULATED("QEMU knows no Landlock");
  FileRules rules;
  const int known = rules.allow(at("readable").c_str(), FileAccess::kRead);
  if (known != 0) GTEST_SKIP() << "the kernel has no Landlock: " << known;
  EXPECT_EQ(rules.allow(at("readable/file/below").c_str(), FileAccess::kRead), ENOTDIR);
}

TEST_F(FileRulesTest, NotAllowedToEnforce_IsAnError) {
  FREEHOLD_SKIP_IF_EMULATED("QEMU knows no Landlock");
  if (::geteuid() == 0) GTEST_SKIP() << "root may enforce rules without giving up privileges";
  EXPECT_EQ(test::run_in_child([] { return FileRules().enforce() != 0 ? 0 : 1; }), 0);
}

// As on a kernel without Landlock: here the rules' descriptor is refused.
TEST(FileRules, CannotBeMade_AreNotSaidToBeInForce) {
  EXPECT_EQ(test::run_in_child([] {
              const rlimit none{};
              if (::setrlimit(RLIMIT_NOFILE, &none) != 0) return 2;
              FileRules rules;
              const int allowed = rules.allow("/", FileAccess::kAll), enforced = rules.enforce();
              return allowed != 0 && enforced == allowed ? 0 : 1;
            }),
            0);
}

TEST(RefuseSockets, NoneCanBeMadeAndOtherCallsWork) {
  FREEHOLD_SKIP_IF_EMULATED("QEMU refuses seccomp");
#if !defined(__x86_64__)
  EXPECT_EQ(test::run_in_child([] { return refuse_sockets() == ENOSYS ? 0 : 1; }), 0);
#else
  EXPECT_EQ(test::run_in_child([] {
              if (forbid_new_privileges() != 0) return 1;
              const int before = ::socket(AF_UNIX, SOCK_STREAM, 0);
              if (before < 0) return 2;
              ::close(before);
              if (refuse_sockets() != 0) return 3;
              errno = 0;
              if (::socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || errno != EACCES) return 4;
              if (::socket(AF_INET, SOCK_DGRAM, 0) >= 0 || errno != EACCES) return 5;
              if (::syscall(SYS_io_uring_setup, 1, nullptr) >= 0 || errno != ENOSYS) return 6;
              if (error_of_opening("/dev/null", O_RDWR) != 0) return 7;
              const auto is_refused = [] { return ::socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EACCES ? 0 : 1; };
              return test::run_in_child(is_refused) == 0 ? 0 : 8;
            }),
            0);
#endif
}

}  // namespace
}  // namespace freehold::os
