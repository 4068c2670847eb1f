// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/attribution.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "tools/doctor/facts/estimate.hpp"

namespace freehold::doctor {
namespace {

double share(double part, double whole) { return whole > 0 ? std::min(part / whole, 1.0) : 0; }

// A total of weighted samples and how far it may be off: the calls' number is known, what one costs is estimated.
class WeightedSum {
 public:
  void add(double weight, double value) {
    weights_ += weight;
    sum_ += weight * value;
    squared_weights_ += weight * weight;
    cross_ += weight * weight * value;
    squares_ += weight * weight * value * value;
  }
  [[nodiscard]] double weights() const { return weights_; }
  [[nodiscard]] double sum() const { return sum_; }
  [[nodiscard]] double error() const {
    if (weights_ <= 0) return 0;
    const double mean = sum_ / weights_;
    return std::sqrt(std::max(squares_ - 2 * mean * cross_ + mean * mean * squared_weights_, 0.0));
  }

 private:
  double weights_ = 0, sum_ = 0, squared_weights_ = 0, cross_ = 0, squares_ = 0;
};

class CallTimeSum {
 public:
  template <class Sample>  // BlockSample or FreeSample
  void add(const Sample& sample) {
    cpu_.add(sample.weight, std::max(sample.call_ns / 1e9 - sample.waited_s - sample.preempted_s, 0.0));
    blocked_.add(sample.weight, sample.waited_s);
  }
  [[nodiscard]] CallTime result() const {
    return {.calls = cpu_.weights(),
            .cpu_s = cpu_.sum(),
            .blocked_s = blocked_.sum(),
            .cpu_s_error = cpu_.error(),
            .blocked_s_error = blocked_.error()};
  }

 private:
  WeightedSum cpu_, blocked_;
};

using Weighted = std::pair<double, double>;  // value, weight

double weighted_median(std::vector<Weighted> values) {
  std::ranges::sort(values);
  double all = 0, below = 0;
  for (const auto& [value, weight] : values) all += weight;
  for (const auto& [value, weight] : values) {
    below += weight;
    if (below >= all / 2) return value;
  }
  return 0;
}

// The sums of a site before it is put in order.
struct SiteSums {
  StackTally stacks;
  CallTimeSum time;
  double bytes = 0, ended = 0, ended_elsewhere = 0, live_at_peak = 0;
  std::vector<Weighted> sizes, lifetimes;
  std::size_t samples = 0;
  bool is_one_size = true;
};

class Attributor {
 public:
  explicit Attributor(std::span<const Evidence> processes) : processes_(processes), stacks_(processes) {}

  Attribution attribute() {
    if (processes_.empty()) return {};
    set_span();
    each_process([&](const Recording& recording, std::size_t) { add_threads(recording); });
    set_watched_factors();
    each_process([&](const Recording& recording, std::size_t process) {
      for (const BlockSample& block : recording.blocks) add_block(block, process);
      for (const FreeSample& call : recording.frees) freeing_.add(call);
      for (const WaitSample& wait : recording.waits) add_wait(wait, process);
    });
    set_times();
    set_history();
    set_histograms();
    set_waits();
    set_remote();
    set_sharing();
    set_sites();
    return std::move(result_);
  }

 private:
  template <class Visit>
  void each_process(const Visit& visit) {
    for (std::size_t i = 0; i < processes_.size(); ++i) visit(processes_[i].recording, i);
  }

  void set_span() {
    double end = 0;
    first_s_ = std::numeric_limits<double>::max();
    each_process([&](const Recording& recording, std::size_t) {
      first_s_ = std::min(first_s_, recording.began_s);
      end = std::max(end, recording.began_s + recording.seconds);
    });
    result_.processes = processes_.size();
    result_.seconds = end - first_s_;
  }
  [[nodiscard]] double begin_of(std::size_t process) const { return processes_[process].recording.began_s - first_s_; }

  void add_threads(const Recording& recording) {
    double cpu_s = 0, probe_s = 0;
    for (const auto& [id, thread] : recording.threads) {
      cpu_s += thread.cpu_s;
      probe_s += thread.probe_s + recording.fast_path_ns / 1e9 * static_cast<double>(thread.allocations + thread.frees);
      result_.thread_s += thread.last_s - thread.began_s;
    }
    measured_cpu_s_ += recording.cpu_s > 0 ? recording.cpu_s : cpu_s;
    probe_s_ += probe_s;
    result_.threads += recording.threads.size();
    result_.dropped += recording.dropped;
    result_.mapped_bytes += recording.mapped_bytes;
    result_.mapping_s += recording.mapping_s;
    result_.samples += recording.blocks.size() + recording.frees.size() + recording.waits.size();
  }

