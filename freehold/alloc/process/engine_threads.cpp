// SPDX-License-Identifier: MIT
// Threads' caches, from a thread's first call that needs one to the thread's end, and the purger thread, which exists while
// the program has several threads.
#include <pthread.h>
#include <signal.h>

#include <algorithm>

#include "freehold/alloc/engine_state.hpp"
#include "freehold/alloc/observe/count.hpp"
#include "freehold/base/keep_errno.hpp"
#include "freehold/os/libc.hpp"
#include "freehold/os/sandbox.hpp"
#include "freehold/os/system_call.hpp"
#include "freehold/os/threads.hpp"

// glibc's, for destructors of thread-local objects.
extern "C" [[gnu::weak]] int __cxa_thread_atexit_impl(void (*call)(void*), void* object, void* library) noexcept;

namespace freehold::alloc::engine {

constinit void* g_nothing[2] = {nullptr, nullptr};
constinit Modes g_modes;
constinit pthread_key_t g_key = kNoKey;
constinit std::atomic<std::uint64_t> g_look_at{kFirstLook};
constinit std::atomic<std::uint64_t> g_sharing_threads{0};
constinit std::atomic<bool> g_main_has_ended{false};
constinit PurgerThread g_purger;
constinit Gate g_purger_gate;
constinit Gate::Mark g_purger_mark{0};

}  // namespace freehold::alloc::engine

namespace freehold::alloc {
constinit thread_local NativeCache* t_cache = &engine::g_modes.no_cache;
}  // namespace freehold::alloc

