// SPDX-License-Identifier: MIT
// How much free memory may stay resident: the one account of the engine's memory, and the one rule. Every part that takes or
// frees memory reports to it; excess() says by how much the rule is broken.
//
//   free and resident = slots of class spans that are free - their pages that went back + free spans that may hold pages
//                       + freed mappings that are kept
//   allowed           = kKeepBytes + used / 16 + min(regret, most) + pages that cannot go back
//                       near the kernel's limit of memory (set_ceiling()): a share of what is left, if that is less
//   most              = max(peak - used, used / 4, kRegretBytes - 3/4 used, with the purger thread 3/4 peak)
//
// The rule holds at every moment, not after a delay: a program that frees everything and then sleeps leaves little behind,
// although none of its threads runs. *Regret* makes that cheap for a program whose use rises and falls: memory that is asked
// for within a second of its return to the system adds twice its bytes, and seconds without that halve it. Regret is at most
// kRegretBytes; the peak, where the purger thread gives memory back in time; a sixteenth of kRegretBytes where that thread
// was refused. *Pages that cannot go back* hold free slots beside slots in use, as the last search found.
//
//   Invariant, at rest with all caches and shards flushed: the figures are exact sums over the spans.
//
// Any thread; every figure is a separate relaxed counter that publishes nothing. CPUs report runs through a Shard each, so
// that the counters' line is written once per kStep of change.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "freehold/alloc/observe/live_figures.hpp"
#include "freehold/base/bits.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config>
class Budget {
 public:
  using Bytes = typename A::template atomic<std::int64_t>;

  // One CPU's unreported changes.
  struct Shard {
    Bytes dirty{0};  // free spans that may hold pages
    Bytes runs{0};   // runs in use
  };

  constexpr Budget() noexcept = default;

  void slots_taken(std::int64_t bytes) noexcept { add(live_, bytes); }  // negative: given back
  void class_spans(std::int64_t bytes) noexcept {
    add(class_spans_, bytes);
    if (bytes > 0) note_growth(bytes);
  }
  void pages_returned(std::int64_t bytes) noexcept {
    add(returned_, bytes);
    if (bytes < 0) count_growth(-bytes);
  }
  void direct(std::int64_t bytes) noexcept {
    add(direct_, bytes);
    if (bytes > 0) note_growth(bytes);
  }
  void kept(std::int64_t bytes) noexcept { add(kept_, bytes); }

  // Returns whether the counters were brought up to date, so that a look at over() is worth while.
  bool spans_changed(Shard& shard, std::int64_t dirty, std::int64_t runs) noexcept {
    const bool reported = report(shard.dirty, dirty_, dirty) != 0;
    const std::int64_t change = report(shard.runs, runs_, runs);
    if (change == 0) return reported;
    note_growth(change);
    return true;
  }

  // Brings the counters up to date with a shard.
  void settle(Shard& shard) noexcept {
    if (get(shard.dirty) != 0) add(dirty_, shard.dirty.exchange(0, std::memory_order_relaxed));
    if (get(shard.runs) != 0) add(runs_, shard.runs.exchange(0, std::memory_order_relaxed));
  }

