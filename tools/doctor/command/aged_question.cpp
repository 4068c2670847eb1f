// SPDX-License-Identifier: MIT
// How much slower is a program on an aged heap? Under each malloc it runs by turns on a fresh one and on one on which
// libfreehold-age.so played a history first.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "tools/doctor/command/questions.hpp"
#include "tools/doctor/command/refusals.hpp"
#include "tools/doctor/command/treatments.hpp"
#include "tools/doctor/report/format.hpp"
#include "tools/doctor/run/paired_trials.hpp"
#include "tools/doctor/run/recordings.hpp"
#include "tools/doctor/run/timeouts.hpp"
#include "tools/launch/program.hpp"
#include "tools/support/interrupts.hpp"
#include "tools/support/library.hpp"
#include "tools/support/units.hpp"

namespace freehold::doctor::command {
namespace {
using namespace report;

constexpr unsigned kEnds = 3;  // of `true`, fresh and aged; the least counts

// A history has a quarter of the memory that is left, so that one run at a time leaves the program and others the rest.
std::uint64_t most_bytes() { return doctor::available_bytes() / 4; }

History recorded_history(const std::string& file) {
  const auto refuse = [&file](const std::string& why) {
    throw Failure(kExitRefused, fmt::format("--aged: {} {}", printable(file), why));
  };
  NoRecording no;
  const auto recording = doctor::read_recording(file, no);
  if (!recording) throw Failure(kExitRefused, "--aged: " + printable(no.why));
  if (!recording->is_whole) refuse("is a sample of the calls; record it with FREEHOLD_PROBE_SAMPLE=all");
  if (recording->dropped > 0) refuse("is cut: there was no room for all calls; FREEHOLD_PROBE_BYTES makes more");
  History history = doctor::history_of(*recording);
  if (history.mallocs == 0) refuse("has no allocation");
  if (history.peak_bytes > most_bytes())
    refuse(fmt::format("holds {} at once, and a quarter of the memory that is left is {}", bytes_text(history.peak_bytes),
                       bytes_text(most_bytes())));
  return history;
}

class AgedTrials {
 public:
  AgedTrials(const AgedRequest& request, Interrupts& interrupts)
      : request_(request), program_(printable(request.settings.command.front())), interrupts_(interrupts) {
    command_.file = request.program;
    command_.arguments = request.settings.command;
    if (!request.settings.input.empty()) command_.input = request.settings.input;
    result_.command = request.settings.command;
    result_.recording = request.recording;
    result_.machine = this_machine();
    result_.date = today();
  }

  AgedDiagnosis answer() {
    const MallocOrigin origin = prepare();
    std::vector<Variant> variants =
        variants_of(request_.allocators, origin, static_cast<unsigned>(doctor::cpus_in_order().size()), result_.notes);
    if (!request_.allocators)  // those that ask about its own malloc
      std::erase_if(variants, [](const Variant& variant) {
        return variant.treatment != Treatment::kNone && variant.treatment != Treatment::kFreehold &&
               variant.treatment != Treatment::kPeer;
      });
    budget_s_ = request_.settings.budget_s / static_cast<double>(variants.size());
    for (const Variant& variant : variants)
      if (interrupts_.arrived() == 0) result_.mallocs.push_back(trials_of(variant));
    result_.signal = interrupts_.arrived();
    if (cpu_change(result_.mallocs.front().fresh, result_.mallocs.front().aged)) return std::move(result_);
    throw Failure(kExitRefused, fmt::format("{} {}", program_, result_.mallocs.front().failure));
  }

 private:
  [[nodiscard]] Host host() const { return {.mask = interrupts_.original_mask(), .stop_fd = interrupts_.fd()}; }

  // The first run shows which malloc the program has, and records the sizes of a history that is made up.
  MallocOrigin prepare() {
    if (!request_.recording.empty()) result_.history = recorded_history(request_.recording);
    LaunchOptions options{.preload = {}};
    if (request_.recording.empty()) recordings_.prepare("sizes", find_own_library("libfreehold-probe.so"), options);
    progress_.show("first run of " + program_);
    const double timeout_s = request_.settings.budget_s > 0 ? request_.settings.budget_s : kFirstTimeout_s;
    const Run run = doctor::run(command_, options, timeout_s, host());
    if (run.ending == Ending::kStopped) throw Refused(Refusal::kInterruptedAtFirst);
    if (request_.recording.empty()) {
      Sizes sizes;
      recordings_.visit("sizes", result_.notes, [&sizes](std::span<const Evidence> processes) {
        for (const Evidence& process : processes) add_sizes(process.recording, sizes);
      });
      if (sizes.empty()) result_.notes.emplace_back("Nothing was recorded: the history's sizes are not the program's.");
      result_.history = doctor::made_up(std::move(sizes), most_bytes());
    }
    std::set<std::string> files = run.files;
    std::erase_if(files, [](const std::string& file) { return file.ends_with("/libfreehold-probe.so"); });  // is not its own
    return malloc_origin(files);
  }

