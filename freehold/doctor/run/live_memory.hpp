// SPDX-License-Identifier: MIT
// The memory of a process that runs, and the places in it that are marked for readers outside: the directories of Freehold's
// engine, and those of private heaps and pools (alloc/live_figures.hpp, sync/live_list.hpp). The process is neither stopped
// nor signalled. One thread. Cost: milliseconds for each 10 MB of data that is looked through.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace freehold::doctor {

class LiveMemory {
 public:
  // `most_bytes`: that are looked through for marks.
  LiveMemory(pid_t pid, std::size_t most_bytes);

  // False: it cannot be read.
  [[nodiscard]] bool read(std::uint64_t address, void* to, std::size_t bytes);
  template <class T>
    requires std::is_trivially_copyable_v<T>
  [[nodiscard]] bool read(std::uint64_t address, T& to) {
    return read(address, &to, sizeof to);
  }
  template <class T>
    requires std::is_trivially_copyable_v<T>
  [[nodiscard]] bool read(std::uint64_t address, std::vector<T>& to) {
    return to.empty() || read(address, to.data(), to.size() * sizeof(T));
  }
  // Many ranges of `words` integers each, one behind the other in `to`. False: not all can be read.
  [[nodiscard]] bool read_each(const std::vector<std::uint64_t>& addresses, std::size_t words,
                               std::vector<std::uint64_t>& to);
  // A text that ends, at most `most` bytes of it, and no part of a character of UTF-8; empty: there is none, or it cannot be
  // read.
  [[nodiscard]] std::string text(std::uint64_t address, std::size_t most = 200);

  enum class Kind : std::uint8_t { kEngine, kList };
  struct Mark {
    Kind kind;
    std::uint64_t address;
  };
  // `maps`: the process's, just read. In the order in which they are worth a look.
  [[nodiscard]] std::vector<Mark> marks(const std::string& maps);

  // Why the last read failed, as errno; 0: none did.
  [[nodiscard]] int error() const noexcept { return error_; }

 private:
  pid_t pid_;  // of a thread that has memory
  std::size_t bytes_left_;
  int error_ = 0;
};

}  // namespace freehold::doctor
