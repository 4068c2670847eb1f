// SPDX-License-Identifier: MIT
// The exported C functions of libfreehold_process.so (freehold/process.h). They only convert arguments and results.
#include "freehold/process.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "freehold/base/sized_struct.hpp"
#include "freehold/process/client/attached_client.hpp"
#include "freehold/process/process_pool.hpp"
#include "freehold/process/worker/worker.hpp"
#include "freehold/process/worker/worker_protocol.hpp"

#define FREEHOLD_PROCESS_EXPORT extern "C" __attribute__((visibility("default")))

// A pool of this process, or one of another process.
struct freehold_process_pool {
  std::optional<freehold::ProcessPool> own;
  std::optional<freehold::process::AttachedClient> attached;

  // Calls f with the one that it is.
  template <class F>
  [[nodiscard]] auto on(const F& f) {
    return own ? f(*own) : f(*attached);
  }
};
struct freehold_process_task {
  freehold::process::Future future;
  freehold::process::Result result;  // after get()
};

namespace {

using namespace freehold::process;

static_assert(FREEHOLD_PROCESS_SIGNAL == static_cast<int>(FailureKind::kSignal) &&
              FREEHOLD_PROCESS_EXIT == static_cast<int>(FailureKind::kExit) &&
              FREEHOLD_PROCESS_DEADLINE == static_cast<int>(FailureKind::kDeadline) &&
              FREEHOLD_PROCESS_MEMORY == static_cast<int>(FailureKind::kMemory) &&
              FREEHOLD_PROCESS_COMPONENT == static_cast<int>(FailureKind::kComponent) &&
              FREEHOLD_PROCESS_NO_WORKER == static_cast<int>(FailureKind::kNoWorker) &&
              FREEHOLD_PROCESS_CORRUPT == static_cast<int>(FailureKind::kCorrupt) &&
              FREEHOLD_PROCESS_FULL == static_cast<int>(FailureKind::kFull) &&
              FREEHOLD_PROCESS_TOO_LARGE == static_cast<int>(FailureKind::kTooLarge) &&
              FREEHOLD_PROCESS_NO_MEMORY == static_cast<int>(FailureKind::kNoMemory));

// None for FREEHOLD_NO_LIMIT, and for a time beyond the range of the clock.
std::optional<Nanoseconds> milliseconds(std::uint64_t ms) noexcept {
  constexpr std::uint64_t kMost = 1'000'000'000'000;
  if (ms > kMost) return std::nullopt;
  return Nanoseconds(static_cast<std::int64_t>(ms) * 1'000'000);
}

// `codes` ends with a 0.
RetryOptions retry_of(const int* codes, std::uint32_t attempts, std::uint64_t delay_ms) noexcept {
  RetryOptions retry{.max_attempts = attempts, .delay = milliseconds(delay_ms).value_or(Nanoseconds::max())};
  for (unsigned i = 0; codes != nullptr && i < retry.codes.size() && codes[i] != 0; ++i) retry.codes[i] = codes[i];
  return retry;
}

Priority priority_of(std::uint32_t priority) noexcept {
  if (priority == FREEHOLD_PROCESS_PRIORITY_HIGH) return Priority::kHigh;
  return priority == FREEHOLD_PROCESS_PRIORITY_LOW ? Priority::kLow : Priority::kNormal;
}

freehold::ProcessPoolOptions options_of(const freehold_process_pool_options_t& c) {
  freehold::ProcessPoolOptions how;
  const auto string = [](const char* s) { return std::string(s == nullptr ? "" : s); };
  const auto set = [](auto& to, auto value) {
    if (value != 0) to = value;
  };
  const auto limit = [](auto& to, std::uint64_t value) {
    if (value != 0) to = value == FREEHOLD_NO_LIMIT ? std::nullopt : std::optional(value);
  };
  how.component = string(c.component);
  for (const char* const* word = c.command; word != nullptr && *word != nullptr; ++word) how.command.emplace_back(*word);
  how.worker_program = string(c.worker_program);
  set(how.max_workers, c.max_workers);
  set(how.max_open_tasks, c.max_open_tasks);
  set(how.max_input_bytes, c.max_input_bytes);
  set(how.max_output_bytes, c.max_output_bytes);
  set(how.max_attempts, c.max_attempts);
  if (c.run_timeout_ms != 0) how.run_timeout = milliseconds(c.run_timeout_ms);
  if (c.idle_timeout_ms != 0) how.idle_timeout = milliseconds(c.idle_timeout_ms);
  if (c.max_age_ms != 0) how.max_age = milliseconds(c.max_age_ms);
  limit(how.max_tasks, c.max_tasks);
  limit(how.max_rss_bytes, c.max_rss_bytes);
  limit(how.kill_rss_bytes, c.kill_rss_bytes);
  set(how.min_workers, c.min_workers);
  how.keep_standard_error = c.keep_standard_error != 0;
  how.keep_standard_input = c.keep_standard_input != 0;
  for (const int* fd = c.inherited; fd != nullptr && *fd >= 0; ++fd) how.inherited.push_back(*fd);
  if (c.load_timeout_ms != 0) how.load_timeout = milliseconds(c.load_timeout_ms);
  if (c.max_retry_attempts != 0) how.retry = retry_of(c.retry_codes, c.max_retry_attempts, c.retry_delay_ms);
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

int deliver(const Result& result, void* output, size_t capacity, size_t* output_bytes, int* detail) noexcept {
  if (output_bytes != nullptr) *output_bytes = result.bytes().size();
  if (detail != nullptr) *detail = result.error().value;
  if (!result.ok()) return static_cast<int>(result.error().kind);
  if (result.bytes().size() > capacity) return FREEHOLD_PROCESS_OUTPUT_TOO_SMALL;
  if (!result.bytes().empty()) std::memcpy(output, result.bytes().data(), result.bytes().size());
  return FREEHOLD_PROCESS_OK;
}

// Reads the task's options; false if this version does not know one of them.
bool read_options(const freehold_process_task_options_t* options, TaskOptions& how) {
  if (options == nullptr) return true;
  freehold_process_task_options_t all{};
  if (!freehold::base::read_sized(*options, all) || all.priority > FREEHOLD_PROCESS_PRIORITY_LOW) return false;
  how.submit_timeout = milliseconds(all.submit_timeout_ms);
  if (all.run_timeout_ms != 0) how.run_timeout = milliseconds(all.run_timeout_ms).value_or(Nanoseconds::max());
  if (all.total_timeout_ms != 0) how.total_timeout = milliseconds(all.total_timeout_ms);
  how.max_attempts = all.max_attempts;
  how.priority = priority_of(all.priority);
  how.retry = retry_of(all.retry_codes, all.max_retry_attempts, all.retry_delay_ms);
  return true;
}
// Returns FREEHOLD_PROCESS_OK and the future, or the reason why no task was submitted.
int submit(freehold_process_pool_t* pool, const void* input, size_t input_bytes,
           const freehold_process_task_options_t* options, Future& future) {
  TaskOptions how;
  if (!read_options(options, how)) return FREEHOLD_PROCESS_BAD_OPTIONS;
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(input), input_bytes);
  future = pool->on([&](auto& any) { return any.submit(bytes, how); });
  return static_cast<int>(future.error().kind);
}
// Returns the whole length.
size_t write_text(const std::string& what, char* text, size_t bytes) noexcept {
  if (bytes != 0) std::snprintf(text, bytes, "%s", what.c_str());
  return what.size();
}

}  // namespace

