// SPDX-License-Identifier: MIT
// Counts an event of the processor or the kernel in a program, and in all threads and processes that it starts:
// instructions, as a rule, which other programs do not change as they do times. A thread that has started already would
// not be counted, so the count begins before the program does, in the process that is going to execute it. Not every machine
// has such a counter (most virtual ones have none), and not every kernel permits it (kernel.perf_event_paranoid): then there
// is no count, and no error.
//
// One thread. Cost: a system call to begin and one to read; the processor counts beside its work.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace freehold::doctor {

class EventCount {
 public:
  EventCount() = default;
  EventCount(const EventCount&) = delete;
  EventCount& operator=(const EventCount&) = delete;
  ~EventCount();

  // Counts from when `process` executes a program. `type` and `config`: as those of perf_event_open(2). The kernel's part
  // is left out.
  void begin(pid_t process, std::uint32_t type, std::uint64_t config) noexcept;
  void begin_instructions(pid_t process) noexcept;
  // So far; where counters were shared, as if it had been counted all the time. None: it was not counted.
  [[nodiscard]] std::optional<double> read() const noexcept;

 private:
  int fd_ = -1;
};

}  // namespace freehold::doctor