  // Memory was needed so soon after it went back. `now` in milliseconds.
  void regret(std::int64_t bytes, std::uint64_t now) noexcept {
    const std::int64_t peak = is_purged_in_time() ? get(peak_) : 0;
    const std::int64_t usual = get(regret_limit_), most = peak > usual ? peak : usual;
    const std::int64_t next = get(regret_) + 2 * bytes;
    regret_.store(next < most ? next : most, std::memory_order_relaxed);
    regretted_at_.store(now, std::memory_order_relaxed);
  }
  // Either moment may be a little later than the other: threads read the clock before they come here, and `purged_at` was
  // made odd, to differ from never.
  [[nodiscard]] static constexpr bool is_soon(std::uint32_t purged_at, std::uint64_t now) noexcept {
    return purged_at != 0 && static_cast<std::uint32_t>(now) - purged_at + kSoonMs < 2 * kSoonMs;
  }
  // Tells the budget whether the purger thread gives memory back after the delay, whatever the program does.
  void set_purged_in_time(bool is) noexcept {
    purged_in_time_.store(is, std::memory_order_relaxed);
    if (!is && get(regret_) > Config::kRegretBytes) regret_.store(Config::kRegretBytes, std::memory_order_relaxed);
  }
  // A program of several threads gets no purger thread: all of them may sleep from now on, so little of what one regretted
  // may stay.
  void limit_regret() noexcept {
    // Asked at each slow call of a process that has confined itself, whose threads all read this line.
    if (get(regret_limit_) != kRegretUnattended) regret_limit_.store(kRegretUnattended, std::memory_order_relaxed);
    if (get(regret_) > kRegretUnattended) regret_.store(kRegretUnattended, std::memory_order_relaxed);
  }
  // Nothing is kept for the sake of page faults from now on, until memory is regretted again.
  void drop_regret() noexcept { regret_.store(0, std::memory_order_relaxed); }
  [[nodiscard]] bool is_purged_in_time() const noexcept { return purged_in_time_.load(std::memory_order_relaxed); }
  // Halves the regret now and then.
  void forget(std::uint64_t now) noexcept {
    if (get(regret_) == 0 || now - regretted_at_.load(std::memory_order_relaxed) + kSoonMs < 2 * kSoonMs) return;
    regretted_at_.store(now, std::memory_order_relaxed);
    regret_.store(get(regret_) / 2, std::memory_order_relaxed);
  }

  // Free bytes in spans of classes, except pages that went back.
  [[nodiscard]] std::int64_t free_in_spans() const noexcept { return get(class_spans_) - get(live_) - get(returned_); }
  // The part of these that a search may still give back.
  [[nodiscard]] std::int64_t scattered() const noexcept { return free_in_spans() - stuck(); }
  // True if slots may stay free beside slots in use for the sake of cache lines: as much again as may be kept in any case.
  [[nodiscard]] bool may_scatter() const noexcept { return free_in_spans() <= allowance() + Config::kKeepBytes; }
  [[nodiscard]] std::int64_t in_use() const noexcept { return get(live_) + get(runs_) + get(direct_); }
  [[nodiscard]] std::int64_t dirty() const noexcept { return get(dirty_); }
  [[nodiscard]] std::int64_t slots_in_use() const noexcept { return get(live_); }
  // Memory that the program holds and that is kept for it: never more than what is resident, except untouched pages.
  [[nodiscard]] std::int64_t footprint() const noexcept {
    return get(class_spans_) - get(returned_) + get(runs_) + get(direct_) + get(dirty_) + get(kept_);
  }
  [[nodiscard]] std::int64_t allowance() const noexcept {
    const std::int64_t used = in_use();
    // While use has not fallen, memory that comes and goes is of no use to other sizes: a share of it is enough.
    const std::int64_t of_peak = is_purged_in_time() ? get(peak_) / 4 * 3 : 0;
    const std::int64_t most = std::max({get(peak_) - used, used / 4, Config::kRegretBytes - used / 4 * 3, of_peak});
    const std::int64_t usual = Config::kKeepBytes + used / Config::kKeepShare + std::min(get(regret_), most);
    if constexpr (kKnowsCeiling)
      if (const std::int64_t ceiling = get(ceiling_); ceiling != kNone) [[unlikely]] {
        const std::int64_t share = (ceiling - used - stuck()) / 4 * Config::kCeilingQuarters;
        return std::min(usual, std::max(share, Config::kLeastKeptBytes));
      }
    return usual;
  }

