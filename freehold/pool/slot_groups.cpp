// SPDX-License-Identifier: MIT
#include "freehold/pool/slot_groups.hpp"

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
  explicit Run(SlotGroups& out) noexcept : out_(out) {}

  [[gnu::always_inline]] void add(WordIndex word, std::uint64_t bits) noexcept {
    const bool same = word == word_;
    bits_ = (same ? bits_ : 0) | bits;
    count_ += same ? 0 : 1;
    out_.groups[count_ - 1] = {word, bits_};
    word_ = word;
  }
  void close() noexcept { out_.count = count_; }
  [[nodiscard]] WordIndex word() const noexcept { return word_; }

 private:
  SlotGroups& out_;
  std::size_t count_ = 0;
  WordIndex word_ = ~WordIndex{0};
  std::uint64_t bits_ = 0;
};

struct Place {
  WordIndex word;
  unsigned bit;
  bool exact;
};

Place place_of(const SlotGeometry& g, std::uintptr_t address) noexcept {
  const std::uintptr_t offset = address - g.base;
  const auto within = static_cast<std::uint32_t>(offset & ((std::uintptr_t{1} << g.span_shift) - 1));
  const std::uint32_t index = g.index(within);
  return {word_index(static_cast<std::uint32_t>(offset >> g.span_shift), index >> 6), index & 63,
          index * g.slot_bytes == within && within <= g.last_offset};
}

