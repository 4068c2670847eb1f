// SPDX-License-Identifier: MIT
// Events of the workers of a pool and of their tasks, as ProcessPoolOptions::log gets them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "freehold/process/table/task.hpp"

namespace freehold::process {

/// Why a worker ended.
enum class ExitReason : std::uint8_t {
  kSignal,     ///< a signal killed it
  kExit,       ///< it exited in a way in which workers do not
  kDeadline,   ///< killed: its task ran beyond the time limit
  kMemory,     ///< killed: it held more memory than allowed
  kIdle,       ///< it had no task for long enough
  kMaxTasks,   ///< it had run its number of tasks
  kMaxRss,     ///< it held too much memory after a task
  kMaxAge,     ///< it had lived for long enough
  kClosed,     ///< the pool ended
  kNeverUp,    ///< it ended before it could take a task
  kCancelled,  ///< killed: a client called Future::kill()
};
/// The number of reasons.
inline constexpr std::size_t kExitReasons = 11;
/// @param reason  why a worker ended
/// @return the reason in one or two words.
[[nodiscard]] const char* text(ExitReason reason) noexcept;

/// One event of the log.
struct PoolEvent {
  /// The kind of event.
  enum class Kind : std::uint8_t {
    kWorkerEnded,   ///< exit_reason says why
    kTaskHandedOn,  ///< its worker ended, and the task goes to another worker
    kTaskFailed,    ///< its worker ended, and that was the task's last attempt
    kTaskDropped,   ///< its worker ended, and its client has dropped the task
    kStartFailed,   ///< a worker did not come up; text says why
    kBroken,        ///< no worker can be started; text says why
    kDamaged,       ///< a component has written into the task table; text says where
  };
  Kind kind = Kind::kWorkerEnded;                ///< what happened
  int worker = 0;                                ///< the worker's process; 0: none
  ExitReason exit_reason = ExitReason::kSignal;  ///< why the worker ended
  Failure reason{};                              ///< why the task's attempt failed
  std::uint64_t task = 0;                        ///< Future::id() of the task
  unsigned attempt = 0;                          ///< the task's attempt; the first is 1
  std::string text{};                            ///< details, see Kind
  std::string last_lines{};                      ///< end of the worker's standard error, with keep_standard_error
};
/// @param event  an event of the log
/// @return the event in one line.
[[nodiscard]] std::string text(const PoolEvent& event);
/// @param failure  why a task has no output
/// @return the reason as a clause: "its worker exited with status 3".
[[nodiscard]] std::string text(Failure failure);

}  // namespace freehold::process
