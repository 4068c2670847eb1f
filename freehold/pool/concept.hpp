// SPDX-License-Identifier: MIT
// The interface of every pool of this folder: a number of slots of one size, handed out and taken back, from any thread.
//
//   acquire()      a free slot, aligned as asked, contents unspecified; null when no slot is free (never an exception), or,
//                  unless kFindsLast, when those that are free lie in other threads' caches
//   release(slot)  takes back what acquire() of the same pool gave; any thread may, not only the one that acquired it
//   capacity()     how many slots there can be at most
//   flush()        optional: gives back what the pool keeps for the calling thread, as the end of a thread does
//
// A strategy is a pool template and a struct that describes it, as Best and TaggedStack; lab/strategies/registry.hpp says
// more.
#pragma once
#include <concepts>
#include <cstddef>

#include "freehold/sync/atomics.hpp"
#include "freehold/sync/policies.hpp"

namespace freehold::pool {

/// The options that a pool is made with.
struct PoolShape {
  std::size_t slots = 0;                              ///< capacity; 1 at least
  std::size_t slot_bytes = 0;                         ///< size of a slot, 1 at least, rounded up to the alignment
  std::size_t alignment = alignof(std::max_align_t);  ///< a power of two
  unsigned shards = 0;           ///< parts of a pool that is made of several; 0: one for each usable CPU
  void* memory = nullptr;        ///< where the slots are to lie; null: the pool makes its own
  bool memory_has_room = false;  ///< it is of Slots::bytes_for(): in checked mode there is room for canaries
};

/// A number of slots of one size, handed out by acquire() and taken back by release().
/// @tparam P  the pool
template <class P>
concept SlotPool = std::constructible_from<P, const PoolShape&> && requires(P& pool, const P& seen, void* slot) {
  { pool.acquire() } noexcept -> std::same_as<void*>;
  { pool.release(slot) } noexcept -> std::same_as<void>;
  { seen.capacity() } noexcept -> std::same_as<std::size_t>;
};

template <class T, SlotPool P>
class ObjectPool;

/// The pool of a strategy, as programs use it.
/// @tparam S  the strategy
template <class S>
using NativePool = typename S::template Pool<sync::NativeAtomics>;
/// The same for one thread at a time: no atomic instruction, and locks that cost nothing. (SingleThreadPool is the pool that
/// was made for one thread.)
/// @tparam S  the strategy
template <class S>
using UnlockedPool = typename S::template Pool<sync::UnsharedAtomics>;
/// The same with counts of operations, retries and waits: contention().
/// @tparam S  the strategy
template <class S>
using CountedPool = typename S::template Pool<sync::NativeAtomics, sync::CountContention<sync::NativeAtomics>>;

// A strategy without orders to choose names this as its orders.
struct NoOrders {};

}  // namespace freehold::pool
