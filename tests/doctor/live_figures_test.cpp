// SPDX-License-Identifier: MIT
// Freehold's figures, read from outside: of programs whose memory is known, and of directories that are damaged.
#include "tools/live/figures.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/live/memory_map.hpp"
#include "tools/live/process.hpp"
#include "tools/live/stats.hpp"

namespace freehold::live {
namespace {

// tests/doctor/holds_memory.cpp, once it holds all of it.
class Holder {
 public:
  explicit Holder(const char* program, const char* preload = nullptr) {
    int in[2], out[2];
    if (::pipe(in) != 0 || ::pipe(out) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      for (const int fd : {in[0], in[1], out[0], out[1]}) ::close(fd);
      if (preload != nullptr) ::setenv("LD_PRELOAD", preload, 1);
      ::execl(program, program, nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    char word[6] = {};
    is_ready_ = ::read(out[0], word, sizeof word) == sizeof word;
    ::close(out[0]);
  }
  ~Holder() {
    end();
    ::waitpid(pid_, nullptr, 0);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  [[nodiscard]] bool is_ready() const { return is_ready_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  // It ends by itself, and stays to be waited for.
  void end() {
    if (input_ < 0) return;
    ::close(input_);
    input_ = -1;
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
    EXPECT_TRUE(info.si_code == CLD_EXITED && info.si_status == 0) << "it was harmed";
  }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  bool is_ready_ = false;
};

std::optional<LiveFigures> figures_of(pid_t pid, std::size_t most_bytes = kMostScannedBytes) {
  return read_live_figures(pid, maps_of(pid), most_bytes);
}

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

void expect_between(const LiveFigures& figures, LiveFigure figure, std::uint64_t least, std::uint64_t most) {
  ASSERT_TRUE(figures[figure].has_value()) << static_cast<unsigned>(figure);
  EXPECT_GE(*figures[figure], least) << static_cast<unsigned>(figure);
  EXPECT_LE(*figures[figure], most) << static_cast<unsigned>(figure);
}

void expect_the_truth(const Holder& holder) {
  ASSERT_TRUE(holder.is_ready());
  const auto figures = figures_of(holder.pid());
  ASSERT_TRUE(figures.has_value());
  expect_between(*figures, LiveFigure::kDirectBytes, 800 * kMiB, 802 * kMiB);
  // Up to 2 MiB of runs that a thread keeps are late.
  expect_between(*figures, LiveFigure::kRunBytes, 47 * kMiB, 56 * kMiB);
  // 4.9 MiB, late by 64 KiB for each of five threads, and with what caches and the program's start hold.
  expect_between(*figures, LiveFigure::kSlotBytes, 20'000 * 256 - 5 * 64 * 1024, 7 * kMiB);
  expect_between(*figures, LiveFigure::kClassSpanBytes, 20'000 * 256, 20 * kMiB);
  expect_between(*figures, LiveFigure::kThreads, 5, 6);
  expect_between(*figures, LiveFigure::kSpanClaims, 20'000 * 256 / 65'536, 300);
  expect_between(*figures, LiveFigure::kLimitBytes, 0, 0);
  expect_between(*figures, LiveFigure::kLateFrees, 0, 100);
}

TEST(ReadLiveFigures, Preloaded_NearTheTruth) { expect_the_truth(Holder(FREEHOLD_HOLDS_PLAIN, FREEHOLD_LIBRARY)); }
TEST(ReadLiveFigures, LinkedIntoTheProgram_NearTheTruth) { expect_the_truth(Holder(FREEHOLD_HOLDS_LINKED)); }

TEST(ReadLiveFigures, StaticProgram_NearTheTruth) { expect_the_truth(Holder(FREEHOLD_HOLDS_STATIC)); }

// ---- directories of this program's own, which has no engine ----------------------------------------------------------

constinit alloc::LiveDirectory g_directory{};
constinit std::uint64_t g_values[6] = {11, 0, 22, 0, 33, 0};

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

// A whole directory with two entries of one figure: 11 + 22 + 33, and 22 - 100.
class Directory : public ::testing::Test {
 protected:
  Directory() {
    g_values[1] = static_cast<std::uint64_t>(-100);
    g_directory.version = alloc::kLiveVersion;
    g_directory.count = 3;
    g_directory.entries[0] = {LiveFigure::kRunBytes, 8, 3, 16, address_of(&g_values[0])};
    g_directory.entries[1] = {LiveFigure::kRunBytes, 8, 1, 0, address_of(&g_values[2])};
    g_directory.entries[2] = {LiveFigure::kSlotBytes, 8, 1, 0, address_of(&g_values[1])};
    mark(address_of(&g_directory));
  }
  ~Directory() override { mark(0); }
  static void mark(std::uint64_t address) {
    for (unsigned half = 0; half < 2; ++half)
      g_directory.mark[half].store(alloc::live_mark(half, address), std::memory_order_relaxed);
  }
};

TEST_F(Directory, WholeOne_SumsAreRead) {
  const auto figures = figures_of(::getpid());
  ASSERT_TRUE(figures.has_value());
  EXPECT_EQ((*figures)[LiveFigure::kRunBytes], 88U) << "11 + 22 + 33, and 22";
  EXPECT_EQ((*figures)[LiveFigure::kSlotBytes], 0U) << "a moment's sum below zero";
  EXPECT_FALSE((*figures)[LiveFigure::kThreads].has_value());
}

TEST_F(Directory, DamagedOne_None) {
  using Damage = std::function<void()>;
  const std::vector<std::pair<const char*, Damage>> table{
      {"another version", [] { ++g_directory.version; }},
      {"too many", [] { g_directory.count = alloc::kMostLiveEntries + 1; }},
      {"very many", [] { g_directory.count = 0xffffffffU; }},
      {"another's mark", [] { mark(address_of(&g_directory) + 64); }},
      {"half a mark", [] { g_directory.mark[1].store(0, std::memory_order_relaxed); }},
      {"width", [] { g_directory.entries[0].bytes = 3; }},
      {"no integer", [] { g_directory.entries[0].count = 0; }},
      {"no stride", [] { g_directory.entries[0].stride = 0; }},
      {"endless", [] { g_directory.entries[0].count = 0xffffffffU, g_directory.entries[0].stride = 0xfffffff8U; }},
      {"unaligned", [] { ++g_directory.entries[1].address; }},
      {"nowhere", [] { g_directory.entries[1].address = 8; }},
      {"beyond", [] { g_directory.entries[1].address = ~std::uint64_t{7}; }},
  };
  const std::uint32_t count = g_directory.count;
  const alloc::LiveEntry entries[2] = {g_directory.entries[0], g_directory.entries[1]};
  for (const auto& [what, damage] : table) {
    damage();
    EXPECT_FALSE(figures_of(::getpid()).has_value()) << what;
    g_directory.version = alloc::kLiveVersion;
    g_directory.count = count;
    std::copy_n(entries, 2, g_directory.entries);
    mark(address_of(&g_directory));
    ASSERT_TRUE(figures_of(::getpid()).has_value()) << what;
  }
}

TEST(DataMappings, Lines_WritableOnesOfFilesAndTheirBss) {
  const auto mappings = data_mappings(
      "1000-2000 r-xp 00000000 fd:00 1    /bin/x\n"
      "2000-3000 rw-p 00001000 fd:00 1    /bin/x\n"
      "3000-5000 rw-p 00000000 00:00 0 \n"
      "5000-6000 rw-p 00000000 00:00 0    [heap]\n"
      "7000-8000 rw-p 00000000 00:00 0 \n"
      "8000-9000 rw-s 00000000 fd:00 2    /dev/shm/y\n"
      "9000-a000 r--p 00000000 fd:00 3    /lib/z\n"
      "a000-b000 rw-p 00001000 fd:00 3    /lib/z\n"
      "b000-c000 rw-p 00000000 00:00 0    [anon:freehold]\n");
  ASSERT_EQ(mappings.size(), 4u);
  EXPECT_EQ(mappings[0].begin, 0x2000u);
  EXPECT_EQ(mappings[1].end, 0x5000u);
  EXPECT_EQ(mappings[2].begin, 0x5000u);
  EXPECT_EQ(mappings[2].file, "/bin/x");
  EXPECT_EQ(mappings[3].file, "/lib/z");
}

}  // namespace
}  // namespace freehold::live
