// SPDX-License-Identifier: MIT
#include "cli/workers/exec.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <thread>

#include "cli/support/failure.hpp"
#include "cli/support/interrupts.hpp"
#include "cli/support/output_file.hpp"
#include "cli/workers/output.hpp"
#include "cli/workers/task_reader.hpp"
#include "freehold/process/command_job.hpp"

namespace freehold::cli::workers {
namespace {
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t kLongestArgument = 1 << 20;
constexpr auto kLookInterval = 100ms;
// With keep_order, jobs that have ended and wait for their turn: more than these, and no job is read.
constexpr std::size_t kMostHeldJobs = 4096, kMostHeldJobBytes = 64u << 20;

struct Job {
  std::uint64_t number = 0;
  std::string command;
  process::Future future;
  Clock::time_point not_before{};
  unsigned runs = 0;
  bool ended = false;
  bool failed = false;
  std::string out, err;
  JobRecord record;
};

ProcessPoolOptions exec_pool(ProcessPoolOptions pool) {
  pool.command = {find_worker_program(), process::kExecWorker};
  pool.max_workers = pool.max_workers != 0 ? pool.max_workers : std::max(1u, std::thread::hardware_concurrency());
  pool.max_open_tasks = std::max(pool.max_open_tasks, 2 * pool.max_workers);
  pool.max_attempts = 1;
  return pool;
}

class Exec {
 public:
  explicit Exec(const ExecSettings& settings)
      : settings_(settings),
        log_(settings.dry_run && !settings.resume ? "" : settings.job_log, settings.resume),
        reader_(open_arguments(), settings.framing, kLongestArgument),
        output_(FileDescriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3))),
        interrupts_(std::in_place) {
    if (settings.dry_run) return;
    pool_.emplace(exec_pool(settings.pool));
    if (const std::string error = pool_->error(); !error.empty()) throw Failure(kExitExecError, error);
    submission_ = pool_->defaults();
    submission_.submit_timeout = 0ns;
  }

  int run() {
    while (interrupts_->arrived() == 0) {
      const bool submitted = read_and_submit();
      const bool some = collect() || submitted;
      write_ended();
      write_output([this] { output_.flush_some(); });
      if (!broken_.empty()) throw Failure(kExitExecError, fmt::format("no worker can be started: {}", broken_));
      if (ended_ && jobs_.empty()) {
        bool all = false;
        write_output([&] { all = output_.flush(*interrupts_); });
        if (!all) break;
        return exit_code();
      }
      show();
      if (!some) wait();
    }
    const int signal = interrupts_->arrived();
    interrupts_.reset();
    write_output([this] { output_.flush_some(); });
    return signal != 0 ? 128 + signal : exit_code();
  }

 private:
  FileDescriptor open_arguments() const {
    if (settings_.tasks.empty()) return FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return open_tasks(settings_.tasks, kExitExecError);
  }

  [[nodiscard]] int exit_code() const {
    for (const std::string& error : {reader_.error(), unusable_})
      if (!error.empty()) throw Failure(kExitExecError, error);
    return failed_ > 100 ? kExitManyFailed : static_cast<int>(failed_);
  }

  // Returns false if there is none now.
  bool next_argument(std::string& argument) {
    if (!read_argument(argument)) return false;
    ++read_;
    if (argument.find('\0') == std::string::npos) return true;
    unusable_ = fmt::format(
        "argument {} has a zero byte, which no command line can hold; --null reads arguments that end with one", read_);
    ended_ = true;
    return false;
  }
  bool read_argument(std::string& argument) {
    if (settings_.tasks.empty()) {
      ended_ = read_ == settings_.arguments.size();
      if (!ended_) argument = settings_.arguments[read_];
      return !ended_;
    }
    const TaskReader::Next found = reader_.next(argument);
    ended_ = found == TaskReader::Next::kEnd;
    return found == TaskReader::Next::kTask;
  }

  // Never waits: results are collected and signals seen while the table is full.
  bool read_and_submit() {
    bool some = false;
    for (Job& job : jobs_) {
      if (job.ended || job.future.valid() || Clock::now() < job.not_before) continue;
      if (!submit(job)) return some;
      some = true;
    }
    for (std::string argument; has_room() && next_argument(argument); some = true) {
      if (log_.has(read_)) continue;
      jobs_.push_back({.number = read_,
                       .command = fill_template(settings_.command, argument, read_),
                       .future = {},
                       .out = {},
                       .err = {},
                       .record = {}});
      if (!submit(jobs_.back())) return some;
    }
    return some;
  }
  [[nodiscard]] bool has_room() const {
    return !ended_ && jobs_.size() < kMostHeldJobs && held_bytes_ < kMostHeldJobBytes && !output_.is_large();
  }

  // Returns false if the table is full.
  bool submit(Job& job) {
    if (settings_.dry_run) {
      job.out = job.command + "\n";
      job.ended = true;
      return true;
    }
    const std::string task = std::to_string(job.number) + '\0' + job.command;
    job.future = pool_->submit(task, submission_);
    if (job.future.submit_error() == process::SubmitError::kFull) return false;
    ++job.runs;
    if (job.future.submit_error() == process::SubmitError::kTooLarge)
      end(job, {.exit_value = -1, .command = {}},
          fmt::format("freehold: job {}: its command is longer than --max-input {}\n", job.number,
                      settings_.pool.max_input_bytes));
    else if (!job.future.valid())
      note_broken();
    return true;
  }

