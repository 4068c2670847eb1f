// SPDX-License-Identifier: MIT
// JSON, and the text format of Prometheus: https://prometheus.io/docs/instrumenting/exposition_formats/. There a family has
// one HELP, one TYPE and its samples behind each other; no two samples have the same labels; counters end in _total.
#include <fmt/format.h>

#include <functional>
#include <map>
#include <utility>

#include "cli/stats/sample.hpp"
#include "tools/output/json.hpp"

namespace freehold::cli::stats {
namespace {
using namespace freehold::live;
using nlohmann::ordered_json;

// ---- one row for each number of a size class, a thread, a private heap and a pool; docs/stats.md lists them, too

template <class T>
struct Column {
  const char* key;     // in JSON; null: not there
  const char* family;  // in Prometheus, without "freehold_" and "_total"; null: not there
  const char* help;    // a sentence for Prometheus
  std::optional<std::uint64_t> (*value)(const T&);
  bool is_counter = false;  // it only grows
};

template <auto kMember, class T>
std::optional<std::uint64_t> get(const T& of) {
  return std::invoke(kMember, of);
}
template <class T>
std::optional<std::uint64_t> one(const T&) {
  return 1;
}

constexpr Column<LiveClass> kClassColumns[] = {
    {"slot_bytes", nullptr, nullptr, get<&LiveClass::slot_bytes>},
    {"spans", "class_spans", "Spans of the size class.", get<&LiveClass::spans>},
    {"slots", nullptr, nullptr, get<&LiveClass::slots>},
    {"used_slots", "class_used_slots", "Slots of the size class that are in use.", get<&LiveClass::used_slots>},
    {"cached_slots", "class_cached_slots", "Free slots of the size class in caches of threads.",
     get<&LiveClass::cached_slots>},
    {"free_slots", "class_free_slots", "Free slots of the size class in no cache.", get<&LiveClass::free_slots>},
    {"refills", "class_refills", "Refills of caches, by size class.", get<&LiveClass::refills>, true},
    {"drains", "class_drains", "Drains of caches, by size class.", get<&LiveClass::drains>, true},
};

constexpr Column<LiveThread> kThreadColumns[] = {
    {"cached_bytes", "thread_cached_bytes", "Free slots in the thread's cache.", get<&LiveThread::cached_bytes>},
    {"granted_bytes", "thread_granted_bytes", "What the thread's cache may hold.", get<&LiveThread::granted_bytes>},
    {"refills", "thread_refills", "Refills of the thread's cache.", get<&LiveThread::refills>, true},
    {"drains", "thread_drains", "Drains of the thread's cache.", get<&LiveThread::drains>, true},
    {"remote_frees", "thread_remote_frees", "Slots that the thread gave back to spans that another used last.",
     get<&LiveThread::remote_frees>, true},
};

constexpr Column<LiveHeapFigures> kHeapColumns[] = {
    {nullptr, "heaps", "Private heaps of this name.", one},
    {"live_objects", "heap_live_blocks", "Blocks in use.", get<&LiveHeapFigures::live_objects>},
    {"live_bytes", "heap_live_bytes", "Bytes of the slots of blocks in use.", get<&LiveHeapFigures::live_bytes>},
    {"used_bytes", "heap_used_bytes", "Pages in use and large blocks: what the limit counts.",
     get<&LiveHeapFigures::used_bytes>},
    {"held_bytes", "heap_held_bytes", "What the heap has from the engine.", get<&LiveHeapFigures::held_bytes>},
    {"limit_bytes", "heap_limit_bytes", "The heap's limit, if it has one.", get<&LiveHeapFigures::limit_bytes>},
    {"slabs", nullptr, nullptr, get<&LiveHeapFigures::slabs>},
    {"large_blocks", nullptr, nullptr, get<&LiveHeapFigures::large_blocks>},
    {"conflicts", "heap_conflicts", "Operations that met another thread in a shard.", get<&LiveHeapFigures::conflicts>,
     true},
};

constexpr Column<LivePoolFigures> kPoolColumns[] = {
    {nullptr, "pools", "Pools of this name.", one},
    {"slot_bytes", nullptr, nullptr, get<&LivePoolFigures::slot_bytes>},
    {"capacity", "pool_capacity_slots", "The most objects that there can be.", get<&LivePoolFigures::capacity>},
    {"opened_slots", "pool_opened_slots", "The most slots that were out at once.", get<&LivePoolFigures::opened_slots>},
    {"taken_slots", "pool_taken_slots", "Slots in use, in arrays of threads, or on their way.",
     get<&LivePoolFigures::taken_slots>},
};

// ---- JSON

// `json` with the columns of `of` behind it.
template <class T>
ordered_json row_json(ordered_json json, const T& of, const auto& columns) {
  for (const Column<T>& column : columns)
    if (column.key != nullptr) json[column.key] = column.value(of);
  return json;
}

// Returns the rates of every counter of the whole process.
ordered_json rates_json(const Sample& sample, const Sample& before) {
  ordered_json rates = {{"seconds", sample.at_s - before.at_s}};
  const std::vector<Figure> olds = figures_of(before.stats);
  for (const Figure& figure : figures_of(sample.stats)) {
    if (!figure.is_counter) continue;
    for (const Figure& old : olds)
      if (std::string_view(old.name) == figure.name)
        rates[figure.name] = per_second(figure.value, old.value, sample.at_s - before.at_s);
  }
  return rates;
}

// ---- Prometheus

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

// Escapes the value of a label: quotes and backslashes escaped, control characters and what is not UTF-8 as '?'.
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

  // Adds nothing without samples.
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

std::string json_of(const Sample& sample, const Sample* before) {
  ordered_json levels = ordered_json::object(), counters = ordered_json::object();
  for (const Figure& figure : figures_of(sample.stats)) (figure.is_counter ? counters : levels)[figure.name] = figure.value;
  ordered_json classes = ordered_json::array();
  for (const LiveClass& c : sample.stats.classes)
    if (c.saw_work()) classes.push_back(row_json({}, c, kClassColumns));
  const ordered_json all = {
      {"format", "freehold-stats"},
      {"version", 1},
      {"pid", sample.pid},
      {"command", sample.command},
      {"date", sample.date},
      {"levels", std::move(levels)},
      {"counters", std::move(counters)},
      {"rates", before != nullptr ? rates_json(sample, *before) : ordered_json(nullptr)},
      {"classes", std::move(classes)},
      {"threads", list_json(sample.stats.threads,
                            [](const LiveThread& thread) {
                              return row_json({{"thread", thread.thread}, {"name", thread.name}}, thread, kThreadColumns);
                            })},
      {"heaps", list_json(sample.stats.heaps,
                          [](const LiveHeapFigures& heap) { return row_json({{"name", heap.name}}, heap, kHeapColumns); })},
      {"pools", list_json(sample.stats.pools,
                          [](const LivePoolFigures& pool) { return row_json({{"name", pool.name}}, pool, kPoolColumns); })},
      {"lists_changed", sample.stats.lists_changed},
  };
  return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

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