  // Blocks whose end is watched stand for the others of their kind, too.
  void set_watched_factors() {
    double all[2] = {}, watched[2] = {};
    each_process([&](const Recording& recording, std::size_t) {
      for (const BlockSample& block : recording.blocks) {
        all[is_large(block)] += block.weight;
        if (block.is_end_watched) watched[is_large(block)] += block.weight;
      }
    });
    for (const bool large : {false, true}) watched_factor_[large] = watched[large] > 0 ? all[large] / watched[large] : 0;
  }
  [[nodiscard]] static bool is_large(const BlockSample& block) { return block.bytes >= kLargeBytes; }
  [[nodiscard]] double watched_weight(const BlockSample& block) const {
    return block.is_end_watched ? block.weight * watched_factor_[is_large(block)] : 0;
  }

  void add_block(const BlockSample& block, std::size_t process) {
    allocating_.add(block);
    const StackIndex stack = stacks_.of(process, block.stack);
    SiteSums& site = sites_[stacks_.place(stack)];
    site.stacks[stack] += block.weight;
    site.time.add(block);
    const auto bytes = static_cast<double>(block.bytes);
    site.is_one_size = site.is_one_size && (site.sizes.empty() || site.sizes.front().first == bytes);
    site.sizes.emplace_back(bytes, block.weight);
    site.bytes += block.weight * bytes;
    ++site.samples;
    auto& bin = sizes_[std::bit_ceil(std::max<std::uint64_t>(block.bytes, 1))];
    bin.allocations += block.weight;
    bin.bytes += block.weight * bytes;
    if (block.is_end_watched) add_end(block, process, site);
  }

  void add_end(const BlockSample& block, std::size_t process, SiteSums& site) {
    const double lifetime = block.ended_s ? *block.ended_s - block.began_s : std::numeric_limits<double>::infinity();
    site.lifetimes.emplace_back(lifetime, block.weight);
    if (!block.ended_s) {
      result_.live_at_exit += watched_weight(block);
      return;
    }
    lifetimes_[std::max(static_cast<int>(std::ceil(std::log10(std::max(lifetime, 1e-9)) - 1e-9)), kShortestLifetime)] +=
        watched_weight(block);
    site.ended += block.weight;
    ended_ += block.weight;
    if (block.ending_thread == block.thread) return;
    site.ended_elsewhere += block.weight;
    ended_elsewhere_ += block.weight;
    const StackIndex stack = stacks_.of(process, block.ending_stack);
    remote_sites_[{stacks_.place(stacks_.of(process, block.stack)), stacks_.place(stack)}][stack] += block.weight;
    remote_threads_[{block.thread, block.ending_thread}] += block.weight;
  }

  void add_wait(const WaitSample& wait, std::size_t process) {
    const StackIndex stack = stacks_.of(process, wait.stack);
    WaitSums& sums = waits_[{stacks_.place(stack), wait.kind}];
    const double seconds = wait.weight * wait.waited_s;
    sums.stacks[stack] += seconds;
    sums.seconds += seconds;
    sums.count += wait.weight;
    (is_idleness(wait.kind) ? result_.idle_s : result_.lock_wait_s) += seconds;
  }

  void set_times() {
    Attribution& to = result_;
    to.allocating = allocating_.result();
    to.freeing = freeing_.result();
    to.cpu_s = std::max(measured_cpu_s_ - probe_s_, 0.0);
    to.probe_share = share(probe_s_, measured_cpu_s_);
    if (to.seconds > 0) {
      to.allocations_per_s = to.allocating.calls / to.seconds;
      to.frees_per_s = to.freeing.calls / to.seconds;
    }
    to.cpu_share = share(to.allocating.cpu_s + to.freeing.cpu_s, to.cpu_s);
    to.cpu_share_error = share(error_of_sum(to.allocating.cpu_s_error, to.freeing.cpu_s_error), to.cpu_s);
    to.blocked_share = share(to.allocating.blocked_s + to.freeing.blocked_s, to.thread_s);
    to.blocked_share_error = share(error_of_sum(to.allocating.blocked_s_error, to.freeing.blocked_s_error), to.thread_s);
    to.lock_wait_share = share(to.lock_wait_s, to.thread_s);
    to.idle_share = share(to.idle_s, to.thread_s);
  }

