// SPDX-License-Identifier: MIT
// The exported C functions of libfreehold_process.so (freehold/process.h). They only convert arguments and results.
#include "freehold/process.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "freehold/process/attached_client.hpp"
#include "freehold/process/process_pool.hpp"
#include "freehold/process/wait_time.hpp"
#include "freehold/process/worker.hpp"

#define FREEHOLD_PROCESS_EXPORT extern "C" __attribute__((visibility("default")))

// A pool of this process, or one of another process.
struct freehold_pool {
  std::optional<freehold::ProcessPool> own;
  std::optional<freehold::process::AttachedClient> attached;
  std::atomic<bool> draining{false};

  [[nodiscard]] freehold::process::TaskOptions defaults() const {
    return own ? own->defaults() : freehold::process::TaskOptions{};
  }
  [[nodiscard]] freehold::process::Future submit(std::span<const std::byte> input,
                                                 const freehold::process::TaskOptions& options) {
    if (own) return own->submit(input, options);
    if (draining.load(std::memory_order_relaxed))
      return freehold::process::Future(freehold::process::SubmitError::kNoWorker);
    return attached->client().submit(input, options);
  }
  [[nodiscard]] freehold::ProcessPoolStats stats() {
    if (own) return own->stats();
    freehold::ProcessPoolStats stats;
    freehold::process::Client& client = attached->client();
    stats.tasks = client.stats();
    stats.waiting = client.table().waiting();
    stats.running = client.table().count(freehold::process::TaskState::kRunning);
    stats.entries = client.table().shape().entries;
    return stats;
  }
  [[nodiscard]] std::string error() {
    if (own) return own->error();
    return attached->client().pool_is_gone() ? "the process that serves the pool has ended" : "";
  }
};
struct freehold_task {
  freehold::process::Future future;
  freehold::process::Result result;  // after get()
};

