// SPDX-License-Identifier: MIT
// Shared by the rows of `script/bench service`, which look at memory as a long-running service does. A row loads the malloc,
// then main() tells the driver and sleeps while the driver watches what stays resident. A row's own tables lie in
// shared mappings, so that the process's anonymous memory is the malloc's alone.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>

#include "bench/macro/rows.hpp"

namespace freehold::bench {

// A row prints these beside its memory: a name and a number each.
struct Figure {
  const char* name = nullptr;
  double value = 0;
};
using Figures = std::array<Figure, 3>;

struct ServiceRow {
  const char* name;
  const char* summary;
  Figures (*run)(double scale);
};

using ServiceRows = std::span<const ServiceRow>;

ServiceRows traffic_rows();
ServiceRows fork_and_line_rows();

// Memory outside malloc that does not count as anonymous. Zero until written.
template <class T>
class SharedTable {
 public:
  explicit SharedTable(std::size_t size, int file = -1) : size_(size) {
    void* memory =
        mmap(nullptr, size * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | (file < 0 ? MAP_ANONYMOUS : 0), file, 0);
    if (memory == MAP_FAILED) give_up("mmap failed");
    data_ = static_cast<T*>(memory);
  }
  SharedTable(const SharedTable&) = delete;
  SharedTable& operator=(const SharedTable&) = delete;
  ~SharedTable() { munmap(data_, size_ * sizeof(T)); }
  T& operator[](std::size_t i) { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  std::size_t size() const { return size_; }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

// The bytes that the program has asked for and not freed, as the driver reads them: a number for each thread.
class Live {
 public:
  static constexpr std::size_t kThreads = 64;
  static Live& get() {
    static Live live;
    return live;
  }
  void add(unsigned thread, std::int64_t bytes) {
    auto& mine = bytes_[thread % kThreads];
    mine.store(mine.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }

 private:
  static int open_file() {
    const char* path = std::getenv("FREEHOLD_LIVE_FILE");
    const int file = path != nullptr ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file >= 0 && ftruncate(file, kThreads * sizeof(std::int64_t)) != 0) give_up("the file of live bytes cannot grow");
    return file;
  }
  SharedTable<std::atomic<std::int64_t>> bytes_{kThreads, open_file()};
};

struct Block {
  char* start;
  std::size_t bytes;
};

// Every byte is written, as a program would.
inline Block allocate(std::size_t bytes, unsigned thread = 0) {
  auto* start = static_cast<char*>(must(std::malloc(bytes)));
  std::memset(start, static_cast<int>(bytes), bytes);
  keep(start);
  Live::get().add(thread, static_cast<std::int64_t>(bytes));
  return {start, bytes};
}
inline void release(Block& block, unsigned thread = 0) {
  if (block.start == nullptr) return;
  if (block.start[block.bytes - 1] != static_cast<char>(block.bytes)) give_up("a block was overwritten");
  std::free(block.start);
  Live::get().add(thread, -static_cast<std::int64_t>(block.bytes));
  block = {};
}

// A moment in which the driver sees how much is resident.
inline void rest() { usleep(250'000); }

}  // namespace freehold::bench
