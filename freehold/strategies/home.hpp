// SPDX-License-Identifier: MIT
// The shared object (program or library) that made a pool. Templates are compiled into each shared object that uses them,
// and unless the dynamic linker happens to merge them, each has its own thread-local tables. A pool lives in the tables
// of its home, the shared object that constructed it; a call from another one is passed on to the home's code.
//
//   Invariant: a thread's table has entries of pools of the table's own shared object only.
//
// For this to hold, code that reaches a table and code that asks is_here() must belong to one shared object. So each
// function that does either, and each between it and the fast path, is of hidden visibility or always inlined: the linker
// cannot replace it by that of another shared object. Any thread; written by the constructor only. Cost: is_here() a load
// and a compare, in slow paths only; a call from another shared object an indirect call.
#pragma once
#include "freehold/sync/atomics.hpp"

namespace freehold::pool {

// P has acquire() and release(slot).
template <sync::Atomics A, class P>
class Home {
 public:
  [[gnu::visibility("hidden")]] Home() noexcept : mark_(mark()), acquire_(&acquire_here), release_(&release_here) {}

  // True if the code that asks belongs to the shared object that made the pool.
  [[nodiscard, gnu::always_inline]] bool is_here() const noexcept { return mark_ == mark(); }

  // The pool's functions, as its home has compiled them.
  [[nodiscard]] void* acquire(P& pool) const noexcept { return acquire_(pool); }
  void release(P& pool, void* slot) const noexcept { release_(pool, slot); }

 private:
  struct Mark {
    char only_its_address_matters;
  };
  [[nodiscard, gnu::always_inline]] static const Mark* mark() noexcept { return &A::template per_process<Mark>(); }

  [[gnu::visibility("hidden")]] static void* acquire_here(P& pool) noexcept { return pool.acquire(); }
  [[gnu::visibility("hidden")]] static void release_here(P& pool, void* slot) noexcept { pool.release(slot); }

  const Mark* mark_;
  void* (*acquire_)(P&) noexcept;
  void (*release_)(P&, void*) noexcept;
};

}  // namespace freehold::pool
