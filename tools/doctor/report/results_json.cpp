// SPDX-License-Identifier: MIT
#include "tools/doctor/report/results_json.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/report/format.hpp"
#include "tools/doctor/report/verdict_text.hpp"
#include "tools/support/statistics.hpp"

namespace freehold::doctor::report {
namespace {
using nlohmann::ordered_json;

ordered_json number_or_null(double value) { return value == 0 ? ordered_json(nullptr) : ordered_json(value); }
ordered_json number_or_null(unsigned value) { return value == 0 ? ordered_json(nullptr) : ordered_json(value); }

std::string_view name_of(Work work) {
  switch (work) {
    case Work::kAuto: return "auto";
    case Work::kFixed: return "fixed";
    case Work::kPerThread: return "per-thread";
  }
  __builtin_unreachable();
}

ordered_json settings_json(const Settings& settings) {
  ordered_json server = nullptr;
  if (settings.server.used())
    server = {{"seconds", number_or_null(settings.server.seconds)},
              {"load", text_or_null(settings.server.load)},
              {"ready", text_or_null(settings.server.ready)},
              {"ready_after_s", number_or_null(settings.server.ready_after_s)},
              {"throughput", text_or_null(settings.server.throughput)}};
  return {{"command", settings.command},
          {"knob", name_of(settings.parallelism)},
          {"knob_text", text_or_null(settings.parallelism_text)},
          {"widths", settings.widths},
          {"work", name_of(settings.work)},
          {"budget_s", number_or_null(settings.budget_s)},
          {"rounds", number_or_null(settings.rounds)},
          {"input", text_or_null(settings.input)},
          {"allow_failure", settings.allow_failure},
          {"server", std::move(server)}};
}

ordered_json setting_json(const Setting& setting) {
  return {{"text", describe(setting)},
          {"threads", number_or_null(setting.threads)},
          {"cpus", setting.cpus},
          {"copies", setting.copies},
          {"width", setting.width()}};
}

ordered_json verdict_json(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  const VerdictText text = verdict_text_of(diagnosis);
  const auto part_json = [](const Part& part) -> ordered_json {
    return {{"cause", doctor::name_of(part.cause)},
            {"text", text_of(part.cause)},
            {"allocator", blames_allocator(part.cause)},
            {"share", part.share}};
  };
  return {{"cause", doctor::name_of(verdict.cause)},
          {"blames_allocator", blames_allocator(verdict.cause)},
          {"headline", text.headline},
          {"because", text.because},
          {"bound", text_or_null(text.bound)},
          {"tried", text_or_null(text.tried)},
          {"advice", text_or_null(text.advice)},
          {"alone", setting_json(verdict.alone)},
          {"all", setting_json(verdict.all)},
          {"speedup", verdict.speedup},
          {"ideal_speedup", verdict.ideal_speedup},
          {"lost", verdict.lost},
          {"allocator_share", verdict.allocator_share},
          {"parts", list_json(verdict.parts, part_json)},
          {"most_gain", verdict.most_gain},
          {"rests_on", verdict.rests_on ? ordered_json(name_of(*verdict.rests_on)) : ordered_json(nullptr)},
          {"doubt", verdict.doubt == Doubt::kNone ? ordered_json(nullptr) : ordered_json(name_of(verdict.doubt))},
          {"suspected", verdict.doubt == Doubt::kNone || verdict.suspected == Cause::kUndecided
                            ? ordered_json(nullptr)
                            : ordered_json(doctor::name_of(verdict.suspected))},
          {"contradictions", names_json(verdict.contradictions)},
          {"one_thread", verdict.one_thread},
          {"disturbance", verdict.disturbance},
          {"noisy", verdict.noisy}};
}

ordered_json fixes_json(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  return list_json(best_first(verdict), [&](const Fix* fix) -> ordered_json {
    const bool measured = fix->gain.value > 0;
    return {{"variant", fix->variant},
            {"text", text_of(diagnosis.experiment.variants[fix->variant])},
            {"gain", measured ? std::optional(fix->gain) : std::nullopt},
            {"memory", fix->memory.value > 0 ? std::optional(fix->memory) : std::nullopt},
            {"gain_text", measured ? value_text(fix->gain) : "–"},
            {"range_text", measured ? range_text(fix->gain) : ""},
            {"judgement", judgement_of(*fix)},
            {"helps", fix->helps},
            {"failed", fix->failed},
            {"best", verdict.best_fix && &verdict.fixes[*verdict.best_fix] == fix}};
  });
}

ordered_json scalability_json(const Scalability& one) {
  ordered_json json = FREEHOLD_JSON_OF(one, variant, contention, coherency, worst_error);
  if (!one.has_coherency) json["coherency"] = nullptr;
  return json;
}

ordered_json trial_json(const Trial& trial) {
  return FREEHOLD_JSON_OF(trial, wall_s, user_s, system_s, peak_rss_bytes, page_faults, voluntary_switches,
                          involuntary_switches, stolen_s, taken_s, ready_share, run_delay_s, own_cpus, throttled_s,
                          instructions, throughput, wait_status, round);
}

ordered_json cell_json(const Experiment& experiment, const Cell& cell) {
  const std::vector<double> costs = costs_of(cell);
  const auto limit = [&](auto pick) { return costs.empty() ? ordered_json(nullptr) : ordered_json(pick(costs)); };
  return {{"variant", cell.variant},
          {"setting", setting_json(cell.setting)},
          {"cost", if_measured(cost, &cell)},
          {"least_cost", limit([](const auto& all) { return std::ranges::min(all); })},
          {"greatest_cost", limit([](const auto& all) { return std::ranges::max(all); })},
          {"spread", spread(costs)},
          {"speed", speed(experiment, cell)},
          {"ideal_speed", ideal_speed(experiment, cell.setting)},
          {"peak_rss_bytes", limit([&cell](const auto&) { return static_cast<std::uint64_t>(peak_bytes(cell)); })},
          {"busy_cpus", if_measured(busy_cpus, &cell)},
          {"failure", text_or_null(cell.failure)},
          {"trials", list_json(cell.trials, trial_json)}};
}

ordered_json variant_json(const Variant& variant) {
  return {{"name", variant.name},
          {"text", text_of(variant)},
          {"treatment", doctor::name_of(variant.treatment)},
          {"preload", variant.preload},
          {"environment", environment_json(variant)}};
}

ordered_json code_json(const Diagnosis& diagnosis) {
  const doctor::CodeGrowth& code = diagnosis.experiment.code;
  if (!code.known) return nullptr;
  const auto place = [](const auto& frame) { return frame ? ordered_json(frame->text()) : ordered_json(nullptr); };
  ordered_json json = FREEHOLD_JSON_OF(code, work_grows, same, grown, spinning, team_waiting, locking, private_locking,
                                       contended, slowed, allocator, in_malloc, lock_sleepers, lock_sleeps);
  if (!code.work_known) json["work_grows"] = nullptr;
  json["spins_at"] = place(diagnosis.spins_at);
  json["contended_at"] = place(diagnosis.contended_at);
  return json;
}

ordered_json experiment_json(const Diagnosis& diagnosis) {
  const Experiment& experiment = diagnosis.experiment;
  const auto delayed_json = [](const Delayed& of) -> ordered_json {
    return {{"delay_s", of.delay_s}, {"trials", list_json(of.trials, trial_json)}};
  };
  return {{"machine_cpus", experiment.machine_cpus},
          {"quota_cpus", number_or_null(experiment.quota_cpus)},
          {"affinity_cpus", experiment.affinity_cpus},
          {"online_cpus", experiment.online_cpus},
          {"own_cpus", number_or_null(experiment.own_cpus)},
          {"most_threads", number_or_null(experiment.most_threads)},
          {"work_grows", experiment.work_grows},
          {"work_is_guessed", experiment.work_is_guessed},
          {"code", code_json(diagnosis)},
          {"control", FREEHOLD_JSON_OF(experiment.control, compute, memory)},
          {"delayed", list_json(experiment.delayed, delayed_json)},
          {"crowded", list_json(experiment.crowded, trial_json)},
          {"variants", list_json(experiment.variants, variant_json)},
          {"cells", list_json(experiment.cells, [&](const Cell& cell) { return cell_json(experiment, cell); })}};
}

ordered_json own_json(const OwnAllocator& own, const Diagnosis& diagnosis) {
  ordered_json json = FREEHOLD_JSON_OF(own, name, file, reached, calls, malloc_calls);
  json["use_malloc"] = text_or_null(own.use_malloc);
  json["text"] = text_of(own, diagnosis);
  return json;
}

std::string_view name_of(WaitKind kind) {
  switch (kind) {
    case WaitKind::kMutex: return "mutex";
    case WaitKind::kReadLock: return "read-lock";
    case WaitKind::kWriteLock: return "write-lock";
    case WaitKind::kSpinLock: return "spin-lock";
    case WaitKind::kCondition: return "condition";
    case WaitKind::kSemaphore: return "semaphore";
    case WaitKind::kFutexLock: return "futex-lock";
    case WaitKind::kFutexWait: return "futex-wait";
  }
  __builtin_unreachable();
}

// Frames recur in thousands of stacks: each is written once, stacks name it by its place.
class Frames {
 public:
  explicit Frames(std::size_t longest_name) : longest_name_(longest_name) {}

