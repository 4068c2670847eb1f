// SPDX-License-Identifier: MIT
// A block as checked mode lays it out in a raw one, which the source of memory gave:
//
//   raw                                block                              raw + its bytes
//    | header (32 bytes) | gap, if any | what the program asked for | slack, at least 16 bytes |
//
// Gap and slack hold canaries: up to 128 bytes beside the block. A gap is there only where the block's alignment is above
// 32; otherwise the header's own last 8 bytes lie before the block.
//
// The header's mark is a hash of the raw block's address, of what the header says, and of a secret, with the state in its
// lowest bits. So a header that was overwritten is distinguished from one of a block that was freed, and no content of a
// block passes for a header. The states: kSpare, a raw block that the source gave and no program has; kLive; kFreed, and not
// reused yet.
//
//   Invariant: a raw block that checked mode holds has a header whose mark is right, unless the program overwrote it.
//
// The state changes by compare-exchange: of two threads that free one block, one is reported. All else is written by the
// thread that the block belongs to. Words of the header are atomic, since a pointer that was freed already may be looked at
// while its memory has a new user.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "freehold/check/claim.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::check {

enum class State : std::uint8_t { kDamaged = 0, kSpare = 1, kLive = 2, kFreed = 3 };

inline constexpr std::size_t kMostCanary = 128;  // bytes that are looked at on each side
inline constexpr std::size_t kLeastSlack = 16;
inline constexpr std::uint8_t kFreedByte = 0xdf;

// 64 bits of which each decides about all of the result.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {  // Stafford's variant 13 of MurmurHash3's finalizer
  x = (x ^ x >> 30) * 0xbf58'476d'1ce4'e5b9;
  x = (x ^ x >> 27) * 0x94d0'49bb'1331'11eb;
  return x ^ x >> 31;
}

// The secret of a process: its hash, and the canary's bytes, each one of 16 that are no text and no small number.
struct Secret {
  std::uint64_t key = 0;
  std::uint64_t canary = 0;

  constexpr Secret() noexcept = default;
  constexpr explicit Secret(std::uint64_t random) noexcept
      : key(mix(random)), canary((mix(~random) & 0x7878'7878'7878'7878) | 0x8585'8585'8585'8585) {}
  [[nodiscard]] std::uint8_t canary_at(std::uintptr_t address) const noexcept {
    return static_cast<std::uint8_t>(canary >> address % 8 * 8);
  }
  // The eight bytes at the address, or those that end there.
  [[nodiscard]] std::uint64_t canary_word_at(const void* address) const noexcept {
    return std::rotr(canary, static_cast<int>(reinterpret_cast<std::uintptr_t>(address) % 8 * 8));
  }
};

// The content of a header. `offset`: of the block in the raw one.
struct Contents {
  std::size_t bytes = 0;
  std::size_t alignment = 0;
  Family family = Family::kMalloc;
  std::uint32_t offset = 0;
  std::uint32_t allocated_at = 0;  // numbers of call stacks; 0: unknown
  std::uint32_t freed_at = 0;
  std::uint8_t shard = 0;  // where it was allocated, below 16
};

// A part of it, which costs less to read.
struct Outline {
  std::size_t bytes = 0;
  std::uint32_t offset = 0;
  Family family = Family::kMalloc;
  std::uint8_t shard = 0;
};

template <sync::Atomics A>
class Header {
 public:
  static constexpr std::uint32_t bytes() noexcept { return sizeof(Header); }

  // Makes the header of a raw block that the program does not have.
  void make_spare(const Secret& secret) noexcept {
    size_.store(0, std::memory_order_relaxed);
    place_.store(0, std::memory_order_relaxed);
    set(secret, State::kSpare);
  }
  void make_live(const Secret& secret, const Contents& contents) noexcept {
    const std::uint64_t alignment = contents.alignment == 0 ? 0 : std::bit_width(contents.alignment);
    size_.store(contents.bytes | std::uint64_t{static_cast<std::uint8_t>(contents.family)} << kFamilyShift |
                    std::uint64_t{contents.shard} << kShardShift | alignment << kAlignmentShift,
                std::memory_order_relaxed);
    place_.store(contents.offset | std::uint64_t{contents.allocated_at} << 32, std::memory_order_relaxed);
    last_.store(secret.canary, std::memory_order_relaxed);
    set(secret, State::kLive);
  }
  // Live to freed. False: another thread did that.
  [[nodiscard]] bool end(const Secret& secret, std::uint32_t freed_at) noexcept {
    return end(hash_of(secret) | static_cast<std::uint64_t>(State::kLive), freed_at);
  }
  // The same of a header whose mark is known.
  [[nodiscard]] bool end(std::uint64_t live, std::uint32_t freed_at) noexcept {
    // Relaxed: who may free a block was told so by the program; and the check is of a program that is wrong.
    if (!mark_.compare_exchange_strong(live, freed_of(live), std::memory_order_relaxed, std::memory_order_relaxed))
      return false;
    last_.store(freed_at, std::memory_order_relaxed);
    return true;
  }
  // The same under a lock that all who end such blocks hold.
  void end_alone(std::uint64_t live, std::uint32_t freed_at) noexcept {
    mark_.store(freed_of(live), std::memory_order_relaxed);
    last_.store(freed_at, std::memory_order_relaxed);
  }