FREEHOLD_PROCESS_EXPORT int freehold_process_worker_run(freehold_component* component) {
  Worker worker;
  return worker.ok() ? worker.run(component) : static_cast<int>(WorkerExit::kNoTable);
}

FREEHOLD_PROCESS_EXPORT freehold_process_pool_t* freehold_process_pool_create(
    const freehold_process_pool_options_t* options) {
  freehold_process_pool_options_t known{};
  if (!freehold::base::read_sized(*options, known)) return nullptr;
  auto* const pool = new (std::nothrow) freehold_process_pool_t;
  if (pool != nullptr) pool->own.emplace(options_of(known));
  return pool;
}

FREEHOLD_PROCESS_EXPORT freehold_process_pool_t* freehold_process_pool_attach(const char* name) {
  auto* const pool = new (std::nothrow) freehold_process_pool_t;
  if (pool != nullptr) pool->attached.emplace(std::string(name));
  return pool;
}

FREEHOLD_PROCESS_EXPORT void freehold_process_pool_destroy(freehold_process_pool_t* pool) { delete pool; }

FREEHOLD_PROCESS_EXPORT int freehold_process_pool_ok(freehold_process_pool_t* pool) {
  return pool != nullptr && pool->on([](const auto& any) { return any.ok(); }) ? 1 : 0;
}

