// SPDX-License-Identifier: MIT
// One row of `script/bench heaps`: a std::map is filled with N entries and dropped, on one kind of memory.
//
//   heap_rows ROW MEMORY N [LIBRARY]
//
//   ROW      map-ordered   keys ascending, each put behind the last
//            map-random    keys at random
//   MEMORY   owner-locked, private: Freehold's heaps, released at once      nodes: OwnerLockedHeap, destroyed node by node
//            monotonic, unsynchronized, synchronized: std::pmr's            malloc: std::allocator
//            mi-heap: a mimalloc heap of LIBRARY, destroyed at once
//
// Prints {"fill_ms": [...], "drop_ms": [...], "peak_kib": N}: a time for each round, the first one in a fresh process.
#include <dlfcn.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory_resource>
#include <optional>
#include <string_view>
#include <vector>

#include "freehold/heap/heap_allocator.hpp"

namespace {
using namespace freehold;
using Clock = std::chrono::steady_clock;
using Entry = std::pair<const std::uint32_t, std::uint32_t>;

constexpr unsigned kRounds = 5;

struct Input {
  std::vector<std::uint32_t> keys;
  bool ordered = false;
};

struct Times {
  std::vector<double> fill_ms, drop_ms;
};

double ms_since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

template <class Map>
void fill(Map& map, const Input& input) {
  if (input.ordered) {
    for (const std::uint32_t key : input.keys) map.emplace_hint(map.end(), key, key);
  } else {
    for (const std::uint32_t key : input.keys) map.emplace(key, key);
  }
}

// A map that is never destroyed: its memory goes at once.
template <class Map>
class Abandoned {
 public:
  template <class Argument>
  explicit Abandoned(Argument&& argument) : map_(::new(room_) Map(std::forward<Argument>(argument))) {}
  [[nodiscard]] Map& map() { return *map_; }

 private:
  alignas(Map) std::byte room_[sizeof(Map)];
  Map* map_;
};

template <class Heap>
void run_heap(const Input& input, Times& times) {
  using Map = std::map<std::uint32_t, std::uint32_t, std::less<>, heap::HeapAllocator<Entry, Heap>>;
  const auto start = Clock::now();
  std::optional<Heap> memory(std::in_place);
  Abandoned<Map> abandoned{heap::HeapAllocator<Entry, Heap>(*memory)};
  fill(abandoned.map(), input);
  times.fill_ms.push_back(ms_since(start));
  const auto drop = Clock::now();
  memory.reset();
  times.drop_ms.push_back(ms_since(drop));
}

void run_nodes(const Input& input, Times& times) {
  using Map = std::map<std::uint32_t, std::uint32_t, std::less<>, heap::HeapAllocator<Entry, heap::OwnerLockedHeap>>;
  heap::OwnerLockedHeap memory;
  const auto start = Clock::now();
  std::optional<Map> map(std::in_place, heap::HeapAllocator<Entry, heap::OwnerLockedHeap>(memory));
  fill(*map, input);
  times.fill_ms.push_back(ms_since(start));
  const auto drop = Clock::now();
  map.reset();
  times.drop_ms.push_back(ms_since(drop));
}

template <class Resource>
void run_resource(const Input& input, Times& times) {
  const auto start = Clock::now();
  std::optional<Resource> memory(std::in_place);
  Abandoned<std::pmr::map<std::uint32_t, std::uint32_t>> abandoned{&*memory};
  fill(abandoned.map(), input);
  times.fill_ms.push_back(ms_since(start));
  const auto drop = Clock::now();
  memory.reset();
  times.drop_ms.push_back(ms_since(drop));
}

void run_malloc(const Input& input, Times& times) {
  const auto start = Clock::now();
  std::optional<std::map<std::uint32_t, std::uint32_t>> map(std::in_place);
  fill(*map, input);
  times.fill_ms.push_back(ms_since(start));
  const auto drop = Clock::now();
  map.reset();
  times.drop_ms.push_back(ms_since(drop));
}

// mimalloc's heaps through their C interface, from whatever build of it is given.
struct Mimalloc {
  void* (*heap_new)() = nullptr;
  void (*heap_destroy)(void*) = nullptr;
  void* (*heap_malloc)(void*, std::size_t) = nullptr;
  void (*free)(void*) = nullptr;

