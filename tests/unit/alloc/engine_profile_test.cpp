// SPDX-License-Identifier: MIT
// The process's sampled heap profile, with one byte in one sampled: every block of the sizes here is in it, and can be told
// by its size. tests/cli/heap_test.cpp has the estimates of larger distances.
#include "freehold/alloc/observe/profile.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "freehold/alloc/engine.hpp"
#include "freehold/alloc/engine_state.hpp"
#include "freehold/os/threads.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/test.hpp"

namespace freehold::alloc {
namespace {
namespace fs = std::filesystem;

struct Profile {
  std::map<std::string, std::string> head;          // name -> value
  std::map<std::size_t, unsigned> in_use, at_peak;  // bytes -> blocks
  std::set<unsigned> stacks, named;                 // written, and named by a sample
  bool has_mappings = false;
};

class ProfileOfTheEngine : public testing::Test {
 protected:
  ~ProfileOfTheEngine() override { stop_profile(); }
  [[nodiscard]] std::string at(const std::string& name) const { return folder_ / name; }

  [[nodiscard]] Profile written() const {
    Profile profile;
    EXPECT_TRUE(write_profile(at("heap").c_str())) << std::strerror(errno);
    std::ifstream file(at("heap"));
    std::string line;
    std::getline(file, line);
    EXPECT_EQ(line, "freehold heap profile 1");
    while (std::getline(file, line) && line != "maps") {
      std::istringstream words(line);
      std::string kind;
      words >> kind;
      if (kind == "stack") {
        unsigned number = 0;
        words >> number;
        EXPECT_TRUE(profile.stacks.insert(number).second) << "a stack is written once: " << line;
      } else if (kind == "now" || kind == "both" || kind == "peak") {
        std::size_t bytes = 0, size = 0, mean = 0;
        unsigned stack = 0;
        words >> bytes >> size >> mean >> stack;
        EXPECT_TRUE(words) << line;
        EXPECT_GE(size, bytes) << line;
        EXPECT_TRUE(mean == 1 || any_mean_) << line;
        profile.named.insert(stack);
        if (kind != "peak") ++profile.in_use[bytes];
        if (kind != "now") ++profile.at_peak[bytes];
      } else {
        words >> profile.head[kind];
      }
    }
    while (std::getline(file, line)) profile.has_mappings |= line.find("r-xp") != std::string::npos;
    return profile;
  }

