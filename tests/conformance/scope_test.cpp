// SPDX-License-Identifier: MIT
// freehold::HeapScope: plain code's blocks in private heaps.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <coroutine>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "freehold/count.hpp"
#include "freehold/heap_scope.hpp"
#include "freehold/malloc.h"
#include "freehold/os/system_call.hpp"
#include "tests/support/c_api.hpp"
#include "tests/support/emulated.hpp"
#include "tests/support/inside.hpp"

namespace freehold {
namespace {

using heap::HeapStats;
using heap::HeldBlocks;

[[nodiscard]] void* block_of(std::size_t bytes) { return test::opaque(std::malloc)(bytes); }
[[nodiscard]] bool is_checked() {
  const char* const mode = std::getenv("FREEHOLD_CHECK");
  return mode != nullptr && mode[0] == '1';
}
[[nodiscard]] std::uint64_t live(PrivateHeap& heap) { return heap.stats().live_objects; }
// Blocks that are in use of a heap that has ended; -1: no heap of this name.
[[nodiscard]] std::int64_t left_of(const std::string& name) {
  std::int64_t blocks = -1;
  heap::for_each_heap([&](const HeapStats& stats) {
    if (stats.has_ended && name == stats.name) blocks = static_cast<std::int64_t>(stats.live_objects);
  });
  return blocks;
}

TEST(HeapScope, EveryWayToABlock_ComesFromTheHeap) {
  PrivateHeap heap({.name = "ways"});
  std::vector<void*> blocks;
  blocks.reserve(16);
  void* posix = nullptr;
  {
    const HeapScope scope(heap);
    for (const std::size_t bytes : {0UL, 1UL, 100UL, 1024UL, 2000UL, 30'000UL, 40'000UL, 3UL << 20})
      blocks.push_back(block_of(bytes));
    blocks.push_back(std::calloc(1, 100));
    blocks.push_back(std::calloc(1, 1 << 20));
    blocks.push_back(strdup("a text"));
    blocks.push_back(std::aligned_alloc(4096, 100));
    blocks.push_back(std::aligned_alloc(1 << 17, 1 << 18));
    ASSERT_EQ(posix_memalign(&posix, 512, 100), 0);
    blocks.push_back(posix);
    blocks.push_back(std::realloc(nullptr, 70));
  }
  EXPECT_EQ(live(heap), blocks.size());
  EXPECT_EQ(static_cast<char*>(blocks[9])[(1 << 20) - 1], 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks[12]) % (1 << 17), 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(posix) % 512, 0U);
  EXPECT_GE(malloc_usable_size(blocks[7]), 3U << 20);
  EXPECT_GE(malloc_usable_size(blocks[2]), 100U);
  for (void* const block : blocks) std::free(block);
  EXPECT_EQ(live(heap), 0U);
  EXPECT_GE(heap.stats().peak_bytes, 4U << 20);
  heap::Inside::check_invariants(heap);
}

TEST(HeapScope, OperatorNew_IsOfTheHeapAndDeletedAnywhere) {
  struct alignas(64) Wide {
    char bytes[64];
  };
  PrivateHeap heap;
  std::unique_ptr<std::string> text;
  std::unique_ptr<Wide> wide;
  std::unique_ptr<int[]> numbers;
  {
    const HeapScope scope(heap);
    text = std::make_unique<std::string>(100, 'x');
    wide = std::make_unique<Wide>();
    numbers = std::make_unique<int[]>(1000);
  }
  EXPECT_EQ(live(heap), 4U);
  text->append(1000, 'y');  // out of the scope: the block that grows leaves the heap
  EXPECT_EQ(live(heap), 3U);
  std::thread([&] { text.reset(), wide.reset(), numbers.reset(); }).join();
  EXPECT_EQ(live(heap), 0U);
}

TEST(HeapScope, Nested_AndOfNoHeap) {
  PrivateHeap outer, inner;
  EXPECT_EQ(HeapScope::current(), nullptr);
  void *of_outer, *of_inner, *of_none, *again;
  {
    const HeapScope first(outer);
    of_outer = block_of(10);
    EXPECT_EQ(HeapScope::current(), &outer);
    {
      const HeapScope second(inner);
      of_inner = block_of(10);
      const HeapScope third(nullptr);
      EXPECT_EQ(HeapScope::current(), nullptr);
      of_none = block_of(10);
    }
    EXPECT_EQ(HeapScope::current(), &outer);
    again = block_of(10);
  }
  EXPECT_EQ(live(outer), 2U);
  EXPECT_EQ(live(inner), 1U);
  for (void* const block : {of_outer, of_inner, of_none, again}) std::free(block);
  EXPECT_EQ(live(outer) + live(inner), 0U);
  PrivateHeap third;  // what a heap itself takes is of no scope
  const HeapScope scope(outer);
  third.deallocate(third.allocate(10));
  EXPECT_EQ(live(outer), 0U);
}

TEST(HeapScope, Realloc_StaysOrGoesWhereANewBlockWouldBe) {
  PrivateHeap heap, other;
  char *grows, *stays, *plain = static_cast<char*>(block_of(100));
  std::strcpy(plain, "plain");
  {
    const HeapScope scope(heap);
    grows = strdup("grows");
    stays = static_cast<char*>(block_of(1000));
    plain = static_cast<char*>(std::realloc(plain, 50'000));  // into the heap
  }
  EXPECT_STREQ(plain, "plain");
  EXPECT_EQ(live(heap), 3U);
  const auto place = reinterpret_cast<std::uintptr_t>(stays);
  stays = static_cast<char*>(std::realloc(stays, 1001));
  const std::size_t moved = is_checked() ? 1 : 0;  // there every block moves
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(stays) != place, is_checked());
  {
    const HeapScope scope(other);
    grows = static_cast<char*>(std::realloc(grows, 5000));
  }
  EXPECT_STREQ(grows, "grows");
  EXPECT_EQ(live(heap), 2U - moved);
  EXPECT_EQ(live(other), 1U);
  plain = static_cast<char*>(std::realloc(plain, 200'000));  // out of it
  EXPECT_STREQ(plain, "plain");
  EXPECT_EQ(live(heap), 1U - moved);
  for (void* const block : {grows, stays, plain}) std::free(block);
  EXPECT_EQ(live(heap) + live(other), 0U);
}

TEST(HeapScope, AtTheLimit_ThisScopeAloneGetsNothing) {
  PrivateHeap heap({.name = "small", .limit_bytes = 1 << 20});
  {
    const HeapScope scope(heap);
    errno = 0;
    EXPECT_EQ(block_of(2 << 20), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_THROW((void)test::opaque(static_cast<void* (*)(std::size_t)>(::operator new))(2 << 20), std::bad_alloc);
    const HeapScope none(nullptr);
    std::free(block_of(2 << 20));
  }
  void* const block = block_of(2 << 20);
  EXPECT_NE(block, nullptr);
  std::free(block);
}

TEST(HeapScope, ReleaseAll_RefusesWithTheCountAndEndsWhenAsked) {
  PrivateHeap heap;
  EXPECT_NE(heap.allocate(10), nullptr);
  EXPECT_EQ(heap.release_all(), 0U);  // no scope has used it
  {
    const HeapScope scope(heap);
    for (int i = 0; i < 100; ++i) ASSERT_NE(block_of(1000), nullptr);
  }
  EXPECT_EQ(heap.release_all(), 100U);
  EXPECT_EQ(live(heap), 100U);
  EXPECT_EQ(heap.release_all(HeldBlocks::kEnd), 0U);
  EXPECT_EQ(live(heap), 0U);
  void* block;
  {
    const HeapScope scope(heap);
    block = block_of(1000);
  }
  EXPECT_EQ(heap.release_all(), 1U);
  std::free(block);
  EXPECT_EQ(heap.release_all(), 0U);
}

// Checked mode says who allocated what holds the heap, and who entered the scope in which it ends.
TEST(HeapScope, InCheckedMode_ReportsHaveStacks) {
  if (!is_checked()) GTEST_SKIP() << "only with FREEHOLD_CHECK=1";
  std::optional<PrivateHeap> heap(std::in_place);
  const auto report_of = [](const auto& call) {
    testing::internal::CaptureStderr();
    call();
    return testing::internal::GetCapturedStderr();
  };
  void* block;
  {
    const HeapScope scope(*heap);
    block = block_of(1000);
  }
  const std::string refused = report_of([&] { EXPECT_EQ(heap->release_all(), 1U); });
  EXPECT_NE(refused.find("release_all refused: blocks of plain code"), std::string::npos) << refused;
  EXPECT_NE(refused.find("conformance_scope"), std::string::npos) << refused;  // a stack's line
  std::free(block);
  const HeapScope scope(*heap);
  const std::string ends = report_of([&] { heap.reset(); });
  EXPECT_NE(ends.find("ends in a scope"), std::string::npos) << ends;
  EXPECT_NE(ends.find("conformance_scope"), std::string::npos) << ends;
}

TEST(HeapScope, AHeapThatEndsBeforeItsBlocks_GoesWithTheLastOfThem) {
  std::vector<char*> blocks(1001);
  {
    PrivateHeap heap({.name = "short-lived"});
    const HeapScope scope(heap);
    for (char*& block : blocks) block = strdup("a text that lives longer than its heap");
    std::free(blocks.back());
    blocks.back() = static_cast<char*>(block_of(1 << 20));
  }
  EXPECT_EQ(left_of("short-lived"), is_checked() ? -1 : 1001);  // of ended heaps checked mode has no figures
  char* const moved = static_cast<char*>(std::realloc(blocks.front(), 10'000));
  EXPECT_STREQ(moved, "a text that lives longer than its heap");
  EXPECT_GE(malloc_usable_size(blocks[1]), 39U);
  blocks.front() = moved;
  EXPECT_EQ(left_of("short-lived"), is_checked() ? -1 : 1000);
  std::thread([&] {
    for (char* const block : blocks) {
      EXPECT_TRUE(block == blocks.back() || block[0] == 'a');
      std::free(block);
    }
  }).join();
  EXPECT_EQ(left_of("short-lived"), -1);
}

void threads_free_while_heaps_end() {
  constexpr int kRounds = 300, kBlocks = 200;
  std::atomic<char*> mailbox[kBlocks]{};
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      while (!ends.load())
        for (auto& place : mailbox)
          if (char* const block = place.exchange(nullptr)) {
            EXPECT_EQ(block[0], 'x');
            std::free(block);
          }
    });
  for (int round = 0; round < kRounds; ++round) {
    PrivateHeap heap({.name = "busy end"});
    const HeapScope scope(heap);
    for (auto& place : mailbox) {
      auto* const block = static_cast<char*>(block_of(round % 7 == 0 ? 40'000 : 700));
      block[0] = 'x';
      if (char* const former = place.exchange(block)) std::free(former);
    }
  }
  ends.store(true);
  for (std::thread& thread : threads) thread.join();
  for (auto& place : mailbox) std::free(place.exchange(nullptr));
  EXPECT_EQ(left_of("busy end"), -1);
}
TEST(HeapScope, ThreadsFreeWhileHeapsEnd_NothingIsLost) { threads_free_while_heaps_end(); }

TEST(HeapScope, AnException_LeavesTheScope) {
  PrivateHeap heap;
  std::string message;
  try {
    const HeapScope scope(heap);
    throw std::runtime_error("a text that is too long to be without allocated memory");
  } catch (const std::exception& error) {
    EXPECT_EQ(HeapScope::current(), nullptr);
    EXPECT_GT(live(heap), 0U);
    message = error.what();
  }
  EXPECT_EQ(live(heap), 0U);
}

TEST(HeapScope, LongjmpOut_LeavesTheThreadInTheScopeUntilItLeaves) {
  static PrivateHeap heap;
  static std::jmp_buf to;
  if (setjmp(to) == 0) {
    freehold_scope_engine()->enter(heap::begin_scopes(heap, *freehold_scope_engine()));
    std::longjmp(to, 1);
  }
  EXPECT_EQ(HeapScope::current(), &heap);
  freehold_scope_engine()->leave();
  EXPECT_EQ(HeapScope::current(), nullptr);
}

TEST(HeapScope, AThreadThatEndsInAScope_LeavesIt) {
  PrivateHeap heap;
  static PrivateHeap* in;
  in = &heap;
  struct Late {
    std::string* text = nullptr;
    ~Late() { delete text; }
  };
  std::thread([] {
    static thread_local Late late;  // ends after the scope
    const HeapScope scope(*in);
    late.text = new std::string(100, 'x');
  }).join();
  EXPECT_EQ(live(heap), 0U);
  pthread_t thread;
  const auto ends = [](void*) -> void* {
    freehold_scope_engine()->enter(heap::begin_scopes(*in, *freehold_scope_engine()));
    std::free(block_of(100));
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, nullptr, ends, nullptr), 0);
  pthread_join(thread, nullptr);
  EXPECT_EQ(live(heap), 0U);
}

TEST(HeapScope, AChildOfFork_HasTheScopeAndTheHeap) {
  PrivateHeap heap;
  std::atomic<bool> ends{false};
  std::thread other([&] {
    const HeapScope scope(heap);
    while (!ends.load()) std::free(block_of(50));
  });
  for (int i = 0; i < 20; ++i) {
    const HeapScope scope(heap);
    void* const block = block_of(100);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::free(block);
      void* const more = block_of(70'000);
      const bool ok = more != nullptr && HeapScope::current() == &heap;
      std::free(more);
      _exit(ok ? 0 : 1);
    }
    int status = 1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    std::free(block);
  }
  ends.store(true);
  other.join();
  EXPECT_EQ(live(heap), 0U);
}

// In a program of one thread, at any moment: the death test's process has one.
void fork_from_handlers() {
  static PrivateHeap heap;
  static std::atomic<int> forks{0}, failures{0};
  (void)std::signal(SIGALRM, [](int) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) failures.fetch_add(1);
    forks.fetch_add(1);
  });
  const HeapScope scope(heap);
  for (int n = 0; n < 100; ++n) {
    const itimerval soon{{0, 0}, {0, 100 + 13 * n}};
    setitimer(ITIMER_REAL, &soon, nullptr);
    while (forks.load() == n) std::free(block_of(static_cast<std::size_t>(n) * 400));
  }
  std::_Exit(failures.load() == 0 ? 0 : 1);
}
TEST(HeapScopeDeathTest, AHandlerOfSignalsForksInAScope_BothGoOn) {
  EXPECT_EXIT(fork_from_handlers(), testing::ExitedWithCode(0), "");
}

// Threads keep freed blocks, and slots for their open scopes. All figures are exact nevertheless.
void threads_live_on() {
  PrivateHeap heap({.name = "kept", .limit_bytes = 1 << 20});
  std::vector<void*> blocks;
  blocks.reserve(20'000);
  const auto fill = [&] {
    const HeapScope scope(heap);
    blocks.clear();
    for (void* block; (block = block_of(100)) != nullptr;) blocks.push_back(block);
  };
  fill();
  const std::size_t most = blocks.size();
  EXPECT_EQ(live(heap), most);
  std::barrier step(2);
  std::thread other([&] {
    for (void* const block : blocks) std::free(block);
    step.arrive_and_wait();
    step.arrive_and_wait();
    for (void* const block : blocks) std::free(block);
    {
      const HeapScope scope(heap);
      for (int i = 0; i < 100; ++i) std::free(block_of(static_cast<std::size_t>(i) * 10));
      step.arrive_and_wait();  // in the scope, and idle
      step.arrive_and_wait();
    }
  });
  step.arrive_and_wait();
  EXPECT_EQ(live(heap), 0U);
  EXPECT_EQ(heap.stats().live_bytes, 0U);
  fill();  // although the other thread lives and freed them
  EXPECT_EQ(blocks.size(), most);
  step.arrive_and_wait();
  step.arrive_and_wait();
  EXPECT_EQ(live(heap), 0U);
  EXPECT_EQ(heap.stats().live_bytes, 0U);
  step.arrive_and_wait();
  other.join();
  EXPECT_EQ(heap.release_all(), 0U);
  EXPECT_EQ(live(heap), 0U);
  heap::Inside::check_invariants(heap);
}
TEST(HeapScope, ThreadsThatLiveOn_TheirFreedBlocksAreFree) { threads_live_on(); }

// A filter of system calls refuses the fence of other threads. Freehold hears of one that libc's functions install.
void refuse_membarrier(bool is_told) {
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{std::size(program), program};
  std::free(block_of(100));
  const long error = is_told ? prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) | prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)
                             : os::system_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0) |
                                   os::system_call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
  if (error != 0 || syscall(SYS_membarrier, 0, 0, 0) == 0) std::_Exit(2);
}
TEST(HeapScopeDeathTest, WithoutMembarrier_NothingIsLostAndWhereThatIsToldFiguresAreExact) {
  FREEHOLD_SKIP_IF_EMULATED("it has no filters of system calls");
  for (const bool is_told : {true, false})
    EXPECT_EXIT(
        {
          refuse_membarrier(is_told);
          threads_free_while_heaps_end();
          if (is_told) threads_live_on();
          std::_Exit(testing::Test::HasFailure() ? 1 : 0);
        },
        testing::ExitedWithCode(0), "");
}

TEST(HeapScope, AThreadThatWaitsForRoom_IsWokenByAPlainFree) {
  PrivateHeap heap({.name = "waits", .limit_bytes = 1 << 20, .when_limited = heap::WhenLimited::kWait});
  std::vector<void*> blocks;
  blocks.reserve(16);
  void* waited = nullptr;
  std::barrier is_full(2);
  std::thread waiter([&] {
    const HeapScope scope(heap);
    while (heap.stats().used_bytes < (7 << 17)) blocks.push_back(block_of(100'000));
    is_full.arrive_and_wait();
    waited = block_of(500'000);
  });
  is_full.arrive_and_wait();
  for (void* const block : blocks) std::free(block);
  waiter.join();
  std::free(waited);
  EXPECT_EQ(live(heap), 0U);
}

// The scopes go on, of no heap.
TEST(HeapScope, AHeapThatEndsInOpenScopes_NothingIsLost) {
  void *before, *after, *of_other = nullptr;
  std::barrier step(2);
  std::optional<PrivateHeap> heap(std::in_place, heap::HeapOptions{.name = "ends first"});
  std::thread other([&] {
    const HeapScope scope(*heap);
    for (int i = 0; i < 50; ++i) std::free(block_of(100));
    step.arrive_and_wait();
    step.arrive_and_wait();
    of_other = std::realloc(block_of(100), 2000);
    EXPECT_EQ(HeapScope::current(), nullptr);
    std::free(block_of(5000));
  });
  step.arrive_and_wait();
  {
    const HeapScope scope(*heap);
    before = block_of(100);
    heap.reset();
    EXPECT_EQ(HeapScope::current(), nullptr);
    after = block_of(100);
    EXPECT_NE(after, nullptr);
  }
  step.arrive_and_wait();
  other.join();
  for (void* const block : {before, after, of_other}) std::free(block);
  EXPECT_EQ(left_of("ends first"), -1);
}

// Libraries come and go: what their constructors allocated in a scope, their destructors free out of it.
TEST(HeapScope, ALibraryThatIsUnloaded_FreesItsBlocksOutOfTheScope) {
  PrivateHeap heap;
  void* library;
  {
    const HeapScope scope(heap);
    library = dlopen(FREEHOLD_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
  }
  const std::uint64_t before = live(heap);
  EXPECT_GT(before, 0U);
  EXPECT_EQ(dlclose(library), 0);
  EXPECT_LT(live(heap), before);
}

// A task takes its heap along: to a pool's thread, and over a coroutine's suspension.
TEST(HeapScope, TasksOfAPoolsThreads_CarryTheirHeaps) {
  constexpr std::size_t kTasks = 200;
  PrivateHeap heaps[2];
  std::vector<std::function<void()>> tasks(kTasks);
  for (std::size_t i = 0; i < kTasks; ++i) {
    const HeapScope scope(heaps[i % 2]);
    tasks[i] = [carried = HeapScope::current(), text = std::string()]() mutable {
      const HeapScope of_task(carried);
      text.assign(100, 'x');
    };
  }
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> pool;
  for (int t = 0; t < 2; ++t)
    pool.emplace_back([&] {
      for (std::size_t i; (i = next.fetch_add(1)) < kTasks;) tasks[i]();
    });
  for (std::thread& thread : pool) thread.join();
  for (PrivateHeap& heap : heaps) EXPECT_EQ(live(heap), kTasks);  // each task and its text
  tasks.clear();
  for (PrivateHeap& heap : heaps) EXPECT_EQ(live(heap), 0U);
}

struct Coroutine {
  struct promise_type {
    Coroutine get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    static std::suspend_always initial_suspend() noexcept { return {}; }
    static std::suspend_always final_suspend() noexcept { return {}; }
    static void return_void() noexcept {}
    static void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};
// Suspends out of the scope, and enters it again wherever it goes on.
Coroutine parse(PrivateHeap* heap, std::string* first, std::string* second) {
  {
    const HeapScope scope(heap);
    first->assign(100, 'x');
  }
  co_await std::suspend_always();
  const HeapScope scope(heap);
  second->assign(100, 'y');
}
TEST(HeapScope, ACoroutine_EntersItsHeapWhereverItGoesOn) {
  PrivateHeap heap;
  {
    std::string first, second;
    const Coroutine coroutine = parse(&heap, &first, &second);
    coroutine.handle.resume();
    EXPECT_EQ(live(heap), 1U);
    std::thread([&] { coroutine.handle.resume(); }).join();
    EXPECT_EQ(live(heap), 2U);
    coroutine.handle.destroy();
  }
  EXPECT_EQ(live(heap), 0U);
}

TEST(HeapScope, Counts_SeeWhatAScopeAllocates) {
  PrivateHeap heap;
  AllocationCount outer;
  void* block;
  {
    const HeapScope scope(heap);
    AllocationCount inner;
    block = block_of(100);
    block = std::realloc(block, 1000);
    EXPECT_EQ(inner.end().allocations, 2U);
  }
  std::free(block);
  const AllocationCounts counts = outer.end();
  EXPECT_EQ(counts.allocations, 2U);
  EXPECT_EQ(counts.frees, 2U);
  EXPECT_EQ(counts.allocated_bytes, counts.freed_bytes);
}

TEST(HeapScope, Trim_GivesTheHeapsFreeMemoryBack) {
  PrivateHeap heap;
  {
    const HeapScope scope(heap);
    std::vector<void*> blocks(2000);
    for (void*& block : blocks) block = block_of(1000);
    for (void* const block : blocks) std::free(block);
  }
  if (!is_checked()) {  // where each block is apart
    EXPECT_GT(heap.stats().held_bytes, 1U << 20);
    EXPECT_EQ(malloc_trim(0), 1);
  }
  EXPECT_LE(heap.stats().held_bytes, 192U << 10);
}

TEST(HeapScope, ThreadsInOneHeap_ExactFiguresAfterwards) {
  PrivateHeap heap;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&heap, i] {
      std::vector<void*> kept;
      kept.reserve(1000);
      {
        const HeapScope scope(heap);
        for (int n = 0; n < 20'000; ++n) {
          void* const block = block_of(static_cast<std::size_t>(n % 3000));
          n % 20 == i ? kept.push_back(block) : std::free(block);
        }
      }
      EXPECT_EQ(kept.size(), 1000U);
      for (void* const block : kept) std::free(block);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(live(heap), 0U);
  EXPECT_EQ(heap.stats().live_bytes, 0U);
  heap::Inside::check_invariants(heap);
}

}  // namespace
}  // namespace freehold
