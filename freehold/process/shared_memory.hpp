// Memory that processes share by passing a file descriptor: a memfd, which has no name that could be left behind or guessed.
// Its size is sealed, so that nobody who has it can make another's access fail by truncating it. Only pages that were used
// exist. A stranger's process cannot attach: a descriptor is inherited, or sent over a Unix socket to a process of the same
// user; the mode is 0600 for what /proc shows.
#pragma once
#include <cstddef>
#include <cstdint>

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
  void give_back(std::uint64_t offset, std::uint64_t bytes) const noexcept;

 private:
  int fd_ = -1;
  void* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// Sends a descriptor to the process at the other end of a connected Unix socket. Returns false, with EACCES, if that process
// belongs to another user; with the system's errno otherwise.
bool send_descriptor(int socket, int fd) noexcept;
// Receives one; closed on exec. Returns -1 and errno, ENODATA if the other end sent none.
int receive_descriptor(int socket) noexcept;

}  // namespace freehold::process