  void note_broken() {
    broken_ = pool_->error();
    if (broken_.empty()) broken_ = "no worker";
  }

  bool collect() {
    bool some = false;
    for (Job& job : jobs_) {
      if (job.ended || !job.future.valid() || !job.future.wait_for(0ns)) continue;
      some = true;
      collect_result(job, job.future.get());
    }
    return some;
  }

  void collect_result(Job& job, const process::Result& result) {
    process::CommandResult ran;
    if (!result.ok() || result.bytes().size() < sizeof ran) {
      if (result.failure().kind == process::FailureKind::kNoWorker) return note_broken();
      const bool too_long = result.failure() == process::Failure{process::FailureKind::kComponent, process::kJobTooLong};
      return end(job, {.exit_value = -1, .signal = too_long ? 0 : SIGKILL, .command = {}},
                 too_long ? fmt::format("freehold: job {}: it printed more than --max-output {}\n", job.number,
                                        settings_.pool.max_output_bytes)
                          : fmt::format("freehold: job {}: {}\n", job.number, text(result.failure())));
    }
    std::memcpy(&ran, result.bytes().data(), sizeof ran);
    const std::string_view printed = result.text().substr(sizeof ran);
    job.out = printed.substr(0, ran.out_bytes);
    JobRecord record{.begin = static_cast<double>(ran.begin) / 1e9,
                     .runtime = static_cast<double>(ran.runtime) / 1e9,
                     .received = ran.out_bytes,
                     .exit_value = WIFEXITED(ran.status) ? WEXITSTATUS(ran.status) : 0,
                     .signal = WIFSIGNALED(ran.status) ? WTERMSIG(ran.status) : 0,
                     .command = {}};
    std::string errors(printed.substr(std::min<std::size_t>(ran.out_bytes, printed.size())));
    if (ran.started_errno != 0) {
      record.exit_value = kExitNotFound;
      errors = fmt::format("freehold: job {}: it cannot be started: {}\n", job.number, error_text(ran.started_errno));
    }
    end(job, std::move(record), std::move(errors));
  }

  // Ends one run; the job may get another.
  void end(Job& job, JobRecord record, std::string errors) {
    job.failed = record.exit_value != 0 || record.signal != 0;
    if (job.failed && job.runs < settings_.retries) {
      job.not_before = Clock::now() + settings_.retry_delay;
      job.out.clear();
      return;
    }
    job.err = std::move(errors);
    job.ended = true;
    held_bytes_ += job.out.size();
    record.number = job.number;
    record.command = job.command;
    job.record = std::move(record);
    ++done_;
    failed_ += job.failed ? 1 : 0;
  }

  void write_ended() {
    const auto write = [this](Job& job) {
      output_.append(job.out);
      if (!settings_.dry_run) unlogged_.emplace_back(output_.appended(), std::move(job.record));
      held_bytes_ -= settings_.dry_run ? 0 : job.out.size();
      if (job.err.empty()) return;
      progress_.wipe();
      write_all(STDERR_FILENO, job.err);
    };
    if (settings_.keep_order) {
      for (; !jobs_.empty() && jobs_.front().ended; jobs_.pop_front()) write(jobs_.front());
      return;
    }
    for (Job& job : jobs_)
      if (job.ended) write(job);
    std::erase_if(jobs_, [](const Job& job) { return job.ended; });
  }

  template <class Write>
  void write_output(Write&& write) {
    try {
      write();
    } catch (...) {
      log_written();
      throw;
    }
    log_written();
  }

  // A job is in the log when its output is written: --resume skips what is in the log.
  void log_written() {
    for (; !unlogged_.empty() && unlogged_.front().first <= output_.written(); unlogged_.pop_front())
      log_.add(unlogged_.front().second);
  }

  void show() {
    if (!settings_.show_progress || !progress_.is_shown() || Clock::now() < next_poll_) return;
    next_poll_ = Clock::now() + kLookInterval;
    progress_.show(done_, ended_ ? done_ + jobs_.size() : 0, fmt::format("jobs, {} failed", failed_));
  }

  void wait() {
    const auto first = std::find_if(jobs_.begin(), jobs_.end(), [](const Job& job) { return job.future.valid(); });
    if (first != jobs_.end()) {
      first->future.wait_for(2ms);
      return;
    }
    if (output_.is_large()) {
      output_.wait(*interrupts_);
      return;
    }
    pollfd files[]{{reader_.fd(), POLLIN, 0}, {interrupts_->fd(), POLLIN, 0}};
    ::poll(ended_ ? files + 1 : files, ended_ ? 1 : 2, jobs_.empty() ? static_cast<int>(kLookInterval / 1ms) : 10);
  }

  const ExecSettings& settings_;
  JobLog log_;
  TaskReader reader_;
  Output output_;
  std::optional<Interrupts> interrupts_;  // before the pool: its thread inherits the mask
  std::optional<ProcessPool> pool_;
  process::TaskOptions submission_;
  Progress progress_;
  std::deque<Job> jobs_;
  std::deque<std::pair<std::uint64_t, JobRecord>> unlogged_;  // which bytes of the output end each
  std::size_t held_bytes_ = 0;                                // of outputs of jobs that have ended
  std::string broken_, unusable_;
  bool ended_ = false;  // all arguments were read
  std::uint64_t read_ = 0, done_ = 0, failed_ = 0;
  Clock::time_point next_poll_{};
};

}  // namespace

int run_exec(const ExecSettings& settings) {
  Exec exec(settings);
  return exec.run();
}

}  // namespace freehold::cli::workers
