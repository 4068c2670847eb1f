#include "freehold/alloc/purger_thread.hpp"

#include <signal.h>

#include <cerrno>
#include <utility>

#include "freehold/os/clock.hpp"
#include "freehold/os/pages.hpp"

namespace freehold::alloc {
namespace {

using sync::NativeAtomics;

// The program's thread-local storage comes out of the stack, and libc tells nobody how much that is.
constexpr std::size_t kFirstStackBytes = 64 * 1024;
constexpr std::size_t kMostStackBytes = std::size_t{8} << 20;
constexpr std::size_t kRoomBytes = 32 * 1024;  // for the steps, and for a signal that cannot be blocked (setuid's)
constexpr std::uint64_t kRetryMs = 1000;

// A handler of signals that forks amid a change of state would leave its child with a thread that is not there.
class BlockSignals {
 public:
  BlockSignals() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_);
  }
  ~BlockSignals() {
    ::pthread_setcancelstate(cancel_, nullptr);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = saved_;
  }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  int saved_ = errno;
  int cancel_ = 0;
  sigset_t before_;
};

}  // namespace

// With a stack of its own, so that the thread can see how much of it is left.
bool PurgerThread::create() noexcept {
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return false;
  int error = EINVAL;
  if (stack_bytes_ == 0) stack_bytes_ = kFirstStackBytes;
  for (; error == EINVAL && stack_bytes_ <= kMostStackBytes; stack_bytes_ *= error == EINVAL ? 2 : 1) {
    const std::size_t guard = os::page_bytes();
    stack_ = os::Pages::reserve(guard + stack_bytes_, os::kLargestPageBytes);
    if (stack_ == nullptr) break;
    char* const low = static_cast<char*>(stack_) + guard;
    os::Pages::name(stack_, guard + stack_bytes_, "freehold purger");
    error = os::Pages::commit(low, stack_bytes_) ? ::pthread_attr_setstack(&attributes, low, stack_bytes_) : ENOMEM;
    if (error == 0) error = ::pthread_create(&thread_, &attributes, main, this);
    if (error != 0) os::Pages::release(std::exchange(stack_, nullptr), guard + stack_bytes_);
  }
  ::pthread_attr_destroy(&attributes);
  return error == 0;
}

void PurgerThread::join() noexcept {
  ::pthread_join(thread_, nullptr);
  os::Pages::release(std::exchange(stack_, nullptr), os::page_bytes() + stack_bytes_);
}

void PurgerThread::start(Step step, std::uint64_t round_ms) noexcept {
  const std::uint64_t now = os::coarse_milliseconds();
  if (now < not_before_.load(std::memory_order_relaxed)) return;
  const BlockSignals blocked;
  std::uint32_t state = kNone;
  if (!state_.compare_exchange_strong(state, kStarting, std::memory_order_acquire, std::memory_order_relaxed)) {
    if (state != kCramped ||
        !state_.compare_exchange_strong(state, kStarting, std::memory_order_acquire, std::memory_order_relaxed))
      return;
    join();
    stack_bytes_ *= 2;
  }
  step_ = step;
  round_ms_ = round_ms;
  const bool created = create();
  if (!created) not_before_.store(now + kRetryMs, std::memory_order_relaxed);
  // Release: whoever makes it end sees the thread and its stack. It may have found its stack too small by now.
  std::uint32_t starting = kStarting;
  (void)state_.compare_exchange_strong(starting, created ? kAwake : kNone, std::memory_order_release,
                                       std::memory_order_relaxed);
  NativeAtomics::notify_all_shared(state_);
}

void* PurgerThread::main(void* self) noexcept {
  auto& purger = *static_cast<PurgerThread*>(self);
  std::uint32_t state;
  while ((state = purger.state_.load(std::memory_order_acquire)) == kStarting)
    NativeAtomics::wait_shared(purger.state_, static_cast<std::uint32_t>(kStarting));
  const auto low = reinterpret_cast<std::uintptr_t>(purger.stack_) + os::page_bytes();
  if (reinterpret_cast<std::uintptr_t>(&state) - low < kRoomBytes) {
    if (state == kAwake)
      (void)purger.state_.compare_exchange_strong(state, kCramped, std::memory_order_release, std::memory_order_relaxed);
    return nullptr;
  }
  ::pthread_setname_np(::pthread_self(), "freehold-purge");
  purger.run();
  return nullptr;
}

// Steps until nothing is due now, or it is to end.
Due PurgerThread::round() noexcept {
  Due due;
  do due = step_();
  while (due == Due::kNow && state_.load(std::memory_order_relaxed) != kEnding);
  return due;
}

void PurgerThread::run() noexcept {
  for (;;) {
    std::uint32_t state = state_.load(std::memory_order_acquire);
    if (state == kEnding) return;
    if (state == kAwake) {
      NativeAtomics::wait_shared(state_, state, round_ms_ * 1'000'000);
      if (state_.load(std::memory_order_acquire) == kEnding) return;
      if (round() != Due::kNothing) continue;
      // Something that becomes due after this sees that we sleep, or we see that it is due.
      if (!state_.compare_exchange_strong(state, kAsleep, std::memory_order_seq_cst, std::memory_order_relaxed)) continue;
      if (round() != Due::kNothing) {
        std::uint32_t asleep = kAsleep;
        state_.compare_exchange_strong(asleep, kAwake, std::memory_order_acq_rel, std::memory_order_relaxed);
        continue;
      }
    }
    NativeAtomics::wait_shared(state_, static_cast<std::uint32_t>(kAsleep));
  }
}

void PurgerThread::wake_slow() noexcept {
  std::uint32_t asleep = kAsleep;
  // relaxed on failure: another woke it, or it ends.
  if (state_.compare_exchange_strong(asleep, kAwake, std::memory_order_acq_rel, std::memory_order_relaxed))
    NativeAtomics::notify_all_shared(state_);
}

bool PurgerThread::end() noexcept {
  const BlockSignals blocked;
  for (std::uint32_t state = state_.load(std::memory_order_acquire); state != kNone;
       state = state_.load(std::memory_order_acquire)) {
    if (state == kStarting || state == kEnding) {  // another thread's work, which is short
      NativeAtomics::wait_shared(state_, state);
      continue;
    }
    if (!state_.compare_exchange_strong(state, kEnding, std::memory_order_acquire, std::memory_order_relaxed)) continue;
    NativeAtomics::notify_all_shared(state_);
    join();
    not_before_.store(os::coarse_milliseconds() + round_ms_, std::memory_order_relaxed);
    state_.store(kNone, std::memory_order_release);
    NativeAtomics::notify_all_shared(state_);
    return true;
  }
  return false;
}

}  // namespace freehold::alloc
