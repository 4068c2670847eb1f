// SPDX-License-Identifier: MIT
#include "tools/live/pins.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <map>

#include "freehold/os/pages.hpp"
#include "tools/live/figures.hpp"

namespace freehold::live {
namespace {
using alloc::LiveDirectory;
using alloc::LiveTables;

// A damaged process must not make us allocate or loop without end.
constexpr std::size_t kMostThreads = 100'000;
constexpr std::uint64_t kMostCached = std::uint64_t{1} << 22;  // slots that threads' caches hold
constexpr std::uint64_t kMostWords = std::uint64_t{1} << 23;   // of free bits
constexpr std::uint64_t kMostSpans = std::uint64_t{1} << 26;
constexpr std::uint32_t kMostRecordBytes = 64 << 10, kMostSpanBytes = 1 << 20, kLeastSlotBytes = 16;

// The free slots of a span, also those that threads' caches hold.
struct Span {
  std::uint8_t size_class = 0;
  std::vector<std::uint64_t> free;
  [[nodiscard]] bool is_free(std::uint64_t slot) const { return (free[slot / 64] >> slot % 64 & 1) != 0; }
};

class Pins {
 public:
  Pins(LiveMemory& memory, std::uint64_t directory) : memory_(memory), directory_(directory) {}

  bool find(std::vector<PinningBlock>& blocks) {
    if (!read_layout()) return false;
    for (const PinningBlock& block : blocks)
      if (const auto span = span_of(block); span < classes_.size()) spans_[span];
    if (!read_spans() || !add_cached()) return false;
    for (PinningBlock& block : blocks) find(block);
    return true;
  }

 private:
  bool read_layout() {
    const auto figures = read_live_figures(memory_, directory_);
    if (!figures || !memory_.read(directory_ + offsetof(LiveDirectory, tables), tables_)) return false;
    const alloc::LiveClasses& layout = tables_.classes;
    std::uint64_t spans = 0;
    if (tables_.bytes != sizeof tables_ || layout.count == 0 || layout.count > alloc::kMostLiveClasses ||
        tables_.threads.record_bytes > kMostRecordBytes || layout.span_bytes > kMostSpanBytes ||
        layout.span_bytes < os::page_bytes() || !memory_.read(layout.span_count, spans) || spans > kMostSpans)
      return false;
    for (std::size_t c = 1; c < layout.count; ++c)
      if (layout.slot_bytes[c] < kLeastSlotBytes || layout.slot_bytes[c] > layout.span_bytes) return false;
    base_ = (*figures)[LiveFigure::kArenaBase].value_or(0);
    classes_.resize(spans);
    return base_ != 0 && memory_.read(layout.span_classes, classes_);
  }

  // A home is the slot's place from the arena's begin on, in units of 16 bytes, and 1 more.
  [[nodiscard]] static std::uint64_t offset_of(const PinningBlock& block) { return (block.home - 1) * 16; }
  // None: a number that no span has.
  [[nodiscard]] std::uint64_t span_of(const PinningBlock& block) const {
    return block.home == 0 ? kMostSpans : offset_of(block) / span_bytes();
  }
  [[nodiscard]] std::uint64_t span_bytes() const { return tables_.classes.span_bytes; }
  [[nodiscard]] std::uint64_t slot_bytes(std::uint8_t c) const { return tables_.classes.slot_bytes[c]; }

  bool read_spans() {
    const alloc::LiveClasses& layout = tables_.classes;
    std::uint64_t words_left = kMostWords;
    for (auto at = spans_.begin(); at != spans_.end(); ++at) {
      auto& [number, span] = *at;
      const std::uint8_t c = classes_[number];
      if (c == 0 || c >= layout.count) continue;
      const std::uint64_t count = (span_bytes() / slot_bytes(c) + 63) / 64;
      if (count > words_left) {  // the homes there are not known then
        spans_.erase(at, spans_.end());
        return true;
      }
      words_left -= count;
      span.size_class = c;
      span.free.resize(count);
      const auto& [words, stride] = layout.tables[slot_bytes(c) >= layout.few_words_from ? 1 : 0];
      if (!memory_.read(words + number * stride, span.free)) return false;
    }
    return true;
  }