  explicit Mimalloc(const char* library) {
    void* const loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (loaded == nullptr) {
      std::fprintf(stderr, "heap_rows: %s\n", dlerror());
      std::exit(2);
    }
    const auto find = [loaded](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(loaded, name));
      if (function != nullptr) return;
      std::fprintf(stderr, "heap_rows: the library has no %s\n", name);
      std::exit(2);
    };
    find("mi_heap_new", heap_new);
    find("mi_heap_destroy", heap_destroy);
    find("mi_heap_malloc", heap_malloc);
    find("mi_free", free);
  }
};
const Mimalloc* g_mimalloc = nullptr;

template <class T>
struct MimallocAllocator {
  using value_type = T;
  void* heap;

  explicit MimallocAllocator(void* the_heap) : heap(the_heap) {}
  template <class U>
  MimallocAllocator(const MimallocAllocator<U>& other) : heap(other.heap) {}
  T* allocate(std::size_t n) { return static_cast<T*>(g_mimalloc->heap_malloc(heap, n * sizeof(T))); }
  void deallocate(T* block, std::size_t) noexcept { g_mimalloc->free(block); }
  template <class U>
  friend bool operator==(const MimallocAllocator& a, const MimallocAllocator<U>& b) {
    return a.heap == b.heap;
  }
};

void run_mimalloc(const Input& input, Times& times) {
  using Map = std::map<std::uint32_t, std::uint32_t, std::less<>, MimallocAllocator<Entry>>;
  const auto start = Clock::now();
  void* const memory = g_mimalloc->heap_new();
  Abandoned<Map> abandoned{MimallocAllocator<Entry>(memory)};
  fill(abandoned.map(), input);
  times.fill_ms.push_back(ms_since(start));
  const auto drop = Clock::now();
  g_mimalloc->heap_destroy(memory);
  times.drop_ms.push_back(ms_since(drop));
}

using Run = void (*)(const Input&, Times&);
Run find(std::string_view memory) {
  static const std::map<std::string_view, Run> kKinds{
      {"owner-locked", run_heap<heap::OwnerLockedHeap>},
      {"private", run_heap<heap::PrivateHeap>},
      {"nodes", run_nodes},
      {"monotonic", run_resource<std::pmr::monotonic_buffer_resource>},
      {"unsynchronized", run_resource<std::pmr::unsynchronized_pool_resource>},
      {"synchronized", run_resource<std::pmr::synchronized_pool_resource>},
      {"malloc", run_malloc},
      {"mi-heap", run_mimalloc},
  };
  const auto found = kKinds.find(memory);
  return found == kKinds.end() ? nullptr : found->second;
}

Input make_input(std::string_view row, std::size_t entries) {
  Input input{.keys = std::vector<std::uint32_t>(entries), .ordered = row == "map-ordered"};
  std::uint64_t state = 1;
  for (std::uint32_t i = 0; i < entries; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX generator
    input.keys[i] = input.ordered ? i : static_cast<std::uint32_t>(state >> 32);
  }
  return input;
}

void print(const char* name, const std::vector<double>& times) {
  std::printf("\"%s\": [", name);
  for (std::size_t i = 0; i < times.size(); ++i) std::printf("%s%.4f", i == 0 ? "" : ", ", times[i]);
  std::printf("], ");
}

}  // namespace

int main(int count, char** words) {
  const Run run = count >= 4 ? find(words[2]) : nullptr;
  if (run == nullptr || (run == run_mimalloc && count < 5)) {
    std::fprintf(stderr, "usage: heap_rows ROW MEMORY N [LIBRARY]\n");
    return 2;
  }
  std::optional<Mimalloc> mimalloc;
  if (run == run_mimalloc) g_mimalloc = &mimalloc.emplace(words[4]);
  const Input input = make_input(words[1], std::strtoul(words[3], nullptr, 10));
  Times times;
  for (unsigned round = 0; round < kRounds; ++round) run(input, times);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("{");
  print("fill_ms", times.fill_ms);
  print("drop_ms", times.drop_ms);
  std::printf("\"peak_kib\": %ld}\n", usage.ru_maxrss);
}
