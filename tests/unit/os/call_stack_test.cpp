// SPDX-License-Identifier: MIT
// Call stacks. The oracle: functions of this file that call each other, and where they return to.
#include "freehold/os/call_stack.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace freehold::os {
// Not of this file alone, for which a compiler could make copies of them.
namespace call_stack_test {

constexpr unsigned kDepth = 32;  // a sanitizer has calls of its own between

struct Stack {
  void* addresses[kDepth] = {};
  unsigned count = 0;
};

// Two functions that stay frames of their own: the result is used after the call.
[[gnu::noinline]] unsigned inner(Stack& stack, unsigned skip) {
  stack.count = capture_call_stack(stack.addresses, kDepth, skip);
  return stack.count;
}
[[gnu::noinline]] unsigned outer(Stack& stack, unsigned skip) { return inner(stack, skip) + 1; }
[[gnu::noinline]] int raises() { return ::raise(SIGUSR1) + 1; }

}  // namespace call_stack_test

namespace {

using namespace call_stack_test;

// Whether the address lies in the first bytes of a function, which are few.
template <class F>
bool lies_in(const void* address, F* function) {
  const auto at = reinterpret_cast<std::uintptr_t>(address), begin = reinterpret_cast<std::uintptr_t>(function);
  return at >= begin && at < begin + 256;
}

class CallStack : public testing::Test {
 protected:
  void SetUp() override {
    if (!prepare_call_stacks()) GTEST_SKIP() << "no unwinder";
  }
};

TEST_F(CallStack, TwoFunctions_TheInnermostCallComesFirst) {
  Stack stack;
  EXPECT_GE(outer(stack, 0), 4U);
  EXPECT_TRUE(lies_in(stack.addresses[0], inner));
  EXPECT_TRUE(lies_in(stack.addresses[1], outer));
}

Stack g_in_handler;
void capture_in_handler(int) { (void)outer(g_in_handler, 0); }

TEST_F(CallStack, InASignalsHandler_ShowsTheInterruptedFunction) {
  struct sigaction action{};
  action.sa_handler = capture_in_handler;
  struct sigaction former{};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &former), 0);
  EXPECT_EQ(raises(), 1);
  ::sigaction(SIGUSR1, &former, nullptr);
  const Stack& stack = g_in_handler;
  EXPECT_TRUE(std::any_of(stack.addresses, stack.addresses + stack.count, [](void* a) { return lies_in(a, raises); }));
}

TEST_F(CallStack, ManyThreadsAndForks_EveryCaptureIsTheSame) {
  std::atomic<unsigned> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        Stack stack;
        (void)outer(stack, 0);
        if (!lies_in(stack.addresses[0], inner) || !lies_in(stack.addresses[1], outer)) ++wrong;
      }
    });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      Stack stack;
      (void)outer(stack, 0);
      ::_exit(lies_in(stack.addresses[1], outer) ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0U);
}

// Libraries come and go, with the loader's locks held, while others unwind.
// Threads of the child have the addresses of threads that captured when it was made, and have not come along.
TEST_F(CallStack, ForkAmidCaptures_TheChildsThreadsCapture) {
  constexpr int kThreads = 8;
  for (int round = 0; round < 10; ++round) {
    std::atomic<bool> is_over{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&] {
        void* addresses[64];
        while (!is_over) (void)capture_call_stack(addresses, 64, 0);
      });
    ::usleep(3'000);
    const pid_t child = ::fork();
    if (child == 0) {
      std::atomic<int> up{0}, without{0};
      std::vector<std::thread> others;
      for (int i = 0; i < kThreads; ++i)
        others.emplace_back([&] {
          ++up;
          while (up < kThreads) std::this_thread::yield();
          void* addresses[64];
          bool has_stack = false;
          for (int k = 0; k < 1'000 && !has_stack; ++k) has_stack = capture_call_stack(addresses, 64, 0) != 0;
          without += has_stack ? 0 : 1;
        });
      for (std::thread& other : others) other.join();
      ::_exit(without);
    }
    is_over = true;
    for (std::thread& thread : threads) thread.join();
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 0) << "threads without any stack";
  }
}

TEST_F(CallStack, LibrariesAreLoadedAndUnloaded_CapturesGoOn) {
  std::atomic<bool> done{false};
  std::thread loads([&] {
    for (int i = 0; i < 50; ++i)
      if (void* const library = ::dlopen("libutil.so.1", RTLD_NOW); library != nullptr) ::dlclose(library);
    done = true;
  });
  unsigned captures = 0;
  do {
    Stack stack;
    (void)outer(stack, 0);
    ASSERT_TRUE(lies_in(stack.addresses[1], outer));
    ++captures;
  } while (!done);
  loads.join();
  EXPECT_GT(captures, 0U);
}

}  // namespace
}  // namespace freehold::os
