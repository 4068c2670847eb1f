// SPDX-License-Identifier: MIT
#include "freehold/process/supervisor/pool_events.hpp"

#include <signal.h>

namespace freehold::process {

const char* text(ExitReason reason) noexcept {
  switch (reason) {
    case ExitReason::kSignal: return "signal";
    case ExitReason::kExit: return "exit";
    case ExitReason::kDeadline: return "deadline";
    case ExitReason::kMemory: return "memory";
    case ExitReason::kIdle: return "idle";
    case ExitReason::kMaxTasks: return "max_tasks";
    case ExitReason::kMaxRss: return "max_rss";
    case ExitReason::kMaxAge: return "max_age";
    case ExitReason::kClosed: return "closed";
    case ExitReason::kNeverUp: return "never up";
    case ExitReason::kCancelled: return "cancelled";
  }
  return "?";
}

std::string text(Failure failure) {
  const std::string value = std::to_string(failure.value);
  switch (failure.kind) {
    case FailureKind::kNone: return "it is well";
    case FailureKind::kSignal:
      return failure.value == 0 ? "its worker was killed"
                                : "its worker was killed by signal " + value +
                                      (failure.value == SIGKILL ? " (the system does that where memory runs out)" : "");
    case FailureKind::kExit: return "its worker exited with status " + value;
    case FailureKind::kDeadline: return "it took longer than " + value + " ms";
    case FailureKind::kMemory: return "its worker grew beyond " + value + " MiB";
    case FailureKind::kComponent: return "the component returned " + value;
    case FailureKind::kNoWorker: return "no worker can be started or reached, or the pool takes no more tasks";
    case FailureKind::kCorrupt: return "a component has written into the table of tasks";
    case FailureKind::kFull: return "as many tasks as max_open_tasks wait or run already";
    case FailureKind::kTooLarge: return "its input is longer than max_input_bytes";
    case FailureKind::kNoMemory: return "too little memory is left for it";
    case FailureKind::kNoTask: return "it was dropped, or its result was taken before";
  }
  return "?";
}

std::string text(const PoolEvent& event) {
  using Kind = PoolEvent::Kind;
  const std::string worker = "worker " + std::to_string(event.worker);
  const std::string task =
      "task " + std::to_string(event.task) + ", attempt " + std::to_string(event.attempt) + ", " + worker;
  switch (event.kind) {
    case Kind::kWorkerEnded: return worker + " has ended: " + text(event.exit_reason);
    case Kind::kTaskHandedOn: return task + ": " + text(event.reason) + "; it goes to another one";
    case Kind::kTaskFailed: return task + ": " + text(event.reason) + "; it has failed";
    case Kind::kTaskDropped: return task + ": " + text(event.reason) + "; it was cancelled";
    case Kind::kStartFailed: return "a worker program " + event.text;
    case Kind::kBroken: return event.text;
    case Kind::kDamaged:
      return "a component has written into the task table (" + event.text + "): all its workers and tasks begin anew";
  }
  return "?";
}

}  // namespace freehold::process
