// SPDX-License-Identifier: MIT
#include "cli/workers/run.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "cli/workers/output.hpp"
#include "freehold/component.h"
#include "tools/support/failure.hpp"
#include "tools/support/file_descriptor.hpp"
#include "tools/support/interrupts.hpp"

namespace freehold::cli::workers {
namespace {
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kTurnWait = 10ms;       // for the task whose turn it is, before the results of others are taken
constexpr auto kPollInterval = 100ms;  // time between looks at signals and at the line of status
constexpr std::size_t kMostHeldBytes = 64u << 20;
constexpr std::size_t kMostHeldTasks = 65'536;

// Workers inherit the standard output. A component that prints must not spoil the outputs: its standard output is this
// program's standard error.
FileDescriptor take_standard_output() {
  FileDescriptor output(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!output || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    throw Failure(kExitRefused, fmt::format("cannot set up the standard files: {}", error_text(errno)));
  return output;
}

// Why a task has failed, for its line on standard error.
std::string reason(process::Failure failure, unsigned attempts) {
  using process::FailureKind;
  const std::string times = attempts == 1 ? "" : fmt::format(", {} times", attempts);
  switch (failure.kind) {
    case FailureKind::kNone: return "";
    case FailureKind::kNoWorker: return "no worker";
    case FailureKind::kCorrupt:
    case FailureKind::kFull:
    case FailureKind::kTooLarge:
    case FailureKind::kNoMemory:
    case FailureKind::kNoTask: return text(failure);
    case FailureKind::kComponent:
      if (failure.value == -1) return "the component returned -1, or says it wrote more than --max-bytes allows";
      return text(failure);
    case FailureKind::kSignal:
      if (failure.value != 0) return fmt::format("{} ({}){}", text(failure), ::strsignal(failure.value), times);
      [[fallthrough]];
    case FailureKind::kExit:
    case FailureKind::kDeadline:
    case FailureKind::kMemory: return text(failure) + times;
  }
  __builtin_unreachable();
}

// A task that was read. It waits or runs, or it has ended and waits for its turn to be written.
struct Entry {
  std::uint64_t number = 0;
  process::Future future;
  std::string output;
  std::string failure;
};

class Run {
 public:
  explicit Run(const Settings& settings)
      : settings_(settings),
        reader_(open_tasks(settings.tasks), settings.end, settings.pool.max_input_bytes),
        output_(take_standard_output()),
        interrupts_(std::in_place),
        pool_(settings.pool) {
    if (const std::string error = pool_.error(); !error.empty()) throw Failure(kExitRefused, error);
  }

  Results run() {
    const auto begin = Clock::now();
    while (step()) {
    }
    // The next Ctrl-C ends this process at once; its workers go with it.
    results_.signal = interrupts_->arrived();
    interrupts_.reset();
    if (results_.signal != 0) write_what_has_ended();
    output_.flush_some();
    results_.unanswered = read_ - results_.done - results_.failed;
    results_.input_error = reader_.error();
    results_.pool = pool_.stats();
    results_.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    entries_.clear();
    return std::move(results_);
  }

 private:
  // Returns false when it is over.
  bool step() {
    if (!poll_signals()) return false;
    read_and_submit();
    bool some = false;
    while (!entries_.empty() && collect_result(entries_.front(), 0ms)) {
      some = true;
      write_front();
      if (output_.is_large() && !output_.flush(*interrupts_)) return false;
    }
    if (!results_.broken.empty()) return output_.flush(*interrupts_), false;
    if (some && !entries_.empty()) return true;
    if (!output_.flush(*interrupts_)) return false;
    if (!entries_.empty()) {
      if (!collect_result(entries_.front(), kTurnWait)) take_early_results();
      return true;
    }
    if (ended_) return false;
    if (!some) wait_for_tasks();
    return true;
  }

  // Looks from time to time at signals and at the line of status. Returns false after a signal.
  bool poll_signals() {
    const auto now = Clock::now();
    if (now < next_poll_) return true;
    next_poll_ = now + kPollInterval;
    if (progress_.is_shown()) progress_.show(text(pool_.stats()));
    return interrupts_->arrived() == 0;
  }

  void read_and_submit() {
    while (!ended_ && held_bytes_ < kMostHeldBytes && entries_.size() < kMostHeldTasks) {
      if (!has_next_) {
        const TaskReader::Next found = reader_.next(next_);
        ended_ = found == TaskReader::Next::kEnd;
        if (found != TaskReader::Next::kTask) return;
        has_next_ = true;
        ++read_;
      }
      process::Future future = pool_.submit(next_, {.submit_timeout = process::Nanoseconds(0)});
      std::string failure;
      if (!future.valid()) {
        const process::FailureKind kind = future.error().kind;
        if (kind == process::FailureKind::kFull) return;
        if (kind == process::FailureKind::kNoWorker) return note_broken();
        failure = kind == process::FailureKind::kTooLarge
                      ? fmt::format("it is longer than --max-bytes {}", settings_.pool.max_input_bytes)
                      : text(future.error());
      }
      has_next_ = false;
      entries_.push_back({.number = read_, .future = std::move(future), .output = {}, .failure = std::move(failure)});
    }
  }

  void note_broken() {
    results_.broken = pool_.error();
    if (results_.broken.empty()) results_.broken = "no worker";
  }

  // Takes the result if it comes within that time. Returns whether the task has ended.
  bool collect_result(Entry& entry, Clock::duration time) {
    if (!entry.future.valid()) return true;
    if (!entry.future.wait_for(time)) return false;
    const process::Result result = entry.future.get();
    if (result.error().kind == process::FailureKind::kNoWorker) note_broken();
    if (result.ok()) {
      entry.output = result.text();
      held_bytes_ += entry.output.size();
    } else {
      entry.failure = reason(result.error(), settings_.pool.max_attempts);
    }
    return true;
  }

  // After a signal: writes every output that is there. A task before it that has not ended leaves an empty one.
  void write_what_has_ended() {
    std::size_t last = 0;
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (collect_result(entries_[i], 0ms)) last = i + 1;
    for (; last > 0; --last) {
      if (!entries_.front().future.valid()) {
        write_front();
        continue;
      }
      output_.append({&settings_.end, 1});
      entries_.pop_front();
    }
  }

  void take_early_results() {
    for (Entry& entry : entries_) {
      if (held_bytes_ >= kMostHeldBytes) return;
      collect_result(entry, 0ms);
    }
  }

  void write_front() {
    Entry& entry = entries_.front();
    held_bytes_ -= entry.output.size();
    if (!results_.broken.empty() && !entry.failure.empty()) {
      entries_.pop_front();  // it has not run; the reason is printed once, for all tasks
      return;
    }
    if (entry.failure.empty()) check_output(entry);
    if (entry.failure.empty()) {
      ++results_.done;
    } else {
      ++results_.failed;
      progress_.wipe();
      say(fmt::format("freehold: task {}: {}\n", entry.number, printable(entry.failure)));
      if (results_.failures.size() < kFailuresKept) results_.failures.push_back({entry.number, entry.failure});
    }
    output_.append(entry.output);  // that of a failed task is empty, so that the others stay in their places
    output_.append({&settings_.end, 1});
    entries_.pop_front();
  }

  // Each output is one line, or ends with a zero byte: one at its end is that.
  void check_output(Entry& entry) const {
    if (entry.output.ends_with(settings_.end)) entry.output.pop_back();
    if (entry.output.find(settings_.end) == std::string::npos) return;
    entry.output.clear();
    entry.failure = settings_.end == '\n' ? "its output has several lines: --null takes them" : "its output has a zero byte";
  }

  void wait_for_tasks() {
    pollfd files[]{{reader_.fd(), POLLIN, 0}, {interrupts_->fd(), POLLIN, 0}};
    ::poll(files, 2, static_cast<int>(kPollInterval / 1ms));
    if (files[1].revents != 0) next_poll_ = {};
  }

  const Settings& settings_;
  TaskReader reader_;
  Output output_;
  std::optional<Interrupts> interrupts_;  // before the pool: its thread inherits the mask
  ProcessPool pool_;
  Progress progress_;
  Results results_;

  std::deque<Entry> entries_;   // in the order of the tasks
  std::size_t held_bytes_ = 0;  // bytes of the outputs in them
  std::string next_;            // a task that was read and found the table full
  bool has_next_ = false;
  bool ended_ = false;      // all tasks were read
  std::uint64_t read_ = 0;  // tasks
  Clock::time_point next_poll_{};
};

// Checks whether a shared object is a component, in a child process, since loading it runs its constructors.

constexpr unsigned kSecondsToLoad = 30;

[[noreturn]] void load(const std::string& path, int complaints) {
  ::alarm(kSecondsToLoad);
  void* const object = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr || ::dlsym(object, FREEHOLD_COMPONENT_NAME) == nullptr) {
    const char* const why = ::dlerror();
    const ssize_t written = ::write(complaints, why, std::strlen(why));
    ::_exit(written > 0 ? 1 : 2);
  }
  ::_exit(0);
}

}  // namespace

Results run(const Settings& settings) { return Run(settings).run(); }

void check_component(const std::string& path) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Failure(kExitRefused, error_text(errno));
  FileDescriptor reading(ends[0]), writing(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) throw Failure(kExitRefused, fmt::format("cannot start a process: {}", error_text(errno)));
  if (child == 0) load(path, writing.get());
  writing.close();
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  char why[1024];
  const ssize_t length = ::read(reading.get(), why, sizeof why);
  if (length > 0)
    throw Failure(kExitRefused, fmt::format("--component: {}", printable({why, static_cast<std::size_t>(length)})));
  throw Failure(kExitRefused, fmt::format("--component: {} {} while it is loaded", printable(path),
                                          WIFSIGNALED(status) ? fmt::format("is killed by signal {}", WTERMSIG(status))
                                                              : "ends the process"));
}

}  // namespace freehold::cli::workers
