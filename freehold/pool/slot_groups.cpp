// SPDX-License-Identifier: MIT
#include "freehold/pool/slot_groups.hpp"

#include <atomic>
#include <bit>
#include <cstring>

#include "freehold/os/cpu.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#define FREEHOLD_VECTOR_DRAIN 1
#endif

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
          index * g.slot_bytes == within};
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

#if defined(FREEHOLD_VECTOR_DRAIN)

// The bits of all lanes in one word.
[[gnu::target("avx2")]] std::uint64_t fold(const __m256i& gathered) noexcept {
  const __m128i half = _mm_or_si128(_mm256_castsi256_si128(gathered), _mm256_extracti128_si256(gathered, 1));
  return static_cast<std::uint64_t>(_mm_extract_epi64(half, 0) | _mm_extract_epi64(half, 1));
}

// Whether every address is the one before plus the size of a slot. Looks at the first and the last before it looks at all.
[[gnu::target("avx2")]] bool is_run_avx2(const SlotGeometry& g, void* const* slots, std::size_t n) noexcept {
  if (n < 8 || n % 4 != 0) return false;
  const auto first = reinterpret_cast<std::uintptr_t>(slots[0]);
  if (reinterpret_cast<std::uintptr_t>(slots[n - 1]) - first != (n - 1) * g.slot_bytes) return false;
  const auto bytes = static_cast<long long>(g.slot_bytes);
  __m256i expected =
      _mm256_add_epi64(_mm256_set1_epi64x(static_cast<long long>(first)), _mm256_set_epi64x(3 * bytes, 2 * bytes, bytes, 0));
  const __m256i step = _mm256_set1_epi64x(4 * bytes);
  __m256i equal = _mm256_set1_epi64x(-1);
  for (std::size_t i = 0; i < n; i += 4) {
    const __m256i now = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(slots + i));
    equal = _mm256_and_si256(equal, _mm256_cmpeq_epi64(now, expected));
    expected = _mm256_add_epi64(expected, step);
  }
  return _mm256_movemask_epi8(equal) == -1;
}

[[gnu::target("avx2,popcnt")]] void group_slots_avx2(const SlotGeometry& g, void* const* slots, std::size_t n,
                                                     SlotGroups& out) noexcept {
  out.count = 0;
  out.misplaced = out.repeated = 0;
  if (is_run_avx2(g, slots, n) && group_run(g, reinterpret_cast<std::uintptr_t>(slots[0]), n, out)) return;
  Run run(out);
  const __m256i base = _mm256_set1_epi64x(static_cast<long long>(g.base));
  const __m256i within_mask = _mm256_set1_epi64x((1LL << g.span_shift) - 1);
  const __m256i reciprocal = _mm256_set1_epi64x(g.reciprocal);
  const __m256i slot_bytes = _mm256_set1_epi64x(g.slot_bytes);
  const __m256i low6 = _mm256_set1_epi64x(63);
  const __m256i one = _mm256_set1_epi64x(1);
  const __m128i span_shift = _mm_cvtsi32_si128(static_cast<int>(g.span_shift));
  __m256i exact = _mm256_set1_epi64x(-1);
  __m256i gathered = _mm256_setzero_si256();  // bits of the last group's word that are not in it yet, by lane
  bool any_gathered = false;
  __m256i current = _mm256_set1_epi64x(-1);  // the last group's word, in every lane
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const __m256i offset = _mm256_sub_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(slots + i)), base);
    const __m256i within = _mm256_and_si256(offset, within_mask);
    const __m256i index = _mm256_srli_epi64(_mm256_mul_epu32(within, reciprocal), 32);
    exact = _mm256_and_si256(exact, _mm256_cmpeq_epi64(_mm256_mul_epu32(index, slot_bytes), within));
    const __m256i word =
        _mm256_or_si256(_mm256_slli_epi64(_mm256_srl_epi64(offset, span_shift), 6), _mm256_srli_epi64(index, 6));
    const __m256i bits = _mm256_sllv_epi64(one, _mm256_and_si256(index, low6));
    if (_mm256_movemask_epi8(_mm256_cmpeq_epi64(word, current)) == -1) {
      gathered = _mm256_or_si256(gathered, bits);
      any_gathered = true;
      continue;
    }
    if (any_gathered) {
      run.add(run.word(), fold(gathered));
      gathered = _mm256_setzero_si256();
      any_gathered = false;
    }
    alignas(32) std::uint64_t words[4];
    alignas(32) std::uint64_t ones[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(words), word);
    _mm256_store_si256(reinterpret_cast<__m256i*>(ones), bits);
    run.add(static_cast<WordIndex>(words[0]), ones[0]);
    run.add(static_cast<WordIndex>(words[1]), ones[1]);
    run.add(static_cast<WordIndex>(words[2]), ones[2]);
    run.add(static_cast<WordIndex>(words[3]), ones[3]);
    current = _mm256_set1_epi64x(static_cast<long long>(words[3]));
  }
  if (any_gathered) run.add(run.word(), fold(gathered));
  bool all_exact = _mm256_movemask_epi8(exact) == -1;
  for (; i < n; ++i) {
    const Place p = place_of(g, reinterpret_cast<std::uintptr_t>(slots[i]));
    all_exact &= p.exact;
    run.add(p.word, base::bit(p.bit));
  }
  run.close();
  finish(g, slots, n, out, all_exact);
}

