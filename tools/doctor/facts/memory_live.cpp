// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/memory_live.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace freehold::doctor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kQuarters = 4;
constexpr double kLeastQuarter = 0.1;  // share of a site's bytes, in each quarter of the time: it grows all along
constexpr double kSoonFreed = 0.1;     // share of the time: no block that was freed was older
constexpr double kNeverFreed = 0.98;   // share of a site's bytes: what is freed beside that is chance

[[nodiscard]] bool is_large(const BlockSample& block) { return block.bytes >= kLargeBytes; }

// Blocks whose end would not have been seen are left out, and the others from the same stack count for them: those of
// another may live for longer.
class Weights {
 public:
  explicit Weights(const Recording& recording) {
    for (const BlockSample& block : recording.blocks) {
      Sums& sums = sums_[{block.stack, is_large(block)}];
      sums.all += block.weight;
      if (block.is_end_watched) sums.watched += block.weight;
    }
  }
  [[nodiscard]] double of(const BlockSample& block) const {
    if (!block.is_end_watched) return 0;
    const Sums& sums = sums_.at({block.stack, is_large(block)});
    return sums.watched > 0 ? block.weight * sums.all / sums.watched : 0;
  }

 private:
  struct Sums {
    double all = 0, watched = 0;
  };
  std::map<std::pair<StackId, bool>, Sums> sums_;
};

// How many of the allocations that a sample stands for live at once, and from when on. They were made since the thread's
// sample before it. Where they live for longer than that took, all of them do so in the end. Where they live for a shorter
// time, only those do that were made within one lifetime (Little's law). Else one block that a loop allocates and frees
// would, at the moment of a sample, be as many as the loop allocates between two samples.
class Copies {
 public:
  struct AtOnce {
    double began_s, ended_s, share;
  };
  // Pre: called for each thread's samples in the order of their beginnings.
  [[nodiscard]] AtOnce of(const BlockSample& block) {
    const double ended_s = block.ended_s.value_or(kNever);
    if (block.weight <= 1) return {block.began_s, ended_s, 1};
    const auto [last, is_first] = last_s_.try_emplace(block.thread, block.began_s);
    const double since_s = std::exchange(last->second, block.began_s);
    if (is_first || ended_s - block.began_s >= block.began_s - since_s) return {block.began_s, ended_s, 1};
    return {since_s, block.began_s, (ended_s - block.began_s) / (block.began_s - since_s)};
  }

 private:
  std::map<std::uint32_t, double> last_s_;  // by thread
};

// Says what becomes of blocks that come from one place, or through one stack.
struct Fate {
  double allocated = 0, kept = 0, in_mean = 0;
  std::array<double, kQuarters> kept_in{};  // by when it was allocated
  double oldest_freed = 0;                  // age at which a block was freed, of the recording's time

  [[nodiscard]] bool is_kept() const { return allocated > 0 && kept >= kNeverFreed * allocated; }
  // Each tenth block of a stack may leak, and the others be freed soon: what outlives all that was ever freed stays.
  [[nodiscard]] bool leaks_some() const { return kept > 0 && oldest_freed <= kSoonFreed; }
  [[nodiscard]] bool grows() const {
    return (is_kept() || leaks_some()) &&
           std::ranges::all_of(kept_in, [this](double part) { return part >= kLeastQuarter * kept; });
  }
};

// A place may be a function that all of the program allocates through: then its stacks tell more than it does.
struct LiveSums {
  StackTally stacks;
  Fate fate;
  std::map<std::pair<std::size_t, StackId>, Fate> through;  // of each process
  double at_peak = 0;

  [[nodiscard]] double in_mean_if(bool (Fate::*is)() const) const {
    if ((fate.*is)()) return fate.in_mean;
    double sum = 0;
    for (const auto& [stack, one] : through)
      if ((one.*is)()) sum += one.in_mean;
    return sum;
  }
};

struct Step {
  double at_s = 0;
  std::size_t process = 0;
  const BlockSample* block = nullptr;
  bool is_begin = false;
  double weight = 0;
  std::size_t site = 0;

  [[nodiscard]] double bytes() const { return (is_begin ? weight : -weight) * static_cast<double>(block->bytes); }
};

class Replay {
 public:
  Replay(std::span<const Evidence> processes, std::span<const double> moments, std::span<const double> weights,
         bool is_glibc, std::span<const double> ends)
      : processes_(processes), moments_(moments), weights_(weights), ends_(ends), is_glibc_(is_glibc), stacks_(processes) {}

