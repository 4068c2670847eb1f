// SPDX-License-Identifier: MIT
// The values that a user of the process pool gives with a task and gets back: options, priority, and the reason why a task
// has no output. Plain data; any thread.
#pragma once
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace freehold::process {

/// Every duration of the process pool.
using Nanoseconds = std::chrono::nanoseconds;

/// The bytes of a task's input, which may be text.
class Input {
 public:
  /// @param text  what converts to std::string_view; must live until the call that takes the input returns
  template <class Text>
    requires std::convertible_to<const Text&, std::string_view>
  Input(const Text& text) noexcept : bytes_(std::as_bytes(std::span(std::string_view(text)))) {}
  /// @param bytes  what converts to a span of bytes; must live until the call that takes the input returns
  template <class Bytes>
    requires std::convertible_to<const Bytes&, std::span<const std::byte>>
  Input(const Bytes& bytes) noexcept : bytes_(bytes) {}

  /// @return the bytes.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

// A task of a client, until the client has taken its result: the entry, and which of the entry's tasks it is.
struct Ticket {
  std::uint32_t entry = 0;
  std::uint32_t generation = 0;
};
[[nodiscard]] constexpr std::uint64_t id_of(Ticket ticket) noexcept {
  return std::uint64_t{ticket.generation} << 32 | ticket.entry;
}

/// Why a task has no output, or why it could not begin; the numbers are those of freehold_process_result.
enum class FailureKind : std::uint32_t {
  kNone,       ///< it has one
  kSignal,     ///< its worker was killed by a signal; value: the number, or 0 if another process reaped the worker
  kExit,       ///< its worker exited; value: the status
  kDeadline,   ///< it ran beyond its time limit; value: the limit in milliseconds
  kMemory,     ///< its worker held more memory than allowed; value: the limit in MiB
  kComponent,  ///< the component rejected it; value: the number that the component returned
  kNoWorker,   ///< no worker can be started or reached, or the pool takes no more tasks; the pool's error() says more
  kCorrupt,    ///< the task table was overwritten, so nothing that is known of the task can be trusted
  // From here on submit() made no task.
  kFull = 32,      ///< the table stayed full for as long as the caller would wait
  kTooLarge = 33,  ///< the input is longer than max_input_bytes
  kNoMemory = 35,  ///< less memory is left than a large input needs, or a result that must leave the table
  kNoTask = 37,    ///< the future is empty: it was dropped, or its result was taken before
};

/// How a task failed: the kind and its figure.
struct Failure {
  FailureKind kind = FailureKind::kNone;  ///< the reason
  std::int32_t value = 0;                 ///< see FailureKind
  /// @param a  a failure
  /// @param b  another one
  /// @return whether kind and value are equal.
  friend constexpr bool operator==(const Failure& a, const Failure& b) noexcept = default;
};

/// Which of two waiting tasks starts first.
enum class Priority : std::uint8_t {
  kHigh,    ///< before all others
  kNormal,  ///< the default
  kLow,     ///< after all others
};
inline constexpr unsigned kPriorities = 3;

/// How many of a component's codes a retry policy can name.
inline constexpr unsigned kMaxRetryCodes = 4;

/// Decides whether a task that its component rejects, by returning a number, runs again.
struct RetryOptions {
  std::array<int, kMaxRetryCodes> codes{};  ///< retry for these numbers only; all 0: for every number
  unsigned max_attempts = 0;                ///< runs in all, including those whose worker died; 0: no retry
  Nanoseconds delay{0};                     ///< before the next run, in whole milliseconds
};

/// The limits of a task, and when it starts. What is left out is as the pool's options say; Nanoseconds::max() is no limit,
/// 0 a limit of zero.
struct TaskOptions {
  /// Time limit of one run. Beyond it the worker is killed and the task is tried again.
  std::optional<Nanoseconds> run_timeout{};
  /// Time limit from submission to result, over waiting and all attempts; nullopt: no limit.
  std::optional<Nanoseconds> total_timeout{};
  unsigned max_attempts = 0;              ///< runs in all, if workers die; 0: the pool's number
  Priority priority = Priority::kNormal;  ///< the older of equal tasks starts first
  RetryOptions retry{};                   ///< for tasks that the component rejects; max_attempts 0: the pool's
  /// How long submit() waits while the table is full; nullopt: no limit. Results that no caller has got yet are moved out of
  /// the table then, so a program may keep any number of futures.
  std::optional<Nanoseconds> submit_timeout{};
};

}  // namespace freehold::process
