// SPDX-License-Identifier: MIT
// The sampled blocks that are in use, by their addresses, and those that were in use when the estimate of all bytes in use
// was highest: a hash table, and a log.
//
//   place:   the block's address; 0: never used; 1: its sample was removed. A sample lies at one of kProbes places of its address:
//            kNeighbours that follow each other, since sampled blocks are neighbours, then scattered ones, since neighbourhoods
//            may meet. No place that comes before it was never used.
//   log:     samples removed or resized since the peak that were in use then. So the peak's set is: those in the table that are not younger
//            than the peak, and the log. A new peak empties the log; it never holds more samples than were in use.
//   changes: odd while a change is under way. Readers outside the process copy parts of the table between two changes, and
//            the log as far as it went, if the peak is still the same then (live_profile.hpp).
//   Invariant: live_bytes is the sum of estimated_bytes() over the table; peak_bytes its largest value so far. Entries of the
//   log do not change while peak_bytes does not.
//
// Changes are made under a lock: they are as rare as samples. find() takes none, since every free of a large block asks: it
// looks for the caller's own block, whose sample no other thread changes. Bounded: what finds no place is not sampled, and
// counted. Any thread. Cost of a find() that finds nothing: one load where no sampled block has ever been near, else some
// kNeighbours, at most kProbes.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/profile/byte_sampler.hpp"
#include "freehold/profile/live_profile.hpp"
#include "freehold/sync/atomics.hpp"
#include "freehold/sync/change_count.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::profile {

struct Sample {
  std::uintptr_t block = 0;            // at least 2
  std::uint64_t bytes = 0;             // that the program asked for
  std::uint64_t size = 0;              // that the sampler passed over for it: its slot's, or what was asked for
  std::uint64_t mean = 0;              // distance of samples then
  std::uint32_t origin = 0, home = 0;  // LivePlace's

  // In all blocks that this one stands for.
  [[nodiscard]] constexpr std::uint64_t estimated_bytes() const noexcept {
    return static_cast<std::uint64_t>(blocks_behind(size, mean) * static_cast<double>(bytes));
  }
};

template <sync::Atomics A>
class SampleTable {
 public:
  template <class T>
  using Word = typename A::template atomic<T>;
  struct Place {
    Word<std::uintptr_t> block{0};
    Word<std::uint64_t> bytes{0}, size{0}, mean{0}, birth{0};
    Word<std::uint32_t> origin{0}, home{0};
  };

  static constexpr std::size_t kNeighbours = 16, kProbes = 48;
  static constexpr unsigned kBlockShift = 16;  // sampled blocks begin at spans, so that neighbours have neighbouring places

  constexpr SampleTable() noexcept = default;

  // Memory that is all zero and stays. `places` is a power of two, at least kNeighbours; the log has as many entries. Before
  // the first other call.
  void init(Place* places, std::size_t count, Sample* log) noexcept {
    places_ = places;
    count_ = count;
    log_ = log;
  }
  [[nodiscard]] static constexpr std::size_t memory_bytes(std::size_t count) noexcept {
    return count * (sizeof(Place) + sizeof(Sample));
  }

