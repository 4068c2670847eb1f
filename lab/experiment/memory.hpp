// SPDX-License-Identifier: MIT
// Makes memory resident before the clock starts, so that no candidate pays for the kernel's page faults, which can cost as
// much as a whole pool.
#pragma once
#include <cstddef>

namespace freehold::lab {

// Makes the process's mappings of at most `most_bytes` resident, for example a pool's memory after construction. Contents
// stay as they are. Pre: one thread.
void make_resident(std::size_t most_bytes);
// For pools that take memory from malloc while they run: gives the calling thread's heap `bytes`, which it keeps.
void warm_heap(std::size_t bytes);
// From now on malloc keeps its memory. Call it before warm_heap.
void keep_heap();
// Bytes that the program has allocated by malloc.
[[nodiscard]] std::size_t heap_bytes();

}  // namespace freehold::lab
