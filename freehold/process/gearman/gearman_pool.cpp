// SPDX-License-Identifier: MIT
// The client of Gearman job servers: GearmanPool, its futures, and the threads that carry its tasks, each over a connection
// (gearman_connection.hpp).
#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "freehold/process/gearman/gearman_connection.hpp"
#include "freehold/process/gearman/gearman_pool.hpp"
#include "freehold/process/gearman/gearman_wire.hpp"
#include "freehold/process/process_info.hpp"
#include "freehold/process/signals.hpp"
#include "freehold/process/table/task_counts.hpp"

namespace freehold {

namespace process {

// Shared by its future and the dispatcher thread that runs it.
struct GearmanTask {
  GearmanPool::Dispatcher& dispatcher;
  const std::string unique, workload;
  const std::uint64_t begun = now();
  std::atomic<bool> dropped{false};  // relaxed: a hint to the dispatcher

  std::mutex lock;
  std::condition_variable ended;
  bool over = false;  // set once, by the dispatcher; the members below are constant from then on
  Failure failure;
  std::string answer;  // with its header, unless there is a failure

  GearmanTask(GearmanPool::Dispatcher& d, std::string id, std::string job)
      : dispatcher(d), unique(std::move(id)), workload(std::move(job)) {}
};

}  // namespace process

using namespace process;
using namespace process::gearman;

// Runs tasks on threads with one connection each. Threads are started as they are needed.
// Invariant: idle threads + tasks in waiting_ >= threads needed; used_ is the tasks whose futures are valid.
struct GearmanPool::Dispatcher {
  Dispatcher(const GearmanPoolOptions& options, std::vector<Server> servers)
      : options_(options), servers_(std::move(servers)), connections_(std::max(options.max_connections, 1u)) {
    std::uint64_t random[2] = {};
    if (::getrandom(random, sizeof random, 0) != sizeof random) random[0] = now(), random[1] = identity_of(0);
    char text[40];
    std::snprintf(text, sizeof text, "%016llx%016llx-", static_cast<unsigned long long>(random[0]),
                  static_cast<unsigned long long>(random[1]));
    id_ = text;
  }
  ~Dispatcher() {
    {
      const std::lock_guard guard(lock_);
      closing_.store(true);
    }
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  GearmanFuture submit(std::span<const std::byte> input, const TaskOptions& options) {
    const auto refuse = [this](FailureKind why) {
      counts_.count_refused();
      return GearmanFuture(why);
    };
    if (input.size() > options_.max_input_bytes) return refuse(FailureKind::kTooLarge);
    std::unique_lock guard(lock_);
    if (!wait_until(space_, guard, options.submit_timeout, [this] { return used_ < options_.max_open_tasks; }))
      return refuse(FailureKind::kFull);
    ++used_;
    TaskHeader header;
    header.limit = nanoseconds_of(options.run_timeout ? options.run_timeout : options_.run_timeout);
    auto task = std::make_shared<GearmanTask>(*this, id_ + std::to_string(++submitted_), with_header(header, input));
    waiting_.push_back(task);
    if (waiting_.size() > idle_ && threads_.size() < connections_) {
      const BlockedSignals blocked;
      threads_.emplace_back([this, number = threads_.size()] { run(number); });
    }
    work_.notify_one();
    return GearmanFuture(std::move(task));
  }

  // The future is not valid any more.
  void leave(const std::shared_ptr<GearmanTask>& task, bool got) {
    const std::lock_guard guard(lock_);
    --used_;
    if (!got) {
      task->dropped.store(true, std::memory_order_relaxed);
      std::erase(waiting_, task);
    }
    space_.notify_one();
  }
  TaskCounts& counts() noexcept { return counts_; }

  GearmanPoolStats stats() {
    GearmanPoolStats stats;
    stats.tasks = counts_.stats();
    {
      const std::lock_guard guard(lock_);
      stats.tasks.submitted = submitted_;
      stats.waiting = static_cast<std::uint32_t>(waiting_.size());
      stats.running = static_cast<std::uint32_t>(threads_.size() - idle_);
    }
    stats.max_open_tasks = options_.max_open_tasks;
    stats.resubmitted = resubmitted_.load(std::memory_order_relaxed);
    return stats;
  }

 private:
  void run(std::size_t number) {
    Connection connection(servers_, options_.function, number, options_.host_check_interval);
    while (const std::shared_ptr<GearmanTask> task = next()) {
      Failure failure = deliver(*task, connection);
      const std::lock_guard guard(task->lock);
      task->failure = failure;
      if (failure.kind == FailureKind::kNone) task->answer = std::move(connection.answer());
      task->over = true;
      task->ended.notify_all();
    }
  }

  // Null at the end.
  std::shared_ptr<GearmanTask> next() {
    std::unique_lock guard(lock_);
    ++idle_;
    work_.wait(guard, [this] { return closing_ || !waiting_.empty(); });
    --idle_;
    if (closing_) return nullptr;
    std::shared_ptr<GearmanTask> task = std::move(waiting_.front());
    waiting_.pop_front();
    return task;
  }

  // Gives the task to one server after the other until one has answered. Returns the failure; the answer is the
  // connection's.
  Failure deliver(const GearmanTask& task, Connection& connection) {
    const auto unwanted = [&] { return closing_.load() || task.dropped.load(std::memory_order_relaxed); };
    std::uint64_t without_server_since = now();
    for (std::size_t tries = 1;; ++tries) {
      switch (connection.run(task.unique, task.workload, unwanted)) {
        case Outcome::kAnswered: return failure_in(connection.answer());
        case Outcome::kFailed: return {FailureKind::kSignal, 0};
        case Outcome::kDropped: return {FailureKind::kNoWorker, 0};
        case Outcome::kLost:
        case Outcome::kNone: break;
      }
      if (connection.accepted()) {
        resubmitted_.fetch_add(1, std::memory_order_relaxed);
        without_server_since = now();
      }
      connection.next_server();
      if (unwanted() || now() - without_server_since > static_cast<std::uint64_t>(options_.server_timeout.count()))
        return {FailureKind::kNoWorker, 0};
      if (tries % servers_.size() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  static Failure failure_in(const std::string& answer) {
    const std::optional<AnswerHeader> header = parse_header<AnswerHeader>(answer.data(), answer.size());
    return header ? Failure{header->kind, header->value} : Failure{FailureKind::kNoWorker, 0};  // no worker of ours
  }

  const GearmanPoolOptions options_;
  const std::vector<Server> servers_;
  const std::size_t connections_;
  std::string id_;
  std::mutex lock_;
  std::condition_variable work_, space_;
  std::deque<std::shared_ptr<GearmanTask>> waiting_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  std::uint32_t used_ = 0;
  std::uint64_t submitted_ = 0;
  std::atomic<bool> closing_{false};  // set under lock_
  // Statistics; relaxed.
  std::atomic<std::uint64_t> resubmitted_{0};
  TaskCounts counts_;
};

namespace process {

GearmanFuture& GearmanFuture::operator=(GearmanFuture&& other) noexcept {
  std::swap(task_, other.task_);
  std::swap(error_, other.error_);
  return *this;
}

bool GearmanFuture::wait_for(std::optional<Nanoseconds> timeout) {
  if (task_ == nullptr) return true;
  std::unique_lock guard(task_->lock);
  return wait_until(task_->ended, guard, timeout, [this] { return task_->over; });
}

Result GearmanFuture::get() {
  if (task_ == nullptr) return error_.kind == FailureKind::kNone ? Result() : Result(error_);
  wait();
  const std::shared_ptr<GearmanTask> task = std::move(task_);
  Result result(task->failure);
  if (task->failure.kind == FailureKind::kNone)
    result = {Result::Memory(new std::shared_ptr<GearmanTask>(task),
                             [](void* owner) { delete static_cast<std::shared_ptr<GearmanTask>*>(owner); }),
              task->failure, std::as_bytes(std::span(task->answer)).subspan(sizeof(AnswerHeader))};
  task->dispatcher.counts().count_delivered(now() - task->begun, result.ok());
  task->dispatcher.leave(task, true);
  return result;
}

void GearmanFuture::cancel() {
  if (const std::shared_ptr<GearmanTask> task = std::move(task_)) task->dispatcher.leave(task, false);
}

}  // namespace process

GearmanPool::GearmanPool(const GearmanPoolOptions& options) {
  std::optional<std::vector<Server>> servers = parse_servers(options.servers, error_);
  if (servers && (options.function.empty() || options.max_open_tasks == 0)) error_ = "no function, or no entry";
  if (ok()) dispatcher_ = std::make_unique<Dispatcher>(options, *std::move(servers));
}

GearmanPool::~GearmanPool() = default;

GearmanFuture GearmanPool::submit(Input input, const TaskOptions& options) {
  return dispatcher_ ? dispatcher_->submit(input.bytes(), options) : GearmanFuture(FailureKind::kNoWorker);
}

GearmanPoolStats GearmanPool::stats() const { return dispatcher_ ? dispatcher_->stats() : GearmanPoolStats{}; }

std::string text(const GearmanPoolStats& s) {
  char line[256];
  const int used = std::snprintf(
      line, sizeof line,
      "waiting %u, running %u of %u; %llu done, %llu failed, %llu refused; median %.0f us, 99%% %.0f us; %llu resubmitted",
      s.waiting, s.running, s.max_open_tasks, static_cast<unsigned long long>(s.tasks.delivered),
      static_cast<unsigned long long>(s.tasks.failed), static_cast<unsigned long long>(s.tasks.refused),
      static_cast<double>(s.tasks.median) / 1e3, static_cast<double>(s.tasks.p99) / 1e3,
      static_cast<unsigned long long>(s.resubmitted));
  return {line, static_cast<std::size_t>(used)};
}

}  // namespace freehold
