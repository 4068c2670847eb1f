// SPDX-License-Identifier: MIT
// A user's program under AddressSanitizer, with a library that was built without: misuse of private heaps is reported,
// and nothing else is.
//
//   heap release_twice|release_twice_with_size|use_after_release|release_interior  shared|locked  BYTES
//   heap innocent SEED     every adapter of both heaps at random, from several threads, and the C interface beside them
#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <memory_resource>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "freehold/heap.h"
#include "freehold/heap.hpp"

namespace {
using namespace freehold;
using Random = std::mt19937;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "heap: %s\n", what);
  std::exit(3);
}

// ---- misuse ----

template <class Heap>
[[gnu::noinline]] void misuse(std::string_view kind, std::size_t bytes) {
  Heap heap;
  void* const kept = heap.allocate(bytes);
  auto* const block = static_cast<char*>(heap.allocate(bytes));
  if (kind == "release_interior") return heap.deallocate(block + 8, bytes);
  kind == "release_twice" ? heap.deallocate(block) : heap.deallocate(block, bytes);
  if (kind == "use_after_release") {
    static_cast<volatile char*>(block)[0] = 1;
  } else {
    kind == "release_twice" ? heap.deallocate(block) : heap.deallocate(block, bytes);
  }
  heap.deallocate(kept);
}

// ---- innocence ----

struct Node : heap::InHeap<> {
  explicit Node(Random& random) : payload(random() % 40, 'x') {}
  virtual ~Node() = default;
  std::string payload;
};
struct BigNode : Node {
  using Node::Node;
  char more[3000] = {};
};

// Blocks of all sizes, none and large ones among them, and alignments; some of a block is poisoned by its user when it
// comes back, as a pool within it would.
template <class Heap>
void raw_blocks(Heap& heap, Random& random, unsigned rounds, bool limited = false) {
  struct Block {
    char* at = nullptr;
    std::size_t bytes = 0, alignment = 16;
  };
  std::vector<Block> blocks(200);
  const auto end = [&](Block& block) {
    if (block.at != nullptr && block.bytes >= 8 && random() % 4 == 0) ASAN_POISON_MEMORY_REGION(block.at, 8);
    random() % 2 == 0 ? heap.deallocate(block.at) : heap.deallocate(block.at, block.bytes, block.alignment);
    block = {};
  };
  for (unsigned i = 0; i < rounds; ++i) {
    Block& block = blocks[random() % blocks.size()];
    if (block.at != nullptr && block.alignment == 16 && random() % 8 == 0) {
      const std::size_t bytes = random() % 700;
      void* const moved = heap.reallocate(block.at, bytes);
      require(moved != nullptr || limited, "a block cannot be moved");
      if (moved != nullptr) block = {static_cast<char*>(moved), bytes};
    } else {
      end(block);
      block.bytes = random() % 50 == 0 ? random() % 70'000 : random() % 400 / (1 + random() % 8);
      block.alignment = random() % 4 == 0 ? std::size_t{1} << random() % 13 : 16;
      block.at = static_cast<char*>(heap.allocate(block.bytes, block.alignment));
    }
    if (block.at == nullptr) {
      require(limited, "no block");
      continue;
    }
    require(heap.usable_size(block.at) >= block.bytes, "too small a block");
    std::memset(block.at, 1, block.bytes);
    if (i % 5000 == 0) (void)heap.trim();
  }
  for (Block& block : blocks) end(block);
}

template <class Heap>
void containers(Heap& heap, Random& random, unsigned rounds) {
  using Pair = std::pair<const unsigned, std::unique_ptr<int>>;
  std::map<unsigned, std::unique_ptr<int>, std::less<>, heap::HeapAllocator<Pair, Heap>> map{
      heap::HeapAllocator<Pair, Heap>(heap)};
  std::deque<int, heap::HeapAllocator<int, Heap>> deque{heap::HeapAllocator<int, Heap>(heap)};
  for (unsigned i = 0; i < rounds; ++i) {
    const unsigned key = random() % 500;
    random() % 2 == 0 ? void(map.insert_or_assign(key, std::make_unique<int>(1))) : void(map.erase(key));
    deque.push_back(1);
    if (random() % 3 == 0) deque.pop_front();
    auto array = heap::make_unique<std::string[]>(heap, random() % 20);
    auto single = heap::make_unique<std::string>(heap, 30, 'y');
    if (i % 3 == 0) array.reset();
  }
}