namespace {

using namespace freehold::process;

static_assert(FREEHOLD_SIGNAL == static_cast<int>(FailureKind::kSignal) &&
              FREEHOLD_EXIT == static_cast<int>(FailureKind::kExit) &&
              FREEHOLD_DEADLINE == static_cast<int>(FailureKind::kDeadline) &&
              FREEHOLD_MEMORY == static_cast<int>(FailureKind::kMemory) &&
              FREEHOLD_COMPONENT == static_cast<int>(FailureKind::kComponent) &&
              FREEHOLD_NO_WORKER == static_cast<int>(FailureKind::kNoWorker) &&
              FREEHOLD_CORRUPT == static_cast<int>(FailureKind::kCorrupt));

// A time beyond the range of the clock is for ever.
Nanoseconds milliseconds(std::uint64_t ms) noexcept {
  constexpr std::uint64_t kMost = 1'000'000'000'000;
  return ms > kMost ? kWaitForEver : Nanoseconds(static_cast<std::int64_t>(ms) * 1'000'000);
}

// `codes` ends with a 0.
RetryOptions retry_of(const int* codes, std::uint32_t attempts, std::uint32_t delay_ms) noexcept {
  RetryOptions retry{.attempts = attempts, .delay = milliseconds(delay_ms)};
  for (unsigned i = 0; codes != nullptr && i < retry.codes.size() && codes[i] != 0; ++i) retry.codes[i] = codes[i];
  return retry;
}

Priority priority_of(std::uint32_t priority) noexcept {
  if (priority == FREEHOLD_HIGH) return Priority::kHigh;
  return priority == FREEHOLD_LOW ? Priority::kLow : Priority::kNormal;
}

freehold::ProcessPoolOptions options_of(const freehold_pool_options& c) {
  freehold::ProcessPoolOptions how;
  const auto string = [](const char* s) { return std::string(s == nullptr ? "" : s); };
  const auto set = [](auto& to, auto value) {
    if (value != 0) to = value;
  };
  how.component = string(c.component);
  for (const char* const* word = c.command; word != nullptr && *word != nullptr; ++word) how.command.emplace_back(*word);
  how.worker_program = string(c.worker_program);
  set(how.max_workers, c.max_workers);
  set(how.entries, c.entries);
  set(how.max_input, c.max_input);
  set(how.max_output, c.max_output);
  set(how.attempts, c.attempts);
  if (c.limit_ms != 0) how.limit = milliseconds(c.limit_ms);
  if (c.idle_ms != 0) how.idle = milliseconds(c.idle_ms);
  if (c.max_age_ms != 0) how.max_age = milliseconds(c.max_age_ms);
  set(how.max_tasks, c.max_tasks);
  set(how.max_rss, c.max_rss);
  set(how.kill_rss, c.kill_rss);
  set(how.min_workers, c.min_workers);
  how.keep_standard_error = c.keep_standard_error != 0;
  if (c.load_limit_ms != 0) how.load_limit = milliseconds(c.load_limit_ms);
  if (c.retry_attempts != 0) how.retry = retry_of(c.retry_codes, c.retry_attempts, c.retry_delay_ms);
  how.memory_cgroup = string(c.memory_cgroup);
  how.confinement.no_network = c.no_network != 0;
  how.confinement.files = c.only_these_files != 0;
  for (const char* const* path = c.readable; path != nullptr && *path != nullptr; ++path)
    how.confinement.readable.emplace_back(*path);
  for (const char* const* path = c.writable; path != nullptr && *path != nullptr; ++path)
    how.confinement.writable.emplace_back(*path);
  if (c.log != nullptr)
    how.log = [log = c.log, context = c.log_context](const PoolEvent& event) {
      std::string line = text(event);
      if (!event.last_lines.empty()) line += "; it said:\n" + event.last_lines;
      log(context, line.c_str());
    };
  return how;
}

int code_of(SubmitError error) noexcept {
  switch (error) {
    case SubmitError::kNone: return FREEHOLD_OK;
    case SubmitError::kFull: return FREEHOLD_FULL;
    case SubmitError::kTooLarge: return FREEHOLD_TOO_LARGE;
    case SubmitError::kNoMemory: return FREEHOLD_NO_MEMORY;
    case SubmitError::kNoWorker: break;
  }
  return FREEHOLD_NO_WORKER;
}

int deliver(const Result& result, void* output, size_t capacity, size_t* output_bytes, int* detail) noexcept {
  if (output_bytes != nullptr) *output_bytes = result.bytes().size();
  if (detail != nullptr) *detail = result.failure().value;
  if (!result.ok()) return static_cast<int>(result.failure().kind);
  if (result.bytes().size() > capacity) return FREEHOLD_OUTPUT_TOO_SMALL;
  if (!result.bytes().empty()) std::memcpy(output, result.bytes().data(), result.bytes().size());
  return FREEHOLD_OK;
}

Future submit(freehold_pool* pool, const void* input, size_t input_bytes, const TaskOptions& options) {
  return pool->submit(std::span(static_cast<const std::byte*>(input), input_bytes), options);
}
TaskOptions waiting(const freehold_pool* pool, Nanoseconds wait) {
  TaskOptions options = pool->defaults();
  options.wait_while_full = wait;
  return options;
}
int handed_out(Future future, freehold_task** task) {
  if (!future.valid()) return code_of(future.submit_error());
  *task = new freehold_task{std::move(future), {}};
  return FREEHOLD_OK;
}
// A copy in which the members that an older caller does not know are 0.
template <class Options>
Options complete(const Options& options) noexcept {
  Options all{};
  std::memcpy(&all, &options, std::min(options.size, sizeof all));
  return all;
}
void write_error(const std::string& why, char* error, size_t error_bytes) noexcept {
  if (error != nullptr && error_bytes != 0) std::snprintf(error, error_bytes, "%s", why.c_str());
}
// Returns the whole length.
size_t write_text(const std::string& what, char* text, size_t bytes) noexcept {
  if (bytes != 0) std::snprintf(text, bytes, "%s", what.c_str());
  return what.size();
}

}  // namespace

FREEHOLD_PROCESS_EXPORT int freehold_worker_run(freehold_component* component) {
  Worker worker;
  return worker.ok() ? worker.run(component) : static_cast<int>(WorkerExit::kNoTable);
}

FREEHOLD_PROCESS_EXPORT freehold_pool* freehold_pool_open(const freehold_pool_options* options, char* error,
                                                          size_t error_bytes) {
  auto pool = std::make_unique<freehold_pool>();
  pool->own.emplace(options_of(complete(*options)));
  const std::string why = pool->own->error();
  write_error(why, error, error_bytes);
  return why.empty() ? pool.release() : nullptr;
}

FREEHOLD_PROCESS_EXPORT freehold_pool* freehold_pool_attach(const char* name, char* error, size_t error_bytes) {
  auto pool = std::make_unique<freehold_pool>();
  pool->attached.emplace(std::string(name));
  write_error(pool->attached->error(), error, error_bytes);
  return pool->attached->ok() ? pool.release() : nullptr;
}

FREEHOLD_PROCESS_EXPORT void freehold_pool_close(freehold_pool* pool) { delete pool; }

