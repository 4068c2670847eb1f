// SPDX-License-Identifier: MIT
// Observers of slow calls: the sampled heap profile, which decides what calls get a sampled block, and the guarded blocks.
// Caches carry kObserved (engine_state.hpp) once there is one; kPlain knows nothing of them.
//
// A refill passes over the slots that it brings, and where a sampling point lies in one, a mark takes the slot's place in
// the bin (thread_cache.hpp). Fast paths know nothing of it: a pop that meets a mark finds no slot and comes here. The call
// gets a run of pages as its block, whose size class is 0, so that its free comes by, too; the free puts a mark where it
// would have put the slot. So a slot that a thread took from the pool is sampled or not for as long as the thread's side has
// it, whatever is allocated in it, and the blocks in use are sampled alike: short-lived ones and those that are kept.
//
// A loop that allocates and frees at a mark would pay for it at every turn. So a mark may end at any turn, and those that do
// not stand for it (profile/mark_weights.hpp).
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "freehold/alloc/engine_state.hpp"
#include "freehold/alloc/observe/profile.hpp"
#include "freehold/base/keep_errno.hpp"
#include "freehold/check/call_stacks.hpp"
#include "freehold/os/call_stack.hpp"
#include "freehold/os/sandbox.hpp"
#include "freehold/os/system_call.hpp"
#include "freehold/os/threads.hpp"
#include "freehold/os/undisturbed.hpp"

namespace freehold::alloc {

using namespace engine;

namespace {

// profile::LivePlace's; 0: it is no slot of the class, or beyond 64 GiB.
[[nodiscard]] std::uint32_t home_of(const void* slot, SizeClass c) noexcept {
  const std::uint64_t place = (reinterpret_cast<std::uintptr_t>(slot) - g_base) / 16 + 1;
  return slot != nullptr && engine::size_class_of(slot) == c && place <= UINT32_MAX ? static_cast<std::uint32_t>(place) : 0;
}

// Takes a bin whose mark was just popped. Returns the slot that the next call will get, else the one that the last call got,
// whose entry is still there. The blocks of this moment lie around it.
[[nodiscard]] const void* slot_beside(const NativeCache& cache, SizeClass c) noexcept {
  const auto& bin = cache.bins[c];
  for (void** at = cache.top[c] - 1; at != bin.array; --at)
    if (*at != nullptr) return *at;
  void** const above = cache.top[c] + 1;
  return above < bin.array + 1 + bin.capacity ? *above : nullptr;
}

}  // namespace

void* engine::allocate_sampled(NativeCache* cache, SizeClass c, std::size_t bytes, std::size_t alignment,
                               std::uint32_t weight, const void* home) noexcept {
  const base::KeepErrno keep;
  const std::uint32_t stack = check::note_call_stack();
  const Inside inside(cache);
  if (!inside) return nullptr;
  const std::size_t size = Classes::slot_bytes(c);
  bool zero = false;
  void* const block = g_core.large().allocate_large(cache, size, alignment, zero);
  if (block != nullptr) profile::add(block, bytes, size, stack, weight, home_of(home, c));
  return block;
}

namespace {

// Takes the newest entry away if it is a mark.
[[nodiscard]] bool pop_mark(NativeCache& cache, SizeClass c) noexcept {
  if (cache.bins[c].marks == 0 || cache.entries(c) == 0 || cache.top[c][-1] != nullptr) return false;
  --cache.top[c];
  --cache.bins[c].marks;
  return true;
}

// A bin with marks that pop() found nothing in. Null: it is empty.
[[nodiscard, gnu::noinline]] void* allocate_at_marks(NativeCache& cache, SizeClass c, std::size_t bytes,
                                                     std::size_t alignment) noexcept {
  while (pop_mark(cache, c)) {
    const std::uint32_t before = cache.mark_weights.take(c.index(), cache.entries(c));
    const std::uint64_t mean = profile::mean();  // 0: the mark ends
    const std::uint32_t weight =
        mean == 0 || profile::is_own_memory() ? 0 : profile::MarkWeights::turn(profile::sampler(), mean, before);
    if (weight != 0) {
      void* const block = allocate_sampled(&cache, c, bytes, alignment, weight, slot_beside(cache, c));
      if (block != nullptr) return block;
    } else if (const Inside inside(&cache); inside && mean != 0) {
      // A slot that is not sampled takes the place, so that refills bring no more than the thread keeps.
      if (void* const slot = g_core.allocate_uncached(c); slot != nullptr) return slot;
    }
    if (void* const slot = cache.pop(c); slot != nullptr) return slot;
  }
  return nullptr;
}

// After a refill that brought `slot` and what is in the bin: marks those that are sampled. Returns the block for the caller.
[[nodiscard, gnu::noinline]] void* sample_refill(NativeCache& cache, SizeClass c, void* slot, std::size_t bytes,
                                                 std::size_t alignment) noexcept {
  const std::uint64_t mean = profile::mean();
  if (slot == nullptr || mean == 0 || engine::size_class_of(slot) != c) return slot;  // or it was mapped during a fork
  const std::size_t size = Classes::slot_bytes(c), below = cache.entries(c);
  if (profile::sampler().passes_freely(mean, size, below + 1)) return slot;
  bool is_mine = false;
  {
    const Inside inside(&cache);
    if (!inside) return slot;
    // In the order in which they will be used. The slots of those that are marked go back.
    profile::sampler().pass(mean, size, below + 1, [&](std::uint64_t i) {
      if (i == 0) return static_cast<void>(is_mine = true);
      void* const marked = std::exchange(cache.bins[c].array[1 + below - i], nullptr);
      if (marked == nullptr) return;
      ++cache.bins[c].marks;
      g_core.give_batch(c, &marked, 1);
    });
  }
  if (!is_mine || profile::is_own_memory()) return slot;
  void* const block = allocate_sampled(&cache, c, bytes, alignment, 1, slot);
  if (block == nullptr) return slot;
  if (const Inside inside(&cache); inside)
    g_core.give_batch(c, &slot, 1);  // not into the bin: the block has its place
  else
    deallocate_inline(slot);
  return block;
}

// Call this before the older half of a full bin goes back: a mark ends where its slot would leave the thread. Returns how
// many ended.
[[nodiscard]] std::size_t end_oldest_marks(NativeCache& cache, SizeClass c) noexcept {
  auto& bin = cache.bins[c];
  const std::size_t n = cache.entries(c);
  if (bin.marks == 0 || n != bin.capacity) return 0;
  std::size_t kept = 0, ended = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (i >= (n + 1) / 2 || bin.array[1 + i] != nullptr)
      bin.array[1 + kept++] = bin.array[1 + i];
    else
      cache.mark_weights.remove(c.index(), i - ended++);
  }
  cache.top[c] -= ended;
  bin.marks = static_cast<std::uint16_t>(bin.marks - ended);
  return ended;
}

}  // namespace