namespace freehold::alloc::engine {

// ---- a thread ends ----------------------------------------------------------------------------------------------------

// The last thread, or the last but one, ends: the program may want to be alone. Regret goes with the purger, and what is
// beyond the budget then, for the thread that is left may sleep for ever. Programs that begin and join threads again and
// again keep the part of regret that they would have without a purger: 60 MiB in blocks of 100 kB by 200 threads, one
// after the other, are 607,000 page faults so, and 986,000 if each end drops it.
void end_purger_if_alone() noexcept {
  // Not while it may wait for the loader, whose lock this thread, or one that waits for its end, may hold.
  if (os::is_confined() || is_profile_requested() || !loads_no_unwinder()) return;
  {
    const MakesOtherCalls calls;
    if (os::is_confined()) return;
    if (g_core.registry().threads() + sharing_threads() >= least_threads_for_purger() || !g_purger.end()) return;
  }
  constexpr std::uint64_t kAgainMs = 10'000;
  static constinit std::atomic<std::uint64_t> last_end{0};
  const std::uint64_t now = os::coarse_milliseconds();
  const bool again = now - last_end.exchange(now, std::memory_order_relaxed) < kAgainMs;  // relaxed: publishes nothing
  g_core.arena().budget().set_purged_in_time(false);
  if (!again) g_core.arena().budget().drop_regret();
  for (bool more = true; more;) {
    const Inside inside(nullptr);
    more = inside && g_core.relief().relieve();
  }
}

namespace {

void end_purger_with_last_thread() noexcept {
  if (!os::is_confined()) {
    const MakesOtherCalls calls;
    if (!os::is_confined() && os::kernel::gettid() == os::kernel::getpid())
      g_main_has_ended.store(true, std::memory_order_relaxed);
  }
  end_purger_if_alone();
}

}  // namespace

void detach_cache(NativeCache* cache) noexcept {
  end_scopes_of(*cache);
  if (const Inside inside(nullptr); inside) return g_core.detach(cache);
  g_ended.push(cache);
  if (g_gate.forks() == 0) run_deferred();
}

namespace {

[[nodiscard]] bool is_counted_as_sharing() noexcept {
  return g_key != kNoKey && os::Libc::pthread_getspecific(g_key) == &g_modes.cpu;
}

// Until it ends, a thread that shares the caches of the CPUs is one of those for which the purger is there. Where the
// program has taken all keys we would not hear of the end: such a thread is none of them.
void count_sharing_thread() noexcept {
  if (g_key == kNoKey || os::Libc::pthread_getspecific(g_key) != nullptr) return;
  if (os::Libc::pthread_setspecific(g_key, &g_modes.cpu) == 0) g_sharing_threads.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

void count_sharing_threads_alone() noexcept {
  g_sharing_threads.store(is_counted_as_sharing() ? 1 : 0, std::memory_order_relaxed);
  g_main_has_ended.store(false, std::memory_order_relaxed);
}

// Runs after thread-local destructors, among the destructors of keys; waits for the last round, so that theirs still find
// the cache. Later frees go straight to the bitmap.
void thread_ends(void* cache_pointer) noexcept {
  end_detours();
  auto* cache = static_cast<NativeCache*>(cache_pointer);
  if (cache == &g_modes.cpu) {  // it keeps nothing
    g_sharing_threads.fetch_sub(1, std::memory_order_relaxed);
    return end_purger_with_last_thread();
  }
  if (cache != t_cache) return;  // it was given back before
  // It does not wait for the last round: a sanitizer's runtime ends the thread in it, and instrumented code cannot run after
  // that.
  if (++cache->exit_rounds < PTHREAD_DESTRUCTOR_ITERATIONS - 1) {
    os::Libc::pthread_setspecific(g_key, cache);
    return;
  }
  t_cache = &g_modes.late;
  detach_cache(cache);
  end_purger_with_last_thread();
}

namespace {

// Runs among the destructors of thread-local objects, where the program has taken all keys: what theirs free later, and
// those of keys, goes straight to the bitmap.
void thread_ends_without_key(void* cache) noexcept {
  end_detours();
  if (cache != t_cache) return;
  t_cache = &g_modes.late;
  detach_cache(static_cast<NativeCache*>(cache));
  end_purger_with_last_thread();
}

// Registers for a call when the calling thread ends. False: the cache would not be given back.
[[nodiscard]] bool register_thread_exit(NativeCache* cache) noexcept {
  if (g_key != kNoKey) return os::Libc::pthread_setspecific(g_key, cache) == 0;
  if (&__cxa_thread_atexit_impl == nullptr) return false;
  // glibc's list of destructors ends the process where it gets no memory: see to it that there is some.
  constexpr std::size_t kEntryBytes = 64;
  void* const probe = allocate(kEntryBytes);
  if (probe == nullptr) return false;
  deallocate(probe);
  return ::__cxa_thread_atexit_impl(thread_ends_without_key, cache, &g_key) == 0;
}

// A thread whose first malloc comes in the last round of its keys' destructors ends unheard. Its cache is found when there
// are twice as many caches as after the last look: one call to the system for each cache, and at most two for each thread.
void look_for_dead_threads() noexcept {
  const std::uint64_t threads = g_core.registry().threads();
  std::uint64_t look_at = g_look_at.load(std::memory_order_relaxed);  // relaxed: the thread that changes it looks
  if (threads < look_at || os::is_confined() || os::kernel::getpid() != g_process) return;
  if (!g_look_at.compare_exchange_strong(look_at, UINT64_MAX, std::memory_order_relaxed)) return;
  {
    const base::KeepErrno keep;
    const auto is_dead = [](const NativeCache& cache) {
      const std::int32_t thread = cache.thread.load(std::memory_order_relaxed);  // relaxed: 0, or the id
      return thread != 0 && os::thread_has_ended(g_process, thread);
    };
    if (const Inside inside(nullptr); inside) g_core.detach_all(is_dead);
  }
  g_look_at.store(2 * g_core.registry().threads() + kFirstLook, std::memory_order_relaxed);
}

// ---- a thread begins --------------------------------------------------------------------------------------------------

// True if this may be a child of vfork: for it the kernel restarts no sequence, and what rseq says is its parent's. It gets
// a cache as in plain mode, and its parent, whose storage that is in, goes on with it.
[[nodiscard]] bool may_be_child_of_vfork() noexcept {
  if (!t_fork.has_vforked) return false;
  if (os::is_confined() || os::kernel::getpid() != g_process) return true;
  return t_fork.has_vforked = false;
}

// Returns whether a thread that begins now shares the caches of the CPUs: it was asked for, or there are very many threads.
[[nodiscard]] bool wants_cpu_mode() noexcept {
  if (g_options.cache == CacheMode::kThread || !os::rseq_available() || may_be_child_of_vfork()) return false;
  return g_options.cache == CacheMode::kCpu || g_core.registry().threads() >= NativeConfig::kManyThreads * g_cpus.cpus;
}

[[nodiscard]] bool cpu_caches_ready() noexcept {
  const base::KeepErrno keep;
  const Inside inside(nullptr);
  if (!inside) return false;
  const sync::Guard guard(g_start_lock);
  if (g_cpu_caches.ready()) return true;
  if (os::is_confined()) return false;
  if (!g_cpu_caches.init(g_core, g_pages)) return false;
  g_core.registry().expect_threads(g_cpus.cpus);
  return true;
}

[[nodiscard]] NativeCache* attach() noexcept {
  const Inside inside(nullptr);
  if (!inside) return nullptr;
  NativeCache* const cache = g_core.attach();
  if (cache != nullptr && !os::is_confined() && os::kernel::getpid() == g_process)
    cache->thread.store(os::thread_id(), std::memory_order_relaxed);  // relaxed: an id
  return cache;
}

}  // namespace

NativeCache* own_cache_slow() noexcept {
  if (g_start.load(std::memory_order_acquire) != Start::kReady && !start()) return nullptr;
  if (wants_cpu_mode() && cpu_caches_ready()) {
    t_cache = &g_modes.cpu;
    finish_start();
    count_sharing_thread();
    return nullptr;
  }
  if (is_perturbed()) {
    t_cache = &g_modes.perturbed;
    finish_start();
    return nullptr;
  }
  look_for_dead_threads();
  NativeCache* const cache = attach();
  if (cache == nullptr) return nullptr;
  if (is_counted_as_sharing()) g_sharing_threads.fetch_sub(1, std::memory_order_relaxed);
  t_cache = cache;  // before register_thread_exit, which may allocate
  finish_start();
  if (register_thread_exit(cache)) return cache;
  // Do without. Where there is a key it was memory that failed, and may be there next time.
  t_cache = g_key != kNoKey ? &g_modes.no_cache : &g_modes.late;
  detach_cache(cache);
  return nullptr;
}

void choose_slow_calls() noexcept {
  const Reading reading;
  g_core.registry().set_slow_calls([] {
    if (is_perturbed() || is_checked()) return &kCacheless;
    return profile::was_started() || check::guards_are_on() ? &kObserved : &kPlain;
  });
}

void change_perturbation_mode(bool perturbed) noexcept {
  if (!perturbed) {
    t_cache = &g_modes.no_cache;
  } else if (NativeCache* const cache = present_cache(); cache != nullptr) {
    t_cache = &g_modes.perturbed;
    detach_cache(cache);
  } else if (t_cache == &g_modes.cpu) {
    t_cache = &g_modes.perturbed;
  }
}

void* allocate_cacheless(NativeCache& /*mode*/, SizeClass c, std::size_t bytes, std::size_t alignment) noexcept {
  if (is_not_yet_or_checked())
    return filled(allocate_unusual({bytes, alignment > 1 ? alignment : 0, Family::kMalloc}, false), bytes);
  // It may be one that kCacheless was just chosen for, or was until now.
  if (NativeCache* const cache = own_cache(); cache != nullptr) return allocate_observed(*cache, c, bytes, alignment);
  if (is_sample_due(Classes::slot_bytes(c))) [[unlikely]]
    if (void* const block = allocate_sampled(nullptr, c, bytes, alignment); block != nullptr) return filled(block, bytes);
  if (t_cache == &g_modes.cpu) {
    if (void* const slot = g_cpu_caches.pop(c); slot != nullptr) return slot;
    void* const slot = allocate_inside(nullptr, bytes, alignment, [=] { return g_cpu_caches.refill(c); });
    consider_purger(sharing_threads());
    return filled(guard_at_refill(slot, g_cpu_caches.batch(c), bytes, alignment), bytes);
  }
  if (g_start.load(std::memory_order_acquire) != Start::kReady) return out_of_memory();
  if (check::is_guard_due(1))
    if (void* const block = check::allocate_guarded(bytes, std::max(alignment, kAlignment)); block != nullptr)
      return filled(block, bytes);
  return filled(allocate_inside(nullptr, bytes, alignment, [=] { return g_core.allocate_uncached(c); }), bytes);
}

void free_cacheless(NativeCache& /*mode*/, SizeClass c, void* slot) noexcept {
  if (is_not_yet_or_checked() && is_checked()) return deallocate_checked(slot, Claim{});
  const base::KeepErrno keep;
  if (const std::uint8_t byte = g_perturb.load(std::memory_order_relaxed); byte != 0)  // relaxed: as in filled()
    std::memset(slot, byte, Classes::slot_bytes(c));
  if (NativeCache* const cache = own_cache(); cache != nullptr) return free_observed(*cache, c, slot);
  const bool shares = t_cache == &g_modes.cpu;
  if (shares && g_cpu_caches.push(c, slot)) return;
  const Inside inside(nullptr);
  if (!inside) return defer_free(static_cast<Freed*>(slot));
  shares ? g_cpu_caches.drain(c, slot) : g_core.free_uncached(c, slot);
}

// ---- the thread that gives memory back --------------------------------------------------------------------------------

namespace {

// The purger has no cache, and is none of the threads for which it is there. A wrapper of pthread_create that was put into
// libc's own code may have used the heap in it before: then its end would be looked at, which joins the purger.
void purger_begins() noexcept {
  if (is_counted_as_sharing()) g_sharing_threads.fetch_sub(1, std::memory_order_relaxed);
  if (g_key != kNoKey) (void)os::Libc::pthread_setspecific(g_key, nullptr);
  NativeCache* const cache = present_cache();
  t_cache = &g_modes.late;
  if (cache != nullptr) detach_cache(cache);
}

[[nodiscard]] Due purge_step() noexcept {
  if (!g_purger_gate.enter(g_purger_mark, 0)) return Due::kLater;
  if (is_profile_requested()) {
    g_loads_unwinder.store(true, std::memory_order_relaxed);  // relaxed: the gate orders it
    g_purger_gate.leave(g_purger_mark);
    begin_requested_profile();
    g_loads_unwinder.store(false, std::memory_order_release);
    return Due::kNow;
  }
  Due due = Due::kLater;
  if (const Inside inside(nullptr); inside) {
    g_core.arena().budget().set_purged_in_time(true);
    due = g_core.relief().purge_idle();
  }
  g_purger_gate.leave(g_purger_mark);
  return due;
}

}  // namespace

void wake_purger() noexcept {
  const base::KeepErrno keep;
  g_purger.wake();
}

void start_purger_if_worth_while() noexcept {
  constexpr std::int64_t kEnoughBytes = std::int64_t{8} << 20;
  if (g_options.background_thread == BackgroundThread::kOff) return;
  if (g_core.registry().threads() + sharing_threads() < least_threads_for_purger()) return;
  if (g_core.arena().budget().footprint() + g_core.kept().most_unreported_bytes() < kEnoughBytes) return;
  if (g_purger.has_to_wait()) return;  // before the system call
  if (os::is_confined()) return g_core.arena().budget().limit_regret();
  const MakesOtherCalls calls;
  if (os::is_confined()) return;
  if (t_fork.inside != 0 || g_gate.forks() != 0 || os::kernel::getpid() != g_process) return;
  if (least_threads_for_purger() != 1 && os::thread_count() == 1) {  // the others ended unheard
    count_sharing_threads_alone();
    return g_purger.put_off();
  }
  if (!start_purger()) g_core.arena().budget().limit_regret();
}

bool start_purger() noexcept {
  const profile::OwnMemory own_memory;
  return g_purger.start(purger_begins, purge_step, std::max<std::uint64_t>(g_core.arena().purge().delay_ms() / 2, 10));
}

// It may be waiting for the loader, whose lock the thread that exits holds.
void end_purger_at_exit() noexcept {
  if (!os::is_confined() && os::kernel::getpid() == g_process && comes_true_soon(loads_no_unwinder)) (void)g_purger.end();
}

}  // namespace freehold::alloc::engine

namespace freehold::alloc {

using namespace engine;

void before_vfork() noexcept {
  t_fork.has_vforked = true;
  if (t_cache == &g_modes.cpu) t_cache = &g_modes.no_cache;
}

void before_signal(pid_t thread, long signal) noexcept {
  if (!g_purger.may_be(thread) || signal <= 0 || signal == SIGKILL || signal == SIGSTOP || os::is_confined()) return;
  const MakesOtherCalls calls;
  if (os::is_confined() || os::kernel::getpid() != g_process) return;
  g_core.arena().budget().set_purged_in_time(false);
  g_purger.end_before_signal(thread);
}

}  // namespace freehold::alloc
