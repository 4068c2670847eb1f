// SPDX-License-Identifier: MIT
// The memory of a process that runs, and the places in it that are marked for readers outside: the directories of Freehold's
// engine, and those of private heaps and pools (alloc/live_figures.hpp, sync/live_list.hpp). The process is neither stopped
// nor signalled. One thread. Cost: milliseconds for each 10 MB of data that is looked through.
//
// The process may be another user's and hostile. A reader compares each number with a bound before it becomes a length, a
// count or a stride; besides, one LiveMemory copies so many bytes in all, and no more.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace freehold::live {

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
  // Changes the process's memory, which is there to be changed from outside. False: it cannot be written.
  [[nodiscard]] bool write(std::uint64_t address, std::uint64_t value);
  // Adds the bits that are set in `words` integers. False: not all can be read. Memory: a buffer.
  [[nodiscard]] bool count_bits(std::uint64_t address, std::uint64_t words, std::uint64_t& bits);
  // The same of many such ranges. Pre: `words` is bounded.
  [[nodiscard]] bool count_bits(const std::vector<std::uint64_t>& addresses, std::size_t words, std::uint64_t& bits);
  // A text that ends, at most `most` bytes of it, and no part of a character of UTF-8; empty: it is empty, or cannot be
  // read.
  [[nodiscard]] std::string text(std::uint64_t address, std::size_t most = 200);

  enum class Kind : std::uint8_t { kEngine, kList };
  struct Mark {
    Kind kind;
    std::uint64_t address;
  };
  // `maps`: the process's, just read. In the order in which they are worth a look.
  [[nodiscard]] std::vector<Mark> marks(const std::string& maps);

  // Why the last read failed, as errno; 0: none did. E2BIG: too many bytes in all.
  [[nodiscard]] int error() const noexcept { return error_; }

 private:
  // Bytes of all reads: the words of 500 GiB of the smallest slots.
  static constexpr std::uint64_t kMostReadBytes = std::uint64_t{4} << 30;
  [[nodiscard]] bool may_read(std::uint64_t bytes);

  pid_t pid_;  // a thread that has memory
  std::size_t bytes_left_;
  std::uint64_t read_left_ = kMostReadBytes;
  int error_ = 0;
};

}  // namespace freehold::live
