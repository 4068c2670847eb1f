// SPDX-License-Identifier: MIT
#include "tools/doctor/run/examination.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>
#include <utility>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/facts/facts.hpp"
#include "tools/doctor/facts/resampled.hpp"
#include "tools/doctor/facts/work_growth.hpp"
#include "tools/doctor/run/attendance.hpp"
#include "tools/doctor/run/child.hpp"
#include "tools/doctor/run/cpu_group.hpp"
#include "tools/doctor/run/launch.hpp"
#include "tools/doctor/run/looks.hpp"
#include "tools/doctor/run/machine_control.hpp"
#include "tools/doctor/run/plan.hpp"
#include "tools/doctor/run/precedence.hpp"
#include "tools/doctor/run/recordings.hpp"
#include "tools/doctor/run/schedule.hpp"
#include "tools/doctor/run/throughput.hpp"
#include "tools/doctor/run/timeouts.hpp"

namespace freehold::doctor {
namespace {
namespace fs = std::filesystem;

constexpr double kReadyTimeout_s = 30;  // for a program that serves
constexpr double kWarmUpShare = 0.04;   // of the budget: a first run that takes no more is there to warm up the machine
constexpr double kWarmUp_s = 4;         // the same without a budget
constexpr double kEnoughShare = 0.5;    // share of the budget: if less is left, the first run counts
constexpr double kCountingShare = 0.1;  // share of the budget: a run whose allocations are counted, which slows it down
constexpr double kCounting_s = 10;      // the same without a budget

constexpr double kRunsShare = 0.92;      // share of the budget; the rest is to read what was recorded
constexpr double kSwitchedShare = 0.25;  // share of the budget, for the recording of a program that leaves all to malloc
constexpr double kGraceShare = 0.05;     // share of the budget: a last run that takes longer than expected may have it
constexpr unsigned kMoreRuns = 2;        // of what decides, while the verdict is open
constexpr double kWaitShare = 0.1;       // share of the budget, for others to end
constexpr double kWaitAtOnce_s = 1;      // before one trial
constexpr unsigned kReadings = 3;        // of the machine, before and after
constexpr double kShort_s = 10;          // an examination after which the machine is read once
constexpr double kCrowded_s = 1;         // that all threads on one CPU may take beyond a timeout: else they spin

constexpr const char* kAll = "all";  // names of recordings
constexpr const char* kAlone = "alone";

class Examination {
 public:
  Examination(const Request& request, const Caller& caller)
      : request_(request),
        caller_(caller),
        cpus_(cpus_in_order()),
        sweep_(sweep_of(request.settings, cpu_count())),
        control_(cpus_) {
    if (!settings().server.throughput.empty()) throughput_.emplace(settings().server.throughput);
  }

  Outcome examine() {
    began_s_ = now_s();
    describe_machine();
    if (settings().ahead_of_others && is_machine_busy(cpus_)) go_before_others(sweep_.back());
    show({.kind = Activity::Kind::kReadMachine});
    control_.read(budget_or(1, kShort_s) < kShort_s ? 1 : kReadings);
    plan(first_run());
    const bool complete = run_rounds();
    // The machine was the same all the time, if that was only a moment.
    if (complete) control_.read(now_s() - began_s_ < kShort_s ? 1 : kReadings);
    conclude(complete);
    return std::move(outcome_);
  }

 private:
  [[nodiscard]] const Settings& settings() const { return request_.settings; }
  [[nodiscard]] Experiment& experiment() { return outcome_.experiment; }
  [[nodiscard]] unsigned cpu_count() const { return static_cast<unsigned>(cpus_.size()); }
  [[nodiscard]] bool interrupted() const { return caller_.signal() != 0; }
  void show(const Activity& activity) const { caller_.show(activity); }
  [[nodiscard]] double budget_or(double share, double without_budget) const {
    return settings().budget_s > 0 ? share * settings().budget_s : without_budget;
  }

  // A run that is no trial gets its share, and no more than the runs before it have left: a slow starter may have taken all.
  [[nodiscard]] double time_for(double share, double without_budget) const {
    const double left_s = budget_or(kRunsShare, kFirstTimeout_s) - (settings().budget_s > 0 ? now_s() - began_s_ : 0);
    return std::min(budget_or(share, without_budget), left_s);
  }

