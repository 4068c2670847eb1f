// SPDX-License-Identifier: MIT
// Legal calls of one thread, at random, with every answer checked: alignment, the shadow map, contents of new blocks, zeroes
// of calloc, malloc_usable_size, and what the thread has written before. Any error ends the process with a line.
#pragma once
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/fuzz/checked/block.hpp"
#include "tests/fuzz/checked/settings.hpp"
#include "tests/fuzz/checked/shadow.hpp"

namespace freehold::fuzz {

[[noreturn]] inline void fail(const char* what, const Block& block) {
  std::printf("%s: %zu bytes at %p, alignment %zu, family %d, usable %zu\n", what, block.bytes,
              static_cast<void*>(block.address), block.alignment, static_cast<int>(block.family),
              CApi::usable_size(block.address));
  std::fflush(stdout);
  ::_exit(1);
}

// Blocks that one thread leaves for another one to free.
class Mailbox {
 public:
  // Swaps the block at a place for another, either of which may be none.
  Block swap(std::size_t place, const Block& block) {
    const std::lock_guard lock(mutex_);
    return std::exchange(blocks_[place % kBlocks], block);
  }
  static constexpr std::size_t kBlocks = 64;

 private:
  std::mutex mutex_;
  std::array<Block, kBlocks> blocks_{};
};

class Worker {
 public:
  static constexpr std::size_t kBlocks = 200;

  Worker(std::uint64_t seed, const Settings& settings, Shadow& shadow, Mailbox& mailbox)
      : random_(seed), settings_(settings), shadow_(shadow), mailbox_(mailbox) {}

  void step() {
    ++calls_;
    Block& block = blocks_[random_.below(kBlocks)];
    switch (random_.below(8)) {
      case 0: return pass_on(block);
      case 1:
      case 2: return resize(block);
      default: drop(block), take(block);
    }
  }
  void drop_all() {
    for (Block& block : blocks_) drop(block);
  }
  void drop(Block& block) {
    if (block.address == nullptr) return;
    if (!test::intact(block.address, block.bytes, block.stamp)) fail("contents have changed", block);
    if (!shadow_.leave(block.address, block.bytes, true)) fail("the shadow map does not know a block", block);
    free_rightly(block, random_.below(2) == 0);
    block = Block{};
  }

  // A live block of this thread of at least `least` bytes and at most `most`; it allocates one if it has none.
  Block& some(std::size_t least, std::size_t most) {
    const std::size_t begin = random_.below(kBlocks);
    for (std::size_t i = 0; i < kBlocks; ++i) {
      Block& block = blocks_[(begin + i) % kBlocks];
      if (block.address != nullptr && block.bytes >= least && block.bytes <= most) return block;
    }
    drop(blocks_[begin]);
    take_as(blocks_[begin], Family::kMalloc, least + random_.below(most - least + 1), 0);
    return blocks_[begin];
  }
  Random& random() { return random_; }
  [[nodiscard]] std::uint64_t calls() const { return calls_; }

 private:
  std::size_t random_bytes() {
    const std::size_t dice = random_.below(100);
    if (dice < 60) return random_.below(300);
    if (dice < 90) return random_.below(5000);
    if (dice < 98) return random_.below(70'000);
    return random_.below(600'000);
  }

  void take(Block& block) {
    const auto family = static_cast<Family>(random_.below(5));
    const bool is_aligned = family == Family::kAlignedNew || family == Family::kAlignedNewArray;
    const std::size_t alignment = std::size_t{16} << random_.below(random_.below(8) == 0 ? 12 : 5);
    if (family == Family::kMalloc && random_.below(4) == 0) return take_zeroed(block);
    const bool is_memalign = family == Family::kMalloc && random_.below(4) == 0;
    take_as(block, family, random_bytes(), is_aligned || is_memalign ? alignment : 0);
  }

  void take_as(Block& block, Family family, std::size_t bytes, std::size_t alignment) {
    adopt(block, allocate(family, bytes, alignment), bytes, alignment, family);
    check_new_contents(block);
    test::fill(block.address, block.bytes, block.stamp);
  }

  void take_zeroed(Block& block) {
    const std::size_t bytes = random_bytes();
    adopt(block, CApi::allocate_zeroed(bytes), bytes, 0, Family::kMalloc);
    if (!test::all_zero(block.address, bytes)) fail("calloc's memory is not zero", block);
    test::fill(block.address, block.bytes, block.stamp);
  }

  void adopt(Block& block, void* p, std::size_t bytes, std::size_t alignment, Family family) {
    block = Block{static_cast<char*>(p), bytes, alignment, random_.next(), family};
    if (p == nullptr) fail("no memory", block);
    const std::size_t least = alignment < 16 ? 16 : alignment;
    if (reinterpret_cast<std::uintptr_t>(p) % least != 0) fail("not aligned", block);
    check_usable_size(block);
    if (const char* wrong = shadow_.enter(p, bytes); wrong != nullptr) fail(wrong, block);
  }

  void check_usable_size(const Block& block) {
    const std::size_t usable = CApi::usable_size(block.address);
    // A sampled block of no bytes has one: it must not be the address of the next page.
    const bool is_exact = usable == block.bytes || (settings_.guard_rate != 0 && block.bytes == 0 && usable == 1);
    if (settings_.check ? !is_exact : usable < block.bytes) fail("malloc_usable_size", block);
  }

  // The whole of small blocks, the ends of others. Sampled blocks are as the system gives them.
  void check_new_contents(const Block& block) {
    if (!settings_.check || settings_.guard_rate != 0 || settings_.contents < 0) return;
    const std::size_t edge = block.bytes < 4096 ? block.bytes : 512;
    for (std::size_t i = 0; i < edge; ++i) {
      const auto want = static_cast<char>(settings_.contents);
      if (block.address[i] != want || block.address[block.bytes - 1 - i] != want) fail("a new block's contents", block);
    }
  }

  void resize(Block& block) {
    if (block.address == nullptr || block.family != Family::kMalloc) return;
    const Block old = block;
    const std::size_t bytes = random_.below(3) == 0 ? old.bytes + random_.below(40) : random_bytes();
    if (bytes == 0) return;
    if (!shadow_.leave(old.address, old.bytes, false)) fail("the shadow map does not know a block", old);
    void* const p = CApi::reallocate(old.address, bytes);
    block = Block{static_cast<char*>(p), bytes, 0, old.stamp, Family::kMalloc};
    if (p == nullptr) fail("realloc: no memory", old);
    if (reinterpret_cast<std::uintptr_t>(p) % 16 != 0) fail("realloc: not aligned", block);
    if (!test::intact(p, bytes < old.bytes ? bytes : old.bytes, old.bytes, old.stamp)) fail("realloc: contents", block);
    check_usable_size(block);
    if (p != old.address) shadow_.on_moved(old.address, old.bytes);
    if (const char* wrong = shadow_.enter(p, bytes); wrong != nullptr) fail(wrong, block);
    block.stamp = random_.next();
    test::fill(block.address, block.bytes, block.stamp);
  }

  void pass_on(Block& block) { block = mailbox_.swap(random_.below(Mailbox::kBlocks), block); }

  Random random_;
  const Settings& settings_;
  Shadow& shadow_;
  Mailbox& mailbox_;
  std::array<Block, kBlocks> blocks_{};
  std::uint64_t calls_ = 0;
};

}  // namespace freehold::fuzz
