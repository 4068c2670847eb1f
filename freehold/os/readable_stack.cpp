// SPDX-License-Identifier: MIT
#include "freehold/os/readable_stack.hpp"

#include <cerrno>

#include "freehold/base/bits.hpp"
#include "freehold/base/keep_errno.hpp"
#include "freehold/os/system_call.hpp"

namespace freehold::os {
namespace {

constexpr std::size_t kLeastPageBytes = 4096, kWordBytes = sizeof(std::uintptr_t);

}  // namespace

// The kernel reads it as a set of signals, for an operation that does not exist: nothing is changed. (Abseil's
// AddressIsReadable asks so, too.)
bool is_readable(std::uintptr_t address) noexcept {
  constexpr int kNoOperation = ~0;
  const base::KeepErrno keep;
  return system_call(SYS_rt_sigprocmask, kNoOperation, address, nullptr, sizeof(kernel::SignalSet)) != 0 && errno == EINVAL;
}

ReadableStack::ReadableStack(std::uintptr_t stack) noexcept : end_(base::align_down(stack, kLeastPageBytes)) {}

bool ReadableStack::has_frame(std::uintptr_t stack, std::uintptr_t to) noexcept {
  if (to <= stack || to - stack > kMostFrameBytes || to % kWordBytes != 0) return false;
  for (; end_ < to; end_ += kLeastPageBytes)
    if (!is_readable(end_)) return false;
  return true;
}

}  // namespace freehold::os
