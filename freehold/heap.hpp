// SPDX-License-Identifier: MIT
// Private heaps: memory of a subsystem's or an object's own. Only its users contend for it, it can have a limit, and all of
// it can be freed at once.
//
//   #include <freehold/heap.hpp>
//
//   freehold::PrivateHeap heap({.name = "orders", .limit_bytes = 64 << 20});
//   void* block = heap.allocate(100);
//   freehold::HeapResource resource(heap);
//   std::pmr::vector<std::pmr::string> words(&resource);
//
//   PrivateHeap       for any thread
//   OwnerLockedHeap   for one thread at a time: the caller's lock guards it
//   HeapAllocator     an STL allocator on a heap
//   HeapResource      a std::pmr::memory_resource on a heap
//   InHeap            operator new and delete of a class
//   heap::make_unique single objects and arrays, by heap::UniquePtr and heap::HeapPtr
//   FallbackHeap      two heaps as one: what does not fit into the first goes to the second
//   CountingResource  any memory_resource, counted and limited
//   for_each_heap     statistics of every PrivateHeap
//
// freehold/heap_scope.hpp: plain malloc and new of a thread from a PrivateHeap, for a time.
// C has the same in freehold/heap.h. Guide: docs/heaps.md.
#pragma once
#include "freehold/base/cxx20.hpp"
#include "freehold/heap/adapters.hpp"
#include "freehold/heap/heap_allocator.hpp"
#include "freehold/heap/heap_options.hpp"
#include "freehold/heap/heap_resource.hpp"
#include "freehold/heap/in_heap.hpp"
#include "freehold/heap/owner_locked_heap.hpp"
#include "freehold/heap/private_heap.hpp"
#include "freehold/heap/registry.hpp"
