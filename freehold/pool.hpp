// SPDX-License-Identifier: MIT
// Object pools: a bounded number of objects of one type, made and ended from any thread, without a call to malloc.
//
//   #include <freehold/pool.hpp>
//
//   freehold::ObjectPool<Order> orders(10'000);                   // at most ten thousand
//   if (auto order = orders.make(customer, amount)) ...           // null when all are in use; back when `order` ends
//
//   ObjectPool, MovablePool       typed objects behind a handle; PoolPtr is a handle of a base class
//   TrackedPool                   the same with a list of all objects, statistics, and an end of all at once
//   NodePools, PoolAllocator,     nodes of STL and std::pmr containers
//   PoolResource
//   pool::NativePool<pool::Best>  bare slots: acquire() and release()
//   SingleThreadPool              bare slots for one thread at a time
//
// Guide: docs/pools.md.
#pragma once
#include "freehold/base/cxx20.hpp"
#include "freehold/pool/best_pool.hpp"
#include "freehold/pool/concept.hpp"
#include "freehold/pool/node_pools.hpp"
#include "freehold/pool/object_pool.hpp"
#include "freehold/pool/single_thread.hpp"
#include "freehold/pool/tagged_stack.hpp"
#include "freehold/pool/tracked_pool.hpp"
