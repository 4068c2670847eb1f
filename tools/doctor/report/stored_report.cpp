// SPDX-License-Identifier: MIT
// The one reader of the JSON that results_json.cpp writes.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "tools/doctor/facts/resampled.hpp"
#include "tools/doctor/report/compare_answer.hpp"
#include "tools/doctor/report/results_json.hpp"
#include "tools/support/failure.hpp"

namespace freehold::doctor::report {
namespace {
using nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& file, std::string_view why) {
  throw Failure(kExitRefused,
                fmt::format("{}: {}; a report is what 'freehold doctor --json FILE' writes", printable(file), why));
}

ordered_json parsed(const std::string& file) {
  std::ifstream in(file);
  if (!in) refuse(file, fmt::format("cannot be read: {}", error_text(errno)));
  std::string text;
  try {
    text.assign(std::istreambuf_iterator<char>(in), {});
  } catch (const std::ios_base::failure&) {
    refuse(file, "cannot be read: it is a folder");
  }
  ordered_json report = ordered_json::parse(text, nullptr, false);
  if (report.is_discarded()) refuse(file, "is not JSON");
  if (!report.is_object() || !report.contains("schema")) refuse(file, "is JSON, but no report");
  if (report["schema"] != kSchema)
    refuse(file, fmt::format("has the schema {}, where {} can be read", printable(report["schema"].dump()), kSchema));
  return report;
}

Trial trial_of(const ordered_json& json) {
  Trial trial;
  FREEHOLD_FROM_JSON(json, trial, wall_s, user_s, system_s, peak_rss_bytes, page_faults, voluntary_switches,
                     involuntary_switches, stolen_s, taken_s, throttled_s, throughput);
  if (json.contains("ready_share")) FREEHOLD_FROM_JSON(json, trial, ready_share);
  return trial;
}

std::vector<Trial> trials_in(const ordered_json& report, const ordered_json& setting) {
  std::vector<Trial> trials;
  for (const auto& cell : report.at("experiment").at("cells")) {
    if (cell.at("variant") != 0 || cell.at("setting") != setting) continue;
    for (const auto& trial : cell.at("trials")) trials.push_back(trial_of(trial));
  }
  return trials;
}

Setting setting_of(const ordered_json& json) {
  return {.threads = json.at("threads").is_null() ? 0 : json.at("threads").get<unsigned>(),
          .cpus = json.at("cpus").get<unsigned>(),
          .copies = json.at("copies").get<unsigned>()};
}

}  // namespace

NamedSide side_of(const ordered_json& report, std::string name) {
  const ordered_json& verdict = report.at("verdict");
  const ordered_json& machine = report.at("machine");
  NamedSide side{
      .name = std::move(name),
      .machine = fmt::format("{}, {} CPUs", machine.at("cpu_model").get<std::string>(), machine.at("cpus").get<unsigned>()),
      .headline = verdict.at("headline").get<std::string>(),
      .measured = {.on_all = setting_of(verdict.at("all")),
                   .on_one = setting_of(verdict.at("alone")),
                   .all = trials_in(report, verdict.at("all")),
                   .alone = trials_in(report, verdict.at("alone")),
                   .lost = {},
                   .in_malloc = {},
                   .allocations = {}}};
  // A program that was run in one setting alone has no known loss.
  if (verdict.at("speedup").at("value").get<double>() > 0) side.measured.lost = verdict.at("lost").get<Estimate>();
  if (const ordered_json& recording = report.at("recording"); !recording.is_null()) {
    const double share = recording.at("cpu_share").get<double>();
    const double error = kNineOfTen * recording.at("cpu_share_error").get<double>();
    side.measured.in_malloc = Estimate{std::max(0.0, share - error), share, std::min(1.0, share + error)};
    side.measured.allocations = recording.at("allocating").at("calls").get<double>();
  }
  return side;
}

NamedSide read_side(const std::string& file) {
  const ordered_json report = parsed(file);
  try {
    return side_of(report, file);
  } catch (const ordered_json::exception& error) {
    refuse(file, fmt::format("is damaged ({})", printable(error.what())));
  }
}

}  // namespace freehold::doctor::report
