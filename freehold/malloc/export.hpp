// SPDX-License-Identifier: MIT
// Marks a function as exported; all others are hidden. libfreehold.map lists the same names.
#pragma once

#define FREEHOLD_EXPORT __attribute__((visibility("default")))

// A fast path begins at a cache line: split by a line's end behind its first branch, malloc took 1.6 times as long in
// loops whose ends the CPU has to predict (mimalloc-bench's glibc-simple, AMD EPYC).
#define FREEHOLD_FAST_PATH __attribute__((aligned(64)))

// For definitions of what libc's headers declare: glibc's say that nothing is thrown, musl's do not, and both must say the
// same.
#ifdef __THROW
#define FREEHOLD_LIBC_NOEXCEPT __THROW
#else
#define FREEHOLD_LIBC_NOEXCEPT
#endif