  // The block's beginning or end, as a step of what is held.
  struct Step {
    double at_s, bytes;
    double allocations;
    std::size_t site;
  };
  [[nodiscard]] std::vector<Step> steps() {
    std::vector<Step> steps;
    each_process([&](const Recording& recording, std::size_t process) {
      for (const BlockSample& block : recording.blocks) {
        const std::size_t site = stacks_.place(stacks_.of(process, block.stack));
        const double begin = begin_of(process), bytes = watched_weight(block) * static_cast<double>(block.bytes);
        steps.push_back({begin + block.began_s, bytes, block.weight, site});
        if (block.ended_s) steps.push_back({begin + *block.ended_s, -bytes, 0, site});
      }
    });
    // Beginnings come first among steps at the same moment.
    std::ranges::sort(steps, {}, [](const Step& step) { return std::pair(step.at_s, -step.bytes); });
    return steps;
  }

  void set_history() {
    if (result_.seconds <= 0) return;
    const std::vector<Step> all = steps();
    const double interval = result_.seconds / kHistoryPoints;
    double live = 0;
    std::size_t next = 0, peak = 0;
    for (std::size_t i = 0; i < kHistoryPoints; ++i) {
      double allocations = 0;
      const double until =
          i + 1 == kHistoryPoints ? std::numeric_limits<double>::infinity() : interval * static_cast<double>(i + 1);
      for (; next < all.size() && all[next].at_s < until; ++next) {
        live += all[next].bytes;
        allocations += all[next].allocations;
        if (live <= result_.peak_live_bytes) continue;
        result_.peak_live_bytes = live;
        peak = next + 1;
      }
      result_.history.push_back({.at_s = interval * static_cast<double>(i + 1),
                                 .live_bytes = std::max(live, 0.0),
                                 .allocations_per_s = allocations / interval});
    }
    result_.live_bytes_at_end = std::max(live, 0.0);
    for (const Step& step : std::span(all).first(peak)) sites_[step.site].live_at_peak += step.bytes;
  }

  void set_histograms() {
    for (const auto& [most, bin] : sizes_) result_.sizes.push_back({most, bin.allocations, bin.bytes});
    for (const auto& [exponent, blocks] : lifetimes_) result_.lifetimes.push_back({std::pow(10.0, exponent), blocks});
  }

  void set_waits() {
    for (const auto& [key, sums] : waits_) {
      const WaitKind kind = key.second;
      (is_idleness(kind) ? result_.idle_waits : result_.lock_waits)
          .push_back({.place = place_of(stacks_, sums.stacks),
                      .kind = kind,
                      .count = sums.count,
                      .seconds = sums.seconds,
                      .share = share(sums.seconds, result_.thread_s)});
    }
    for (auto* rows : {&result_.idle_waits, &result_.lock_waits})
      std::ranges::sort(*rows, std::greater(), &WaitSite::seconds);
  }

  // `site` of the rows is a place's number until set_sites() knows better.
  void set_remote() {
    result_.remote_share = share(ended_elsewhere_, ended_);
    for (const auto& [places, tally] : remote_sites_) {
      double frees = 0;
      for (const auto& [stack, weight] : tally) frees += weight;
      result_.remote_sites.push_back({.site = places.first,
                                      .freed_at = place_of(stacks_, tally),
                                      .frees = frees,
                                      .share = share(frees, ended_elsewhere_)});
    }
    for (const auto& [threads, frees] : remote_threads_)
      result_.remote_threads.push_back({threads.first, threads.second, frees, share(frees, ended_elsewhere_)});
    keep_top(result_.remote_sites, &RemoteSites::frees);
    keep_top(result_.remote_threads, &RemoteThreads::frees);
  }
  template <class Row, class Key>
  static void keep_top(std::vector<Row>& rows, Key Row::* by) {
    std::ranges::sort(rows, std::greater(), by);
    if (rows.size() > kTopRows) rows.resize(kTopRows);
  }

