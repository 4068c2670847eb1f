#include "freehold/alloc/purger_thread.hpp"

#include <pthread.h>
#include <signal.h>

#include <cerrno>

#include "freehold/os/clock.hpp"

namespace freehold::alloc {
namespace {

using sync::NativeAtomics;

constexpr std::size_t kStackBytes = 64 * 1024;  // beside the program's thread-local storage
constexpr std::size_t kMostStackBytes = std::size_t{4} << 20;
constexpr std::uint64_t kRetryMs = 1000;

// Large enough for the program's thread-local storage, which libc takes from the stack.
[[nodiscard]] bool create(void* (*main)(void*), void* argument) noexcept {
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return false;
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  int error = EINVAL;
  for (std::size_t bytes = kStackBytes; error == EINVAL && bytes <= kMostStackBytes; bytes *= 2) {
    pthread_t thread;
    ::pthread_attr_setstacksize(&attributes, bytes);
    error = ::pthread_create(&thread, &attributes, main, argument);
  }
  ::pthread_attr_destroy(&attributes);
  return error == 0;
}

}  // namespace

void PurgerThread::start(Round round, std::uint64_t round_ms) noexcept {
  const std::uint64_t now = os::coarse_milliseconds();
  if (const std::uint64_t at = refused_at_.load(std::memory_order_relaxed); at != 0 && now - at < kRetryMs) return;
  std::uint32_t none = kNone;
  if (!state_.compare_exchange_strong(none, kAwake, std::memory_order_acq_rel, std::memory_order_relaxed)) return;
  round_ = round;
  round_ms_ = round_ms;
  const int saved = errno;
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  if (!create(main, this)) {
    refused_at_.store(now | 1, std::memory_order_relaxed);
    state_.store(kNone, std::memory_order_release);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = saved;
}

void* PurgerThread::main(void* self) noexcept {
  ::pthread_setname_np(::pthread_self(), "freehold-purge");
  static_cast<PurgerThread*>(self)->run();
  return nullptr;
}

void PurgerThread::run() noexcept {
  for (;;) {
    std::uint32_t state = state_.load(std::memory_order_acquire);
    if (state == kEnding) break;
    if (state == kAwake) {
      NativeAtomics::wait_shared(state_, state, round_ms_ * 1'000'000);
      if (state_.load(std::memory_order_acquire) == kEnding) break;
      if (round_(false)) continue;
      // A free that makes something due after this sees that we sleep, or we see that it is due.
      if (!state_.compare_exchange_strong(state, kAsleep, std::memory_order_seq_cst, std::memory_order_relaxed)) continue;
      if (round_(false)) {
        std::uint32_t asleep = kAsleep;
        state_.compare_exchange_strong(asleep, kAwake, std::memory_order_acq_rel, std::memory_order_relaxed);
        continue;
      }
    }
    NativeAtomics::wait_shared(state_, static_cast<std::uint32_t>(kAsleep));
  }
  (void)round_(true);
  state_.store(kNone, std::memory_order_release);
  NativeAtomics::notify_all_shared(state_);
}

void PurgerThread::wake_slow() noexcept {
  std::uint32_t asleep = kAsleep;
  // relaxed on failure: another woke it, or it ends.
  if (state_.compare_exchange_strong(asleep, kAwake, std::memory_order_acq_rel, std::memory_order_relaxed))
    NativeAtomics::notify_all_shared(state_);
}

void PurgerThread::end() noexcept {
  std::uint32_t state = state_.load(std::memory_order_relaxed);
  while (state == kAwake || state == kAsleep)
    if (state_.compare_exchange_weak(state, kEnding, std::memory_order_acq_rel, std::memory_order_relaxed)) {
      NativeAtomics::notify_all_shared(state_);
      return;
    }
}

void PurgerThread::end_and_wait() noexcept {
  constexpr unsigned kTurns = 20;
  constexpr std::uint64_t kTurnNs = 5'000'000;
  end();
  for (unsigned i = 0; i < kTurns && state_.load(std::memory_order_acquire) == kEnding; ++i)
    NativeAtomics::wait_shared(state_, static_cast<std::uint32_t>(kEnding), kTurnNs);
}

}  // namespace freehold::alloc
