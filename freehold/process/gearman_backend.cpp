#include "freehold/process/gearman_backend.hpp"

#include <libgearman/gearman.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "freehold/os/cpu.hpp"

namespace freehold {

using namespace process;

namespace {

using std::chrono::milliseconds;

// How often a thread that waits for a server looks whether it should stop. A slot that asks its servers again costs them a
// packet each.
constexpr milliseconds kClientTick(50), kSlotTick(250);
// A server that has not accepted a task for so long is given up for another.
constexpr Nanoseconds kAcceptTime = std::chrono::seconds(3);
// A slot leaves its connections when a server says neither that it has a job nor that it has none for so long, or when one
// takes nothing of an answer.
constexpr Nanoseconds kAnswerTime = milliseconds(500), kSendTime = std::chrono::seconds(10);

// ---- What goes over the wire before input and output.

static_assert(std::endian::native == std::endian::little, "the wire's byte order is this machine's");
constexpr std::uint32_t kMagic = 0x31485246;  // "FRH1"

struct TaskHeader {
  std::uint32_t magic = kMagic, unused = 0;
  std::uint64_t limit = 0;  // nanoseconds
};
struct AnswerHeader {
  std::uint32_t magic = kMagic;
  FailureKind kind = FailureKind::kNone;
  std::int32_t value = 0;
  std::uint32_t unused = 0;
};

template <class Header>
std::string with_header(const Header& header, std::span<const std::byte> bytes) {
  std::string text(sizeof header + bytes.size(), '\0');
  std::memcpy(text.data(), &header, sizeof header);
  if (!bytes.empty()) std::memcpy(text.data() + sizeof header, bytes.data(), bytes.size());
  return text;
}
// None if it is not one of ours.
template <class Header>
std::optional<Header> parse_header(const void* data, std::size_t bytes) {
  Header header;
  if (bytes < sizeof header) return std::nullopt;
  std::memcpy(&header, data, sizeof header);
  return header.magic == kMagic ? std::optional(header) : std::nullopt;
}

// ---- Servers and threads

struct Server {
  std::string host;
  in_port_t port = 0;
};

// Returns none and the reason if one of them is not understood.
std::optional<std::vector<Server>> parse_servers(const std::vector<std::string>& texts, std::string& error) {
  constexpr unsigned kDefaultPort = 4730;
  std::vector<Server> servers;
  for (const std::string& text : texts) {
    const std::size_t bracket = text.rfind(']'), colon = text.rfind(':');
    const bool has_port = colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
    std::string host = text.substr(0, has_port ? colon : std::string::npos);
    if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    char* end = nullptr;
    const unsigned long port = has_port ? std::strtoul(text.c_str() + colon + 1, &end, 10) : kDefaultPort;
    if (host.empty() || port == 0 || port > 65535 || (has_port && *end != '\0')) {
      error = "not a server: " + text;
      return std::nullopt;
    }
    servers.push_back({host, static_cast<in_port_t>(port)});
  }
  if (servers.empty()) {
    error = "no server";
    return std::nullopt;
  }
  return servers;
}

// Signals are the business of the program's own threads.
template <class Main>
std::thread thread_without_signals(Main main) {
  sigset_t all, former;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &former);
  std::thread thread(std::move(main));
  ::pthread_sigmask(SIG_SETMASK, &former, nullptr);
  return thread;
}

template <class Holds>
bool wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Nanoseconds time, Holds holds) {
  if (time != kWaitForEver) return changed.wait_for(lock, time, holds);
  changed.wait(lock, holds);
  return true;
}

}  // namespace

// ---- Tasks

namespace process {

// Shared by its future and the dispatcher thread that runs it.
struct GearmanTask {
  GearmanPool::Dispatcher& dispatcher;
  const std::string unique, workload;
  const std::uint64_t begun = now();
  std::atomic<bool> dropped{false};  // relaxed: a hint to the dispatcher

  std::mutex lock;
  std::condition_variable ended;
  bool over = false;  // set once, by the dispatcher; what follows is constant from then on
  Failure failure;
  std::string answer;  // with its header, unless there is a failure

  GearmanTask(GearmanPool::Dispatcher& d, std::string id, std::string job)
      : dispatcher(d), unique(std::move(id)), workload(std::move(job)) {}
};

}  // namespace process

// ---- The client

