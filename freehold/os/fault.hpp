// SPDX-License-Identifier: MIT
// An access that the processor refused, as a signal handler's third argument tells of it. Async-signal-safe.
#pragma once
#include <ucontext.h>

#include <cstdint>

namespace freehold::os {

enum class Access : std::uint8_t { kUnknown, kRead, kWrite };

struct Fault {
  const void* instruction = nullptr;  // that made the access; null: unknown on this processor
  Access access = Access::kUnknown;
};

[[nodiscard]] inline Fault fault_of(const void* signal_context) noexcept {
  Fault fault;
#if defined(__x86_64__)
  const auto& registers = static_cast<const ucontext_t*>(signal_context)->uc_mcontext.gregs;
  fault.instruction = reinterpret_cast<const void*>(registers[REG_RIP]);
  constexpr greg_t kWriteBit = 2;  // a bit of the page fault's error code
  fault.access = (registers[REG_ERR] & kWriteBit) != 0 ? Access::kWrite : Access::kRead;
#elif defined(__aarch64__)
  fault.instruction = reinterpret_cast<const void*>(static_cast<const ucontext_t*>(signal_context)->uc_mcontext.pc);
#else
  (void)signal_context;
#endif
  return fault;
}

}  // namespace freehold::os
