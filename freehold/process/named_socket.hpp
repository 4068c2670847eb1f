// SPDX-License-Identifier: MIT
// A name for a pool, by which other processes of the same user find it: an abstract Unix socket. The system frees the name
// when the server ends, whatever ends it, so nothing is left behind that would block the next one. A name counts within one
// network namespace.
//
//   freehold::process::NamedSocket socket("images");
//   for (int client = -1; (client = socket.accept()) >= 0;) pool.serve(client);   // when socket.fd() is readable
#pragma once
#include <string>

namespace freehold::process {

/// The server's end of a named pool: accept() gives sockets for ProcessPool::serve().
class NamedSocket {
 public:
  /// Takes the name.
  /// @param name  1 to 64 letters, digits, and any of _ - .
  /// Errors: !ok(), error() says why: another server has the name, say.
  explicit NamedSocket(const std::string& name);
  ~NamedSocket();
  NamedSocket(const NamedSocket&) = delete;
  NamedSocket& operator=(const NamedSocket&) = delete;

  /// @return whether it has the name.
  [[nodiscard]] bool ok() const noexcept { return fd_ >= 0; }
  /// @return why not, in one line; empty if it has.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  /// @return a descriptor that is readable when a process has connected.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// Takes a connection, without waiting.
  /// @return a connected socket, the caller's to close; -1: none waits.
  [[nodiscard]] int accept() const noexcept;

 private:
  int fd_ = -1;
  std::string error_;
};

}  // namespace freehold::process
