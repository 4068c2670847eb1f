// SPDX-License-Identifier: MIT
// The text format: https://prometheus.io/docs/instrumenting/exposition_formats/. A family has one HELP, one TYPE and its
// samples behind each other; no two samples have the same labels; counters end in _total.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "cli/stats/columns.hpp"
#include "cli/stats/sample.hpp"

namespace freehold::cli::stats {
namespace {

// The length of the sequence of UTF-8 that begins there; 0: none does.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i, unsigned least = 0x80, unsigned most = 0xbf) {
    return byte(i) >= least && byte(i) <= most;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef)
    return follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf) && follows(2) ? 3 : 0;
  if (first >= 0xf0 && first <= 0xf4)
    return follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf) && follows(2) && follows(3) ? 4 : 0;
  return 0;
}

// As the value of a label: quotes and backslashes escaped, control characters and what is not UTF-8 as '?'.
std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char first = text.front();
    if (length == 0 || (length == 1 && (static_cast<unsigned char>(first) < 0x20 || first == 0x7f)))
      out += '?';
    else if (first == '"' || first == '\\')
      out += {'\\', first};
    else
      out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

using Samples = std::map<std::string, std::uint64_t>;  // by further labels

class Exposition {
 public:
  explicit Exposition(pid_t pid) : pid_(pid) {}

  // Without samples, nothing.
  void add(const std::string& name, const char* help, bool is_counter, const Samples& samples) {
    if (samples.empty()) return;
    const std::string family = "freehold_" + name + (is_counter ? "_total" : "");
    out_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", family, help, family, is_counter ? "counter" : "gauge");
    for (const auto& [labels, value] : samples) out_ += fmt::format("{}{{pid=\"{}\"{}}} {}\n", family, pid_, labels, value);
  }
  std::string text() { return std::move(out_); }

 private:
  pid_t pid_;
  std::string out_;
};

// A family for each column, with a sample for each of `list` that has the value; those of the same labels are added up.
template <class T>
void add_list(Exposition& to, const std::vector<T>& list, const auto& columns, auto labels) {
  for (const Column<T>& column : columns) {
    if (column.family == nullptr) continue;
    Samples samples;
    for (const T& of : list)
      if (const auto number = column.value(of)) samples[labels(of)] += *number;
    to.add(column.family, column.help, column.is_counter, samples);
  }
}

}  // namespace

std::string prometheus_of(const Sample& sample) {
  Exposition to(sample.pid);
  to.add("process_info", "The process.", false, {{fmt::format(",command=\"{}\"", escaped(sample.command)), 1}});
  for (const Figure& figure : figures_of(sample.stats))
    to.add(figure.name, figure.help, figure.is_counter, {{"", figure.value}});
  std::vector<LiveClass> used = sample.stats.classes;
  std::erase_if(used, [](const LiveClass& c) { return !c.saw_work(); });
  add_list(to, used, kClassColumns, [](const LiveClass& c) { return fmt::format(",slot_bytes=\"{}\"", c.slot_bytes); });
  add_list(to, sample.stats.threads, kThreadColumns, [](const LiveThread& thread) {
    return fmt::format(",thread=\"{}\",name=\"{}\"", thread.thread, escaped(thread.name));
  });
  add_list(to, sample.stats.heaps, kHeapColumns,
           [](const LiveHeapFigures& heap) { return fmt::format(",heap=\"{}\"", escaped(heap.name)); });
  add_list(to, sample.stats.pools, kPoolColumns,
           [](const LivePoolFigures& pool) { return fmt::format(",pool=\"{}\"", escaped(pool.name)); });
  return to.text();
}

}  // namespace freehold::cli::stats
