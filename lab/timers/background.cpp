// SPDX-License-Identifier: MIT
#include "lab/timers/background.hpp"

#include <sched.h>

#include <array>
#include <cstdlib>

#include "lab/timers/structure.hpp"

namespace freehold::lab::timers {
namespace {

constexpr std::size_t kBlocks = 1024;  // that a thread holds
constexpr std::size_t kHanded = 64;    // on their way from one thread to another
constexpr std::uint64_t kHandedOneIn = 8;
constexpr std::uint64_t kAtOnce = 256;  // operations between two looks at the stop flag

// 16 to 1039 bytes; a half has at most 143: most blocks of programs are small.
std::size_t size_of(std::uint64_t random) { return 16 + (random & (random % 2 == 0 ? 127 : 1023)); }

void touch(void* block) { *static_cast<volatile std::uint64_t*>(block) = 1; }

void* new_block(std::uint64_t random) {
  void* const block = std::malloc(size_of(random));
  if (block != nullptr) touch(block);
  return block;
}

}  // namespace

Background::Background(Load load, std::uint32_t threads)
    : lines_(load == Load::kAlone ? 0 : threads), handed_(std::make_unique<std::atomic<void*>[]>(kHanded)) {
  threads_.reserve(lines_.size());
  for (std::uint32_t i = 0; i < lines_.size(); ++i) threads_.emplace_back([this, load, i] { work(load, i); });
  wait_for_each();
}

Background::~Background() {
  stop_.store(true, std::memory_order_relaxed);
  threads_.clear();
  for (std::size_t i = 0; i < kHanded; ++i) std::free(handed_[i].load(std::memory_order_relaxed));
}

std::uint64_t Background::operations() const noexcept {
  std::uint64_t sum = 0;
  for (const Line& line : lines_) sum += line.operations.load(std::memory_order_relaxed);
  return sum;
}

void Background::wait_for_each() const {
  for (const Line& line : lines_) {
    const std::uint64_t before = line.operations.load(std::memory_order_relaxed);
    while (line.operations.load(std::memory_order_relaxed) == before) ::sched_yield();
  }
}

void Background::work(Load load, std::uint32_t index) {
  Random random(index + 1);
  std::array<void*, kBlocks> blocks;
  for (void*& block : blocks) block = new_block(random.next());
  while (!stop_.load(std::memory_order_relaxed)) {
    for (std::uint64_t i = 0; i < kAtOnce; ++i) {
      const std::uint64_t number = random.next();
      void*& block = blocks[(number >> 16) % kBlocks];
      if (load == Load::kBusy) {
        if (block != nullptr) touch(block);
        continue;
      }
      // acq_rel: pairs with itself; the thread that takes a block may write to it and free it.
      if ((number >> 40) % kHandedOneIn == 0)
        block = handed_[(number >> 48) % kHanded].exchange(block, std::memory_order_acq_rel);
      std::free(block);
      block = new_block(number);
    }
    lines_[index].operations.fetch_add(kAtOnce, std::memory_order_relaxed);
  }
  for (void* const block : blocks) std::free(block);
}

}  // namespace freehold::lab::timers