  std::size_t place_of(const Frame& frame) {
    const auto key = std::tuple(frame.function, frame.file, frame.line, frame.module, frame.inlined);
    const auto [found, is_new] = places_.try_emplace(key, json_.size());
    if (is_new)
      json_.push_back({{"function", text_or_null(clipped(frame.function))},
                       {"file", text_or_null(frame.file)},
                       {"line", frame.line == 0 ? ordered_json(nullptr) : ordered_json(frame.line)},
                       {"module", text_or_null(frame.module)},
                       {"inlined", frame.inlined}});
    return found->second;
  }
  ordered_json json() && { return std::move(json_); }
  [[nodiscard]] std::string clipped(const std::string& name) const {
    return name.size() > longest_name_ ? name.substr(0, longest_name_) + "…" : name;
  }

 private:
  std::size_t longest_name_;
  std::map<std::tuple<std::string, std::string, unsigned, std::string, bool>, std::size_t> places_;
  ordered_json json_ = ordered_json::array();
};

// A recording as JSON.
class RecordingWriter {
 public:
  explicit RecordingWriter(const Limits& limits) : limits_(limits), frames_(limits.characters_of_a_name) {}

  ordered_json recording(const Attribution& of) {
    ordered_json json = totals(of);
    json["sites"] = list(of.sites, limits_.sites, [this](const AllocationSite& site) { return site_json(site); });
    json["sites_left_out"] = of.sites.size() - std::min(of.sites.size(), limits_.sites);
    json["lock_waits"] = list(of.lock_waits, limits_.sites, [this](const WaitSite& site) { return wait_json(site); });
    json["idle_waits"] = list(of.idle_waits, limits_.sites, [this](const WaitSite& site) { return wait_json(site); });
    json["remote_sites"] = list(of.remote_sites, limits_.sites, [&](const RemoteSites& row) {
      return ordered_json{{"allocated_at", site_text(of, row.site)},
                          {"site", row.site},
                          {"freed_at", place_json(row.freed_at)},
                          {"frees", row.frees},
                          {"share", row.share}};
    });
    json["remote_threads"] = list(of.remote_threads, limits_.sites,
                                  [](const RemoteThreads& row) { return FREEHOLD_JSON_OF(row, from, to, frees, share); });
    json["sharing"] = list(of.sharing, limits_.sites, [this](const SharingSites& row) {
      return ordered_json{{"places", {place_json(row.places[0]), place_json(row.places[1])}},
                          {"bytes", {row.bytes[0], row.bytes[1]}},
                          {"lines", row.lines},
                          {"lines_for_long", row.lines_for_long}};
    });
    json["sizes"] =
        list_json(of.sizes, [](const SizeBin& bin) { return FREEHOLD_JSON_OF(bin, most_bytes, allocations, bytes); });
    json["lifetimes"] =
        list_json(of.lifetimes, [](const LifetimeBin& bin) { return FREEHOLD_JSON_OF(bin, most_s, blocks); });
    json["lived_on"] = of.live_at_exit;
    json["history"] = list_json(
        of.history, [](const TimePoint& point) { return FREEHOLD_JSON_OF(point, at_s, live_bytes, allocations_per_s); });
    json["frames"] = std::move(frames_).json();
    return json;
  }