  void describe_machine() {
    Experiment& facts = experiment();
    facts.parallelism = settings().parallelism;
    facts.can_be_copied = !settings().server.used();
    facts.affinity_cpus = cpu_count();
    facts.online_cpus = static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
    facts.quota_cpus = CpuGroup(membership_of(::getpid())).quota_cpus();
    facts.machine_cpus = cpu_count();
    if (const double quota = std::ceil(facts.quota_cpus); quota > 0 && quota < cpu_count())
      facts.machine_cpus = static_cast<unsigned>(quota);
    outcome_.cpus = cpus_;
  }

  [[nodiscard]] Run perform(const Variant& variant, const Setting& setting, double timeout_s, const std::string& recording,
                            bool sample_code = false) {
    Command command = command_of(settings(), request_.program, setting);
    command.sample_code = sample_code;
    command.before_others = precedence_.is_taken();
    command.real_time = precedence_.is_taken() && cpu_count() > 1 && setting.copies == 1 && experiment().quota_cpus == 0 &&
                        !settings().server.used();  // which would starve what uses it
    auto copies = launch_options_of(settings(), variant, setting, cpus_);
    if (!recording.empty()) recordings_.prepare(recording, tools_.probe, copies.front());
    const Server& server = settings().server;
    Run run = server.used() ? run_service(command, copies.front(),
                                          {.ready = server.ready, .load = server.load, .seconds = server.seconds}, timeout_s,
                                          caller_.host)
                            : run_copies(command, copies, timeout_s, caller_.host);
    hold_taken_to(run.trial, setting.width());
    if (throughput_) run.trial.throughput = throughput_->find(run.output);
    return run;
  }

  // Why the run is no trial; empty: it is one.
  [[nodiscard]] std::string failure_of(const Run& run, const Variant& variant, double timeout_s) const {
    if (!(run.ending == Ending::kEnded && expected_status_ && run.trial.wait_status == *expected_status_)) {
      if (const std::string failure = doctor::failure_of(run, timeout_s); !failure.empty()) return failure;
      if (expected_status_ && *expected_status_ != 0) return "exit code 0, unlike with its own allocator";
    }
    if (throughput_ && !run.trial.throughput) return "no throughput was found in the output";
    // A preloaded library is there before the C library is.
    const bool has_libc =
        std::ranges::any_of(run.files, [](const std::string& file) { return file.find("/libc.so.") != std::string::npos; });
    for (const std::string& library : variant.preload) {
      if (has_libc && !run.files.contains(library)) return fs::path(library).filename().string() + " was not loaded";
    }
    return {};
  }
  [[nodiscard]] static std::string last_line_of(const Run& run) {
    return run.last_words.substr(run.last_words.rfind('\n') + 1);
  }

  // The program as it is, on all CPUs: says how long a run takes, and whether the program works at all.
  Run first_run() {
    const Variant as_it_is{.treatment = Treatment::kNone, .name = "system", .preload = {}};
    const double timeout_s = budget_or(1, kFirstTimeout_s);
    show({.kind = Activity::Kind::kFirstRun, .setting = sweep_.back()});
    const double begin = now_s();
    Run run = perform(as_it_is, sweep_.back(), timeout_s, "");
    first_elapsed_s_ = now_s() - begin;
    refuse_hopeless(run, timeout_s);
    if (settings().allow_failure && run.ending == Ending::kEnded) expected_status_ = run.trial.wait_status;
    if (const std::string failure = failure_of(run, as_it_is, timeout_s); !failure.empty())
      throw Refused(Refusal::kFails, failure, last_line_of(run));
    return run;
  }

  void refuse_hopeless(const Run& run, double timeout_s) const {
    switch (run.ending) {
      case Ending::kStopped: throw Refused(Refusal::kInterruptedAtFirst);
      case Ending::kNotStarted: throw Refused(Refusal::kNotExecutable, run.why);
      case Ending::kOutOfTime:
        throw Refused(settings().server.used() ? Refusal::kNoEndOfLoad : Refusal::kNoEnd, "", "", timeout_s);
      case Ending::kNotReady: throw Refused(Refusal::kNotReady);
      default: break;
    }
  }

