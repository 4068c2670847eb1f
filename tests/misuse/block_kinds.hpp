// SPDX-License-Identifier: MIT
// Kinds of misuse that every allocator that is an object can suffer. Other blocks of it stay in use, as in any program.
//
//   Allocator: make(bytes) -> char*, end(pointer); for some kinds end(pointer, bytes), resize(pointer, bytes)
#pragma once
#include "tests/misuse/blocks.hpp"

namespace freehold::test {

inline int g_static[100];

template <class Allocator>
struct BlockKinds {
  template <std::size_t kBytes>
  static void free_twice() {
    Allocator blocks;
    char* const kept = blocks.make(kBytes);
    char* const p = blocks.make(kBytes);
    blocks.end(p);
    blocks.end(p);
    blocks.end(kept);
  }
  static void free_sized_twice() {
    Allocator blocks;
    char* const kept = blocks.make(kSmall);
    char* const p = blocks.make(kSmall);
    blocks.end(p, kSmall);
    blocks.end(p, kSmall);
    blocks.end(kept, kSmall);
  }
  static void free_twice_with_others_between() {
    Allocator blocks;
    std::vector<char*> others(500);
    for (char*& other : others) other = blocks.make(kSmall);
    char* const p = blocks.make(kSmall);
    blocks.end(p);
    for (char* other : others) blocks.end(other);
    blocks.end(p);
  }
  // So many others that a batch of slots goes back.
  static void free_twice_then_others() {
    Allocator blocks;
    char* const p = blocks.make(kSmall);
    blocks.end(p);
    blocks.end(p);
    std::vector<char*> others(Allocator::kMany);
    for (char*& other : others) other = blocks.make(kSmall);
    for (char* other : others) blocks.end(other);
  }
  static void free_twice_by_another_thread() {
    Allocator blocks;
    char* const kept = blocks.make(kSmall);
    char* const p = blocks.make(kSmall);
    blocks.end(p);
    std::thread([&] { blocks.end(p); }).join();
    blocks.end(kept);
  }
  static void realloc_after_free() {
    Allocator blocks;
    char* const kept = blocks.make(kSmall);
    char* const p = blocks.make(kSmall);
    blocks.end(p);
    opaque(blocks.resize(p, kMiddle));
    blocks.end(kept);
  }

  static void free_of(void* foreign) {
    Allocator blocks;
    char* const kept = blocks.make(kSmall);
    blocks.end(foreign);
    blocks.end(kept);
  }
  static void free_of_the_stack() {
    int local[100];
    free_of(&local[0]);
  }
  static void free_of_static_data() { free_of(&g_static[0]); }
  static void free_of_a_block_of_malloc() { free_of(block_of(kSmall)); }
  template <std::size_t kBytes>
  static void free_into_another() {
    Allocator blocks, others;
    char* const kept = others.make(kBytes);
    others.end(blocks.make(kBytes));
    others.end(kept);
  }
  template <std::size_t kBytes, std::size_t kAt>
  static void free_inside() {
    Allocator blocks;
    blocks.end(blocks.make(kBytes) + kAt);
  }
  template <std::size_t kBytes, std::size_t kWrong>
  static void free_with_a_wrong_size() {
    Allocator blocks;
    blocks.end(blocks.make(kBytes), kWrong);
  }

  template <std::size_t kBytes, long kAt, std::size_t kCount>
  static void write_beside() {
    Allocator blocks;
    char* const before = blocks.make(kBytes);
    char* const p = blocks.make(kBytes);
    char* const after = blocks.make(kBytes);
    for (std::size_t i = 0; i < kCount; ++i) write(p + kAt + static_cast<long>(i));
    for (char* const each : {before, p, after}) blocks.end(each);
  }
  template <std::size_t kBytes>
  static void write_after_free() {
    Allocator blocks;
    char* const kept = blocks.make(kBytes);
    char* const p = blocks.make(kBytes);
    blocks.end(p);
    write(p);
    for (int i = 0; i < 1000; ++i) blocks.end(blocks.make(kBytes));
    blocks.end(kept);
  }
  template <std::size_t kBytes>
  static void read_after_free() {
    Allocator blocks;
    char* const kept = blocks.make(kBytes);
    char* const p = blocks.make(kBytes);
    blocks.end(p);
    opaque(read(p));
    blocks.end(kept);
  }
};

}  // namespace freehold::test
