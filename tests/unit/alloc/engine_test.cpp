// SPDX-License-Identifier: MIT
// The process's engine at moments that a program seldom meets: threads that allocate, free and end while another one forks,
// or right when that fork ends; children of forks; threads whose end cannot be registered. Looks into engine_state.hpp, so
// that each of these moments can be had on purpose.
#include "freehold/alloc/engine.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "freehold/alloc/engine_state.hpp"
#include "freehold/os/threads.hpp"
#include "tests/support/child.hpp"
#include "tests/support/emulated.hpp"
#include "tests/support/proc.hpp"
#include "tests/support/test.hpp"

namespace freehold::alloc {
namespace {

using namespace engine;
using std::chrono::milliseconds;

constexpr std::size_t kMiB = std::size_t{1} << 20;
#if defined(FREEHOLD_TEST_SANITIZED)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// fork() calls this after the engine was left by all other threads: the engine's own handler, of the first allocation, is
// younger.
std::function<void()> amid_fork;
const int registered = ::pthread_atfork(
    [] {
      if (amid_fork) amid_fork();
    },
    nullptr, nullptr);

void in_a_thread(const std::function<void()>& work) { std::thread(work).join(); }

// Returns whether the child of a fork finds that all is well.
bool in_a_child(bool (*is_well)()) {
  return test::run_in_child([is_well] { return is_well() ? 0 : 1; }) == 0;
}

// While it lives the calling thread forks, as far as others can tell.
class Fork {
 public:
  Fork() { before_fork(); }
  ~Fork() { after_fork_in_parent(); }
  Fork(const Fork&) = delete;
  Fork& operator=(const Fork&) = delete;
};

// The main thread has a cache, and the engine its handlers.
class Engine : public testing::Test {
 protected:
  Engine() { deallocate(allocate(100)); }
};

// ---- the start --------------------------------------------------------------------------------------------------------

// The first test of all. Nothing but the engine orders the two threads: ThreadSanitizer sees what the second one reads.
TEST(EngineStart, FirstCallsOfTwoThreads_TheSecondFindsWhatTheFirstStarted) {
  if (g_start.load(std::memory_order_relaxed) == Start::kReady) GTEST_SKIP() << "it has started already";
  void* blocks[2] = {};
  std::thread first([&] { blocks[0] = allocate(100); });
  std::thread second([&] {
    std::this_thread::sleep_for(milliseconds(50));
    blocks[1] = allocate(100);
  });
  first.join();
  second.join();
  for (void* const block : blocks) {
    ASSERT_NE(block, nullptr);
    std::memset(block, 1, 100);
  }
  EXPECT_NE(blocks[0], blocks[1]);
  for (void* const block : blocks) deallocate(block);
}

// ---- another thread forks ---------------------------------------------------------------------------------------------

TEST_F(Engine, BlocksFreedWhileAnotherThreadForks_AreFreedAfterwards) {
  void* const blocks[] = {allocate(kMiB), allocate(100 * kMiB)};
  {
    const Fork fork;
    in_a_thread([&] {
      for (void* const block : blocks) deallocate(block);
    });
    for (void* const block : blocks) EXPECT_NE(usable_size(block), 0U) << "freed while the process is copied";
  }
  for (void* const block : blocks) EXPECT_EQ(usable_size(block), 0U);
}

// The fork has ended between the refusal and the moment when the free was put off, and has done what had been put off.
TEST_F(Engine, FreePutOffWhenTheForkIsOver_IsDoneAtOnce) {
  void* const block = allocate(kMiB);
  defer_free(static_cast<Freed*>(block));
  EXPECT_EQ(usable_size(block), 0U);
}

TEST_F(Engine, BlockAllocatedWhileAnotherThreadForked_IsABlockLikeAnyOther) {
  constexpr std::size_t kBytes = 1000;
  void* block = nullptr;
  {
    const Fork fork;
    in_a_thread([&] { block = allocate(kBytes); });
  }
  ASSERT_NE(block, nullptr);
  ASSERT_NE(g_fork_blocks.bytes_of(block), 0U) << "it could not come from the arena";
  ASSERT_GE(usable_size(block), kBytes);
  std::memset(block, 7, kBytes);
  auto* const moved = static_cast<unsigned char*>(reallocate(block, 20 * kBytes));
  ASSERT_NE(moved, nullptr);
  for (std::size_t i = 0; i < kBytes; ++i) ASSERT_EQ(moved[i], 7) << i;
  EXPECT_EQ(g_fork_blocks.bytes_of(block), 0U);
  deallocate(moved);
}

// Runs `work` before the first write to the page of `address`.
class BeforeFirstWrite {
 public:
  BeforeFirstWrite(void* address, std::function<void()> work) {
    const auto bytes = static_cast<std::uintptr_t>(::getpagesize());
    page_ = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) & ~(bytes - 1));
    work_ = std::move(work);
    struct sigaction action{};
    action.sa_handler = handle;
    EXPECT_EQ(::sigaction(SIGSEGV, &action, &former_), 0);
    protect(PROT_READ);
  }
  ~BeforeFirstWrite() {
    protect(PROT_READ | PROT_WRITE);
    ::sigaction(SIGSEGV, &former_, nullptr);
  }
  BeforeFirstWrite(const BeforeFirstWrite&) = delete;
  BeforeFirstWrite& operator=(const BeforeFirstWrite&) = delete;

