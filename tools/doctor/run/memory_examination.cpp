// SPDX-License-Identifier: MIT
#include "tools/doctor/run/memory_examination.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "tools/doctor/run/child.hpp"
#include "tools/doctor/run/launch.hpp"
#include "tools/doctor/run/recordings.hpp"
#include "tools/doctor/run/timeouts.hpp"

namespace freehold::doctor {
namespace {

constexpr double kFirstRun_s = 60;         // for a program of which nothing is known, where there is no budget
constexpr double kTimes = 5;               // the first run's time, that another may take
constexpr unsigned kLeastRounds = 2;       // chance is told from trials that differ
constexpr unsigned kMostMemoryRounds = 5;  // in which the budget is used, if it lasts so long
constexpr double kMostHidden = 0.05;       // share of the looks at a program; more, and what was seen is not what it held
constexpr double kShortest_s = 0.001;      // that a run takes
constexpr const char* kRecorded = "memory";

class MemoryRuns {
 public:
  MemoryRuns(const Settings& settings, const std::string& program, const MemoryCaller& caller)
      : settings_(settings), caller_(caller), command_(command_of(settings, program, {.threads = 0})) {
    command_.watch_memory = true;
  }

  MemoryOutcome examine() {
    const double begin = now_s();
    const Run first = first_run();
    const double once_s = now_s() - begin;
    timeout_s_ = std::max(kLeastTimeout_s, kTimes * once_s);
    const MemoryTools tools = caller_.tools(first.files);
    result_.experiment.is_glibc = tools.is_glibc;
    add_cell(
        {.treatment = MemoryTreatment::kNone, .how = {.treatment = Treatment::kNone, .name = tools.name, .preload = {}}});
    add_trial(0, first);
    for (const MemoryVariant& variant : tools.variants) add_cell(variant);
    if (!tools.probe.empty()) record(tools.probe);
    if (settings_.keeps_budget) {
      run_again(begin);
      leave_out(settings_.budget_s - (now_s() - begin), once_s);
    }
    run_rounds(begin, once_s);
    result_.signal = caller_.signal();
    result_.experiment.complete = result_.signal == 0 && !stopped_;
    if (cells().front().trials.empty())
      throw Refused(result_.experiment.complete ? Refusal::kTooShort : Refusal::kInterruptedTooEarly);
    result_.verdict = verdict_of(result_.experiment);
    if (result_.experiment.complete && result_.verdict.cause == MemoryCause::kHoles) look_at_pins(begin, once_s);
    return std::move(result_);
  }

 private:
  std::vector<MemoryCell>& cells() { return result_.experiment.cells; }
  void add_cell(const MemoryVariant& variant) { cells().push_back({.variant = variant, .trials = {}, .failure = {}}); }

  Run perform(const LaunchOptions& options, double timeout_s) {
    const Server& server = settings_.server;
    if (!server.used()) return run(command_, options, timeout_s, caller_.host);
    const Service service{.ready = server.ready, .load = server.load, .seconds = server.seconds};
    return run_service(command_, options, service, timeout_s + server.seconds, caller_.host);
  }

  [[nodiscard]] std::string failure(const Run& run, double timeout_s) const {
    if (run.ending == Ending::kEnded && run.trial.wait_status == expected_status_) return {};
    const std::string how = failure_of(run, timeout_s);
    return how.empty() ? "another exit code than at first" : how;
  }

  Run first_run() {
    const double timeout_s = settings_.budget_s > 0 ? settings_.budget_s : kFirstRun_s;
    caller_.show("first run", 0);
    Run run = perform({.preload = {}}, timeout_s);
    switch (run.ending) {
      case Ending::kStopped: throw Refused(Refusal::kInterruptedAtFirst);
      case Ending::kNotStarted: throw Refused(Refusal::kNotExecutable, run.why);
      case Ending::kOutOfTime:
        throw Refused(settings_.server.used() ? Refusal::kNoEndOfLoad : Refusal::kNoEnd, "", "", timeout_s);
      case Ending::kNotReady: throw Refused(Refusal::kNotReady);
      default: break;
    }
    if (settings_.allow_failure && run.ending == Ending::kEnded) expected_status_ = run.trial.wait_status;
    if (const std::string how = failure(run, timeout_s); !how.empty()) {
      const std::string& words = run.last_words;
      throw Refused(Refusal::kFails, how, words.substr(words.rfind('\n') + 1));
    }
    if (run.hidden_share > kMostHidden) throw Refused(Refusal::kHidden);
    if (run.hidden_child_share > kMostHidden)
      result_.notes.push_back("a child of the program does not let its memory be read, which is missing here; root may");
    if (run.left_processes > 0)
      result_.notes.push_back("the program left " + std::to_string(run.left_processes) +
                              (run.left_processes == 1 ? " process" : " processes") +
                              " behind when it ended; the doctor looked no longer and ended that, too: let a program that "
                              "goes into the background stay in the foreground, by its option for it");
    return run;
  }

  void add_trial(std::size_t cell, const Run& run) {
    auto trial = trial_of(run.memory, result_.experiment.is_glibc);
    if (!trial) return;
    trial->wall_s = run.trial.wall_s;
    cells()[cell].trials.push_back(*trial);
  }

