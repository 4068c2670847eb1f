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
#include <utility>
#include <vector>

#include "freehold/process.h"
#include "freehold/process.hpp"
#include "tests/support/folder.hpp"

namespace {

#define FREEHOLD_LOAD(name) decltype(&::name) const name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name))

struct Api {
  explicit Api(const char* path = FREEHOLD_PROCESS_LIBRARY) : library(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {}
  void* library;
  FREEHOLD_LOAD(freehold_process_pool_create);
  FREEHOLD_LOAD(freehold_process_pool_destroy);
  FREEHOLD_LOAD(freehold_process_pool_call);
  FREEHOLD_LOAD(freehold_process_pool_submit);
  FREEHOLD_LOAD(freehold_process_task_wait);
  FREEHOLD_LOAD(freehold_process_task_get);
  FREEHOLD_LOAD(freehold_process_task_cancel);
  FREEHOLD_LOAD(freehold_process_pool_stats);
  FREEHOLD_LOAD(freehold_process_pool_ok);
  FREEHOLD_LOAD(freehold_process_pool_error);
  FREEHOLD_LOAD(freehold_process_result_text);
  FREEHOLD_LOAD(freehold_process_pool_drain);
  FREEHOLD_LOAD(freehold_process_task_kill);
  FREEHOLD_LOAD(freehold_process_task_then);
  FREEHOLD_LOAD(freehold_process_pool_attach);
};

// A log.
struct Lines {
  std::mutex lock;
  std::string text;

  static void note(void* context, const char* line) {
    auto& to = *static_cast<Lines*>(context);
    const std::lock_guard guard(to.lock);
    to.text += std::string(line) + "\n";
  }
};

class ProcessCApi_Unit : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(api_.library, nullptr) << dlerror();
    freehold_process_pool_options_t options{};
    options.size = sizeof options;
    options.component = FREEHOLD_TEST_COMPONENT;
    options.worker_program = FREEHOLD_WORKER_PROGRAM;
    options.max_workers = 1;
    options.max_open_tasks = 2;
    options.max_input_bytes = options.max_output_bytes = 4096;
    options.max_attempts = 2;
    options.run_timeout_ms = 10'000;
    pool_ = api_.freehold_process_pool_create(&options);
    ASSERT_NE(pool_, nullptr);
    ASSERT_EQ(error(pool_), "");
  }
  void TearDown() override { api_.freehold_process_pool_destroy(pool_); }
  int call(const std::string& input) { return call_of(pool_, input); }
  int call_of(freehold_process_pool_t* pool, const std::string& input) {
    return api_.freehold_process_pool_call(pool, input.data(), input.size(), nullptr, output_, sizeof output_, &bytes_,
                                           &detail_);
  }
  freehold_process_task_t* submit(const std::string& input, std::uint64_t timeout_ms = FREEHOLD_NO_LIMIT) {
    freehold_process_task_t* task = nullptr;
    freehold_process_task_options_t how{};
    how.size = sizeof how;
    how.submit_timeout_ms = timeout_ms;
    code_ = api_.freehold_process_pool_submit(pool_, input.data(), input.size(), &how, &task);
    return task;
  }
  [[nodiscard]] std::string error(freehold_process_pool_t* pool) const {
    char text[256] = "";
    static_cast<void>(api_.freehold_process_pool_error(pool, text, sizeof text));
    return text;
  }
  [[nodiscard]] std::string output() const { return {output_, bytes_}; }