void* engine::guard_at_refill(void* slot, std::size_t slots, std::size_t bytes, std::size_t alignment) noexcept {
  if (slot == nullptr || !check::is_guard_due(static_cast<std::uint32_t>(slots))) return slot;
  void* const block = check::allocate_guarded(bytes, std::max(alignment, kAlignment));
  if (block == nullptr) return slot;
  deallocate_inline(slot);
  return block;
}

void* engine::allocate_observed(NativeCache& cache, SizeClass c, std::size_t bytes, std::size_t alignment) noexcept {
  if (void* const block = allocate_at_marks(cache, c, bytes, alignment); block != nullptr) return block;
  void* const slot = sample_refill(cache, c, allocate_plain(cache, c, bytes, alignment), bytes, alignment);
  // A refill stands for as many allocations as it brought slots.
  return guard_at_refill(slot, cache.entries(c) + 1, bytes, alignment);
}

void engine::free_observed(NativeCache& cache, SizeClass c, void* slot) noexcept {
  if (cache.bins[c].marks != 0) {
    const base::KeepErrno keep;
    const Inside inside(cache);  // a fork's child gives back what is in the array
    if (!inside) return defer_free(static_cast<Freed*>(slot));
    if (end_oldest_marks(cache, c) != 0 && cache.push(c, slot)) return;
  }
  const std::size_t before = cache.entries(c);
  free_plain(cache, c, slot);
  const std::size_t after = cache.entries(c);
  if (after <= before) cache.mark_weights.drop_oldest(c.index(), before + 1 - after);
}

void engine::push_mark(NativeCache& cache, SizeClass c, std::uint32_t weight) noexcept {
  if (!cache.push(c, nullptr)) {
    (void)end_oldest_marks(cache, c);
    const std::size_t before = cache.entries(c);
    g_core.make_room(cache, c);
    cache.mark_weights.drop_oldest(c.index(), before - cache.entries(c));
    if (!cache.push(c, nullptr)) return;  // there is no array: it ends
  }
  ++cache.bins[c].marks;
  cache.mark_weights.put(c.index(), cache.entries(c) - 1, weight);
}

