// SPDX-License-Identifier: MIT
// The limit beyond which the kernel ends the process: it and what is in use of it are looked at when memory has grown by a
// step.
// Near it, what may be kept free shrinks (budget.hpp); close to it, everything free goes back before more is taken, a line
// on standard error says so, and the program may shed load.
#include <algorithm>
#include <utility>

#include "freehold/alloc/engine_state.hpp"
#include "freehold/alloc/return/look_turn.hpp"
#include "freehold/base/keep_errno.hpp"
#include "freehold/os/memory_limit.hpp"
#include "freehold/os/not_cancelled.hpp"
#include "freehold/os/sandbox.hpp"
#include "freehold/os/text_line.hpp"

namespace freehold::alloc {

using namespace engine;

namespace {

constinit os::MemoryLimit g_limit;
// One thread at a time looks, and one calls. While one looks, memory may not grow further: what goes back counts until it is
// gone, and a free span that a trim has taken is not there for others, who would touch new memory.
constinit LookTurn<sync::NativeAtomics> g_turn;
constinit std::atomic<bool> g_calling{false};
constinit sync::Mutex<sync::NativeAtomics> g_callback_lock;
constinit MemoryCallback g_callback{};

// Everything free goes back within this share of the limit: the rest is for what grows between two looks. The steps say how
// much that may be.
constexpr std::int64_t kCloseShare = 16, kStepShare = 16, kCloseStepShare = 128;
constexpr std::int64_t kLeastStepBytes = std::int64_t{1} << 20, kMostStepBytes = std::int64_t{64} << 20;

struct Look {
  std::int64_t used, limit;
  bool is_stalling;
  [[nodiscard]] bool is_close(std::int64_t wanted) const noexcept {
    return is_stalling || used + wanted > limit - limit / kCloseShare;
  }
};

// Asks the kernel, if it may be asked, and tells the budget. What is outside the heap is as it was at the last look.
[[nodiscard]] Look look() noexcept {
  static constinit std::atomic<std::int64_t> outside{0};
  auto& budget = g_core.arena().budget();
  if (!os::is_confined()) g_limit.read_again();
  Look l{0, static_cast<std::int64_t>(g_limit.bytes()), false};
  if (!os::is_confined())
    if (const auto use = g_limit.use(); use.has_value()) {
      outside.store(static_cast<std::int64_t>(use->bytes) - budget.footprint(), std::memory_order_relaxed);
      l.is_stalling = use->is_stalling;
    }
  const std::int64_t others = outside.load(std::memory_order_relaxed);
  l.used = others + budget.footprint();
  const bool close = l.is_close(0);
  const std::int64_t step = close ? l.limit / kCloseStepShare : (l.limit - l.used) / kStepShare;
  budget.set_ceiling(l.is_stalling ? 0 : l.limit - others, std::clamp(step, kLeastStepBytes, kMostStepBytes));
  return l;
}

[[gnu::cold]] void report(const Look& l) noexcept {
  static constinit std::atomic<bool> reported{false};
  if (!g_options.limit_warning || os::is_confined() || reported.exchange(true, std::memory_order_relaxed)) return;
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  os::TextLine<768> line;
  line.add("freehold: ");
  line.add(static_cast<std::uint64_t>(std::max<std::int64_t>(l.used, 0)) / kMiB);
  line.add(" of ");
  line.add(g_limit.bytes() / kMiB);
  line.add(" MiB are in use (");
  line.add(g_limit.source());
  line.add("): free memory goes back to the system at once from now on (FREEHOLD_LIMIT_WARNING=0 silences this)");
  line.write();
}

void call_back(const Look& l) noexcept {
  if (g_calling.exchange(true, std::memory_order_acquire)) return;
  MemoryCallback callback;
  {
    const Reading reading;
    const sync::Guard guard(g_callback_lock);
    callback = g_callback;
  }
  const os::NotCancelled not_cancelled;  // POSIX: malloc is no cancellation point
  if (callback.call != nullptr)
    callback.call(static_cast<std::size_t>(std::max<std::int64_t>(l.used, 0)), g_limit.bytes(), callback.context);
  g_calling.store(false, std::memory_order_release);
}

}  // namespace

std::uint64_t engine::find_memory_limit() noexcept {
  if (g_limit.bytes() == 0) g_limit.find(g_options.cgroup);
  return g_limit.bytes();
}

void engine::watch_memory_limit() noexcept {
  if (g_limit.bytes() != 0) (void)look();
}

void engine::look_at_memory_limit(std::size_t wanted) noexcept {
  if (t_fork.inside != 0 || g_gate.forks() != 0) return;
  const base::KeepErrno keep;
  if (g_limit.bytes() == 0) {  // asked from outside, or for more than any machine has
    g_core.arena().budget().begin_look_without_ceiling();
    if (!answer_profile_request()) g_core.arena().budget().look_again();
    return;
  }
  (void)answer_profile_request();
  if (!g_turn.try_begin()) return g_turn.wait([](auto is_free) { return comes_true_soon(is_free); });
  // A block larger than the limit itself is refused, or never used as a whole.
  const auto more = static_cast<std::int64_t>(wanted > g_limit.bytes() ? 0 : wanted);
  Look l = look();
  const bool close = l.is_close(more);
  const Look before = l;
  if (close) {
    (void)trim();
    l = look();
  }
  g_turn.end();
  if (close) report(before);
  if (close && l.is_close(more)) call_back(l);
}

void engine::forget_looks_in_child() noexcept {
  g_turn.reset();
  g_calling.store(false, std::memory_order_relaxed);
}

void engine::limit_after_fork_in_child() noexcept { g_callback_lock.reset(); }

void set_memory_callback(const MemoryCallback& callback) noexcept {
  const Reading reading;
  const sync::Guard guard(g_callback_lock);
  g_callback = callback;
}

}  // namespace freehold::alloc
