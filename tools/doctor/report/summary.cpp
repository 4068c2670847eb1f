// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/report/format.hpp"
#include "tools/doctor/report/verdict_text.hpp"
#include "tools/output/text.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/shell.hpp"
#include "tools/support/statistics.hpp"
#include "tools/support/units.hpp"

namespace freehold::doctor::report {
namespace {

constexpr std::size_t kColumns = 5;  // settings side by side
constexpr std::size_t kRows = 8;     // call sites, and of each of the other lists
constexpr std::size_t kLongestName = 34;

// Without the explanation, which stands in the sentences above the tables.
std::string column_name(const Variant& variant) {
  const std::string text = text_of(variant);
  return text.substr(0, text.find(" ("));
}
constexpr std::string_view kAnonymous = "(anonymous namespace)::";

// In characters, not bytes.
std::size_t length_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string clipped(const std::string& text, std::size_t width) {
  std::string out = printable(text);
  if (length_of(out) <= width) return out;
  std::size_t bytes = 0;
  for (std::size_t seen = 0; bytes < out.size(); ++bytes) {
    if ((out[bytes] & 0xC0) != 0x80 && seen++ == width - 1) break;
  }
  return out.substr(0, bytes) + "…";
}

std::string padded(const std::string& text, std::size_t width) {
  const std::size_t length = length_of(text);
  return length < width ? text + std::string(width - length, ' ') : text;
}

// The first, the last, and others evenly between them.
template <class T>
std::vector<T> thinned(const std::vector<T>& all, std::size_t most) {
  if (all.size() <= most) return all;
  std::vector<T> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(all[i * (all.size() - 1) / (most - 1)]);
  return some;
}

class Summary : public TextWriter {
 public:
  explicit Summary(const Diagnosis& diagnosis) : of_(diagnosis), recorded_(diagnosis.recorded.get()) {}

  // What everybody should read: the verdict, its figure, what to do next. The rest is below a line.
  void verdict() {
    const VerdictText text = verdict_text_of(of_);
    const std::vector<Recommendation> steps = recommendations_of(of_);
    print("\n{}", wrap(printable(text.headline), kWidth, ""));
    if (!text.because.empty()) print("{}", wrap(printable(text.because.front()), kWidth, ""));
    print("{}", wrap(printable(text.bound), kWidth, ""));
    if (!steps.empty()) {
      print("\n{}", wrap(printable("Next: " + steps.front().what) + ":", kWidth, ""));
      lines_of(steps.front());
    } else {
      print("{}", wrap(printable(text.advice), kWidth, ""));
    }
    std::string rule;
    for (std::size_t i = 0; i < kWidth; ++i) rule += "─";
    print("\n{}\n", rule);
    std::string because;
    for (const std::string& sentence : text.because | std::views::drop(1)) because += sentence + ' ';
    print("{}", wrap(printable(because), kWidth, ""));
    print("{}", wrap(printable(text.tried), kWidth, ""));
    if (!steps.empty()) print("{}", wrap(printable(text.advice), kWidth, ""));
  }

  void steps() {
    for (const Recommendation& step : recommendations_of(of_) | std::views::drop(1)) {
      print("\n{}", wrap(printable(step.what) + ":", kWidth, "  "));
      lines_of(step);
    }
  }

  // Seconds, and how many times as fast as the same allocator in the first setting.
  void measurements() {
    const std::vector<Setting> settings = thinned(of_.experiment.sweep(), kColumns);
    if (settings.empty()) return;
    print("\nMEASURED: time, and how many times as fast as in the first column\n{:<{}}", "", kLongestName - 8);
    for (const Setting& setting : settings) print("{:>15}", describe(setting));
    print("{:>9}{:>11}\n", "spread", "peak");
    for (std::size_t variant = 0; variant < of_.experiment.variants.size(); ++variant) {
      if (was_tried(of_.experiment, variant)) variant_row(variant, settings);
    }
    copies_row();
  }

  void fixes() {
    if (of_.verdict.fixes.empty()) return;
    print("\nTRIED on {}: how many times as fast; peak memory\n", describe(of_.verdict.all));
    for (const Fix* fix : best_first(of_.verdict)) {
      const bool measured = fix->gain.value > 0;
      print("{}{:>6}  {}{:>7}  {}\n",
            padded(clipped(column_name(of_.experiment.variants[fix->variant]), kLongestName - 2), kLongestName),
            measured ? value_text(fix->gain) : "-", padded(measured ? range_text(fix->gain) : "", 12),
            fix->memory.value > 0 ? fmt::format("× {:.2f}", fix->memory.value) : "-", judgement_of(*fix));
    }
  }

  void sites() {
    if (recorded_ == nullptr || recorded_->sites.empty()) return;
    print("\nCALL SITES: share of the time in malloc and free, and who frees the blocks\n");
    print("{:>6} {:>13} {:>8} {:>10} {:>10}  {}\n", "share", "allocations", "ns each", "bytes each", "by others", "where");
    for (const AllocationSite& site : firsts(recorded_->sites)) {
      print("{:>6} {:>13} {:>8.0f} {:>10} {:>10}  {}\n", share(site.time_share), count_text(site.time.calls),
            site.time.mean_ns(), fmt::format("{}{:.0f}", site.fixed_size ? "" : "~", site.typical_bytes),
            share(site.freed_elsewhere), where(site.place, 48));
    }
    more(recorded_->sites.size());
  }

