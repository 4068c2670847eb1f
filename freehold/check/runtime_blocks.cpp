// SPDX-License-Identifier: MIT
#include "freehold/check/runtime_blocks.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "freehold/base/bits.hpp"
#include "freehold/check/call_stacks.hpp"

// Variables of the libraries. The linker puts those that a program uses directly into the program itself.
extern "C" {
[[gnu::weak, gnu::visibility("default")]] extern char** environ;
// The C++ runtime's standard streams, as characters: no type of it is needed here.
[[gnu::weak, gnu::visibility("default")]] extern char _ZSt3cin, _ZSt4cout, _ZSt4cerr, _ZSt4clog, _ZSt4wcin, _ZSt5wcout,
    _ZSt5wcerr, _ZSt5wclog;
#if defined(__GLIBC__)
[[gnu::weak, gnu::visibility("default")]] extern FILE* _IO_list_all;
#endif
}

namespace freehold::check {
namespace {

constexpr std::size_t kStreamBytes = 272;  // size of std::ostream

std::uintptr_t number_of(const void* address) noexcept { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

RuntimeBlocks::RuntimeBlocks(os::Pages& pages, std::span<const char* const> libraries) noexcept
    : pages_(pages),
      blocks_(static_cast<Block*>(pages.map(base::align_up(kBytes, os::kLargestPageBytes)))),
      mapping_count_(os::mapped_parts(libraries, mappings_)) {
  if (blocks_ != nullptr) found_ = reinterpret_cast<std::uint32_t*>(blocks_ + kMost);
}

RuntimeBlocks::~RuntimeBlocks() {
  if (blocks_ != nullptr) (void)pages_.unmap(blocks_, base::align_up(kBytes, os::kLargestPageBytes));
}

bool RuntimeBlocks::is_code(const void* address) const noexcept {
  const auto holds = [&](const os::Mapped& m) { return m.start <= number_of(address) && number_of(address) < m.end; };
  return std::any_of(mappings_, mappings_ + mapping_count_, holds);
}

void RuntimeBlocks::add(const Contents& contents, const void* block) noexcept {
  void* caller = nullptr;
  if (blocks_ == nullptr || count_ == kMost || read_call_stack(contents.allocated_at, &caller, 1) == 0) return;
  const std::uintptr_t start = number_of(block);  // which is the block's also if it has no bytes
  if (is_code(caller)) blocks_[count_++] = {start, start + std::max<std::size_t>(contents.bytes, 1), false, false};
}

RuntimeBlocks::Block* RuntimeBlocks::block_at(std::uintptr_t address) const noexcept {
  Block* const behind =
      std::upper_bound(blocks_, blocks_ + count_, address, [](std::uintptr_t at, const Block& b) { return at < b.start; });
  return behind != blocks_ && address < behind[-1].end ? behind - 1 : nullptr;
}

// Other threads may change the words; a pointer that comes or goes now may be missed.
void RuntimeBlocks::look_at(std::uintptr_t start, std::uintptr_t end) noexcept {
  constexpr std::size_t kWord = sizeof(std::uintptr_t);
  for (std::uintptr_t at = base::align_up(start, kWord); at + kWord <= end; at += kWord) {
    const auto word = std::atomic_ref(*reinterpret_cast<std::uintptr_t*>(at)).load(std::memory_order_relaxed);
    Block* const block = block_at(word);
    if (block == nullptr || block->is_held || block->is_open_stream) continue;
    block->is_held = true;
    found_[found_count_++] = static_cast<std::uint32_t>(block - blocks_);
  }
}

void RuntimeBlocks::look_at_copied_variables() noexcept {
  if (&environ != nullptr) look_at(number_of(&environ), number_of(&environ + 1));
  for (const char* stream :
       {&_ZSt3cin, &_ZSt4cout, &_ZSt4cerr, &_ZSt4clog, &_ZSt4wcin, &_ZSt5wcout, &_ZSt5wcerr, &_ZSt5wclog})
    if (stream != nullptr) look_at(number_of(stream), number_of(stream) + kStreamBytes);
}

void RuntimeBlocks::leave_out_open_streams() noexcept {
#if defined(__GLIBC__)
  if (&_IO_list_all == nullptr) return;
  const FILE* stream = _IO_list_all;  // the standard ones, which are no blocks, come last
  for (Block* b = nullptr; (b = block_at(number_of(stream))) != nullptr && !b->is_open_stream; stream = stream->_chain)
    b->is_open_stream = true;
#endif
}

void RuntimeBlocks::find() noexcept {
  std::sort(blocks_, blocks_ + count_, [](const Block& a, const Block& b) { return a.start < b.start; });
  leave_out_open_streams();
  for (std::size_t i = 0; i < mapping_count_; ++i)
    if (mappings_[i].is_writable) look_at(mappings_[i].start, mappings_[i].end);
  look_at_copied_variables();
  while (found_count_ > 0) {
    const Block block = blocks_[found_[--found_count_]];
    look_at(block.start, block.end);
  }
}

bool RuntimeBlocks::holds(const void* block) const noexcept {
  const Block* const found = block_at(number_of(block));
  return found != nullptr && found->is_held;
}

}  // namespace freehold::check
