// SPDX-License-Identifier: MIT
// A report of the doctor has the evidence of its answer: this reads it, to be judged again without the machine.
#pragma once
#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/experiment.hpp"
#include "tools/doctor/facts/work_growth.hpp"

namespace freehold::doctor {

// Each figure is there, or null, or left out because it is 0.
class RecordedAnswer {
 public:
  explicit RecordedAnswer(const std::string& file) : json_(nlohmann::json::parse(std::ifstream(file))) {
    read_experiment(json_.at("experiment"));
    recorded = attribution("recording");
    recorded_alone = attribution("recording_alone");
    const WorkGrowth growth = work_growth_of(experiment, recorded.get(), recorded_alone.get());
    experiment.work_grows = growth.grows;
    experiment.work_is_guessed = growth.is_guessed;
    read(json_, "expected", expected);
    read(json_, "right", right);
    read(json_, "is_advised", is_advised);
  }

  Experiment experiment;
  std::unique_ptr<Attribution> recorded, recorded_alone;  // null: nothing was
  // The file has these, where it was kept for these trials: the verdict on them all, causes that are right, and whether it
  // is right to advise anything.
  std::string expected;
  std::vector<std::string> right;
  bool is_advised = false;

 private:
  using json = nlohmann::json;

  template <class T>
  static void read(const json& from, const char* name, T& to) {
    if (const auto found = from.find(name); found != from.end() && !found->is_null()) to = found->get<T>();
  }
  template <class T>
  static void read(const json& from, const char* name, std::optional<T>& to) {
    if (const auto found = from.find(name); found != from.end() && !found->is_null()) to = found->get<T>();
  }

  static Trial trial_in(const json& of) {
    Trial trial;
    read(of, "wall_s", trial.wall_s);
    read(of, "user_s", trial.user_s);
    read(of, "system_s", trial.system_s);
    read(of, "peak_rss_bytes", trial.peak_rss_bytes);
    read(of, "page_faults", trial.page_faults);
    read(of, "voluntary_switches", trial.voluntary_switches);
    read(of, "involuntary_switches", trial.involuntary_switches);
    read(of, "stolen_s", trial.stolen_s);
    read(of, "taken_s", trial.taken_s);
    read(of, "ready_share", trial.ready_share);
    read(of, "apart_share", trial.apart_share);
    read(of, "run_delay_s", trial.run_delay_s);
    read(of, "own_cpus", trial.own_cpus);
    read(of, "throttled_s", trial.throttled_s);
    read(of, "instructions", trial.instructions);
    read(of, "throughput", trial.throughput);
    read(of, "round", trial.round);
    return trial;
  }
  static std::vector<Trial> trials_of(const json& list) {
    std::vector<Trial> trials;
    for (const json& trial : list) trials.push_back(trial_in(trial));
    return trials;
  }
  static std::vector<Trial> trials_in(const json& of) { return trials_of(of.at("trials")); }

  template <class Enum>
  static Enum named(const std::string& name, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      if (name_of(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
    throw std::runtime_error("nothing is called " + name);
  }

  void read_experiment(const json& of) {
    read(json_.at("settings"), "knob", knob_);
    experiment.parallelism = named<ParallelismControl>(knob_, 3);
    read(of, "machine_cpus", experiment.machine_cpus);
    read(of, "quota_cpus", experiment.quota_cpus);
    read(of, "affinity_cpus", experiment.affinity_cpus);
    read(of, "online_cpus", experiment.online_cpus);
    read(of, "own_cpus", experiment.own_cpus);
    read(of, "most_threads", experiment.most_threads);
    if (const auto own = json_.find("own_allocators"); own != json_.end())
      for (const json& each : *own) {
        std::optional<double> reached;
        read(each, "reached", reached);
        if (reached) experiment.own_malloc_share = std::max(experiment.own_malloc_share.value_or(0), 1 - *reached);
      }
    experiment.looks = 6;
    read(of.at("control"), "compute", experiment.control.compute);
    read(of.at("control"), "memory", experiment.control.memory);
    if (const json& code = of.at("code"); !code.is_null()) read_code(code);
    for (const json& delayed : of.at("delayed"))
      experiment.delayed.push_back({.delay_s = delayed.at("delay_s"), .trials = trials_in(delayed)});
    if (of.contains("crowded")) experiment.crowded = trials_of(of.at("crowded"));
    for (const json& variant : of.at("variants")) {
      Variant& made = experiment.variants.emplace_back();
      made.treatment = named<Treatment>(variant.at("treatment"), 6);
      made.name = variant.at("name");
      for (const auto& [name, value] : variant.at("environment").items()) made.environment.emplace_back(name, value);
    }
    for (const json& cell : of.at("cells")) {
      Cell& made = experiment.cells.emplace_back();
      made.variant = cell.at("variant");
      read(cell.at("setting"), "threads", made.setting.threads);
      read(cell.at("setting"), "cpus", made.setting.cpus);
      read(cell.at("setting"), "copies", made.setting.copies);
      read(cell, "failure", made.failure);
      made.trials = trials_in(cell);
    }
  }

  void read_code(const json& from) {
    CodeGrowth& code = experiment.code;
    code.known = true;
    code.work_known = from.contains("work_grows") && !from.at("work_grows").is_null();
    read(from, "work_grows", code.work_grows);
    read(from, "same", code.same);
    read(from, "grown", code.grown);
    read(from, "spinning", code.spinning);
    read(from, "team_waiting", code.team_waiting);
    read(from, "locking", code.locking);
    read(from, "private_locking", code.private_locking);
    read(from, "contended", code.contended);
    read(from, "slowed", code.slowed);
    read(from, "allocator", code.allocator);
    read(from, "in_malloc", code.in_malloc);
    read(from, "lock_sleepers", code.lock_sleepers);
    read(from, "lock_sleeps", code.lock_sleeps);
  }

  static CallTime call_time(const json& of) {
    CallTime time;
    read(of, "calls", time.calls);
    read(of, "cpu_s", time.cpu_s);
    read(of, "blocked_s", time.blocked_s);
    return time;
  }
  std::unique_ptr<Attribution> attribution(const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end() || found->is_null()) return nullptr;
    const json& of = *found;
    auto made = std::make_unique<Attribution>();
    read(of, "threads", made->threads);
    read(of, "seconds", made->seconds);
    read(of, "cpu_s", made->cpu_s);
    read(of, "thread_s", made->thread_s);
    read(of, "mapped_bytes", made->mapped_bytes);
    read(of, "mapping_s", made->mapping_s);
    made->allocating = call_time(of.at("allocating"));
    made->freeing = call_time(of.at("freeing"));
    read(of, "cpu_share", made->cpu_share);
    read(of, "cpu_share_error", made->cpu_share_error);
    read(of, "blocked_share", made->blocked_share);
    read(of, "blocked_share_error", made->blocked_share_error);
    read(of, "lock_wait_s", made->lock_wait_s);
    read(of, "lock_wait_share", made->lock_wait_share);
    read(of, "remote_share", made->remote_share);
    read(of, "lines_watched", made->lines_watched);
    read(of, "lines_shared", made->lines_shared);
    for (const json& wait : of.at("lock_waits")) {
      WaitSite& site = made->lock_waits.emplace_back();
      site.kind = wait.at("kind") == "spin-lock" ? WaitKind::kSpinLock : WaitKind::kMutex;
      read(wait, "count", site.count);
      read(wait, "seconds", site.seconds);
    }
    return made;
  }

  nlohmann::json json_;
  std::string knob_;
};

}  // namespace freehold::doctor