  void locks() {
    if (recorded_ == nullptr || recorded_->lock_waits.empty()) return;
    print("\nLOCKS of the program that its threads wait for: share of their time\n{:>6} {:>10}  {}\n", "share", "waits",
          "where");
    for (const WaitSite& site : firsts(recorded_->lock_waits))
      print("{:>6} {:>10}  {}\n", share(site.share), count_text(site.count), where(site.place, 80));
    more(recorded_->lock_waits.size());
  }

  void advice() {
    if (recorded_ == nullptr || recorded_->sites.empty()) return;
    print("\nADVISED for the hottest sites, by what was recorded of them\n");
    for (const SiteAdvice& one : advice_of(*recorded_)) {
      const std::string site = clipped(recorded_->sites[one.site].place.text(), kWidth / 2);
      print("{}", wrap(printable(fmt::format("{}: {}", site, text_of(one, *recorded_))), kWidth, "  "));
    }
  }

  void notes() {
    std::vector<std::string> notes = findings_of(of_);
    notes.insert(notes.end(), of_.notes.begin(), of_.notes.end());
    notes.emplace_back("A range is where nine of ten repetitions of all this would end.");
    print("\n{}", list_of(notes, kWidth));
  }

  void head() {
    const std::vector<std::string>& command = of_.settings.command;
    print("freehold doctor: {}\n{}\n",
          of_.example || command.empty() ? "the bundled example" : printable(shell_words(command)),
          machine_line(of_.machine));
  }

  void page(const std::string& file) {
    if (!file.empty()) print("\nThe whole report: {}\n", printable(file));
  }

 private:
  void lines_of(const Recommendation& step) {
    for (const auto line : std::views::split(step.lines, '\n'))
      print("    {}\n", printable(std::string_view(line.begin(), line.end())));
  }

  static std::string share(double value) { return value > 0 && value < 0.005 ? "<1%" : fmt::format("{:.0f}%", 100 * value); }
  template <class T>
  static std::vector<T> firsts(const std::vector<T>& all) {
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kRows))};
  }
  void more(std::size_t all) {
    if (all > kRows) print("       and {} more\n", all - kRows);
  }
  // "parse.cpp:210 parse(std::string const&)"
  static std::string where(const Place& place, std::size_t width) {
    const Frame& frame = place.frame();
    const std::string at = short_text(frame);
    if (frame.file.empty() || frame.function.empty()) return clipped(at, width);
    std::string function = frame.function;
    for (std::size_t found; (found = function.find(kAnonymous)) != std::string::npos;)
      function.erase(found, kAnonymous.size());
    return clipped(at + "  " + function, width);
  }

  void variant_row(std::size_t variant, const std::vector<Setting>& settings) {
    std::string cells;
    const Cell* last = nullptr;
    for (const Setting& setting : settings) {
      const Cell* const cell = of_.experiment.find(variant, setting);
      const auto seconds = if_measured(cost, cell);
      if (seconds) last = cell;
      const auto faster = cell == nullptr ? std::nullopt : speed(of_.experiment, *cell);
      cells += fmt::format("{:>9}{:>6}",
                           seconds                                     ? seconds_text(*seconds)
                           : cell != nullptr && !cell->failure.empty() ? "failed"
                                                                       : "-",
                           faster ? fmt::format("{:.2f}", *faster) : "");
    }
    const auto peak = if_measured(peak_bytes, last);
    print("{}{}{:>9}{:>11}\n",
          padded(clipped(column_name(of_.experiment.variants[variant]), kLongestName - 9), kLongestName - 8), cells,
          last != nullptr && last->trials.size() > 1 ? fmt::format("{:.0f}%", 100 * spread(costs_of(*last))) : "-",
          peak ? bytes_text(static_cast<std::uint64_t>(*peak)) : "-");
  }

  void copies_row() {
    for (const Cell& cell : of_.experiment.cells) {
      if (cell.variant != 0 || cell.setting.copies < 2) continue;
      const auto seconds = if_measured(cost, &cell);
      const auto faster = speed(of_.experiment, cell);
      if (seconds && faster)
        print("{} as processes that share nothing, {} times the work: {}, {:.2f} times as fast\n", describe(cell.setting),
              cell.setting.copies, seconds_text(*seconds), *faster);
    }
  }

  const Diagnosis& of_;
  const Attribution* recorded_;
};

}  // namespace

std::string summary_of(const Diagnosis& diagnosis, const std::string& page) {
  Summary summary(diagnosis);
  summary.head();
  summary.verdict();
  summary.steps();
  summary.measurements();
  summary.fixes();
  summary.sites();
  summary.locks();
  summary.advice();
  summary.notes();
  summary.page(page);
  return std::move(summary).take();
}

}  // namespace freehold::doctor::report
