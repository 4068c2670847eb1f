// SPDX-License-Identifier: MIT
#include "freehold/slots/slot_groups.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "freehold/os/vectors.hpp"

namespace freehold::pool {
namespace {

// The groups so far; a slot of the last one's word joins it. No branch: in a batch freed at random every slot changes the
// word, in one freed in order hardly any does, and most are between.
class Run {
 public:
  // `first`: the word of the first slot that will be added.
  Run(SlotGroups& out, WordIndex first) noexcept : out_(out), last_(out.groups) { *last_ = {first, 0}; }

  [[gnu::always_inline]] void add(WordIndex word, std::uint64_t bits) noexcept {
    const bool same = word == last_->word;
    const std::uint64_t kept = same ? last_->bits : 0;
    repeated_ |= kept & bits;
    last_ += same ? 0 : 1;
    *last_ = {word, kept | bits};
  }
  // Returns where four new groups go, none of which is of the last group's word.
  [[gnu::always_inline]] SlotGroup* add_four() noexcept { return (last_ += 4) - 3; }
  void note_repeated(std::uint64_t bits) noexcept { repeated_ |= bits; }
  // Returns whether no slot stood twice in a group.
  [[nodiscard]] bool close() noexcept {
    out_.count = static_cast<std::size_t>(last_ - out_.groups) + 1;
    return repeated_ == 0;
  }
  [[nodiscard]] WordIndex word() const noexcept { return last_->word; }

 private:
  SlotGroups& out_;
  SlotGroup* last_;
  std::uint64_t repeated_ = 0;
};

struct Place {
  WordIndex word;
  unsigned bit;
  bool exact;
};

[[gnu::always_inline]] inline Place place_of(const SlotGeometry& g, std::uintptr_t address) noexcept {
  const std::uintptr_t offset = address - g.base;
  const auto within = static_cast<std::uint32_t>(offset & ((std::uintptr_t{1} << g.span_shift) - 1));
  const std::uint32_t index = g.index(within);
  return {word_index(static_cast<std::uint32_t>(offset >> g.span_shift), index >> 6), index & 63,
          index * g.slot_bytes == within && within <= g.last_offset};
}

// Something is wrong in the batch: once more, slowly, with names.
[[gnu::cold, gnu::noinline]] void group_suspicious(const SlotGeometry& g, void* const* slots, std::size_t n,
                                                   SlotGroups& out) noexcept {
  out.count = 0;
  out.misplaced = out.repeated = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(slots[i]);
    const Place p = place_of(g, address);
    if (!p.exact) {
      out.misplaced = address;
      continue;
    }
    SlotGroup* group = out.groups;
    SlotGroup* const end = out.groups + out.count;
    while (group != end && group->word != p.word) ++group;
    if (group == end) out.groups[out.count++] = {p.word, 0};
    if ((group->bits & base::bit(p.bit)) != 0) out.repeated = address;
    group->bits |= base::bit(p.bit);
  }
}

using os::Lanes, os::LaneMask, os::UnalignedLanes;

FREEHOLD_IN_LANES Lanes load(void* const* slots) noexcept { return *reinterpret_cast<const UnalignedLanes*>(slots); }

// Returns whether every address is the one before plus `step`. Pre: n > 1, and the last one is where it should be.
FREEHOLD_IN_LANES bool are_neighbours(void* const* slots, std::size_t n, std::uint64_t step) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(slots[0]);
  if (n < os::kLanes) return reinterpret_cast<std::uintptr_t>(slots[1]) - first == step;
  Lanes expected = first + Lanes{0, step, 2 * step, 3 * step};
  // The last ones, of which some are looked at again.
  LaneMask equal = load(slots + n - os::kLanes) == expected + (n - os::kLanes) * step;
  const Lanes steps = Lanes{} + os::kLanes * step;
#pragma GCC unroll 4
  for (void* const* const end = slots + n / os::kLanes * os::kLanes; slots != end; slots += os::kLanes) {
    equal &= load(slots) == expected;
    expected += steps;
  }
  return os::all_set(equal);
}