  void record(const std::string& probe) {
    caller_.show("recording", 0);
    LaunchOptions options{.preload = {}};
    recordings_.prepare(kRecorded, probe, options);
    options.environment.emplace_back("FREEHOLD_PROBE_SAMPLE", "bytes");
    const Run run = perform(options, timeout_s_);
    stopped_ = run.ending == Ending::kStopped;
    if (stopped_) return;
    if (const std::string how = failure(run, timeout_s_); !how.empty()) {
      result_.notes.push_back("the recorded run failed: " + how);
      return;
    }
    std::vector<double> moments;
    for (const MemorySnapshot& snapshot : run.memory) moments.push_back(snapshot.at_s);
    const std::vector<double> weights = weights_of(run.memory);
    std::vector<std::string> unreadable;
    const bool was_read =
        !moments.empty() && recordings_.visit(kRecorded, unreadable, [&](std::span<const Evidence> processes) {
          const bool is_glibc = result_.experiment.is_glibc;
          const std::vector<double> ends = ends_of(processes, run.memory);
          result_.experiment.record =
              record_of(run.memory, live_history_of(processes, moments, weights, is_glibc, ends), is_glibc);
        });
    if (result_.experiment.record && result_.experiment.record->dropped > 0)
      result_.notes.push_back(
          std::to_string(result_.experiment.record->dropped) +
          " records found no room, so that live data is not known: the disk of TMPDIR is full, or a limit "
          "keeps the program's files small");
    for (const std::string& why : unreadable) result_.notes.push_back("a process's recording could not be read: " + why);
    if (!was_read && unreadable.empty())
      result_.notes.push_back("nothing was recorded: the probe was not loaded, or found no room");
  }

  void look_at_pins(double begin, double once_s) {
    const auto freehold = std::ranges::find(cells(), MemoryTreatment::kFreehold,
                                            [](const MemoryCell& cell) { return cell.variant.treatment; });
    if (!caller_.look_at_pins || freehold == cells().end() || !freehold->failure.empty()) return;
    constexpr const char* kWhat = "what pins the holes";
    if (settings_.keeps_budget && settings_.budget_s - (now_s() - begin) < once_s)
      return result_.left_out.emplace_back(kWhat), void();
    caller_.show(kWhat, 0);
    command_.look = caller_.look_at_pins;
    (void)perform({.preload = freehold->variant.how.preload, .environment = {{"FREEHOLD_PROFILE", "65536"}}}, timeout_s_);
    result_.signal = caller_.signal();
  }

  void run_cell(std::size_t cell, unsigned round, double left_s) {
    if (stopped_ || !cells()[cell].failure.empty()) return;
    const Variant& how = cells()[cell].variant.how;
    caller_.show("round " + std::to_string(round) + ": " + how.name, settings_.rounds > 0 ? 0 : std::max(0.0, left_s));
    const Run run = perform({.preload = how.preload, .environment = how.environment}, timeout_s_);
    stopped_ = run.ending == Ending::kStopped;
    if (stopped_) return;
    const std::string failed = failure(run, timeout_s_);
    if (!failed.empty() && cell == 0) throw Refused(Refusal::kFailsLater, failed);
    cells()[cell].failure = failed;
    if (failed.empty()) add_trial(cell, run);
  }

  // A program that was run once says nothing of chance, whatever else is tried.
  void run_again(double begin) { run_cell(0, 1, settings_.budget_s - (now_s() - begin)); }

  // Keeps the treatments that can be run twice in what is left, those that say where free memory is first.
  void leave_out(double left_s, double once_s) {
    std::ranges::stable_sort(cells(), {}, [](const MemoryCell& cell) { return cell.variant.treatment; });
    const double fitting = std::max(0.0, left_s / (kLeastRounds * std::max(once_s, kShortest_s)));
    const std::size_t kept = 1 + static_cast<std::size_t>(std::min(fitting, static_cast<double>(cells().size() - 1)));
    for (std::size_t cell = kept; cell < cells().size(); ++cell) result_.left_out.push_back(cells()[cell].variant.how.name);
    cells().resize(kept);
  }

  void leave_out_what_was_not_run() {
    for (const MemoryCell& cell : cells())
      if (cell.trials.empty() && cell.failure.empty()) result_.left_out.push_back(cell.variant.how.name);
  }

  // Runs every cell once a round, except the program as it is in a round that it has been run for already.
  void run_rounds(double begin, double once_s) {
    const unsigned most = settings_.rounds > 0 ? settings_.rounds : kMostMemoryRounds;
    for (unsigned round = 1; round <= most && !stopped_; ++round) {
      const double left_s = settings_.budget_s - (now_s() - begin);
      if (settings_.rounds == 0 && round > kLeastRounds && left_s < once_s * static_cast<double>(cells().size())) return;
      for (std::size_t cell = cells().front().trials.size() < round ? 0 : 1; cell < cells().size(); ++cell) {
        if (settings_.keeps_budget && settings_.budget_s - (now_s() - begin) < once_s) {
          leave_out_what_was_not_run();
          return;
        }
        run_cell(cell, round, left_s);
      }
    }
  }

  const Settings& settings_;
  const MemoryCaller& caller_;
  Recordings recordings_;
  Command command_;
  double timeout_s_ = kLeastTimeout_s;
  int expected_status_ = 0;
  bool stopped_ = false;
  MemoryOutcome result_;
};

}  // namespace

MemoryOutcome examine_memory(const Settings& settings, const std::string& program, const MemoryCaller& caller) {
  return MemoryRuns(settings, program, caller).examine();
}

}  // namespace freehold::doctor
