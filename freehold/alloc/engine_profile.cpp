// SPDX-License-Identifier: MIT
// The engine's part of the sampled heap profile: which calls get a sampled block.
//
// A refill passes over the slots that it brings, and where a sampling point lies in one, a mark takes the slot's place in
// the bin (thread_cache.hpp). Fast paths know nothing of it: a pop that meets a mark finds no slot and comes here. The call
// gets a run of pages as its block, whose size class is 0, so that its free comes by, too; the free puts a mark where it
// would have put the slot. So a slot that a thread took from the pool is sampled or not for as long as the thread's side has
// it, whatever is allocated in it, and the blocks in use are sampled alike: short-lived ones and those that are kept.
//
// A loop that allocates and frees at a mark would pay for it at every turn. So a mark may end at any turn, and those that do
// not stand for it (profile/mark_weights.hpp).
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "freehold/alloc/engine_state.hpp"
#include "freehold/alloc/profile.hpp"
#include "freehold/base/keep_errno.hpp"
#include "freehold/check/call_stacks.hpp"
#include "freehold/os/call_stack.hpp"

namespace freehold::alloc {

using namespace engine;

void* engine::allocate_sampled(NativeCache* cache, SizeClass c, std::size_t bytes, std::size_t alignment,
                               std::uint32_t weight) noexcept {
  const base::KeepErrno keep;
  const std::uint32_t stack = check::note_call_stack();
  const Inside inside(cache);
  if (!inside) return nullptr;
  const std::size_t size = Classes::slot_bytes(c);
  bool zero;
  void* const block = g_core.allocate_large(cache, size, alignment, zero);
  if (block != nullptr) profile::add(block, bytes, size, stack, weight);
  return block;
}

void* engine::allocate_at_marks(NativeCache& cache, SizeClass c, std::size_t bytes, std::size_t alignment) noexcept {
  while (cache.pop_mark(c)) {
    const std::uint32_t before = cache.mark_weights.take(c.index(), cache.entries(c));
    const std::uint64_t mean = profile::mean();  // 0: the mark ends
    const std::uint32_t weight = mean == 0 ? 0 : profile::MarkWeights::turn(profile::sampler(), mean, before);
    if (weight != 0) {
      if (void* const block = allocate_sampled(&cache, c, bytes, alignment, weight); block != nullptr) return block;
    } else if (const Inside inside(&cache); inside && mean != 0) {
      // A slot that is not sampled takes the place, so that refills bring no more than the thread keeps.
      if (void* const slot = g_core.allocate_uncached(c); slot != nullptr) return slot;
    }
    if (void* const slot = cache.pop(c); slot != nullptr) return slot;
  }
  return nullptr;
}

void* engine::sample_refill(NativeCache& cache, SizeClass c, void* slot, std::size_t bytes, std::size_t alignment) noexcept {
  const std::uint64_t mean = profile::mean();
  if (slot == nullptr || mean == 0 || size_class_of(slot) != c) return slot;  // or it was mapped amid a fork
  const std::size_t size = Classes::slot_bytes(c), below = cache.entries(c);
  if (profile::sampler().passes_freely(mean, size, below + 1)) return slot;
  bool is_mine = false;
  {
    const Inside inside(&cache);
    if (!inside) return slot;
    // In the order in which they will be used.
    profile::sampler().pass(mean, size, below + 1, [&](std::uint64_t i) {
      i == 0 ? static_cast<void>(is_mine = true) : g_core.mark_entry(cache, c, below - i);
    });
  }
  if (!is_mine) return slot;
  void* const block = allocate_sampled(&cache, c, bytes, alignment);
  if (block == nullptr) return slot;
  if (const Inside inside(&cache); inside)
    g_core.give_batch(c, &slot, 1);  // not into the bin: the block has its place
  else
    deallocate_inline(slot);
  return block;
}

void engine::free_large(NativeCache* cache, void* block) noexcept {
  const auto [size, weight] = profile::was_started() ? profile::forget(block) : profile::Forgotten();
  g_core.free_large(cache, block);
  if (size == 0 || size > Classes::kMaxBytes || cache == nullptr || profile::mean() == 0) return;
  const SizeClass c = Classes::class_of(size);
  g_core.push_mark(*cache, c);
  if (const std::size_t n = cache->entries(c); n != 0) cache->mark_weights.put(c.index(), n - 1, weight);
}

void* engine::resize_sampled(NativeCache* cache, void* block, std::size_t bytes) noexcept {
  const bool is_sampled = is_sample_due(bytes);
  const std::uint32_t stack = is_sampled ? check::note_call_stack() : 0;
  const Inside inside(cache);
  if (!inside) return nullptr;
  // Before: once it has moved, its address may be another thread's.
  const profile::Former former = profile::take(block);
  void* const moved = g_core.resize_large(cache, block, bytes);
  if (moved == nullptr)
    profile::put_again(former);
  else if (is_sampled)
    profile::add(moved, bytes, bytes, stack);
  return moved;
}

// ---- profile.hpp --------------------------------------------------------------------------------------------------------

namespace {

void write_profile_at_exit() noexcept {
  if (g_options.profile_file[0] != '\0') (void)write_profile(g_options.profile_file);
}

// "%p" becomes the process's number. False: too long.
[[nodiscard]] bool expand(const char* pattern, char* path, std::size_t room) noexcept {
  std::size_t n = 0;
  for (; *pattern != '\0'; ++pattern) {
    if (n + 24 > room) return false;
    if (pattern[0] != '%' || pattern[1] != 'p') {
      path[n++] = *pattern;
      continue;
    }
    ++pattern;
    char digits[20];
    std::size_t at = sizeof digits;
    for (auto pid = static_cast<unsigned>(::getpid()); pid != 0; pid /= 10) digits[--at] = static_cast<char>('0' + pid % 10);
    std::memcpy(path + n, digits + at, sizeof digits - at);
    n += sizeof digits - at;
  }
  path[n] = '\0';
  return true;
}

}  // namespace

bool start_profile(std::uint64_t mean) noexcept {
  if (g_start.load(std::memory_order_acquire) != Start::kReady && !start()) {
    errno = ENOMEM;
    return false;
  }
  if (is_checked()) {
    errno = ENOTSUP;
    return false;
  }
  (void)os::prepare_call_stacks();  // without an unwinder there are sizes and no stacks
  if (profile::start(g_pages, mean == 0 ? profile::kDefaultMean : mean, os::kMostFrames)) return true;
  errno = ENOMEM;
  return false;
}

void stop_profile() noexcept { profile::stop(); }

bool write_profile(const char* pattern) noexcept {
  char path[kMostPathBytes + 32];
  if (!expand(pattern, path, sizeof path)) {
    errno = ENAMETOOLONG;
    return false;
  }
  // Not through a link that somebody else has laid, and never a profile that is half of another's.
  const Reading reading;
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  const bool ok = profile::write(g_pages, fd);
  const int error = errno;
  ::close(fd);
  errno = error;
  return ok;
}

void engine::finish_start_of_profile() noexcept {
  if (g_options.profile_bytes != 0 && !is_checked()) std::atexit(write_profile_at_exit);
}

}  // namespace freehold::alloc
