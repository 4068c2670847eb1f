// SPDX-License-Identifier: MIT
// Uses of blocks that were freed, or that realloc has moved: writes, which a look at freed blocks can find, and reads, which
// only a fault can.
#include <cstdlib>
#include <new>

#include "tests/misuse/blocks.hpp"

namespace freehold::test {
namespace {

enum class Seen { kAtReuse, kAtExit, kOnDemand, kAtNextCall };

// Waits for the moment at which a write to a freed block of `n` bytes can be seen.
template <Seen kSeen>
void look(std::size_t n) {
  if constexpr (kSeen == Seen::kAtExit) return;
  if constexpr (kSeen == Seen::kAtReuse) flush(n);
  if constexpr (kSeen == Seen::kOnDemand) check_on_demand();
  if constexpr (kSeen == Seen::kAtNextCall) block_of(kLarge);
  end_here();
}

template <std::size_t kBytes, Seen kSeen, std::size_t kAt = 0>
void write_after_free() {
  char* const p = block_of(kBytes);
  release(p);
  write(p + kAt);
  look<kSeen>(kBytes);
}

template <std::size_t kBytes>
void read_after_free() {
  char* const p = block_of(kBytes);
  release(p);
  opaque(read(p + 8));
}

template <std::size_t kFrom, std::size_t kTo>
void write_after_move() {
  char* const p = block_of(kFrom);
  char* const kept = block_of(kFrom);  // in the way of growing in place
  char* const moved = another(CApi::reallocate(p, kTo));
  if (moved == p) not_applicable("realloc that moves this block");
  write(p);
  release(kept);
  release(moved);
}

template <std::size_t kFrom, std::size_t kTo>
void read_after_move() {
  char* const p = block_of(kFrom);
  char* const kept = block_of(kFrom);
  char* const moved = another(CApi::reallocate(p, kTo));
  if (moved == p) not_applicable("realloc that moves this block");
  opaque(read(p + 8));
  release(kept);
  release(moved);
}

void write_while_others_use_the_size() {
  char* const p = block_of(kSmall);
  release(p);
  for (int i = 0; i < 100; ++i) release(CApi::allocate(kSmall));
  write(p + 16);
}

char* g_freed = nullptr;

constexpr Kind kKinds[] = {
    {"write_after_free_small_seen_at_reuse", write_after_free<kSmall, Seen::kAtReuse>},
    {"write_after_free_middle_seen_at_reuse", write_after_free<kMiddle, Seen::kAtReuse>},
    {"write_after_free_small_seen_at_exit", write_after_free<kSmall, Seen::kAtExit>},
    {"write_after_free_middle_seen_at_exit", write_after_free<kMiddle, Seen::kAtExit>},
    {"write_after_free_small_seen_on_demand", write_after_free<kSmall, Seen::kOnDemand>},
    {"write_after_free_middle_seen_on_demand", write_after_free<kMiddle, Seen::kOnDemand>},
    {"write_after_free_small_seen_at_the_next_call", write_after_free<kSmall, Seen::kAtNextCall>},
    {"write_after_free_middle_seen_at_the_next_call", write_after_free<kMiddle, Seen::kAtNextCall>},
    {"write_after_free_tiny", write_after_free<1, Seen::kAtExit>},
    {"write_after_free_at_16", write_after_free<kSmall, Seen::kAtExit, 16>},
    {"write_after_free_to_the_last_byte", write_after_free<kSmall, Seen::kAtExit, kSmall - 1>},
    {"write_after_free_to_the_last_byte_of_many", write_after_free<kMiddle, Seen::kAtExit, kMiddle - 1>},
    {"write_after_free_large", write_after_free<kLarge, Seen::kAtExit>},
    {"write_after_free_inside_a_large", write_after_free<kLarge, Seen::kAtExit, kLarge / 2>},
    {"write_after_free_huge", write_after_free<20 * kMiB, Seen::kAtExit>},
    {"write_after_free_and_reuse", write_while_others_use_the_size},
    {"write_after_free_by_another_thread",
     [] {
       char* const p = block_of(kSmall);
       release(p);
       std::thread([=] { write(p); }).join();
     }},
    {"write_after_free_of_another_thread",
     [] {
       char* const p = block_of(kSmall);
       std::thread([=] { release(p); }).join();
       write(p);
     }},
    {"write_after_delete",
     [] {
       char* const p = another(::operator new(kSmall));
       ::operator delete(p);
       write(p);
     }},
    {"write_after_free_in_an_exit_handler",
     [] {
       g_freed = block_of(kSmall);
       std::atexit([] { write(g_freed); });
       release(g_freed);
     }},
    {"write_after_realloc_moved", write_after_move<kSmall, kMiddle>},
    {"write_after_realloc_moved_a_large", write_after_move<kLarge, 40 * kMiB>},
    {"read_after_free_small", read_after_free<kSmall>},
    {"read_after_free_middle", read_after_free<kMiddle>},
    {"read_after_free_large", read_after_free<kLarge>},
    {"read_after_free_huge", read_after_free<20 * kMiB>},
    {"read_after_realloc_moved", read_after_move<kSmall, kMiddle>},
    {"read_after_realloc_moved_a_large", read_after_move<kLarge, 40 * kMiB>},
};

}  // namespace

Kinds uses_after_free() { return kKinds; }

}  // namespace freehold::test