// A batch of neighbours in ascending or descending order, as slots are that were acquired in a row, or one whose slots of
// each word are neighbours up to the word's end: its words without a look at each slot. False: it is another.
FREEHOLD_IN_LANES bool group_neighbours(const SlotGeometry& g, void* const* slots, std::size_t n, SlotGroups& out) noexcept {
  const std::uint64_t size = g.slot_bytes;
  SlotGroup* group = out.groups;
  for (void *const *at = slots, *const *const end = slots + n; at != end;) {
    const auto first = reinterpret_cast<std::uintptr_t>(at[0]);
    const Place p = place_of(g, first);
    if (!p.exact) return false;
    auto left = static_cast<std::size_t>(end - at);
    if (left == 1) {
      *group++ = {p.word, base::bit(p.bit)};
      break;
    }
    const bool descends = reinterpret_cast<std::uintptr_t>(at[1]) < first;
    const std::uint64_t step = descends ? -size : size;
    std::uintptr_t last = first + (left - 1) * step;
    if (reinterpret_cast<std::uintptr_t>(end[-1]) != last) {
      left = std::min<std::size_t>(left, descends ? p.bit + 1 : 64 - p.bit);
      last = first + (left - 1) * step;
      if (reinterpret_cast<std::uintptr_t>(at[left - 1]) != last) return false;
    }
    if (((last - g.base) ^ (first - g.base)) >> g.span_shift != 0 ||
        ((last - g.base) & (base::bit(g.span_shift) - 1)) > g.last_offset || (left > 1 && !are_neighbours(at, left, step)))
      return false;
    at += left;
    WordIndex word = p.word;
    for (unsigned bit = p.bit; left != 0; bit = descends ? 63 : 0, word += descends ? -1U : 1U) {
      const std::size_t here = std::min<std::size_t>(left, descends ? bit + 1 : 64 - bit);
      *group++ = {word, base::low_bits(static_cast<unsigned>(here)) << (descends ? bit + 1 - here : bit)};
      left -= here;
    }
  }
  out.count = static_cast<std::size_t>(group - out.groups);
  return true;
}

// `count` slots of the last group's word, gathered by lane.
FREEHOLD_IN_LANES void join(Run& run, const Lanes& gathered, int count) noexcept {
  const std::uint64_t bits = gathered[0] | gathered[1] | gathered[2] | gathered[3];
  if (std::popcount(bits) != count) run.note_repeated(bits);
  run.add(run.word(), bits);
}

FREEHOLD_IN_LANES void group_slots_in_lanes(const SlotGeometry& g, void* const* slots, std::size_t n,
                                            SlotGroups& out) noexcept {
  out.count = 0;
  out.misplaced = out.repeated = 0;
  if (group_neighbours(g, slots, n, out)) return;
  const Place first = place_of(g, reinterpret_cast<std::uintptr_t>(slots[0]));
  Run run(out, first.word);
  const Lanes span0 = Lanes{} + g.base;
  const Lanes within_mask = Lanes{} + (base::bit(g.span_shift) - 1);
  const Lanes reciprocal = Lanes{} + g.reciprocal;
  const Lanes slot_bytes = Lanes{} + g.slot_bytes;
  const auto last_offset = reinterpret_cast<LaneMask>(Lanes{} + g.last_offset);  // signed, as the comparison of AVX2 is
  const Lanes low6 = Lanes{} + 63;
  const Lanes one = Lanes{} + 1;
  const unsigned span_shift = g.span_shift;
  LaneMask exact = LaneMask{} - 1;
  Lanes gathered{};  // slots of the last group's word that are not in it yet, by lane
  int gathered_count = 0;
  Lanes current = Lanes{} + first.word;  // the last group's word, in every lane
  std::size_t i = 0;
  for (; i + os::kLanes <= n; i += os::kLanes) {
    const Lanes offset = load(slots + i) - span0;
    const Lanes within = offset & within_mask;
    const Lanes index = os::product_of_halves(within, reciprocal) >> 32;
    exact &= os::product_of_halves(index, slot_bytes) == within;
    exact &= reinterpret_cast<LaneMask>(within) <= last_offset;
    const Lanes word = offset >> span_shift << 6 | index >> 6;
    const Lanes bits = one << (index & low6);
    if (os::all_set(word == current)) {
      gathered |= bits;
      gathered_count += static_cast<int>(os::kLanes);
      continue;
    }
    if (gathered_count != 0) {
      join(run, gathered, gathered_count);
      gathered = Lanes{};
      gathered_count = 0;
    }
    const bool all_differ = os::none_set(word == os::shifted_in(current, word));
    current = Lanes{} + word[os::kLanes - 1];
    if (all_differ) {
      os::store_pairs(run.add_four(), word, bits);
      continue;
    }
    alignas(Lanes) std::uint64_t words[os::kLanes];
    alignas(Lanes) std::uint64_t ones[os::kLanes];
    *reinterpret_cast<UnalignedLanes*>(words) = word;
    *reinterpret_cast<UnalignedLanes*>(ones) = bits;
    for (unsigned lane = 0; lane < os::kLanes; ++lane) run.add(static_cast<WordIndex>(words[lane]), ones[lane]);
  }
  if (gathered_count != 0) join(run, gathered, gathered_count);
  bool all_exact = os::all_set(exact);
  for (; i < n; ++i) {
    const Place p = place_of(g, reinterpret_cast<std::uintptr_t>(slots[i]));
    all_exact &= p.exact;
    run.add(p.word, base::bit(p.bit));
  }
  if (!run.close() || !all_exact) [[unlikely]]
    group_suspicious(g, slots, n, out);
}

// Lists the bits from the lowest, written from the end: clearing the lowest bit is the shortest chain from one slot to the
// next. Always inlined: within a function for newer CPUs the population count is an instruction.
[[gnu::always_inline]] inline std::size_t list_bits(std::uintptr_t first, std::uint32_t slot_bytes, std::uint64_t bits,
                                                    void** out) noexcept {
  const auto n = static_cast<std::size_t>(std::popcount(bits));
  for (void** at = out + n; bits != 0; bits &= bits - 1)
    *--at = reinterpret_cast<void*>(first + std::uintptr_t{base::lowest_bit(bits)} * slot_bytes);
  return n;
}

