// SPDX-License-Identifier: MIT
#include "tools/doctor/probe/stack_walk.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/uio.h>
#include <unistd.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <utility>

#include "tools/doctor/probe/trace_file.hpp"

namespace freehold::doctor::probe {
namespace {

template <class T>
[[nodiscard]] T read_at(const char* address) noexcept {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

// Returns whether the address surely has no entry, in a file whose table of entries is of the usual kind: sorted, and four
// bytes each for a function and its entry, relative to the table.
[[nodiscard]] bool has_no_entry(const char* table, std::uintptr_t address) noexcept {
  constexpr unsigned char kUsual[] = {1, 0x1b, 0x03, 0x3b};  // version, and how the rest is written
  constexpr std::size_t kCount = 8, kRows = 12, kRow = 8;
  if (table == nullptr || std::memcmp(table, kUsual, sizeof kUsual) != 0) return false;
  const auto begin_of = [table](std::size_t row) {
    return reinterpret_cast<std::uintptr_t>(table) +
           static_cast<std::intptr_t>(read_at<std::int32_t>(table + kRows + kRow * row));
  };
  std::size_t low = 0, high = read_at<std::uint32_t>(table + kCount);  // the first row that begins behind the address
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    begin_of(middle) <= address ? static_cast<void>(low = middle + 1) : static_cast<void>(high = middle);
  }
  if (low == 0) return true;
  // An entry: its length, where its common part is, where the function begins (relative to here), how long it is.
  constexpr std::size_t kBegin = 8, kLength = 12;
  const char* const entry = table + read_at<std::int32_t>(table + kRows + kRow * (low - 1) + sizeof(std::int32_t));
  const std::uintptr_t begin = begin_of(low - 1);
  const auto written =
      reinterpret_cast<std::uintptr_t>(entry + kBegin) + static_cast<std::intptr_t>(read_at<std::int32_t>(entry + kBegin));
  if (written != begin) return false;  // written in another way
  return address - begin >= read_at<std::uint32_t>(entry + kLength);
}

// Code made at run time has no unwind information, and a stack ended there. CPython's trampolines (PYTHONPERFSUPPORT=1) have
// one of two frames, which are recognised by what is executed after the return: add $8,%rsp; ret or pop %rbp; ret. Either
// way the return address lies 8 bytes up. Reads by system calls, as the address may be nothing at all. False: it is no such
// frame.
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
  // A cursor that has met a frame without information goes no further, whatever it is set to: it starts over, from a context
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

// glibc's, since 2.35; libunwind asks for it by dlsym().
using FindObject = int(void*, dl_find_object*);
constexpr const char* kFindObject = "_dl_find_object";
constinit std::atomic<FindObject*> g_find_object{nullptr};

// The last address that this thread's libunwind asked for has no entry. Then it must not ask dl_iterate_phdr() either.
constinit thread_local bool t_has_none = false;

// In which file an address lies. For one without an entry libunwind reads all entries of the file, one after the other: in
// Node.js, whose built-in functions have none, that takes a tenth of a second. So it is told of no file then.
int find_object_with_entry(void* address, dl_find_object* found) noexcept {
  const int error = g_find_object.load(std::memory_order_relaxed)(address, found);  // relaxed: a pointer to code, set before
  if (error != 0) return error;
  t_has_none = has_no_entry(static_cast<const char*>(found->dlfo_eh_frame), reinterpret_cast<std::uintptr_t>(address));
  return t_has_none ? -1 : 0;
}

}  // namespace

extern "C" void* __real_dlsym(void*, const char*);
extern "C" void* __wrap_dlsym(void* handle, const char* name) {
  void* const found = __real_dlsym(handle, name);
  if (found == nullptr || std::strcmp(name, kFindObject) != 0) return found;
  g_find_object.store(reinterpret_cast<FindObject*>(found), std::memory_order_relaxed);
  return reinterpret_cast<void*>(&find_object_with_entry);
}

using Visit = int(dl_phdr_info*, std::size_t, void*);
extern "C" int __real_dl_iterate_phdr(Visit*, void*);
extern "C" int __wrap_dl_iterate_phdr(Visit* visit, void* data) {
  return std::exchange(t_has_none, false) ? 0 : __real_dl_iterate_phdr(visit, data);
}

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
