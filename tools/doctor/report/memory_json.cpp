// SPDX-License-Identifier: MIT
// A diagnosis of memory as JSON: docs/memory.md describes the fields.
#include "tools/doctor/report/memory.hpp"
#include "tools/doctor/report/results_json.hpp"

namespace freehold::doctor::report {
namespace {
using nlohmann::ordered_json;

ordered_json parts_json(const MemoryDiagnosis& diagnosis) {
  ordered_json parts = ordered_json::array();
  for (std::size_t i = 0; i < kMemoryParts; ++i) {
    const auto part = static_cast<MemoryPart>(i);
    parts.push_back({{"part", name_of(part)},
                     {"text", text_of(part)},
                     {"mean_bytes", diagnosis.verdict.parts[part]},
                     {"at_peak_bytes", diagnosis.verdict.at_peak[part]}});
  }
  return parts;
}

ordered_json cell_json(const MemoryCell& cell) {
  return {{"name", cell.variant.how.name},
          {"preload", cell.variant.how.preload},
          {"environment", environment_json(cell.variant.how)},
          {"failure", text_or_null(cell.failure)},
          {"trials", list_json(cell.trials, [](const auto& trial) {
             return FREEHOLD_JSON_OF(trial, mean_bytes, peak_bytes, end_bytes, files_bytes, wall_s);
           })}};
}

ordered_json site_json(const LiveSite& site) {
  return {{"site", site.place.text()},
          {"via", text_or_null(site.place.via)},
          {"at_peak_bytes", site.at_peak},
          {"mean_bytes", site.in_mean},
          {"never_freed", site.is_kept()},
          {"grows", site.grows()},
          {"stack", list_json(site.place.stacks.front().frames, [](const auto& frame) { return frame.text(); })}};
}

ordered_json record_json(const MemoryRecord& record) {
  return {{"mean_live_bytes", record.mean_live},
          {"peak_live_bytes", record.peak_live},
          {"end_live_bytes", record.end_live},
          {"mean_largest_block_bytes", record.mean_largest_block},
          {"dropped", record.dropped},
          {"sites", list_json(record.sites, site_json)},
          {"history", list_json(record.history, [](const auto& point) {
             return FREEHOLD_JSON_OF(point, at_s, live_bytes, resident_bytes);
           })}};
}

}  // namespace

ordered_json json_of(const MemoryDiagnosis& diagnosis) {
  const auto& verdict = diagnosis.verdict;
  const auto fix_json = [&](const MemoryFix& fix) -> ordered_json {
    const MemoryCell& cell = diagnosis.experiment.cells[fix.cell];
    const bool is_known = !cell.trials.empty();
    return {{"name", cell.variant.how.name},
            {"text", effect_text(diagnosis, fix)},
            {"saved_bytes", is_known ? std::optional(fix.saved) : std::nullopt},
            {"peak_saved_bytes", is_known ? std::optional(fix.peak_saved) : std::nullopt},
            {"helps", fix.helps},
            {"failed", fix.failed}};
  };
  const auto& record = diagnosis.experiment.record;
  return {{"schema", "freehold-doctor-memory/1"},
          {"date", diagnosis.date},
          {"complete", diagnosis.experiment.complete},
          {"seconds", diagnosis.seconds},
          {"machine", machine_json(diagnosis.machine)},
          {"program", {{"file", diagnosis.program}, {"command", diagnosis.settings.command}}},
          {"verdict",
           {{"cause", name_of(verdict.cause)},
            {"blames_allocator", blames_allocator(verdict.cause)},
            {"missing", text_or_null(std::string(verdict.missing ? describe(*verdict.missing).name : ""))},
            {"facts", facts_json(verdict.facts)},
            {"headline", headline_of(diagnosis)},
            {"advice", text_or_null(advice_of(diagnosis))},
            {"mean_bytes", verdict.mean_bytes},
            {"run_mean_bytes", verdict.run_mean},
            {"run_peak_bytes", verdict.run_peak},
            {"leak_share", verdict.leak_share},
            {"untouched_bytes", verdict.parts.untouched_bytes},
            {"parts", parts_json(diagnosis)}}},
          {"fixes", list_json(verdict.fixes, fix_json)},
          {"notes", diagnosis.notes},
          {"trials", list_json(diagnosis.experiment.cells, cell_json)},
          {"recording", record ? record_json(*record) : ordered_json(nullptr)}};
}

}  // namespace freehold::doctor::report
