// SPDX-License-Identifier: MIT
// Litmus programs as data: a few threads of a few atomic accesses to three locations, which are zero at first. A program is
// written as a line of text, so that tables stay short and a failure prints what another run can read:
//
//   x=1/rlx F/sc y/acq | y+1/ar x?0:2/sc/rlx     two threads
//
//   x=1/rel       store            x/acq           load
//   x<2/ar        exchange         x+1/rlx         fetch_add
//   x?0:1/ar/acq  compare_exchange_strong, from 0 to 1; its order, and the one for a failure. x~0:1/ar/acq is the weak one
//   F/sc          fence
//
// Orders: rlx, acq, rel, ar (acq_rel), sc. An outcome is one character for each value that was read, in the order of the
// program, a `!` behind a weak compare-exchange that failed for no reason, a `;`, and the values of the locations in the
// end: `10;11`.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace freehold::litmus {

inline constexpr unsigned kLocations = 3;
inline constexpr unsigned kMaxInstructions = 16;

enum class Kind : std::uint8_t { kLoad, kStore, kExchange, kAdd, kCas, kWeakCas, kFence };

struct Instruction {
  Kind kind = Kind::kFence;
  std::uint8_t location = 0;
  std::uint8_t expected = 0;  // by a compare-exchange
  std::uint8_t operand = 0;   // what is stored, or added
  std::memory_order order = std::memory_order::seq_cst;
  std::memory_order failure = std::memory_order::relaxed;

  [[nodiscard]] bool reads() const noexcept { return kind != Kind::kStore && kind != Kind::kFence; }
  [[nodiscard]] bool may_write() const noexcept { return kind != Kind::kLoad && kind != Kind::kFence; }
  [[nodiscard]] bool compares() const noexcept { return kind == Kind::kCas || kind == Kind::kWeakCas; }
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

using Thread = std::vector<Instruction>;

struct Program {
  std::vector<Thread> threads;

  // The locations in use are the first so many.
  [[nodiscard]] unsigned locations() const noexcept;
  [[nodiscard]] unsigned instructions() const noexcept;
};

// An execution's reads and the memory that it leaves. Instructions are numbered through, thread after thread.
struct Observed {
  std::array<std::uint8_t, kMaxInstructions> read{};
  std::array<bool, kMaxInstructions> swapped{};
  std::array<std::uint8_t, kLocations> last{};
};

// Throws std::invalid_argument.
Program parse(std::string_view text);
std::string text(const Program& program);
std::string outcome(const Program& program, const Observed& observed);
// Returns whether the outcome fits a pattern, in which a `.` stands for any character.
bool fits(std::string_view outcome, std::string_view pattern) noexcept;

}  // namespace freehold::litmus
