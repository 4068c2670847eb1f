// SPDX-License-Identifier: MIT
// More pools of bare slots than pool.hpp has: the designs of two articles about pools, their successors, and common designs
// of other libraries. Use one where docs/choosing.md names it; the default is pool::Best.
//
//   #include <freehold/pool_strategies.hpp>
//
//   freehold::pool::NativePool<freehold::pool::StacksByCpu> slots({.slots = 10'000, .slot_bytes = 48});
//   void* slot = slots.acquire();   // null: all 10,000 are in use
//   slots.release(slot);            // in any thread
//
//   freehold::ObjectPool<Order, freehold::pool::NativePool<freehold::pool::Magazines>> orders(10'000);  // typed objects
//
//   StacksByThread, StacksByHash, StacksByCpu    several lock-free stacks; a slot returns to its own
//   RoamingStacksByThread, RoamingStacksByCpu    the same; a slot stays where it was released
//   LockFreeFlags, LockedFlags                   a flag for each slot, without and with a lock
//   SpinLockedFlags, TicketLockedFlags           the same with other locks
//   LockFreeBits, LockedBits, LockedBits32       a bit for each slot
//   LockFreeBitmapTree, LockedBitmapTree,        a hierarchy of bits
//   LockedBitmapTree32
//   HazardStack                                  one lock-free stack, protected by hazard pointers
//   CpuStacks, ThreadStacks, Magazines           slots in the hands of a CPU, or of a thread
//   Distributed                                  one pool of several of any kind, by a Spread
//   ArrayOfPools                                 pools of ready objects, which threads address by an index
//
// Guide: docs/pools.md.
#pragma once
#include "freehold/base/cxx20.hpp"
#include "freehold/pool.hpp"
#include "freehold/strategies/array_of_pools.hpp"
#include "freehold/strategies/cpu_stacks.hpp"
#include "freehold/strategies/distributed.hpp"
#include "freehold/strategies/hazard_stack.hpp"
#include "freehold/strategies/lock_free_bitmap_tree.hpp"
#include "freehold/strategies/lock_free_bits.hpp"
#include "freehold/strategies/lock_free_flags.hpp"
#include "freehold/strategies/locked_bitmap_tree.hpp"
#include "freehold/strategies/locked_bits.hpp"
#include "freehold/strategies/locked_flags.hpp"
#include "freehold/strategies/magazines.hpp"
#include "freehold/strategies/roaming_stacks.hpp"
#include "freehold/strategies/spread.hpp"
#include "freehold/strategies/thread_stacks.hpp"
