// SPDX-License-Identifier: MIT
// Memory that processes share by passing a descriptor: a memfd. It has no name that could be left behind or guessed, and its
// size is sealed, so that no process can truncate it under another. Only pages that were used exist. A process gets the
// descriptor by inheritance, or over a Unix socket from a process of the same user.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace freehold::process {

class SharedMemory {
 public:
  SharedMemory() noexcept = default;
  // New memory of so many bytes, zero. Errors: !ok(), errno says why. `name` shows in /proc/<pid>/maps.
  static SharedMemory create(const char* name, std::uint64_t bytes) noexcept;
  // Maps what create() made, here or in another process, and takes the descriptor over. Errors: !ok(); errno is EINVAL if
  // the size is not sealed.
  static SharedMemory attach(int fd) noexcept;
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  [[nodiscard]] bool ok() const noexcept { return data_ != nullptr; }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] void* data() const noexcept { return data_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  // Gives whole pages within the range back to the system; they are zero afterwards.
  void purge(std::uint64_t offset, std::uint64_t bytes) const noexcept;

 private:
  int fd_ = -1;
  void* data_ = nullptr;  // with a page before and after it that cannot be accessed
  std::uint64_t bytes_ = 0;
};

// Connects to the server of that name (NamedSocket), and waits for at most 10 s until it answers. Returns the socket, or -1
// and why.
[[nodiscard]] int connect_to(const std::string& name, std::string& error);
// A client in another process gets these: descriptors and a slot number, as they go over a Unix socket.
struct ClientSetup {
  int memory = -1, wakeup_fd = -1;
  int process = -1;  // the sender's, as a pidfd
  std::uint32_t number = 0;
};
// Sends it to the process at the other end of a connected Unix socket. Returns false, with EACCES, if that process belongs
// to another user; with the system's errno otherwise. Does not block.
bool send_client_setup(int socket, const ClientSetup& setup) noexcept;
// Receives it; the descriptors are closed on exec, and the caller's to close. Returns false and errno, ENODATA if the other
// end sent none.
bool receive_client_setup(int socket, ClientSetup& setup) noexcept;

}  // namespace freehold::process