template <class Heap>
void resource(Heap& heap, Random& random, unsigned rounds) {
  heap::HeapResource behind(heap);
  heap::CountingResource counted(behind);
  {
    std::pmr::map<int, std::pmr::string> words(&counted);
    for (unsigned i = 0; i < rounds; ++i) {
      words[static_cast<int>(random() % 300)] = std::pmr::string(random() % 100, 'z', &counted);
      words.erase(static_cast<int>(random() % 300));
    }
  }
  require(counted.stats().live_objects == 0, "the counting resource kept something");
}

void nodes(PrivateHeap& heap, Random& random, unsigned rounds) {
  std::vector<std::unique_ptr<Node>> kept(50);
  for (unsigned i = 0; i < rounds; ++i)
    kept[random() % kept.size()].reset(random() % 2 == 0 ? new (heap) Node(random) : new (heap) BigNode(random));
}

void through_c(Random& random, freehold_heap_kind kind, unsigned rounds) {
  freehold_heap_options_t options{};
  options.size = sizeof options;
  options.kind = kind;
  freehold_heap_t* const heap = freehold_heap_create(&options);
  std::vector<void*> blocks(100);
  for (unsigned i = 0; i < rounds; ++i) {
    void*& block = blocks[random() % blocks.size()];
    if (random() % 3 == 0) {
      block = freehold_heap_realloc(heap, block, 1 + random() % 900);
    } else {
      freehold_heap_free(heap, block);
      block = freehold_heap_malloc(heap, random() % 600);
    }
    require(block != nullptr, "no block through C");
    if (i % 3000 == 0) freehold_heap_trim(heap);
  }
  freehold_heap_release_all(heap);
  freehold_heap_destroy(heap);
}

// A limit, and a second heap behind it.
template <class Heap>
void limited(Random& random, unsigned rounds) {
  Heap small({.limit_bytes = 256 << 10}), large;
  heap::FallbackHeap<Heap> both(small, large);
  raw_blocks(small, random, 500, true);
  std::vector<void*> blocks;
  while (void* const block = small.allocate(1 + random() % 3000)) blocks.push_back(block);
  for (void* block : blocks) small.deallocate(block);
  blocks.assign(400, nullptr);
  for (unsigned i = 0; i < rounds; ++i) {
    void*& block = blocks[random() % blocks.size()];
    random() % 3 == 0 ? void(block = both.reallocate(block, 1 + random() % 3000))
                      : (both.deallocate(block), void(block = both.allocate(random() % 3000)));
    require(block != nullptr, "no block from either heap");
  }
  both.release_all();
  raw_blocks(small, random, 500, true);
}

template <class Heap>
void alone(Random& random) {
  Heap heap;
  for (int i = 0; i < 3; ++i) {
    raw_blocks(heap, random, 15'000);
    containers(heap, random, 1500);
    resource(heap, random, 1500);
    for (int j = 0; j < 2000; ++j) require(heap.allocate(random() % 200) != nullptr, "no block");
    heap.release_all();
  }
  limited<Heap>(random, 3000);
}

// Blocks that end on other threads than they began on.
void together(unsigned seed) {
  PrivateHeap heap;
  std::vector<std::thread> threads;
  std::vector<std::vector<void*>> handed(4);
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Random random(seed + t);
      raw_blocks(heap, random, 10'000);
      nodes(heap, random, 1000);
      containers(heap, random, 500);
      for (int i = 0; i < 3000; ++i) handed[t].push_back(heap.allocate(random() % 200));
    });
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (void* block : handed[(t + 1) % 4]) heap.deallocate(block);
    });
  for (std::thread& thread : threads) thread.join();
  require(heap.stats().live_objects == 0, "something is left");
}

}  // namespace

int main(int count, char** words) {
  const std::string_view what = count > 1 ? words[1] : "";
  if (what == "innocent" && count == 3) {
    const auto seed = static_cast<unsigned>(std::strtoul(words[2], nullptr, 10));
    Random random(seed);
    alone<PrivateHeap>(random);
    alone<OwnerLockedHeap>(random);
    through_c(random, FREEHOLD_HEAP_SHARED, 10'000);
    through_c(random, FREEHOLD_HEAP_OWNER_LOCKED, 10'000);
    together(seed);
    std::puts("innocent");
    return 0;
  }
  if (count != 4) return 2;
  const std::size_t bytes = std::strtoul(words[3], nullptr, 10);
  std::string_view(words[2]) == "shared" ? misuse<PrivateHeap>(what, bytes) : misuse<OwnerLockedHeap>(what, bytes);
  std::puts("not seen");
  return 0;
}
