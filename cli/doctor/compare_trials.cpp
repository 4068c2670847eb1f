// SPDX-License-Identifier: MIT
#include "cli/doctor/compare_trials.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "cli/doctor/diagnosis.hpp"
#include "cli/doctor/examine.hpp"
#include "cli/doctor/variants.hpp"
#include "cli/run/program.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/machine.hpp"
#include "cli/support/shell.hpp"
#include "freehold/doctor/analysis/attribution.hpp"
#include "freehold/doctor/run/child.hpp"
#include "freehold/doctor/run/program.hpp"
#include "freehold/doctor/run/recordings.hpp"

namespace freehold::cli::doctor {
namespace {
using freehold::doctor::Ending;
using freehold::doctor::Estimate;
using freehold::doctor::LaunchOptions;
using freehold::doctor::Run;

constexpr unsigned kMostRounds = 15;
constexpr double kTimeout = 4;  // times what a run took first, before it is said to hang
constexpr double kLeastTimeout_s = 5;
constexpr double kFirstTimeout_s = 600;
constexpr double kRecordingCost = 1.3;
constexpr double kNineOfTen = 1.645;
constexpr double kFewestRounds = 3;  // that there should be time for, before trials on one CPU are worth theirs

bool is_freehold(const std::string& file) { return file.find("/libfreehold.so") != std::string::npos; }

struct Contestant {
  freehold::doctor::Command command;
  Side side;
  double first_s = 0, first_cpu_s = 0;
  std::set<std::string> files = {};
};

class Runner {
 public:
  Runner(const Contest& contest, Interrupts& interrupts, Progress& progress)
      : contest_(contest),
        interrupts_(interrupts),
        progress_(progress),
        host_{.mask = interrupts.original_mask(), .stop_fd = interrupts.fd()},
        cpus_(freehold::doctor::cpus_in_order()),
        both_{contestant(contest.before), contestant(contest.after)} {}

  Comparison run() {
    const double begin = freehold::doctor::now_s();
    for (Contestant& one : both_) first_run(one);
    // Trials on one CPU tell whether it is scaling that changed, but cost the most time.
    const double round_s = both_[0].first_s + both_[1].first_s;
    const double alone_s = both_[0].first_cpu_s + both_[1].first_cpu_s;
    const double left = contest_.budget_s - (freehold::doctor::now_s() - begin) - kRecordingCost * round_s;
    const bool alone = cpus_.size() > 1 && (contest_.rounds > 0 || left >= kFewestRounds * (round_s + alone_s));
    const double each_s = round_s + (alone ? alone_s : 0);
    const unsigned rounds = contest_.rounds > 0
                                ? contest_.rounds
                                : static_cast<unsigned>(std::clamp(left / std::max(each_s, 1e-3), 1.0, double{kMostRounds}));
    bool complete = true;
    for (unsigned round = 0; round < rounds && complete; ++round) complete = run_round(round, rounds, alone);
    if (complete) record();
    for (const Contestant& one : both_) {
      if (one.side.all.empty()) throw Failure(128 + interrupts_.arrived(), "interrupted before there was anything to tell");
    }
    Comparison comparison = compare(std::move(both_[0].side), std::move(both_[1].side));
    comparison.signal = interrupts_.arrived();
    if (!complete) comparison.notes.emplace_back("Interrupted: this is what was finished until then.");
    comparison.notes.insert(comparison.notes.end(), notes_.begin(), notes_.end());
    progress_.wipe();
    return comparison;
  }

 private:
  Contestant contestant(const std::vector<std::string>& words) const {
    Contestant one;
    one.command.file = find_program(words.front());
    if (::access(one.command.file.c_str(), F_OK) != 0)
      throw Failure(kExitNotFound, fmt::format("{}: no such program", printable(words.front())));
    one.command.arguments = words;
    one.side.name = shell_words(words);
    const Machine machine = this_machine();
    one.side.machine = fmt::format("{}, {} CPUs", machine.cpu_model, machine.cpus);
    one.side.all_text = describe({.threads = 0, .cpus = static_cast<unsigned>(cpus_.size())});
    one.side.alone_text = describe({.threads = 0, .cpus = 1});
    return one;
  }

  Run perform(const Contestant& one, const LaunchOptions& options, double timeout_s) {
    return freehold::doctor::run(one.command, options, timeout_s, host_);
  }

