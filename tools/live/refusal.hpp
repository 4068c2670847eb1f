// SPDX-License-Identifier: MIT
// Why the memory of a process cannot be read from outside for what Freehold keeps there.
#pragma once
#include <sys/types.h>

#include <cstdint>

#include "freehold/sync/live_list.hpp"

namespace freehold::live {

enum class LiveRefusal : std::uint8_t {
  kNone,
  kNoProcess,
  kEnded,              // it waits for its parent
  kKernelThread,       //
  kNotAllowed,         // another user's, or one that does not let itself be looked at
  kMemoryNotToBeRead,  // although it is the same user's: kernel.yama.ptrace_scope, or a filter of system calls
  kNoFreehold,
  kNotBegun,  // libfreehold.so is loaded, but what it keeps for readers is not there: it has not allocated
  kOtherVersion,
  kNoProfile,  // its Freehold keeps no heap profile
  kChanging,   // the records changed all the time, or could not be read
};

// That of the process itself: the first five. One that is ours.
[[nodiscard]] LiveRefusal refusal_of(pid_t pid);
// Says why reading its memory failed, `error` being what the system said last: it may have ended since, or be ending, one
// thread after the other, which explains all else. Otherwise `why`.
[[nodiscard]] LiveRefusal refusal_meanwhile(pid_t pid, int error, LiveRefusal why);

// A sync::LiveListDirectory as it is copied; that one holds atomics.
struct LiveListHead {
  std::uint64_t mark[2];
  std::uint32_t version;
  sync::LiveList kind;
  std::uint64_t first, changes, layout;
  std::uint32_t layout_bytes, next, data, data_bytes;
};
static_assert(sizeof(LiveListHead) == sizeof(sync::LiveListDirectory));

}  // namespace freehold::live
