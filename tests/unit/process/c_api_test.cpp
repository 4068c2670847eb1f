// The C API as another language sees it: a shared library that is loaded, and functions by name.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "freehold/process/freehold_process.h"

namespace {

#define FREEHOLD_LOAD(name) decltype(&::name) const name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name))

struct Api {
  void* library = dlopen(FREEHOLD_PROCESS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  FREEHOLD_LOAD(freehold_pool_open);
  FREEHOLD_LOAD(freehold_pool_close);
  FREEHOLD_LOAD(freehold_pool_call);
  FREEHOLD_LOAD(freehold_pool_submit);
  FREEHOLD_LOAD(freehold_task_wait);
  FREEHOLD_LOAD(freehold_task_get);
  FREEHOLD_LOAD(freehold_task_cancel);
  FREEHOLD_LOAD(freehold_pool_status);
};

class ProcessCApi_Unit : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(api_.library, nullptr) << dlerror();
    freehold_pool_options options{};
    options.size = sizeof options;
    options.component = FREEHOLD_TEST_COMPONENT;
    options.worker_program = FREEHOLD_WORKER_PROGRAM;
    options.max_workers = 1;
    options.entries = 2;
    options.max_input = options.max_output = 4096;
    options.attempts = 2;
    options.limit_ms = 10'000;
    char error[100];
    pool_ = api_.freehold_pool_open(&options, error, sizeof error);
    ASSERT_NE(pool_, nullptr) << error;
  }
  void TearDown() override { api_.freehold_pool_close(pool_); }
  int call(const std::string& input) {
    return api_.freehold_pool_call(pool_, input.data(), input.size(), output_, sizeof output_, &bytes_, &detail_);
  }
  freehold_task* submit(const std::string& input, std::uint64_t wait_ms = FREEHOLD_FOR_EVER) {
    freehold_task* task = nullptr;
    code_ = api_.freehold_pool_submit(pool_, input.data(), input.size(), wait_ms, &task);
    return task;
  }
  [[nodiscard]] std::string output() const { return {output_, bytes_}; }

  Api api_;
  freehold_pool* pool_ = nullptr;
  char output_[4096];
  std::size_t bytes_ = 0;
  int detail_ = 0, code_ = 0;
};

TEST_F(ProcessCApi_Unit, Call_OutputOrReason) {
  EXPECT_EQ(call("echo hello"), FREEHOLD_OK);
  EXPECT_EQ(output(), "hello");
  EXPECT_EQ(call("fail 42"), FREEHOLD_COMPONENT);
  EXPECT_EQ(detail_, 42);
  EXPECT_EQ(call("exit 3"), FREEHOLD_EXIT);
  EXPECT_EQ(detail_, 3);
  EXPECT_EQ(call(std::string(4097, 'x')), FREEHOLD_TOO_LARGE);
  char status[16];
  EXPECT_GT(api_.freehold_pool_status(pool_, status, sizeof status), sizeof status);
  EXPECT_EQ(std::strlen(status), sizeof status - 1);
}
TEST_F(ProcessCApi_Unit, SubmitWaitGet_SmallBufferKeepsTheTask) {
  freehold_task* const slow = submit("sleep 50");
  freehold_task* const next = submit("size 100");
  EXPECT_EQ(submit("echo x", 0), nullptr);
  EXPECT_EQ(code_, FREEHOLD_FULL);
  EXPECT_EQ(api_.freehold_task_wait(slow, 1), 0);
  EXPECT_EQ(api_.freehold_task_wait(slow, FREEHOLD_FOR_EVER), 1);
  api_.freehold_task_cancel(slow);
  EXPECT_EQ(api_.freehold_task_get(next, output_, 99, &bytes_, &detail_), FREEHOLD_OUTPUT_TOO_SMALL);
  EXPECT_EQ(bytes_, 100u);
  EXPECT_EQ(api_.freehold_task_get(next, output_, sizeof output_, &bytes_, nullptr), FREEHOLD_OK);
  EXPECT_EQ(output(), std::string(100, 'x'));
}
TEST_F(ProcessCApi_Unit, ManyThreads_EachItsOwnOutput) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int n = 0; n < 100; ++n) {
        const std::string text = std::to_string(t) + "/" + std::to_string(n), input = "echo " + text;
        char output[64];
        std::size_t bytes = 0;
        const int code = api_.freehold_pool_call(pool_, input.data(), input.size(), output, sizeof output, &bytes, nullptr);
        EXPECT_TRUE(code == FREEHOLD_OK && std::string(output, bytes) == text);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}
TEST_F(ProcessCApi_Unit, OlderCaller_ShorterOptions_NothingToRunIsSaid) {
  freehold_pool_options options{};
  options.size = offsetof(freehold_pool_options, component);
  options.component = FREEHOLD_TEST_COMPONENT;  // beyond what it says it knows
  char error[100];
  EXPECT_EQ(api_.freehold_pool_open(&options, error, sizeof error), nullptr);
  EXPECT_STREQ(error, "neither a component nor a command");
}

}  // namespace