  void plan(const Run& first) {
    note_facts(first, sweep_.back());
    if (precedence_.is_taken()) first_elapsed_s_ -= first.trial.taken_s / sweep_.back().width();  // they do so no more
    tools_ = caller_.tools(first.files);
    experiment().variants = tools_.variants;
    find_own_allocators(first);
    if (tools_.takes_switches) add_switches(experiment().variants, outcome_.own_allocators);
    std::vector<Task> tasks =
        tasks_of(settings(), experiment().variants, cpu_count(), !tools_.probe.empty(), !tools_.delay.empty());
    std::vector<Goal> goals =
        settings().rounds > 0 ? goals_of(tasks, settings().rounds) : goals_of(tasks, experiment().variants);
    for (const Task& task : tasks) {
      if (task.delay_ns > 0)
        experiment().delayed.push_back({.delay_s = 1e-9 * task.delay_ns, .trials = {}});
      else if (task.is_cell())
        experiment().cells.push_back({.variant = task.variant, .setting = task.setting, .trials = {}, .failure = {}});
    }
    schedule_ = Schedule(std::move(tasks), std::move(goals),
                         {.budget_s = kRunsShare * settings().budget_s,
                          .grace_s = kGraceShare * settings().budget_s,
                          .rounds = settings().rounds,
                          .serves = settings().server.used(),
                          .began_s = began_s_,
                          .first_elapsed_s = first_elapsed_s_,
                          .first_cpu_s = first.trial.cpu_s()});
    const bool has_time = time_for(1, kFirstTimeout_s) >= budget_or(kEnoughShare, 0);
    if (has_time && first_elapsed_s_ <= budget_or(kWarmUpShare, kWarmUp_s)) return;
    keep(schedule_.index_of({.variant = 0, .setting = sweep_.back()}).value(), first, first_elapsed_s_);
  }

  [[nodiscard]] Variant variant_of(const Task& task) const {
    if (task.delay_ns == 0) return outcome_.experiment.variants[task.variant];
    const std::string delay_ns = std::to_string(task.delay_ns);
    return {.treatment = Treatment::kNone,
            .name = delay_ns + " ns more for each call",
            .preload = {tools_.delay},
            .environment = {{"FREEHOLD_DELAY_NS", delay_ns}}};
  }

  void find_own_allocators(const Run& first) {
    const double most_s = time_for(kCountingShare, kCounting_s);
    const auto run = [this](double seconds) {
      show({.kind = Activity::Kind::kCountAllocations});
      return perform(experiment().variants.front(), sweep_.back(), seconds, "");
    };
    std::set<std::string> files = first.files;
    std::error_code ignored;
    files.insert(fs::canonical(request_.program, ignored).string());  // of a short run nothing else may have been seen
    outcome_.own_allocators = own_allocators_of(files, run, std::min(most_s, kTimeout * first_elapsed_s_ + kLeastTimeout_s));
    record_switched();
  }

  // The probe sees every allocation of a program that leaves all to malloc.
  void record_switched() {
    if (tools_.probe.empty() || settings().server.used()) return;
    for (const OwnAllocator& own : outcome_.own_allocators) {
      const double timeout_s = std::min(time_for(kSwitchedShare, kFirstTimeout_s), kTimeout * first_elapsed_s_);
      if (own.use_malloc.empty() || interrupted() || timeout_s <= 0) continue;
      Variant with = experiment().variants.front();
      const std::size_t equals = own.use_malloc.find('=');
      with.environment.emplace_back(own.use_malloc.substr(0, equals), own.use_malloc.substr(equals + 1));
      show({.kind = Activity::Kind::kRecordSwitched, .variant = own.use_malloc});
      static_cast<void>(perform(with, sweep_.back(), timeout_s, own.use_malloc));
    }
  }
  void judge_switched() {
    for (OwnAllocator& own : outcome_.own_allocators) {
      std::vector<std::string> ignored;
      if (own.use_malloc.empty() || outcome_.recorded == nullptr) continue;
      const auto switched = recordings_.read(own.use_malloc, ignored).attribution;
      if (switched != nullptr) set_reach(own, outcome_.recorded->allocating.calls, switched->allocating.calls);
    }
  }

