// SPDX-License-Identifier: MIT
// A small file of the system's, read through a buffer on the stack; stdio may allocate. For code that runs inside malloc,
// possibly on a coroutine's stack of 8 KiB: choose buffers as small as the lines are. Empty if the file cannot be read.
// Cost: a call of the kernel to open, one to close, and one for each buffer.
#pragma once
#include <cerrno>
#include <cstddef>

#include "freehold/os/system_call.hpp"

namespace freehold::os {

template <std::size_t kLineBytes, std::size_t kBufferBytes>
class FileLines {
 public:
  explicit FileLines(const char* path) noexcept : fd_(kernel::open(path, O_RDONLY | O_CLOEXEC)), is_open_(fd_ >= 0) {}
  // Reads a descriptor that stays open: from the file's beginning, whatever was read before.
  explicit FileLines(int fd) noexcept : fd_(fd) {}
  ~FileLines() {
    if (is_open_) kernel::close(fd_);
  }
  FileLines(const FileLines&) = delete;
  FileLines& operator=(const FileLines&) = delete;

  // The next line without its end, cut where it is longer than the room; null: the last one was read.
  [[nodiscard]] const char* next() noexcept {
    std::size_t length = 0;
    char c = 0;
    bool any = false;
    for (; read_char(c) && c != '\n'; any = true)
      if (length < sizeof line_ - 1) line_[length++] = c;
    line_[length] = '\0';
    return any || c == '\n' ? line_ : nullptr;
  }
  // False: the end.
  [[nodiscard]] bool read_char(char& c) noexcept {
    if (at_ == filled_) {
      ssize_t got = 0;
      do got = is_open_ ? kernel::read(fd_, buffer_, sizeof buffer_) : kernel::pread(fd_, buffer_, sizeof buffer_, offset_);
      while (got < 0 && errno == EINTR);
      if (got <= 0) return false;
      at_ = 0;
      filled_ = static_cast<std::size_t>(got);
      offset_ += got;
    }
    c = buffer_[at_++];
    return true;
  }

 private:
  int fd_;
  bool is_open_ = false;  // by us
  off_t offset_ = 0;
  std::size_t at_ = 0, filled_ = 0;
  char buffer_[kBufferBytes];
  char line_[kLineBytes];
};

}  // namespace freehold::os
