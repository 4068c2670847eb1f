#include "cli/doctor/experiment.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "cli/doctor/control.hpp"
#include "cli/doctor/own_allocators.hpp"
#include "cli/doctor/placement.hpp"
#include "cli/doctor/plan.hpp"
#include "cli/doctor/recordings.hpp"
#include "cli/doctor/throughput.hpp"
#include "cli/doctor/variants.hpp"
#include "cli/replay/advice.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/library.hpp"
#include "cli/support/statistics.hpp"
#include "freehold/doctor/attribution.hpp"
#include "freehold/doctor/child.hpp"
#include "freehold/doctor/cpu_group.hpp"
#include "freehold/doctor/program.hpp"
#include "freehold/doctor/resampled.hpp"

namespace freehold::cli::doctor {
namespace {
using freehold::doctor::Cell;
using freehold::doctor::Ending;
using freehold::doctor::Experiment;
using freehold::doctor::Host;
using freehold::doctor::now_s;
using freehold::doctor::Run;
using freehold::doctor::Setting;
using freehold::doctor::Surroundings;
using freehold::doctor::Treatment;
using freehold::doctor::Trial;
using freehold::doctor::Variant;
namespace fs = std::filesystem;

constexpr double kPatience = 4;              // times what a run is expected to take, before it is said to hang
constexpr double kLeastPatience_s = 5;       // and on top of that
constexpr double kFirstPatience_s = 600;     // for the first run, where there is no budget
constexpr double kReadyPatience_s = 30;      // for a program that serves
constexpr double kWarmUpShare = 0.04;        // of the budget: a first run that takes no more is there to warm up the machine
constexpr double kWarmUp_s = 4;              // the same without a budget
constexpr double kCountingShare = 0.1;       // of the budget: a run whose allocations are counted, which slows it down
constexpr double kCounting_s = 10;           // the same without a budget
constexpr unsigned kReplays = 3;             // of a site through every pool and heap
constexpr double kRecordingCost = 1.3;       // what a recorded run is expected to take, of one that is not
constexpr double kGrowth = 0.75;             // of the factor that threads grow by: work that grows so much, grows with them
constexpr double kManyAllocations = 10'000;  // that say more of the work than the CPU time

constexpr double kDisturbed = 0.05;          // of the CPUs went to others: the trial is repeated if there is time
constexpr unsigned kRepeatsOfDisturbed = 6;  // in all, of each task
constexpr double kWaitShare = 0.1;           // of the budget, for others to end
constexpr double kWaitAtOnce_s = 1;          // before one trial
constexpr unsigned kReadings = 3;            // of the machine, before and after
constexpr double kShort_s = 10;

class Examiner {
 public:
  Examiner(const Examination& asked, Interrupts& interrupts, Progress& progress)
      : asked_(asked),
        interrupts_(interrupts),
        progress_(progress),
        host_{.mask = interrupts.original_mask(), .stop_fd = interrupts.fd()},
        cpus_(freehold::doctor::cpus_in_order()),
        control_(cpus_),
        recordings_(asked.settings.keep_recording) {
    if (!settings().server.throughput.empty()) throughput_.emplace(settings().server.throughput);
  }

  Diagnosis examine() {
    const double begin = now_s();
    describe_case();
    show("the machine", 0);
    control_.read(kReadings);
    begun_s_ = now_s();
    const Run first = first_run();
    plan(first);
    const bool complete = run_rounds();
    // What was over in a moment found the same machine after it.
    if (complete) control_.read(now_s() - begun_s_ < kShort_s ? 1 : kReadings);
    conclude(complete);
    diagnosis_.seconds = now_s() - begin;
    return std::move(diagnosis_);
  }

 private:
  [[nodiscard]] const Settings& settings() const { return asked_.settings; }
  [[nodiscard]] Experiment& experiment() { return diagnosis_.experiment; }
  [[nodiscard]] unsigned cpu_count() const { return static_cast<unsigned>(cpus_.size()); }
  [[nodiscard]] bool interrupted() { return interrupts_.arrived() != 0; }
  [[nodiscard]] std::string program_name() const { return printable(settings().command.front()); }