// Which of a nibble's bits are set, the highest first, and how many: with them four addresses come from one addition.
struct Nibbles {
  alignas(32) std::uint64_t set[16][4]{};
  std::uint8_t count[16]{};

  constexpr Nibbles() noexcept {
    for (unsigned nibble = 0; nibble < 16; ++nibble)
      for (unsigned bit = 4; bit-- > 0;)
        if ((nibble & base::bit(bit)) != 0) set[nibble][count[nibble]++] = bit;
  }
};
constexpr Nibbles kNibbles;

FREEHOLD_IN_LANES std::size_t list_bits_in_lanes(std::uintptr_t first, std::uint32_t slot_bytes, std::uint64_t bits,
                                                 void** out) noexcept {
  void* addresses[64 + 3];  // a nibble is written whole
  std::size_t n = 0;
  const Lanes size = Lanes{} + slot_bytes;
  for (unsigned shift = 64; shift != 0;) {
    shift -= 4;
    const std::size_t nibble = bits >> shift & 15;
    const Lanes start = Lanes{} + (first + std::uintptr_t{shift} * slot_bytes);
    const Lanes set = *reinterpret_cast<const UnalignedLanes*>(kNibbles.set[nibble]);
    *reinterpret_cast<UnalignedLanes*>(addresses + n) = start + os::product_of_halves(set, size);
    n += kNibbles.count[nibble];
  }
  std::memcpy(out, addresses, n * sizeof(void*));
  return n;
}

// A whole word: 64 neighbours, the highest first.
FREEHOLD_IN_LANES void list_word_in_lanes(std::uintptr_t first, std::uint32_t slot_bytes, void** out) noexcept {
  const std::uint64_t bytes = slot_bytes;
  Lanes now = first + 60 * bytes + Lanes{3 * bytes, 2 * bytes, bytes, 0};
  const Lanes step = Lanes{} + 4 * bytes;
#pragma GCC unroll 4
  for (unsigned i = 0; i < 64; i += os::kLanes) {
    *reinterpret_cast<UnalignedLanes*>(out + i) = now;
    now -= step;
  }
}

FREEHOLD_IN_LANES std::size_t list_in_lanes(std::uintptr_t first, std::uint32_t slot_bytes, std::uint64_t bits,
                                            void** out) noexcept {
  if (bits == ~std::uint64_t{0}) {
    list_word_in_lanes(first, slot_bytes, out);
    return 64;
  }
  constexpr int kFewBits = 16;  // below, the loop over the bits is shorter than that over the nibbles
  return std::popcount(bits) < kFewBits ? list_bits(first, slot_bytes, bits, out)
                                        : list_bits_in_lanes(first, slot_bytes, bits, out);
}

enum class Vectors : std::uint8_t { kUnknown, kNo, kYes };

// Relaxed: every thread that finds it unknown computes the same value.
constinit std::atomic<Vectors> g_vectors{Vectors::kUnknown};

// CPUID takes microseconds under a hypervisor, so that the first batch asks, not the start of the process.
[[gnu::cold, gnu::noinline]] Vectors choose() noexcept {
  const Vectors chosen = os::has_lanes() ? Vectors::kYes : Vectors::kNo;
  g_vectors.store(chosen, std::memory_order_relaxed);
  return chosen;
}

[[gnu::always_inline]] inline bool in_vectors() noexcept {
  const Vectors chosen = g_vectors.load(std::memory_order_relaxed);
  return (chosen != Vectors::kUnknown ? chosen : choose()) == Vectors::kYes;
}

}  // namespace

void group_slots_scalar(const SlotGeometry& g, void* const* slots, std::size_t n, SlotGroups& out) noexcept {
  out.count = 0;
  out.misplaced = out.repeated = 0;
  if (n == 0) return;
  Run run(out, place_of(g, reinterpret_cast<std::uintptr_t>(slots[0])).word);
  bool exact = true;
  for (std::size_t i = 0; i < n; ++i) {
    const Place p = place_of(g, reinterpret_cast<std::uintptr_t>(slots[i]));
    exact &= p.exact;
    run.add(p.word, base::bit(p.bit));
  }
  if (!run.close() || !exact) [[unlikely]]
    group_suspicious(g, slots, n, out);
}

void group_slots(const SlotGeometry& geometry, void* const* slots, std::size_t n, SlotGroups& out) noexcept {
  in_vectors() ? group_slots_in_lanes(geometry, slots, n, out) : group_slots_scalar(geometry, slots, n, out);
}

std::size_t list_slots(const SlotGeometry& g, Taken taken, void** out) noexcept {
  const std::uintptr_t first = g.address(taken.word, 0);
  return in_vectors() ? list_in_lanes(first, g.slot_bytes, taken.bits, out)
                      : list_bits(first, g.slot_bytes, taken.bits, out);
}

}  // namespace freehold::pool
