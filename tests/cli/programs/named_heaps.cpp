// SPDX-License-Identifier: MIT
// Holds blocks of one call site in private heaps, by scopes, and in none. Says "ready", frees 100 blocks of another one in
// the heap "brief", which has ended, for a first line and says "freed", and ends with its standard input.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "freehold/heap_scope.hpp"

extern "C" __attribute__((noinline)) void* held_site(std::size_t bytes) {
  void* volatile block = std::malloc(bytes);
  return std::memset(block, 1, bytes);
}

namespace {

void hold(freehold::PrivateHeap* heap, std::size_t mebibytes) {
  const freehold::HeapScope scope(heap);
  for (std::size_t i = 0; i < mebibytes << 10; ++i) held_site(1024);
}

}  // namespace

int main() {
  freehold::PrivateHeap orders({.name = "orders"}), odd({.name = "o d\"d\n</script>"}), nameless;
  hold(nullptr, 8);
  hold(&orders, 8);
  hold(&odd, 4);
  hold(&nameless, 4);
  {
    std::string gone = "gone";  // ends with the heap
    freehold::PrivateHeap heap({.name = gone.c_str()});
    hold(&heap, 4);
  }
  for (int i = 0; i < 600; ++i) {  // more than there is room for
    const std::string name = "request " + std::to_string(i);
    freehold::PrivateHeap heap({.name = name.c_str()});
    const freehold::HeapScope scope(heap);
    held_site(8192);
  }
  std::vector<void*> blocks(100);
  {
    freehold::PrivateHeap heap({.name = "brief"});
    const freehold::HeapScope scope(heap);
    for (void*& block : blocks) block = std::malloc(1024);
  }
  std::puts("ready");
  std::fflush(stdout);
  for (char byte; ::read(STDIN_FILENO, &byte, 1) > 0;) {
    for (void* const block : blocks) std::free(block);
    blocks.clear();
    std::puts("freed");
    std::fflush(stdout);
  }
  return 0;
}
