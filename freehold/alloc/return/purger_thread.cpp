// SPDX-License-Identifier: MIT
#include "freehold/alloc/return/purger_thread.hpp"

#include <sys/prctl.h>

#include <cerrno>
#include <utility>

#include "freehold/base/keep_errno.hpp"
#include "freehold/os/clock.hpp"
#include "freehold/os/libc.hpp"
#include "freehold/os/not_cancelled.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/os/system_call.hpp"

namespace freehold::alloc {
namespace {

// The program's thread-local storage comes out of the stack, and libc does not tell how much that is.
constexpr std::size_t kFirstStackBytes = 64 * 1024;
constexpr std::size_t kMostStackBytes = std::size_t{8} << 20;
constexpr std::size_t kRoomBytes = 32 * 1024;  // for the steps, and for a signal that cannot be blocked (setuid's)

// A handler of signals that forks during a change of state would leave its child with a thread that is not there.
class BlockSignals {
 public:
  BlockSignals() noexcept {
    const os::kernel::SignalSet all = os::kernel::all_signals();
    os::kernel::sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockSignals() { os::kernel::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  base::KeepErrno errno_;
  os::NotCancelled not_cancelled_;
  os::kernel::SignalSet before_ = 0;
};

}  // namespace

// Gives it a separate stack, so that the thread can see how much of it is left.
bool PurgerThread::create() noexcept {
  pthread_attr_t attributes;
  if (os::Libc::pthread_attr_init(&attributes) != 0) return false;
  int error = EINVAL;
  if (stack_bytes_ == 0) stack_bytes_ = kFirstStackBytes;
  for (; error == EINVAL && stack_bytes_ <= kMostStackBytes; stack_bytes_ *= error == EINVAL ? 2 : 1) {
    const std::size_t guard = os::page_bytes();
    stack_ = os::Pages::reserve(guard + stack_bytes_, os::kLargestPageBytes);
    if (stack_ == nullptr) break;
    char* const low = static_cast<char*>(stack_) + guard;
    os::Pages::name(stack_, guard + stack_bytes_, "freehold purger");
    error = os::Pages::commit(low, stack_bytes_) ? os::Libc::pthread_attr_setstack(&attributes, low, stack_bytes_) : ENOMEM;
    if (error == 0) error = os::Libc::pthread_create(&thread_, &attributes, main, this);
    if (error != 0) os::Pages::release(std::exchange(stack_, nullptr), guard + stack_bytes_);
  }
  return error == 0;
}

void PurgerThread::join() noexcept {
  os::Libc::pthread_join(thread_, nullptr);
  os::Pages::release(std::exchange(stack_, nullptr), os::page_bytes() + stack_bytes_);
}

bool PurgerThread::start(Begin begin, Step step, std::uint64_t round_ms) noexcept {
  if (has_to_wait()) return true;
  const BlockSignals blocked;
  const auto begun = state_.begin();
  if (begun == decltype(state_)::Begun::kNo) return true;
  if (begun == decltype(state_)::Begun::kCramped) {
    join();
    stack_bytes_ *= 2;
  }
  begin_ = begin;
  step_ = step;
  round_ms_ = round_ms;
  id_.store(0, std::memory_order_relaxed);
  other_calls_.begin();  // the thread ends them
  const bool created = create();
  if (!created) {
    other_calls_.end();
    put_off();
  }
  state_.started(created);
  return created;
}

void* PurgerThread::main(void* self) noexcept {
  auto& purger = *static_cast<PurgerThread*>(self);
  purger.id_.store(os::kernel::gettid(), std::memory_order_relaxed);
  purger.state_.wait_for_start();
  purger.begin_();
  const char here = 0;
  const auto low = reinterpret_cast<std::uintptr_t>(purger.stack_) + os::page_bytes();
  if (reinterpret_cast<std::uintptr_t>(&here) - low < kRoomBytes) {
    purger.other_calls_.end();
    purger.state_.give_up_cramped();
    return nullptr;
  }
  (void)os::kernel::prctl(PR_SET_NAME, os::as_word("freehold-purge"));
  purger.other_calls_.end();
  (void)purger.step_();  // at once: threads that free rely on it from then on
  purger.state_.run(purger.step_, purger.round_ms_ * 1'000'000);
  return nullptr;
}

bool PurgerThread::end() noexcept {
  const BlockSignals blocked;
  return state_.end([this] {
    join();
    not_before_.store(os::coarse_milliseconds() + round_ms_, std::memory_order_relaxed);
  });
}

// A thread that was joined is known to the system for some time.
void PurgerThread::end_before_signal(pid_t thread) noexcept {
  constexpr std::uint64_t kNapNs = 100'000;
  const std::atomic<std::uint32_t> nothing{0};
  const base::KeepErrno keep;
  (void)end();
  while (id_.load(std::memory_order_relaxed) == thread && os::kernel::tgkill(os::kernel::getpid(), thread, 0) == 0)
    sync::NativeAtomics::wait_shared(nothing, 0U, kNapNs);
}

}  // namespace freehold::alloc
