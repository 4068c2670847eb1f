// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "cli/report/json.hpp"
#include "cli/stats/columns.hpp"
#include "cli/stats/sample.hpp"

namespace freehold::cli::stats {
namespace {
using nlohmann::ordered_json;

// `json` with the columns of `of` behind it.
template <class T>
ordered_json row_json(ordered_json json, const T& of, const auto& columns) {
  for (const Column<T>& column : columns)
    if (column.key != nullptr) json[column.key] = or_null(column.value(of));
  return json;
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

}  // namespace freehold::cli::stats
