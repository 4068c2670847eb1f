// SPDX-License-Identifier: MIT
// The first thing that a public C++ header includes: with an older standard the first error says what is missing.
#pragma once

#if __cplusplus < 202002L
#error "Freehold needs C++20: compile with -std=c++20 or later"
#endif