 private:
  template <class Row>
  static ordered_json list(const std::vector<Row>& rows, std::size_t most, auto json_of) {
    ordered_json json = ordered_json::array();
    for (const Row& row : rows) {
      if (json.size() == most) break;
      json.push_back(json_of(row));
    }
    return json;
  }

  static ordered_json call_json(const CallTime& time) {
    ordered_json json = FREEHOLD_JSON_OF(time, calls, cpu_s, cpu_s_error, blocked_s, blocked_s_error);
    json["mean_ns"] = time.mean_ns();
    return json;
  }

  static ordered_json totals(const Attribution& of) {
    ordered_json json = FREEHOLD_JSON_OF(of, processes, threads, seconds, cpu_s, thread_s, samples, dropped, probe_share,
                                         mapped_bytes, mapping_s);
    json["allocating"] = call_json(of.allocating);
    json["freeing"] = call_json(of.freeing);
    json.update(FREEHOLD_JSON_OF(of, allocations_per_s, frees_per_s, cpu_share, cpu_share_error, blocked_share,
                                 blocked_share_error, lock_wait_s, lock_wait_share, idle_s, idle_share, peak_live_bytes,
                                 live_bytes_at_end, remote_share, lines_watched, lines_shared, shared_line_share,
                                 lines_shared_for_long));
    return json;
  }

