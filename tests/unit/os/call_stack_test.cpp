// SPDX-License-Identifier: MIT
// Call stacks during forks and the loading of libraries; frame_rules_test.cpp compares them with the unwinder's.
#include "freehold/os/call_stack.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.hpp"

namespace freehold::os {
namespace {

class CallStack : public testing::Test {
 protected:
  void SetUp() override {
    if (!prepare_call_stacks()) GTEST_SKIP() << "no unwinder";
  }
};

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

// Libraries come and go, with the loader's locks held, while others unwind.
TEST_F(CallStack, LibrariesAreLoadedAndUnloaded_CapturesGoOn) {
  std::atomic<bool> done{false};
  std::thread loads([&] {
    for (int i = 0; i < 50; ++i)
      if (void* const library = ::dlopen("libutil.so.1", RTLD_NOW); library != nullptr) ::dlclose(library);
    done = true;
  });
  void* first[64];
  const unsigned depth = capture_call_stack(first, 64, 0);
  do {
    void* addresses[64];
    ASSERT_EQ(capture_call_stack(addresses, 64, 0), depth);
    ASSERT_TRUE(std::equal(first + 1, first + depth, addresses + 1)) << "the callers are the same";
  } while (!done);
  loads.join();
}

}  // namespace
}  // namespace freehold::os
