// SPDX-License-Identifier: MIT
// The client of Gearman job servers: GearmanPool, its futures, and the threads that carry its tasks.
#include <libgearman/gearman.h>
#include <netdb.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "freehold/process/gearman_pool.hpp"
#include "freehold/process/gearman_wire.hpp"
#include "freehold/process/histogram.hpp"
#include "freehold/process/process_info.hpp"
#include "freehold/process/signals.hpp"
#include "freehold/process/wait_time.hpp"

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

namespace {

using std::chrono::milliseconds;

// How often a thread that waits for a server checks whether it has to stop.
constexpr milliseconds kClientTick(50);
// A server that has not accepted a task for so long is given up for another.
constexpr Nanoseconds kAcceptTime = std::chrono::seconds(3);

// How a task ended at one server.
enum class Outcome : std::uint8_t {
  kNone,
  kAnswered,  // with an answer
  kFailed,    // by the server: the workers' connections were lost as often as the server allows
  kLost,      // the server is lost
  kDropped,   // its client has dropped it
};

// Tells whether a server's host is still there while a task waits for its answer: an idle connection does not show that a
// host has vanished. Connects from time to time, without blocking; two failures in a row mean that the host is gone. A host
// whose server is stopped is still there: its system accepts connections.
class HostProbe {
 public:
  explicit HostProbe(Nanoseconds every) : every_(static_cast<std::uint64_t>(every.count())), last_(now()) {}
  ~HostProbe() { close(); }
  HostProbe(const HostProbe&) = delete;
  HostProbe& operator=(const HostProbe&) = delete;

  // Asked every tick.
  [[nodiscard]] bool is_gone(const Server& server) {
    if (socket_ < 0) {
      if (every_ != 0 && now() - last_ >= every_) begin(server);
      return failures_ >= kFailures;
    }
    pollfd connected{socket_, POLLOUT, 0};
    const bool answered = ::poll(&connected, 1, 0) == 1;
    if (!answered && now() - last_ < std::min<std::uint64_t>(every_, kConnectTime)) return false;
    int error = ETIMEDOUT;
    socklen_t length = sizeof error;
    if (answered) ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &length);
    failures_ = error == 0 ? 0 : failures_ + 1;
    close();
    return failures_ >= kFailures;
  }

 private:
  static constexpr unsigned kFailures = 2;
  static constexpr std::uint64_t kConnectTime = 3'000'000'000;

  void begin(const Server& server) {
    last_ = now();
    addrinfo wanted{}, *found = nullptr;
    wanted.ai_socktype = SOCK_STREAM;
    // A name that cannot be looked up says nothing of the host.
    if (::getaddrinfo(server.host.c_str(), std::to_string(server.port).c_str(), &wanted, &found) != 0) return;
    socket_ = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket_ >= 0 && ::connect(socket_, found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) {
      ++failures_;
      close();
    }
    ::freeaddrinfo(found);
  }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }

  const std::uint64_t every_;  // nanoseconds; 0: never
  std::uint64_t last_;         // the time of the last beginning
  int socket_ = -1;
  unsigned failures_ = 0;  // in a row
};

// A connection to one server at a time, which runs one task at a time.
class Connection {
 public:
  Connection(const std::vector<Server>& servers, const std::string& function, std::size_t first, Nanoseconds host_check)
      : servers_(servers), function_(function), host_check_(host_check), server_(first % servers.size()) {}
  ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Runs it at this server. `unwanted` is asked every tick.
  template <class Unwanted>
  Outcome run(const GearmanTask& task, Unwanted unwanted) {
    answer_.clear();
    outcome_ = Outcome::kNone;
    accepted_ = false;
    if (client_ == nullptr) open();
    gearman_return_t code = GEARMAN_SUCCESS;
    gearman_task_st* const job = gearman_client_add_task(client_, nullptr, this, function_.c_str(), task.unique.c_str(),
                                                         task.workload.data(), task.workload.size(), &code);
    if (job == nullptr) return lost();
    const std::uint64_t begun = now();
    HostProbe probe(host_check_);
    for (;;) {
      code = gearman_client_run_tasks(client_);
      if (outcome_ != Outcome::kNone) break;
      if (unwanted()) {
        close();  // the server forgets a job for which no client waits
        return Outcome::kDropped;
      }
      if (code != GEARMAN_IO_WAIT && code != GEARMAN_TIMEOUT) return lost();
      if (probe.is_gone(servers_[server_])) return lost();
      if (!accepted_ && now() - begun > static_cast<std::uint64_t>(kAcceptTime.count())) return lost();
      code = gearman_client_wait(client_);
      if (code != GEARMAN_SUCCESS && code != GEARMAN_TIMEOUT) return lost();
    }
    gearman_task_free(job);
    return outcome_;
  }
  // After kAnswered.
  [[nodiscard]] std::string& answer() { return answer_; }
  // Whether the server had the task before it was lost.
  [[nodiscard]] bool accepted() const { return accepted_; }
  [[nodiscard]] std::size_t server() const { return server_; }
  // The next run is at the next server.
  void next_server() {
    close();
    server_ = (server_ + 1) % servers_.size();
  }

