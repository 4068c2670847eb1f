// SPDX-License-Identifier: MIT
// `freehold doctor --memory` counts files in tmpfs: which ones, of a process that writes them and is looked at in between.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "tools/doctor/run/child.hpp"
#include "tools/doctor/run/memory_watch.hpp"

namespace freehold::doctor {
namespace {
namespace fs = std::filesystem;

constexpr double kFileBytes = 64 * 1024;

class FilesThatAreWatched : public testing::Test {
 protected:
  void SetUp() override {
    struct statfs info{};
    if (::statfs("/dev/shm", &info) != 0 || info.f_type != TMPFS_MAGIC) GTEST_SKIP() << "/dev/shm is no tmpfs";
    folder_ = "/dev/shm/freehold-watch-XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
  }
  ~FilesThatAreWatched() override {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  [[nodiscard]] std::string file(const std::string& name) const { return folder_ + '/' + name; }
  static int written(const std::string& name) {
    const int fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    static constexpr std::array<char, static_cast<std::size_t>(kFileBytes)> kBytes{};
    return fd >= 0 && ::write(fd, kBytes.data(), kBytes.size()) == static_cast<ssize_t>(kBytes.size()) ? fd : -1;
  }
  // Starts a process that does each of `steps` and stops after it.
  template <typename... Steps>
  void begin(const Steps&... steps) {
    pid_ = ::fork();
    if (pid_ == 0) {
      ((steps(), ::raise(SIGSTOP)), ...);
      ::_exit(0);
    }
    await();
    watch_.emplace(pid_);
  }
  void next() {
    ::kill(pid_, SIGCONT);
    await();
  }
  // Looks, and returns the bytes of the files.
  double seen() {
    while (now_s() < watch_->next_s()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    watch_->look({});
    return watch_->snapshots().empty() ? -1 : watch_->snapshots().back().files_bytes;
  }

 private:
  void await() {
    int status = 0;
    ASSERT_EQ(::waitpid(pid_, &status, WUNTRACED), pid_);
    ASSERT_TRUE(WIFSTOPPED(status));
  }
  std::string folder_;
  pid_t pid_ = -1;
  std::optional<MemoryWatch> watch_;
};

TEST_F(FilesThatAreWatched, RenamedWhileOpen_CountsUntilItIsRemoved) {
  int fd = -1;
  begin([&] { fd = written(file("a.tmp")); }, [&] { fs::rename(file("a.tmp"), file("a")); }, [&] { ::close(fd); },
        [&] { fs::remove(file("a")); });
  EXPECT_EQ(seen(), kFileBytes);
  next();
  EXPECT_EQ(seen(), kFileBytes) << "it has another name";
  next();
  EXPECT_EQ(seen(), kFileBytes) << "it is closed";
  next();
  EXPECT_EQ(seen(), 0) << "it is removed";
}

TEST_F(FilesThatAreWatched, ClosedAndRenamedBetweenTwoLooks_CountsUntilItIsRemoved) {
  int fd = -1;
  begin([&] { fd = written(file("a.tmp")); },
        [&] {
          ::close(fd);
          fs::rename(file("a.tmp"), file("a"));
          ::close(::open(file("a.tmp").c_str(), O_RDONLY | O_CREAT, 0600));  // another file has its name
        },
        [&] { fs::remove(file("a")); });
  EXPECT_EQ(seen(), kFileBytes);
  next();
  EXPECT_EQ(seen(), kFileBytes) << "it has another name";
  EXPECT_EQ(seen(), kFileBytes) << "the name is known";
  next();
  EXPECT_EQ(seen(), 0) << "it is removed";
}

TEST_F(FilesThatAreWatched, DescriptorOfTheCallers_IsNotTheProgramsOwn) {
  const int of_caller = written(file("log"));
  ASSERT_GE(of_caller, 0);
  begin([] {}, [&] { written(file("own")); });
  EXPECT_EQ(seen(), 0) << "it only inherited the file";
  next();
  EXPECT_EQ(seen(), kFileBytes) << "it wrote the other one";
  ::close(of_caller);
}

}  // namespace
}  // namespace freehold::doctor