  void describe_case() {
    diagnosis_.settings = settings();
    diagnosis_.program = asked_.program;
    diagnosis_.example = asked_.example;
    diagnosis_.machine = this_machine();
    diagnosis_.date = today();
    experiment().knob = settings().knob;
    experiment().can_be_copied = !settings().server.used();
    experiment().affinity_cpus = cpu_count();
    experiment().online_cpus = static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
    experiment().quota_cpus = freehold::doctor::CpuGroup(freehold::doctor::membership_of(::getpid())).quota_cpus();
    experiment().machine_cpus = cpu_count();
    if (const double quota = std::ceil(experiment().quota_cpus); quota > 0 && quota < cpu_count())
      experiment().machine_cpus = static_cast<unsigned>(quota);
  }

  void show(const std::string& what, double seconds_left) {
    if (settings().show_output) return;
    progress_.show(seconds_left > 0 ? fmt::format("{}  ({} left)", what, duration_text(seconds_left)) : what);
  }

  [[nodiscard]] Run perform(const Variant& variant, const Setting& setting, double seconds, const std::string& recording,
                            bool sample_code = false) {
    auto command = command_of(settings(), asked_.program, setting);
    command.sample_code = sample_code;
    auto places = places_of(settings(), variant, setting, cpus_);
    if (!recording.empty()) recordings_.prepare(recording, probe_, places.front());
    const Server& server = settings().server;
    Run run = server.used() ? freehold::doctor::run_service(command, places.front(),
                                                            {.ready = server.ready,
                                                             .ready_after_s = server.ready_after_s,
                                                             .load = server.load,
                                                             .seconds = server.seconds},
                                                            seconds, host_)
                            : freehold::doctor::run_copies(command, places, seconds, host_);
    if (throughput_) run.trial.throughput = throughput_->find(run.output);
    return run;
  }

  // Why the run is no trial; empty: it is one.
  [[nodiscard]] std::string failure_of(const Run& run, const Variant& variant, double seconds) const {
    if (!(run.ending == Ending::kEnded && expected_status_ && run.trial.wait_status == *expected_status_)) {
      if (const std::string failure = freehold::doctor::failure_of(run, seconds); !failure.empty()) return failure;
      if (expected_status_ && *expected_status_ != 0) return "exit code 0, unlike with its own allocator";
    }
    if (throughput_ && !run.trial.throughput) return "no throughput was found in the output";
    // What is preloaded is there before the C library is.
    const bool has_libc =
        std::ranges::any_of(run.files, [](const std::string& file) { return file.find("/libc.so.") != std::string::npos; });
    for (const std::string& library : variant.preload) {
      if (has_libc && !run.files.contains(library))
        return fmt::format("{} was not loaded", fs::path(library).filename().string());
    }
    return {};
  }

  // The program as it is, on all that there is: says how long a run takes, and whether the program works at all.
  Run first_run() {
    const Setting setting = sweep_of(settings(), cpu_count()).back();
    const Variant as_it_is{.treatment = Treatment::kNone, .name = "system", .preload = {}};
    const double patience = settings().budget_s > 0 ? settings().budget_s : kFirstPatience_s;
    show(fmt::format("first run of {}, {}", program_name(), describe(setting)), 0);
    const double begin = now_s();
    Run run = perform(as_it_is, setting, patience, "");
    first_elapsed_s_ = now_s() - begin;
    if (run.ending == Ending::kStopped)
      throw Failure(128 + interrupts_.arrived(), "interrupted before the program had ended for the first time");
    refuse_hopeless(run, patience);
    if (settings().allow_failure && run.ending == Ending::kEnded) expected_status_ = run.trial.wait_status;
    if (const std::string failure = failure_of(run, as_it_is, patience); !failure.empty()) {
      const std::string last_line = run.last_words.substr(run.last_words.rfind('\n') + 1);
      throw Failure(kExitRefused, fmt::format("{} fails as it is: {}{}{}; to examine it all the same: --allow-failure",
                                              program_name(), failure, last_line.empty() ? "" : ": ", printable(last_line)));
    }
    return run;
  }