void engine::free_large(NativeCache* cache, void* block) noexcept {
  const auto [size, weight] = profile::was_started() ? profile::forget(block) : profile::Forgotten();
  g_core.free_large(cache, block);
  if (size == 0 || size > Classes::kMaxBytes || cache == nullptr || profile::mean() == 0) return;
  const SizeClass c = Classes::class_of(size);
  push_mark(*cache, c, weight);
}

void* engine::resize_sampled(NativeCache* cache, void* block, std::size_t bytes) noexcept {
  const bool is_sampled = is_sample_due(bytes);
  const std::uint32_t stack = is_sampled ? check::note_call_stack() : 0;
  const Inside inside(cache);
  if (!inside) return nullptr;
  // Before: once it has moved, its address may be another thread's.
  const profile::Former former = profile::take(block);
  void* const moved = g_core.large().resize_large(cache, block, bytes);
  if (moved == nullptr)
    profile::put_again(former);
  else if (is_sampled)
    profile::add(moved, bytes, bytes, stack);
  return moved;
}

// ---- where a profile is written to -------------------------------------------------------------------------------------

namespace {

[[nodiscard]] const char* reason_of(int error) noexcept {
  switch (error) {
    case ENOENT: return "no such folder";
    case EACCES:
    case EPERM:
    case EROFS: return "not allowed";
    case EDQUOT:
    case ENOSPC: return "no space left";
    case EISDIR: return "it is a folder";
    case ELOOP: return "it is a link";
    case EFBIG: return "it would be larger than the limit of file sizes";
    case EEXIST: return "the name of the unfinished file is taken";
    case ENXIO:
    case EPIPE: return "no program reads it";
    case ENAMETOOLONG: return "its name is too long";
    case ENOMEM: return "no memory";
    default: return "the system refused";
  }
}

void write_profile_at_exit() noexcept {
  if (g_options.profile_file[0] == '\0' || write_profile(g_options.profile_file)) return;
  const char* const parts[] = {"freehold: no heap profile: cannot write FREEHOLD_PROFILE_FILE ", g_options.profile_file,
                               ": ", reason_of(errno), "\n"};
  iovec line[std::size(parts)];
  for (std::size_t i = 0; i < std::size(parts); ++i) line[i] = {const_cast<char*>(parts[i]), std::strlen(parts[i])};
  const os::Undisturbed undisturbed;
  [[maybe_unused]] const auto written = os::system_call(SYS_writev, STDERR_FILENO, &line[0], std::size(parts));
}

// A name that grows at its end. What finds no room is left out, and makes it too long.
class Path {
 public:
  void add(const char* text, std::size_t bytes) noexcept {
    is_too_long_ = is_too_long_ || length_ + bytes >= sizeof text_;
    if (is_too_long_) return;
    std::memcpy(text_ + length_, text, bytes);
    text_[length_ += bytes] = '\0';
  }
  void add(unsigned number) noexcept {
    char digits[20];
    std::size_t at = sizeof digits;
    do digits[--at] = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
    add(digits + at, sizeof digits - at);
  }
  // "%p" becomes the process's number.
  void add_pattern(const char* pattern) noexcept {
    for (; *pattern != '\0'; ++pattern) {
      if (pattern[0] != '%' || pattern[1] != 'p') {
        add(pattern, 1);
        continue;
      }
      ++pattern;
      add(static_cast<unsigned>(os::kernel::getpid()));
    }
  }
  [[nodiscard]] bool is_too_long() const noexcept { return is_too_long_; }
  [[nodiscard]] const char* text() const noexcept { return text_; }

 private:
  char text_[kMostPathBytes + 64] = {};
  std::size_t length_ = 0;
  bool is_too_long_ = false;
};

// A file of this process alone: one that is there is another's, or was left by a process that died during it.
[[nodiscard]] int create_unfinished(const char* path) noexcept {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  if (const int fd = os::kernel::open(path, kFlags, 0600); fd >= 0 || errno != EEXIST) return fd;
  if (os::kernel::unlink(path) == 0) return os::kernel::open(path, kFlags, 0600);
  errno = EEXIST;
  return -1;
}

// Writes to something that is no file: a device, a pipe with a reader.
[[nodiscard]] int open_other(const char* path) noexcept {
  const int fd = os::kernel::open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);  // it would wait for a reader
  if (fd >= 0) (void)os::kernel::fcntl(fd, F_SETFL, 0);
  return fd;
}

}  // namespace

