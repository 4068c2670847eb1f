// SPDX-License-Identifier: MIT
#include "cli/replay/trace_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "cli/report/json.hpp"
#include "cli/support/failure.hpp"

namespace freehold::cli::replay {
namespace {
namespace fs = std::filesystem;
using freehold::doctor::SiteTrace;
using freehold::doctor::TraceStep;
using nlohmann::ordered_json;

constexpr const char* kFormat = "freehold-trace";

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::kBaseline: return "baseline";
    case Kind::kMalloc: return "malloc";
    case Kind::kEngine: return "engine";
    case Kind::kPool: return "pool";
    case Kind::kHeap: return "heap";
  }
  return {};
}

// Two numbers a step: the thread, and the block that ends or -1 for the next one that begins.
std::vector<std::int64_t> numbers_of(const std::vector<TraceStep>& steps) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(2 * steps.size());
  for (const TraceStep& step : steps) {
    numbers.push_back(step.thread);
    numbers.push_back(step.is_end ? std::int64_t{step.block} : -1);
  }
  return numbers;
}

// Numbers that no step has become ones that fault_of() finds.
std::vector<TraceStep> recommendations_of(const std::vector<std::int64_t>& numbers) {
  std::vector<TraceStep> steps;
  steps.reserve(numbers.size() / 2);
  std::uint32_t begun = 0;
  for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) {
    const auto thread = static_cast<std::uint16_t>(std::clamp<std::int64_t>(numbers[i], -1, 0xffff));
    if (numbers[i + 1] < 0)
      steps.push_back({.block = begun++, .thread = thread, .is_end = false});
    else
      steps.push_back({.block = static_cast<std::uint32_t>(std::min<std::int64_t>(numbers[i + 1], 0xffff'ffff)),
                       .thread = thread,
                       .is_end = true});
  }
  return steps;
}

// What a trace has beside its steps.
#define FREEHOLD_TRACE_MEMBERS site, bytes, threads, blocks, peak_live, set_up, window_s, cpu_share, pair_ns

SiteTrace trace_of(const nlohmann::json& json) {
  SiteTrace trace;
  FREEHOLD_FROM_JSON(json, trace, FREEHOLD_TRACE_MEMBERS);
  trace.steps = recommendations_of(json.at("steps").get<std::vector<std::int64_t>>());
  return trace;
}

ordered_json row_json(const Row& row) {
  return {{"name", row.name},
          {"kind", name_of(row.kind)},
          {"pair_ns", row.failure.empty() ? std::optional(row.pair_ns) : std::nullopt},
          {"spread", row.spread},
          {"resident_bytes", row.resident_bytes},
          {"failure", text_or_null(row.failure)}};
}

ordered_json site_json(const SiteAdvice& site) {
  ordered_json json = FREEHOLD_JSON_OF(site, site, bytes, threads, blocks, peak_live, cpu_share, program_pair_ns, best,
                                       ratio, gain, capacity, sentence);
  json["code"] = text_or_null(site.code);
  json["rows"] = list_json(site.rows, row_json);
  return json;
}

}  // namespace

ordered_json json_of(const std::vector<SiteTrace>& traces) {
  const auto trace_json = [](const SiteTrace& trace) {
    ordered_json json = FREEHOLD_JSON_OF(trace, FREEHOLD_TRACE_MEMBERS);
    json["steps"] = numbers_of(trace.steps);
    return json;
  };
  return {{"format", kFormat}, {"version", 1}, {"traces", list_json(traces, trace_json)}};
}

std::vector<SiteTrace> read_traces(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw Failure(kExitRefused, fmt::format("{} cannot be read", printable(path)));
  std::vector<SiteTrace> traces;
  try {
    const auto json = nlohmann::json::parse(in);
    if (json.at("format") != kFormat || json.at("version") != 1)
      throw Failure(kExitRefused, fmt::format("{} is not a trace of this version; see docs/replay.md", printable(path)));
    for (const auto& trace : json.at("traces")) traces.push_back(trace_of(trace));
  } catch (const nlohmann::json::exception&) {
    throw Failure(kExitRefused, fmt::format("{} is not a trace; freehold replay FOLDER --save FILE makes one of a recording "
                                            "that freehold doctor --keep-recording FOLDER has left",
                                            printable(path)));
  }
  for (std::size_t i = 0; i < traces.size(); ++i)
    if (const std::string fault = fault_of(traces[i]); !fault.empty())
      throw Failure(kExitRefused, fmt::format("{}: trace {} cannot be replayed: {}", printable(path), i + 1, fault));
  return traces;
}

std::vector<SiteTrace> traces_of_recordings(const fs::path& folder) {
  using namespace freehold::doctor;
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".trace") files.push_back(at->path());
  std::ranges::sort(files);
  std::vector<Recording> recordings;
  std::vector<std::unique_ptr<Symbols>> symbols;
  for (fs::path& file : files) {
    NoRecording no;
    auto recording = read_recording(file, no);
    if (!recording) throw Failure(kExitRefused, printable(no.why));
    recordings.push_back(std::move(*recording));
    symbols.push_back(std::make_unique<Symbols>(file.replace_extension(".maps")));
  }
  if (recordings.empty())
    throw Failure(kExitRefused,
                  fmt::format("there is no recording in {}; freehold doctor --keep-recording FOLDER leaves one",
                              printable(folder.string())));
  std::vector<Evidence> processes;
  for (std::size_t i = 0; i < recordings.size(); ++i)
    processes.push_back(
        {recordings[i], [&names = *symbols[i]](std::uint64_t address) -> const auto& { return names.frames(address); }});
  return site_traces_of(processes, attribution_of(processes));
}

ordered_json json_of(const Advice& advice) {
  return {{"complete", advice.complete}, {"sites", list_json(advice.sites, site_json)}};
}

}  // namespace freehold::cli::replay
