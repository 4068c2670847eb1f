// SPDX-License-Identifier: MIT
// Marks a function as exported; all others are hidden. libfreehold.map lists the same names.
#pragma once

#define FREEHOLD_EXPORT __attribute__((visibility("default")))

// For definitions of what libc's headers declare: glibc's say that nothing is thrown, musl's do not, and both must say the
// same.
#ifdef __THROW
#define FREEHOLD_LIBC_NOEXCEPT __THROW
#else
#define FREEHOLD_LIBC_NOEXCEPT
#endif
