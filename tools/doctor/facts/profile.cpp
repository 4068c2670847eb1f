// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/profile.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace freehold::doctor {
namespace {

class Builder {
 public:
  void add(const Evidence& process) {
    stacks_.clear();
    for (const BlockSample& block : process.recording.blocks) {
      std::array<double, kMeasures>& row = row_of(process, block.stack);
      at(row, Measure::kAllocations) += block.weight;
      at(row, Measure::kBytes) += block.weight * static_cast<double>(block.bytes);
      at(row, Measure::kTime) += block.weight * (block.call_ns - 1e9 * block.preempted_s);
      if (block.ended_s && block.ending_thread != block.thread)
        at(row_of(process, block.ending_stack), Measure::kRemoteFrees) += block.weight;
    }
    for (const FreeSample& free : process.recording.frees) {
      std::array<double, kMeasures>& row = row_of(process, free.stack);
      at(row, Measure::kFrees) += free.weight;
      at(row, Measure::kTime) += free.weight * (free.call_ns - 1e9 * free.preempted_s);
    }
    for (const WaitSample& wait : process.recording.waits) {
      const Measure measure = is_idleness(wait.kind) ? Measure::kIdleness : Measure::kLockWaits;
      at(row_of(process, wait.stack), measure) += wait.weight * wait.waited_s * 1e9;
    }
    profile_.seconds = std::max(profile_.seconds, process.recording.seconds);
  }

  Profile profile() && {
    for (auto& [frames, values] : rows_) {
      // The clock's own cost is taken off each call, so that the shortest may come out below nothing.
      for (double& value : values) value = std::max(value, 0.0);
      profile_.rows.push_back({frames, values});
    }
    return std::move(profile_);
  }

 private:
  static double& at(std::array<double, kMeasures>& row, Measure measure) { return row[static_cast<std::size_t>(measure)]; }

  std::uint32_t place_of(const Frame& frame) {
    const auto key = std::tuple(frame.function, frame.file, frame.line, frame.module, frame.inlined);
    const auto [found, is_new] = places_.try_emplace(key, static_cast<std::uint32_t>(profile_.frames.size()));
    if (is_new) profile_.frames.push_back(frame);
    return found->second;
  }

  std::array<double, kMeasures>& row_of(const Evidence& process, StackId stack) {
    const auto [known, is_new] = stacks_.try_emplace(stack);
    if (is_new && stack < process.recording.stacks.size()) {
      for (const std::uint64_t address : process.recording.stacks[stack]) {
        for (const Frame& frame : process.frames(address)) known->second.push_back(place_of(frame));
      }
    }
    return rows_[known->second];
  }

  Profile profile_;
  std::map<std::tuple<std::string, std::string, unsigned, std::string, bool>, std::uint32_t> places_;
  std::map<StackId, std::vector<std::uint32_t>> stacks_;  // of the process at hand
  std::map<std::vector<std::uint32_t>, std::array<double, kMeasures>> rows_;
};

}  // namespace

std::string_view name_of(Measure measure) noexcept {
  switch (measure) {
    case Measure::kAllocations: return "allocations";
    case Measure::kBytes: return "bytes";
    case Measure::kTime: return "time";
    case Measure::kFrees: return "frees";
    case Measure::kRemoteFrees: return "remote-frees";
    case Measure::kLockWaits: return "lock-waits";
    case Measure::kIdleness: return "idleness";
  }
  __builtin_unreachable();
}

std::string_view unit_of(Measure measure) noexcept {
  switch (measure) {
    case Measure::kAllocations:
    case Measure::kFrees:
    case Measure::kRemoteFrees: return "count";
    case Measure::kBytes: return "bytes";
    case Measure::kTime:
    case Measure::kLockWaits:
    case Measure::kIdleness: return "nanoseconds";
  }
  __builtin_unreachable();
}

double Profile::sum(Measure measure) const {
  double sum = 0;
  for (const ProfileRow& row : rows) sum += row.values[static_cast<std::size_t>(measure)];
  return sum;
}

Profile profile_of(std::span<const Evidence> processes) {
  Builder builder;
  for (const Evidence& process : processes) builder.add(process);
  return std::move(builder).profile();
}

}  // namespace freehold::doctor
