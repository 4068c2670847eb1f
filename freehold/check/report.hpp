// SPDX-License-Identifier: MIT
// The lines of a report that follow its first one, for base::fatal():
//
//   freehold: use of a freed block: 0x7f31c2a01010
//   freehold:   block of 24 bytes at 0x7f31c2a01000, malloc
//   freehold:   freed by thread 4711:
//   freehold:     #0 0x7f31c1a02f31 /usr/lib/libfreehold.so+0x2f31
//   freehold:     #1 0x55d0a0001139 /home/me/program+0x1139
//
// An address lies in the instruction that calls; "addr2line -e FILE OFFSET" and llvm-symbolizer take what stands behind it.
// Under `freehold run` the command is asked for a stack's lines, and functions and lines stand there instead. See
// StackRequest. Every line is built in a buffer on the stack and written at once: no allocation, no lock, async-signal-safe.
// Any thread.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "freehold/base/check.hpp"
#include "freehold/os/text_line.hpp"

namespace freehold::check {

// A byte as two hexadecimal digits.
struct Byte {
  std::uint8_t value;
};

inline constexpr std::size_t kLineBytes = 640;  // longest line; what is longer is cut

// "freehold:   " and the parts: texts, numbers (decimal), addresses (hexadecimal), bytes.
class DetailLine {
 public:
  DetailLine() noexcept { line_.add("freehold:   "); }

  void add(const char* text) noexcept { line_.add(text); }
  void add(const void* address) noexcept { line_.add(address); }
  template <std::unsigned_integral T>
  void add(T value) noexcept {
    line_.add(std::uint64_t{value});
  }
  void add(Byte byte) noexcept {
    const char digits[] = {"0123456789abcdef"[byte.value >> 4], "0123456789abcdef"[byte.value & 15]};
    line_.add(digits, sizeof digits);
  }
  void write() noexcept { line_.write(); }

 private:
  os::TextLine<kLineBytes> line_;
};

// Writes one line.
template <class... Parts>
[[gnu::noinline, gnu::cold]] void detail(Parts... parts) noexcept {
  DetailLine line;
  (line.add(parts), ...);
  line.write();
}

// Writes one line for each address; without addresses, one that says so. Where the command cannot be asked, or does not
// answer, the lines have addresses.
[[gnu::cold]] void detail_stack(void* const* addresses, unsigned count) noexcept;

// How the command that started the program is asked for the lines of a stack: FREEHOLD_REPORT_FD is a socket to it. A
// message has the addresses, and the descriptor of a pipe for the answer: the lines, and a byte of 0 at their end. So the
// program writes everything itself, in order, and nothing is lost with the command.
using StackRequest = std::uint64_t[64];

// Writes which command prints lines, once in a process that was not started by it. Behind a report with stacks.
[[gnu::cold]] void hint_at_lines() noexcept;

// Finds that socket. Before the first report; complains of a value that makes no sense.
void prepare_stack_requests() noexcept;

// Writes the bytes from `begin` on, at most 16, and marks those that are not `expected`: "0x7f..20: be be [41] be". They are
// read through the system, so that an address without memory is no fault.
[[gnu::cold]] void detail_bytes(const void* begin, std::size_t count, std::uint8_t expected) noexcept;

}  // namespace freehold::check
