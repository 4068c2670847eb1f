// SPDX-License-Identifier: MIT
#include "cli/doctor/results_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/doctor/format.hpp"
#include "cli/doctor/verdict_text.hpp"
#include "cli/replay/trace_json.hpp"
#include "cli/report/json.hpp"
#include "cli/support/statistics.hpp"
#include "freehold/doctor/analysis/derived.hpp"

namespace freehold::cli::doctor {
namespace {
using namespace freehold::doctor;
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
  ordered_json parts = ordered_json::array();
  for (const Part& part : verdict.parts)
    parts.push_back({{"cause", freehold::doctor::name_of(part.cause)},
                     {"text", text_of(part.cause)},
                     {"allocator", blames_allocator(part.cause)},
                     {"share", estimate_json(part.share)}});
  ordered_json contradictions = ordered_json::array();
  for (const Contradiction one : verdict.contradictions) contradictions.push_back(name_of(one));
  return {{"cause", freehold::doctor::name_of(verdict.cause)},
          {"blames_allocator", blames_allocator(verdict.cause)},
          {"headline", text.headline},
          {"because", text.because},
          {"bound", text_or_null(text.bound)},
          {"tried", text_or_null(text.tried)},
          {"advice", text_or_null(text.advice)},
          {"alone", setting_json(verdict.alone)},
          {"all", setting_json(verdict.all)},
          {"speedup", estimate_json(verdict.speedup)},
          {"ideal_speedup", verdict.ideal_speedup},
          {"lost", estimate_json(verdict.lost)},
          {"allocator_share", estimate_json(verdict.allocator_share)},
          {"parts", std::move(parts)},
          {"most_gain", verdict.most_gain ? estimate_json(*verdict.most_gain) : ordered_json(nullptr)},
          {"rests_on", verdict.rests_on ? ordered_json(name_of(*verdict.rests_on)) : ordered_json(nullptr)},
          {"doubt", verdict.doubt == Doubt::kNone ? ordered_json(nullptr) : ordered_json(name_of(verdict.doubt))},
          {"suspected", verdict.doubt == Doubt::kNone || verdict.suspected == Cause::kUndecided
                            ? ordered_json(nullptr)
                            : ordered_json(freehold::doctor::name_of(verdict.suspected))},
          {"contradictions", std::move(contradictions)},
          {"one_thread", verdict.one_thread},
          {"disturbance", verdict.disturbance},
          {"noisy", verdict.noisy}};
}

ordered_json fixes_json(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  ordered_json list = ordered_json::array();
  for (const Fix* fix : best_first(verdict)) {
    const bool measured = fix->gain.value > 0;
    list.push_back({{"variant", fix->variant},
                    {"text", text_of(diagnosis.experiment.variants[fix->variant])},
                    {"gain", measured ? estimate_json(fix->gain) : ordered_json(nullptr)},
                    {"memory", fix->memory.value > 0 ? estimate_json(fix->memory) : ordered_json(nullptr)},
                    {"gain_text", measured ? value_text(fix->gain) : "–"},
                    {"range_text", measured ? range_text(fix->gain) : ""},
                    {"judgement", judgement_of(*fix)},
                    {"helps", fix->helps},
                    {"failed", fix->failed},
                    {"best", verdict.best_fix && &verdict.fixes[*verdict.best_fix] == fix}});
  }
  return list;
}

ordered_json scalability_json(const Verdict& verdict) {
  ordered_json list = ordered_json::array();
  for (const Scalability& one : verdict.scalability)
    list.push_back({{"variant", one.variant},
                    {"contention", one.contention},
                    {"coherency", one.has_coherency ? ordered_json(one.coherency) : ordered_json(nullptr)},
                    {"worst_error", one.worst_error}});
  return list;
}

ordered_json trial_json(const Trial& trial) {
  return {{"wall_s", trial.wall_s},
          {"user_s", trial.user_s},
          {"system_s", trial.system_s},
          {"peak_rss_bytes", trial.peak_rss_bytes},
          {"page_faults", trial.page_faults},
          {"voluntary_switches", trial.voluntary_switches},
          {"involuntary_switches", trial.involuntary_switches},
          {"stolen_s", trial.stolen_s},
          {"taken_s", trial.taken_s},
          {"ready_share", or_null(trial.ready_share)},
          {"throttled_s", trial.throttled_s},
          {"instructions", or_null(trial.instructions)},
          {"throughput", or_null(trial.throughput)},
          {"wait_status", trial.wait_status},
          {"round", or_null(trial.round)}};
}

ordered_json cell_json(const Experiment& experiment, const Cell& cell) {
  const std::vector<double> costs = costs_of(cell);
  ordered_json trials = ordered_json::array();
  for (const Trial& trial : cell.trials) trials.push_back(trial_json(trial));
  const auto limit = [&](auto pick) { return costs.empty() ? ordered_json(nullptr) : ordered_json(pick(costs)); };
  return {{"variant", cell.variant},
          {"setting", setting_json(cell.setting)},
          {"cost", or_null(if_measured(cost, &cell))},
          {"least_cost", limit([](const auto& all) { return std::ranges::min(all); })},
          {"greatest_cost", limit([](const auto& all) { return std::ranges::max(all); })},
          {"spread", spread(costs)},
          {"speed", or_null(speed(experiment, cell))},
          {"ideal_speed", ideal_speed(experiment, cell.setting)},
          {"peak_rss_bytes", limit([&cell](const auto&) { return static_cast<std::uint64_t>(peak_bytes(cell)); })},
          {"busy_cpus", or_null(if_measured(busy_cpus, &cell))},
          {"failure", text_or_null(cell.failure)},
          {"trials", std::move(trials)}};
}

ordered_json variant_json(const Variant& variant) {
  ordered_json environment = ordered_json::object();
  for (const auto& [name, value] : variant.environment) environment[name] = value;
  return {{"name", variant.name},
          {"text", text_of(variant)},
          {"treatment", freehold::doctor::name_of(variant.treatment)},
          {"preload", variant.preload},
          {"environment", std::move(environment)}};
}

ordered_json code_json(const Diagnosis& diagnosis) {
  const freehold::doctor::CodeGrowth& code = diagnosis.experiment.code;
  if (!code.known) return nullptr;
  const auto place = [](const auto& frame) { return frame ? ordered_json(frame->text()) : ordered_json(nullptr); };
  return {{"work_grows", code.work_known ? ordered_json(code.work_grows) : ordered_json(nullptr)},
          {"same", code.same},
          {"grown", code.grown},
          {"spinning", code.spinning},
          {"locking", code.locking},
          {"private_locking", code.private_locking},
          {"contended", code.contended},
          {"slowed", code.slowed},
          {"allocator", code.allocator},
          {"in_malloc", code.in_malloc},
          {"lock_sleepers", code.lock_sleepers},
          {"lock_sleeps", code.lock_sleeps},
          {"spins_at", place(diagnosis.spins_at)},
          {"contended_at", place(diagnosis.contended_at)}};
}

ordered_json experiment_json(const Diagnosis& diagnosis) {
  const Experiment& experiment = diagnosis.experiment;
  ordered_json variants = ordered_json::array(), cells = ordered_json::array();
  for (const Variant& variant : experiment.variants) variants.push_back(variant_json(variant));
  for (const Cell& cell : experiment.cells) cells.push_back(cell_json(experiment, cell));
  ordered_json delayed = ordered_json::array();
  for (const Delayed& of : experiment.delayed) {
    ordered_json trials = ordered_json::array();
    for (const Trial& trial : of.trials) trials.push_back(trial_json(trial));
    delayed.push_back({{"delay_s", of.delay_s}, {"trials", std::move(trials)}});
  }
  return {{"machine_cpus", experiment.machine_cpus},
          {"quota_cpus", number_or_null(experiment.quota_cpus)},
          {"affinity_cpus", experiment.affinity_cpus},
          {"online_cpus", experiment.online_cpus},
          {"own_cpus", number_or_null(experiment.own_cpus)},
          {"most_threads", number_or_null(experiment.most_threads)},
          {"work_grows", experiment.work_grows},
          {"work_is_guessed", experiment.work_is_guessed},
          {"code", code_json(diagnosis)},
          {"control", {{"compute", experiment.control.compute}, {"memory", experiment.control.memory}}},
          {"delayed", std::move(delayed)},
          {"variants", std::move(variants)},
          {"cells", std::move(cells)}};
}

ordered_json own_allocators_json(const Diagnosis& diagnosis) {
  ordered_json list = ordered_json::array();
  for (const OwnAllocator& own : diagnosis.own_allocators)
    list.push_back({{"name", own.name},
                    {"file", own.file},
                    {"use_malloc", text_or_null(own.use_malloc)},
                    {"reached", or_null(own.reached)},
                    {"calls", or_null(own.calls)},
                    {"malloc_calls", or_null(own.malloc_calls)},
                    {"text", text_of(own, diagnosis)}});
  return list;
}

ordered_json steps_json(const Diagnosis& diagnosis) {
  ordered_json list = ordered_json::array();
  for (const Recommendation& step : recommendations_of(diagnosis))
    list.push_back({{"what", step.what}, {"lines", step.lines}});
  return list;
}

ordered_json repetitions_json(const Diagnosis& diagnosis) {
  ordered_json list = ordered_json::array();
  for (const Repetition& one : diagnosis.repetitions) list.push_back({{"what", one.what}, {"shell", one.shell}});
  return list;
}

}  // namespace

