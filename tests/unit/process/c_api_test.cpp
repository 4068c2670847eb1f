// SPDX-License-Identifier: MIT
// The C API as another language sees it: a shared library that is loaded, and functions by name.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "freehold/process.h"
#include "freehold/process.hpp"

namespace {

#define FREEHOLD_LOAD(name) decltype(&::name) const name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name))

struct Api {
  explicit Api(const char* path = FREEHOLD_PROCESS_LIBRARY) : library(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {}
  void* library;
  FREEHOLD_LOAD(freehold_pool_open);
  FREEHOLD_LOAD(freehold_pool_close);
  FREEHOLD_LOAD(freehold_pool_call);
  FREEHOLD_LOAD(freehold_pool_submit);
  FREEHOLD_LOAD(freehold_task_wait);
  FREEHOLD_LOAD(freehold_task_get);
  FREEHOLD_LOAD(freehold_task_cancel);
  FREEHOLD_LOAD(freehold_pool_status);
  FREEHOLD_LOAD(freehold_pool_error);
  FREEHOLD_LOAD(freehold_pool_submit_with);
  FREEHOLD_LOAD(freehold_pool_drain);
  FREEHOLD_LOAD(freehold_pool_metrics);
  FREEHOLD_LOAD(freehold_task_kill);
  FREEHOLD_LOAD(freehold_task_then);
  FREEHOLD_LOAD(freehold_pool_attach);
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

TEST_F(ProcessCApi_Unit, Callback_CalledOnceWithOutputOrReason) {
  std::string ends;
  const auto note = [](void* context, int result, int detail, const void* output, std::size_t bytes) {
    *static_cast<std::string*>(context) += std::to_string(result) + " " + std::to_string(detail) + " " +
                                           std::string(static_cast<const char*>(output), bytes) + "\n";
  };
  api_.freehold_task_then(submit("echo hello"), note, &ends);
  EXPECT_EQ(call("echo x"), FREEHOLD_OK);
  api_.freehold_task_then(submit("fail 9"), note, &ends);
  EXPECT_EQ(api_.freehold_pool_drain(pool_, 10'000), 1);
  api_.freehold_pool_close(pool_);
  pool_ = nullptr;
  EXPECT_EQ(ends, "0 0 hello\n5 9 \n");
}
TEST_F(ProcessCApi_Unit, AttachedByName_TasksRunUntilTheServerIsGone) {
  const std::string name = "c-" + std::to_string(::getpid());
  char error[256] = "";
  EXPECT_EQ(api_.freehold_pool_attach(name.c_str(), error, sizeof error), nullptr);
  EXPECT_NE(std::string(error).find("no process serves"), std::string::npos) << error;
  EXPECT_EQ(api_.freehold_pool_attach("a b", error, sizeof error), nullptr);
  EXPECT_NE(std::string(error).find("is no name"), std::string::npos) << error;

  freehold::ProcessPoolOptions how;
  how.component = FREEHOLD_TEST_COMPONENT;
  how.worker_program = FREEHOLD_WORKER_PROGRAM;
  how.max_workers = 1;
  std::optional<freehold::ProcessPool> server(std::in_place, how);
  const freehold::process::NamedSocket socket(name);
  ASSERT_TRUE(socket.ok()) << socket.error();
  std::thread accepting([&] {
    int peer = -1;
    while ((peer = socket.accept()) < 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    server->serve(peer);
  });
  freehold_pool* const attached = api_.freehold_pool_attach(name.c_str(), error, sizeof error);
  accepting.join();
  ASSERT_NE(attached, nullptr) << error;
  const auto call = [&](const std::string& input) {
    return api_.freehold_pool_call(attached, input.data(), input.size(), output_, sizeof output_, &bytes_, &detail_);
  };
  EXPECT_EQ(call("echo hello"), FREEHOLD_OK);
  EXPECT_EQ(output(), "hello");
  EXPECT_EQ(call("fail 9"), FREEHOLD_COMPONENT);
  freehold_task* slow = nullptr;
  EXPECT_EQ(api_.freehold_pool_submit(attached, "sleep 100", 9, 0, &slow), FREEHOLD_OK);
  EXPECT_EQ(api_.freehold_pool_drain(attached, 1), 0);
  EXPECT_EQ(call("echo x"), FREEHOLD_NO_WORKER) << "it takes no more tasks";
  EXPECT_EQ(api_.freehold_pool_drain(attached, 10'000), 1);
  EXPECT_EQ(api_.freehold_task_get(slow, output_, sizeof output_, &bytes_, &detail_), FREEHOLD_OK);
  char text[512];
  EXPECT_GT(api_.freehold_pool_metrics(attached, 'j', text, sizeof text), 10u);
  EXPECT_NE(std::string(text).find("\"tasks_failed\":1"), std::string::npos) << text;
  EXPECT_EQ(api_.freehold_pool_error(attached, text, sizeof text), 0u);
  server.reset();
  EXPECT_EQ(call("echo x"), FREEHOLD_NO_WORKER);
  EXPECT_GT(api_.freehold_pool_error(attached, text, sizeof text), 0u);
  EXPECT_EQ(api_.freehold_pool_drain(attached, 1000), 1);
  api_.freehold_pool_close(attached);
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
TEST_F(ProcessCApi_Unit, TaskOptionsDrainAndMetrics) {
  freehold_task* task = nullptr;
  freehold_task_options how{};
  how.size = sizeof how;
  how.limit_ms = 50;
  how.attempts = 1;
  EXPECT_EQ(api_.freehold_pool_submit_with(pool_, "hang", 4, &how, &task), FREEHOLD_OK);
  EXPECT_EQ(api_.freehold_task_get(task, output_, sizeof output_, &bytes_, &detail_), FREEHOLD_DEADLINE);
  EXPECT_EQ(detail_, 50);
  EXPECT_EQ(api_.freehold_pool_submit_with(pool_, "hang", 4, nullptr, &task), FREEHOLD_OK);
  api_.freehold_task_kill(task);
  EXPECT_EQ(call("echo x"), FREEHOLD_OK);
  freehold_task* const last = submit("sleep 20");
  EXPECT_EQ(api_.freehold_pool_drain(pool_, 10'000), 1);
  EXPECT_EQ(call("echo x"), FREEHOLD_NO_WORKER);
  EXPECT_EQ(api_.freehold_task_get(last, output_, sizeof output_, &bytes_, &detail_), FREEHOLD_OK);
  char text[4096];
  ASSERT_LT(api_.freehold_pool_metrics(pool_, 'j', text, sizeof text), sizeof text);
  EXPECT_NE(std::string(text).find("\"tasks_submitted\":4,"), std::string::npos) << text;
  ASSERT_LT(api_.freehold_pool_metrics(pool_, 'p', text, sizeof text), sizeof text);
  EXPECT_NE(std::string(text).find("\nfreehold_pool_workers_ended_total{reason=\"deadline\"} 1\n"), std::string::npos)
      << text;
}
TEST_F(ProcessCApi_Unit, OptionsOfThePool_EachIsPassedOn) {
  const std::string folder = testing::TempDir() + "freehold_c_options" + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  struct Lines {
    std::mutex lock;
    std::string text;
  } lines;
  const int codes[] = {7, 0};
  const char* const command[] = {FREEHOLD_WORKER_PROGRAM, FREEHOLD_TEST_COMPONENT, nullptr};
  freehold_pool_options options{};
  options.size = sizeof options;
  options.command = command;
  options.max_workers = 1;
  options.attempts = 1;
  options.idle_ms = 30;
  options.max_age_ms = 60'000;
  options.load_limit_ms = 60'000;
  options.retry_codes = codes;
  options.retry_attempts = 3;
  options.keep_standard_error = 1;
  options.log_context = &lines;
  options.log = [](void* context, const char* line) {
    auto& to = *static_cast<Lines*>(context);
    const std::lock_guard guard(to.lock);
    to.text += std::string(line) + "\n";
  };
  char error[256] = "";
  freehold_pool* pool = api_.freehold_pool_open(&options, error, sizeof error);
  ASSERT_NE(pool, nullptr) << error;
  const auto call = [&](const std::string& input) {
    return api_.freehold_pool_call(pool, input.data(), input.size(), output_, sizeof output_, &bytes_, &detail_);
  };
  EXPECT_EQ(call("refuse 7 " + folder + "/a"), FREEHOLD_OK) << "the third run";
  EXPECT_EQ(call("say out of luck"), FREEHOLD_EXIT);
  EXPECT_EQ(call("echo x"), FREEHOLD_OK);
  char text[4096];
  const auto ended_idle = [&] {
    static_cast<void>(api_.freehold_pool_metrics(pool, 'p', text, sizeof text));
    return std::string(text).find("freehold_pool_workers_ended_total{reason=\"idle\"} 1\n") != std::string::npos;
  };
  for (int i = 0; i < 2000 && !ended_idle(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(ended_idle()) << text;
  api_.freehold_pool_close(pool);
  EXPECT_NE(lines.text.find("it has failed; it said:\n"), std::string::npos) << lines.text;
  EXPECT_NE(lines.text.find("\nout of luck\n"), std::string::npos) << lines.text;

  for (const char* name : {"in", "out"}) std::filesystem::create_directory(folder + "/" + name);
  const std::string in = folder + "/in", out = folder + "/out";
  const char *const readable[] = {in.c_str(), FREEHOLD_TEST_COMPONENT, nullptr}, *const writable[] = {out.c_str(), nullptr};
  options.only_these_files = 1;
  options.readable = readable;
  options.writable = writable;
  pool = api_.freehold_pool_open(&options, error, sizeof error);
  ASSERT_NE(pool, nullptr) << error;
  if (call("write " + out + "/new") == FREEHOLD_OK) {  // else the kernel has no Landlock
    EXPECT_EQ(std::string(output_, bytes_), "0");
    EXPECT_EQ(call("write " + in + "/new"), FREEHOLD_OK);
    EXPECT_EQ(std::string(output_, bytes_), std::to_string(EACCES));
    EXPECT_EQ(call("read " + in), FREEHOLD_OK);
    EXPECT_EQ(std::string(output_, bytes_), "0");
  } else {
    EXPECT_GT(api_.freehold_pool_error(pool, text, sizeof text), 0u);
    EXPECT_NE(std::string(text).find("the kernel cannot confine it as asked"), std::string::npos) << text;
  }
  api_.freehold_pool_close(pool);
  std::filesystem::remove_all(folder);
}

// An installed prefix, whose library a program of another place loads: the worker program is found beside the library.
TEST(ProcessCApiInstalled_Unit, LibraryOfAPrefix_FindsItsWorker) {
  namespace fs = std::filesystem;
  const fs::path prefix = fs::path(testing::TempDir()) / ("freehold_prefix_" + std::to_string(::getpid()));
  for (const char* folder : {"lib", "lib/x86_64-linux-gnu"}) {
    fs::create_directories(prefix / folder);
    fs::create_directories(prefix / "bin");
    const fs::path library = prefix / folder / "libfreehold_process.so";
    fs::copy_file(FREEHOLD_PROCESS_LIBRARY, library);
    fs::copy_file(FREEHOLD_WORKER_PROGRAM, prefix / "bin/freehold-worker");
    const Api api(library.c_str());
    ASSERT_NE(api.library, nullptr) << dlerror();
    freehold_pool_options options{};
    options.size = sizeof options;
    options.component = FREEHOLD_TEST_COMPONENT;
    options.max_workers = 1;
    freehold_pool* const pool = api.freehold_pool_open(&options, nullptr, 0);
    ASSERT_NE(pool, nullptr);
    char output[64], error[200];
    std::size_t bytes = 0;
    const int code = api.freehold_pool_call(pool, "echo x", 6, output, sizeof output, &bytes, nullptr);
    EXPECT_EQ(code, FREEHOLD_OK) << (api.freehold_pool_error(pool, error, sizeof error), error);
    api.freehold_pool_close(pool);
    dlclose(api.library);
    fs::remove_all(prefix);
  }
}
TEST(ProcessCApiInstalled_Unit, NoWorkerProgram_ErrorAndLogSayWhy) {
  struct Lines {
    std::mutex lock;
    std::string text;
  } lines;
  const Api api;
  freehold_pool_options options{};
  options.size = sizeof options;
  options.component = FREEHOLD_TEST_COMPONENT;
  options.worker_program = "/nowhere/program";
  options.log_context = &lines;
  options.log = [](void* context, const char* line) {
    auto& to = *static_cast<Lines*>(context);
    const std::lock_guard guard(to.lock);
    to.text += std::string(line) + "\n";
  };
  freehold_pool* const pool = api.freehold_pool_open(&options, nullptr, 0);
  ASSERT_NE(pool, nullptr);
  std::size_t bytes = 0;
  EXPECT_EQ(api.freehold_pool_call(pool, "echo x", 6, nullptr, 0, &bytes, nullptr), FREEHOLD_NO_WORKER);
  char error[200];
  EXPECT_GT(api.freehold_pool_error(pool, error, sizeof error), 0u);
  EXPECT_NE(std::string(error).find("/nowhere/program cannot be started: No such file"), std::string::npos) << error;
  api.freehold_pool_close(pool);
  EXPECT_NE(lines.text.find("cannot be started: No such file"), std::string::npos) << lines.text;
}

}  // namespace