  // The footprint at which the kernel ends the process, as far as is known, and by how much memory may grow until the next
  // look at that.
  void set_ceiling(std::int64_t bytes, std::int64_t next_look) noexcept {
    ceiling_.store(bytes, std::memory_order_relaxed);
    until_look_.store(next_look, std::memory_order_relaxed);
  }
  // A look that was asked for from outside begins: one that is asked for from now on is another. seq_cst: before what is
  // asked is read.
  void begin_look_without_ceiling() noexcept {
    if (get(until_look_) != kNone) until_look_.exchange(kNone, std::memory_order_seq_cst);
  }
  void look_again() noexcept { until_look_.store(0, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t ceiling() const noexcept { return get(ceiling_); }
  // Returns whether a look is due before memory grows by `bytes`, at most. Never without a ceiling.
  [[nodiscard]] bool is_look_due(std::int64_t bytes) const noexcept { return bytes >= get(until_look_); }
  // Returns by how much the rule is broken; at most 0: it holds.
  [[nodiscard]] std::int64_t excess() noexcept {
    const std::int64_t scattered = free_in_spans();
    if (scattered < get(stuck_)) stuck_.store(scattered > 0 ? scattered : 0, std::memory_order_relaxed);
    return scattered - stuck() + get(dirty_) + get(kept_) - allowance();
  }
  // The figures reported so far; the caller adds those of the shards.
  struct Figures {
    std::int64_t live, class_spans, returned, dirty, runs, direct, kept;
  };
  [[nodiscard]] Figures figures() const noexcept {
    return {get(live_), get(class_spans_), get(returned_), get(dirty_), get(runs_), get(direct_), get(kept_)};
  }
  // Calls f(figure, its counter) for those that readers outside the process may want.
  template <class F>
  void for_each_live_figure(F&& f) const noexcept {
    f(LiveFigure::kSlotBytes, live_);
    f(LiveFigure::kClassSpanBytes, class_spans_);
    f(LiveFigure::kReturnedBytes, returned_);
    f(LiveFigure::kRunBytes, runs_);
    f(LiveFigure::kFreeDirtyBytes, dirty_);
    f(LiveFigure::kUntilLook, until_look_);
  }
  // So much of what the last search left can go back by now.
  void not_stuck(std::int64_t bytes) noexcept { stuck_.fetch_sub(bytes, std::memory_order_relaxed); }
  // A search found nothing more that can go back.
  void nothing_left() noexcept {
    stuck_.store(free_in_spans(), std::memory_order_relaxed);
    live_at_search_.store(get(live_), std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t kSoonMs = 1000;
  static constexpr std::int64_t kFreedWeight = 4;
  static constexpr std::int64_t kRegretUnattended = Config::kRegretBytes / 16;  // 4 MiB
  static constexpr std::int64_t kNone = INT64_MAX;
  static constexpr bool kKnowsCeiling = requires { Config::kCeilingQuarters; };  // the models leave it out
  static constexpr std::int64_t kStep = std::int64_t{1} << 20;

  // Bytes that cannot go back. Each byte freed since the search may have freed the rest of a page: it counts so many times,
  // so that a program that frees in any order is searched again each time it has freed a fifth.
  [[nodiscard]] std::int64_t stuck() const noexcept {
    const std::int64_t freed = get(live_at_search_) - get(live_);
    const std::int64_t still = get(stuck_) - (freed > 0 ? freed * kFreedWeight : 0);
    return still > 0 ? still : 0;
  }
  [[nodiscard]] static std::int64_t get(const Bytes& b) noexcept { return b.load(std::memory_order_relaxed); }
  static std::int64_t add(Bytes& b, std::int64_t bytes) noexcept {
    return b.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  }
  // Returns by how much the figure of all changed.
  static std::int64_t report(Bytes& mine, Bytes& all, std::int64_t bytes) noexcept {
    if (bytes == 0) return 0;
    const std::int64_t sum = add(mine, bytes);
    if (sum <= kStep && sum >= -kStep) return 0;
    const std::int64_t change = mine.exchange(0, std::memory_order_relaxed);
    add(all, change);
    return change;
  }
  // Counts memory that comes and goes, too: more looks than are needed.
  void count_growth(std::int64_t bytes) noexcept {
    if constexpr (kKnowsCeiling)
      if (bytes > 0 && get(until_look_) != kNone) [[unlikely]]
        add(until_look_, -bytes);
  }
  void note_growth(std::int64_t grown) noexcept {
    count_growth(grown);
    const std::int64_t bytes = get(class_spans_) + get(runs_) + get(direct_);
    if (bytes > get(peak_)) peak_.store(bytes, std::memory_order_relaxed);
  }

  alignas(base::kCacheLine) Bytes live_{0};  // slots that the caches took
  Bytes class_spans_{0}, returned_{0}, dirty_{0}, runs_{0}, direct_{0}, kept_{0};
  Bytes stuck_{0}, live_at_search_{0};
  alignas(base::kCacheLine) Bytes regret_{0};
  Bytes peak_{0}, regret_limit_{Config::kRegretBytes};
  Bytes ceiling_{kNone}, until_look_{kNone};
  typename A::template atomic<std::uint64_t> regretted_at_{0};
  typename A::template atomic<bool> purged_in_time_{false};
};

}  // namespace freehold::alloc
