// SPDX-License-Identifier: MIT
#include "tools/doctor/run/paired_trials.hpp"

#include <algorithm>
#include <utility>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/run/child.hpp"
#include "tools/doctor/run/recordings.hpp"
#include "tools/doctor/run/timeouts.hpp"

namespace freehold::doctor {
namespace {

constexpr unsigned kMostPairs = 15;
constexpr double kFewestRounds = 3;  // that there should be time for, before trials on one CPU are worth theirs

constexpr std::array kVersions{Version::kBefore, Version::kAfter};
constexpr std::size_t index_of(Version version) noexcept { return static_cast<std::size_t>(version); }

bool is_freehold(const std::string& file) { return file.find("/libfreehold.so") != std::string::npos; }

class Paired {
 public:
  Paired(const PairedTrials& trials, const PairedCaller& caller) : trials_(trials), caller_(caller) {
    for (Side& side : outcome_.sides) side.on_all.cpus = static_cast<unsigned>(caller.cpus.size());
  }

  PairedOutcome run() {
    began_s_ = caller_.now_s();
    for (const Version version : kVersions) first_run(version);
    plan();
    for (unsigned round = 0; round < rounds_ && outcome_.complete && has_time(); ++round) {
      const double before_s = caller_.now_s();
      outcome_.complete = run_round(round);
      longest_round_s_ = std::max(longest_round_s_, caller_.now_s() - before_s);
    }
    if (outcome_.complete) outcome_.complete = record();
    for (const Version version : kVersions) {
      if (side(version).all.empty()) throw PairedRefused(version, Refused(Refusal::kInterruptedTooEarly));
    }
    outcome_.comparison = compare(side(Version::kBefore), side(Version::kAfter));
    outcome_.signal = caller_.signal();
    return std::move(outcome_);
  }

 private:
  // The facts that the first run of a version told.
  struct First {
    double wall_s = 0, cpu_s = 0;
    std::set<std::string> files;
  };

  [[nodiscard]] Side& side(Version version) { return outcome_.sides[index_of(version)]; }
  [[nodiscard]] First& first(Version version) { return first_[index_of(version)]; }
  [[nodiscard]] Run perform(Version version, const LaunchOptions& options, double timeout_s) const {
    return caller_.run(trials_.commands[index_of(version)], options, timeout_s);
  }
  [[nodiscard]] bool stopped(const Run& run) const { return run.ending == Ending::kStopped || caller_.signal() != 0; }

  // Warms the machine up, and says whether the command works and how long it takes.
  void first_run(Version version) {
    const double timeout_s = trials_.budget_s > 0 ? trials_.budget_s : kFirstTimeout_s;
    caller_.show({.kind = PairedActivity::Kind::kFirstRun, .version = version});
    const Run run = perform(version, {.preload = {}}, timeout_s);
    if (run.ending == Ending::kStopped) throw PairedRefused(version, Refused(Refusal::kInterruptedAtFirst));
    refuse_failure(version, run, timeout_s);
    first(version) = {
        .wall_s = run.trial.wall_s, .cpu_s = std::max(run.trial.wall_s, run.trial.cpu_s()), .files = run.files};
  }

  static void refuse_failure(Version version, const Run& run, double timeout_s) {
    if (run.ending == Ending::kNotStarted) throw PairedRefused(version, Refused(Refusal::kNotExecutable, run.why));
    if (run.ending == Ending::kOutOfTime) throw PairedRefused(version, Refused(Refusal::kNoEnd, {}, {}, timeout_s));
    const std::string failure = failure_of(run, timeout_s);
    if (failure.empty()) return;
    throw PairedRefused(version, Refused(Refusal::kFails, failure, run.last_words.substr(run.last_words.rfind('\n') + 1)));
  }

  // Trials on one CPU tell whether it is scaling that changed, but cost the most time.
  void plan() {
    double round_s = 0, alone_s = 0;
    for (const First& each : first_) {
      round_s += each.wall_s;
      alone_s += each.cpu_s;
    }
    recordings_s_ = kRecordingCost * round_s;
    const double left_s = trials_.budget_s - (caller_.now_s() - began_s_) - recordings_s_;
    alone_ = caller_.cpus.size() > 1 && (trials_.rounds > 0 || left_s >= kFewestRounds * (round_s + alone_s));
    const double each_s = round_s + (alone_ ? alone_s : 0);
    rounds_ = trials_.rounds > 0
                  ? trials_.rounds
                  : static_cast<unsigned>(std::clamp(left_s / std::max(each_s, 1e-3), 1.0, double{kMostPairs}));
  }