  void refuse_hopeless(const Run& run, double patience) const {
    switch (run.ending) {
      case Ending::kNotStarted:
        throw Failure(kExitCannotExecute, fmt::format("cannot execute {}: {}", printable(asked_.program), run.why));
      case Ending::kOutOfTime:
        if (settings().server.used())
          throw Failure(kExitRefused, fmt::format("the load of {} did not end within {:.0f} s; end it with --for 10s",
                                                  program_name(), patience));
        throw Failure(kExitRefused,
                      fmt::format("{} did not end within {:.0f} s; if it serves until it is told to end, say how long it "
                                  "shall: --for 10s --load 'COMMAND'; if it takes so long, give it time: --budget {:.0f}",
                                  program_name(), patience, 10 * patience));
      case Ending::kNotReady:
        throw Failure(
            kExitRefused,
            fmt::format("{} did not become ready: no socket of its listens{}; say when it is: --ready-after SECONDS "
                        "or --ready 'COMMAND'",
                        program_name(), settings().server.ready.empty() ? "" : ", or the command of --ready fails"));
      default: break;
    }
  }

  void plan(const Run& first) {
    first_cpu_s_ = first.trial.cpu_s();
    const MallocOrigin origin = malloc_origin(first.files);
    experiment().variants = variants_of(asked_.allocators, origin, cpu_count(), diagnosis_.notes);
    probe_ = find_probe(origin, diagnosis_.notes);
    if (!probe_.empty()) find_delay();
    find_own_allocators(first);
    if (!origin.built_in && !asked_.allocators) add_switches(experiment().variants, diagnosis_.own_allocators);
    tasks_ = tasks_of(settings(), experiment().variants, cpu_count(), !probe_.empty(), !delay_.empty());
    goals_ = settings().rounds > 0 ? goals_of(tasks_, settings().rounds) : goals_of(tasks_, experiment().variants);
    done_.assign(tasks_.size(), 0);
    elapsed_s_.assign(tasks_.size(), 0);
    repeats_.assign(tasks_.size(), 0);
    for (const Task& task : tasks_) {
      if (task.delay_ns > 0)
        experiment().delayed.push_back({.delay_s = 1e-9 * task.delay_ns, .trials = {}});
      else if (task.is_trial())
        experiment().cells.push_back({.variant = task.variant, .setting = task.setting, .trials = {}, .failure = {}});
    }
    note_facts(first, sweep_of(settings(), cpu_count()).back());
    const double warm_up_s = settings().budget_s > 0 ? kWarmUpShare * settings().budget_s : kWarmUp_s;
    if (first_elapsed_s_ <= warm_up_s) return;
    const auto same = std::ranges::find(tasks_, Task{0, sweep_of(settings(), cpu_count()).back()});
    keep(static_cast<std::size_t>(same - tasks_.begin()), first, first_elapsed_s_);
  }

  // The library that delays calls of malloc and free; without it nothing is said of what any allocator could do.
  void find_delay() {
    try {
      delay_ = find_own_library("libfreehold-pad.so");
    } catch (const Failure&) {
      // A note says so of padding already.
    }
  }
  [[nodiscard]] Variant variant_of(const Task& task) const {
    if (task.delay_ns == 0) return diagnosis_.experiment.variants[task.variant];
    return {.treatment = Treatment::kNone,
            .name = fmt::format("{} ns more for each call", task.delay_ns),
            .preload = {delay_},
            .environment = {{"FREEHOLD_DELAY_NS", std::to_string(task.delay_ns)}}};
  }
  void find_own_allocators(const Run& first) {
    const double most_s = settings().budget_s > 0 ? kCountingShare * settings().budget_s : kCounting_s;
    const auto run = [this](double seconds) {
      show("counting allocations", 0);
      return perform(experiment().variants.front(), sweep_of(settings(), cpu_count()).back(), seconds, "");
    };
    std::set<std::string> files = first.files;
    std::error_code ignored;
    files.insert(fs::canonical(asked_.program, ignored).string());  // of a short run nothing else may have been seen
    diagnosis_.own_allocators =
        own_allocators_of(files, run, std::min(most_s, kPatience * first_elapsed_s_ + kLeastPatience_s));
    record_switched(std::max(most_s, kPatience * first_elapsed_s_));
  }

