// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "cli/report/json.hpp"
#include "cli/stats/sample.hpp"

namespace freehold::cli::stats {
namespace {
using freehold::live::LiveClass;
using freehold::live::LiveHeapFigures;
using freehold::live::LivePoolFigures;
using freehold::live::LiveThread;
using nlohmann::ordered_json;

ordered_json class_json(const LiveClass& c) {
  return {
      {"slot_bytes", c.slot_bytes},     {"spans", c.spans},           {"slots", c.slots},     {"used_slots", c.used_slots()},
      {"cached_slots", c.cached_slots}, {"free_slots", c.free_slots}, {"refills", c.refills}, {"drains", c.drains}};
}

ordered_json thread_json(const LiveThread& thread) {
  return {{"thread", thread.thread},
          {"name", thread.name},
          {"cached_bytes", thread.cached_bytes},
          {"granted_bytes", thread.granted_bytes},
          {"refills", thread.refills},
          {"drains", thread.drains},
          {"remote_frees", thread.remote_frees}};
}

ordered_json heap_json(const LiveHeapFigures& heap) {
  return {{"name", heap.name},
          {"live_objects", heap.live_objects},
          {"live_bytes", heap.live_bytes},
          {"used_bytes", heap.used_bytes},
          {"held_bytes", heap.held_bytes},
          {"limit_bytes", or_null(heap.limit_bytes)},
          {"slabs", heap.slabs},
          {"large_blocks", heap.large_blocks},
          {"conflicts", heap.conflicts}};
}

ordered_json pool_json(const LivePoolFigures& pool) {
  return {{"name", pool.name},
          {"slot_bytes", pool.slot_bytes},
          {"capacity", or_null(pool.capacity)},
          {"opened_slots", or_null(pool.opened_slots)},
          {"taken_slots", or_null(pool.taken_slots)}};
}

// Of every counter of the whole process.
ordered_json rates_json(const Sample& sample, const Sample& before) {
  ordered_json rates = {{"seconds", sample.at_s - before.at_s}};
  const std::vector<Figure> olds = figures_of(before.stats);
  for (const Figure& figure : figures_of(sample.stats)) {
    if (!figure.is_counter) continue;
    for (const Figure& old : olds)
      if (std::string_view(old.name) == figure.name)
        rates[figure.name] = or_null(per_second(figure.value, old.value, sample.at_s - before.at_s));
  }
  return rates;
}

}  // namespace

std::string json_of(const Sample& sample, const Sample* before) {
  ordered_json levels = ordered_json::object(), counters = ordered_json::object();
  for (const Figure& figure : figures_of(sample.stats)) (figure.is_counter ? counters : levels)[figure.name] = figure.value;
  ordered_json classes = ordered_json::array();
  for (const LiveClass& c : sample.stats.classes)
    if (c.spans != 0 || c.refills != 0) classes.push_back(class_json(c));
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
      {"threads", list_json(sample.stats.threads, thread_json)},
      {"heaps", list_json(sample.stats.heaps, heap_json)},
      {"pools", list_json(sample.stats.pools, pool_json)},
      {"lists_changed", sample.stats.lists_changed},
  };
  return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace freehold::cli::stats