  Api api_;
  freehold_process_pool_t* pool_ = nullptr;
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
  api_.freehold_process_task_then(submit("echo hello"), note, &ends);
  EXPECT_EQ(call("echo x"), FREEHOLD_PROCESS_OK);
  api_.freehold_process_task_then(submit("fail 9"), note, &ends);
  EXPECT_EQ(api_.freehold_process_pool_drain(pool_, 10'000), 1);
  api_.freehold_process_pool_destroy(pool_);
  pool_ = nullptr;
  EXPECT_EQ(ends, "0 0 hello\n5 9 \n");
}
TEST_F(ProcessCApi_Unit, ResultText_WordsForEachResult_CutToFit) {
  const auto words = [&](int result) {
    char text[256] = "";
    const std::size_t length = api_.freehold_process_result_text(result, detail_, text, sizeof text);
    return std::string(text, length);
  };
  EXPECT_EQ(words(call("fail 9")), "the component returned 9");
  EXPECT_EQ(words(call(std::string(4097, 'x'))), "its input is longer than max_input_bytes");
  EXPECT_EQ(words(FREEHOLD_PROCESS_OUTPUT_TOO_SMALL), "its output is longer than the buffer");
  EXPECT_EQ(words(FREEHOLD_PROCESS_BAD_OPTIONS), "this version does not know its options");
  char text[4] = "";
  EXPECT_EQ(api_.freehold_process_result_text(FREEHOLD_PROCESS_CORRUPT, 0, text, sizeof text), 47u);
  EXPECT_STREQ(text, "a c");
}
TEST_F(ProcessCApi_Unit, AttachedByName_TasksRunUntilTheServerIsGone) {
  const std::string name = "c-" + std::to_string(::getpid());
  for (const auto& [absent, why] : {std::pair(name.c_str(), "no process serves"), std::pair("a b", "is no name")}) {
    freehold_process_pool_t* const none = api_.freehold_process_pool_attach(absent);
    EXPECT_EQ(api_.freehold_process_pool_ok(none), 0);
    EXPECT_NE(error(none).find(why), std::string::npos) << error(none);
    freehold_process_task_t* task = nullptr;
    EXPECT_EQ(api_.freehold_process_pool_submit(none, "x", 1, nullptr, &task), FREEHOLD_PROCESS_NO_WORKER);
    EXPECT_EQ(api_.freehold_process_pool_drain(none, 0), 1);
    api_.freehold_process_pool_destroy(none);
  }

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
  freehold_process_pool_t* const attached = api_.freehold_process_pool_attach(name.c_str());
  accepting.join();
  ASSERT_NE(attached, nullptr);
  EXPECT_EQ(api_.freehold_process_pool_ok(attached), 1) << error(attached);
  const auto call = [&](const std::string& input) { return call_of(attached, input); };
  EXPECT_EQ(call("echo hello"), FREEHOLD_PROCESS_OK);
  EXPECT_EQ(output(), "hello");
  EXPECT_EQ(call("fail 9"), FREEHOLD_PROCESS_COMPONENT);
  freehold_process_task_t* slow = nullptr;
  EXPECT_EQ(api_.freehold_process_pool_submit(attached, "sleep 100", 9, nullptr, &slow), FREEHOLD_PROCESS_OK);
  EXPECT_EQ(api_.freehold_process_pool_drain(attached, 1), 0);
  EXPECT_EQ(call("echo x"), FREEHOLD_PROCESS_NO_WORKER) << "it takes no more tasks";
  EXPECT_EQ(api_.freehold_process_pool_drain(attached, 10'000), 1);
  EXPECT_EQ(api_.freehold_process_task_get(slow, output_, sizeof output_, &bytes_, &detail_), FREEHOLD_PROCESS_OK);
  char text[512];
  EXPECT_GT(api_.freehold_process_pool_stats(attached, FREEHOLD_PROCESS_STATS_JSON, text, sizeof text), 10u);
  EXPECT_NE(std::string(text).find("\"tasks_failed\":1"), std::string::npos) << text;
  EXPECT_EQ(api_.freehold_process_pool_error(attached, text, sizeof text), 0u);
  server.reset();
  EXPECT_EQ(call("echo x"), FREEHOLD_PROCESS_NO_WORKER);
  EXPECT_GT(api_.freehold_process_pool_error(attached, text, sizeof text), 0u);
  EXPECT_EQ(api_.freehold_process_pool_drain(attached, 1000), 1);
  api_.freehold_process_pool_destroy(attached);
}
TEST_F(ProcessCApi_Unit, SubmitWaitGet_SmallBufferKeepsTheTask) {
  freehold_process_task_t* const slow = submit("sleep 50");
  freehold_process_task_t* const next = submit("size 100");
  EXPECT_EQ(submit("echo x", 0), nullptr);
  EXPECT_EQ(code_, FREEHOLD_PROCESS_FULL);
  EXPECT_EQ(api_.freehold_process_task_wait(slow, 1), 0);
  EXPECT_EQ(api_.freehold_process_task_wait(slow, FREEHOLD_NO_LIMIT), 1);
  api_.freehold_process_task_cancel(slow);
  EXPECT_EQ(api_.freehold_process_task_get(next, output_, 99, &bytes_, &detail_), FREEHOLD_PROCESS_OUTPUT_TOO_SMALL);
  EXPECT_EQ(bytes_, 100u);
  EXPECT_EQ(api_.freehold_process_task_get(next, output_, sizeof output_, &bytes_, nullptr), FREEHOLD_PROCESS_OK);
  EXPECT_EQ(output(), std::string(100, 'x'));
}
TEST_F(ProcessCApi_Unit, StructsOfOtherVersions_UnknownMembersMustBeZero) {
  struct {
    freehold_process_task_options_t known;
    int unknown;
  } younger{};
  younger.known.size = sizeof younger;
  freehold_process_task_t* task = nullptr;
  EXPECT_EQ(api_.freehold_process_pool_submit(pool_, "echo x", 6, &younger.known, &task), FREEHOLD_PROCESS_OK);
  api_.freehold_process_task_cancel(task);
  younger.known.priority = FREEHOLD_PROCESS_PRIORITY_LOW + 1;
  EXPECT_EQ(api_.freehold_process_pool_submit(pool_, "echo x", 6, &younger.known, &task), FREEHOLD_PROCESS_BAD_OPTIONS);
  younger.known.priority = FREEHOLD_PROCESS_PRIORITY_LOW;
  younger.unknown = 1;
  EXPECT_EQ(api_.freehold_process_pool_submit(pool_, "echo x", 6, &younger.known, &task), FREEHOLD_PROCESS_BAD_OPTIONS);
  EXPECT_EQ(task, nullptr);
  const freehold_process_pool_options_t none{};
  errno = 0;
  EXPECT_EQ(api_.freehold_process_pool_create(&none), nullptr);
  EXPECT_EQ(errno, EINVAL);
}
TEST_F(ProcessCApi_Unit, TaskOptionsDrainAndStats) {
  freehold_process_task_t* task = nullptr;
  freehold_process_task_options_t how{};
  how.size = sizeof how;
  how.run_timeout_ms = 50;
  how.max_attempts = 1;
  EXPECT_EQ(api_.freehold_process_pool_submit(pool_, "hang", 4, &how, &task), FREEHOLD_PROCESS_OK);
  EXPECT_EQ(api_.freehold_process_task_get(task, output_, sizeof output_, &bytes_, &detail_), FREEHOLD_PROCESS_DEADLINE);
  EXPECT_EQ(detail_, 50);
  how.run_timeout_ms = FREEHOLD_NO_LIMIT;
  EXPECT_EQ(api_.freehold_process_pool_submit(pool_, "sleep 100", 9, &how, &task), FREEHOLD_PROCESS_OK);
  EXPECT_EQ(api_.freehold_process_task_get(task, output_, sizeof output_, &bytes_, &detail_), FREEHOLD_PROCESS_OK);
  EXPECT_EQ(api_.freehold_process_pool_submit(pool_, "hang", 4, nullptr, &task), FREEHOLD_PROCESS_OK);
  api_.freehold_process_task_kill(task);
  EXPECT_EQ(call("echo x"), FREEHOLD_PROCESS_OK);
  freehold_process_task_t* const last = submit("sleep 20");
  EXPECT_EQ(api_.freehold_process_pool_drain(pool_, 10'000), 1);
  EXPECT_EQ(call("echo x"), FREEHOLD_PROCESS_NO_WORKER);
  EXPECT_EQ(api_.freehold_process_task_get(last, output_, sizeof output_, &bytes_, &detail_), FREEHOLD_PROCESS_OK);
  char text[4096];
  ASSERT_LT(api_.freehold_process_pool_stats(pool_, FREEHOLD_PROCESS_STATS_JSON, text, sizeof text), sizeof text);
  EXPECT_NE(std::string(text).find("\"tasks_submitted\":5,"), std::string::npos) << text;
  ASSERT_LT(api_.freehold_process_pool_stats(pool_, FREEHOLD_PROCESS_STATS_PROMETHEUS, text, sizeof text), sizeof text);
  EXPECT_NE(std::string(text).find("\nfreehold_process_pool_workers_ended_total{reason=\"deadline\"} 1\n"),
            std::string::npos)
      << text;
}
TEST_F(ProcessCApi_Unit, OptionsOfThePool_EachIsPassedOn) {
  const freehold::test::Folder temporary;
  const std::string folder = temporary.path();
  Lines lines;
  const int codes[] = {7, 0};
  const char* const command[] = {FREEHOLD_WORKER_PROGRAM, FREEHOLD_TEST_COMPONENT, nullptr};
  freehold_process_pool_options_t options{};
  options.size = sizeof options;
  options.command = command;
  options.max_workers = 1;
  options.max_attempts = 1;
  options.idle_timeout_ms = 30;
  options.max_age_ms = 60'000;
  options.load_timeout_ms = 60'000;
  options.retry_codes = codes;
  options.max_retry_attempts = 3;
  options.keep_standard_error = 1;
  options.log_context = &lines;
  options.log = Lines::note;
  freehold_process_pool_t* pool = api_.freehold_process_pool_create(&options);
  ASSERT_EQ(error(pool), "");
  const auto call = [&](const std::string& input) { return call_of(pool, input); };
  EXPECT_EQ(call("refuse 7 " + folder + "/a"), FREEHOLD_PROCESS_OK) << "the third run";
  EXPECT_EQ(call("say out of luck"), FREEHOLD_PROCESS_EXIT);
  EXPECT_EQ(call("echo x"), FREEHOLD_PROCESS_OK);
  char text[4096];
  const auto ended_idle = [&] {
    static_cast<void>(api_.freehold_process_pool_stats(pool, FREEHOLD_PROCESS_STATS_PROMETHEUS, text, sizeof text));
    return std::string(text).find("freehold_process_pool_workers_ended_total{reason=\"idle\"} 1\n") != std::string::npos;
  };
  for (int i = 0; i < 2000 && !ended_idle(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(ended_idle()) << text;
  api_.freehold_process_pool_destroy(pool);
  EXPECT_NE(lines.text.find("it has failed; it said:\n"), std::string::npos) << lines.text;
  EXPECT_NE(lines.text.find("\nout of luck\n"), std::string::npos) << lines.text;

  for (const char* name : {"in", "out"}) std::filesystem::create_directory(folder + "/" + name);
  const std::string in = folder + "/in", out = folder + "/out";
  const char *const readable[] = {in.c_str(), FREEHOLD_TEST_COMPONENT, nullptr}, *const writable[] = {out.c_str(), nullptr};
  options.only_these_files = 1;
  options.readable = readable;
  options.writable = writable;
  pool = api_.freehold_process_pool_create(&options);
  ASSERT_EQ(error(pool), "");
  if (call("write " + out + "/new") == FREEHOLD_PROCESS_OK) {  // else the kernel has no Landlock
    EXPECT_EQ(std::string(output_, bytes_), "0");
    EXPECT_EQ(call("write " + in + "/new"), FREEHOLD_PROCESS_OK);
    EXPECT_EQ(std::string(output_, bytes_), std::to_string(EACCES));
    EXPECT_EQ(call("read " + in), FREEHOLD_PROCESS_OK);
    EXPECT_EQ(std::string(output_, bytes_), "0");
  } else {
    EXPECT_GT(api_.freehold_process_pool_error(pool, text, sizeof text), 0u);
    EXPECT_NE(std::string(text).find("the kernel cannot confine it as asked"), std::string::npos) << text;
  }
  api_.freehold_process_pool_destroy(pool);
}

// An installed prefix, whose library a program of another place loads: the worker program is found beside the library.
TEST(ProcessCApiInstalled_Unit, LibraryOfAPrefix_FindsItsWorker) {
  namespace fs = std::filesystem;
  const freehold::test::Folder temporary;
  const fs::path prefix = temporary.path() / "prefix";
  for (const char* folder : {"lib", "lib/x86_64-linux-gnu"}) {
    fs::create_directories(prefix / folder);
    fs::create_directories(prefix / "bin");
    const fs::path library = prefix / folder / "libfreehold_process.so";
    fs::copy_file(FREEHOLD_PROCESS_LIBRARY, library);
    fs::copy_file(FREEHOLD_WORKER_PROGRAM, prefix / "bin/freehold-worker");
    const Api api(library.c_str());
    ASSERT_NE(api.library, nullptr) << dlerror();
    freehold_process_pool_options_t options{};
    options.size = sizeof options;
    options.component = FREEHOLD_TEST_COMPONENT;
    options.max_workers = 1;
    freehold_process_pool_t* const pool = api.freehold_process_pool_create(&options);
    ASSERT_NE(pool, nullptr);
    char output[64], error[200];
    std::size_t bytes = 0;
    const int code = api.freehold_process_pool_call(pool, "echo x", 6, nullptr, output, sizeof output, &bytes, nullptr);
    EXPECT_EQ(code, FREEHOLD_PROCESS_OK) << (api.freehold_process_pool_error(pool, error, sizeof error), error);
    api.freehold_process_pool_destroy(pool);
    dlclose(api.library);
    fs::remove_all(prefix);
  }
}

}  // namespace