ordered_json results_json(const Diagnosis& diagnosis, const Limits& limits) {
  const auto recording = [&](const auto& recorded) {
    return recorded == nullptr ? ordered_json(nullptr) : recording_json(*recorded, limits);
  };
  return {{"schema", kSchema},
          {"date", diagnosis.date},
          {"complete", diagnosis.experiment.complete},
          {"seconds", diagnosis.seconds},
          {"machine", machine_json(diagnosis.machine)},
          {"program", {{"name", program_name(diagnosis)}, {"file", diagnosis.program}, {"example", diagnosis.example}}},
          {"settings", settings_json(diagnosis.settings)},
          {"verdict", verdict_json(diagnosis)},
          {"fixes", fixes_json(diagnosis)},
          {"steps", steps_json(diagnosis)},
          {"findings", findings_of(diagnosis)},
          {"notes", diagnosis.notes},
          {"own_allocators", own_allocators_json(diagnosis)},
          {"scalability", scalability_json(diagnosis.verdict)},
          {"experiment", experiment_json(diagnosis)},
          {"recording_cost", or_null(recording_cost(diagnosis))},
          {"recording", recording(diagnosis.recorded)},
          {"recording_alone", limits.alone ? recording(diagnosis.recorded_alone) : ordered_json(nullptr)},
          {"advice", diagnosis.advice == nullptr ? ordered_json(nullptr) : replay::json_of(*diagnosis.advice)},
          {"repetitions", repetitions_json(diagnosis)}};
}

ordered_json estimate_json(const Estimate& estimate) {
  return {{"low", estimate.low}, {"value", estimate.value}, {"high", estimate.high}};
}

Estimate estimate_of(const ordered_json& json) {
  return {json.at("low").get<double>(), json.at("value").get<double>(), json.at("high").get<double>()};
}

}  // namespace freehold::cli::doctor
