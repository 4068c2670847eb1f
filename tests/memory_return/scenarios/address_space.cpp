// SPDX-License-Identifier: MIT
// How much of a limited address space malloc can use.
#include <pthread.h>
#include <sys/resource.h>

#include "tests/memory_return/scenarios/probe.hpp"

namespace freehold::test {
namespace {

constexpr double kMostResidentMib = 1024;
constexpr std::size_t kMostBlocks = 8 * 1024;

rlimit current_limit() {
  rlimit limit{};
  require(::getrlimit(RLIMIT_AS, &limit) == 0, "getrlimit");
  return limit;
}
void set_limit(rlim_t bytes) {
  rlimit limit = current_limit();
  limit.rlim_cur = bytes;
  require(::setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
}

// Blocks of one size until none comes; untouched, so that they cost address space alone, unless the malloc writes into them.
// Returns how many bytes came.
double allocate_all(Table<void*>& blocks, std::size_t bytes) {
  std::size_t n = 0;
  for (; n < blocks.size() && (n % 4096 != 0 || private_mib() < kMostResidentMib); ++n) {
    errno = 0;
    blocks[n] = CApi::allocate(bytes);
    if (blocks[n] != nullptr) continue;
    require(errno == ENOMEM, "refused with another errno than ENOMEM");
    break;
  }
  return static_cast<double>(n) * static_cast<double>(bytes);
}
void release_all(Table<void*>& blocks, std::size_t from = 0) {
  for (std::size_t i = from; i < blocks.size(); ++i) {
    CApi::deallocate(blocks[i]);
    blocks[i] = nullptr;
  }
}

// KIB: the size of a block; GIB: where to stop. Started under the limit.
SCENARIO(address_space_used) {
  const std::size_t bytes = number(arguments, 0) * kKiB;
  const std::size_t limit = std::min<std::size_t>(current_limit().rlim_cur, number(arguments, 1) << 30);
  Table<void*> blocks(limit / bytes);
  const double first = allocate_all(blocks, bytes);
  release_all(blocks);
  CApi::trim();
  const double second = allocate_all(blocks, bytes);
  release_all(blocks);
  figure("share_of_limit", first / static_cast<double>(limit));
  figure("share_of_limit_again", second / static_cast<double>(limit));
}

// MIB: how much is to come in blocks of 1 KiB, written.
SCENARIO(address_space_small_blocks) {
  const std::size_t wanted = number(arguments, 0) * 1024;
  Table<void*> blocks(wanted);
  std::size_t n = 0;
  for (; n < wanted; ++n) {
    blocks[n] = CApi::allocate(kKiB);
    if (blocks[n] == nullptr) break;
    fill(blocks[n], kKiB, n);
  }
  for (std::size_t i = 0; i < n; ++i) {
    require(intact(blocks[i], kKiB, i), "contents lost");
    CApi::deallocate(blocks[i]);
  }
  figure("mib", static_cast<double>(n) / 1024);
}

void* use_malloc(void*) {
  for (std::size_t bytes = 16; bytes <= 4 * kKiB; bytes *= 2) CApi::deallocate(allocate_written(bytes));
  return nullptr;
}
bool can_start_a_thread() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * kKiB);
  pthread_t thread;
  const bool started = pthread_create(&thread, &attributes, use_malloc, nullptr) == 0;
  if (started) pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return started;
}

// Blocks of all sizes up to the largest, as a program that works.
void use_some(std::size_t largest) {
  Random random(3);
  std::array<void*, 64> blocks{};
  for (std::size_t i = 0; i < 2000; ++i) {
    void*& block = blocks[random.below(blocks.size())];
    CApi::deallocate(block);
    block = allocate_written(1 + random.below(largest) / (1 + random.below(100)));
  }
  for (void* block : blocks) CApi::deallocate(block);
}

// The limit comes when the program has long been running; it goes again.
SCENARIO(address_space_limited_later) {
  constexpr rlim_t kLimit = rlim_t{2} << 30;
  constexpr std::size_t kBytes = 32 * kMiB;
  Table<void*> blocks(kMostBlocks);
  use_some(2 * kMiB);
  const rlim_t before = current_limit().rlim_cur;
  set_limit(kLimit);
  const bool thread_at_first = can_start_a_thread();
  errno = 0;
  void* const more = CApi::allocate(3 * kLimit / 2);
  const bool refused = more == nullptr && errno == ENOMEM;
  CApi::deallocate(more);
  blocks[kMostBlocks - 1] = nullptr;
  const double came = allocate_all(blocks, kBytes);
  const bool thread_when_full = can_start_a_thread();
  const auto n = static_cast<std::size_t>(came / kBytes);
  release_all(blocks, n < 2 ? 0 : n - 2);
  CApi::trim();
  const bool thread_after_two_went = can_start_a_thread();
  use_some(256 * kKiB);
  set_limit(before);
  void* const after = CApi::allocate(2 * kLimit);
  CApi::deallocate(after);
  release_all(blocks);
  figure("share_of_limit", came / static_cast<double>(kLimit));
  figure("refused", refused);
  figure("thread_at_first", thread_at_first);
  figure("thread_when_full", thread_when_full);
  figure("thread_after_two_went", thread_after_two_went);
  figure("granted_when_lifted", after != nullptr);
}

}  // namespace
}  // namespace freehold::test
