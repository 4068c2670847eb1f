// SPDX-License-Identifier: MIT
// The pools that have a name, for readers outside the process (`freehold stats PID`): a list for each shared object, kept
// by the pools' constructors and destructors. No acquire or release knows of it.
//
//   Invariant: a pool is in the list from its registration's constructor to the destructor, if its name is not empty.
//
// Any thread. Cost: a lock for a handful of instructions when a named pool begins and ends; nothing for one without a name.
#pragma once
#include <cstdint>

namespace freehold::pool {

// A reader's knowledge of a pool. Plain data; addresses are those of the process.
struct LivePool {
  std::uint64_t name;        // address of a text
  std::uint64_t capacity;    // ~0: no limit
  std::uint64_t slot_bytes;  // size of the objects
  // These two describe pools whose free slots are bits in words; they are 0 in others.
  std::uint64_t words;         // address of integers of 8 bytes, a bit for each slot, set when it is free and in no array
  std::uint64_t opened_words;  // address of an integer of 4 bytes: words whose slots have been in use once
  std::uint32_t words_a_span;  // the last word of a span, and of all, may have fewer slots than bits
  std::uint32_t slots_a_span;
};

class PoolRegistration {
 public:
  // `pool`: its name is ignored. An empty name or null: it is not registered.
  PoolRegistration(const char* name, const LivePool& pool) noexcept;
  PoolRegistration(const PoolRegistration&) = delete;
  PoolRegistration& operator=(const PoolRegistration&) = delete;
  ~PoolRegistration();

 private:
  friend struct NamedPools;
  PoolRegistration* next_ = nullptr;
  PoolRegistration* previous_ = nullptr;
  LivePool pool_;
};

}  // namespace freehold::pool
