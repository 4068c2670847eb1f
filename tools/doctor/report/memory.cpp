// SPDX-License-Identifier: MIT
#include "tools/doctor/report/memory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tools/doctor/facts/own_malloc.hpp"
#include "tools/doctor/report/examine.hpp"
#include "tools/doctor/report/results_json.hpp"
#include "tools/doctor/report/variants.hpp"
#include "tools/doctor/run/child.hpp"
#include "tools/support/arguments.hpp"
#include "tools/support/library.hpp"

namespace freehold::doctor::report {
namespace {
using nlohmann::ordered_json;

// Often enough that what is free is given back before the next look at the program.
constexpr const char* kTrimEvery_ms = "20";

MemoryVariant arenas(unsigned count) {
  return {.treatment = count == 1 ? MemoryTreatment::kOneArena : MemoryTreatment::kPeer,
          .how = {.treatment = Treatment::kCappedArenas,
                  .name = fmt::format("glibc, {} arena{}", count, count == 1 ? "" : "s"),
                  .preload = {},
                  .environment = {{"MALLOC_ARENA_MAX", std::to_string(count)}}}};
}
MemoryVariant no_caches() {
  return {.treatment = MemoryTreatment::kNoCaches,
          .how = {.treatment = Treatment::kPeer,
                  .name = "glibc, no caches",
                  .preload = {},
                  .environment = {{"GLIBC_TUNABLES", "glibc.malloc.tcache_count=0"}}}};
}
MemoryVariant trimming() {
  return {.treatment = MemoryTreatment::kTrimmed,
          .how = {.treatment = Treatment::kPeer,
                  .name = "glibc, trimmed",
                  .preload = {find_own_library("libfreehold-pad.so")},
                  .environment = {{"FREEHOLD_TRIM_MS", kTrimEvery_ms}}}};
}
MemoryVariant library(const std::string& word) {
  const Allocator allocator = find_allocator(word);
  const bool is_freehold = word == "freehold";
  return {.treatment = is_freehold ? MemoryTreatment::kFreehold : MemoryTreatment::kPeer,
          .how = {.treatment = is_freehold ? Treatment::kFreehold : Treatment::kPeer,
                  .name = allocator.name,
                  .preload = {allocator.library}}};
}

std::vector<MemoryVariant> wished(const std::string& words) {
  std::vector<MemoryVariant> variants;
  for (const std::string& word : split_list("--allocators", words)) {
    if (word == "system") continue;
    if (word == "arenas")
      variants.push_back(arenas(1));
    else if (word == "caches")
      variants.push_back(no_caches());
    else if (word == "trimmed")
      variants.push_back(trimming());
    else
      variants.push_back(library(word));
  }
  return variants;
}

// All that are there. A note says what is missing of the command's own.
std::vector<MemoryVariant> all_variants(std::vector<std::string>& notes) {
  std::vector<MemoryVariant> variants{arenas(1), arenas(2), no_caches()};
  const auto add = [&](const auto& make, bool is_own) {
    try {
      variants.push_back(make());
    } catch (const Failure& failure) {
      if (is_own) notes.push_back(fmt::format("Not everything was tried: {}.", failure.what()));
    }
  };
  add(trimming, true);
  add([] { return library("freehold"); }, true);
  for (const std::string& peer : known_peers()) add([&peer] { return library(peer); }, false);
  return variants;
}

MemoryTools tools_for(const std::set<std::string>& files, const MemoryRequest& request, std::vector<std::string>& notes) {
  const MallocOrigin origin = malloc_origin(files);
  MemoryTools tools;
  tools.is_glibc = origin.glibc;
  tools.name = origin.glibc ? "system" : "its own";
  tools.probe = find_probe(origin, notes);
  if (origin.built_in) {
    notes.push_back(fmt::format("{} has its own malloc built in: no other was tried.", printable(origin.file)));
    return tools;
  }
  tools.variants = request.allocators ? wished(*request.allocators) : all_variants(notes);
  if (origin.glibc) return tools;
  notes.push_back(fmt::format("The program brings its own malloc, that of {}: switches of glibc's were left out.",
                              printable(origin.file)));
  std::erase_if(tools.variants, [](const MemoryVariant& variant) { return variant.how.name.starts_with("glibc"); });
  return tools;
}

// Unless it is switched off already.
std::optional<MemoryDiagnosis::OwnAllocator> own_allocator_of(const std::set<std::string>& files) {
  for (const doctor::OwnMalloc& own : doctor::own_mallocs(files)) {
    if (own.is_reached) continue;
    MemoryDiagnosis::OwnAllocator found{
        .name = own.name, .program = std::filesystem::path(own.file).filename().string(), .use_malloc = {}};
    if (own.use_malloc) {
      const auto& [variable, value] = *own.use_malloc;
      if (const char* const set = std::getenv(variable.c_str()); set != nullptr && set == value) continue;
      found.use_malloc = variable + '=' + value;
    }
    return found;
  }
  return std::nullopt;
}

std::string note_of(const MemoryDiagnosis::OwnAllocator& own) {
  return fmt::format(
      "{} has {}, which maps memory itself: what it hands out counts as mappings, and its sites are not seen{}",
      printable(own.program), own.name,
      own.use_malloc.empty() ? "." : fmt::format("; with {} in the environment they are.", own.use_malloc));
}

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

MemoryDiagnosis examine_memory(const MemoryRequest& request, Interrupts& interrupts, Progress& progress) {
  const std::string program = printable(request.settings.command.front());
  const double begin = doctor::now_s();
  MemoryDiagnosis diagnosis{.settings = request.settings,
                            .program = request.program,
                            .machine = this_machine(),
                            .date = today(),
                            .experiment = {},
                            .verdict = {},
                            .own = {},
                            .is_cut = false,
                            .notes = {}};
  const doctor::MemoryCaller caller{
      .host = {.mask = interrupts.original_mask(), .stop_fd = interrupts.fd()},
      .show =
          [&](const std::string& what, double seconds_left) {
            if (request.settings.show_output) return;  // of the program, on the same terminal
            progress.show(seconds_left > 0 ? fmt::format("{}  ({} left)", what, duration_text(seconds_left)) : what);
          },
      .tools =
          [&](const std::set<std::string>& files) {
            diagnosis.own = own_allocator_of(files);
            if (diagnosis.own) diagnosis.notes.push_back(note_of(*diagnosis.own));
            return tools_for(files, request, diagnosis.notes);
          },
      .signal = [&interrupts] { return interrupts.arrived(); }};
  try {
    auto outcome = doctor::examine_memory(request.settings, request.program, caller);
    diagnosis.experiment = std::move(outcome.experiment);
    diagnosis.verdict = std::move(outcome.verdict);
    diagnosis.signal = outcome.signal;
    for (auto& cell : diagnosis.experiment.cells) cell.failure = printable(cell.failure);
    for (const std::string& note : outcome.notes) diagnosis.notes.push_back(fmt::format("Note: {}.", printable(note)));
    diagnosis.is_cut = !outcome.left_out.empty();
    if (diagnosis.is_cut)
      diagnosis.notes.push_back(fmt::format("Left out, to end within {:.0f} s: {}. A longer --budget includes them.",
                                            request.settings.budget_s, fmt::join(outcome.left_out, "; ")));
    diagnosis.seconds = doctor::now_s() - begin;
    progress.wipe();
    return diagnosis;
  } catch (const Refused& refused) {
    throw failure_of(refused, program, request.settings, interrupts.arrived());
  }
}

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
            {"doubt",
             verdict.doubt == doctor::MemoryDoubt::kNone ? ordered_json(nullptr) : ordered_json(name_of(verdict.doubt))},
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