 private:
  void open() {
    client_ = gearman_client_create(nullptr);
    gearman_client_remove_servers(client_);  // those of $GEARMAN_SERVERS
    gearman_client_add_options(client_, GEARMAN_CLIENT_NON_BLOCKING);
    gearman_client_set_timeout(client_, static_cast<int>(kClientTick.count()));
    gearman_client_add_server(client_, servers_[server_].host.c_str(), servers_[server_].port);
    gearman_client_set_created_fn(client_, [](gearman_task_st* job) {
      of(job).accepted_ = true;
      return GEARMAN_SUCCESS;
    });
    gearman_client_set_complete_fn(client_, [](gearman_task_st* job) {
      of(job).answer_.assign(static_cast<const char*>(gearman_task_data(job)), gearman_task_data_size(job));
      of(job).outcome_ = Outcome::kAnswered;
      return GEARMAN_SUCCESS;
    });
    gearman_client_set_fail_fn(client_, [](gearman_task_st* job) {
      of(job).outcome_ = Outcome::kFailed;
      return GEARMAN_SUCCESS;
    });
  }
  void close() {
    if (client_ != nullptr) gearman_client_free(std::exchange(client_, nullptr));
  }
  Outcome lost() {
    close();
    return Outcome::kLost;
  }
  static Connection& of(gearman_task_st* job) { return *static_cast<Connection*>(gearman_task_context(job)); }

  const std::vector<Server>& servers_;
  const std::string& function_;
  const Nanoseconds host_check_;
  std::size_t server_;
  gearman_client_st* client_ = nullptr;
  // Of the task that runs; by libgearman's calls within run().
  std::string answer_;
  Outcome outcome_ = Outcome::kNone;
  bool accepted_ = false;
};

}  // namespace

// Runs tasks on threads with one connection each. Threads are started as they are needed.
// Invariant: idle threads + tasks in waiting_ >= threads needed; used_ is the tasks whose futures are valid.
struct GearmanPool::Dispatcher {
  Dispatcher(const GearmanPoolOptions& options, std::vector<Server> servers)
      : options_(options), servers_(std::move(servers)), connections_(std::max(options.connections, 1u)) {
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
    const auto refuse = [this](SubmitError why) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      return GearmanFuture(why);
    };
    if (input.size() > options_.max_input) return refuse(SubmitError::kTooLarge);
    std::unique_lock guard(lock_);
    if (!wait_until(space_, guard, options.wait_while_full, [this] { return used_ < options_.entries; }))
      return refuse(SubmitError::kFull);
    ++used_;
    TaskHeader header;
    header.limit = static_cast<std::uint64_t>(std::max<long>(options.limit.count(), 0));
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
  void count(std::uint64_t nanoseconds, bool ok) {
    latencies_.add(nanoseconds);
    if (!ok) failed_.fetch_add(1, std::memory_order_relaxed);
  }

  GearmanPoolStats stats() {
    GearmanPoolStats stats;
    {
      const std::lock_guard guard(lock_);
      stats.tasks.submitted = submitted_;
      stats.waiting = static_cast<std::uint32_t>(waiting_.size());
      stats.running = static_cast<std::uint32_t>(threads_.size() - idle_);
    }
    stats.entries = options_.entries;
    stats.resubmitted = resubmitted_.load(std::memory_order_relaxed);
    stats.tasks.failed = failed_.load(std::memory_order_relaxed);
    stats.tasks.refused = refused_.load(std::memory_order_relaxed);
    stats.tasks.delivered = latencies_.count();
    stats.tasks.median = latencies_.percentile(0.5);
    stats.tasks.p90 = latencies_.percentile(0.9);
    stats.tasks.p99 = latencies_.percentile(0.99);
    return stats;
  }