namespace {

// What became of a task at one server.
enum class Outcome : std::uint8_t {
  kNone,
  kAnswered,  // with an answer
  kFailed,    // by the server: the workers' connections were lost as often as the server allows
  kLost,      // the server is
  kDropped,   // nobody wants it
};

// Whether a server's host is still there, while a task waits for its answer: a connection on which nothing is sent says
// nothing of a host that has vanished. Connects now and then, without waiting for it; two failures in a row mean that it is
// gone. A host whose server is stopped is there: its system accepts.
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
        close();  // the server forgets a job that waits for nobody
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
    if (waiting_.size() > idle_ && threads_.size() < connections_)
      threads_.push_back(thread_without_signals([this, number = threads_.size()] { run(number); }));
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

// ---- The supervisor

namespace {

// One run of a task on this machine, for everybody who asks for its answer.
struct Run {
  enum class State : std::uint8_t { kRunning, kAnswered, kAbandoned };
  std::string unique;
  State state = State::kRunning;
  std::string answer;  // constant once it is answered
};

// The runs by unique id: those under way, and the latest ones as far as their answers fit into some bytes.
class Runs {
 public:
  explicit Runs(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // Returns the id's run, and whether it is the caller's to run: then it calls end().
  std::pair<std::shared_ptr<Run>, bool> enter(const std::string& unique) {
    const std::lock_guard guard(lock_);
    auto& run = runs_[unique];
    if (run) return {run, false};
    run = std::make_shared<Run>();
    run->unique = unique;
    return {run, true};
  }
  void end(const std::shared_ptr<Run>& run, std::optional<std::string> answer) {
    const std::lock_guard guard(lock_);
    if (answer) {
      run->answer = *std::move(answer);
      run->state = Run::State::kAnswered;
      kept_.push_back(run);
      bytes_ += cost(*run);
    } else {
      run->state = Run::State::kAbandoned;
      runs_.erase(run->unique);
    }
    ended_.notify_all();
    for (; bytes_ > most_bytes_; kept_.pop_front()) {
      bytes_ -= cost(*kept_.front());
      runs_.erase(kept_.front()->unique);
    }
  }
  // Waits for another's run, or for so long.
  Run::State await(const Run& run, Nanoseconds time) {
    std::unique_lock guard(lock_);
    ended_.wait_for(guard, time, [&] { return run.state != Run::State::kRunning; });
    return run.state;
  }

 private:
  static std::uint64_t cost(const Run& run) { return run.answer.size() + 256; }  // about what the nodes take

  const std::uint64_t most_bytes_;
  std::mutex lock_;
  std::condition_variable ended_;
  std::unordered_map<std::string, std::shared_ptr<Run>> runs_;
  std::deque<std::shared_ptr<Run>> kept_;  // answered, oldest first
  std::uint64_t bytes_ = 0;                // of kept_
};

unsigned slots_of(const ProcessPoolOptions& options) {
  return std::min(options.max_workers != 0 ? options.max_workers : 2 * os::usable_cpus().cpus, TaskWord::kMaxWorkers);
}
ProcessPoolOptions pool_options(ProcessPoolOptions options) {
  options.max_workers = options.entries = slots_of(options);
  options.client_processes = 0;
  return options;
}

}  // namespace

// A slot is a thread that takes one job at a time by a connection of its own to each server.
struct GearmanSupervisor::Slots {
  Slots(const GearmanSupervisorOptions& options, std::vector<Server> servers)
      : options_(options), servers_(std::move(servers)), runs_(options.kept_answers), pool_(pool_options(options.workers)) {
    for (unsigned i = 0; pool_.ok() && i < slots_of(options.workers); ++i)
      threads_.push_back(thread_without_signals([this, i] { run(i); }));
  }
  ~Slots() {
    stopping_.store(now());
    for (std::thread& thread : threads_) thread.join();
  }

  [[nodiscard]] const ProcessPool& pool() const { return pool_; }
  [[nodiscard]] GearmanSupervisorStats stats() const {
    return {.pool = pool_.stats(), .answered = answered_, .repeated = repeated_, .handed_back = handed_back_};
  }

 private:
  void run(std::size_t first) {
    gearman_worker_st* worker = nullptr;
    std::uint64_t unanswered_since = 0;  // 0: no server owes an answer
    while (stopping_ == 0 && pool_.ok()) {
      if (worker == nullptr) worker = open(first++);
      const gearman_return_t code = gearman_worker_work(worker);
      if (code != GEARMAN_IO_WAIT)
        unanswered_since = 0;
      else if (unanswered_since == 0)
        unanswered_since = now();
      const bool late = unanswered_since != 0 && now() - unanswered_since > static_cast<std::uint64_t>(kAnswerTime.count());
      if (code == GEARMAN_SUCCESS) continue;
      if ((code == GEARMAN_IO_WAIT || code == GEARMAN_NO_JOBS) && !late && wait(worker)) continue;
      // A server is lost, or says nothing; the next round begins with another one.
      gearman_worker_free(std::exchange(worker, nullptr));
      unanswered_since = 0;
      std::this_thread::sleep_for(milliseconds(20));
    }
    if (worker != nullptr) gearman_worker_free(worker);
  }
  // Until a server says something, or a tick.
  static bool wait(gearman_worker_st* worker) {
    const gearman_return_t code = gearman_worker_wait(worker);
    return code == GEARMAN_SUCCESS || code == GEARMAN_TIMEOUT;
  }