  ordered_json place_json(const Place& place) {
    ordered_json stacks = ordered_json::array();
    for (const SiteStack& stack : place.stacks) {
      if (stacks.size() == limits_.stacks_of_a_site) break;
      ordered_json frames = ordered_json::array();
      for (const Frame& frame : stack.frames) {
        if (frames.size() == limits_.frames_of_a_stack) break;
        frames.push_back(frames_.place_of(frame));
      }
      stacks.push_back({{"share", stack.share}, {"frames", std::move(frames)}, {"all_frames", stack.frames.size()}});
    }
    return {{"text", text_of(place)},
            {"via", text_or_null(frames_.clipped(place.via))},
            {"stacks", std::move(stacks)},
            {"all_stacks", place.all_stacks}};
  }

  static std::string text_of(const Place& place) {
    return place.stacks.empty() || place.stacks.front().frames.empty() ? "unknown" : short_text(place.frame());
  }
  static std::string site_text(const Attribution& of, std::size_t site) {
    return site < of.sites.size() ? text_of(of.sites[site].place) : "unknown";
  }

  ordered_json site_json(const AllocationSite& site) {
    ordered_json json = {{"place", place_json(site.place)}, {"time", call_json(site.time)}};
    json.update(FREEHOLD_JSON_OF(site, time_share, bytes, typical_bytes, fixed_size, freed_elsewhere, median_lifetime_s,
                                 live_bytes_at_peak, samples));
    return json;
  }

  ordered_json wait_json(const WaitSite& site) {
    ordered_json json = {{"place", place_json(site.place)}, {"kind", name_of(site.kind)}};
    json.update(FREEHOLD_JSON_OF(site, count, seconds, share));
    return json;
  }

  const Limits& limits_;
  Frames frames_;
};

ordered_json advice_json(const Diagnosis& diagnosis) {
  if (diagnosis.recorded == nullptr) return ordered_json::array();
  const Attribution& recorded = *diagnosis.recorded;
  return list_json(advice_of(recorded), [&](const SiteAdvice& one) -> ordered_json {
    const AllocationSite& site = recorded.sites[one.site];
    return {{"site", site.place.text()},
            {"bytes", site.typical_bytes},
            {"cpu_share", one.cpu_share},
            {"use", name_of(one.fit)},
            {"sentence", report::text_of(one, recorded)}};
  });
}

}  // namespace

ordered_json environment_json(const Variant& variant) {
  ordered_json environment = ordered_json::object();
  for (const auto& [name, value] : variant.environment) environment[name] = value;
  return environment;
}

ordered_json results_json(const Diagnosis& diagnosis, const Limits& limits) {
  const auto recording = [&](const auto& recorded) {
    return recorded == nullptr ? ordered_json(nullptr) : RecordingWriter(limits).recording(*recorded);
  };
  return {
      {"schema", kSchema},
      {"date", diagnosis.date},
      {"complete", diagnosis.experiment.complete},
      {"seconds", diagnosis.seconds},
      {"machine", machine_json(diagnosis.machine)},
      {"program", {{"name", program_name(diagnosis)}, {"file", diagnosis.program}, {"example", diagnosis.example}}},
      {"settings", settings_json(diagnosis.settings)},
      {"verdict", verdict_json(diagnosis)},
      {"fixes", fixes_json(diagnosis)},
      {"steps",
       list_json(recommendations_of(diagnosis), [](const auto& step) { return FREEHOLD_JSON_OF(step, what, lines); })},
      {"findings", findings_of(diagnosis)},
      {"notes", diagnosis.notes},
      {"own_allocators",
       list_json(diagnosis.own_allocators, [&](const OwnAllocator& own) { return own_json(own, diagnosis); })},
      {"scalability", list_json(diagnosis.verdict.scalability, scalability_json)},
      {"experiment", experiment_json(diagnosis)},
      {"recording_cost", recording_cost(diagnosis)},
      {"recording", recording(diagnosis.recorded)},
      {"recording_alone", limits.alone ? recording(diagnosis.recorded_alone) : ordered_json(nullptr)},
      {"advice", advice_json(diagnosis)},
      {"repetitions", list_json(diagnosis.repetitions, [](const auto& one) { return FREEHOLD_JSON_OF(one, what, shell); })}};
}

}  // namespace freehold::doctor::report
