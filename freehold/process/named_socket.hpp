// A pool's name for other processes of the same user: an abstract Unix socket, so nothing is left behind that would keep the
// name from the next server, whatever ends this one. Names count within one network namespace.
#pragma once
#include <string>

namespace freehold::process {

// The server's end: who connects may become a client, ProcessPool::serve(accept()).
class NamedSocket {
 public:
  // Errors: !ok(), error() says why in one line; another server has the name, say.
  explicit NamedSocket(const std::string& name);
  ~NamedSocket();
  NamedSocket(const NamedSocket&) = delete;
  NamedSocket& operator=(const NamedSocket&) = delete;

  [[nodiscard]] bool ok() const noexcept { return fd_ >= 0; }
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  // Readable when somebody has connected.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  // Returns a connected socket, the caller's to close; -1 if there is none. Does not wait.
  [[nodiscard]] int accept() const noexcept;

 private:
  int fd_ = -1;
  std::string error_;
};

// Connects to the server of that name, and waits for at most 10 s until it answers. Returns the socket, or -1 and why.
[[nodiscard]] int connect_to(const std::string& name, std::string& error);

}  // namespace freehold::process
