// SPDX-License-Identifier: MIT
// A client in another process than the pool's: any number of processes of one user share one table.
//
//   freehold::process::AttachedClient pool("images");        // served by freehold workers --serve images
//   if (!pool.ok()) fail(pool.error());
//   freehold::process::Result result = pool.client().submit("some input").get();
//
// Submitting costs the same as in the pool's own process. If the pool's process dies, tasks fail with kNoWorker within
// 100 ms.
#pragma once
#include <optional>
#include <string>

#include "freehold/process/client/client.hpp"

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

  /// @return whether it is attached.
  [[nodiscard]] bool ok() const noexcept { return client_.has_value(); }
  /// @return why it is not attached, in one line; empty if it is.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  /// @return the client, which lives as long as this object. Pre: ok().
  [[nodiscard]] Client& client() noexcept { return *client_; }

 private:
  void attach();

  std::string error_;
  const int socket_;
  int wakeup_fd_ = -1, process_ = -1;
  SharedMemory memory_;
  std::optional<Client> client_;
};

}  // namespace freehold::process