#endif

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

[[gnu::target("avx2")]] std::size_t list_bits_avx2(std::uintptr_t first, std::uint32_t slot_bytes, std::uint64_t bits,
                                                   void** out) noexcept {
  void* addresses[64 + 3];  // a nibble is written whole
  std::size_t n = 0;
  const __m256i size = _mm256_set1_epi64x(slot_bytes);
  for (unsigned shift = 64; shift != 0;) {
    shift -= 4;
    const unsigned nibble = bits >> shift & 15;
    const __m256i start = _mm256_set1_epi64x(static_cast<long long>(first + std::uintptr_t{shift} * slot_bytes));
    const __m256i set = _mm256_load_si256(reinterpret_cast<const __m256i*>(kNibbles.set[nibble]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(addresses + n), _mm256_add_epi64(start, _mm256_mul_epu32(set, size)));
    n += kNibbles.count[nibble];
  }
  std::memcpy(out, addresses, n * sizeof(void*));
  return n;
}

// A whole word: 64 neighbours, the highest first.
[[gnu::target("avx2")]] void list_word_avx2(std::uintptr_t first, std::uint32_t slot_bytes, void** out) noexcept {
  const auto bytes = static_cast<long long>(slot_bytes);
  __m256i now = _mm256_add_epi64(_mm256_set1_epi64x(static_cast<long long>(first) + 60 * bytes),
                                 _mm256_set_epi64x(0, bytes, 2 * bytes, 3 * bytes));
  const __m256i step = _mm256_set1_epi64x(-4 * bytes);
  for (unsigned i = 0; i < 64; i += 4) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), now);
    now = _mm256_add_epi64(now, step);
  }
}

using GroupFunction = void (*)(const SlotGeometry&, void* const*, std::size_t, SlotGroups&) noexcept;

GroupFunction choose() noexcept {
#if defined(FREEHOLD_VECTOR_DRAIN)
  if (os::has_avx2()) return group_slots_avx2;
#endif
  return group_slots_scalar;
}

// Relaxed: every thread that finds null computes the same value.
constinit std::atomic<GroupFunction> g_group{nullptr};

// Unknown until the first batch was grouped: lists come out the same either way.
enum class Vectors : std::uint8_t { kUnknown, kNo, kYes };
constinit std::atomic<Vectors> g_list_in_vectors{Vectors::kUnknown};

// From the lowest bit, written from the end: clearing the lowest bit is the shortest chain from one slot to the next.
std::size_t list_bits(std::uintptr_t first, std::uint32_t slot_bytes, std::uint64_t bits, void** out) noexcept {
  const auto n = static_cast<std::size_t>(std::popcount(bits));
  for (void** at = out + n; bits != 0; bits &= bits - 1)
    *--at = reinterpret_cast<void*>(first + std::uintptr_t{base::lowest_bit(bits)} * slot_bytes);
  return n;
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
  GroupFunction f = g_group.load(std::memory_order_relaxed);
  if (f == nullptr) [[unlikely]] {
    f = choose();
    g_group.store(f, std::memory_order_relaxed);
    g_list_in_vectors.store(f == group_slots_scalar ? Vectors::kNo : Vectors::kYes, std::memory_order_relaxed);
  }
  f(geometry, slots, n, out);
}

unsigned vector_width() noexcept { return choose() == group_slots_scalar ? 1 : 4; }

std::size_t list_slots(const SlotGeometry& g, Taken taken, void** out) noexcept {
  const std::uintptr_t first = g.address(taken.word, 0);
#if defined(FREEHOLD_VECTOR_DRAIN)
  if (g_list_in_vectors.load(std::memory_order_relaxed) == Vectors::kYes) {
    if (taken.bits == ~std::uint64_t{0}) {
      list_word_avx2(first, g.slot_bytes, out);
      return 64;
    }
    // Below eight slots the loop over them is shorter than that over the nibbles.
    if (std::popcount(taken.bits) >= 8) return list_bits_avx2(first, g.slot_bytes, taken.bits, out);
  }
#endif
  return list_bits(first, g.slot_bytes, taken.bits, out);
}

}  // namespace freehold::pool