  // False: interrupted.
  bool run_rounds() {
    for (unsigned round = 0;; ++round) {
      round_ = round + 1;
      const std::vector<std::size_t> order = schedule_.order_of_round(round);
      if (order.empty() && !go_on(true)) return true;
      for (const std::size_t task : order) {
        const std::vector<unsigned> wanted = schedule_.targets();
        if (wanted[task] <= schedule_.done(task)) continue;  // time is running out
        const Task& what = schedule_.tasks()[task];
        show({.kind = Activity::Kind::kTrial,
              .setting = what.setting,
              .variant = experiment().variants[what.variant].name,
              .round = round + 1,
              .recorded = what.recording,
              .sampled = what.sampled,
              .delayed = what.delay_ns > 0,
              .seconds_left = schedule_.seconds_left(wanted),
              .open = looks_.last().doubt,
              .suspected = looks_.last().suspected});
        if (!run_task(task)) return false;
      }
      const bool may_look = !order.empty() && settings().rounds == 0 && looks_.is_due(round_) && schedule_.can_decide();
      if (may_look && !go_on(false)) return true;
    }
  }

  // While the verdict is open and time is left, what decides is run again, before all else: undecided is an answer only when
  // the budget is spent. `all_done`: everything was tried as often as was planned. False: it is time to conclude.
  bool go_on(bool all_done) {
    if (settings().rounds > 0 || !schedule_.has_time()) return false;
    const bool may_look = looks_.are_left();
    if (may_look) look();
    const std::vector<std::size_t> deciding = looks_.deciding(experiment());
    if (looks_.last().cause == Cause::kUndecided)
      return schedule_.run_again(deciding, kMoreRuns << (looks_.taken() - 1)) || !all_done;
    if (looks_.are_settled(round_) || !may_look) return false;
    return !all_done || schedule_.run_again(deciding, kMoreRuns);
  }

  void look() {
    show({.kind = Activity::Kind::kReadRecording});
    read_recordings();
    Experiment so_far = experiment();
    finish(so_far);
    looks_.add(so_far, verdict_of(so_far, outcome_.recorded.get()));
  }

  // A runtime's switch gives malloc calls that were not recorded.
  void replan_if_malloc_is_idle() {
    const std::vector<Variant>& variants = experiment().variants;
    const bool has_switch = std::ranges::any_of(variants, [](const Variant& variant) {
      return variant.treatment == Treatment::kPeer && !variant.environment.empty();
    });
    const Cell* const on_all = measured(experiment(), 0, sweep_.back());
    if (settings().rounds > 0 || has_switch || on_all == nullptr) return;
    read_recording_on_all();
    if (outcome_.recorded != nullptr && no_malloc_can_help(*outcome_.recorded, *on_all))
      schedule_.replan(goals_of(schedule_.tasks(), variants, true));
  }