  static constexpr std::uint64_t kRarely = std::uint64_t{1} << 40;  // a distance that no test gets to the end of
  bool any_mean_ = false;
  const test::Folder folder_;
};

TEST_F(ProfileOfTheEngine, SmallAndLargeBlocks_AreInItWhileTheyAreInUse) {
  ASSERT_TRUE(start_profile(1));
  std::vector<void*> blocks;
  for (int i = 0; i < 50; ++i) blocks.push_back(allocate(1'001));
  for (int i = 0; i < 5; ++i) blocks.push_back(allocate((std::size_t{3} << 20) + 1));
  for (void* const block : blocks) {
    ASSERT_NE(block, nullptr);
    EXPECT_GE(usable_size(block), 1'001U);
    std::memset(block, 1, 1'001);
  }
  Profile profile = written();
  EXPECT_EQ(profile.in_use[1'001], 50U);
  EXPECT_EQ(profile.in_use[(std::size_t{3} << 20) + 1], 5U);
  EXPECT_EQ(profile.head["pid"], std::to_string(::getpid()));
  EXPECT_EQ(profile.head["mean"], "1");
  EXPECT_EQ(profile.head["lost"], "0");
  EXPECT_EQ(profile.head["program"], fs::read_symlink("/proc/self/exe").string());
  EXPECT_TRUE(profile.has_mappings);
  for (const unsigned stack : profile.named) EXPECT_TRUE(profile.stacks.contains(stack)) << stack;

  for (void* const block : blocks) deallocate(block);
  profile = written();
  EXPECT_EQ(profile.in_use[1'001], 0U);
  EXPECT_EQ(profile.in_use[(std::size_t{3} << 20) + 1], 0U);
  EXPECT_EQ(profile.at_peak[1'001], 50U) << "they were in use when most was";
}

TEST_F(ProfileOfTheEngine, ResizedBlock_IsInItOnceWithItsNewSize) {
  ASSERT_TRUE(start_profile(1));
  constexpr std::size_t kFirst = (std::size_t{5} << 20) + 3, kThen = (std::size_t{9} << 20) + 3;
  auto* block = static_cast<unsigned char*>(allocate(kFirst));
  ASSERT_NE(block, nullptr);
  block[kFirst - 1] = 7;
  block = static_cast<unsigned char*>(reallocate(block, kThen));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block[kFirst - 1], 7);
  Profile profile = written();
  EXPECT_EQ(profile.in_use[kFirst], 0U);
  EXPECT_EQ(profile.in_use[kThen], 1U);
  void* const small = reallocate(allocate(3'001), 3'003);  // within its slot, or in another
  ASSERT_NE(small, nullptr);
  profile = written();
  EXPECT_EQ(profile.in_use[3'001], 0U);
  EXPECT_EQ(profile.in_use[3'003], 1U);
  deallocate(small);
  deallocate(block);
  EXPECT_EQ(written().in_use[kThen], 0U);
}

TEST_F(ProfileOfTheEngine, NamesOfFiles_NumberLengthAndLinks) {
  ASSERT_TRUE(start_profile(1));
  ASSERT_TRUE(write_profile(at("a%pb%q.%p").c_str())) << std::strerror(errno);
  const std::string pid = std::to_string(::getpid());
  EXPECT_TRUE(fs::exists(at("a" + pid + "b%q." + pid)));
  EXPECT_EQ(fs::status(at("a" + pid + "b%q." + pid)).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  errno = 0;
  EXPECT_FALSE(write_profile(at(std::string(kMostPathBytes + 40, 'x')).c_str()));
  EXPECT_EQ(errno, ENAMETOOLONG);
  std::ofstream(at("other")) << "mine";
  fs::create_symlink(at("other"), at("link"));
  errno = 0;
  EXPECT_FALSE(write_profile(at("link").c_str())) << "a link that somebody laid";
  EXPECT_EQ(errno, ELOOP);
  EXPECT_EQ(fs::file_size(at("other")), 4U);
  errno = 0;
  EXPECT_FALSE(write_profile(at("no folder/heap").c_str()));
  EXPECT_EQ(errno, ENOENT);
  errno = 0;
  EXPECT_FALSE(write_profile("/dev/full")) << "the system takes nothing";
  EXPECT_EQ(errno, ENOSPC);
}

// A user who can write to the folder may have made the unfinished file before, as a link to another one, or readable for
// all.
TEST_F(ProfileOfTheEngine, SomebodyElsesUnfinishedFile_IsNotWrittenTo) {
  ASSERT_TRUE(start_profile(1));
  const std::string file = at("heap"), unfinished = file + "." + std::to_string(os::thread_id()) + "~";
  std::ofstream(at("other")) << "mine";
  fs::permissions(at("other"), fs::perms::all);
  fs::create_hard_link(at("other"), unfinished);
  ASSERT_TRUE(write_profile(file.c_str())) << std::strerror(errno);
  EXPECT_EQ(fs::file_size(at("other")), 4U);
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_FALSE(fs::exists(unfinished));
  fs::create_directory(unfinished);
  errno = 0;
  EXPECT_FALSE(write_profile(file.c_str()));
  EXPECT_EQ(errno, EEXIST);
}

// Under a limit of file sizes, or if a pipe has no reader left, the thread would get a signal that ends the program.
TEST_F(ProfileOfTheEngine, FileThatCannotBeWritten_IsAnErrorAndNoSignal) {
  ASSERT_TRUE(start_profile(1));
  rlimit limit;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit little{.rlim_cur = 100, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  errno = 0;
  EXPECT_FALSE(write_profile(at("heap").c_str()));
  EXPECT_EQ(errno, EFBIG);
  ::setrlimit(RLIMIT_FSIZE, &limit);

  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  errno = 0;
  EXPECT_FALSE(write_profile(at("pipe").c_str())) << "no program reads it";
  EXPECT_EQ(errno, ENXIO);
  const int reader = ::open(at("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  std::thread leaves([reader] {
    char some[100];
    while (::read(reader, some, sizeof some) <= 0) ::usleep(1000);
    ::close(reader);
  });
  for (int i = 0; i < 3'000; ++i) (void)allocate(5'000);  // more to write than a pipe holds
  errno = 0;
  EXPECT_FALSE(write_profile(at("pipe").c_str())) << "who read it has left";
  EXPECT_EQ(errno, EPIPE);
  leaves.join();
  sigset_t pending;
  ASSERT_EQ(::sigpending(&pending), 0);
  EXPECT_FALSE(::sigismember(&pending, SIGPIPE) || ::sigismember(&pending, SIGXFSZ));
  sigset_t blocked;
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &blocked), 0);
  EXPECT_FALSE(::sigismember(&blocked, SIGPIPE) || ::sigismember(&blocked, SIGXFSZ));
}

// A slot of the pool takes the place of a mark that ends, not the bin's next one: a loop that keeps nothing leaves the bin
// as it is, and refills bring no more than the thread keeps. A mark outlives these turns once in a hundred times.
TEST_F(ProfileOfTheEngine, LoopUntilItsMarkEnds_TheBinKeepsItsEntries) {
  any_mean_ = true;
  ASSERT_TRUE(start_profile(kRarely));  // so that no refill brings marks
  std::thread([] {
    constexpr std::size_t kBytes = 704;
    constexpr SizeClass kClass = engine::Classes::class_of(kBytes);
    deallocate(allocate(kBytes));
    NativeCache* const cache = engine::own_cache();
    ASSERT_NE(cache, nullptr);
    unsigned ended = 0;
    for (int round = 0; round < 20; ++round) {
      {
        const engine::Inside inside(cache);
        ASSERT_TRUE(inside);
        if (cache->bins[kClass].marks == 0) engine::push_mark(*cache, kClass);
      }
      const std::size_t entries = cache->entries(kClass);
      for (int turn = 0; turn < 20'000 && cache->bins[kClass].marks != 0; ++turn) {
        cache->bins[kClass].active = true;  // a bin without a refill for long would be emptied
        deallocate(allocate(kBytes));
      }
      ASSERT_EQ(cache->entries(kClass), entries) << round;
      if (cache->bins[kClass].marks == 0) ++ended;
    }
    EXPECT_GE(ended, 10U);
  }).join();
}

// The mark belongs to no thread any more; below it is a slot, or nothing.
TEST_F(ProfileOfTheEngine, StoppedWithAMark_TheNextSlotServesOrARefill) {
  std::thread([] {
    constexpr std::size_t kBytes = 832;
    constexpr SizeClass kClass = engine::Classes::class_of(kBytes);
    std::set<void*> blocks;
    for (const bool alone : {false, true}) {
      ASSERT_TRUE(start_profile(kRarely));
      blocks.insert(allocate(kBytes));
      NativeCache* const cache = engine::own_cache();
      ASSERT_NE(cache, nullptr);
      while ((cache->entries(kClass) == 0) != alone) blocks.insert(allocate(kBytes));
      {
        const engine::Inside inside(cache);
        ASSERT_TRUE(inside);
        engine::push_mark(*cache, kClass);
      }
      const std::size_t entries = cache->entries(kClass);
      ASSERT_EQ(entries == 1, alone);
      stop_profile();
      void* const block = allocate(kBytes);
      EXPECT_NE(block, nullptr);
      EXPECT_TRUE(blocks.insert(block).second) << "another block's slot";
      EXPECT_EQ(cache->bins[kClass].marks, 0U);
      if (!alone) {
        EXPECT_EQ(cache->entries(kClass), entries - 2);
      }
    }
    for (void* const each : blocks) deallocate(each);
  }).join();
}

// As FREEHOLD_PROFILE_FILE, in a process that ends.
TEST_F(ProfileOfTheEngine, AtExit_FileThatCannotBeWritten_OneLineSaysWhy) {
  ASSERT_TRUE(start_profile(1));
  const auto end_with_file = [](const std::string& file) {
    ASSERT_LT(file.size(), sizeof engine::g_options.profile_file);
    std::strcpy(engine::g_options.profile_file, file.c_str());
    engine::g_options.profile = 1;
    engine::finish_start_of_profile();
    std::exit(0);
  };
  fs::create_symlink(at("other"), at("link"));
  const std::pair<std::string, const char*> wrong[] = {
      {at("no folder/heap"), "no such folder"}, {at("link"), "it is a link"},
      {folder_.path(), "it is a folder"},       {"/" + std::string(300, 'x'), "its name is too long"},
      {"/dev/full", "no space left"},           {"/dev/null/heap", "the system refused"}};
  for (const auto& [file, why] : wrong)
    EXPECT_EXIT(end_with_file(file), testing::ExitedWithCode(0),
                "^freehold: no heap profile: cannot write FREEHOLD_PROFILE_FILE " + file + ": " + why + "\n$");
  EXPECT_EXIT(end_with_file(at("heap")), testing::ExitedWithCode(0), "^$");
  EXPECT_GT(fs::file_size(at("heap")), 100U);
}

}  // namespace
}  // namespace freehold::alloc