  // By gearman_worker_work() alone: gearman_worker_grab_job() of 1.1.20 is not made to be called from outside of it. It does
  // not block, so that a server that says nothing can be told from one that has no job.
  // No timeout is registered: the server would run an overdue task again on the same worker.
  gearman_worker_st* open(std::size_t first) {
    gearman_worker_st* const worker = gearman_worker_create(nullptr);
    gearman_worker_remove_servers(worker);  // those of $GEARMAN_SERVERS
    gearman_worker_add_options(worker, GEARMAN_WORKER_GRAB_UNIQ);
    gearman_worker_add_options(worker, GEARMAN_WORKER_NON_BLOCKING);
    gearman_worker_set_timeout(worker, static_cast<int>(kSlotTick.count()));
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      const Server& server = servers_[(first + i) % servers_.size()];
      gearman_worker_add_server(worker, server.host.c_str(), server.port);
    }
    const gearman_function_t function =
        gearman_function_create([](gearman_job_st* job, void* worker_of_job) -> gearman_return_t {
          auto* const own = static_cast<gearman_worker_st*>(worker_of_job);
          return static_cast<Slots*>(gearman_worker_context(own))->serve(own, job);
        });
    gearman_worker_set_context(worker, this);
    gearman_worker_define_function(worker, options_.function.data(), options_.function.size(), function, 0, worker);
    return worker;
  }

  // GEARMAN_ERROR closes the slot's connections, which hands the job on if it was not answered.
  gearman_return_t serve(gearman_worker_st* worker, gearman_job_st* job) {
    const void* const workload = gearman_job_workload(job);
    const std::size_t bytes = gearman_job_workload_size(job);
    const std::optional<TaskHeader> header = parse_header<TaskHeader>(workload, bytes);
    if (!header) return GEARMAN_FATAL;  // no client of ours; tells it so
    const auto [run, first] = runs_.enter(gearman_job_unique(job));
    if (first)
      runs_.end(run,
                answer({static_cast<const std::byte*>(workload) + sizeof *header, bytes - sizeof *header}, header->limit));
    Run::State state = Run::State::kRunning;
    do {
      state = runs_.await(*run, milliseconds(100));
    } while (state == Run::State::kRunning && !out_of_time());
    if (state != Run::State::kAnswered) {
      handed_back_.fetch_add(1);
      // All slots leave before the job can come back to one of them, which would count as one more attempt.
      if (stopping_ == 0) std::this_thread::sleep_for(2 * kSlotTick);
      return GEARMAN_ERROR;
    }
    const std::uint64_t begun = now();
    gearman_return_t code = GEARMAN_SUCCESS;
    while ((code = gearman_job_send_complete(job, run->answer.data(), run->answer.size())) == GEARMAN_IO_WAIT)
      if (now() - begun > static_cast<std::uint64_t>(kSendTime.count()) || !wait(worker)) break;
    if (code != GEARMAN_SUCCESS) return GEARMAN_ERROR;
    answered_.fetch_add(1);
    if (!first) repeated_.fetch_add(1);
    return GEARMAN_SUCCESS;
  }

  // None if no worker of this machine can run it, or it is too late.
  std::optional<std::string> answer(std::span<const std::byte> input, std::uint64_t limit) {
    Future future = pool_.submit(input, {.limit = Nanoseconds(limit), .wait_while_full = kWaitForEver});
    if (!future.valid()) {
      if (future.submit_error() != SubmitError::kTooLarge) return std::nullopt;
      AnswerHeader header;
      header.kind = FailureKind::kNoWorker;
      return with_header(header, {});
    }
    while (!future.wait_for(milliseconds(100)))
      if (out_of_time()) return std::nullopt;
    const Result result = future.get();
    // The component of another task has written into this machine's table: it is run again.
    if (result.failure().kind == FailureKind::kNoWorker || result.failure().kind == FailureKind::kCorrupt)
      return std::nullopt;
    AnswerHeader header;
    header.kind = result.failure().kind;
    header.value = result.failure().value;
    return with_header(header, result.bytes());
  }

  [[nodiscard]] bool out_of_time() const {
    constexpr std::uint64_t kGrace = 1'000'000'000;
    const std::uint64_t since = stopping_;
    return since != 0 && now() - since > kGrace;
  }

  const GearmanSupervisorOptions options_;
  const std::vector<Server> servers_;
  Runs runs_;
  ProcessPool pool_;
  std::atomic<std::uint64_t> stopping_{0};  // since when; 0: no
  std::atomic<std::uint64_t> answered_{0}, repeated_{0}, handed_back_{0};
  std::vector<std::thread> threads_;
};

GearmanSupervisor::GearmanSupervisor(const GearmanSupervisorOptions& options) {
  std::optional<std::vector<Server>> servers = parse_servers(options.servers, error_);
  if (servers && options.function.empty()) error_ = "no function";
  if (error_.empty()) slots_ = std::make_unique<Slots>(options, *std::move(servers));
}

GearmanSupervisor::~GearmanSupervisor() = default;

std::string GearmanSupervisor::error() const { return slots_ ? slots_->pool().error() : error_; }

GearmanSupervisorStats GearmanSupervisor::stats() const { return slots_ ? slots_->stats() : GearmanSupervisorStats{}; }

std::vector<int> GearmanSupervisor::worker_pids() const {
  return slots_ ? slots_->pool().worker_pids() : std::vector<int>{};
}

}  // namespace freehold
