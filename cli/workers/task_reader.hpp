// SPDX-License-Identifier: MIT
// Reads tasks from a file or a pipe: each line is one, or what ends with a zero byte, as `find -print0` writes it. It never
// blocks on a pipe, so outputs are written while the next task is still being typed. Memory: a buffer, and one task, cut
// beyond its limit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tools/support/file_descriptor.hpp"

namespace freehold::cli::workers {

// Opens the file of tasks; "-" is standard input. Throws Failure(kExitRefused) if it cannot be read.
[[nodiscard]] FileDescriptor open_tasks(const std::string& path);

class TaskReader {
 public:
  enum class Next : std::uint8_t { kTask, kNotYet, kEnd };

  // `end`: ends a task, and is no part of it. Keeps `most_bytes` + 1 of a longer task, so that the caller sees that it is
  // too long.
  TaskReader(FileDescriptor file, char end, std::size_t most_bytes);

  // The next task, if it is there.
  [[nodiscard]] Next next(std::string& task);
  // Readable when next() may have more.
  [[nodiscard]] int fd() const noexcept { return file_.get(); }
  // Why it could not read to the end; empty if it could.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  enum class Filled : std::uint8_t { kSome, kNotYet, kEnd };
  Filled fill();
  void keep(const char* bytes, std::size_t count);

  FileDescriptor file_;
  const char end_;
  const std::size_t most_;
  std::string buffer_;
  std::size_t position_ = 0;  // in the buffer
  std::string task_;          // the part of the next one that is there
  bool begun_ = false;        // a part of the next one is there
  std::string error_;
};

}  // namespace freehold::cli::workers
