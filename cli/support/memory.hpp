// Memory that is there before the clock starts, for everybody alike: the kernel's page faults cost as much as a whole pool.
#pragma once
#include <cstddef>

namespace freehold::cli {

// Makes resident what this process has mapped, mappings above `most_bytes` excepted: a pool's memory after construction.
// Nothing of it changes. Pre: one thread.
void make_resident(std::size_t most_bytes);
// For pools that take memory from malloc as they go: the calling thread's heap gets `bytes` that it keeps.
void warm_heap(std::size_t bytes);
// malloc keeps what it has: to be called before warm_heap.
void keep_heap();
// Bytes that the program has from malloc.
[[nodiscard]] std::size_t heap_bytes();

}  // namespace freehold::cli
