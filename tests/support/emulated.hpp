// SPDX-License-Identifier: MIT
// Tests of another processor's build run under QEMU's user mode (CMAKE_CROSSCOMPILING_EMULATOR). Programs that such a test
// starts do so too (emulated_exec.cpp). A test that the emulator cannot run is skipped, by name and with the reason:
//   FREEHOLD_SKIP_IF_EMULATED("QEMU knows no perf events");
#pragma once
#include <string>

#define FREEHOLD_SKIP_IF_EMULATED(reason) \
  if (::freehold::test::emulated()) GTEST_SKIP() << "under QEMU: " << (reason)

namespace freehold::test {

// Defined by emulated_exec.cpp, where that is part of the program.
#pragma weak freehold_test_is_emulated
extern "C" int freehold_test_is_emulated();
[[nodiscard]] inline bool emulated() { return &freehold_test_is_emulated != nullptr; }

// For the end of an expression that standard error must match: QEMU says there that a signal ended the program.
inline const std::string kEnd = emulated() ? "(qemu: [^\n]*\n)?$" : "$";

// Without the lines of QEMU's own.
[[nodiscard]] inline std::string without_emulator(std::string text) {
  constexpr const char* kBegin = "qemu: uncaught target signal";
  for (std::size_t at = 0; emulated() && (at = text.find(kBegin, at)) != std::string::npos;) {
    const std::size_t end = text.find('\n', at);
    text.erase(at, end == std::string::npos ? end : end + 1 - at);
  }
  return text;
}

}  // namespace freehold::test
