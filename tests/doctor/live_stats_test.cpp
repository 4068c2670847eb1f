// SPDX-License-Identifier: MIT
// The statistics that are read from outside, of this program itself: it has an engine, heaps and pools, which tell the same
// by their own means; and directories that are damaged.
#include "tools/live/stats.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "freehold/alloc/engine.hpp"
#include "freehold/alloc/observe/profile.hpp"
#include "freehold/alloc/scope/scope.hpp"
#include "freehold/heap.hpp"
#include "freehold/heap/scoped_heap.hpp"
#include "freehold/pool.hpp"
#include "freehold/sync/live_list.hpp"
#include "tools/live/memory.hpp"

namespace freehold::live {
namespace {

LiveStats own_stats() {
  LiveAnswer answer = read_live_stats(::getpid());
  EXPECT_EQ(answer.refusal, LiveRefusal::kNone);
  return std::move(answer.stats);
}

template <class T>
const T* named(const std::vector<T>& list, const std::string& name) {
  const auto found = std::ranges::find(list, name, &T::name);
  return found == list.end() ? nullptr : &*found;
}

void expect_same(const LiveHeapFigures& read, const heap::HeapStats& told) {
  EXPECT_EQ(read.live_objects, told.live_objects);
  EXPECT_EQ(read.live_bytes, told.live_bytes);
  EXPECT_EQ(read.used_bytes, told.used_bytes);
  EXPECT_EQ(read.held_bytes, told.held_bytes);
  EXPECT_EQ(read.slabs, told.slabs);
  EXPECT_EQ(read.large_blocks, told.large_blocks);
  EXPECT_EQ(read.conflicts, told.conflicts);
}

TEST(LiveStats, HeapInRandomUse_TheHeapsOwnStatistics) {
  PrivateHeap heap({.name = "random", .limit_bytes = std::size_t{256} << 20});
  std::mt19937 random(17);
  std::vector<std::pair<void*, std::size_t>> blocks;
  const auto use = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      if (blocks.empty() || random() % 5 < 3) {
        const std::size_t bytes = random() % 50 == 0 ? 20'000 + random() % 200'000 : 1 + random() % 3'000;
        blocks.emplace_back(heap.allocate(bytes), bytes);
      } else {
        std::swap(blocks[random() % blocks.size()], blocks.back());
        heap.deallocate(blocks.back().first, blocks.back().second);
        blocks.pop_back();
      }
    }
  };
  for (int round = 0; round < 20; ++round) {
    std::thread(use, 100).join();  // threads use different shards
    use(100);
    const LiveStats stats = own_stats();
    const LiveHeapFigures* const read = named(stats.heaps, "random");
    ASSERT_NE(read, nullptr);
    expect_same(*read, heap.stats());
    EXPECT_EQ(read->limit_bytes, std::uint64_t{256} << 20);
  }
  heap.release_all();
  const LiveStats stats = own_stats();
  ASSERT_NE(named(stats.heaps, "random"), nullptr);
  expect_same(*named(stats.heaps, "random"), heap.stats());
  EXPECT_EQ(named(stats.heaps, "random")->live_bytes, 0u);
}

TEST(LiveStats, HeapThatEndedBeforeItsBlocks_IsListedUntilTheLastIsFreed) {
  void* block;
  {
    PrivateHeap heap({.name = "gone"});
    ASSERT_TRUE(alloc::kScopeEngine.enter(heap::scoped_heap(heap, alloc::kScopeEngine)));
    block = alloc::allocate(1000);
    alloc::kScopeEngine.leave();
  }
  LiveStats stats = own_stats();
  const LiveHeapFigures* const read = named(stats.heaps, "gone (ended)");
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->live_objects, 1U);
  EXPECT_EQ(read->live_bytes, 1024U);
  EXPECT_EQ(read->used_bytes, 64U << 10);
  alloc::deallocate(block);
  stats = own_stats();
  EXPECT_EQ(named(stats.heaps, "gone (ended)"), nullptr);
}

struct Big {
  char room[1000];
};

