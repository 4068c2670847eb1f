// SPDX-License-Identifier: MIT
// Under valgrind: for both kinds of heap, uses of blocks that memcheck must not mind, and uses after their end and beyond it
// that it must. Says which it misjudged; code 0: none. 77: not under valgrind.
#include <cstdio>

#include "freehold/heap/owner_locked_heap.hpp"
#include "freehold/heap/private_heap.hpp"
#include "tests/misuse/memcheck.hpp"
#include "tests/support/inside.hpp"

namespace freehold::test {
namespace {

class Judge {
 public:
  Judge(const char* heap, unsigned long bytes) : heap_(heap), bytes_(bytes) {}
  void expect(bool verdict, bool right, const char* use) {
    if (verdict == right) return;
    std::printf("%s, %lu bytes: %s is %sreported\n", heap_, bytes_, use, verdict ? "" : "not ");
    ++wrong_;
  }
  [[nodiscard]] int wrong() const { return wrong_; }

 private:
  const char* heap_;
  unsigned long bytes_;
  int wrong_ = 0;
};

template <class Heap>
int misjudged(const char* name, unsigned long bytes) {
  Judge judge(name, bytes);
  Heap heap;
  const bool is_small = bytes <= 16'384;  // the memory of a large block goes back to the engine, and is anybody's
  char* const kept = another(heap.allocate(bytes));
  char* const block = another(heap.allocate(bytes));
  kept[0] = kept[bytes - 1] = block[0] = block[bytes - 1] = 1;
  judge.expect(is_reported(block) || is_reported(block + bytes - 1), false, "a use of a block");
  char* const freed = another(heap.allocate(bytes));
  heap.deallocate(freed);
  judge.expect(is_reported(another(freed)) && is_reported(another(freed) + bytes - 1), is_small, "a use after free");
  heap.deallocate(block, bytes);
  judge.expect(is_reported(another(block)) && is_reported(another(block) + bytes - 1), is_small, "a use after a sized free");
  if (is_small) judge.expect(is_reported(another(kept) + heap.usable_size(kept)), true, "an overrun");
  judge.expect(is_reported(kept), false, "a use of another block");
  char* const again = another(heap.allocate(bytes));
  again[0] = 1;
  judge.expect(is_reported(again), false, "a use of a block that comes again");
  heap.release_all();
  judge.expect(is_reported(another(again)) && is_reported(another(kept)), is_small, "a use after release_all");
  char* const fresh = another(heap.allocate(bytes));
  fresh[0] = fresh[bytes - 1] = 1;
  judge.expect(is_reported(fresh), false, "a use after release_all and a new allocation");
  heap.trim();
  judge.expect(is_reported(fresh), false, "a use after trim");
  return judge.wrong();
}

// Many blocks through all that moves them: nothing of the heap itself may be reported.
template <class Heap>
int is_noisy(const char* name) {
  const unsigned before = VALGRIND_COUNT_ERRORS;
  {
    Heap heap;
    void* blocks[500] = {};
    for (unsigned i = 0; i < 20'000; ++i) {
      void*& block = blocks[i * 7919 % 500];
      heap.deallocate(block);
      block = heap.allocate(i * 31 % 700);
      if (i % 5000 == 0) heap.trim();
    }
    heap::Inside::check_invariants(heap);
    for (void*& block : blocks) block = heap.reallocate(block, 100);
  }
  const unsigned errors = VALGRIND_COUNT_ERRORS - before;
  if (errors != 0) std::printf("%s: %u errors of the heap's own\n", name, errors);
  return errors != 0;
}

template <class Heap>
int misjudged(const char* name) {
  int wrong = is_noisy<Heap>(name);
  for (const unsigned long bytes : {16UL, 48UL, 1024UL, 60'000UL}) wrong += misjudged<Heap>(name, bytes);
  return wrong;
}

}  // namespace
}  // namespace freehold::test

int main() {
  if (RUNNING_ON_VALGRIND == 0) return 77;
  using namespace freehold;
  return test::misjudged<heap::OwnerLockedHeap>("OwnerLockedHeap") + test::misjudged<heap::PrivateHeap>("PrivateHeap") == 0
             ? 0
             : 1;
}
