// SPDX-License-Identifier: MIT
// What checked mode checks; docs/hardening.md lists the environment's variables.
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

}  // namespace freehold::check
