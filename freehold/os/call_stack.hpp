// SPDX-License-Identifier: MIT
// The calling thread's stack as addresses, for code inside malloc. The unwinder is the one that C++ exceptions use
// (libgcc's, or LLVM's where the program has that), looked up once: the library itself needs libc alone. With GCC 12's on
// glibc 2.35 or later unwinding takes no lock and allocates nothing, unless the program registers code at run time.
//
// Where there is no such unwinder (a static C program, a system without libgcc_s.so.1) there are no stacks: every capture
// returns 0. On x86-64 compilers write unwind information by default. Code without it, which is mostly made at run time,
// ends a stack, unless runtime_frames.hpp knows its frame. Most frames are walked by frame_rules.hpp, without the unwinder.
#pragma once

namespace freehold::os {

inline constexpr unsigned kMostFrames = 64;

// Finds the unwinder, which may load a library and allocate: to be called at a time when the program may do both, such as a
// constructor. Any thread, any number of times. False: the process has no unwinder.
bool prepare_call_stacks() noexcept;

// Writes the addresses of the innermost calls to `addresses`, the caller's own first, without the innermost `skip`, at most
// `depth`. Each lies in the instruction that calls, as symbolizers want it. Returns how many; 0 before
// prepare_call_stacks(), and when the thread is capturing already: the unwinder may allocate after all, and a signal's
// handler may interrupt it. Any thread; async-signal-safe. Cost: some 300 instructions a frame that was met before,
// and half a kilobyte of stack beyond the unwinder's.
[[gnu::noinline]] unsigned capture_call_stack(void** addresses, unsigned depth, unsigned skip) noexcept;

// How many of the innermost calls come from the shared library that this is part of, so that a stack can begin with the
// program's own. 0 where it is part of the program itself: nothing tells which calls are whose then.
[[nodiscard]] unsigned own_frames(void* const* addresses, unsigned count) noexcept;

}  // namespace freehold::os
