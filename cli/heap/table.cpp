// SPDX-License-Identifier: MIT
#include "cli/heap/table.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/doctor/facts/call_sites.hpp"
#include "tools/output/text.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/units.hpp"

namespace freehold::cli::heap {
namespace {
using freehold::doctor::Frame;

std::string bytes_with_sign(double bytes, bool is_growth) {
  const std::string text = bytes_text(static_cast<std::uint64_t>(std::llround(std::fabs(bytes))));
  return bytes < 0 ? "-" + text : (is_growth ? "+" : "") + text;
}

std::string count_with_sign(double count, bool is_growth) {
  const std::string digits = fmt::format("{:.0f}", std::fabs(count));
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return count < 0 ? "-" + text : (is_growth ? "+" : "") + text;
}

}  // namespace

std::string site_name(const Site& site) {
  const std::string heap = site.heap.empty() ? "" : fmt::format("heap {}: ", printable(site.heap));
  return heap + (site.frame.function.empty() && site.frame.module.empty() ? "no call stack" : printable(site.frame.text()));
}

double relative_error(const Site& site) {
  constexpr double kDeviations = 1.96;
  return site.bytes == 0 ? 1 : std::min(kDeviations * std::sqrt(site.variance) / std::fabs(site.bytes), 1.0);
}

std::vector<Site> sites_of(const HeapProfile& profile, Moment moment) {
  std::map<std::pair<std::string, std::string>, Site> by_text;  // and heap
  for (std::size_t i = 0; i < profile.stacks.rows.size(); ++i) {
    const StackRow& row = profile.stacks.rows[i];
    const double bytes = row.values[bytes_of(moment)];
    if (bytes == 0) continue;
    const auto frame_at = [&](std::uint32_t frame) -> const Frame& { return profile.stacks.frames[frame]; };
    auto first = std::ranges::find_if(row.frames, &Frame::is_runtime_code, frame_at);
    if (first == row.frames.end())
      first = std::ranges::find_if_not(row.frames, freehold::doctor::is_library_frame, frame_at);
    if (first == row.frames.end()) first = row.frames.begin();  // libraries alone: then what called malloc
    const Frame frame = first == row.frames.end() ? Frame{} : profile.stacks.frames[*first];
    Site& site = by_text[{frame.text(), row.heap}];
    site.frame = frame;
    site.heap = row.heap;
    site.blocks += row.values[blocks_of(moment)];
    site.bytes += bytes;
    site.variance += profile.variances[i][static_cast<std::size_t>(moment)];
    site.samples += profile.samples[i][static_cast<std::size_t>(moment)];
    if (moment == Moment::kPinned) {
      site.held += row.values[bytes_of(Moment::kNow)];
      site.others += row.values[blocks_of(Moment::kSpanPinned)];
      site.of_spans += row.values[bytes_of(Moment::kSpanPinned)];
    }
    if (std::fabs(bytes) <= site.heaviest_bytes) continue;
    site.heaviest_bytes = std::fabs(bytes);
    site.heaviest.assign(first, row.frames.end());
  }
  std::vector<Site> sites;
  for (auto& [text, site] : by_text) sites.push_back(std::move(site));
  std::ranges::stable_sort(sites, std::greater{}, [](const Site& site) { return std::fabs(site.bytes); });
  return sites;
}

std::string headline_of(const HeapProfile& profile) {
  const auto bytes = [&](Moment moment) {
    return bytes_text(static_cast<std::uint64_t>(std::max(profile.sum(bytes_of(moment)), 0.0)));
  };
  const std::string others =
      profile.processes > 1 ? fmt::format(" and {} other{}", profile.processes - 1, profile.processes > 2 ? "s" : "") : "";
  std::string text =
      fmt::format("{} (process {}{}): {} in {} blocks in use, at most {}; {} samples", printable(profile.program),
                  profile.pid, others, bytes(Moment::kNow), count_with_sign(profile.sum(blocks_of(Moment::kNow)), false),
                  bytes(Moment::kPeak), profile.sample_count(Moment::kNow));
  if (profile.mean != 0) text += fmt::format(", one in {}", bytes_text(profile.mean));
  text += '\n';
  if (profile.processes > 1)
    text +=
        "Sums over processes, of each its own peak and its own end: the program need not have held that much at any one "
        "moment\n";
  if (profile.lost != 0)
    text += fmt::format("{} sampled blocks found no place and are missing: take a larger --distance\n", profile.lost);
  return text;
}

std::string table_of(const HeapProfile& profile, const TableOptions& options) {
  TextWriter out;
  const std::vector<Site> sites = sites_of(profile, options.moment);
  const bool pins = options.moment == Moment::kPinned;
  if (sites.empty())
    return options.is_growth ? "nothing changed\n"
           : pins            ? "no sampled block keeps free memory\n"
                             : "no sampled block is in use\n";
  double sum = 0;
  for (const Site& site : sites) sum += std::fabs(site.bytes);
  out.print("{:>11} {:>6} {:>12} {:>8} {:>6}  {}{}\n",
            options.is_growth ? "growth"
            : pins            ? "pinned"
                              : "bytes",
            "share", "blocks", "samples", "error", pins ? "      holds  of spans others  " : "", "site");
  const std::size_t shown = options.top == 0 ? sites.size() : std::min(options.top, sites.size());
  double rest = 0;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const Site& site = sites[i];
    if (i >= shown) {
      rest += site.bytes;
      continue;
    }
    const std::string more = pins ? fmt::format("{:>11} {:>9} {:>6.1f}  ", bytes_with_sign(site.held, false),
                                                bytes_with_sign(site.of_spans, false), site.others / site.blocks)
                                  : "";
    out.print("{:>11} {:>5.1f}% {:>12} {:>8} {:>5.0f}%  {}{}\n", bytes_with_sign(site.bytes, options.is_growth),
              100 * std::fabs(site.bytes) / sum, count_with_sign(site.blocks, options.is_growth), site.samples,
              100 * relative_error(site), more, site_name(site));
    for (std::size_t frame = 1; options.stacks && frame < site.heaviest.size(); ++frame)
      out.print("{:>50}{}\n", "", printable(profile.stacks.frames[site.heaviest[frame]].text()));
  }
  if (shown < sites.size())
    out.print("{:>11} in {} more sites: --top 0 shows them\n", bytes_with_sign(rest, options.is_growth),
              sites.size() - shown);
  return std::move(out).take();
}

std::string pins_advice_of(const HeapProfile& profile) {
  constexpr double kMost = 0.8;              // of what is pinned
  constexpr double kLeastBytes = 256 << 10;  // a private heap itself holds some slabs of 64 KiB
  const double all = profile.sum(bytes_of(Moment::kPinned));
  std::string text;
  double told = 0;
  for (const Site& site : sites_of(profile, Moment::kPinned)) {
    if (told >= kMost * all || site.bytes < kLeastBytes) break;
    told += site.bytes;
    text += fmt::format("{} of free memory are pinned by {} blocks from {}: give them a heap of their own\n",
                        bytes_with_sign(site.bytes, false), count_with_sign(site.blocks, false), site_name(site));
  }
  return text;
}

}  // namespace freehold::cli::heap
