// Free runs of spans: best fit by segregated lists, split at the front, merged with their neighbours.
// Dirty runs (which still hold pages) and clean ones (which read as zero) are kept apart and never merged with each other,
// so that calloc knows what is zero and the purger what is worth a system call. Boundary tags: a free run's length stands
// at its first span, its start at its last; spans inside a run say kNone.
//
//   Invariants: no two neighbouring free runs are equally dirty; every free run is in exactly the list bin_of(length).
//
// Externally locked (the arena's lock). allocate: O(1) up to 64 spans, else the length of one list. free: O(1).
#pragma once
#include <bit>
#include <cstdint>

#include "freehold/alloc/span.hpp"

namespace freehold::alloc {

struct RunPlace {
  SpanIndex first = kNoSpan;
  bool zero = false;  // its pages read as zero
};

template <class SpanType>
class RunTable {
 public:
  constexpr RunTable() noexcept = default;

  void attach(SpanType* spans) noexcept {
    spans_ = spans;
    for (auto& lists : heads_)
      for (SpanIndex& head : lists) head = kNoSpan;
  }

  // Takes `length` spans whose first index is a multiple of `alignment` (a power of two); dirty (warm) runs first.
  // first == kNoSpan: no free run fits.
  [[nodiscard]] RunPlace allocate(SpanIndex length, SpanIndex alignment, SpanIndex phase) noexcept {
    for (const bool dirty : {true, false}) {
      const SpanIndex found = find(length + (alignment - 1), dirty);
      if (found == kNoSpan) continue;
      const SpanIndex total = spans_[found].length;
      const std::uint64_t freed_at = spans_[found].freed_at;
      unlink(found);
      unmark(found, total);
      const SpanIndex lead = (alignment - ((found + phase) & (alignment - 1))) & (alignment - 1);
      if (lead != 0) link(found, lead, dirty, freed_at);
      const SpanIndex rest = total - lead - length;
      if (rest != 0) link(found + lead + length, rest, dirty, freed_at);
      mark_used(found + lead, length);
      return {found + lead, !dirty};
    }
    return {};
  }

  // Adds a run that nobody uses; merges it with equally dirty neighbours.
  void free(SpanIndex first, SpanIndex length, bool dirty, std::uint64_t now) noexcept {
    spans_[first].state = SpanState::kNone;
    if (const SpanIndex head = free_run_ending_at(first - 1); head != kNoSpan && spans_[head].dirty == dirty) {
      length += spans_[head].length;
      unlink(head);
      unmark(head, spans_[head].length);
      first = head;
    }
    const SpanIndex after = first + length;
    if (spans_[after].state == SpanState::kFreeRun && spans_[after].dirty == dirty) {
      const SpanIndex more = spans_[after].length;
      unlink(after);
      unmark(after, more);
      length += more;
    }
    link(first, length, dirty, now);
  }

  // Lengthens the run in use at `first` by `more` spans if a free run follows it. Returns whether it did; `zero` then says
  // whether the new spans read as zero.
  [[nodiscard]] bool extend(SpanIndex first, SpanIndex more, bool& zero) noexcept {
    const SpanIndex after = first + spans_[first].length;
    if (spans_[after].state != SpanState::kFreeRun || spans_[after].length < more) return false;
    const SpanIndex total = spans_[after].length;
    const bool dirty = spans_[after].dirty;
    const std::uint64_t freed_at = spans_[after].freed_at;
    unlink(after);
    unmark(after, total);
    if (total != more) link(after + more, total - more, dirty, freed_at);
    spans_[first].length += more;
    zero = !dirty;
    return true;
  }

  // Declares spans behind the frontier, or the front of a run, to be in use.
  void mark_used(SpanIndex first, SpanIndex length) noexcept {
    spans_[first].state = SpanState::kRun;
    spans_[first].length = length;
  }

  // A dirty run that became free before `before`, the largest bins first; kNoSpan if there is none.
  [[nodiscard]] SpanIndex oldest_dirty(std::uint64_t before) const noexcept {
    for (unsigned bin = kBins; bin-- > 0;)
      for (SpanIndex i = heads_[1][bin]; i != kNoSpan; i = spans_[i].next)
        if (spans_[i].freed_at <= before) return i;
    return kNoSpan;
  }
  // Takes a free run out of the table whole.
  SpanIndex remove(SpanIndex first) noexcept {
    const SpanIndex length = spans_[first].length;
    unlink(first);
    unmark(first, length);
    return length;
  }

  // Takes the free run that ends just before span `end` out of the table; returns its start, kNoSpan if there is none.
  [[nodiscard]] SpanIndex remove_before(SpanIndex end, SpanIndex begin) noexcept {
    const SpanIndex first = end > begin ? free_run_ending_at(end - 1) : kNoSpan;
    if (first != kNoSpan) (void)remove(first);
    return first;
  }

