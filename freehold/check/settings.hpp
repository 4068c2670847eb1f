// SPDX-License-Identifier: MIT
// The settings of checked mode: of malloc's, private heaps', pools', and thread_alloc's.
#pragma once
#include <span>

#include "freehold/os/program_options.hpp"

// The options FREEHOLD_CHECK_... beside FREEHOLD_CHECK: X(name, kind, default, the default as text, effect). The table of
// docs/hardening.md and the manual page are made of them (script/check_options).
// clang-format off
#define FREEHOLD_CHECK_OPTIONS(X) \
  X(family, os::Switch, true, "1", "`malloc`, `new` and `new[]` are given back by `free`, `delete` and `delete[]`") \
  X(sizes, os::Switch, true, "1", "size and alignment at sized delete, `free_sized`, `free_aligned_sized` are those of the allocation") \
  X(canary, os::Switch, true, "1", "bytes behind a block (16 at least, 128 at most) and before it are looked at when it is freed or resized, at the exit, and by `freehold_check_all()`") \
  X(fill, os::Switch, true, "1", "freed blocks are filled with 0xdf, and looked at when they are used again, at the exit, and by `freehold_check_all()`") \
  X(quarantine, os::Number, 16U << 20, "16777216", "bytes of freed blocks that are not used again yet, the oldest first; a block above 32 KiB counts with a page and a 64th of its size") \
  X(random, os::Switch, false, "0", "1: one of up to 32 free slots of a size is chosen at random; CPython takes 2.5 times as long") \
  X(contents, os::ByteOrNone, 0xbe, "190", "the byte that new blocks are filled with (not those of `calloc`); `0` zeroes them, `none` leaves them as they are") \
  X(leaks, os::Switch, false, "0", "1: blocks that are still allocated at the exit are listed, by call stack; what a global variable still reaches is listed, too. Not listed, where there are call stacks: what the dynamic linker, `libc.so` and `libstdc++.so` hold until the end, except open streams") \
  X(stacks, os::Int, 0, "0 (8 with leaks)", "frames of the call stacks that are kept for each allocation and free, 64 at most") \
  X(abort, os::Switch, true, "1", "0: report, leave the wrong call undone, and go on")
// clang-format on

namespace freehold::check {

struct Settings {
  bool on = false;  // FREEHOLD_CHECK
#define FREEHOLD_MEMBER(name, kind, value, shown, effect) kind::Type name = value;
  FREEHOLD_CHECK_OPTIONS(FREEHOLD_MEMBER)
#undef FREEHOLD_MEMBER
};

// Returns the settings of the environment, or of the program's string. Read by the first call, which complains of values
// that make no sense, and makes base::fatal() return where the program is to go on. Any thread; no allocation.
[[nodiscard]] const Settings& settings() noexcept;

// The names of the table's options.
[[nodiscard]] std::span<const os::OptionName> setting_names() noexcept;

}  // namespace freehold::check
