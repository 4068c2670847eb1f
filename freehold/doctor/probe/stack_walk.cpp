// SPDX-License-Identifier: MIT
#include "freehold/doctor/probe/stack_walk.hpp"

#include <sys/uio.h>
#include <unistd.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <cstddef>
#include <cstring>

#include "freehold/doctor/probe/trace_file.hpp"

namespace freehold::doctor::probe {
namespace {

// Code made at run time has no unwind information, and a stack ended there. CPython's trampolines (PYTHONPERFSUPPORT=1) have
// one of two frames, which are told by what is executed after the return: add $8,%rsp; ret or pop %rbp; ret. Either way the
// return address lies 8 bytes up. Reads by system calls, as the address may be nothing at all. False: it is no such frame.
[[nodiscard]] bool step_over_trampoline(unw_cursor_t& cursor, unw_word_t address) noexcept {
  constexpr unsigned char kAdd[] = {0x48, 0x83, 0xc4, 0x08, 0xc3}, kPop[] = {0x5d, 0xc3};
  unw_word_t stack = 0;
  if (unw_get_reg(&cursor, UNW_REG_SP, &stack) != 0) return false;
  unsigned char code[sizeof kAdd] = {};
  unw_word_t frame[2] = {};
  iovec to[] = {{code, sizeof code}, {frame, sizeof frame}};
  iovec from[] = {{reinterpret_cast<void*>(address), sizeof code}, {reinterpret_cast<void*>(stack), sizeof frame}};
  const ssize_t whole = sizeof code + sizeof frame;
  if (::process_vm_readv(::getpid(), to, 2, from, 2, 0) != whole || frame[1] == 0) return false;
  const bool has_pop = std::memcmp(code, kPop, sizeof kPop) == 0;
  if (!has_pop && std::memcmp(code, kAdd, sizeof kAdd) != 0) return false;
  // A cursor that has met a frame without information goes no further, whatever it is set to: it begins anew, from a context
  // as unw_getcontext() lays it out.
  constexpr struct {
    int reg;
    std::size_t place;
  } kKept[] = {{UNW_X86_64_RBX, 1},  {UNW_X86_64_RBP, 6},  {UNW_X86_64_R12, 12},
               {UNW_X86_64_R13, 13}, {UNW_X86_64_R14, 14}, {UNW_X86_64_R15, 15}};
  constexpr std::size_t kFramePlace = 6, kStackPlace = 7, kAddressPlace = 16;
  unw_context_t context{};
  for (const auto& [reg, place] : kKept) {
    unw_word_t value = 0;
    if (unw_get_reg(&cursor, reg, &value) != 0) return false;
    context.data[place] = value;
  }
  if (has_pop) context.data[kFramePlace] = frame[0];
  context.data[kStackPlace] = stack + sizeof frame;
  context.data[kAddressPlace] = frame[1];
  return unw_init_local(&cursor, &context) == 0;
}

}  // namespace

unsigned walk_stack(std::uint64_t (&addresses)[kMaxDepth]) noexcept {
  unw_context_t context;
  unw_cursor_t cursor;
  if (unw_getcontext(&context) != 0 || unw_init_local(&cursor, &context) != 0) return 0;
  unsigned depth = 0;
  while (depth < kMaxDepth) {
    const bool is_known = unw_step(&cursor) > 0;
    unw_word_t address = 0;
    if (unw_get_reg(&cursor, UNW_REG_IP, &address) != 0 || address == 0) break;
    if (!is_known) {
      if (!step_over_trampoline(cursor, address)) break;
      addresses[depth++] = address;
      // Its caller, which the cursor stands at now without a step.
      if (depth == kMaxDepth || unw_get_reg(&cursor, UNW_REG_IP, &address) != 0) break;
    }
    if (depth == 0 && address >= g_file.own_begin && address < g_file.own_end) continue;
    addresses[depth++] = address;
  }
  return depth;
}

}  // namespace freehold::doctor::probe
