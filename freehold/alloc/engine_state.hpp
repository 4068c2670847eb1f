// SPDX-License-Identifier: MIT
// The state of the process's one engine, and what its parts share; internal to engine*.cpp.
//
//   engine.cpp          the functions of engine.hpp: the slow halves of malloc and free, and the rest of the family
//   engine_start.cpp    the first call: options, arena, exit handlers
//   engine_threads.cpp  threads' caches from their first call to the threads' end, and the purger thread
//   engine_check.cpp    checked mode: every call is looked at
//   engine_count.cpp    exact counts of a thread: its calls come by before they are served (detour.hpp)
//   engine_scope.cpp    scopes: a thread's blocks come from a private heap, and free finds that again
//   engine_profile.cpp  observers of slow calls: the sampled heap profile and guarded blocks
//   engine_limit.cpp    near the kernel's limit of memory: look, give back, warn, call the program
//   engine_fork.cpp     fork: threads that are inside the engine, threads that wait, work that is deferred
//
// All of it is constant-initialised: malloc is called before constructors run, and after destructors did.
#pragma once
#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "freehold/alloc/engine.hpp"
#include "freehold/alloc/front/cpu_cache.hpp"
#include "freehold/alloc/front/fast_path.hpp"
#include "freehold/alloc/observe/checked.hpp"
#include "freehold/alloc/process/fork_work.hpp"
#include "freehold/alloc/process/options.hpp"
#include "freehold/alloc/return/purger_thread.hpp"
#include "freehold/base/keep_errno.hpp"
#include "freehold/check/guards.hpp"
#include "freehold/os/cpu.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/profile/profiler.hpp"
#include "freehold/sync/fork_gate.hpp"
#include "freehold/sync/lock.hpp"

