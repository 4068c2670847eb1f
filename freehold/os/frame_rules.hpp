// SPDX-License-Identifier: MIT
// How a frame leads to its caller's, kept by return address: a stack is walked without the unwinder, at some 300
// instructions a frame rather than 2,000.
//
// Most frames that compilers make have a rule of one kind on x86-64 (System V ABI 3.2.2, 3.7). The caller's stack pointer
// lies so many bytes above this frame's stack or frame pointer, and the return address right below it. Below that lie the
// registers that the function keeps for its caller. Only such rules are read here. All else (signals' frames, realigned
// stacks, code made at run time) is unknown, and left to the unwinder, one frame at a time.
//
//   slot:   a return address, its rule, and a check sum over both, and over the FDE and the CIE that the rule was read from.
//   Invariant: a rule that find() returns is what read() would return now.
//
// For libraries come and go: find() looks the FDE up where the object that is there now has its table (the rule knows the
// place in it, so nothing is searched), and takes the rule only if the FDE says what it said. The frame is on the stack, so
// its object stays while it is read (unless the frame is a guess, and the object goes at this very moment). A slot that two
// threads write at once has a wrong check sum. There is no lock and no allocation. Any thread; async-signal-safe; after fork
// as before. Needs _dl_find_object (glibc 2.35), else nothing is known.
#pragma once
#include <cstdint>

#include "freehold/os/runtime_frames.hpp"

namespace freehold::os {

class FrameRule {
 public:
  constexpr FrameRule() noexcept = default;
  constexpr explicit FrameRule(std::uint64_t bits) noexcept : bits_(bits) {}

  // Makes a rule that goes by the frame pointer, or by the stack pointer. A register's number among rbp, rbx, r12 to r15 has
  // the words that it lies below the caller's stack pointer, 0: the function leaves it alone.
  static constexpr unsigned kRegisters = 6, kMostWordsBelow = 15, kMostFrameWords = (1U << 15) - 1;
  [[nodiscard]] static constexpr FrameRule of(bool by_frame_pointer, unsigned words,
                                              const unsigned (&below)[kRegisters]) noexcept {
    std::uint64_t bits = (std::uint64_t{by_frame_pointer} | std::uint64_t{words} << 1) << kPlaceBits;
    for (unsigned i = 0; i < kRegisters; ++i) bits |= std::uint64_t{below[i]} << (kFirstRegister + 4 * i);
    return FrameRule(bits);
  }
  // The stack ends here.
  [[nodiscard]] static constexpr FrameRule end() noexcept { return FrameRule(std::uint64_t{1} << kPlaceBits); }

  [[nodiscard]] constexpr bool is_known() const noexcept { return bits_ >> kPlaceBits != 0; }
  [[nodiscard]] constexpr bool is_end() const noexcept { return bits_ >> kPlaceBits == 1; }
  // Steps from a frame to its caller's, whose stack pointer is stack_after(). Reads the words right below that, at most
  // kMostWordsBelow. Pre: a rule that is no end, of this frame.
  void step(FrameState& state) const noexcept;
  [[nodiscard]] std::uintptr_t stack_after(const FrameState& state) const noexcept;
  // The FDE's place in its object's table.
  static constexpr unsigned kPlaceBits = 24;
  [[nodiscard]] constexpr std::uint32_t place() const noexcept { return bits_ & ((1U << kPlaceBits) - 1); }
  [[nodiscard]] constexpr FrameRule at(std::uint32_t place) const noexcept { return FrameRule(bits_ | place); }
  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }

 private:
  static constexpr unsigned kFirstRegister = 40;

  std::uint64_t bits_ = 0;
};

// The rules, as one walk uses them: its frames stay while it lasts.
class FrameRules {
 public:
  using FindObject = int (*)(void*, struct dl_find_object*);  // _dl_find_object

  // Null: there are no rules.
  explicit FrameRules(FindObject find_object) noexcept : find_object_(find_object) {}

  // The rule of a return address of this thread's stack, unknown if it is not a return address.
  [[nodiscard]] FrameRule find(std::uintptr_t code) noexcept;

 private:
  // Reads the rule from the unwind information. Pre: look_up().
  [[nodiscard]] FrameRule read(std::uintptr_t code) const noexcept;
  // Returns whether the table is that of the code's object.
  [[nodiscard]] bool look_up(std::uintptr_t code) noexcept;
  // The FDE at a place in the table, if it is the code's; else null.
  [[nodiscard]] const unsigned char* fde_at(std::uint32_t place, std::uintptr_t code) const noexcept;
  [[nodiscard]] std::uint64_t check_sum(std::uintptr_t code, FrameRule rule, const unsigned char* fde) noexcept;

  FindObject find_object_;
  std::uintptr_t begin_ = 0, end_ = 0;     // bounds of the object
  const unsigned char* header_ = nullptr;  // its .eh_frame_hdr; null: it has none of the usual kind
  std::uint32_t count_ = 0;                // number of FDEs
  const unsigned char* cie_ = nullptr;     // the last one
  std::uint64_t cie_sum_ = 0;
};

}  // namespace freehold::os
