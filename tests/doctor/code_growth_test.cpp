// SPDX-License-Identifier: MIT
// Two profiles, made up or of real programs, and what is told of the difference.
#include <gtest/gtest.h>

#include <array>

#include "tools/doctor/facts/code_growth.hpp"

namespace freehold::doctor {
namespace {

constexpr double kSample_s = 250e-6;

class Made {
 public:
  // Samples at an instruction with few threads and with many.
  Made& at(std::uint64_t offset, std::size_t alone, std::size_t all, Instruction instruction = Instruction::kPlain,
           CodeOrigin origin = CodeOrigin::kProgram) {
    add(alone_, offset, alone, instruction, origin);
    add(all_, offset, all, instruction, origin);
    return *this;
  }
  Made& unknown(std::size_t alone, std::size_t all) {
    alone_.unknown_s += kSample_s * static_cast<double>(alone);
    all_.unknown_s += kSample_s * static_cast<double>(all);
    alone_.samples += alone;
    all_.samples += all;
    return *this;
  }
  [[nodiscard]] CodeGrowth growth(double factor = 2) const { return growth_between(alone_, all_, factor); }

 private:
  static void add(CodeSamples& to, std::uint64_t offset, std::size_t count, Instruction instruction, CodeOrigin origin) {
    if (count == 0) return;
    to.samples += count;
    to.places[{"program", offset}] = {.seconds = kSample_s * static_cast<double>(count),
                                      .instruction = instruction,
                                      .origin = origin,
                                      .address = 0x1000 + offset};
  }
  CodeSamples alone_, all_;
};

TEST(CodeGrowth, SharedWork_Same) {
  const CodeGrowth growth = Made().at(0, 500, 520).at(32, 300, 290).growth();
  EXPECT_TRUE(growth.known);
  EXPECT_FALSE(growth.work_grows);
  EXPECT_LT(growth.spinning + growth.contended + growth.slowed, 0.01);
}

TEST(CodeGrowth, EachThreadBringsWork_Grows) {
  const CodeGrowth growth = Made().at(0, 500, 1020).at(32, 300, 590).at(64, 200, 210).growth();
  EXPECT_TRUE(growth.work_grows) << "though a part of it is done once";
  EXPECT_LT(growth.spinning + growth.contended + growth.slowed, 0.01);
}

// Files are made in one folder, whose lock the kernel takes.
TEST(CodeGrowth, SystemCallsTakeMore_WorkNotKnown) {
  const CodeGrowth growth = Made().at(0, 980, 1750, Instruction::kSystemCall).at(32, 5, 6).growth();
  EXPECT_TRUE(growth.known);
  EXPECT_FALSE(growth.work_known);
}

// A search under one mutex: what it guards comes from the other CPU each time, and takes twice as long.
TEST(CodeGrowth, AFifthIsTheSame_WorkNotKnown) {
  const CodeGrowth growth = Made().at(0, 200, 195).at(32, 260, 540).at(64, 40, 265, Instruction::kAtomic).growth();
  EXPECT_TRUE(growth.known);
  EXPECT_FALSE(growth.work_known);
  EXPECT_TRUE(Made().at(0, 200, 195).at(32, 480, 960).growth().work_grows) << "a fifth of it is done once";
}

TEST(CodeGrowth, ASpinLock_SharedWorkAndSpinning) {
  const CodeGrowth growth = Made().at(0, 800, 810).at(64, 0, 500, Instruction::kPause).growth();
  EXPECT_TRUE(growth.known);
  EXPECT_FALSE(growth.work_grows) << "CPU time grows, but not by work";
  EXPECT_NEAR(growth.spinning, 0.38, 0.02);
  EXPECT_EQ(growth.hottest_spin, 0x1040U);
}

// OpenMP's threads spin until one of them has done what they wait for: no lock of the program's.
TEST(CodeGrowth, ATeamWaits_NoLock) {
  const CodeGrowth growth = Made().at(0, 800, 810).at(64, 0, 500, Instruction::kPause, CodeOrigin::kTeam).growth();
  EXPECT_NEAR(growth.team_waiting, 0.38, 0.02);
  EXPECT_EQ(growth.spinning, 0);
}

TEST(CodeGrowth, AnAtomicCounter_Contended) {
  const CodeGrowth growth = Made().at(0, 300, 310).at(64, 200, 900, Instruction::kAtomic).growth();
  EXPECT_FALSE(growth.work_grows);
  EXPECT_NEAR(growth.contended, 0.58, 0.03);
  EXPECT_EQ(growth.hottest_contended, 0x1040U);
}

// The C library's locks are atomic operations in its code; readers of one lock wait for its line, and for no holder.
TEST(CodeGrowth, AtomicOperationsOfTheRuntime_Locking) {
  const CodeGrowth growth = Made()
                                .at(0, 500, 510)
                                .at(64, 200, 900, Instruction::kAtomic, CodeOrigin::kRuntime)
                                .at(128, 100, 400, Instruction::kPlain, CodeOrigin::kRuntime)
                                .at(192, 100, 400, Instruction::kAtomic, CodeOrigin::kRuntimeWait)
                                .at(256, 100, 400, Instruction::kPlain, CodeOrigin::kLock)
                                .growth();
  EXPECT_NEAR(growth.locking, 1000.0 / 2610, 0.01);
  EXPECT_EQ(growth.spinning + growth.contended + growth.slowed, 0);
}

TEST(CodeGrowth, SpinningInTheAllocator_NotTheProgramsOwn) {
  const CodeGrowth growth = Made()
                                .at(0, 300, 310)
                                .at(64, 200, 900, Instruction::kAtomic, CodeOrigin::kAllocator)
                                .at(128, 0, 400, Instruction::kPause, CodeOrigin::kAllocator)
                                .growth();
  EXPECT_EQ(growth.spinning + growth.contended + growth.slowed, 0);
  EXPECT_EQ(growth.hottest_spin, 0u);
  EXPECT_NEAR(growth.allocator, 0.68, 0.03);
  EXPECT_NEAR(growth.in_malloc, 1300.0 / 1610, 1e-9) << "the work, too";
}

TEST(CodeGrowth, Noise_NoExcess) {
  Made made;
  for (std::uint64_t i = 0; i < 40; ++i) made.at(64 * i, 25 + i % 7, 25 + (3 * i) % 11);
  const CodeGrowth growth = made.growth();
  EXPECT_FALSE(growth.work_grows);
  EXPECT_LT(growth.spinning + growth.contended + growth.slowed, 0.02);
}

#if defined(__x86_64__)
template <std::size_t kBytes>
Instruction found(const std::array<std::uint8_t, kBytes>& code, std::size_t at) {
  return instruction_in(code, at);
}

TEST(Instruction, BytesOfX86_Told) {
  // lock xadd %eax, (%rdi); ret: the CPU is found at what follows
  EXPECT_EQ(found(std::array<std::uint8_t, 5>{0xF0, 0x0F, 0xC1, 0x07, 0xC3}, 4), Instruction::kAtomic);
  EXPECT_EQ(found(std::array<std::uint8_t, 5>{0xF0, 0x0F, 0xC1, 0x07, 0xC3}, 0), Instruction::kPlain) << "not reached yet";
  // lock cmpxchg %rsi, (%rdi), with REX; nop
  EXPECT_EQ(found(std::array<std::uint8_t, 6>{0xF0, 0x48, 0x0F, 0xB1, 0x37, 0x90}, 5), Instruction::kAtomic);
  // xchg %eax, (%rdi); xchg of two registers is no atomic operation
  EXPECT_EQ(found(std::array<std::uint8_t, 3>{0x87, 0x07, 0x90}, 2), Instruction::kAtomic);
  EXPECT_EQ(found(std::array<std::uint8_t, 3>{0x87, 0xC7, 0x90}, 2), Instruction::kPlain);
  // mov (%rdi), %eax; test; jne; pause
  EXPECT_EQ(found(std::array<std::uint8_t, 8>{0x8B, 0x07, 0x85, 0xC0, 0x74, 0xFA, 0xF3, 0x90}, 2), Instruction::kPause);
  // mov $24, %eax; syscall; ret
  EXPECT_EQ(found(std::array<std::uint8_t, 8>{0xB8, 0x18, 0x00, 0x00, 0x00, 0x0F, 0x05, 0xC3}, 7), Instruction::kPause);
  EXPECT_EQ(found(std::array<std::uint8_t, 8>{0xB8, 0x19, 0x00, 0x00, 0x00, 0x0F, 0x05, 0xC3}, 7), Instruction::kSystemCall);
  // The code behind the system call of openat: cmp $-4096, %rax; ja (far); mov 0x38(%rsp), %rdx
  constexpr std::array<std::uint8_t, 19> kOpenat{0x0F, 0x05, 0x48, 0x3D, 0x00, 0xF0, 0xFF, 0xFF, 0x0F, 0x87,
                                                 0x9D, 0x00, 0x00, 0x00, 0x48, 0x8B, 0x54, 0x24, 0x38};
  EXPECT_EQ(found(kOpenat, 2), Instruction::kSystemCall);
  for (const std::size_t at : {0U, 8U, 14U}) EXPECT_EQ(found(kOpenat, at), Instruction::kPlain) << at;
  EXPECT_EQ(found(std::array<std::uint8_t, 4>{0xF0, 0xFF, 0x07, 0x90}, 3), Instruction::kAtomic) << "lock incl (%rdi)";
  EXPECT_EQ(found(std::array<std::uint8_t, 1>{0xF0}, 0), Instruction::kPlain) << "the file's end";
  EXPECT_EQ(instruction_in({}, 0), Instruction::kPlain);
}
#endif

}  // namespace
}  // namespace freehold::doctor