// Hidden by name, as in fast_path.hpp.
namespace freehold::alloc {
namespace [[gnu::visibility("hidden")]] engine {

using Classes = NativeConfig::Classes;
using Gate = sync::ForkGate<sync::NativeAtomics>;

// ---- the engine -------------------------------------------------------------------------------------------------------

enum class Start : std::uint32_t { kNotYet, kReady };
extern constinit std::atomic<Start> g_start;
extern constinit sync::Mutex<sync::NativeAtomics> g_start_lock;
extern constinit os::Pages g_pages;
extern constinit Options g_options;
extern constinit os::CpuCount g_cpus;
extern constinit CpuCaches<NativeCore, Classes> g_cpu_caches;
// Not 0 in the process that started, and in children of vfork, which share its memory; 0 in children of fork.
extern constinit char* g_own_page;
[[nodiscard]] bool shares_memory_with_parent() noexcept;
extern constinit pid_t g_process;  // the one whose threads are ours; another may share our memory (vfork, clone)
// Freed blocks are filled with this byte, new ones with its complement; 0: with nothing.
extern constinit std::atomic<std::uint8_t> g_perturb;

// Makes the engine work. False: no memory or address space; the next call tries again. engine_start.cpp
[[nodiscard]] bool start() noexcept;
// errno, and a line if a limit was met. Returns null.
[[nodiscard]] void* out_of_memory() noexcept;
// Registers handlers with libc: after the engine works, since this may allocate.
void finish_start() noexcept;

// ---- threads ----------------------------------------------------------------------------------------------------------

// A thread's slow calls of slots do this. The thread's cache carries one of these, so that none of them asks for a mode.
//   kPlain       refill and drain, and nothing else
//   kObserved    once a profile was started or guards are on: looks at the call, which kPlain serves. engine_profile.cpp
//   kCacheless   threads that have no cache, or may not keep the one that they have. engine_threads.cpp
//   kCounted     threads with a detour: they count their calls, or a private heap serves them. detour.hpp
using Slow = NativeCache::Slow;
[[nodiscard]] void* allocate_plain(NativeCache& cache, SizeClass c, std::size_t bytes, std::size_t alignment) noexcept;
void free_plain(NativeCache& cache, SizeClass c, void* slot) noexcept;
[[nodiscard]] void* allocate_observed(NativeCache& cache, SizeClass c, std::size_t bytes, std::size_t alignment) noexcept;
void free_observed(NativeCache& cache, SizeClass c, void* slot) noexcept;
[[nodiscard]] void* allocate_cacheless(NativeCache& mode, SizeClass c, std::size_t bytes, std::size_t alignment) noexcept;
void free_cacheless(NativeCache& mode, SizeClass c, void* slot) noexcept;
[[nodiscard]] void* allocate_counted(NativeCache& head, SizeClass c, std::size_t bytes, std::size_t alignment) noexcept;
void free_counted(NativeCache& head, SizeClass c, void* slot) noexcept;
inline constexpr Slow kPlain{allocate_plain, free_plain};
inline constexpr Slow kObserved{allocate_observed, free_observed};
inline constexpr Slow kCacheless{allocate_cacheless, free_cacheless};
inline constexpr Slow kCounted{allocate_counted, free_counted};
// After a change of what they depend on: all caches get theirs.
void choose_slow_calls() noexcept;

extern constinit void* g_nothing[2];
// Empty and full at once: what a thread uses before it has a cache, and after. Side by side, so that one compare tells them
// from a cache of a thread's own.
struct Modes {
  NativeCache no_cache{g_nothing, &kCacheless};
  NativeCache cpu{g_nothing, &kCacheless};        // the cache of a thread that shares those of its CPU
  NativeCache late{g_nothing, &kCacheless};       // the cache of a thread that is ending: it gets no second one
  NativeCache perturbed{g_nothing, &kCacheless};  // while blocks are filled or all of them guarded: every call comes by
};
extern constinit Modes g_modes;

constexpr pthread_key_t kNoKey = PTHREAD_KEYS_MAX;
extern constinit pthread_key_t g_key;
constexpr std::uint64_t kFirstLook = 64;
extern constinit std::atomic<std::uint64_t> g_look_at;  // caches, at the next look for dead threads

// Past the thread's counts: its own cache, or null.
[[nodiscard, gnu::noinline]] NativeCache* cache_behind(NativeCache* cache) noexcept;
// The calling thread's own cache; null if it has none now. Modes and counts have no id.
[[nodiscard]] inline NativeCache* present_cache() noexcept {
  NativeCache* const cache = t_cache;
  return cache->id != 0 ? cache : cache_behind(cache);
}

// The calling thread's own cache; null if it has none and gets none. engine_threads.cpp
[[nodiscard, gnu::noinline]] NativeCache* own_cache_slow() noexcept;
// Gives a cache back that no thread uses any more.
void detach_cache(NativeCache* cache) noexcept;
// Is called by g_key when a thread ends.
void thread_ends(void* cache) noexcept;
[[gnu::noinline]] void change_perturbation_mode(bool perturbed) noexcept;
// Threads that share the caches of the CPUs, some of which may have ended. Relaxed: a number, it publishes nothing.
extern constinit std::atomic<std::uint64_t> g_sharing_threads;
[[nodiscard]] inline std::uint64_t sharing_threads() noexcept { return g_sharing_threads.load(std::memory_order_relaxed); }
void count_sharing_threads_alone() noexcept;  // the caller is the only thread; also during an entry

// True if every call must take the slow path: threads have no caches then.
[[nodiscard]] inline bool is_perturbed() noexcept {
  return g_perturb.load(std::memory_order_relaxed) != 0 ||
         check::guards_are_on_always();  // relaxed: a mode, it publishes nothing
}

// The modes of a thread meet those of the process: called by slow paths, so that fast ones need not ask.
inline void follow_perturbation_mode() noexcept {
  const bool perturbed = is_perturbed();
  if (perturbed != (t_cache == &g_modes.perturbed)) [[unlikely]]
    change_perturbation_mode(perturbed);
}
[[nodiscard]] inline NativeCache* own_cache() noexcept {
  follow_perturbation_mode();
  return t_cache == &g_modes.no_cache ? own_cache_slow() : present_cache();
}

// ---- the thread that gives memory back --------------------------------------------------------------------------------

extern constinit PurgerThread g_purger;
// These are the purger's own: a thread that forks inside its slow path, from a handler of signals, keeps only the purger
// out.
extern constinit Gate g_purger_gate;
extern constinit Gate::Mark g_purger_mark;

// Lives where calls to the system are made that a confined process must not make: not if os::is_confined() once it lives.
class MakesOtherCalls {
 public:
  MakesOtherCalls() noexcept { g_purger.other_calls().begin(); }
  ~MakesOtherCalls() { g_purger.other_calls().end(); }
  MakesOtherCalls(const MakesOtherCalls&) = delete;
  MakesOtherCalls& operator=(const MakesOtherCalls&) = delete;
};

void start_purger_if_worth_while() noexcept;
// Also in a program with one thread. False: the system refuses a thread.
[[nodiscard]] bool start_purger() noexcept;
void end_purger_if_alone() noexcept;
void end_purger_at_exit() noexcept;
// True once main has ended by pthread_exit. The process cannot be alone with one thread then: the kernel counts main until
// the end.
extern constinit std::atomic<bool> g_main_has_ended;
// A process with as many threads may have the purger beside them. Relaxed: a thread that reads the former value is early.
[[nodiscard]] inline std::uint64_t least_threads_for_purger() noexcept {
  return g_options.background_thread == BackgroundThread::kOn || g_main_has_ended.load(std::memory_order_relaxed) ? 1 : 2;
}
// Called where memory is allocated, outside the gate: a program with threads that holds enough to give some back gets one.
// `sharing`: threads that share the caches of the CPUs, where the caller is one.
inline void consider_purger(std::uint64_t sharing = 0) noexcept {
  if (g_core.registry().threads() + sharing >= least_threads_for_purger() && !g_purger.exists()) [[unlikely]]
    start_purger_if_worth_while();
}
[[gnu::noinline]] void wake_purger() noexcept;

// ---- the kernel's limit of memory (engine_limit.cpp) ------------------------------------------------------------------

// Called at the start: returns the limit, or 0; and, once there is an arena, sets its ceiling.
[[nodiscard]] std::uint64_t find_memory_limit() noexcept;
void watch_memory_limit() noexcept;
// Outside the gate; `wanted`: bytes that will be taken next.
[[gnu::cold, gnu::noinline]] void look_at_memory_limit(std::size_t wanted) noexcept;
inline void look_if_due(std::size_t wanted) noexcept {
  if (g_core.arena().budget().is_look_due(static_cast<std::int64_t>(wanted))) [[unlikely]]
    look_at_memory_limit(wanted);
}
void forget_looks_in_child() noexcept;  // also during an entry
void limit_after_fork_in_child() noexcept;

// ---- fork -------------------------------------------------------------------------------------------------------------

extern constinit Gate g_gate;

// Fork must know this of the calling thread.
struct ForkState {
  std::uint16_t inside = 0;  // how often it is inside the gate: more than once if a signal's handler came during a slow path
  std::uint16_t forks = 0;   // forks that it has under way, for which it closed the gate
  std::uint16_t all_forks = 0;
  bool has_vforked = false;  // and may be the child since
};
extern constinit thread_local ForkState t_fork;

// Inside the gate for a scope, unless another thread forks. Code that changes the engine needs one; code that only reads
// does not.
class [[nodiscard]] Inside {
 public:
  // `cache`: the calling thread's own, or null.
  explicit Inside(NativeCache* cache) noexcept : own_(cache != nullptr ? &cache->inside : nullptr) {
    // First and last, as a handler of signals sees it: it may fork during all this.
    ++t_fork.inside;
    sync::NativeAtomics::light_fence();
    if (own_ != nullptr && !g_gate.is_quiet(*own_)) {  // during another of this thread, which goes on after us
      own_ = nullptr;
      entered_ = true;
    } else if (own_ != nullptr) {
      entered_ = g_gate.enter(*own_, t_fork.forks);
    } else {
      shared_ = &g_gate.shared_mark(sync::NativeAtomics::thread_number());
      entered_ = g_gate.enter_shared(*shared_, t_fork.forks);
    }
  }
  // The same in line, for a thread with a cache.
  [[gnu::always_inline]] explicit Inside(NativeCache& cache) noexcept : own_(&cache.inside) {
    ++t_fork.inside;
    sync::NativeAtomics::light_fence();
    if (!g_gate.is_quiet(*own_)) [[unlikely]] {
      own_ = nullptr;
      entered_ = true;
    } else {
      entered_ = g_gate.enter(*own_, t_fork.forks);
    }
  }
  // The same with no cache, in fewer instructions: checked mode has none.
  explicit Inside(std::nullptr_t) noexcept
      : own_(nullptr), shared_(&g_gate.shared_mark(sync::NativeAtomics::thread_number())) {
    ++t_fork.inside;
    sync::NativeAtomics::light_fence();
    entered_ = g_gate.enter_shared(*shared_, t_fork.forks);
  }
  [[gnu::always_inline]] ~Inside() {
    if (entered_) [[likely]] {
      if (own_ != nullptr) g_gate.leave(*own_);
      if (shared_ != nullptr) g_gate.leave_shared(*shared_);
      if (g_purger.exists() && g_core.arena().due().something()) [[unlikely]]
        wake_purger();
    }
    sync::NativeAtomics::light_fence();
    --t_fork.inside;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  explicit operator bool() const noexcept { return entered_; }

 private:
  Gate::Mark* own_;
  Gate::Mark* shared_ = nullptr;
  bool entered_;
};

// For code that holds locks of the engine and changes nothing: a signal handler that forks during it must not wait for them.
class [[nodiscard]] Reading {
 public:
  Reading() noexcept {
    ++t_fork.inside;
    sync::NativeAtomics::light_fence();
  }
  ~Reading() {
    sync::NativeAtomics::light_fence();
    --t_fork.inside;
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
};

constexpr unsigned kForkTries = 1'000;  // waits, before malloc fails because the system refuses a mapping
// Waits a millisecond at most: most forks are over by then, but this one may be waiting for a lock that the thread holds.
void wait_for_forks() noexcept;

// Waits at the exit, before a lock that a stopped thread may hold for ever: false if it is not free within a tenth of a
// second, or if exit() was called by a signal's handler during a call of ours.
template <class F>
[[nodiscard]] bool comes_true_soon(F&& holds) noexcept {
  constexpr unsigned kTries = 100;
  constexpr std::uint64_t kNapNs = 1'000'000;
  if (t_fork.inside != 0) return false;
  for (unsigned tries = 0; !holds(); ++tries) {
    if (tries == kTries) return false;
    sync::NativeAtomics::wait_shared(g_gate.word(), g_gate.forks(), kNapNs);
  }
  return true;
}

struct Freed {
  Freed* next;
};
extern constinit DeferredList<sync::NativeAtomics, Freed, &Freed::next> g_deferred_frees;
extern constinit DeferredList<sync::NativeAtomics, NativeCache, &NativeCache::next_ended> g_ended;
extern constinit ForkBlocks<sync::NativeAtomics, os::Pages> g_fork_blocks;

// Does the work that was deferred while threads forked.
void run_deferred() noexcept;
void defer_free(Freed* block) noexcept;

// Runs `take` inside the gate, or maps a block if another thread's fork takes long. Null: no memory; errno is unchanged.
template <class Take>
[[nodiscard]] void* take_inside(NativeCache* cache, std::size_t bytes, std::size_t alignment, Take take) noexcept {
  const base::KeepErrno keep;
  for (unsigned tries = 0; tries < kForkTries; ++tries) {
    if (const Inside inside(cache); inside) return take();
    wait_for_forks();
    if (g_gate.forks() == t_fork.forks) continue;
    if (void* const block = g_fork_blocks.allocate(g_pages, bytes, alignment); block != nullptr) return block;
  }
  return nullptr;
}
template <class Take>
[[nodiscard]] void* allocate_inside(NativeCache* cache, std::size_t bytes, std::size_t alignment, Take take) noexcept {
  look_if_due(bytes);
  void* const block = take_inside(cache, bytes, alignment, take);
  return block != nullptr ? block : out_of_memory();
}

void before_fork() noexcept;
void after_fork_in_parent() noexcept;
void after_fork_in_child() noexcept;

// ---- the sampled heap profile (engine_profile.cpp) ---------------------------------------------------------------------

// The slot's class, or 0 for what is none.
[[nodiscard]] SizeClass size_class_of(const void* block) noexcept;
// A free that the thread's array has no room for.
inline void deallocate_slot(SizeClass c, void* slot) noexcept {
  NativeCache& cache = *t_cache;
  cache.slow.load(std::memory_order_relaxed)->free(cache, c, slot);
}
// A block for a sampled slot of class c, or for a mark of some weight; null: another thread forks, or there is no memory.
// `cache`: the caller's own, or null. `home`: the slot, or one near; null: not known.
[[nodiscard, gnu::noinline]] void* allocate_sampled(NativeCache* cache, SizeClass c, std::size_t bytes,
                                                    std::size_t alignment, std::uint32_t weight = 1,
                                                    const void* home = nullptr) noexcept;
// The free of a sampled block: a mark goes where its slot would. Inside the gate.
void push_mark(NativeCache& cache, SizeClass c, std::uint32_t weight = 1) noexcept;
// A guarded block instead of a slot, which stands for `slots` allocations, if one is due; else the slot.
[[nodiscard, gnu::noinline]] void* guard_at_refill(void* slot, std::size_t slots, std::size_t bytes,
                                                   std::size_t alignment) noexcept;
// Tells whether this call is sampled; every call comes by here.
[[nodiscard]] inline bool is_sample_due(std::size_t bytes) noexcept {
  const std::uint64_t mean = profile::mean();
  return mean != 0 && !profile::is_own_memory() && profile::sampler().is_due(mean, bytes);
}
// Resizes a large block without a copy, as another allocation by the caller: sampled again. Null: not possible.
[[nodiscard, gnu::noinline]] void* resize_sampled(NativeCache* cache, void* block, std::size_t bytes) noexcept;
// Inside the gate; `cache`: the caller's own, or null. Frees a block that is no slot, and leaves a mark if it was sampled as
// one.
void free_large(NativeCache* cache, void* block) noexcept;
// Does the profile's part of finish_start().
void finish_start_of_profile() noexcept;
// Does what is asked from outside (profile/live_profile.hpp). Outside the gate, where memory is allocated. False: the purger
// has yet to do it. It loads the unwinder, since a caller of malloc may hold a lock that a thread in the loader waits for.
extern constinit profile::ProfileRequest g_profile_request;
[[nodiscard]] bool answer_profile_request() noexcept;
[[nodiscard]] inline bool is_profile_requested() noexcept {  // of the purger
  return g_profile_request.command.load(std::memory_order_acquire) == profile::ProfileCommand::kStart &&
         !profile::was_started();
}
void begin_requested_profile() noexcept;
// Set while the purger loads it. A fork waits a little then: its child could load no library.
extern constinit std::atomic<bool> g_loads_unwinder;
[[nodiscard]] inline bool loads_no_unwinder() noexcept { return !g_loads_unwinder.load(std::memory_order_acquire); }

// A new block of the program's. Relaxed: a mode, it publishes nothing.
[[nodiscard]] inline void* filled(void* block, std::size_t bytes) noexcept {
  const std::uint8_t byte = g_perturb.load(std::memory_order_relaxed);
  return byte == 0 || block == nullptr ? block : std::memset(block, static_cast<std::uint8_t>(~byte), bytes);
}
constexpr std::size_t kAlignment = 16;  // every block's alignment

// ---- checked mode (engine_check.cpp) ----------------------------------------------------------------------------------

// Says whether the engine has not started yet, every call is to be looked at, or a thread has had a detour: asked by slow
// paths, which come by in each case. Relaxed: a hint; those that act on it ask is_checked() and present_detour().
enum class Mode : std::uint8_t { kUsual, kDetoured, kNotYet, kChecked };
extern constinit std::atomic<Mode> g_mode;
[[nodiscard]] inline bool is_unusual() noexcept { return g_mode.load(std::memory_order_relaxed) != Mode::kUsual; }
[[nodiscard]] inline bool is_not_yet_or_checked() noexcept {
  return g_mode.load(std::memory_order_relaxed) >= Mode::kNotYet;
}
// The first call of a process, or one that is checked or counted.
[[nodiscard, gnu::cold]] void* allocate_unusual(const check::Request& request, bool zeroed) noexcept;
// The same, if the call is counted or checked; false: neither.
[[nodiscard, gnu::cold]] bool deallocate_unusual(void* block, const Claim& claim) noexcept;
// Serves the call without a look at it.
[[nodiscard]] void* allocate_usual(const check::Request& request, bool zeroed) noexcept;
void deallocate_checked(void* block, const Claim& claim) noexcept;
[[nodiscard]] void* reallocate_checked(void* block, std::size_t bytes) noexcept;
[[nodiscard]] std::size_t checked_usable_size(const void* block) noexcept;
// These do checked mode's part of start(), finish_start() and fork. False: no memory.
[[nodiscard]] bool start_checks() noexcept;
void finish_start_of_checks() noexcept;
void checks_after_fork_in_child() noexcept;

// ---- counts of a thread (engine_count.cpp) ----------------------------------------------------------------------------

struct Detour;
[[nodiscard]] Detour* present_detour() noexcept;  // the calling thread's newest one; null: it has none
void end_detours() noexcept;                      // all of the calling thread, which ends
void note_free(Detour* newest, const void* block) noexcept;
[[nodiscard]] void* allocate_counted(Detour& detour, const check::Request& request, bool zeroed) noexcept;
void free_counted(Detour& detour, void* block, const Claim& claim) noexcept;
[[nodiscard]] void* reallocate_counted(Detour& detour, void* block, std::size_t bytes) noexcept;
// The thread's word leads past all counts and scopes while this lives.
class Uncounted {
 public:
  Uncounted() noexcept;
  ~Uncounted();
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;

 private:
  NativeCache* head_;
  Detour* last_ = nullptr;
};

// ---- scopes (engine_scope.cpp) ----------------------------------------------------------------------------------------

[[nodiscard]] bool is_in_heap(const void* block) noexcept;
// False: no heap has the block.
[[nodiscard]] bool free_in_heap(void* block) noexcept;
// A block in a slab of a heap, for which the thread's array has no room.
[[gnu::noinline]] void free_of_heap(void* block) noexcept;
[[nodiscard]] bool is_of_heap(const void* block) noexcept;  // such a block
// The calling thread's own cache ends: the freed blocks that it keeps go to their heaps, and its detours have no thread.
void end_scopes_of(NativeCache& cache) noexcept;
[[nodiscard]] std::size_t usable_size_in_heap(const void* block) noexcept;  // 0: no heap has it
// Pre: is_in_heap().
[[nodiscard]] void* reallocate_in_heap(void* block, std::size_t bytes) noexcept;
// To where a new block would be. `old`: its bytes.
[[nodiscard]] void* move_block(void* block, std::size_t old, std::size_t bytes) noexcept;
std::size_t trim_heaps() noexcept;
void scopes_after_fork_in_child() noexcept;

}  // namespace engine
}  // namespace freehold::alloc