 private:
  void run(std::size_t number) {
    Connection connection(servers_, options_.function, number, options_.host_check);
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
      switch (connection.run(task, unwanted)) {
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
      if (unwanted() || now() - without_server_since > static_cast<std::uint64_t>(options_.without_server.count()))
        return {FailureKind::kNoWorker, 0};
      if (tries % servers_.size() == 0) std::this_thread::sleep_for(milliseconds(20));
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
  std::atomic<std::uint64_t> failed_{0}, refused_{0}, resubmitted_{0};
  Histogram latencies_;
};

namespace process {

GearmanFuture& GearmanFuture::operator=(GearmanFuture&& other) noexcept {
  std::swap(task_, other.task_);
  std::swap(submit_error_, other.submit_error_);
  return *this;
}

bool GearmanFuture::wait_for(Nanoseconds time) {
  if (task_ == nullptr) return true;
  std::unique_lock guard(task_->lock);
  return wait_until(task_->ended, guard, time, [this] { return task_->over; });
}

GearmanResult GearmanFuture::get() {
  if (task_ == nullptr) return GearmanResult(failure_of(submit_error_));
  wait();
  const std::shared_ptr<GearmanTask> task = std::move(task_);
  GearmanResult result(task->failure);
  if (task->failure.kind == FailureKind::kNone) {
    result.bytes_ = std::as_bytes(std::span(task->answer)).subspan(sizeof(AnswerHeader));
    result.task_ = task;
  }
  task->dispatcher.count(now() - task->begun, result.ok());
  task->dispatcher.leave(task, true);
  return result;
}

void GearmanFuture::cancel() {
  if (const std::shared_ptr<GearmanTask> task = std::move(task_)) task->dispatcher.leave(task, false);
}

}  // namespace process

GearmanPool::GearmanPool(const GearmanPoolOptions& options) {
  defaults_.limit = options.limit;
  std::optional<std::vector<Server>> servers = parse_servers(options.servers, error_);
  if (servers && (options.function.empty() || options.entries == 0)) error_ = "no function, or no entry";
  if (ok()) dispatcher_ = std::make_unique<Dispatcher>(options, *std::move(servers));
}

GearmanPool::~GearmanPool() = default;

GearmanFuture GearmanPool::submit(std::span<const std::byte> input, const TaskOptions& options) {
  return dispatcher_ ? dispatcher_->submit(input, options) : GearmanFuture(SubmitError::kNoWorker);
}

std::size_t GearmanPool::submit_all(std::span<const std::span<const std::byte>> inputs, std::span<GearmanFuture> futures) {
  std::size_t n = 0;
  for (; n < inputs.size(); ++n) {
    futures[n] = submit(inputs[n]);
    if (!futures[n].valid()) break;
  }
  return n;
}

GearmanResult GearmanPool::call(std::string_view input) {
  GearmanFuture future = submit(input);
  return future.valid() ? future.get() : GearmanResult(Failure{FailureKind::kNoWorker, 0});
}

GearmanPoolStats GearmanPool::stats() const { return dispatcher_ ? dispatcher_->stats() : GearmanPoolStats{}; }

std::string GearmanPool::status() const {
  const GearmanPoolStats s = stats();
  char line[256];
  const int used = std::snprintf(
      line, sizeof line,
      "waiting %u, running %u of %u; %llu done, %llu failed, %llu refused; median %.0f us, 99%% %.0f us; %llu resubmitted",
      s.waiting, s.running, s.entries, static_cast<unsigned long long>(s.tasks.delivered),
      static_cast<unsigned long long>(s.tasks.failed), static_cast<unsigned long long>(s.tasks.refused),
      static_cast<double>(s.tasks.median) / 1e3, static_cast<double>(s.tasks.p99) / 1e3,
      static_cast<unsigned long long>(s.resubmitted));
  return {line, static_cast<std::size_t>(used)};
}

}  // namespace freehold