  void set_sharing() {
    struct Pair {
      StackTally stacks[2];
      std::uint64_t bytes[2];
      std::set<std::pair<std::size_t, std::uint64_t>> lines, for_long;  // of which process
    };
    std::map<std::pair<std::size_t, std::size_t>, Pair> pairs;
    std::set<std::pair<std::size_t, std::uint64_t>> watched, for_long;
    each_process([&](const Recording& recording, std::size_t process) {
      result_.lines_watched += recording.lines_watched;
      for (const SharedLine& shared : recording.shared_lines) {
        if (has_common_user(shared)) continue;
        std::size_t order[2] = {0, 1};
        StackIndex stacks[2];
        for (const std::size_t i : order) stacks[i] = stacks_.of(process, shared.stacks[i]);
        if (stacks_.place(stacks[1]) < stacks_.place(stacks[0])) std::swap(order[0], order[1]);
        Pair& pair = pairs[{stacks_.place(stacks[order[0]]), stacks_.place(stacks[order[1]])}];
        for (std::size_t i = 0; i < 2; ++i) {
          pair.stacks[i][stacks[order[i]]] += 1;
          pair.bytes[i] = shared.bytes[order[i]];
        }
        const std::pair line{process, shared.line};
        pair.lines.insert(line);
        if (shared.is_in_watched) watched.insert(line);
        if (shared.together_s < kLongShare * recording.seconds) continue;
        pair.for_long.insert(line);
        for_long.insert(line);
      }
    });
    result_.lines_shared = watched.size();
    result_.shared_line_share = share(static_cast<double>(watched.size()), static_cast<double>(result_.lines_watched));
    result_.lines_shared_for_long = for_long.size();
    for (const auto& [places, pair] : pairs)
      result_.sharing.push_back({.places = {place_of(stacks_, pair.stacks[0]), place_of(stacks_, pair.stacks[1])},
                                 .bytes = {pair.bytes[0], pair.bytes[1]},
                                 .lines = pair.lines.size(),
                                 .lines_for_long = pair.for_long.size()});
    keep_top(result_.sharing, &SharingSites::lines);
  }

  void set_sites() {
    const double freeing = result_.freeing.cpu_s + result_.freeing.blocked_s;
    const double all = result_.allocating.cpu_s + result_.allocating.blocked_s + freeing;
    std::vector<std::pair<std::size_t, AllocationSite>> made;  // with their places
    for (const auto& [place, sums] : sites_) {
      AllocationSite site;
      site.place = place_of(stacks_, sums.stacks);
      site.time = sums.time.result();
      site.time_share = share(site.time.cpu_s + site.time.blocked_s + freeing * share(sums.ended, ended_), all);
      site.bytes = sums.bytes;
      site.freed_elsewhere = share(sums.ended_elsewhere, sums.ended);
      site.typical_bytes = weighted_median(sums.sizes);
      site.fixed_size = sums.is_one_size && sums.samples >= kSamplesOfFixedSize;
      if (!sums.lifetimes.empty())
        if (const double median = weighted_median(sums.lifetimes); std::isfinite(median)) site.median_lifetime_s = median;
      site.live_bytes_at_peak = std::max(sums.live_at_peak, 0.0);
      site.samples = sums.samples;
      made.emplace_back(place, std::move(site));
    }
    std::ranges::sort(made, std::greater(), [](const auto& of) { return of.second.time_share; });
    std::map<std::size_t, std::size_t> rows;
    for (auto& [place, site] : made) {
      rows[place] = result_.sites.size();
      result_.sites.push_back(std::move(site));
    }
    for (RemoteSites& remote : result_.remote_sites) remote.site = rows.at(remote.site);
  }

  static constexpr int kShortestLifetime = -6;  // as a power of ten: a microsecond, the clocks' own doubt

  struct WaitSums {
    StackTally stacks;
    double seconds = 0, count = 0;
  };

  std::span<const Evidence> processes_;
  Stacks stacks_;
  Attribution result_;
  double first_s_ = 0, measured_cpu_s_ = 0, probe_s_ = 0;
  double watched_factor_[2] = {};  // small, large
  CallTimeSum allocating_, freeing_;
  double ended_ = 0, ended_elsewhere_ = 0;
  std::map<std::size_t, SiteSums> sites_;  // by place
  std::map<std::uint64_t, SizeBin> sizes_;
  std::map<int, double> lifetimes_;  // by power of ten
  std::map<std::pair<std::size_t, WaitKind>, WaitSums> waits_;
  std::map<std::pair<std::size_t, std::size_t>, StackTally> remote_sites_;  // by places
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> remote_threads_;
};

}  // namespace

Attribution attribution_of(std::span<const Evidence> processes) { return Attributor(processes).attribute(); }

Attribution attribution_of(const Recording& recording, Symbols& symbols) {
  const Evidence evidence{recording,
                          [&](std::uint64_t address) -> const std::vector<Frame>& { return symbols.frames(address); }};
  return attribution_of(std::span(&evidence, 1));
}

}  // namespace freehold::doctor
