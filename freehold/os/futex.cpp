// SPDX-License-Identifier: MIT
#include "freehold/os/futex.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>

#include <climits>
#include <ctime>

#include "freehold/base/keep_errno.hpp"
#include "freehold/os/system_call.hpp"

namespace freehold::os {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;  // nanoseconds

void futex(const void* word, int operation, std::uint32_t value, const timespec* time, unsigned bits = 0) noexcept {
  const base::KeepErrno keep;
  (void)system_call(SYS_futex, word, operation, value, time, nullptr, bits);
}

void wake(const void* word, std::uint32_t threads, FutexScope scope) noexcept {
  futex(word, scope == FutexScope::kProcess ? FUTEX_WAKE_PRIVATE : FUTEX_WAKE, threads, nullptr);
}

bool membarrier(int command) noexcept {
  const base::KeepErrno keep;
  return system_call(SYS_membarrier, command, 0, 0) == 0;
}

}  // namespace

pid_t thread_id() noexcept { return kernel::gettid(); }

void Futex::wait(const void* word, std::uint32_t expected, FutexScope scope, std::uint64_t time_out) noexcept {
  const timespec time{static_cast<std::time_t>(time_out / kSecond), static_cast<long>(time_out % kSecond)};
  futex(word, scope == FutexScope::kProcess ? FUTEX_WAIT_PRIVATE : FUTEX_WAIT, expected,
        time_out == kForever ? nullptr : &time);
}

void Futex::wait_until(const void* word, std::uint32_t expected, std::int64_t deadline) noexcept {
  constexpr auto kSigned = static_cast<std::int64_t>(kSecond);
  const std::int64_t rest = deadline % kSigned;  // negative for a time before the clock's start
  const timespec time{static_cast<std::time_t>(deadline / kSigned - (rest < 0 ? 1 : 0)),
                      static_cast<long>(rest < 0 ? rest + kSigned : rest)};
  futex(word, FUTEX_WAIT_BITSET_PRIVATE, expected, deadline == INT64_MAX ? nullptr : &time, FUTEX_BITSET_MATCH_ANY);
}

void Futex::nap(std::uint64_t nanoseconds) noexcept {
  const std::uint32_t never = 0;
  wait(&never, 0, FutexScope::kProcess, nanoseconds);
}

void Futex::wake_one(const void* word, FutexScope scope) noexcept { wake(word, 1, scope); }
void Futex::wake_all(const void* word, FutexScope scope) noexcept { wake(word, INT_MAX, scope); }

bool Membarrier::register_process() noexcept { return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }
bool Membarrier::run_in_all_threads() noexcept { return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED); }

}  // namespace freehold::os
