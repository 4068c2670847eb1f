// SPDX-License-Identifier: MIT
// The machine that works for Gearman job servers: GearmanSupervisor.
#include <libgearman/gearman.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "freehold/os/cpu.hpp"
#include "freehold/process/gearman/gearman_pool.hpp"
#include "freehold/process/gearman/gearman_wire.hpp"
#include "freehold/process/process_info.hpp"
#include "freehold/process/signals.hpp"
#include "freehold/process/table/task_word.hpp"

namespace freehold {

using namespace process;
using namespace process::gearman;

namespace {

using std::chrono::milliseconds;

// How often a slot that waits for a server checks whether it has to stop. A slot that asks its servers again costs them a
// packet each.
constexpr milliseconds kSlotTick(250);
// A slot leaves its connections when a server says neither that it has a job nor that it has none for so long, or when one
// takes nothing of an answer.
constexpr Nanoseconds kAnswerTime = milliseconds(500), kSendTime = std::chrono::seconds(10);

// One run of a task on this machine, for every client that asks for its answer.
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
  std::uint64_t bytes_ = 0;                // bytes in kept_
};

unsigned slots_of(const ProcessPoolOptions& options) {
  return std::min(options.max_workers != 0 ? options.max_workers : 2 * os::usable_cpus().cpus, TaskWord::kMaxWorkers);
}
ProcessPoolOptions pool_options(ProcessPoolOptions options) {
  options.max_workers = options.max_open_tasks = slots_of(options);
  options.run_timeout.reset();
  options.max_clients = 0;
  return options;
}

}  // namespace

// A slot is a thread that takes one job at a time, by its own connection to each server.
struct GearmanSupervisor::Slots {
  Slots(const GearmanSupervisorOptions& options, std::vector<Server> servers)
      : options_(options),
        servers_(std::move(servers)),
        runs_(options.max_kept_bytes),
        pool_(pool_options(options.workers)) {
    const BlockedSignals blocked;
    for (unsigned i = 0; pool_.error().empty() && i < slots_of(options.workers); ++i)
      threads_.emplace_back([this, i] { run(i); });
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
    while (stopping_ == 0 && pool_.error().empty()) {
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

  // Takes jobs by gearman_worker_work() alone: gearman_worker_grab_job() of 1.1.20 is not made to be called from outside of
  // it. It does not block, so that a server that says nothing can be told from one that has no job. No timeout is
  // registered: the server would run an overdue task again on the same worker.
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
    Future future = pool_.submit(input, {.run_timeout = limit != 0 ? std::optional(Nanoseconds(limit)) : std::nullopt});
    if (!future.valid()) {
      AnswerHeader header;
      header.kind = future.error().kind;
      if (header.kind != FailureKind::kTooLarge) return std::nullopt;
      return with_header(header, {});
    }
    while (!future.wait_for(milliseconds(100)))
      if (out_of_time()) return std::nullopt;
    const Result result = future.get();
    // The component of another task has written into this machine's table: it is run again.
    if (result.error().kind == FailureKind::kNoWorker || result.error().kind == FailureKind::kCorrupt) return std::nullopt;
    AnswerHeader header;
    header.kind = result.error().kind;
    header.value = result.error().value;
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
