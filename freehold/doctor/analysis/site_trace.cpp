// SPDX-License-Identifier: MIT
#include "freehold/doctor/analysis/site_trace.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace freehold::doctor {
namespace {

// The samples of one site in one process.
struct SiteSamples {
  double recorded_s = 0;
  std::vector<const BlockSample*> blocks;  // in the order of their beginnings
  double weight = 0;
};

SiteSamples samples_of(const Evidence& process, const Frame& site) {
  SiteSamples samples;
  samples.recorded_s = process.recording.seconds;
  std::map<StackId, bool> known;
  for (const BlockSample& block : process.recording.blocks) {
    const auto [stack, is_new] = known.try_emplace(block.stack);
    if (is_new) stack->second = is_same_site(site_of(process, block.stack), site);
    if (!stack->second) continue;
    samples.blocks.push_back(&block);
    samples.weight += block.weight;
  }
  return samples;
}

constexpr double kNever = std::numeric_limits<double>::infinity();

// Calls visit(begin_s, end_s, sample) for every allocation that the samples stand for.
template <class Visit>
void each_allocation(const SiteSamples& samples, const Visit& visit) {
  std::map<std::uint32_t, double> last_s;  // of each thread
  double usual_life_s = 0;
  for (const BlockSample* const block : samples.blocks) {
    const auto last = last_s.try_emplace(block->thread, block->began_s).first;
    double life_s = block->ended_s ? *block->ended_s - block->began_s : kNever;
    if (block->is_end_watched)
      usual_life_s = life_s;
    else
      life_s = usual_life_s;
    const auto copies = std::max(1LL, std::llround(block->weight));
    const double step_s = (block->began_s - last->second) / static_cast<double>(copies);
    for (long long i = 1; i <= copies; ++i) {
      const double begin_s = last->second + step_s * static_cast<double>(i);
      visit(begin_s, begin_s + life_s, *block);
    }
    last->second = block->began_s;
  }
}

struct Window {
  double begin_s = -kNever, end_s = kNever;
};

// From the middle of what the site did, so long that about `steps` steps lie in it.
Window window_of(const SiteSamples& samples, std::size_t steps) {
  const double part = static_cast<double>(steps) / std::max(2 * samples.weight, 1.0);
  if (part >= 1) return {};
  const double first = samples.blocks.front()->began_s;
  const double last = samples.blocks.back()->began_s;
  const double middle = (first + last) / 2, half = (last - first) * part / 2;
  return {.begin_s = middle - half, .end_s = middle + half};
}

class TraceMaker {
 public:
  TraceMaker(const SiteSamples& samples, std::size_t most_steps) : samples_(samples), most_steps_(most_steps) {}

  // Half of the room is for the window, a quarter for what lives already when it begins.
  SiteTrace make() {
    const Window window = window_of(samples_, most_steps_ / 2);
    each_allocation(samples_, [&](double begin_s, double end_s, const BlockSample& block) {
      const bool is_before = begin_s < window.begin_s;
      if (begin_s >= window.end_s || (is_before && end_s < window.begin_s)) return;
      if ((is_before && set_up_ >= most_steps_ / 4) || timed_.size() + 2 > most_steps_) return;
      set_up_ += is_before;
      const std::uint32_t made = begun_++;
      timed_.push_back({is_before ? -kNever : begin_s, {made, thread_of(block.thread), false}});
      if (end_s < window.end_s)
        timed_.push_back({end_s, {made, thread_of(block.ended_s ? block.ending_thread : block.thread), true}});
    });
    std::ranges::sort(timed_, {}, [](const Timed& of) { return std::tuple(of.at_s, of.step.is_end, of.step.block); });
    return numbered();
  }

 private:
  struct Timed {
    double at_s;
    TraceStep step;
  };

  [[nodiscard]] std::uint16_t thread_of(std::uint32_t id) {
    const auto next = static_cast<std::uint16_t>(threads_.size() % kMostTraceThreads);
    return threads_.try_emplace(id, next).first->second;
  }

  [[nodiscard]] SiteTrace numbered() const {
    SiteTrace trace;
    trace.threads = static_cast<unsigned>(std::min<std::size_t>(threads_.size(), kMostTraceThreads));
    trace.blocks = begun_;
    trace.set_up = set_up_;
    std::vector<std::uint32_t> number(begun_);
    std::uint32_t next = 0, live = 0;
    for (const Timed& timed : timed_) {
      TraceStep step = timed.step;
      if (!step.is_end) number[step.block] = next++;
      step.block = number[step.block];
      live = step.is_end ? live - 1 : live + 1;
      trace.peak_live = std::max(trace.peak_live, live);
      trace.steps.push_back(step);
    }
    if (timed_.size() > set_up_) trace.window_s = timed_.back().at_s - timed_[set_up_].at_s;
    return trace;
  }

  const SiteSamples& samples_;
  std::size_t most_steps_;
  std::vector<Timed> timed_;
  std::map<std::uint32_t, std::uint16_t> threads_;  // by the system's id
  std::uint32_t begun_ = 0;
  std::size_t set_up_ = 0;
};

}  // namespace

std::vector<SiteTrace> site_traces_of(std::span<const Evidence> processes, const Attribution& attribution,
                                      const TraceLimits& limits) {
  std::vector<SiteTrace> traces;
  for (const AllocationSite& site : attribution.sites) {
    if (traces.size() == limits.sites || site.time_share < limits.least_time_share) break;
    if (!site.fixed_size || site.typical_bytes < 1 || site.typical_bytes >= static_cast<double>(kLargeBytes)) continue;
    SiteSamples hottest;
    for (const Evidence& process : processes) {
      SiteSamples samples = samples_of(process, site.place.frame());
      if (samples.weight > hottest.weight) hottest = std::move(samples);
    }
    if (hottest.blocks.empty()) continue;
    SiteTrace trace = TraceMaker(hottest, limits.steps).make();
    if (trace.steps.size() == trace.set_up) continue;
    trace.site = site.place.text();
    trace.bytes = static_cast<std::uint64_t>(site.typical_bytes);
    trace.cpu_share = site.time_share * attribution.cpu_share;
    trace.pair_ns = site.time.mean_ns() + attribution.freeing.mean_ns();
    traces.push_back(std::move(trace));
  }
  return traces;
}

std::string fault_of(const SiteTrace& trace) {
  if (trace.bytes == 0 || trace.bytes >= kLargeBytes) return "its blocks are of no size that a pool would have";
  if (trace.threads == 0 || trace.threads > kMostTraceThreads) return "its number of threads is not from 1 to 64";
  if (trace.set_up > trace.steps.size()) return "more steps belong to its set-up than it has";
  std::vector<bool> ended;
  std::uint32_t live = 0, peak = 0;
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    const TraceStep& step = trace.steps[i];
    if (step.thread >= trace.threads) return "a step is of a thread that it does not have";
    if (!step.is_end) {
      if (step.block != ended.size()) return "its blocks are not numbered in the order in which they begin";
      ended.push_back(false);
      peak = std::max(peak, ++live);
      continue;
    }
    if (i < trace.set_up) return "a block ends in its set-up";
    if (step.block >= ended.size() || ended[step.block]) return "a block ends that does not live";
    ended[step.block] = true;
    --live;
  }
  if (ended.size() != trace.blocks || peak != trace.peak_live) return "its steps do not make the blocks that it speaks of";
  return {};
}

}  // namespace freehold::doctor