 private:
  static void protect(int protection) {
    EXPECT_EQ(::mprotect(page_, static_cast<std::size_t>(::getpagesize()), protection), 0);
  }
  static void handle(int) {
    protect(PROT_READ | PROT_WRITE);
    ::signal(SIGSEGV, SIG_DFL);  // a second fault is not ours
    work_();
  }
  static inline void* page_;
  static inline std::function<void()> work_;
  struct sigaction former_{};
};

// A thread that ends is refused, and the fork ends before its cache is put off: at the first write to it.
TEST_F(Engine, CachePutOffWhenTheForkIsOver_IsGivenBackAtOnce) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer handles faults itself";
  const std::uint64_t threads = g_core.registry().threads();
  NativeCache* const cache = g_core.attach();
  ASSERT_NE(cache, nullptr);
  enum : int { kBegins, kForks, kMayEnd, kOver };
  std::atomic<int> step{kBegins};
  const auto go_on = [&](int done, int wanted) {
    step = done;
    while (step != wanted) ::sched_yield();
  };
  std::thread forking([&] {
    before_fork();
    go_on(kForks, kMayEnd);
    after_fork_in_parent();
    step = kOver;
  });
  while (step != kForks) ::sched_yield();
  {
    const BeforeFirstWrite trap(&cache->next_ended, [&] { go_on(kMayEnd, kOver); });
    detach_cache(cache);
  }
  EXPECT_EQ(step, kOver) << "it was not refused";
  step = kMayEnd;
  forking.join();
  EXPECT_EQ(g_core.registry().threads(), threads);
  EXPECT_TRUE(g_core.check_invariants());
}

TEST_F(Engine, LookForDeadThreadsThatMeetsAFork_IsNotTheLast) {
  g_look_at.store(1, std::memory_order_relaxed);  // the next thread that begins looks
  {
    const Fork fork;
    in_a_thread([] { deallocate(allocate(100)); });
  }
  EXPECT_NE(g_look_at.load(std::memory_order_relaxed), UINT64_MAX);
}

// A call of a signal's handler, during a slow path.
TEST_F(Engine, CallAmidASlowPathOfTheSameThread_LeavesTheMarkToTheOuterOne) {
  NativeCache* const cache = present_cache();
  ASSERT_NE(cache, nullptr);
  {
    const Inside outer(cache);
    ASSERT_TRUE(static_cast<bool>(outer));
    {
      const Inside inner(cache);
      EXPECT_TRUE(static_cast<bool>(inner));
    }
    EXPECT_FALSE(Gate::is_quiet(cache->inside)) << "a fork would copy what is half changed";
  }
  EXPECT_TRUE(Gate::is_quiet(cache->inside));
}

// ---- in the child -----------------------------------------------------------------------------------------------------