  // What the probe sees of a program that leaves all to malloc is all that it allocates.
  void record_switched(double seconds) {
    if (probe_.empty() || settings().server.used()) return;
    for (const OwnAllocator& own : diagnosis_.own_allocators) {
      if (own.use_malloc.empty() || interrupted()) continue;
      Variant with = experiment().variants.front();
      const std::size_t equals = own.use_malloc.find('=');
      with.environment.emplace_back(own.use_malloc.substr(0, equals), own.use_malloc.substr(equals + 1));
      show("recording with " + own.use_malloc, 0);
      static_cast<void>(perform(with, sweep_of(settings(), cpu_count()).back(), seconds, own.use_malloc));
    }
  }
  void judge_switched() {
    for (OwnAllocator& own : diagnosis_.own_allocators) {
      std::vector<std::string> ignored;
      if (own.use_malloc.empty() || diagnosis_.recorded == nullptr) continue;
      const auto switched = recordings_.read(own.use_malloc, ignored).attribution;
      if (switched != nullptr) set_reach(own, diagnosis_.recorded->allocating.calls, switched->allocating.calls);
    }
  }

  // What a run of the task will take.
  [[nodiscard]] double estimate(std::size_t i) const {
    if (done_[i] > 0) return elapsed_s_[i] / done_[i];
    const Task& task = tasks_[i];
    const Task plain{.variant = 0, .setting = task.setting};
    const auto known = std::ranges::find(tasks_, plain);
    const double factor = task.is_trial() ? 1 : kRecordingCost;
    if (const auto k = static_cast<std::size_t>(known - tasks_.begin()); known != tasks_.end() && done_[k] > 0)
      return factor * elapsed_s_[k] / done_[k];
    if (settings().server.used()) return factor * first_elapsed_s_;
    return factor * std::max(first_elapsed_s_, first_cpu_s_ / task.setting.width());
  }

  [[nodiscard]] std::vector<double> estimates() const {
    std::vector<double> seconds(tasks_.size());
    for (std::size_t i = 0; i < tasks_.size(); ++i) seconds[i] = estimate(i);
    return seconds;
  }
  [[nodiscard]] std::vector<unsigned> targets() const {
    const double left = settings().rounds > 0 ? -1 : std::max(0.0, begun_s_ + settings().budget_s - now_s());
    return targets_of(goals_, done_, estimates(), left);
  }
  [[nodiscard]] double seconds_left(const std::vector<unsigned>& targets) const {
    double seconds = 0;
    for (std::size_t i = 0; i < tasks_.size(); ++i) seconds += (targets[i] - std::min(targets[i], done_[i])) * estimate(i);
    return seconds;
  }

  // False: interrupted.
  bool run_rounds() {
    for (unsigned round = 0;; ++round) {
      const std::vector<std::size_t> order = order_of_round(round, targets());
      if (order.empty()) return true;
      for (const std::size_t task : order) {
        const std::vector<unsigned> wanted = targets();
        if (wanted[task] <= done_[task]) continue;  // time is running out
        const Task& what = tasks_[task];
        show(fmt::format("round {}: {}{}", round + 1, describe(experiment(), what.variant, what.setting),
                         what.recording      ? ", recorded"
                         : what.sampled      ? ", sampled"
                         : what.delay_ns > 0 ? ", calls delayed"
                                             : ""),
             seconds_left(wanted));
        if (!run_task(task)) return false;
      }
    }
  }

