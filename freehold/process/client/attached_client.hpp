// SPDX-License-Identifier: MIT
// A client in another process than the pool's: any number of processes of one user share one table.
//
//   freehold::process::AttachedClient pool("images");        // served by freehold workers --serve images
//   if (!pool.ok()) fail(pool.error());
//   freehold::process::Result result = pool.call("some input");
//
// Submitting costs the same as in the pool's own process. If the pool's process dies, tasks fail with kNoWorker within
// 100 ms.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "freehold/process/client/future.hpp"
#include "freehold/process/supervisor/pool_stats.hpp"

namespace freehold::process {

/// A client of a pool that another process owns.
class AttachedClient {
 public:
  /// Attaches over a Unix socket and waits for the answer.
  /// @param socket  connected to the pool's process, which passes its end to ProcessPool::serve(). Taken over and kept open,
  ///                because that is how the pool knows that this process lives
  /// Errors: !ok(), error() says why.
  explicit AttachedClient(int socket);
  /// Attaches to the pool that a process of this user serves by that name: freehold workers --serve NAME, or NamedSocket.
  /// @param name  of the pool
  /// Errors: !ok(), error() says why.
  explicit AttachedClient(const std::string& name);
  /// Pre: no future, result or caller of submit() is left.
  ~AttachedClient();
  AttachedClient(const AttachedClient&) = delete;
  AttachedClient& operator=(const AttachedClient&) = delete;

  /// @return whether it is attached, and the pool's process lives. Does not wait.
  [[nodiscard]] bool ok() const { return error().empty(); }
  /// @return why not, in one line; empty if ok().
  [[nodiscard]] std::string error() const;

  /// Submits a task.
  /// @param input    text or bytes; copied into the table
  /// @param options  of this task; a run_timeout that is left out is no limit, and retry options are no retry
  /// @return the task. Errors: a future that is not valid(); its error() says why.
  [[nodiscard]] Future submit(Input input, const TaskOptions& options = {}) noexcept;
  /// Submits a task and waits for its result.
  /// @param input    text or bytes; copied into the table
  /// @param options  as of submit()
  /// @return the result, or why the task was not accepted.
  [[nodiscard]] Result call(Input input, const TaskOptions& options = {}) noexcept { return submit(input, options).get(); }
  /// Refuses tasks from now on, and waits until those of this client are over.
  /// @param timeout  at most so long; nullopt: no limit
  /// @return whether they are over, or the pool's process has ended.
  bool drain(std::optional<Nanoseconds> timeout);
  /// @return the figures of this client's tasks, and of the table; those of the workers are the pool's process's.
  [[nodiscard]] ProcessPoolStats stats() const noexcept;

 private:
  struct Attachment;

  [[nodiscard]] bool accepts() const noexcept;

  std::string error_;
  std::unique_ptr<Attachment> pool_;
};

}  // namespace freehold::process
