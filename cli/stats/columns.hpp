// SPDX-License-Identifier: MIT
// One row for each number of a size class, a thread, a private heap and a pool in `freehold stats`: JSON and Prometheus are
// made of them. docs/stats.md lists them, too.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "freehold/live/stats.hpp"

namespace freehold::cli::stats {
using freehold::live::LiveClass;
using freehold::live::LiveHeapFigures;
using freehold::live::LivePoolFigures;
using freehold::live::LiveThread;

template <class T>
struct Column {
  const char* key;     // in JSON; null: not there
  const char* family;  // in Prometheus, without "freehold_" and "_total"; null: not there
  const char* help;    // a sentence for Prometheus
  std::optional<std::uint64_t> (*value)(const T&);
  bool is_counter = false;  // it only grows
};

template <auto kMember, class T>
std::optional<std::uint64_t> get(const T& of) {
  return std::invoke(kMember, of);
}
template <class T>
std::optional<std::uint64_t> one(const T&) {
  return 1;
}

inline constexpr Column<LiveClass> kClassColumns[] = {
    {"slot_bytes", nullptr, nullptr, get<&LiveClass::slot_bytes>},
    {"spans", "class_spans", "Spans of the size class.", get<&LiveClass::spans>},
    {"slots", nullptr, nullptr, get<&LiveClass::slots>},
    {"used_slots", "class_used_slots", "Slots of the size class that are in use.", get<&LiveClass::used_slots>},
    {"cached_slots", "class_cached_slots", "Free slots of the size class in caches of threads.",
     get<&LiveClass::cached_slots>},
    {"free_slots", "class_free_slots", "Free slots of the size class in no cache.", get<&LiveClass::free_slots>},
    {"refills", "class_refills", "Refills of caches, by size class.", get<&LiveClass::refills>, true},
    {"drains", "class_drains", "Drains of caches, by size class.", get<&LiveClass::drains>, true},
};

inline constexpr Column<LiveThread> kThreadColumns[] = {
    {"cached_bytes", "thread_cached_bytes", "Free slots in the thread's cache.", get<&LiveThread::cached_bytes>},
    {"granted_bytes", "thread_granted_bytes", "What the thread's cache may hold.", get<&LiveThread::granted_bytes>},
    {"refills", "thread_refills", "Refills of the thread's cache.", get<&LiveThread::refills>, true},
    {"drains", "thread_drains", "Drains of the thread's cache.", get<&LiveThread::drains>, true},
    {"remote_frees", "thread_remote_frees", "Slots that the thread gave back to spans that another used last.",
     get<&LiveThread::remote_frees>, true},
};

inline constexpr Column<LiveHeapFigures> kHeapColumns[] = {
    {nullptr, "heaps", "Private heaps of this name.", one},
    {"live_objects", "heap_live_blocks", "Blocks in use.", get<&LiveHeapFigures::live_objects>},
    {"live_bytes", "heap_live_bytes", "Bytes of the slots of blocks in use.", get<&LiveHeapFigures::live_bytes>},
    {"used_bytes", "heap_used_bytes", "Pages in use and large blocks: what the limit counts.",
     get<&LiveHeapFigures::used_bytes>},
    {"held_bytes", "heap_held_bytes", "What the heap has from the engine.", get<&LiveHeapFigures::held_bytes>},
    {"limit_bytes", "heap_limit_bytes", "The heap's limit, if it has one.", get<&LiveHeapFigures::limit_bytes>},
    {"slabs", nullptr, nullptr, get<&LiveHeapFigures::slabs>},
    {"large_blocks", nullptr, nullptr, get<&LiveHeapFigures::large_blocks>},
    {"conflicts", "heap_conflicts", "Operations that met another thread in a shard.", get<&LiveHeapFigures::conflicts>,
     true},
};

inline constexpr Column<LivePoolFigures> kPoolColumns[] = {
    {nullptr, "pools", "Pools of this name.", one},
    {"slot_bytes", nullptr, nullptr, get<&LivePoolFigures::slot_bytes>},
    {"capacity", "pool_capacity_slots", "The most objects that there can be.", get<&LivePoolFigures::capacity>},
    {"opened_slots", "pool_opened_slots", "The most slots that were out at once.", get<&LivePoolFigures::opened_slots>},
    {"taken_slots", "pool_taken_slots", "Slots in use, in arrays of threads, or on their way.",
     get<&LivePoolFigures::taken_slots>},
};

}  // namespace freehold::cli::stats