FREEHOLD_PROCESS_EXPORT int freehold_pool_call(freehold_pool* pool, const void* input, size_t input_bytes, void* output,
                                               size_t capacity, size_t* output_bytes, int* detail) {
  if (output_bytes != nullptr) *output_bytes = 0;
  if (detail != nullptr) *detail = 0;
  Future future = submit(pool, input, input_bytes, waiting(pool, kWaitForEver));
  return future.valid() ? deliver(future.get(), output, capacity, output_bytes, detail) : code_of(future.submit_error());
}

FREEHOLD_PROCESS_EXPORT int freehold_pool_submit(freehold_pool* pool, const void* input, size_t input_bytes,
                                                 uint64_t wait_ms, freehold_task** task) {
  *task = nullptr;
  return handed_out(submit(pool, input, input_bytes, waiting(pool, milliseconds(wait_ms))), task);
}

FREEHOLD_PROCESS_EXPORT int freehold_pool_submit_with(freehold_pool* pool, const void* input, size_t input_bytes,
                                                      const freehold_task_options* options, freehold_task** task) {
  *task = nullptr;
  TaskOptions how = pool->defaults();
  if (options != nullptr) {
    const freehold_task_options all = complete(*options);
    how.wait_while_full = milliseconds(all.wait_ms);
    if (all.limit_ms != 0) how.limit = milliseconds(all.limit_ms);
    if (all.within_ms != 0) how.within = milliseconds(all.within_ms);
    how.attempts = all.attempts;
    how.priority = priority_of(all.priority);
    if (all.retry_attempts != 0) how.retry = retry_of(all.retry_codes, all.retry_attempts, all.retry_delay_ms);
  }
  return handed_out(submit(pool, input, input_bytes, how), task);
}

FREEHOLD_PROCESS_EXPORT int freehold_task_wait(freehold_task* task, uint64_t wait_ms) {
  return !task->future.valid() || task->future.wait_for(milliseconds(wait_ms)) ? 1 : 0;
}

FREEHOLD_PROCESS_EXPORT int freehold_task_get(freehold_task* task, void* output, size_t capacity, size_t* output_bytes,
                                              int* detail) {
  if (task->future.valid()) task->result = task->future.get();
  const int code = deliver(task->result, output, capacity, output_bytes, detail);
  if (code != FREEHOLD_OUTPUT_TOO_SMALL) delete task;
  return code;
}

FREEHOLD_PROCESS_EXPORT void freehold_task_then(freehold_task* task, void (*function)(void*, int, int, const void*, size_t),
                                                void* context) {
  const auto call = [function, context](const Result& result) {
    const int code = result.ok() ? FREEHOLD_OK : static_cast<int>(result.failure().kind);
    function(context, code, result.failure().value, result.bytes().data(), result.bytes().size());
  };
  if (task->future.valid())
    task->future.then(call);
  else
    call(task->result);
  delete task;
}

FREEHOLD_PROCESS_EXPORT void freehold_task_cancel(freehold_task* task) { delete task; }

FREEHOLD_PROCESS_EXPORT void freehold_task_kill(freehold_task* task) {
  if (task != nullptr) task->future.kill();
  delete task;
}

FREEHOLD_PROCESS_EXPORT int freehold_pool_drain(freehold_pool* pool, uint64_t wait_ms) {
  if (pool->own) return pool->own->drain(milliseconds(wait_ms)) ? 1 : 0;
  pool->draining.store(true);
  const std::uint64_t end = deadline_of(milliseconds(wait_ms));
  while (pool->attached->client().open_tasks() != 0 && !pool->attached->client().pool_is_gone()) {
    if (left_until(end) == 0) return 0;
    constexpr timespec kPollInterval{0, 2'000'000};
    ::nanosleep(&kPollInterval, nullptr);
  }
  return 1;
}

FREEHOLD_PROCESS_EXPORT size_t freehold_pool_metrics(freehold_pool* pool, char format, char* text, size_t bytes) {
  const freehold::ProcessPoolStats stats = pool->stats();
  return write_text(format == 'p' ? prometheus_text(stats) : json_text(stats), text, bytes);
}

FREEHOLD_PROCESS_EXPORT size_t freehold_pool_error(freehold_pool* pool, char* text, size_t bytes) {
  return write_text(pool->error(), text, bytes);
}

FREEHOLD_PROCESS_EXPORT size_t freehold_pool_status(freehold_pool* pool, char* text, size_t bytes) {
  return write_text(freehold::text(pool->stats()), text, bytes);
}