  LiveHistory play() {
    collect();
    const double all_s = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    states_.resize(processes_.size());
    std::size_t next = 0, peak = 0;
    double live = 0;
    const auto advance = [&](double until) {
      for (; next < steps_.size() && steps_[next].at_s <= until; ++next) {
        apply(steps_[next]);
        live += steps_[next].bytes();
        // A block that begins at the moment at which another ends does not live together with it.
        const bool goes_on = next + 1 < steps_.size() && steps_[next + 1].at_s == steps_[next].at_s;
        if (goes_on || live <= result_.peak_bytes) continue;
        result_.peak_bytes = live;
        peak = next + 1;
      }
    };
    for (std::size_t i = 0; i < moments_.size(); ++i) {
      advance(moments_[i]);
      result_.at.push_back(state_at(moments_[i]));
      const double share = all_s > 0 ? weights_[i] / all_s : 0;
      result_.mean_bytes += share * std::max(live, 0.0);
      if (!sizes_.empty()) result_.mean_largest_block += share * static_cast<double>(*sizes_.rbegin());
      for (const auto& [stack, bytes] : live_through_) {
        const double in_mean = share * std::max(bytes, 0.0);
        LiveSums& sums = sites_[site_of_[stack]];
        sums.fate.in_mean += in_mean;
        sums.through[stack].in_mean += in_mean;
      }
    }
    advance(steps_.empty() ? 0 : steps_.back().at_s);
    result_.end_bytes = kept_bytes_;
    for (std::size_t i = 0; i < peak; ++i) sites_[steps_[i].site].at_peak += steps_[i].bytes();
    set_sites();
    return std::move(result_);
  }

 private:
  struct State {
    double bytes = 0, rounding = 0;
    std::map<std::uint64_t, const BlockSample*> mapped;
  };

  [[nodiscard]] double gone_s(std::size_t process) const { return ends_.empty() ? kNever : ends_[process]; }

  void collect() {
    for (std::size_t process = 0; process < processes_.size(); ++process) {
      const Recording& recording = processes_[process].recording;
      const Weights weights(recording);
      result_.dropped += recording.dropped;
      Copies copies;
      SeenBlocks seen{recording.pid, {}, recording.began_s, gone_s(process)};
      for (const BlockSample& block : recording.blocks) {
        seen.addresses.push_back(block.address);
        const double weight = weights.of(block);
        if (weight <= 0) continue;
        const StackIndex stack = stacks_.of(process, block.stack);
        const std::size_t site = stacks_.place(stack);
        const double bytes = weight * static_cast<double>(block.bytes);
        LiveSums& sums = sites_[site];
        sums.stacks[stack] += bytes;
        site_of_[{process, block.stack}] = site;
        for (Fate* const fate : {&sums.fate, &sums.through[{process, block.stack}]}) {
          fate->allocated += bytes;
          if (block.ended_s && recording.seconds > 0)
            fate->oldest_freed = std::max(fate->oldest_freed, (*block.ended_s - block.began_s) / recording.seconds);
          if (block.ended_s) continue;
          const double at = recording.seconds > 0 ? block.began_s / recording.seconds : 0;
          fate->kept += bytes;
          fate->kept_in[static_cast<std::size_t>(std::clamp(at * kQuarters, 0.0, kQuarters - 0.5))] += bytes;
        }
        if (!block.ended_s && seen.ended_s == kNever) kept_bytes_ += bytes;
        const auto [began_s, ended_s, share] = copies.of(block);
        steps_.push_back({recording.began_s + began_s, process, &block, true, share * weight, site});
        const double ends_s =
            block.ended_s ? recording.began_s + ended_s : std::max(seen.ended_s, recording.began_s + began_s);
        if (ends_s != kNever) steps_.push_back({ends_s, process, &block, false, share * weight, site});
      }
      std::ranges::sort(seen.addresses);
      result_.seen.push_back(std::move(seen));
    }
    std::ranges::sort(steps_, {}, [](const Step& step) { return std::pair(step.at_s, !step.is_begin); });
  }