TEST(LiveStats, PoolsComeAndGo_ThoseWithANameAreListed) {
  ObjectPool<Big> pool(5'000, {.name = "pool"});
  ObjectPool<Big> nameless(10);
  MovablePool<int> movable(7, {.name = "movable"});
  TrackedPool<int> tracked(9, {.name = "tracked"});
  ObjectPool<int, pool::NativePool<pool::TaggedStack>> other(11, {.name = "another strategy"});
  {
    auto growing = ObjectPool<Big>::growing(1'000'000, {.name = "growing", .when_full = pool::WhenFull::kThrow});
    std::vector<ObjectPool<Big>::Handle> objects;
    for (int i = 0; i < 1'000; ++i) objects.push_back(growing.make());
    const LiveStats stats = own_stats();
    ASSERT_EQ(stats.pools.size(), 5u);
    const LivePoolFigures& read = *named(stats.pools, "growing");
    EXPECT_EQ(read.capacity, 1'000'000u);
    EXPECT_EQ(read.slot_bytes, 1'000u);
    EXPECT_EQ(read.opened_slots, growing.peak_slots());
    EXPECT_GE(read.taken_slots, 1'000u);
    EXPECT_LE(read.taken_slots, 1'128u);
    const LivePoolFigures& unused = *named(stats.pools, "pool");
    EXPECT_EQ(unused.opened_slots, 0u);
    EXPECT_EQ(unused.taken_slots, 0u);
    EXPECT_EQ(named(stats.pools, "another strategy")->capacity, 11u);
    EXPECT_FALSE(named(stats.pools, "another strategy")->taken_slots.has_value());
  }
  const LiveStats stats = own_stats();
  EXPECT_EQ(stats.pools.size(), 4u);
  EXPECT_EQ(named(stats.pools, "growing"), nullptr);
  EXPECT_EQ(named(stats.pools, "movable")->capacity, 7u);
}

// ---- the engine -------------------------------------------------------------------------------------------------------

std::uint64_t sum_of(const std::vector<LiveClass>& classes, std::uint64_t LiveClass::* number) {
  std::uint64_t sum = 0;
  for (const LiveClass& c : classes) sum += c.*number;
  return sum;
}

TEST(LiveStats, EngineAtRest_ItsOwnStatistics) {
  std::vector<void*> blocks;
  for (std::size_t bytes = 1; bytes < 30'000; bytes += bytes / 7 + 1)
    for (int i = 0; i < 100; ++i) blocks.push_back(alloc::allocate(bytes));
  for (std::size_t i = 0; i < blocks.size(); i += 3) alloc::deallocate(std::exchange(blocks[i], nullptr));
  alloc::Stats told;
  alloc::stats(told);
  const LiveStats read = own_stats();
  ASSERT_EQ(read.classes.size(), told.class_count);
  for (std::size_t c = 0; c < read.classes.size(); ++c) {
    EXPECT_EQ(read.classes[c].slot_bytes, told.classes[c].slot_bytes);
    EXPECT_EQ(read.classes[c].spans, told.classes[c].spans) << c;
    EXPECT_EQ(read.classes[c].slots, told.classes[c].slots) << c;
    EXPECT_EQ(read.classes[c].free_slots, told.classes[c].free_slots) << c;
    EXPECT_EQ(read.classes[c].refills, told.classes[c].refills) << c;
    EXPECT_EQ(read.classes[c].drains, told.classes[c].drains) << c;
  }
  EXPECT_EQ(read.refills, sum_of(read.classes, &LiveClass::refills));
  EXPECT_EQ(read.figures[LiveFigure::kThreads], told.threads);
  EXPECT_EQ(read.figures[LiveFigure::kPeakThreads], told.peak_threads);
  EXPECT_EQ(read.figures[LiveFigure::kLockWaits], told.lock_waits);
  EXPECT_FALSE(read.lists_changed);
  for (void* const block : blocks) alloc::deallocate(block);
}

// A mark in the place of a sampled slot is an entry of a cache, but no slot.
TEST(LiveStats, WhileAHeapProfileIsTaken_MarksAreNoCachedSlots) {
  constexpr std::size_t kBytes = 10'240;  // a size of which no other code here has blocks
  ASSERT_TRUE(alloc::start_profile(2 * kBytes));
  std::vector<void*> blocks(600);
  for (void*& block : blocks) block = alloc::allocate(kBytes);
  for (void* const block : blocks) alloc::deallocate(block);
  const LiveStats stats = own_stats();
  alloc::stop_profile();
  const LiveClass& c = *std::ranges::find(stats.classes, kBytes, &LiveClass::slot_bytes);
  EXPECT_GT(c.spans, 0u);
  EXPECT_EQ(c.free_slots + c.cached_slots, c.slots) << "all are free";
}

TEST(LiveStats, BlocksOfAThreadThatEnded_FreedElsewhere_AreRemote) {
  std::vector<void*> blocks(20'000);
  std::thread([&blocks] {
    for (void*& block : blocks) block = alloc::allocate(96);
  }).join();
  const std::uint64_t before = own_stats().remote_frees;
  for (void* const block : blocks) alloc::deallocate(block);
  const std::uint64_t remote = own_stats().remote_frees - before;
  EXPECT_GE(remote, 19'500u);
  EXPECT_LE(remote, 20'000u);
  std::thread([] {  // a thread's frees of blocks from its cache are not
    std::vector<void*> own(20'000);
    for (void*& block : own) block = alloc::allocate(112);
    for (void* const block : own) alloc::deallocate(block);
  })
      .join();
  EXPECT_LE(own_stats().remote_frees - before - remote, 200u);
}

// ---- who cannot be read -----------------------------------------------------------------------------------------------

// The kernel takes such a process's first thread for a zombie, and shows nothing of the process under its number.
TEST(LiveStats, FirstThreadHasEnded_TheOthersAreRead) {
  constexpr std::size_t kBytes = 208, kBlocks = 5'000;
  const pid_t child = ::fork();
  if (child == 0) {
    std::thread([] {
      for (std::size_t i = 0; i < kBlocks; ++i) static_cast<void>(alloc::allocate(kBytes));
      for (;;) ::pause();
    }).detach();
    ::syscall(SYS_exit, 0);  // this thread alone, as pthread_exit() does; that would unwind the test
  }
  const auto used = [&](const LiveStats& stats) {
    const auto of = std::ranges::find(stats.classes, kBytes, &LiveClass::slot_bytes);
    return of == stats.classes.end() ? 0 : of->slots - of->free_slots;
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  LiveAnswer answer;
  bool is_zombie = false;
  while (std::chrono::steady_clock::now() < deadline) {
    std::ifstream file("/proc/" + std::to_string(child) + "/stat");
    std::string text;
    std::getline(file, text);
    is_zombie = text.find(") Z ") != std::string::npos;
    answer = read_live_stats(child);
    if (is_zombie && answer.refusal == LiveRefusal::kNone && used(answer.stats) >= kBlocks) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(is_zombie);
  EXPECT_EQ(answer.refusal, LiveRefusal::kNone);
  EXPECT_GE(used(answer.stats), kBlocks);
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_EQ(read_live_stats(child).refusal, LiveRefusal::kEnded);
  ::waitpid(child, nullptr, 0);
}

// ---- lists that are damaged -------------------------------------------------------------------------------------------

struct Record {
  Record* next;
  pool::LivePool pool;
};
constinit sync::LiveListDirectory g_list{};
constinit Record g_records[2]{};
constinit Record* g_first = nullptr;
constinit std::uint64_t g_changes = 0;
constinit std::uint64_t g_words[2] = {0xff, 0};
constinit std::uint32_t g_opened = 2;

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

// A list of two pools, in this program's data.
class DamagedList : public ::testing::Test {
 protected:
  DamagedList() { restore(); }
  ~DamagedList() override { g_list.mark[0].store(0); }
  static void restore() {
    g_list.kind = sync::LiveList::kPools;
    g_list.first = address_of(&g_first);
    g_list.changes = address_of(&g_changes);
    g_list.next = offsetof(Record, next);
    g_list.data = offsetof(Record, pool);
    g_list.data_bytes = sizeof(pool::LivePool);
    g_first = &g_records[0];
    g_changes = 0;
    g_opened = 2;
    for (Record& record : g_records)
      record = {nullptr, {address_of("damaged"), 100, 8, address_of(g_words), address_of(&g_opened), 2, 128}};
    g_records[0].next = &g_records[1];
    sync::publish(g_list);
  }
};

TEST_F(DamagedList, WholeOne_IsRead) {
  const LiveStats stats = own_stats();
  ASSERT_EQ(stats.pools.size(), 2u);
  EXPECT_EQ(stats.pools[0].opened_slots, 100u) << "two words of 64 bits, but no more than the capacity";
  EXPECT_EQ(stats.pools[0].taken_slots, 92u);
  EXPECT_FALSE(stats.lists_changed);
}

TEST_F(DamagedList, ChangeUnderWay_IsSaid) {
  g_changes = 7;
  EXPECT_TRUE(own_stats().lists_changed);
}

TEST_F(DamagedList, Damaged_EndsAndHarmsNobody) {
  const std::vector<std::pair<const char*, std::function<void()>>> table{
      {"endless", [] { g_records[1].next = &g_records[0]; }},
      {"nowhere", [] { g_records[1].next = reinterpret_cast<Record*>(8); }},
      {"no list", [] { g_list.first = 16; }},
      {"no count", [] { g_list.changes = ~std::uint64_t{7}; }},
      {"no name", [] { g_records[0].pool.name = 8; }},
      {"name without end", [] { g_records[0].pool.name = address_of(&g_list); }},
      {"very many words", [] { g_opened = 0xffffffff; }},
      {"no words", [] { g_records[0].pool.words = 8; }},
      {"no words a span", [] { g_records[0].pool.words_a_span = 0; }},
      {"another kind", [] { g_list.kind = static_cast<sync::LiveList>(99); }},
      {"other data", [] { g_list.data_bytes = 8; }},
      {"another's mark", [] { g_list.mark[0].store(g_list.mark[0].load() + 1); }},
  };
  for (const auto& [what, damage] : table) {
    SCOPED_TRACE(what);
    damage();
    EXPECT_LE(own_stats().pools.size(), 100'000u);
    restore();
    EXPECT_EQ(own_stats().pools.size(), 2u);
  }
}

}  // namespace
}  // namespace freehold::live
