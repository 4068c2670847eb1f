// SPDX-License-Identifier: MIT
// The lines about a block that checked mode finds misused; see report.hpp.
#pragma once
#include "freehold/base/check.hpp"
#include "freehold/check/block.hpp"

namespace freehold::check {

struct Misuse {
  base::HeapError error;
  const void* pointer;  // as the program named it, or the block's beginning
  const void* block;
  State state;
  Contents contents;   // useless unless the state is kLive or kFreed
  const Claim* claim;  // what the program said that does not fit; null: nothing
  const char* at;      // the first byte that was overwritten; null: none was
};

// The lines of a report, for base::report(): `context` is a Misuse.
void say_misuse(const void* context) noexcept;

// base::fatal() with what is known of the block.
[[gnu::cold, gnu::noinline]] void report_misuse(const Misuse& misuse) noexcept;

}  // namespace freehold::check
