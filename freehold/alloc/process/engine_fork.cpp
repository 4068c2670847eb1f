// SPDX-License-Identifier: MIT
// fork() from any thread, whatever others do; see fork_gate.hpp and fork_work.hpp.
//
// Before a fork the gate closes, and the engine is left by all other threads; they wait, map blocks of their own, or put
// their frees off. Afterwards the deferred work is done. A fork from a handler of signals during a slow path of the same
// thread does nothing but keep the purger out: the slow path continues in both processes.

#include "freehold/alloc/engine_state.hpp"
#include "freehold/check/guards.hpp"
#include "freehold/os/process_memory.hpp"
#include "freehold/os/sandbox.hpp"
#include "freehold/os/system_call.hpp"

namespace freehold::alloc::engine {

constinit Gate g_gate;
constinit thread_local ForkState t_fork;
constinit DeferredList<sync::NativeAtomics, Freed, &Freed::next> g_deferred_frees;
constinit DeferredList<sync::NativeAtomics, NativeCache, &NativeCache::next_ended> g_ended;
constinit ForkBlocks<sync::NativeAtomics, os::Pages> g_fork_blocks;

namespace {

constexpr std::uint64_t kForkWaitNs = 1'000'000;
constexpr unsigned kForkTurns = 1'000;  // times that, before a thread that forks no longer waits for another's fork

// Waits until a step of the purger is over; the purger begins no other, and waits for no thread until the fork ends. One
// that loads the unwinder may wait for the loader's lock, which this thread may hold: after a while this gives up.
void keep_purger_out() noexcept {
  ++t_fork.all_forks;
  g_purger_gate.close();
  sync::wait_until<sync::NativeAtomics>([] { return g_purger_gate.is_quiet(g_purger_mark); });
  (void)comes_true_soon(loads_no_unwinder);
}

}  // namespace

void wait_for_forks() noexcept {
  const std::uint32_t forks = g_gate.forks();
  if (forks != t_fork.forks) sync::NativeAtomics::wait_shared(g_gate.word(), forks, kForkWaitNs);
}

// Work that yet another fork prevents is deferred again.
void run_deferred() noexcept {
  const Uncounted uncounted;  // most of it is other threads'
  for (NativeCache *cache = g_ended.take_all(), *next = nullptr; cache != nullptr; cache = next) {
    next = cache->next_ended;
    detach_cache(cache);
  }
  for (Freed *block = g_deferred_frees.take_all(), *next = nullptr; block != nullptr; block = next) {
    next = block->next;
    deallocate_slow(block);
  }
}

void defer_free(Freed* block) noexcept {
  g_deferred_frees.push(block);
  if (g_gate.forks() == 0) run_deferred();  // the fork has ended already: no other thread may look
}

// The engine is left by all other threads, and they stay out; no lock is held. A fork before the first malloc starts the
// engine: a child would wait for the lock of a start that another thread has begun.
void before_fork() noexcept {
  if (g_start.load(std::memory_order_acquire) != Start::kReady) {
    if (!start()) return;
    finish_start();
  }
  keep_purger_out();
  if (t_fork.inside != 0) return;  // a signal's handler forks during a slow path of this thread: it continues in both
  ++t_fork.inside;
  // One after the other, as far as they do not wait for each other.
  for (unsigned turn = 0; turn < kForkTurns && g_gate.forks() != t_fork.forks; ++turn) wait_for_forks();
  run_deferred();  // if forks follow each other closely, no other thread may get to it
  ++t_fork.forks;
  g_gate.close();
  NativeCache* const mine = present_cache();
  sync::wait_until<sync::NativeAtomics>(
      [mine] { return g_gate.shared_marks_are_quiet() && g_core.registry().others_are_outside(mine); });
  --t_fork.inside;
}
void after_fork_in_parent() noexcept {
  if (t_fork.all_forks == 0) return;  // there was no memory for the start
  --t_fork.all_forks;
  (void)g_purger_gate.open();
  if (t_fork.inside != 0) return;
  --t_fork.forks;
  if (g_gate.open()) run_deferred();
}
void after_fork_in_child() noexcept {
  if (t_fork.all_forks == 0) return g_start_lock.reset();
  g_options.stats_fd = -1;  // it inherits the exit handler, but it is not the process that was asked for stats
  g_purger.forget();
  g_loads_unwinder.store(false, std::memory_order_relaxed);
  g_profile_request.command.store(profile::ProfileCommand::kNone, std::memory_order_relaxed);  // the parent was asked
  g_purger_gate.reset(--t_fork.all_forks);
  g_core.arena().budget().set_purged_in_time(false);
  g_process = os::is_confined() ? 0 : os::kernel::getpid();
  if (g_own_page != nullptr) *g_own_page = 1;
  check::forget_reports();
  if (g_options.live && !os::is_confined()) os::let_same_user_read();
  forget_looks_in_child();
  count_sharing_threads_alone();
  if (t_fork.inside != 0) return g_core.kept().after_fork_amid_an_entry(present_cache());
  --t_fork.forks;
  g_start_lock.reset();
  limit_after_fork_in_child();
  g_fork_blocks.reset();
  g_ended.forget();  // adopted with all others
  if (NativeCache* const mine = present_cache(); mine != nullptr) mine->thread.store(g_process);
  g_look_at.store(kFirstLook, std::memory_order_relaxed);  // relaxed: there is no other thread
  scopes_after_fork_in_child();
  g_core.after_fork_in_child(present_cache());
  choose_slow_calls();  // another thread may have been in the middle of it
  checks_after_fork_in_child();
  profile::after_fork_in_child();
  g_gate.reset(t_fork.forks);
  if (os::is_confined()) {  // the fork came during confine(), whose thread is not here
    g_gate.fence_alone_from_start();
    g_purger_gate.fence_alone_from_start();
  }
  run_deferred();
}

}  // namespace freehold::alloc::engine