FREEHOLD_PROCESS_EXPORT size_t freehold_process_pool_error(freehold_process_pool_t* pool, char* text, size_t bytes) {
  return write_text(pool != nullptr ? pool->on([](const auto& any) { return any.error(); }) : std::strerror(errno), text,
                    bytes);
}

FREEHOLD_PROCESS_EXPORT size_t freehold_process_result_text(int result, int detail, char* text, size_t bytes) {
  if (result == FREEHOLD_PROCESS_OUTPUT_TOO_SMALL) return write_text("its output is longer than the buffer", text, bytes);
  if (result == FREEHOLD_PROCESS_BAD_OPTIONS) return write_text("this version does not know its options", text, bytes);
  return write_text(freehold::process::text(Failure{static_cast<FailureKind>(result), detail}), text, bytes);
}

FREEHOLD_PROCESS_EXPORT int freehold_process_pool_call(freehold_process_pool_t* pool, const void* input, size_t input_bytes,
                                                       const freehold_process_task_options_t* options, void* output,
                                                       size_t capacity, size_t* output_bytes, int* detail) {
  if (output_bytes != nullptr) *output_bytes = 0;
  if (detail != nullptr) *detail = 0;
  Future future;
  const int code = submit(pool, input, input_bytes, options, future);
  return code == FREEHOLD_PROCESS_OK ? deliver(future.get(), output, capacity, output_bytes, detail) : code;
}

FREEHOLD_PROCESS_EXPORT int freehold_process_pool_submit(freehold_process_pool_t* pool, const void* input,
                                                         size_t input_bytes, const freehold_process_task_options_t* options,
                                                         freehold_process_task_t** task) {
  *task = nullptr;
  Future future;
  const int code = submit(pool, input, input_bytes, options, future);
  if (code == FREEHOLD_PROCESS_OK) *task = new freehold_process_task_t{std::move(future), {}};
  return code;
}

FREEHOLD_PROCESS_EXPORT int freehold_process_task_wait(freehold_process_task_t* task, uint64_t timeout_ms) {
  return !task->future.valid() || task->future.wait_for(milliseconds(timeout_ms)) ? 1 : 0;
}

FREEHOLD_PROCESS_EXPORT int freehold_process_task_get(freehold_process_task_t* task, void* output, size_t capacity,
                                                      size_t* output_bytes, int* detail) {
  if (task->future.valid()) task->result = task->future.get();
  const int code = deliver(task->result, output, capacity, output_bytes, detail);
  if (code != FREEHOLD_PROCESS_OUTPUT_TOO_SMALL) delete task;
  return code;
}

FREEHOLD_PROCESS_EXPORT void freehold_process_task_then(freehold_process_task_t* task,
                                                        void (*function)(void*, int, int, const void*, size_t),
                                                        void* context) {
  const auto call = [function, context](const Result& result) {
    const auto [kind, value] = result.error();
    function(context, static_cast<int>(kind), value, result.bytes().data(), result.bytes().size());
  };
  if (task->future.valid())
    task->future.then(call);
  else
    call(task->result);
  delete task;
}

FREEHOLD_PROCESS_EXPORT void freehold_process_task_cancel(freehold_process_task_t* task) { delete task; }

FREEHOLD_PROCESS_EXPORT void freehold_process_task_kill(freehold_process_task_t* task) {
  if (task != nullptr) task->future.kill();
  delete task;
}

FREEHOLD_PROCESS_EXPORT int freehold_process_pool_drain(freehold_process_pool_t* pool, uint64_t timeout_ms) {
  return pool->on([=](auto& any) { return any.drain(milliseconds(timeout_ms)); }) ? 1 : 0;
}

FREEHOLD_PROCESS_EXPORT size_t freehold_process_pool_stats(freehold_process_pool_t* pool, int format, char* text,
                                                           size_t bytes) {
  const freehold::ProcessPoolStats stats = pool->on([](const auto& any) { return any.stats(); });
  const std::string figures = format == FREEHOLD_PROCESS_STATS_JSON         ? json_text(stats)
                              : format == FREEHOLD_PROCESS_STATS_PROMETHEUS ? prometheus_text(stats)
                                                                            : freehold::text(stats);
  return write_text(figures, text, bytes);
}