  // Threads that end now, or use their caches, make a difference of some slots.
  bool add_cached() {
    const alloc::LiveThreads& layout = tables_.threads;
    std::vector<std::byte> record(layout.record_bytes);
    std::uint64_t address = 0;
    if (!memory_.read(layout.first, address)) return false;
    for (std::size_t n = 0; address != 0 && n < kMostThreads && memory_.read(address, record); ++n) {
      for (std::size_t c = 1; c < tables_.classes.count; ++c) {
        const std::size_t bin = layout.bins + c * layout.bin_stride;
        const auto array = at<std::uint64_t>(record, bin + layout.bin_array) + sizeof(std::uint64_t);
        const auto top = at<std::uint64_t>(record, layout.tops + c * sizeof(std::uint64_t));
        if (array == sizeof(std::uint64_t) || top <= array) continue;
        const std::uint64_t entries = (top - array) / sizeof(std::uint64_t);
        if (entries > at<std::uint16_t>(record, bin + layout.bin_capacity) || entries > cached_left_) continue;
        std::vector<std::uint64_t> slots(entries);
        cached_left_ -= entries;
        if (!memory_.read(array, slots)) continue;
        for (const std::uint64_t slot : slots) add_cached(slot - base_, static_cast<std::uint8_t>(c));
      }
      address = at<std::uint64_t>(record, layout.next);
    }
    return true;
  }
  void add_cached(std::uint64_t offset, std::uint8_t c) {
    const auto span = spans_.find(offset / span_bytes());
    if (span == spans_.end() || span->second.size_class != c) return;
    const std::uint64_t slot = offset % span_bytes() / slot_bytes(c);
    if (slot / 64 < span->second.free.size()) span->second.free[slot / 64] |= std::uint64_t{1} << slot % 64;
  }
  template <class T>
  static T at(const std::vector<std::byte>& record, std::size_t offset) {
    T value{};
    if (offset + sizeof(T) <= record.size()) std::memcpy(&value, record.data() + offset, sizeof(T));
    return value;
  }

  void find(PinningBlock& block) const {
    const auto found = spans_.find(span_of(block));
    if (found == spans_.end() || block.size < kLeastSlotBytes || block.size > span_bytes()) return;
    const Span& span = found->second;
    const std::uint64_t offset = offset_of(block) % span_bytes(), slot = offset / block.size,
                        slots = span_bytes() / block.size;
    if (slot >= slots) return;
    block.is_known = true;
    // If the span serves another size by now, nothing has kept it: the block would be alone there.
    const bool is_alone = span.size_class == 0 || slot_bytes(span.size_class) != block.size;
    const std::uint64_t page = os::page_bytes(), begin = slot * block.size, end = begin + block.size;
    for (std::uint64_t at = begin / page * page; at < end; at += page) {
      std::uint64_t free = 0;
      std::uint32_t others = 0;
      for (std::uint64_t i = at / block.size; i < slots && i * block.size < at + page; ++i) {
        if (i == slot) continue;
        if (is_alone || span.is_free(i))
          free += std::min(at + page, (i + 1) * block.size) - std::max(at, i * block.size);
        else
          ++others;
      }
      add(block.page, free, others);
    }
    std::uint64_t free = slots;
    if (!is_alone) {
      free = 0;
      for (const std::uint64_t word : span.free) free += static_cast<std::uint64_t>(std::popcount(word));
    }
    const std::uint64_t others_free = std::min(free, slots) - (is_alone || span.is_free(slot) ? 1 : 0);
    add(block.span, others_free * block.size, static_cast<std::uint32_t>(slots - 1 - others_free));
  }
  static void add(PinningBlock::Kept& to, std::uint64_t free, std::uint32_t others) {
    to.free_bytes += free;
    to.others += others;
    to.part += static_cast<double>(free) / (others + 1);
  }

  LiveMemory& memory_;
  std::uint64_t directory_;
  LiveTables tables_{};
  std::uint64_t base_ = 0, cached_left_ = kMostCached;
  std::vector<std::uint8_t> classes_;  // of all spans
  std::map<std::uint64_t, Span> spans_;
};

}  // namespace

bool find_pinned(LiveMemory& memory, std::uint64_t directory, std::vector<PinningBlock>& blocks) {
  return Pins(memory, directory).find(blocks);
}

}  // namespace freehold::live
