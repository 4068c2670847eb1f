// SPDX-License-Identifier: MIT
// Sequences of the whole interface of the engine, chosen by a fuzzer, against a shadow of what every block must hold.
// Each step is an operation byte, a slot byte and two bytes of size; blocks keep a pattern of their own that is checked
// before each free or resize, so that overlap, loss and wrong copies end in a trap.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "freehold/alloc/engine.hpp"

namespace {

namespace alloc = freehold::alloc;

constexpr std::size_t kBlocks = 256;
constexpr std::size_t kMarked = 64;  // bytes at either end that carry the pattern

struct Block {
  unsigned char* memory = nullptr;
  std::size_t bytes = 0;
  unsigned char mark = 0;
};

void require(bool condition) {
  if (!condition) __builtin_trap();
}

std::size_t marked(const Block& block) { return block.bytes < kMarked ? block.bytes : kMarked; }

void fill(Block& block, unsigned char mark) {
  block.mark = mark;
  if (block.bytes == 0) return;
  std::memset(block.memory, mark, marked(block));
  std::memset(block.memory + block.bytes - marked(block), mark, marked(block));
}

void check(const Block& block, std::size_t bytes) {
  for (std::size_t i = 0; i < (bytes < marked(block) ? bytes : marked(block)); ++i) require(block.memory[i] == block.mark);
  if (bytes == block.bytes)
    for (std::size_t i = 0; i < marked(block); ++i) require(block.memory[block.bytes - 1 - i] == block.mark);
}

void take(Block& block, void* memory, std::size_t bytes, unsigned char mark) {
  if (memory == nullptr) return;
  require(reinterpret_cast<std::uintptr_t>(memory) % 16 == 0 && alloc::usable_size(memory) >= bytes);
  block.memory = static_cast<unsigned char*>(memory);
  block.bytes = bytes;
  fill(block, mark);
}

void drop(Block& block) {
  if (block.memory == nullptr) return;
  check(block, block.bytes);
  alloc::deallocate(block.memory);
  block = Block{};
}

void step(Block& block, unsigned operation, std::size_t size, unsigned char mark) {
  // Sizes from nothing to 4 MiB, dense where the classes are.
  const std::size_t bytes = (operation & 0x80) != 0 ? size * 64 : size % 2048;
  switch (operation % 6) {
    case 0: drop(block); return take(block, alloc::allocate(bytes), bytes, mark);
    case 1: {
      drop(block);
      auto* memory = static_cast<unsigned char*>(alloc::allocate_zeroed(bytes));
      for (std::size_t i = 0; memory != nullptr && i < bytes; i += i < 4096 ? 1 : 509) require(memory[i] == 0);
      return take(block, memory, bytes, mark);
    }
    case 2: {
      drop(block);
      const std::size_t alignment = std::size_t{1} << (size % 23);
      void* memory = alloc::allocate_aligned(alignment, bytes);
      require(reinterpret_cast<std::uintptr_t>(memory) % alignment == 0);
      return take(block, memory, bytes, mark);
    }
    case 3: {
      if (block.memory != nullptr) check(block, block.bytes);
      void* memory = alloc::reallocate(block.memory, bytes);
      if (memory == nullptr) return;
      const bool kept = block.memory != nullptr;
      block.memory = static_cast<unsigned char*>(memory);
      if (kept) check(block, bytes < block.bytes ? bytes : block.bytes + 1);
      return take(block, memory, bytes, mark);
    }
    case 4: return drop(block);
    default:
      if (size % 64 == 0) (void)alloc::trim();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Block blocks[kBlocks];
  for (; size >= 4; data += 4, size -= 4)
    step(blocks[data[1]], data[0], std::size_t{data[2]} << 8 | data[3], static_cast<unsigned char>(data[1] ^ data[3]));
  for (Block& block : blocks) drop(block);
  return 0;
}