// A batch that is one run of neighbours, in ascending order and within a span, as slots are that were acquired in a row:
// its words without a look at each. False: it is not, or its first address is none of a slot.
bool group_run(const SlotGeometry& g, std::uintptr_t first, std::size_t n, SlotGroups& out) noexcept {
  const Place p = place_of(g, first);
  std::size_t index = word_in_span(p.word) * 64 + p.bit;
  if (!p.exact || (index + n) * g.slot_bytes > std::size_t{1} << g.span_shift) return false;
  for (std::size_t left = n; left != 0;) {
    const auto bit = static_cast<unsigned>(index & 63);
    const std::size_t here = left < 64 - bit ? left : 64 - bit;
    out.groups[out.count++] = {word_index(span_of(p.word), static_cast<unsigned>(index >> 6)),
                               base::low_bits(static_cast<unsigned>(here)) << bit};
    index += here;
    left -= here;
  }
  return true;
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

// Always inlined: within a function for newer CPUs the population counts are an instruction each.
[[gnu::always_inline]] inline void finish(const SlotGeometry& g, void* const* slots, std::size_t n, SlotGroups& out,
                                          bool exact) noexcept {
  std::size_t members = 0;
  for (std::size_t i = 0; i < out.count; ++i) members += static_cast<std::size_t>(std::popcount(out.groups[i].bits));
  if (!exact || members != n) [[unlikely]]
    group_suspicious(g, slots, n, out);
}

using os::Lanes, os::LaneMask, os::UnalignedLanes;

FREEHOLD_IN_LANES Lanes load(void* const* slots) noexcept { return *reinterpret_cast<const UnalignedLanes*>(slots); }

// The bits of all lanes in one word.
FREEHOLD_IN_LANES std::uint64_t fold(const Lanes& gathered) noexcept {
  return gathered[0] | gathered[1] | gathered[2] | gathered[3];
}

// Whether every address is the one before plus the size of a slot. Looks at the first and the last before it looks at all.
FREEHOLD_IN_LANES bool is_run(const SlotGeometry& g, void* const* slots, std::size_t n) noexcept {
  if (n < 8 || n % os::kLanes != 0) return false;
  const auto first = reinterpret_cast<std::uintptr_t>(slots[0]);
  if (reinterpret_cast<std::uintptr_t>(slots[n - 1]) - first != (n - 1) * g.slot_bytes) return false;
  const std::uint64_t bytes = g.slot_bytes;
  Lanes expected = first + Lanes{0, bytes, 2 * bytes, 3 * bytes};
  const Lanes step = Lanes{} + 4 * bytes;
  LaneMask equal = LaneMask{} - 1;
  for (void* const* const end = slots + n; slots != end; slots += os::kLanes) {
    equal &= load(slots) == expected;
    expected += step;
  }
  return os::all_set(equal);
}

FREEHOLD_IN_LANES void group_slots_in_lanes(const SlotGeometry& g, void* const* slots, std::size_t n,
                                            SlotGroups& out) noexcept {
  out.count = 0;
  out.misplaced = out.repeated = 0;
  if (is_run(g, slots, n) && group_run(g, reinterpret_cast<std::uintptr_t>(slots[0]), n, out)) return;
  Run run(out);
  const Lanes span0 = Lanes{} + g.base;
  const Lanes within_mask = Lanes{} + (base::bit(g.span_shift) - 1);
  const Lanes reciprocal = Lanes{} + g.reciprocal;
  const Lanes slot_bytes = Lanes{} + g.slot_bytes;
  const auto last_offset = reinterpret_cast<LaneMask>(Lanes{} + g.last_offset);  // signed, as the comparison of AVX2 is
  const Lanes low6 = Lanes{} + 63;
  const Lanes one = Lanes{} + 1;
  const unsigned span_shift = g.span_shift;
  LaneMask exact = LaneMask{} - 1;
  Lanes gathered{};  // bits of the last group's word that are not in it yet, by lane
  bool any_gathered = false;
  Lanes current = Lanes{} - 1;  // the last group's word, in every lane
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
      any_gathered = true;
      continue;
    }
    if (any_gathered) {
      run.add(run.word(), fold(gathered));
      gathered = Lanes{};
      any_gathered = false;
    }
    alignas(Lanes) std::uint64_t words[os::kLanes];
    alignas(Lanes) std::uint64_t ones[os::kLanes];
    *reinterpret_cast<UnalignedLanes*>(words) = word;
    *reinterpret_cast<UnalignedLanes*>(ones) = bits;
    run.add(static_cast<WordIndex>(words[0]), ones[0]);
    run.add(static_cast<WordIndex>(words[1]), ones[1]);
    run.add(static_cast<WordIndex>(words[2]), ones[2]);
    run.add(static_cast<WordIndex>(words[3]), ones[3]);
    current = Lanes{} + words[os::kLanes - 1];
  }
  if (any_gathered) run.add(run.word(), fold(gathered));
  bool all_exact = os::all_set(exact);
  for (; i < n; ++i) {
    const Place p = place_of(g, reinterpret_cast<std::uintptr_t>(slots[i]));
    all_exact &= p.exact;
    run.add(p.word, base::bit(p.bit));
  }
  run.close();
  finish(g, slots, n, out, all_exact);
}

// From the lowest bit, written from the end: clearing the lowest bit is the shortest chain from one slot to the next. Always
// inlined: within a function for newer CPUs the population count is an instruction.
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
  Run run(out);
  bool exact = true;
  for (std::size_t i = 0; i < n; ++i) {
    const Place p = place_of(g, reinterpret_cast<std::uintptr_t>(slots[i]));
    exact &= p.exact;
    run.add(p.word, base::bit(p.bit));
  }
  run.close();
  finish(g, slots, n, out, exact);
}

void group_slots(const SlotGeometry& geometry, void* const* slots, std::size_t n, SlotGroups& out) noexcept {
  in_vectors() ? group_slots_in_lanes(geometry, slots, n, out) : group_slots_scalar(geometry, slots, n, out);
}

unsigned vector_width() noexcept { return in_vectors() ? os::kLanes : 1; }

std::size_t list_slots(const SlotGeometry& g, Taken taken, void** out) noexcept {
  const std::uintptr_t first = g.address(taken.word, 0);
  return in_vectors() ? list_in_lanes(first, g.slot_bytes, taken.bits, out)
                      : list_bits(first, g.slot_bytes, taken.bits, out);
}

}  // namespace freehold::pool