  // The machine may be busy for a moment only: a tenth of the budget goes into waiting for that, not more than a second at
  // once.
  void wait_for_others() {
    if (precedence_.is_taken()) return;
    const double until = now_s() + std::min(kWaitAtOnce_s, kWaitShare * settings().budget_s - waited_s_);
    const double began = now_s();
    while (now_s() < until && !interrupted() && others_run()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    waited_s_ += now_s() - began;
  }
  // False: interrupted.
  bool run_task(std::size_t index) {
    const Task& task = schedule_.tasks()[index];
    if (task.crowded && !more_threads_need_more(experiment())) {
      schedule_.give_up(index);
      return true;
    }
    if (task.is_trial()) wait_for_others();
    const bool all = task.setting == sweep_.back();
    double timeout_s = kTimeout * schedule_.estimate(index) + kLeastTimeout_s;
    if (settings().server.used()) timeout_s += kReadyTimeout_s;
    const double in_time_s = schedule_.in_time(index);
    const bool is_cut = in_time_s < timeout_s || task.crowded;
    if (task.crowded) timeout_s += kCrowded_s - kLeastTimeout_s;
    timeout_s = std::min(timeout_s, in_time_s);
    const double begin = now_s();
    const Variant variant = variant_of(task);
    const Run run = perform(variant, task.setting, timeout_s, task.recording ? (all ? kAll : kAlone) : "", task.sampled);
    if (run.ending == Ending::kStopped || interrupted()) return false;
    if (run.ending == Ending::kOutOfTime && is_cut) {  // the budget ended it: nothing is known of the program by that
      schedule_.give_up(index);
      return true;
    }
    note_facts(run, task.setting);
    const std::string failure = failure_of(run, variant, timeout_s);
    if (task.sampled) {
      schedule_.count(index, now_s() - begin);
      if (failure.empty()) (all ? sampled_ : sampled_alone_) = run.code;
    } else if (task.recording) {
      schedule_.count(index, now_s() - begin);
      if (failure.empty()) (all ? outcome_.recorded_trial : outcome_.recorded_alone_trial) = run.trial;
      if (!failure.empty()) note({.kind = Note::Kind::kRecordedRunFailed, .setting = task.setting, .why = failure});
      if (failure.empty() && all) replan_if_malloc_is_idle();
    } else if (failure.empty()) {
      keep(index, run, now_s() - begin);
    } else {
      if (task.is_cell()) cell_of(task).failure = with_last_line(failure, run);
      schedule_.give_up(index);
    }
    return true;
  }

  [[nodiscard]] static std::string with_last_line(const std::string& failure, const Run& run) {
    const std::string last_line = last_line_of(run);
    return last_line.empty() ? failure : failure + ": " + last_line;
  }

  [[nodiscard]] Cell& cell_of(const Task& task) {
    return *std::ranges::find_if(experiment().cells, [&task](const Cell& cell) {
      return cell.variant == task.variant && cell.setting == task.setting;
    });
  }
  [[nodiscard]] std::vector<Trial>& trials_of(const Task& task) {
    if (task.crowded) return experiment().crowded;
    if (task.delay_ns == 0) return cell_of(task).trials;
    return std::ranges::find(experiment().delayed, 1e-9 * task.delay_ns, &Delayed::delay_s)->trials;
  }

  void keep(std::size_t index, const Run& run, double elapsed_s) {
    const Task& task = schedule_.tasks()[index];
    schedule_.count(index, elapsed_s, taken_share(run.trial, task.setting) > kDisturbed);
    trials_of(task).push_back(run.trial);
    trials_of(task).back().round = round_;
  }

  void note(Note note) { outcome_.notes.push_back(std::move(note)); }
  void go_before_others(const Setting& setting) {
    if (settings().ahead_of_others && !precedence_.is_taken() && precedence_.take())
      note({.kind = Note::Kind::kTookPrecedence, .setting = setting});
  }
  void note_facts(const Run& run, const Setting& setting) {
    Experiment& facts = experiment();
    if (taken_share(run.trial, setting) > kDisturbed) go_before_others(setting);
    facts.most_threads = std::max(facts.most_threads, run.most_threads);
    if (run.trial.own_cpus && setting == sweep_.back()) own_cpus_.push_back(*run.trial.own_cpus);
    if (run.quota_cpus > 0 && (facts.quota_cpus == 0 || run.quota_cpus < facts.quota_cpus))
      facts.quota_cpus = run.quota_cpus;
  }

  void conclude(bool complete) {
    Experiment& facts = experiment();
    outcome_.signal = caller_.signal();
    const auto is_untried = [](const Cell& cell) { return cell.trials.empty() && cell.failure.empty(); };
    facts.complete = complete && (looks_.are_settled(round_) || std::ranges::none_of(facts.cells, is_untried));
    if (std::ranges::none_of(facts.cells, [](const Cell& cell) { return cell.variant == 0 && !cell.trials.empty(); }))
      throw complete ? Refused(Refusal::kFailsLater, facts.cells.front().failure) : Refused(Refusal::kInterruptedTooEarly);
    show({.kind = Activity::Kind::kReadRecording});
    read_recordings();
    finish(facts);
    outcome_.verdict = verdict_of(facts, outcome_.recorded.get());
    judge_switched();
  }

  // Reads what was recorded and sampled; each is made once, so it is read once. None is made later.
  void read_recording_on_all() {
    if (std::exchange(is_read_, true)) return;
    Recordings::Read recorded = read_recording(kAll, sweep_.back());
    outcome_.recorded = std::move(recorded.attribution);
    outcome_.profile = std::move(recorded.profile);
  }
  void read_recordings() {
    if (std::exchange(are_read_, true)) return;
    for (std::size_t task = 0; task < schedule_.tasks().size(); ++task)
      if (!schedule_.tasks()[task].is_trial()) schedule_.give_up(task);
    read_recording_on_all();
    outcome_.recorded_alone = read_recording(kAlone, sweep_.front()).attribution;
    compare_code();
  }

  // The trials as a verdict needs them.
  void finish(Experiment& facts) {
    std::erase_if(facts.cells, [](const Cell& cell) { return cell.trials.empty() && cell.failure.empty(); });
    std::erase_if(facts.delayed, [](const Delayed& of) { return of.trials.empty(); });
    facts.control = control_.control();
    facts.looks = settings().rounds > 0 ? 1 : Looks::kMost;
    if (!own_cpus_.empty()) facts.own_cpus = static_cast<unsigned>(median(own_cpus_));
    facts.code = code_;
    for (const OwnAllocator& own : outcome_.own_allocators)
      if (own.reached) facts.own_malloc_share = std::max(facts.own_malloc_share.value_or(0), 1 - *own.reached);
    judge_work(facts);
  }

  [[nodiscard]] Recordings::Read read_recording(const char* name, const Setting& setting) {
    const auto task = schedule_.index_of({.variant = 0, .setting = setting, .recording = true});
    if (!task || schedule_.done(*task) == 0) return {};
    std::vector<std::string> unreadable;
    auto read = recordings_.read(name, unreadable);
    for (const std::string& why : unreadable) note({.kind = Note::Kind::kRecordingUnreadable, .why = why});
    if (read.attribution == nullptr) note({.kind = Note::Kind::kNothingRecorded, .setting = setting});
    return read;
  }

  // Finds where the CPU time goes that comes with more threads.
  void compare_code() {
    const auto threads = [](const Setting& setting) { return setting.threads != 0 ? setting.threads : setting.cpus; };
    const double factor = static_cast<double>(threads(sweep_.back())) / threads(sweep_.front());
    CodeGrowth& code = code_;
    code = growth_between(sampled_alone_, sampled_, factor);
    if (code.hottest_spin != 0) outcome_.spins_at = recordings_.frame_at(sampled_.maps, code.hottest_spin);
    if (code.hottest_contended != 0) outcome_.contended_at = recordings_.frame_at(sampled_.maps, code.hottest_contended);
  }

  void judge_work(Experiment& facts) {
    WorkGrowth growth;
    if (settings().work != Work::kAuto)
      growth.grows = settings().work == Work::kPerThread;
    else if (!settings().server.used())
      growth = work_growth_of(facts, outcome_.recorded.get(), outcome_.recorded_alone.get());
    facts.work_grows = growth.grows;
    facts.work_is_guessed = growth.is_guessed;
  }

  const Request& request_;
  const Caller& caller_;
  std::vector<unsigned> cpus_;
  std::vector<Setting> sweep_;
  MachineControl control_;
  Recordings recordings_;
  Precedence precedence_;  // once others took CPUs from a run
  std::optional<Throughput> throughput_;
  Outcome outcome_;
  Tools tools_;
  Schedule schedule_;
  std::vector<double> own_cpus_;  // in each run on all CPUs; a short one may be seen before it confines itself
  CodeSamples sampled_, sampled_alone_;
  CodeGrowth code_;
  bool are_read_ = false;  // the recordings
  bool is_read_ = false;   // of these, the one on all CPUs
  Looks looks_;            // at the trials so far
  unsigned round_ = 0;     // from 1 on; 0: the first run
  std::optional<int> expected_status_;
  double began_s_ = 0;
  double first_elapsed_s_ = 0;
  double waited_s_ = 0;  // for others to end
};

}  // namespace

Outcome examine(const Request& request, const Caller& caller) { return Examination(request, caller).examine(); }

}  // namespace freehold::doctor