  // Returns whether this is memory that no header was made in, and reads as zero.
  [[nodiscard]] bool is_blank() const noexcept { return mark_.load(std::memory_order_relaxed) == 0; }
  [[nodiscard]] State state(const Secret& secret) const noexcept {
    const std::uint64_t mark = mark_.load(std::memory_order_relaxed);
    return (mark & ~kStateMask) == hash_of(secret) ? static_cast<State>(mark & kStateMask) : State::kDamaged;
  }
  [[nodiscard]] Contents contents() const noexcept {
    const std::uint64_t size = size_.load(std::memory_order_relaxed), place = place_.load(std::memory_order_relaxed);
    const auto alignment = static_cast<unsigned>(size >> kAlignmentShift);
    return {bytes_of(size),
            alignment == 0 || alignment > 64 ? 0 : std::size_t{1} << (alignment - 1),
            static_cast<Family>(size >> kFamilyShift & 7),
            static_cast<std::uint32_t>(place),
            static_cast<std::uint32_t>(place >> 32),
            static_cast<std::uint32_t>(last_.load(std::memory_order_relaxed)),
            static_cast<std::uint8_t>(size >> kShardShift & 15)};
  }
  [[nodiscard]] Outline outline() const noexcept {
    const std::uint64_t size = size_.load(std::memory_order_relaxed);
    return {bytes_of(size), static_cast<std::uint32_t>(place_.load(std::memory_order_relaxed)),
            static_cast<Family>(size >> kFamilyShift & 7), static_cast<std::uint8_t>(size >> kShardShift & 15)};
  }
  [[nodiscard]] std::uint64_t mark() const noexcept { return mark_.load(std::memory_order_relaxed); }
  // Returns whether a live block's last header bytes, which lie before it, are as they were.
  [[nodiscard]] bool has_canary(const Secret& secret) const noexcept {
    return last_.load(std::memory_order_relaxed) == secret.canary;
  }

 private:
  static constexpr unsigned kFamilyShift = 48, kShardShift = 51, kAlignmentShift = 56;
  static constexpr std::uint64_t kStateMask = 3;

  [[nodiscard]] static constexpr std::uint64_t freed_of(std::uint64_t live) noexcept {
    return (live & ~kStateMask) | static_cast<std::uint64_t>(State::kFreed);
  }
  [[nodiscard]] static std::size_t bytes_of(std::uint64_t size) noexcept {
    return static_cast<std::size_t>(size & ((std::uint64_t{1} << kFamilyShift) - 1));
  }
  // Odd factors: no word can change alone without a change of the hash.
  [[nodiscard]] std::uint64_t hash_of(const Secret& secret) const noexcept {
    std::uint64_t hash = (secret.key ^ reinterpret_cast<std::uintptr_t>(this)) * 0xbf58'476d'1ce4'e5b9 +
                         size_.load(std::memory_order_relaxed) * 0x9e37'79b9'7f4a'7c15 +
                         place_.load(std::memory_order_relaxed) * 0x94d0'49bb'1331'11eb;
    hash = (hash ^ hash >> 32) * 0xd6e8'feb8'6659'fd93;
    return (hash ^ hash >> 32) & ~kStateMask;
  }
  void set(const Secret& secret, State state) noexcept {
    mark_.store(hash_of(secret) | static_cast<std::uint64_t>(state), std::memory_order_relaxed);
  }

  typename A::template atomic<std::uint64_t> mark_, size_, place_;
  typename A::template atomic<std::uint64_t> last_;  // a canary while the block is live, then where it was freed
};

// ---- bytes ------------------------------------------------------------------------------------------------------------

// Fills [begin, end) with the canary.
inline void write_canary(const Secret& secret, char* begin, char* end) noexcept {
  if (end - begin < 8) {
    for (; begin != end; ++begin) *begin = static_cast<char>(secret.canary_at(reinterpret_cast<std::uintptr_t>(begin)));
    return;
  }
  const std::uint64_t word = secret.canary_word_at(begin), last = secret.canary_word_at(end);
  for (; end - begin >= 8; begin += 8) std::memcpy(begin, &word, 8);
  std::memcpy(end - 8, &last, 8);
}

// The first byte of [begin, end) that is not the canary's; null: all are.
[[nodiscard]] inline const char* find_damage(const Secret& secret, const char* begin, const char* end) noexcept {
  const auto is_whole = [](const char* at, std::uint64_t expected) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    return word == expected;
  };
  if (end - begin >= 8) {
    const std::uint64_t word = secret.canary_word_at(begin);
    while (end - begin >= 8 && is_whole(begin, word)) begin += 8;
    if (end - begin < 8 && is_whole(end - 8, secret.canary_word_at(end))) return nullptr;
  }
  for (; begin != end; ++begin)
    if (static_cast<std::uint8_t>(*begin) != secret.canary_at(reinterpret_cast<std::uintptr_t>(begin))) return begin;
  return nullptr;
}

inline constexpr auto kFreedBytes = [] {
  std::array<std::uint8_t, 256> bytes{};
  bytes.fill(kFreedByte);
  return bytes;
}();

// The first byte of [begin, end) that is not kFreedByte; null: all are.
[[nodiscard]] inline const char* find_write(const char* begin, const char* end) noexcept {
  const auto bytes = static_cast<std::size_t>(end - begin), first = std::min(bytes, kFreedBytes.size());
  if (std::memcmp(begin, kFreedBytes.data(), first) == 0 &&
      (bytes == first || std::memcmp(begin, begin + first, bytes - first) == 0)) [[likely]]
    return nullptr;
  return std::find_if(begin, end, [](char c) { return static_cast<std::uint8_t>(c) != kFreedByte; });
}

}  // namespace freehold::check