  void apply(const Step& step) {
    const BlockSample& block = *step.block;
    State& state = states_[step.process];
    live_through_[{step.process, block.stack}] += step.bytes();
    if (is_large(block)) {
      if (step.is_begin)
        sizes_.insert(block.bytes);
      else
        sizes_.erase(sizes_.find(block.bytes));
    }
    if (is_glibc_ && is_mapped_by_glibc(block.address, block.bytes)) {
      if (step.is_begin)
        state.mapped[block.address] = &block;
      else if (const auto found = state.mapped.find(block.address); found != state.mapped.end() && found->second == &block)
        state.mapped.erase(found);
      return;
    }
    state.bytes += step.bytes();
    if (!is_glibc_) return;
    const auto more = static_cast<double>(glibc_chunk_bytes(block.bytes) - block.bytes);
    state.rounding += (step.is_begin ? step.weight : -step.weight) * more;
  }

  [[nodiscard]] std::vector<LiveData> state_at(double moment) const {
    std::vector<LiveData> all;
    for (std::size_t process = 0; process < processes_.size(); ++process) {
      const Recording& recording = processes_[process].recording;
      if (recording.began_s > moment || gone_s(process) <= moment) continue;
      const State& state = states_[process];
      LiveData live{recording.pid, std::max(state.bytes, 0.0), std::max(state.rounding, 0.0), {}, 0};
      for (const auto& [address, block] : state.mapped) {
        const std::uint64_t begin = address & ~(kPage - 1), end = (address + block->bytes + kPage - 1) & ~(kPage - 1);
        live.mapped.push_back({begin, end});
        live.mapped_rounding += static_cast<double>(end - begin - block->bytes);
      }
      all.push_back(std::move(live));
    }
    return all;
  }

  void set_sites() {
    for (const auto& [site, sums] : sites_) {
      if (sums.fate.allocated <= 0) continue;
      result_.sites.push_back({.place = place_of(stacks_, sums.stacks),
                               .at_peak = std::max(sums.at_peak, 0.0),
                               .in_mean = sums.fate.in_mean,
                               .kept = sums.in_mean_if(&Fate::is_kept),
                               .growing = sums.in_mean_if(&Fate::grows)});
    }
    std::ranges::sort(result_.sites, std::greater(), &LiveSite::at_peak);
  }

  std::span<const Evidence> processes_;
  std::span<const double> moments_, weights_, ends_;
  bool is_glibc_;
  Stacks stacks_;
  std::vector<Step> steps_;
  std::vector<State> states_;
  std::map<std::size_t, LiveSums> sites_;
  std::map<std::pair<std::size_t, StackId>, double> live_through_;
  std::map<std::pair<std::size_t, StackId>, std::size_t> site_of_;
  std::multiset<std::uint64_t> sizes_;  // of the large blocks that are live
  double kept_bytes_ = 0;
  LiveHistory result_;
};

}  // namespace

std::uint64_t glibc_chunk_bytes(std::uint64_t asked) noexcept {
  constexpr std::uint64_t kHeader = 8, kStep = 16, kLeast = 32;
  return std::max(kLeast, (asked + kHeader + kStep - 1) / kStep * kStep);
}

bool is_mapped_by_glibc(std::uint64_t address, std::uint64_t bytes) noexcept {
  return bytes >= kLargeBytes && address % kPage == 16;
}

std::vector<double> ends_of(std::span<const Evidence> processes, std::span<const MemorySnapshot> snapshots) {
  std::map<std::uint32_t, std::size_t> seen_last;
  for (std::size_t i = 0; i < snapshots.size(); ++i)
    for (const ProcessMemory& process : snapshots[i].processes) seen_last[process.pid] = i;
  std::vector<double> ends;
  for (const Evidence& process : processes) {
    const Recording& recording = process.recording;
    const auto seen = seen_last.find(recording.pid);
    double end = recording.began_s + recording.seconds;  // too short a life to be seen
    // At that moment it still has its blocks.
    if (seen != seen_last.end()) end = std::max(end, std::nextafter(snapshots[seen->second].at_s, kNever));
    if (seen != seen_last.end() && seen->second + 1 == snapshots.size()) end = kNever;
    // A program that executes another keeps its number, and none of its blocks.
    for (const Evidence& later : processes)
      if (later.recording.pid == recording.pid && later.recording.began_s > recording.began_s)
        end = std::min(end, later.recording.began_s);
    ends.push_back(end);
  }
  return ends;
}

LiveHistory live_history_of(std::span<const Evidence> processes, std::span<const double> moments,
                            std::span<const double> weights, bool is_glibc, std::span<const double> ends) {
  return Replay(processes, moments, weights, is_glibc, ends).play();
}

}  // namespace freehold::doctor
