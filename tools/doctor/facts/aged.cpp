// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/aged.hpp"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <random>
#include <tuple>

namespace freehold::doctor {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr double kLeast_s = 1e-6;  // that is left of a run: clocks of the kernel's are no finer

// Fills in what follows from the calls.
History counted(std::vector<std::uint64_t> calls) {
  History history{.calls = std::move(calls)};
  std::vector<std::uint64_t> bytes;
  for (const std::uint64_t call : history.calls) {
    if ((call & kFreed) != 0) {
      history.live_bytes -= bytes[call & ~kFreed];
      --history.survivors;
      continue;
    }
    bytes.push_back(counted_bytes(call));
    history.live_bytes += bytes.back();
    ++history.survivors;
    history.peak_bytes = std::max(history.peak_bytes, history.live_bytes);
  }
  history.mallocs = bytes.size();
  return history;
}

}  // namespace

History history_of(const Recording& recording) {
  std::vector<std::tuple<double, bool, std::uint64_t>> events;  // when, whether it is the block's end, and the block
  for (std::uint64_t i = 0; i < recording.blocks.size(); ++i) {
    const BlockSample& block = recording.blocks[i];
    events.emplace_back(block.began_s, false, i);
    if (block.ended_s || !block.is_end_watched)  // an end that was not seen: another block was at its place later
      events.emplace_back(std::max(block.ended_s.value_or(0), block.began_s), true, i);
  }
  std::ranges::sort(events);
  std::vector<std::uint64_t> calls;
  for (const auto& [at_s, is_end, block] : events) calls.push_back(is_end ? kFreed | block : recording.blocks[block].bytes);
  return counted(std::move(calls));
}

void add_sizes(const Recording& recording, Sizes& sizes) {
  for (const BlockSample& block : recording.blocks)
    if (block.bytes < kLargeBytes) sizes.emplace_back(block.bytes, block.weight);
}

History made_up(Sizes sizes, std::uint64_t most_bytes) {
  if (sizes.empty())
    for (std::uint64_t bytes = 16; bytes <= 1024; bytes *= 2) sizes.emplace_back(bytes, 16.0 / static_cast<double>(bytes));
  std::vector<double> up_to;  // sums of the weights
  for (const auto& [bytes, weight] : sizes) up_to.push_back(weight + (up_to.empty() ? 0 : up_to.back()));
  std::mt19937_64 random(kSeed);  // its numbers are the standard's; those of distributions are not
  std::vector<std::uint64_t> calls;
  std::uint64_t taken = 0;
  while (calls.size() < kMadeUpMallocs) {
    const double share = static_cast<double>(random() >> 11) * 0x1p-53;
    const auto drawn = std::ranges::upper_bound(up_to, share * up_to.back()) - up_to.begin();
    const std::uint64_t bytes = sizes[std::min(static_cast<std::size_t>(drawn), sizes.size() - 1)].first;
    if (taken + counted_bytes(bytes) > most_bytes) break;
    taken += counted_bytes(bytes);
    calls.push_back(bytes);
  }
  std::vector<std::uint64_t> blocks(calls.size());
  std::iota(blocks.begin(), blocks.end(), std::uint64_t{0});
  for (std::size_t i = 0; i < blocks.size() / 2; ++i) {  // Fisher and Yates, as far as it is needed
    std::swap(blocks[i], blocks[i + random() % (blocks.size() - i)]);
    calls.push_back(kFreed | blocks[i]);
  }
  return counted(std::move(calls));
}

bool write_history(const History& history, const std::filesystem::path& file) {
  const HistoryHeader header{.magic = kHistoryMagic, .calls = history.calls.size(), .mallocs = history.mallocs};
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&header), sizeof header);
  out.write(reinterpret_cast<const char*>(history.calls.data()),
            static_cast<std::streamsize>(history.calls.size() * sizeof history.calls.front()));
  return static_cast<bool>(out.flush());
}

HistoryHeader read_sums(const std::filesystem::path& file) {
  HistoryHeader header{};
  std::ifstream(file, std::ios::binary).read(reinterpret_cast<char*>(&header), sizeof header);
  return header;
}

void take_off(const HistoryHeader& sums, Trial& trial) {
  const double before_s = trial.cpu_s();
  trial.user_s = std::max(before_s - static_cast<double>(sums.cpu_ns) / 1e9, kLeast_s);
  trial.system_s = 0;  // the kernel divides the two by ticks: only their sum is known well enough to be cut
  const double wall_s = trial.wall_s - static_cast<double>(sums.wall_ns) / 1e9;
  trial.wall_s = std::max(sums.programs == 1 ? wall_s : trial.wall_s * trial.user_s / before_s, kLeast_s);
}

std::optional<Change> cpu_change(const Side& before, const Side& after) {
  const Comparison comparison = compare(before, after);
  const Change* const change = comparison.find(Figure::kCpu);
  return change == nullptr ? std::nullopt : std::optional(*change);
}

const AgedMalloc* better_aged(const std::vector<AgedMalloc>& mallocs) {
  const auto better = std::ranges::find_if(mallocs, [&mallocs](const AgedMalloc& malloc) {
    const auto change = cpu_change(mallocs.front().aged, malloc.aged);
    return malloc.failure.empty() && change && change->ratio->high < 1;
  });
  return better == mallocs.end() ? nullptr : &*better;
}

}  // namespace freehold::doctor