  // The first time by importance, so that an early end leaves the most; then the recordings, and all else by chance, so
  // that what drifts in the machine hits everybody alike.
  [[nodiscard]] std::vector<std::size_t> order_of_round(unsigned round, const std::vector<unsigned>& targets) const {
    std::vector<std::size_t> order;
    for (const Goal& goal : goals_) {
      const bool is_new = std::ranges::find(order, goal.task) == order.end();
      if (is_new && targets[goal.task] > done_[goal.task] && (round > 0 || tasks_[goal.task].is_trial()))
        order.push_back(goal.task);
    }
    if (round == 0 && !order.empty()) return order;
    const auto trials = std::ranges::stable_partition(order, [this](std::size_t i) { return !tasks_[i].is_trial(); });
    std::ranges::shuffle(trials, std::mt19937(round));
    return order;
  }

  // The machine may be busy for a moment only: a tenth of the budget goes into waiting for that, not more than a second at
  // once.
  void wait_for_others() {
    const double until = now_s() + std::min(kWaitAtOnce_s, kWaitShare * settings().budget_s - waited_s_);
    const double began = now_s();
    while (now_s() < until && !interrupted() && others_run()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    waited_s_ += now_s() - began;
  }
  // Whether a process other than this one is running now.
  [[nodiscard]] static bool others_run() {
    std::ifstream in("/proc/loadavg");
    std::string one, five, fifteen;
    unsigned running = 0;
    return in >> one >> five >> fifteen >> running && running > 1;
  }

  // False: interrupted.
  bool run_task(std::size_t index) {
    const Task& task = tasks_[index];
    if (task.is_trial()) wait_for_others();
    const bool all = task.setting == sweep_of(settings(), cpu_count()).back();
    double patience = kPatience * estimate(index) + kLeastPatience_s;
    if (settings().server.used()) patience += kReadyPatience_s;
    const double begin = now_s();
    const Variant variant = variant_of(task);
    const Run run = perform(variant, task.setting, patience, task.recording ? (all ? "all" : "alone") : "", task.sampled);
    if (run.ending == Ending::kStopped || interrupted()) return false;
    note_facts(run, task.setting);
    const std::string failure = failure_of(run, variant, patience);
    if (task.sampled) {
      ++done_[index];
      elapsed_s_[index] = now_s() - begin;
      if (failure.empty()) (all ? sampled_ : sampled_alone_) = run.code;
    } else if (task.recording) {
      ++done_[index];
      elapsed_s_[index] = now_s() - begin;
      if (failure.empty()) (all ? diagnosis_.recorded_trial : diagnosis_.recorded_alone_trial) = run.trial;
      if (!failure.empty())
        diagnosis_.notes.push_back(fmt::format("The recorded run, {}, failed: {}.", describe(task.setting), failure));
    } else if (failure.empty()) {
      keep(index, run, now_s() - begin);
    } else {
      if (task.delay_ns == 0) cell_of(task).failure = with_last_words(failure, run);
      give_up(index);
    }
    return true;
  }

  [[nodiscard]] static std::string with_last_words(const std::string& failure, const Run& run) {
    const std::string last_line = run.last_words.substr(run.last_words.rfind('\n') + 1);
    return last_line.empty() ? failure : fmt::format("{}: {}", failure, printable(last_line));
  }

  // It would fail again, perhaps by waiting for its deadline.
  void give_up(std::size_t index) {
    std::erase_if(goals_, [index](const Goal& goal) { return goal.task == index; });
  }

  [[nodiscard]] Cell& cell_of(const Task& task) {
    return *std::ranges::find_if(experiment().cells, [&task](const Cell& cell) {
      return cell.variant == task.variant && cell.setting == task.setting;
    });
  }

  [[nodiscard]] std::vector<Trial>& trials_of(const Task& task) {
    if (task.delay_ns == 0) return cell_of(task).trials;
    return std::ranges::find(experiment().delayed, 1e-9 * task.delay_ns, &freehold::doctor::Delayed::delay_s)->trials;
  }

  // A trial that others disturbed counts, but does not count as done: while there is time, it is done again.
  void keep(std::size_t index, const Run& run, double elapsed_s) {
    ++done_[index];
    elapsed_s_[index] += elapsed_s;
    if (settings().rounds == 0 && repeats_[index] < kRepeatsOfDisturbed &&
        freehold::doctor::taken_share(run.trial, tasks_[index].setting) > kDisturbed) {
      ++repeats_[index];
      for (Goal& goal : goals_)
        if (goal.task == index && !goal.essential) ++goal.runs;
    }
    trials_of(tasks_[index]).push_back(run.trial);
  }

  void note_facts(const Run& run, const Setting& setting) {
    Experiment& facts = experiment();
    facts.most_threads = std::max(facts.most_threads, run.most_threads);
    if (run.own_cpus > 0 && setting == sweep_of(settings(), cpu_count()).back()) own_cpus_.push_back(run.own_cpus);
    if (run.quota_cpus > 0 && (facts.quota_cpus == 0 || run.quota_cpus < facts.quota_cpus))
      facts.quota_cpus = run.quota_cpus;
  }

  void conclude(bool complete) {
    Experiment& facts = experiment();
    diagnosis_.signal = interrupts_.arrived();
    facts.complete = complete && std::ranges::none_of(facts.cells, [](const Cell& cell) {
                       return cell.trials.empty() && cell.failure.empty();
                     });
    if (std::ranges::none_of(facts.cells, [](const Cell& cell) { return cell.variant == 0 && !cell.trials.empty(); })) {
      if (!complete) throw Failure(128 + diagnosis_.signal, "interrupted before there was anything to tell");
      throw Failure(kExitRefused,
                    fmt::format("{} works once and then no more: {}", program_name(), facts.cells.front().failure));
    }
    std::erase_if(facts.cells, [](const Cell& cell) { return cell.trials.empty() && cell.failure.empty(); });
    std::erase_if(facts.delayed, [](const auto& of) { return of.trials.empty(); });
    facts.control = control_.control();
    if (!own_cpus_.empty()) facts.own_cpus = static_cast<unsigned>(median(own_cpus_));
    show("reading what was recorded", 0);
    Recordings::Read recorded = read_recording("all");
    diagnosis_.recorded = std::move(recorded.attribution);
    diagnosis_.profile = std::move(recorded.profile);
    diagnosis_.recorded_alone = read_recording("alone").attribution;
    if (diagnosis_.recorded != nullptr) {
      show("trying pools and heaps on what was recorded", 0);
      diagnosis_.advice = std::make_shared<const replay::Advice>(
          replay::advice_of(recorded.traces, {.repeat = kReplays}, [this] { return interrupted(); }));
    }
    compare_code();
    facts.work_grows = work_grows();
    diagnosis_.verdict = verdict_of(facts, diagnosis_.recorded.get());
    judge_switched();
    for (const OwnAllocator& own : diagnosis_.own_allocators) {
      if (own.reached.value_or(0) < 1) diagnosis_.notes.push_back(text_of(own, diagnosis_));
    }
    diagnosis_.repetitions = repetitions_of(diagnosis_, cpus_);
    progress_.wipe();
  }

  [[nodiscard]] Recordings::Read read_recording(const std::string& name) {
    const Setting setting =
        name == "all" ? sweep_of(settings(), cpu_count()).back() : sweep_of(settings(), cpu_count()).front();
    const auto task = std::ranges::find(tasks_, Task{.variant = 0, .setting = setting, .recording = true});
    if (task == tasks_.end() || done_[static_cast<std::size_t>(task - tasks_.begin())] == 0) return {};
    auto read = recordings_.read(name, diagnosis_.notes);
    if (read.attribution == nullptr)
      diagnosis_.notes.push_back(
          fmt::format("Nothing was recorded with {}: libfreehold-probe.so was not loaded, as by a static program, or found "
                      "no room for its files.",
                      describe(setting)));
    return read;
  }

  // How many times more threads there are in the last setting than in the first.
  [[nodiscard]] double growth_of_threads() {
    const std::vector<Setting> sweep = experiment().sweep();
    const auto threads = [](const Setting& setting) { return setting.threads != 0 ? setting.threads : setting.cpus; };
    return sweep.empty() ? 1 : static_cast<double>(threads(sweep.back())) / threads(sweep.front());
  }
  void compare_code() {
    auto& code = experiment().code;
    code = freehold::doctor::growth_between(sampled_alone_, sampled_, growth_of_threads());
    if (code.hottest_spin != 0) diagnosis_.spins_at = recordings_.frame_at(sampled_.maps, code.hottest_spin);
    if (code.hottest_contended != 0) diagnosis_.contended_at = recordings_.frame_at(sampled_.maps, code.hottest_contended);
  }

  // By what each thread does: its allocations, or where it has few, the instructions that its CPU time goes to. Where they
  // were not seen, the CPU time under the allocator that wastes the least is a guess.
  [[nodiscard]] bool work_grows() {
    if (settings().work != Work::kAuto) return settings().work == Work::kPerThread;
    const std::vector<Setting> sweep = experiment().sweep();
    if (settings().server.used() || sweep.size() < 2) return false;
    const double factor = growth_of_threads();
    if (diagnosis_.recorded && diagnosis_.recorded_alone) {
      const double alone = diagnosis_.recorded_alone->allocating.calls;
      if (alone >= kManyAllocations) return diagnosis_.recorded->allocating.calls / alone >= kGrowth * factor;
    }
    // On fewer CPUs a program starts no fewer threads, as a rule.
    if (settings().knob == freehold::doctor::Knob::kAffinity) return false;
    if (experiment().code.work_known) return experiment().code.work_grows;
    experiment().work_is_guessed = true;
    double least = INFINITY;
    for (std::size_t variant = 0; variant < experiment().variants.size(); ++variant) {
      const auto all = cpu_of(variant, sweep.back());
      const auto alone = cpu_of(variant, sweep.front());
      if (all && alone) least = std::min(least, *all / *alone);
    }
    return std::isfinite(least) && least * (1 - spun_share()) >= kGrowth * factor;
  }
  // Share of the CPU time that threads were seen to spin for locks of the program's: waiting is no work.
  [[nodiscard]] double spun_share() const {
    if (!diagnosis_.recorded || diagnosis_.recorded->cpu_s <= 0) return 0;
    double seconds = 0;
    for (const auto& wait : diagnosis_.recorded->lock_waits)
      if (wait.kind == freehold::doctor::WaitKind::kSpinLock) seconds += wait.seconds;
    return std::min(seconds / diagnosis_.recorded->cpu_s, 1.0);
  }
  [[nodiscard]] std::optional<double> cpu_of(std::size_t variant, const Setting& setting) {
    const Cell* cell = experiment().find(variant, setting);
    if (cell == nullptr || cell->trials.empty()) return std::nullopt;
    std::vector<double> seconds;
    for (const Trial& trial : cell->trials) seconds.push_back(trial.cpu_s());
    return median(seconds);
  }

  const Examination& asked_;
  Interrupts& interrupts_;
  Progress& progress_;
  Host host_;
  std::vector<unsigned> cpus_;
  MachineControl control_;
  Recordings recordings_;
  std::optional<Throughput> throughput_;
  Diagnosis diagnosis_;
  std::string probe_;
  std::string delay_;             // library; empty: none
  std::vector<double> own_cpus_;  // in each run on all CPUs; a short one may be seen before it confines itself
  freehold::doctor::CodeSamples sampled_, sampled_alone_;
  double begun_s_ = 0;
  double first_elapsed_s_ = 0;
  double first_cpu_s_ = 0;
  std::optional<int> expected_status_;
  std::vector<Task> tasks_;
  std::vector<Goal> goals_;
  std::vector<unsigned> done_;     // by task
  std::vector<double> elapsed_s_;  // by task, of all that were done
  std::vector<unsigned> repeats_;  // by task, because others disturbed it
  double waited_s_ = 0;            // for others to end
};

}  // namespace

Diagnosis examine(const Examination& examination, Interrupts& interrupts, Progress& progress) {
  return Examiner(examination, interrupts, progress).examine();
}

}  // namespace freehold::cli::doctor