// ---- what is asked from outside -----------------------------------------------------------------------------------------

constinit profile::ProfileRequest engine::g_profile_request;
constinit std::atomic<bool> engine::g_loads_unwinder{false};

namespace {
using profile::ProfileAnswer;
using profile::ProfileCommand;

void begin_sampling(std::uint64_t mean) noexcept {
  choose_slow_calls();  // before there is a sampled block, which another thread may free
  profile::start(mean);
}

// Withdraws the command, unless another one has taken its place.
void answer(ProfileCommand command, ProfileAnswer answer) noexcept {
  g_profile_request.answer.store(answer, std::memory_order_relaxed);
  g_profile_request.command.compare_exchange_strong(command, ProfileCommand::kNone, std::memory_order_release,
                                                    std::memory_order_relaxed);
}

// kNone: the purger begins it.
[[nodiscard]] ProfileAnswer have_purger_begin() noexcept {
  if (g_options.background_thread == BackgroundThread::kOff) return ProfileAnswer::kNoThreads;
  if (os::is_confined()) return ProfileAnswer::kConfined;
  const MakesOtherCalls calls;
  if (os::is_confined()) return ProfileAnswer::kConfined;
  if (!g_purger.exists()) return start_purger() ? ProfileAnswer::kNone : ProfileAnswer::kNoThread;
  g_purger.hurry();
  return ProfileAnswer::kNone;
}

}  // namespace

bool engine::answer_profile_request() noexcept {
  if (!loads_no_unwinder()) return false;  // also when it has answered: the purger ends once it is out of the loader
  const ProfileCommand command = g_profile_request.command.load(std::memory_order_acquire);
  if (command == ProfileCommand::kNone) {
    if (g_purger.exists() && t_cache != &g_modes.late) end_purger_if_alone();  // it was there for a request; we are not it
    return true;
  }
  if (shares_memory_with_parent()) return false;
  ProfileAnswer result = ProfileAnswer::kDone;
  if (command == ProfileCommand::kStop)
    profile::stop();
  else if (profile::was_started())
    begin_sampling(g_profile_request.distance.load(std::memory_order_relaxed));
  else
    result = have_purger_begin();
  if (result == ProfileAnswer::kNone) return false;
  answer(command, result);
  return true;
}

void engine::begin_requested_profile() noexcept {
  const MakesOtherCalls calls;
  const profile::OwnMemory own_memory;
  ProfileAnswer result = ProfileAnswer::kConfined;
  if (!os::is_confined())
    result = start_profile(g_profile_request.distance.load(std::memory_order_relaxed)) ? ProfileAnswer::kDone
                                                                                       : ProfileAnswer::kNoMemory;
  answer(ProfileCommand::kStart, result);
}

// ---- profile.hpp --------------------------------------------------------------------------------------------------------

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
  if (!profile::prepare(g_pages, os::kMostFrames)) {
    errno = ENOMEM;
    return false;
  }
  begin_sampling(mean == 0 ? profile::kDefaultMean : mean);
  return true;
}

void stop_profile() noexcept { profile::stop(); }

bool write_profile(const char* pattern) noexcept {
  Path path, unfinished;
  path.add_pattern(pattern);
  // A link that another user has laid is not followed. A file gets its name when it is whole: the former file stays till
  // then.
  struct stat former;
  const bool is_file = os::kernel::stat(path.text(), &former, AT_SYMLINK_NOFOLLOW) != 0 || S_ISREG(former.st_mode);
  unfinished.add_pattern(pattern);
  if (is_file) {
    unfinished.add(".", 1);
    unfinished.add(static_cast<unsigned>(os::thread_id()));
    unfinished.add("~", 1);
  }
  if (unfinished.is_too_long()) {
    errno = ENAMETOOLONG;
    return false;
  }
  const os::Undisturbed undisturbed;
  const Reading reading;
  const int fd = is_file ? create_unfinished(unfinished.text()) : open_other(unfinished.text());
  if (fd < 0) return false;
  bool ok = profile::write(g_pages, fd);
  if (ok && is_file) ok = os::kernel::rename(unfinished.text(), path.text()) == 0;
  const int error = errno;
  os::kernel::close(fd);
  if (!ok && is_file) os::kernel::unlink(unfinished.text());
  errno = error;
  return ok;
}

void engine::finish_start_of_profile() noexcept {
  if (g_options.profile != 0 && !is_checked()) std::atexit(write_profile_at_exit);
}

}  // namespace freehold::alloc
