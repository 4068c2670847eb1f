// SPDX-License-Identifier: MIT
// The text format: https://prometheus.io/docs/instrumenting/exposition_formats/. A family has one HELP, one TYPE and its
// samples behind each other; no two samples have the same labels; counters end in _total.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "cli/stats/sample.hpp"

namespace freehold::cli::stats {
namespace {
using freehold::live::LiveClass;
using freehold::live::LiveHeapFigures;
using freehold::live::LivePoolFigures;
using freehold::live::LiveThread;

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

// A family with a sample for each of `list` that has the value; those of the same labels are added up.
template <class T>
void add_each(Exposition& to, const std::string& name, const char* help, bool is_counter, const std::vector<T>& list,
              auto labels, auto value) {
  Samples samples;
  for (const T& one : list)
    if (const std::optional<std::uint64_t> number = value(one)) samples[labels(one)] += *number;
  to.add(name, help, is_counter, samples);
}

void add_classes(Exposition& to, const Sample& sample) {
  std::vector<LiveClass> used;
  for (const LiveClass& c : sample.stats.classes)
    if (c.spans != 0 || c.refills != 0) used.push_back(c);
  const auto labels = [](const LiveClass& c) { return fmt::format(",slot_bytes=\"{}\"", c.slot_bytes); };
  const auto add = [&](const char* name, const char* help, bool is_counter, auto value) {
    add_each(to, name, help, is_counter, used, labels, value);
  };
  add("class_spans", "Spans of the size class.", false, [](const LiveClass& c) { return c.spans; });
  add("class_used_slots", "Slots of the size class that are in use.", false,
      [](const LiveClass& c) { return c.used_slots(); });
  add("class_cached_slots", "Free slots of the size class in caches of threads.", false,
      [](const LiveClass& c) { return c.cached_slots; });
  add("class_free_slots", "Free slots of the size class in no cache.", false,
      [](const LiveClass& c) { return c.free_slots; });
  add("class_refills", "Refills of caches, by size class.", true, [](const LiveClass& c) { return c.refills; });
  add("class_drains", "Drains of caches, by size class.", true, [](const LiveClass& c) { return c.drains; });
}

void add_threads(Exposition& to, const Sample& sample) {
  const auto labels = [](const LiveThread& thread) {
    return fmt::format(",thread=\"{}\",name=\"{}\"", thread.thread, escaped(thread.name));
  };
  const auto add = [&](const char* name, const char* help, bool is_counter, auto value) {
    add_each(to, name, help, is_counter, sample.stats.threads, labels, value);
  };
  add("thread_cached_bytes", "Free slots in the thread's cache.", false,
      [](const LiveThread& thread) { return thread.cached_bytes; });
  add("thread_granted_bytes", "What the thread's cache may hold.", false,
      [](const LiveThread& thread) { return thread.granted_bytes; });
  add("thread_refills", "Refills of the thread's cache.", true, [](const LiveThread& thread) { return thread.refills; });
  add("thread_drains", "Drains of the thread's cache.", true, [](const LiveThread& thread) { return thread.drains; });
  add("thread_remote_frees", "Slots that the thread gave back to spans that another used last.", true,
      [](const LiveThread& thread) { return thread.remote_frees; });
}

void add_heaps(Exposition& to, const Sample& sample) {
  const auto labels = [](const LiveHeapFigures& heap) { return fmt::format(",heap=\"{}\"", escaped(heap.name)); };
  const auto add = [&](const char* name, const char* help, bool is_counter, auto value) {
    add_each(to, name, help, is_counter, sample.stats.heaps, labels, value);
  };
  add("heaps", "Private heaps of this name.", false, [](const LiveHeapFigures&) { return 1; });
  add("heap_live_blocks", "Blocks in use.", false, [](const LiveHeapFigures& heap) { return heap.live_objects; });
  add("heap_live_bytes", "Bytes of the slots of blocks in use.", false,
      [](const LiveHeapFigures& heap) { return heap.live_bytes; });
  add("heap_used_bytes", "Pages in use and large blocks: what the limit counts.", false,
      [](const LiveHeapFigures& heap) { return heap.used_bytes; });
  add("heap_held_bytes", "What the heap has from the engine.", false,
      [](const LiveHeapFigures& heap) { return heap.held_bytes; });
  add("heap_limit_bytes", "The heap's limit, if it has one.", false,
      [](const LiveHeapFigures& heap) { return heap.limit_bytes; });
  add("heap_conflicts", "Operations that met another thread in a shard.", true,
      [](const LiveHeapFigures& heap) { return heap.conflicts; });
}

void add_pools(Exposition& to, const Sample& sample) {
  const auto labels = [](const LivePoolFigures& pool) { return fmt::format(",pool=\"{}\"", escaped(pool.name)); };
  const auto add = [&](const char* name, const char* help, auto value) {
    add_each(to, name, help, false, sample.stats.pools, labels, value);
  };
  add("pools", "Pools of this name.", [](const LivePoolFigures&) { return 1; });
  add("pool_capacity_slots", "The most objects that there can be.",
      [](const LivePoolFigures& pool) { return pool.capacity; });
  add("pool_opened_slots", "The most slots that were out at once.",
      [](const LivePoolFigures& pool) { return pool.opened_slots; });
  add("pool_taken_slots", "Slots in use, in arrays of threads, or on their way.",
      [](const LivePoolFigures& pool) { return pool.taken_slots; });
}

}  // namespace

std::string prometheus_of(const Sample& sample) {
  Exposition to(sample.pid);
  to.add("process_info", "The process.", false, {{fmt::format(",command=\"{}\"", escaped(sample.command)), 1}});
  for (const Figure& figure : figures_of(sample.stats))
    to.add(figure.name, figure.help, figure.is_counter, {{"", figure.value}});
  add_classes(to, sample);
  add_threads(to, sample);
  add_heaps(to, sample);
  add_pools(to, sample);
  return to.text();
}

}  // namespace freehold::cli::stats