TEST_F(Engine, ThreadEndsWhileAnotherForks_BothProcessesGiveItsCacheBackOnce) {
  const std::uint64_t threads = g_core.registry().threads();
  std::atomic<bool> has_cache{false}, may_end{false};
  std::thread ending([&] {
    deallocate(allocate(100));
    has_cache = true;
    while (!may_end) std::this_thread::yield();
  });
  while (!has_cache) std::this_thread::yield();
  EXPECT_EQ(g_core.registry().threads(), threads + 1);
  amid_fork = [&] {
    may_end = true;
    ending.join();
  };
  EXPECT_TRUE(in_a_child([] {
    const std::uint64_t before = g_core.registry().threads();
    const NativeCache* const one = g_core.attach();
    const NativeCache* const other = g_core.attach();
    return before == 1 && one != nullptr && other != nullptr && one != other && g_core.check_invariants();
  }));
  amid_fork = nullptr;
  EXPECT_EQ(g_core.registry().threads(), threads);
  EXPECT_TRUE(g_core.check_invariants());
}

// Its number in the parent belongs to no thread in the child.
TEST_F(Engine, LookForDeadThreadsInAForksChild_FindsItsFirstThreadAlive) {
  EXPECT_TRUE(in_a_child([] {
    g_look_at.store(1, std::memory_order_relaxed);  // the next thread that begins looks
    in_a_thread([] { deallocate(allocate(100)); });
    const NativeCache* const mine = present_cache();
    return mine != nullptr && mine->thread.load(std::memory_order_relaxed) == os::thread_id() &&
           g_core.registry().threads() == 1;
  }));
}

// ---- threads end ------------------------------------------------------------------------------------------------------

TEST_F(Engine, ThreadWhoseEndCannotBeRegistered_KeepsNoCache) {
  pthread_key_t none;
  ASSERT_EQ(::pthread_key_create(&none, nullptr), 0);
  ASSERT_EQ(::pthread_key_delete(none), 0);
  const std::uint64_t threads = g_core.registry().threads();
  const pthread_key_t former = std::exchange(g_key, none);
  in_a_thread([=] {
    for (int i = 0; i < 10; ++i) {
      void* const block = allocate(100);
      EXPECT_NE(block, nullptr);
      deallocate(block);
      EXPECT_EQ(g_core.registry().threads(), threads);
    }
  });
  g_key = former;
  EXPECT_TRUE(g_core.check_invariants());
}

// A destructor of the program's runs in every round, and so after the one that gave the thread's cache back.
TEST_F(Engine, DestructorsOfAThreadWithoutItsCache_GetMemory) {
  if (kSanitized) GTEST_SKIP() << "ThreadSanitizer ends its own part of the thread in such a round";
  static pthread_key_t key;
  static unsigned rounds, late, refused;
  rounds = late = refused = 0;
  ASSERT_EQ(::pthread_key_create(&key,
                                 [](void* value) {
                                   late += t_cache == &g_modes.late ? 1 : 0;
                                   for (const std::size_t bytes : {std::size_t{100}, kMiB}) {
                                     void* const block = allocate(bytes);
                                     refused += block == nullptr ? 1 : 0;
                                     if (block != nullptr) std::memset(block, 1, 100);
                                     deallocate(block);
                                   }
                                   if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS) ::pthread_setspecific(key, value);
                                 }),
            0);
  in_a_thread([] {
    deallocate(allocate(100));
    ::pthread_setspecific(key, &rounds);
  });
  ::pthread_key_delete(key);
  EXPECT_EQ(rounds, static_cast<unsigned>(PTHREAD_DESTRUCTOR_ITERATIONS));
  EXPECT_GT(late, 0U);
  EXPECT_EQ(refused, 0U);
  EXPECT_TRUE(g_core.check_invariants());
}

// ---- giving memory back -----------------------------------------------------------------------------------------------

// Two threads and 16 MiB: what makes a program worth a purger thread.
class EnginePurger : public Engine {
 protected:
  EnginePurger() {
    std::atomic<bool> has_cache{false};
    other_ = std::thread([&, this] {
      deallocate(allocate(100));
      has_cache = true;
      while (!may_end_) std::this_thread::sleep_for(milliseconds(1));
    });
    while (!has_cache) std::this_thread::yield();
    for (int i = 0; i < 5000 && !g_purger.exists(); ++i) {
      void* const blocks[] = {allocate(16 * kMiB), allocate(kMiB)};
      for (void* const block : blocks) deallocate(block);
      std::this_thread::sleep_for(milliseconds(1));  // one that has just ended is not started again at once
    }
    EXPECT_TRUE(g_purger.exists());
  }
  ~EnginePurger() override { end(); }
  void end() {
    may_end_ = true;
    if (other_.joinable()) other_.join();
  }

