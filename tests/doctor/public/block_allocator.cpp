// SPDX-License-Identifier: MIT
// Does: threads create and drop terms of one size, which come from an allocator of the program's own behind one lock.
// Why:  people gave each thread a list of free blocks, so that the lock is taken once in a thousand creations.
//       github.com/mCRL2org/mCRL2/pull/1940, rebuilt from that description alone.
// Case block_allocator: {n} 25000000
//   Truth: own-lock
//   Right: own-lock
#include <mutex>

#include "tests/doctor/public/rebuilt.hpp"

namespace {
struct Term {
  Term* next = nullptr;
  long arguments[4] = {};
};
std::mutex g_mutex;
Term* g_free = nullptr;

Term* create() {
  const std::lock_guard lock(g_mutex);
  if (g_free == nullptr) return new Term;
  Term* const term = g_free;
  g_free = term->next;
  return term;
}
void drop(Term* term) {
  const std::lock_guard lock(g_mutex);
  term->next = g_free;
  g_free = term;
}
}  // namespace

int main(int argc, char** argv) {
  rebuilt::in_threads(argc, argv, [](unsigned me, long terms) {
    Term* held[16] = {};
    for (long i = 0; i < terms; ++i) {
      Term*& term = held[i & 15];
      if (term != nullptr) drop(term);
      term = create();
      term->arguments[0] = i + me;
    }
  });
}