  [[nodiscard]] std::uint64_t dirty_spans() const noexcept { return free_spans_[1]; }
  [[nodiscard]] std::uint64_t clean_spans() const noexcept { return free_spans_[0]; }

  // The invariants above, over the spans [first, last).
  [[nodiscard]] bool check_invariants(SpanIndex first, SpanIndex last) const noexcept {
    std::uint64_t seen[2] = {0, 0};
    for (SpanIndex i = first; i < last; ++i) {
      if (spans_[i].state != SpanState::kFreeRun) continue;
      const SpanIndex length = spans_[i].length;
      if (length == 0 || i + length > last) return false;
      if (length > 1 && (spans_[i + length - 1].state != SpanState::kFreeTail || spans_[i + length - 1].first != i))
        return false;
      const SpanIndex after = i + length;
      if (after < last && spans_[after].state == SpanState::kFreeRun && spans_[after].dirty == spans_[i].dirty) return false;
      seen[spans_[i].dirty ? 1 : 0] += length;
      i += length - 1;
    }
    return seen[0] == free_spans_[0] && seen[1] == free_spans_[1];
  }

 private:
  static constexpr SpanIndex kExact = 64;  // lists of one length each, up to 4 MiB
  static constexpr unsigned kBins = 128;   // then four a doubling

  [[nodiscard]] static constexpr unsigned bin_of(SpanIndex length) noexcept {
    if (length <= kExact) return length - 1;
    const auto top = static_cast<unsigned>(std::bit_width(length)) - 1;  // 6 for 65…127
    const unsigned bin = kExact + (top - 6) * 4 + ((length >> (top - 2)) & 3);
    return bin < kBins ? bin : kBins - 1;
  }

  [[nodiscard]] SpanIndex find(SpanIndex length, bool dirty) const noexcept {
    const SpanIndex* heads = heads_[dirty ? 1 : 0];
    unsigned bin = bin_of(length);
    if (length > kExact) {  // runs in this list may be shorter
      for (SpanIndex i = heads[bin]; i != kNoSpan; i = spans_[i].next)
        if (spans_[i].length >= length) return i;
      ++bin;
    }
    for (unsigned w = bin / 64; w < kBins / 64; ++w) {
      const std::uint64_t bits =
          used_bins_[dirty ? 1 : 0][w] & (w == bin / 64 ? ~base::low_bits(bin % 64) : ~std::uint64_t{0});
      if (bits != 0) return heads[w * 64 + base::lowest_bit(bits)];
    }
    return kNoSpan;
  }

  [[nodiscard]] SpanIndex free_run_ending_at(SpanIndex last) const noexcept {
    if (spans_[last].state == SpanState::kFreeTail) return spans_[last].first;
    if (spans_[last].state == SpanState::kFreeRun && spans_[last].length == 1) return last;
    return kNoSpan;
  }

  void link(SpanIndex first, SpanIndex length, bool dirty, std::uint64_t freed_at) noexcept {
    SpanType& head = spans_[first];
    head.state = SpanState::kFreeRun;
    head.length = length;
    head.dirty = dirty;
    head.freed_at = freed_at;
    if (length > 1) {
      spans_[first + length - 1].state = SpanState::kFreeTail;
      spans_[first + length - 1].first = first;
    }
    const unsigned bin = bin_of(length);
    SpanIndex& list = heads_[dirty ? 1 : 0][bin];
    head.next = list;
    head.previous = kNoSpan;
    if (list != kNoSpan) spans_[list].previous = first;
    list = first;
    used_bins_[dirty ? 1 : 0][bin / 64] |= base::bit(bin % 64);
    free_spans_[dirty ? 1 : 0] += length;
  }

  void unlink(SpanIndex first) noexcept {
    const SpanType& head = spans_[first];
    const unsigned kind = head.dirty ? 1 : 0;
    const unsigned bin = bin_of(head.length);
    if (head.previous != kNoSpan)
      spans_[head.previous].next = head.next;
    else
      heads_[kind][bin] = head.next;
    if (head.next != kNoSpan) spans_[head.next].previous = head.previous;
    if (heads_[kind][bin] == kNoSpan) used_bins_[kind][bin / 64] &= ~base::bit(bin % 64);
    free_spans_[kind] -= head.length;
  }

  // Only the ends of a run carry a mark, so only they need to lose it.
  void unmark(SpanIndex first, SpanIndex length) noexcept {
    spans_[first].state = SpanState::kNone;
    spans_[first + length - 1].state = SpanState::kNone;
  }

  SpanType* spans_ = nullptr;
  SpanIndex heads_[2][kBins] = {};  // [dirty][bin]
  std::uint64_t used_bins_[2][kBins / 64] = {};
  std::uint64_t free_spans_[2] = {0, 0};
};

}  // namespace freehold::alloc