 private:
  std::atomic<bool> may_end_{false};
  std::thread other_;
};

TEST_F(EnginePurger, StepThatMeetsAFork_LeavesThePurgersGate) {
  g_gate.close();
  g_core.arena().due().note();
  g_purger.wake();
  std::this_thread::sleep_for(milliseconds(200));  // for some steps, which are refused
  bool left = false;
  for (int i = 0; i < 1000 && !left; ++i) {
    left = Gate::is_quiet(g_purger_mark);
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_TRUE(left) << "the next fork waits for it";
  (void)g_gate.open();
}

// Nothing else will call the engine: the purger hears of it now, or never.
TEST_F(EnginePurger, FreeWhileThePurgerSleeps_TheMemoryGoesBack) {
  const auto purged = [] { return g_core.arena().counters().purged_bytes.load(std::memory_order_relaxed); };
  void* const block = allocate(kMiB);
  ASSERT_NE(block, nullptr);
  std::this_thread::sleep_for(milliseconds(300));  // until it has nothing to do
  const std::uint64_t before = purged();
  deallocate(block);
  for (int i = 0; i < 10'000 && purged() < before + kMiB; ++i) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_GE(purged(), before + kMiB);
}

TEST_F(EnginePurger, LastThreadEnds_RegretThatOnlyThePurgerMadeCheapGoes) {
  auto& budget = g_core.arena().budget();
  constexpr std::int64_t kMuch = std::int64_t{1} << 30;
  budget.direct(kMuch);  // once used
  budget.direct(-kMuch);
  budget.set_purged_in_time(true);
  budget.regret(kMuch, CoarseClock::now());
  const auto regret = [&] {
    return budget.allowance() - NativeConfig::kKeepBytes - budget.in_use() / NativeConfig::kKeepShare;
  };
  EXPECT_GT(regret(), NativeConfig::kRegretBytes);
  end();
  EXPECT_FALSE(g_purger.exists());
  EXPECT_LE(regret(), NativeConfig::kRegretBytes);
}

// Chunks of runs that ask for huge pages where 150 MiB of runs came, and some went, that were written or not.
unsigned huge_chunks_after(bool written) {
  constexpr std::size_t kBytes = 300 * 1024;
  std::vector<void*> runs;
  for (unsigned round = 0; round < 12; ++round) {
    for (unsigned i = 0; i < 60; ++i) {
      runs.push_back(allocate(kBytes));
      std::memset(runs.back(), 1, written ? kBytes : 1);
    }
    for (unsigned i = 0; i < 20; ++i) {
      deallocate(runs.back());
      runs.pop_back();
    }
  }
  unsigned huge = 0;
  auto& chunks = g_core.arena().free_spans().chunks();
  for (std::uint32_t c = 0; c < span_count() / NativeConfig::kChunkSpans; ++c)
    if (chunks.chunk(c).kind == ChunkKind::kRuns && chunks.chunk(c).huge != 0) ++huge;
  for (void* run : runs) deallocate(run);
  return huge;
}
TEST_F(Engine, RunsThatAreWritten_HugePagesUnderFurtherOnes) {
  EXPECT_TRUE(in_a_child([] { return huge_chunks_after(true) != 0; }));
  EXPECT_TRUE(in_a_child([] { return huge_chunks_after(false) == 0; }));
}

// Copied, since they are too small to be moved: pages that were never written must not become memory.
TEST_F(Engine, Realloc_SparseBlocks_UntouchedPagesTakeNoMemory) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer's own memory follows each read";
  constexpr std::size_t kBlocks = 400, kFrom = 200 * 1024, kTo = 500 * 1024;
  const auto resident_mib = [] { return test::own_memory().resident / kMiB; };
  std::vector<char*> blocks(kBlocks);
  const std::size_t before = resident_mib();
  for (char*& block : blocks) {
    block = static_cast<char*>(allocate(kFrom));
    block[0] = 1;
    block[kFrom / 2 + 5] = 2;
  }
  for (char*& block : blocks) {
    block = static_cast<char*>(reallocate(block, kTo));
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(block[0] == 1 && block[kFrom / 2 + 5] == 2 && block[kFrom / 2] == 0);
  }
  EXPECT_LE(resident_mib(), before + 16) << "of 200 MiB";
  for (char* block : blocks) deallocate(block);
}

}  // namespace
}  // namespace freehold::alloc