  // A block that the program does not know yet. False: there is no place for it.
  bool insert(const Sample& sample) noexcept {
    const sync::Guard guard(lock_);
    const sync::Change change(changes_);
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      Place& place = place_of(sample.block, probe);
      if (get(place.block) > kRemoved) continue;
      put(place.bytes, sample.bytes);
      put(place.size, sample.size);
      put(place.mean, sample.mean);
      put(place.origin, sample.origin);
      put(place.home, sample.home);
      put(place.birth, ++sums_.births);
      put(place.block, sample.block);
      sums_.live_bytes += sample.estimated_bytes();
      note_peak();
      return true;
    }
    ++sums_.lost;
    return false;
  }

  // The sample of a block of the caller's. False: it is not sampled.
  [[nodiscard]] bool find(std::uintptr_t block, Sample& out) const noexcept {
    const Place* const place = look_for(block);
    if (place != nullptr) out = sample_at(*place);
    return place != nullptr;
  }

  // The same, and removes it: the block is about to be freed.
  [[nodiscard]] bool remove(std::uintptr_t block, Sample& out) noexcept {
    if (look_for(block) == nullptr) return false;
    const sync::Guard guard(lock_);
    const sync::Change change(changes_);
    Place* const place = look_for(block);  // again: another thread may free the same block by mistake
    if (place == nullptr) return false;
    out = sample_at(*place);
    sums_.live_bytes -= out.estimated_bytes();
    if (get(place->birth) <= sums_.peak_birth) log_[sums_.logged++] = out;
    put(place->block, kRemoved);
    return true;
  }

  // A block that was resized where it is: its sample from now on, which counts as another one if the former was in use when
  // most was. False: it is not sampled.
  bool resize(std::uintptr_t block, std::uint64_t bytes, Sample& sample) noexcept {
    if (look_for(block) == nullptr) return false;
    const sync::Guard guard(lock_);
    const sync::Change change(changes_);
    Place* const place = look_for(block);
    if (place == nullptr) return false;
    const Sample former = sample_at(*place);
    sums_.live_bytes -= former.estimated_bytes();
    if (get(place->birth) <= sums_.peak_birth) {
      log_[sums_.logged++] = former;
      put(place->birth, ++sums_.births);
    }
    put(place->bytes, bytes);
    sample = sample_at(*place);
    sums_.live_bytes += sample.estimated_bytes();
    note_peak();
    return true;
  }

  // Calls f(sample, is_in_use, was_in_use_at_peak) for each sample, under the lock.
  template <class F>
  void for_each(F&& f) noexcept {
    const sync::Guard guard(lock_);
    for (std::size_t i = 0; i < count_; ++i)
      if (get(places_[i].block) > kRemoved) f(sample_at(places_[i]), true, get(places_[i].birth) <= sums_.peak_birth);
    for (std::size_t i = 0; i < sums_.logged; ++i) f(log_[i], false, true);
  }

  struct Figures {
    std::uint64_t live_bytes = 0, peak_bytes = 0;  // estimates
    std::uint64_t sampled = 0, lost = 0;           // blocks since the beginning; those that found no place
  };
  [[nodiscard]] Figures figures() noexcept {
    const sync::Guard guard(lock_);
    return {sums_.live_bytes, sums_.peak_bytes, sums_.births, sums_.lost};
  }

  // In a fork's child: a thread that is not there may hold the lock.
  void after_fork_in_child() noexcept {
    lock_.reset();
    changes_.reset();
  }

  // Describes the table to readers outside the process. After init().
  void describe(LiveProfile& to) const noexcept {
    static_assert(sizeof(Sample) == sizeof(LiveSample));
    to.places = reinterpret_cast<std::uintptr_t>(places_);
    to.place_count = count_;
    to.log = reinterpret_cast<std::uintptr_t>(log_);
    to.sums = reinterpret_cast<std::uintptr_t>(&sums_);
  }
  [[nodiscard]] const sync::ChangeCount<A>& changes() const noexcept { return changes_; }

 private:
  static constexpr std::uintptr_t kNeverUsed = 0, kRemoved = 1;

  // Relaxed, all: places change under the lock, and a thread without it looks for its own block only. The thread that gave
  // it the block ordered what was written before; the places on the way there were used then, and stay so.
  template <class T>
  [[nodiscard]] static T get(const Word<T>& word) noexcept {
    return word.load(std::memory_order_relaxed);
  }
  template <class T>
  static void put(Word<T>& word, T value) noexcept {
    word.store(value, std::memory_order_relaxed);
  }

  [[nodiscard]] Place& place_of(std::uintptr_t block, std::size_t probe) const noexcept {
    constexpr std::uint64_t kGolden = 0x9E37'79B9'7F4A'7C15;  // Knuth's multiplicative hash
    const std::uint64_t span = block >> kBlockShift;
    const std::uint64_t number = probe < kNeighbours ? span + probe : (span * kProbes + probe) * kGolden >> 32;
    return places_[number & (count_ - 1)];
  }
  [[nodiscard]] Place* look_for(std::uintptr_t block) const noexcept {
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      Place& place = place_of(block, probe);
      const std::uintptr_t there = get(place.block);
      if (there == block) return &place;
      if (there == kNeverUsed) return nullptr;
    }
    return nullptr;
  }
  [[nodiscard]] static Sample sample_at(const Place& place) noexcept {
    return {get(place.block), get(place.bytes), get(place.size), get(place.mean), get(place.origin), get(place.home)};
  }
  void note_peak() noexcept {
    if (sums_.live_bytes <= sums_.peak_bytes) return;
    sums_.peak_bytes = sums_.live_bytes;
    sums_.peak_birth = sums_.births;
    sums_.logged = 0;
  }

  Place* places_ = nullptr;
  std::size_t count_ = 0;

  // Under the lock.
  Sample* log_ = nullptr;
  LiveSums sums_;
  sync::ChangeCount<A> changes_;
  sync::Mutex<A> lock_;
};

}  // namespace freehold::profile