  // Warms the machine up, and says whether the command works and how long it takes.
  void first_run(Contestant& one) {
    const double timeout_s = contest_.budget_s > 0 ? contest_.budget_s : kFirstTimeout_s;
    progress_.show(fmt::format("first run of {}", one.side.name));
    const Run run = perform(one, {.preload = {}}, timeout_s);
    if (run.ending == Ending::kStopped)
      throw Failure(128 + interrupts_.arrived(), "interrupted before both programs had ended for the first time");
    refuse_failure(one, run, timeout_s);
    one.first_s = run.trial.wall_s;
    one.first_cpu_s = std::max(run.trial.wall_s, run.trial.cpu_s());
    one.files = run.files;
  }

  static void refuse_failure(const Contestant& one, const Run& run, double timeout_s) {
    const std::string name = printable(one.command.arguments.front());
    if (run.ending == Ending::kNotStarted)
      throw Failure(kExitCannotExecute, fmt::format("cannot execute {}: {}", name, run.why));
    if (run.ending == Ending::kOutOfTime)
      throw Failure(kExitRefused, fmt::format("{} did not end within {:.0f} s; give it time: --budget {:.0f}", name,
                                              timeout_s, 10 * timeout_s));
    const std::string failure = freehold::doctor::failure_of(run, timeout_s);
    if (failure.empty()) return;
    const std::string last_line = run.last_words.substr(run.last_words.rfind('\n') + 1);
    throw Failure(kExitRefused,
                  fmt::format("{} fails: {}{}{}", name, failure, last_line.empty() ? "" : ": ", printable(last_line)));
  }

  // False: interrupted.
  bool run_round(unsigned round, unsigned rounds, bool alone) {
    for (const bool on_one : {false, true}) {
      if (on_one && !alone) continue;
      for (unsigned turn = 0; turn < 2; ++turn) {
        Contestant& one = both_[(round + turn) % 2];
        progress_.show(fmt::format("round {} of {}: {}", round + 1, rounds, one.side.name));
        LaunchOptions options{.preload = {}};
        if (on_one) options.cpus = {cpus_.front()};
        const double timeout_s = kLeastTimeout_s + kTimeout * (on_one ? one.first_cpu_s : one.first_s);
        const Run run = perform(one, options, timeout_s);
        if (run.ending == Ending::kStopped || interrupts_.arrived() != 0) return false;
        refuse_failure(one, run, timeout_s);
        (on_one ? one.side.alone : one.side.all).push_back(run.trial);
        one.files.insert(run.files.begin(), run.files.end());
      }
    }
    return true;
  }

  void record() {
    freehold::doctor::Recordings recordings("");
    for (std::size_t i = 0; i < both_.size(); ++i) {
      Contestant& one = both_[i];
      std::vector<std::string> notes;
      const std::string probe = find_probe(malloc_origin(one.files), notes);
      for (const std::string& note : notes) notes_.push_back(fmt::format("{}: {}", i == 0 ? "Before" : "After", note));
      if (probe.empty()) continue;
      if (std::ranges::any_of(one.files, is_freehold)) {
        notes_.push_back(
            fmt::format("{}: it runs under Freehold, which comes before the probe: its allocations were not counted.",
                        i == 0 ? "Before" : "After"));
        continue;
      }
      LaunchOptions options{.preload = {}};
      const std::string name = i == 0 ? "before" : "after";
      recordings.prepare(name, probe, options);
      progress_.show(fmt::format("recording {}", one.side.name));
      const Run run = perform(one, options, kLeastTimeout_s + kTimeout * kRecordingCost * one.first_s);
      if (run.ending == Ending::kStopped || interrupts_.arrived() != 0) return;
      std::vector<std::string> unreadable;
      const auto recorded = recordings.read(name, unreadable).attribution;
      for (const std::string& why : unreadable)
        notes_.push_back(fmt::format("A process's recording could not be read: {}.", printable(why)));
      if (recorded == nullptr) continue;
      const auto share = [](double value, double error) {
        return Estimate{std::max(0.0, value - error), value, std::min(1.0, value + error)};
      };
      one.side.in_malloc = share(recorded->cpu_share, kNineOfTen * recorded->cpu_share_error);
      one.side.allocations = recorded->allocating.calls;
    }
  }

  const Contest& contest_;
  Interrupts& interrupts_;
  Progress& progress_;
  freehold::doctor::Host host_;
  std::vector<unsigned> cpus_;
  std::array<Contestant, 2> both_;
  std::vector<std::string> notes_;
};

}  // namespace

Comparison compare(const Contest& contest, Interrupts& interrupts, Progress& progress) {
  try {
    return Runner(contest, interrupts, progress).run();
  } catch (const freehold::doctor::Refused& refused) {
    throw failure_of(refused, printable(contest.before.front()), {}, interrupts.arrived());
  }
}

}  // namespace freehold::cli::doctor