  // Rounds may take longer than the first runs did: others began to use the machine.
  [[nodiscard]] bool has_time() const {
    const double end_s = caller_.now_s() - began_s_ + longest_round_s_ + recordings_s_;
    return trials_.rounds > 0 || longest_round_s_ == 0 || end_s <= trials_.budget_s;
  }

  // False: interrupted.
  bool run_round(unsigned round) {
    for (const bool on_one : {false, true}) {
      if (on_one && !alone_) continue;
      for (unsigned turn = 0; turn < 2; ++turn) {
        const Version version = kVersions[(round + turn) % 2];
        caller_.show({.kind = PairedActivity::Kind::kTrial, .version = version, .round = round + 1, .rounds = rounds_});
        LaunchOptions options{.preload = {}};
        if (on_one) options.cpus = {caller_.cpus.front()};
        const double timeout_s = kLeastTimeout_s + kTimeout * (on_one ? first(version).cpu_s : first(version).wall_s);
        const Run run = perform(version, options, timeout_s);
        if (stopped(run)) return false;
        refuse_failure(version, run, timeout_s);
        (on_one ? side(version).alone : side(version).all).push_back(run.trial);
        first(version).files.insert(run.files.begin(), run.files.end());
      }
    }
    return true;
  }

  // False: interrupted.
  bool record() {
    Recordings recordings;
    for (const Version version : kVersions) {
      const std::string probe = caller_.probe(version, first(version).files);
      if (probe.empty()) continue;
      if (std::ranges::any_of(first(version).files, is_freehold)) {
        outcome_.notes.push_back({.kind = PairedNote::Kind::kUnderFreehold, .version = version});
        continue;
      }
      if (!record(version, probe, recordings)) return false;
    }
    return true;
  }
  bool record(Version version, const std::string& probe, Recordings& recordings) {
    const std::string name = version == Version::kBefore ? "before" : "after";
    LaunchOptions options{.preload = {}};
    recordings.prepare(name, probe, options);
    caller_.show({.kind = PairedActivity::Kind::kRecording, .version = version});
    const double timeout_s = kLeastTimeout_s + kTimeout * kRecordingCost * first(version).wall_s;
    const Run run = perform(version, options, timeout_s);
    if (stopped(run)) return false;
    if (const std::string failure = failure_of(run, timeout_s); !failure.empty()) {
      outcome_.notes.push_back({.kind = PairedNote::Kind::kRecordedRunFailed, .version = version, .why = failure});
      return true;
    }
    std::vector<std::string> unreadable;
    const auto recorded = recordings.read(name, unreadable).attribution;
    for (const std::string& why : unreadable)
      outcome_.notes.push_back({.kind = PairedNote::Kind::kRecordingUnreadable, .version = version, .why = why});
    if (recorded == nullptr) return true;
    const double share = recorded->cpu_share, error = kNineOfTen * recorded->cpu_share_error;
    side(version).in_malloc = Estimate{std::max(0.0, share - error), share, std::min(1.0, share + error)};
    side(version).allocations = recorded->allocating.calls;
    return true;
  }

  const PairedTrials& trials_;
  const PairedCaller& caller_;
  std::array<First, 2> first_;
  double began_s_ = 0, recordings_s_ = 0, longest_round_s_ = 0;
  unsigned rounds_ = 0;
  bool alone_ = false;  // trials on one CPU, too
  PairedOutcome outcome_;
};

}  // namespace

PairedCaller trials_on(const Host& host) {
  PairedCaller caller;
  caller.run = [host](const Command& command, const LaunchOptions& options, double seconds) {
    return doctor::run(command, options, seconds, host);
  };
  caller.now_s = [] { return doctor::now_s(); };
  caller.cpus = cpus_in_order();
  return caller;
}

PairedOutcome run_paired(const PairedTrials& trials, const PairedCaller& caller) { return Paired(trials, caller).run(); }

}  // namespace freehold::doctor
