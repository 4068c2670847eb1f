// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "cli/stats/sample.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/units.hpp"

namespace freehold::cli::stats {
namespace {
using namespace freehold::live;

std::string name_text(const std::string& name) { return name.empty() ? "(no name)" : printable(name); }

std::string text_of(const Figure& figure) {
  return figure.is_bytes ? bytes_text(figure.value) : fmt::to_string(figure.value);
}

std::string rate_text(const Figure& figure, double rate) {
  const std::string text = figure.is_bytes ? bytes_text(static_cast<std::uint64_t>(rate))
                           : rate < 10     ? fmt::format("{:.1f}", rate)
                                           : fmt::format("{:.0f}", rate);
  return text + "/s";
}

class Table {
 public:
  explicit Table(const Sample& sample, const Sample* before) : sample_(sample), before_(before) {}

  std::string text() {
    line("process {} ({}), {}", sample_.pid, printable(sample_.command), sample_.date);
    add_figures();
    add_threads();
    add_classes();
    add_heaps();
    add_pools();
    if (sample_.stats.lists_changed) line("threads, heaps or pools came and went while they were read: some may be missing");
    return std::move(out_);
  }

 private:
  template <class... Values>
  void line(fmt::format_string<const Values&...> format, const Values&... values) {
    out_ += fmt::format(format, values...);
    while (out_.ends_with(' ')) out_.pop_back();
    out_ += '\n';
  }
  // An older number of what has not come since; else what it is now, so that it has not grown.
  template <class T, class Same, class Number>
  std::string rate(const std::vector<T> LiveStats::* list, const T& of, Same same, Number number) const {
    if (before_ == nullptr) return "";
    const auto& olds = before_->stats.*list;
    const auto old = std::ranges::find_if(olds, [&](const T& one) { return same(one, of); });
    const auto rate = per_second(number(of), old == olds.end() ? 0 : number(*old), sample_.at_s - before_->at_s);
    return rate ? fmt::format("{:.0f}", *rate) : "";
  }

  void add_figures() {
    const std::vector<Figure> figures = figures_of(sample_.stats);
    const std::vector<Figure> olds = before_ != nullptr ? figures_of(before_->stats) : std::vector<Figure>{};
    bool counters = false;
    out_ += "memory\n";
    for (const Figure& figure : figures) {
      if (figure.is_counter && !counters) out_ += "events since the start\n";
      counters = figure.is_counter;
      const auto old =
          std::ranges::find_if(olds, [&](const Figure& one) { return std::string_view(one.name) == figure.name; });
      const auto rate = figure.is_counter && old != olds.end()
                            ? per_second(figure.value, old->value, sample_.at_s - before_->at_s)
                            : std::nullopt;
      line("  {:<36}{:>12}{:>14}", figure.words, text_of(figure), rate ? rate_text(figure, *rate) : "");
    }
  }

  void add_threads() {
    if (sample_.stats.threads.empty()) return;
    const bool rates = before_ != nullptr;
    line("threads\n  {:>8} {:<16} {:>10} {:>10} {:>12} {:>12} {:>12}{}", "number", "name", "cached", "at most", "refills",
         "drains", "remote", rates ? "   refills/s" : "");
    const auto same = [](const LiveThread& a, const LiveThread& b) { return a.thread == b.thread; };
    for (const LiveThread& thread : sample_.stats.threads)
      line("  {:>8} {:<16} {:>10} {:>10} {:>12} {:>12} {:>12}{:>12}",
           thread.thread == 0 ? "?" : fmt::to_string(thread.thread), name_text(thread.name), bytes_text(thread.cached_bytes),
           bytes_text(thread.granted_bytes), thread.refills, thread.drains, thread.remote_frees,
           rate(&LiveStats::threads, thread, same, [](const LiveThread& one) { return one.refills; }));
  }

  void add_classes() {
    const bool rates = before_ != nullptr;
    line("size classes\n  {:>8} {:>8} {:>12} {:>12} {:>12} {:>12} {:>12}{}", "slot", "spans", "used", "cached", "free",
         "refills", "drains", rates ? "   refills/s" : "");
    const auto same = [](const LiveClass& a, const LiveClass& b) { return a.slot_bytes == b.slot_bytes; };
    for (const LiveClass& c : sample_.stats.classes) {
      if (!c.saw_work()) continue;
      line("  {:>8} {:>8} {:>12} {:>12} {:>12} {:>12} {:>12}{:>12}", bytes_text(c.slot_bytes), c.spans, c.used_slots(),
           c.cached_slots, c.free_slots, c.refills, c.drains,
           rate(&LiveStats::classes, c, same, [](const LiveClass& one) { return one.refills; }));
    }
  }

  void add_heaps() {
    if (sample_.stats.heaps.empty()) return;
    line("private heaps\n  {:<24} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10}", "name", "blocks", "live", "used", "held",
         "limit", "conflicts");
    for (const LiveHeapFigures& heap : sample_.stats.heaps)
      line("  {:<24} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10}", name_text(heap.name), heap.live_objects,
           bytes_text(heap.live_bytes), bytes_text(heap.used_bytes), bytes_text(heap.held_bytes),
           heap.limit_bytes ? bytes_text(*heap.limit_bytes) : "none", heap.conflicts);
  }

  void add_pools() {
    if (sample_.stats.pools.empty()) return;
    line("pools\n  {:<24} {:>10} {:>12} {:>12} {:>12}", "name", "object", "taken", "the most", "capacity");
    const auto number = [](const std::optional<std::uint64_t>& of) { return of ? fmt::to_string(*of) : "?"; };
    for (const LivePoolFigures& pool : sample_.stats.pools)
      line("  {:<24} {:>10} {:>12} {:>12} {:>12}", name_text(pool.name), bytes_text(pool.slot_bytes),
           number(pool.taken_slots), number(pool.opened_slots), pool.capacity ? fmt::to_string(*pool.capacity) : "none");
  }

  const Sample& sample_;
  const Sample* before_;
  std::string out_;
};

}  // namespace

std::string table_of(const Sample& sample, const Sample* before) { return Table(sample, before).text(); }

}  // namespace freehold::cli::stats
