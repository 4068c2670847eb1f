// SPDX-License-Identifier: MIT
// The settings of checked mode: of malloc's, private heaps', pools', and thread_alloc's. docs/hardening.md lists the
// options.
#pragma once
#include <cstddef>

namespace freehold::check {

struct Settings {
  bool on = false;                                       // FREEHOLD_CHECK
  bool family = true;                                    // ..._FAMILY
  bool sizes = true;                                     // ..._SIZES
  bool canary = true;                                    // ..._CANARY
  bool fill = true;                                      // ..._FILL
  bool random = true;                                    // ..._RANDOM
  bool leaks = false;                                    // ..._LEAKS
  bool aborts = true;                                    // ..._ABORT
  std::size_t quarantine_bytes = std::size_t{16} << 20;  // ..._QUARANTINE
  int contents = 0xbe;                                   // ..._CONTENTS: of new blocks; negative: as they come
  unsigned stack_depth = 0;                              // ..._STACKS
};

// What the environment, or the program's string, says. Read by the first call, which complains of values that make no sense,
// and makes base::fatal() return where the program is to go on. Any thread; no allocation.
[[nodiscard]] const Settings& settings() noexcept;

// Whether one of these options has that name in the program's string (os/program_options.hpp).
[[nodiscard]] bool is_setting(const char* name, std::size_t length) noexcept;

}  // namespace freehold::check