  // A run, and what playing the history took in it; fresh: nothing.
  struct Played {
    Run run;
    HistoryHeader sums{};
  };
  Played run_once(const doctor::Command& command, const Variant& variant, LaunchOptions options, double seconds,
                  bool is_aged) {
    options.preload = variant.preload;
    options.preload.insert(options.preload.begin(), find_own_library("libfreehold-age.so"));
    options.environment = variant.environment;
    const std::filesystem::path file = recordings_.folder() / "history";
    if (is_aged) {
      if (!doctor::write_history(result_.history, file)) throw Refused(Refusal::kNoFolder, file.string(), "no room");
      options.environment.emplace_back("FREEHOLD_HISTORY", file.string());
    }
    Played played{doctor::run(command, options, seconds + kTimeout * played_s_, host())};
    if (!is_aged || played.run.ending != Ending::kEnded) return played;
    played.sums = doctor::read_sums(file);
    played_s_ = std::max(played_s_, static_cast<double>(played.sums.wall_ns) / 1e9);
    return played;
  }
  Run trial_of(const doctor::Command& command, const Variant& variant, const LaunchOptions& options, double seconds,
               std::uint64_t end_ns) {
    auto [run, sums] = run_once(command, variant, options, seconds, is_aged_);
    if (!is_aged_ || run.ending != Ending::kEnded) return std::move(run);
    if (sums.programs == 0) throw Refused(Refusal::kFails, "the history was not played, as in a static program");
    if (sums.refused > 0) throw Refused(Refusal::kFails, fmt::format("{} mallocs of the history failed", sums.refused));
    sums.cpu_ns += sums.programs * end_ns;
    sums.wall_ns += sums.programs * end_ns;
    doctor::take_off(sums, run.trial);
    return std::move(run);
  }
  // Returns how long the kernel takes at a process's end to take the history's memory back: `true` costs so much more with
  // it. 0: not known, or none.
  std::uint64_t end_ns(const Variant& variant) {
    doctor::Command ends = command_;
    ends.file = find_program("true");
    ends.arguments = {"true"};
    double least_s[2] = {HUGE_VAL, HUGE_VAL};  // fresh, aged
    for (unsigned n = 0; n < 2 * kEnds; ++n) {
      auto [run, sums] = run_once(ends, variant, {}, kFirstTimeout_s, n % 2 != 0);
      if (run.ending != Ending::kEnded || sums.programs != n % 2) return 0;
      doctor::take_off(sums, run.trial);
      least_s[n % 2] = std::min(least_s[n % 2], run.trial.cpu_s());
    }
    return static_cast<std::uint64_t>(std::max(least_s[1] - least_s[0], 0.0) * 1e9);
  }

  AgedMalloc trials_of(const Variant& variant) {
    AgedMalloc malloc{.variant = variant, .fresh = {}, .aged = {}, .failure = {}};
    const PairedTrials trials{.commands = {command_, command_}, .budget_s = budget_s_, .rounds = request_.settings.rounds};
    PairedCaller caller = doctor::trials_on(host());
    const std::uint64_t end = end_ns(variant);
    caller.cpus.resize(1);  // no trials on one CPU beside those on all
    caller.run = [&](const doctor::Command& command, const LaunchOptions& options, double seconds) {
      is_aged_ = &command == &trials.commands[1];
      return trial_of(command, variant, options, seconds, end);
    };
    caller.show = [&](const PairedActivity& activity) {
      progress_.show(fmt::format("{}, {} heap, round {}", variant.name,
                                 activity.version == Version::kAfter ? "aged" : "fresh", activity.round));
    };
    caller.probe = [](Version, const std::set<std::string>&) { return std::string(); };
    caller.signal = [this] { return interrupts_.arrived(); };
    try {
      auto outcome = doctor::run_paired(trials, caller);
      malloc.fresh = std::move(outcome.sides[0]);
      malloc.aged = std::move(outcome.sides[1]);
    } catch (const Refused& refused) {
      const std::string_view where = is_aged_ ? " on the aged heap" : "";
      if (refused.why() == Refusal::kFails)
        malloc.failure = fmt::format("fails{}: {}", where, printable(refused.detail()));
      else if (refused.why() == Refusal::kNoEnd)
        malloc.failure =
            fmt::format("did not end{} within {}; give it time: --budget", where, seconds_text(refused.seconds()));
      else if (result_.mallocs.empty())
        throw;
      else
        malloc.failure = "interrupted";
    }
    return malloc;
  }

  const AgedRequest& request_;
  const std::string program_;
  doctor::Command command_;
  Interrupts& interrupts_;
  Progress progress_;
  doctor::Recordings recordings_;
  double budget_s_ = 0, played_s_ = 0;  // of each malloc; that the longest history took
  bool is_aged_ = false;                // the last run
  AgedDiagnosis result_;
};

}  // namespace

AgedDiagnosis ask(const AgedRequest& request) {
  Interrupts interrupts;
  try {
    return AgedTrials(request, interrupts).answer();
  } catch (const Refused& refused) {
    throw failure_of(refused, printable(request.settings.command.front()), request.settings, interrupts.arrived());
  }
}

}  // namespace freehold::doctor::command
