// SPDX-License-Identifier: MIT
#include "tools/doctor/report/results_json.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/report/format.hpp"
#include "tools/doctor/report/words.hpp"
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

ordered_json verdict_json(const Diagnosis& diagnosis, const Words& words) {
  const Verdict& verdict = diagnosis.verdict;
  const auto part_json = [](const Part& part) -> ordered_json {
    return {{"cause", doctor::name_of(part.cause)},
            {"text", text_of(part.cause)},
            {"allocator", blames_allocator(part.cause)},
            {"share", part.share}};
  };
  return {{"cause", doctor::name_of(verdict.cause)},
          {"blames_allocator", blames_allocator(verdict.cause)},
          {"headline", words.headline},
          {"because", words.because},
          {"bound", text_or_null(words.bound)},
          {"brings", text_or_null(words.gain)},
          {"advice", text_or_null(words.advice)},
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
          {"missing", text_or_null(std::string(verdict.missing ? describe(*verdict.missing).name : ""))},
          {"experiment", text_or_null(std::string(verdict.experiment))},
          {"facts", facts_json(verdict.facts)},
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
                          involuntary_switches, stolen_s, taken_s, ready_share, apart_share, run_delay_s, own_cpus,
                          throttled_s, instructions, throughput, wait_status, round);
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

// A recording. Frames recur in thousands of stacks: each is written once, and stacks name it by its place.
class RecordingWriter {
 public:
  ordered_json recording(const Attribution& recorded) {
    ordered_json json = totals(recorded);
    json["sites"] = list_json(recorded.sites, [this](const AllocationSite& site) { return site_json(site); });
    json["sites_left_out"] = 0;
    json["lock_waits"] = list_json(recorded.lock_waits, [this](const WaitSite& site) { return wait_json(site); });
    json["idle_waits"] = list_json(recorded.idle_waits, [this](const WaitSite& site) { return wait_json(site); });
    json["remote_sites"] = list_json(recorded.remote_sites, [&](const RemoteSites& row) -> ordered_json {
      return {{"allocated_at", row.site < recorded.sites.size() ? text_of(recorded.sites[row.site].place) : "unknown"},
              {"site", row.site},
              {"freed_at", place_json(row.freed_at)},
              {"frees", row.frees},
              {"share", row.share}};
    });
    json["remote_threads"] = list_json(
        recorded.remote_threads, [](const RemoteThreads& row) { return FREEHOLD_JSON_OF(row, from, to, frees, share); });
    json["sharing"] = list_json(recorded.sharing, [this](const SharingSites& row) -> ordered_json {
      return {{"places", {place_json(row.places[0]), place_json(row.places[1])}},
              {"bytes", {row.bytes[0], row.bytes[1]}},
              {"lines", row.lines},
              {"lines_for_long", row.lines_for_long}};
    });
    json["sizes"] =
        list_json(recorded.sizes, [](const SizeBin& bin) { return FREEHOLD_JSON_OF(bin, most_bytes, allocations, bytes); });
    json["lifetimes"] =
        list_json(recorded.lifetimes, [](const LifetimeBin& bin) { return FREEHOLD_JSON_OF(bin, most_s, blocks); });
    json["lived_on"] = recorded.live_at_exit;
    json["history"] = list_json(recorded.history, [](const TimePoint& point) {
      return FREEHOLD_JSON_OF(point, at_s, live_bytes, allocations_per_s);
    });
    json["frames"] = std::move(frames_);
    return json;
  }

 private:
  static ordered_json call_json(const CallTime& time) {
    ordered_json json = FREEHOLD_JSON_OF(time, calls, cpu_s, cpu_s_error, blocked_s, blocked_s_error);
    json["mean_ns"] = time.mean_ns();
    return json;
  }

  static ordered_json totals(const Attribution& recorded) {
    ordered_json json = FREEHOLD_JSON_OF(recorded, processes, threads, seconds, cpu_s, thread_s, samples, dropped,
                                         probe_share, mapped_bytes, mapping_s);
    json["allocating"] = call_json(recorded.allocating);
    json["freeing"] = call_json(recorded.freeing);
    json.update(FREEHOLD_JSON_OF(recorded, allocations_per_s, frees_per_s, cpu_share, cpu_share_error, blocked_share,
                                 blocked_share_error, lock_wait_s, lock_wait_share, idle_s, idle_share, peak_live_bytes,
                                 live_bytes_at_end, remote_share, lines_watched, lines_shared, shared_line_share,
                                 lines_shared_for_long));
    return json;
  }

  std::size_t place_of(const Frame& frame) {
    const auto key = std::tuple(frame.function, frame.file, frame.line, frame.module, frame.inlined);
    const auto [found, is_new] = places_.try_emplace(key, frames_.size());
    if (is_new)
      frames_.push_back({{"function", text_or_null(frame.function)},
                         {"file", text_or_null(frame.file)},
                         {"line", number_or_null(frame.line)},
                         {"module", text_or_null(frame.module)},
                         {"inlined", frame.inlined}});
    return found->second;
  }

  ordered_json place_json(const Place& place) {
    const auto stack_json = [this](const SiteStack& stack) -> ordered_json {
      return {{"share", stack.share},
              {"frames", list_json(stack.frames, [this](const Frame& frame) { return place_of(frame); })},
              {"all_frames", stack.frames.size()}};
    };
    return {{"text", text_of(place)},
            {"via", text_or_null(place.via)},
            {"stacks", list_json(place.stacks, stack_json)},
            {"all_stacks", place.all_stacks}};
  }

  static std::string text_of(const Place& place) {
    return place.stacks.empty() || place.stacks.front().frames.empty() ? "unknown" : short_text(place.frame());
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

  std::map<std::tuple<std::string, std::string, unsigned, std::string, bool>, std::size_t> places_;
  ordered_json frames_ = ordered_json::array();
};

ordered_json advice_json(const Diagnosis& diagnosis, const Words& words) {
  ordered_json json = ordered_json::array();
  for (std::size_t i = 0; i < words.sites.size(); ++i) {
    const AllocationSite& site = diagnosis.recorded->sites[words.sites[i].site];
    json.push_back({{"site", site.place.text()},
                    {"bytes", site.typical_bytes},
                    {"cpu_share", words.sites[i].cpu_share},
                    {"use", name_of(words.sites[i].fit)},
                    {"sentence", words.fits[i]}});
  }
  return json;
}

}  // namespace

ordered_json environment_json(const Variant& variant) {
  ordered_json environment = ordered_json::object();
  for (const auto& [name, value] : variant.environment) environment[name] = value;
  return environment;
}

ordered_json results_json(const Diagnosis& diagnosis, const Words& words) {
  const auto recording = [&](const auto& recorded) {
    return recorded == nullptr ? ordered_json(nullptr) : RecordingWriter().recording(*recorded);
  };
  return {
      {"schema", kSchema},
      {"date", diagnosis.date},
      {"complete", diagnosis.experiment.complete},
      {"seconds", diagnosis.seconds},
      {"machine", machine_json(diagnosis.machine)},
      {"program", {{"name", program_name(diagnosis)}, {"file", diagnosis.program}, {"example", diagnosis.example}}},
      {"settings", settings_json(diagnosis.settings)},
      {"verdict", verdict_json(diagnosis, words)},
      {"fixes", fixes_json(diagnosis)},
      {"steps", list_json(words.steps, [](const auto& step) { return FREEHOLD_JSON_OF(step, what, lines); })},
      {"findings", words.findings},
      {"notes", words.notes},
      {"own_allocators",
       list_json(diagnosis.own_allocators, [&](const OwnAllocator& own) { return own_json(own, diagnosis); })},
      {"scalability", list_json(diagnosis.verdict.scalability, scalability_json)},
      {"experiment", experiment_json(diagnosis)},
      {"recording_cost", recording_cost(diagnosis)},
      {"recording", recording(diagnosis.recorded)},
      {"recording_alone", recording(diagnosis.recorded_alone)},
      {"advice", advice_json(diagnosis, words)},
      {"repetitions", list_json(diagnosis.repetitions, [](const auto& one) { return FREEHOLD_JSON_OF(one, what, shell); })}};
}

}  // namespace freehold::doctor::report
