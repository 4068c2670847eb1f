// SPDX-License-Identifier: MIT
// Writes behind the end of a block and before its beginning, and the moments at which they can be seen: when the block is
// freed or resized, at the end of the process, or when the program asks for a look at all blocks. The process ends without
// exit handlers after a moment before, so that the look at exit does not count for it.
#include <new>

#include "tests/misuse/blocks.hpp"

namespace freehold::test {
namespace {

enum class Moment { kFree, kRealloc, kExit, kDemand, kNextCall };

// The last use of a damaged block.
template <Moment kMoment>
void use(char* p, std::size_t n) {
  if constexpr (kMoment == Moment::kExit) return;
  if constexpr (kMoment == Moment::kFree) release(p);
  if constexpr (kMoment == Moment::kRealloc) opaque(CApi::reallocate(p, 2 * n));
  if constexpr (kMoment == Moment::kDemand) check_on_demand();
  if constexpr (kMoment == Moment::kNextCall) block_of(kMiddle);
  end_here();
}

template <std::size_t kBytes, std::size_t kBy, Moment kMoment = Moment::kFree>
void overflow() {
  char* const p = block_of(kBytes);
  for (std::size_t i = 0; i < kBy; ++i) write(p + kBytes + i);
  use<kMoment>(p, kBytes);
}

// Leaves the first 8 bytes behind the block as they are.
template <std::size_t kBytes>
void overflow_strided() {
  char* const p = block_of(kBytes);
  write(p + kBytes + 8);
  use<Moment::kFree>(p, kBytes);
}

// The zero that ends a string which does not fit.
template <std::size_t kBytes>
void overflow_by_a_zero() {
  char* const p = block_of(kBytes);
  write(p + kBytes, 0);
  use<Moment::kFree>(p, kBytes);
}

// Jumps over all that lies around the block.
template <std::size_t kBytes>
void overflow_far() {
  write(block_of(kBytes) + kBytes + kMiB - 1);
  end_here();
}

template <std::size_t kBytes, std::size_t kBy, Moment kMoment = Moment::kFree>
void underflow() {
  char* const p = block_of(kBytes);
  for (std::size_t i = 1; i <= kBy; ++i) write(p - i);
  use<kMoment>(p, kBytes);
}

void overflow_one_of(char* p, std::size_t n) {
  std::memset(p, 1, n);
  write(p + n);
}

// Prints how many damaged blocks a look finds.
void overflow_three() {
  char* blocks[9];
  for (char*& p : blocks) p = block_of(kSmall);
  for (int i = 0; i < 9; i += 3) write(blocks[i] + kSmall);
  std::printf("found %d\n", needed<int()>("freehold_check_all")());
  end_here();
}

constexpr Kind kOverflows[] = {
    {"overflow_small_by_1", overflow<kSmall, 1>},
    {"overflow_small_by_2", overflow<kSmall, 2>},
    {"overflow_small_by_4", overflow<kSmall, 4>},
    {"overflow_small_by_8", overflow<kSmall, 8>},
    {"overflow_small_by_16", overflow<kSmall, 16>},
    {"overflow_middle_by_1", overflow<kMiddle, 1>},
    {"overflow_middle_by_2", overflow<kMiddle, 2>},
    {"overflow_middle_by_4", overflow<kMiddle, 4>},
    {"overflow_middle_by_8", overflow<kMiddle, 8>},
    {"overflow_middle_by_16", overflow<kMiddle, 16>},
    {"overflow_large_by_1", overflow<kLarge, 1>},
    {"overflow_large_by_2", overflow<kLarge, 2>},
    {"overflow_large_by_4", overflow<kLarge, 4>},
    {"overflow_large_by_8", overflow<kLarge, 8>},
    {"overflow_large_by_16", overflow<kLarge, 16>},
    {"overflow_huge_by_1", overflow<20 * kMiB, 1>},
    {"overflow_large_odd_by_1", overflow<kLarge - 13, 1>},
    {"overflow_of_no_bytes_by_1", overflow<0, 1>},
    {"write_to_no_bytes",
     [] {
       write(another(CApi::allocate(0)));
       end_here();
     }},
    {"read_of_no_bytes",
     [] {
       opaque(read(another(CApi::allocate(0))));
       end_here();
     }},
    {"overflow_full_class_by_1", overflow<64, 1>},
    {"overflow_full_span_by_1", overflow<64 * kKiB, 1>},
    {"overflow_small_strided", overflow_strided<kSmall>},
    {"overflow_middle_strided", overflow_strided<kMiddle>},
    {"overflow_large_strided", overflow_strided<kLarge>},
    {"overflow_small_by_a_zero", overflow_by_a_zero<kSmall>},
    {"overflow_full_class_by_a_zero", overflow_by_a_zero<64>},
    {"overflow_small_seen_at_realloc", overflow<kSmall, 1, Moment::kRealloc>},
    {"overflow_middle_seen_at_realloc", overflow<kMiddle, 1, Moment::kRealloc>},
    {"overflow_large_seen_at_realloc", overflow<kLarge, 1, Moment::kRealloc>},
    {"overflow_small_seen_at_exit", overflow<kSmall, 1, Moment::kExit>},
    {"overflow_middle_seen_at_exit", overflow<kMiddle, 1, Moment::kExit>},
    {"overflow_large_seen_at_exit", overflow<kLarge, 1, Moment::kExit>},
    {"overflow_small_seen_on_demand", overflow<kSmall, 1, Moment::kDemand>},
    {"overflow_middle_seen_on_demand", overflow<kMiddle, 1, Moment::kDemand>},
    {"overflow_large_seen_on_demand", overflow<kLarge, 1, Moment::kDemand>},
    {"overflow_of_three_seen_on_demand", overflow_three},
    {"overflow_small_seen_at_the_next_call", overflow<kSmall, 1, Moment::kNextCall>},
    {"overflow_middle_seen_at_the_next_call", overflow<kMiddle, 1, Moment::kNextCall>},
    {"overflow_large_seen_at_the_next_call", overflow<kLarge, 1, Moment::kNextCall>},
    {"overflow_small_by_a_mebibyte", overflow_far<kSmall>},
    {"overflow_middle_by_a_mebibyte", overflow_far<kMiddle>},
    {"overflow_large_by_a_mebibyte", overflow_far<256 * kKiB>},
    {"overflow_of_calloc",
     [] {
       char* const p = another(CApi::allocate_zeroed(kSmall));
       overflow_one_of(p, kSmall);
       use<Moment::kFree>(p, kSmall);
     }},
    {"overflow_of_memalign",
     [] {
       char* const p = another(CApi::allocate_aligned(256, kSmall));
       overflow_one_of(p, kSmall);
       use<Moment::kFree>(p, kSmall);
     }},
    {"overflow_of_a_grown_block",
     [] {
       char* const p = another(CApi::reallocate(block_of(kSmall), kSmall + 1));
       overflow_one_of(p, kSmall + 1);
       use<Moment::kFree>(p, kSmall);
     }},
    {"overflow_of_a_shrunk_block",
     [] {
       char* const p = another(CApi::reallocate(block_of(kSmall), kSmall - 3));
       overflow_one_of(p, kSmall - 3);
       use<Moment::kFree>(p, kSmall);
     }},
    {"overflow_of_new",
     [] {
       char* const p = another(::operator new(kSmall));
       overflow_one_of(p, kSmall);
       ::operator delete(p);
       end_here();
     }},
    {"overflow_of_a_new_array",
     [] {
       char* const p = another(::operator new[](kSmall));
       overflow_one_of(p, kSmall);
       ::operator delete[](p);
       end_here();
     }},
    {"overflow_of_another_threads_block",
     [] {
       char* const p = block_of(kSmall);
       std::thread([=] { write(p + kSmall); }).join();
       use<Moment::kFree>(p, kSmall);
     }},
};

constexpr Kind kUnderflows[] = {
    {"underflow_small_by_1", underflow<kSmall, 1>},
    {"underflow_small_by_2", underflow<kSmall, 2>},
    {"underflow_small_by_4", underflow<kSmall, 4>},
    {"underflow_small_by_8", underflow<kSmall, 8>},
    {"underflow_small_by_16", underflow<kSmall, 16>},
    {"underflow_middle_by_1", underflow<kMiddle, 1>},
    {"underflow_middle_by_8", underflow<kMiddle, 8>},
    {"underflow_middle_by_16", underflow<kMiddle, 16>},
    {"underflow_large_by_1", underflow<kLarge, 1>},
    {"underflow_large_by_8", underflow<kLarge, 8>},
    {"underflow_large_by_16", underflow<kLarge, 16>},
    {"underflow_huge_by_1", underflow<20 * kMiB, 1>},
    {"underflow_full_class_by_1", underflow<64, 1>},
    {"underflow_small_seen_at_realloc", underflow<kSmall, 1, Moment::kRealloc>},
    {"underflow_large_seen_at_realloc", underflow<kLarge, 1, Moment::kRealloc>},
    {"underflow_small_seen_at_exit", underflow<kSmall, 1, Moment::kExit>},
    {"underflow_large_seen_at_exit", underflow<kLarge, 1, Moment::kExit>},
    {"underflow_small_seen_on_demand", underflow<kSmall, 1, Moment::kDemand>},
    {"underflow_large_seen_on_demand", underflow<kLarge, 1, Moment::kDemand>},
    {"underflow_small_seen_at_the_next_call", underflow<kSmall, 1, Moment::kNextCall>},
    {"underflow_large_seen_at_the_next_call", underflow<kLarge, 1, Moment::kNextCall>},
    {"underflow_of_memalign",
     [] {
       char* const p = another(CApi::allocate_aligned(256, kSmall));
       write(p - 1);
       use<Moment::kFree>(p, kSmall);
     }},
};

}  // namespace

Kinds overflows() { return kOverflows; }
Kinds underflows() { return kUnderflows; }

}  // namespace freehold::test
