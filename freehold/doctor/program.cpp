#include "freehold/doctor/program.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "freehold/doctor/child.hpp"
#include "freehold/doctor/code_sampler.hpp"
#include "freehold/doctor/cpu_group.hpp"
#include "freehold/doctor/watch.hpp"

namespace freehold::doctor {
namespace {

constexpr double kFirstLook_s = 0.005;
constexpr double kLooksEvery_s = 0.05;
constexpr double kLookShare = 0.01;  // of a CPU, that looking may cost
constexpr double kGrace_s = 3;       // between SIGTERM and SIGKILL
constexpr double kGraceStopped_s = 0.3;
constexpr double kReadyEvery_s = 0.1;
constexpr double kOverslept_s = 0.5;  // a sleep longer by that was no sleep: the whole session was stopped

// CPU time that somebody had on these CPUs since boot, in steps of 10 ms.
struct Busy {
  double all_s = 0;
  double host_s = 0;  // of that, the host of this virtual machine
  friend Busy operator-(const Busy& a, const Busy& b) { return {a.all_s - b.all_s, a.host_s - b.host_s}; }
};
Busy busy_on(const std::vector<unsigned>& cpus) {
  std::ifstream in("/proc/stat");
  double ticks = 0, host_ticks = 0;
  for (std::string line; std::getline(in, line) && line.starts_with("cpu");) {
    std::istringstream words(line.substr(3));
    unsigned cpu = 0;
    if (line[3] == ' ' || !(words >> cpu) || std::ranges::find(cpus, cpu) == cpus.end()) continue;
    double user = 0, nice = 0, system = 0, idle = 0, io_wait = 0, irq = 0, soft_irq = 0, steal = 0;
    words >> user >> nice >> system >> idle >> io_wait >> irq >> soft_irq >> steal;
    ticks += user + nice + system + irq + soft_irq + steal;
    host_ticks += steal;
  }
  const auto a_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return {ticks / a_second, host_ticks / a_second};
}

// The children of this process, adopted ones included.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::ifstream in("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  for (pid_t child = 0; in >> child;) found.push_back(child);
  return found;
}

// While it lives, processes that their parents left become children of this one. At its end they are killed.
class Adoption {
 public:
  Adoption() : own_(children()) {
    ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  Adoption(const Adoption&) = delete;
  Adoption& operator=(const Adoption&) = delete;
  ~Adoption() {
    // Their own children are adopted in turn when they die.
    for (bool any = true; any;) {
      any = false;
      for (const pid_t child : children()) {
        if (std::ranges::find(own_, child) != own_.end()) continue;
        ::kill(child, SIGKILL);
        any = ::waitpid(child, nullptr, 0) == child || any;
      }
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, before_);
  }

 private:
  std::vector<pid_t> own_;
  int before_ = 0;
};

// Time that a control group's quota took, also of a program that changed its group.
class Throttling {
 public:
  Throttling() { begin(membership_of(::getpid())); }
  void look(pid_t pid) {
    const std::string membership = membership_of(pid);
    if (membership.empty() || membership == membership_) return;
    earlier_s_ += group_->throttled_s() - began_s_;
    begin(membership);
  }
  [[nodiscard]] double seconds() const { return earlier_s_ + group_->throttled_s() - began_s_; }
  [[nodiscard]] double quota_cpus() const { return group_->quota_cpus(); }

 private:
  void begin(const std::string& membership) {
    membership_ = membership;
    group_.emplace(membership);
    began_s_ = group_->throttled_s();
  }

  std::string membership_;
  std::optional<CpuGroup> group_;
  double began_s_ = 0;
  double earlier_s_ = 0;
};

// Waits for children and looks at the first of them meanwhile.
class Attendance {
 public:
  explicit Attendance(const Host& host) : host_(host) {}

  Child& start(const Command& command, const Surroundings& surroundings) {
    children_.push_back(std::make_unique<Child>(command, surroundings, host_));
    if (children_.size() == 1 && children_[0]->is_up()) {
      watch_.emplace(children_[0]->pid());
      if (command.sample_code) sampler_.emplace(children_[0]->pid());
    }
    return *children_.back();
  }
  void forget_last() { children_.pop_back(); }

  [[nodiscard]] bool stopped() const {
    pollfd file{host_.stop_fd, POLLIN, 0};
    return host_.stop_fd >= 0 && ::poll(&file, 1, 0) > 0;
  }

  // Seconds without those in which this process could not look after anything, because it was stopped itself.
  [[nodiscard]] double now() const { return now_s() - absent_s_; }
  [[nodiscard]] double absent_s() const noexcept { return absent_s_; }

  // Sleeps until something happens, `until` at the latest; attends to all children.
  void wait(double until) {
    std::vector<pollfd> files{{host_.stop_fd, POLLIN, 0}};
    bool blind = false;  // somebody's end cannot be polled
    for (const auto& child : children_) {
      if (!child->is_up()) continue;
      for (const int fd : {child->end_fd(), child->out().fd(), child->err().fd()}) files.push_back({fd, POLLIN, 0});
      blind = blind || child->end_fd() < 0;
    }
    double left = std::max(0.0, until - now());
    if (watch_) left = std::clamp(next_look_s_ - now(), 0.0, left);
    if (sampler_) left = std::min(left, CodeSampler::kLooksEvery_s);
    if (blind) left = std::min(left, 0.001);
    const timespec timeout{static_cast<time_t>(left),
                           static_cast<long>((left - static_cast<double>(static_cast<time_t>(left))) * 1e9)};
    const double before = now();
    ::ppoll(files.data(), files.size(), &timeout, nullptr);
    if (const double overslept = now() - before - left; overslept > kOverslept_s) absent_s_ += overslept;
    if (watch_ && children_[0]->is_up()) watch_->look_at_times_of_root();  // gone, once it has been waited for
    if (sampler_ && children_[0]->is_up()) sampler_->look();
    for (const auto& child : children_) child->attend();
    look();
  }

  // Ends these children, the polite way first. A host that says stop has less patience.
  void end(std::span<Child* const> ending, double grace_s) {
    const auto is_up = [](const Child* child) { return child->is_up(); };
    for (const int signal : {SIGTERM, SIGKILL}) {
      for (const Child* child : ending)
        if (child->is_up()) child->signal_group(signal);
      for (const double until = now() + grace_s; std::ranges::any_of(ending, is_up);) {
        if (signal == SIGTERM && (now() >= until || (grace_s > kGraceStopped_s && stopped()))) break;
        // Polling a host that has said stop would not sleep.
        const timespec moment{0, 1'000'000};
        if (stopped()) ::nanosleep(&moment, nullptr);
        wait(signal == SIGTERM ? until : now() + kGrace_s);
      }
    }
  }
  void end_all() {
    std::vector<Child*> all;
    for (const auto& child : children_) all.push_back(child.get());
    end(all, kGraceStopped_s);
  }

  [[nodiscard]] bool any_up() const {
    return std::ranges::any_of(children_, [](const auto& child) { return child->is_up(); });
  }
  [[nodiscard]] const std::vector<std::unique_ptr<Child>>& all() const { return children_; }

  [[nodiscard]] Watch::Times times() const { return watch_ ? watch_->times() : Watch::Times{}; }
  // What was seen of the first child.
  void report(Run& run) {
    if (sampler_) run.code = sampler_->samples();
    if (watch_) {
      run.own_cpus = watch_->own_cpus();
      run.most_threads = watch_->most_threads();
      run.files = watch_->files();
    }
    run.quota_cpus = throttling_.quota_cpus();
    run.trial.throttled_s = throttling_.seconds();
  }

 private:
  void look() {
    if (!watch_ || now() < next_look_s_ || !children_[0]->is_up()) {
      if (watch_ && !children_[0]->is_up()) next_look_s_ = now() + kLooksEvery_s;
      return;
    }
    const double begin = now();
    watch_->look();
    throttling_.look(children_[0]->pid());
    const double taken = now() - begin;
    pause_s_ = std::min(2 * pause_s_, kLooksEvery_s);
    next_look_s_ = now() + std::max(pause_s_, taken / kLookShare);
  }

  const Host& host_;
  Adoption adoption_;  // outlives the children
  Throttling throttling_;
  std::vector<std::unique_ptr<Child>> children_;
  std::optional<Watch> watch_;
  std::optional<CodeSampler> sampler_;
  double pause_s_ = kFirstLook_s;
  double absent_s_ = 0;
  double next_look_s_ = now() + kFirstLook_s;
};

bool ended_well(const Trial& trial) { return WIFEXITED(trial.wait_status) && WEXITSTATUS(trial.wait_status) == 0; }

// Sums up how copies ended and what they took.
Trial mean_of(const std::vector<std::unique_ptr<Child>>& children) {
  Trial sum;
  const double count = static_cast<double>(children.size());
  double peak = 0, faults = 0, voluntary = 0, involuntary = 0;
  for (const auto& child : children) {
    const Trial& each = child->trial();
    sum.wall_s = std::max(sum.wall_s, each.wall_s);
    sum.user_s += each.user_s / count;
    sum.system_s += each.system_s / count;
    peak += static_cast<double>(each.peak_rss_bytes) / count;
    faults += static_cast<double>(each.page_faults) / count;
    voluntary += static_cast<double>(each.voluntary_switches) / count;
    involuntary += static_cast<double>(each.involuntary_switches) / count;
    if (ended_well(sum)) sum.wait_status = each.wait_status;
  }
  sum.peak_rss_bytes = static_cast<std::uint64_t>(peak);
  sum.page_faults = static_cast<std::uint64_t>(faults);
  sum.voluntary_switches = static_cast<std::uint64_t>(voluntary);
  sum.involuntary_switches = static_cast<std::uint64_t>(involuntary);
  return sum;
}

// The last lines of what was written, whole ones.
std::string last_words_of(Child& child) {
  std::string text = child.err().text();
  if (text.size() > 2048) text.erase(0, text.find('\n', text.size() - 2048) + 1);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::vector<unsigned> cpus_of(std::span<const Surroundings> places) {
  std::vector<unsigned> cpus;
  for (const Surroundings& place : places) cpus.insert(cpus.end(), place.cpus.begin(), place.cpus.end());
  return cpus.empty() ? cpus_in_order() : cpus;
}

// The phases of a service: up, ready, loaded, ended.
class Serving {
 public:
  Serving(const Command& command, const Surroundings& surroundings, const Service& service, double deadline,
          const Host& host)
      : service_(service), deadline_(deadline), attendance_(host), program_(attendance_.start(command, surroundings)) {}

  Run run() {
    Run run;
    if (!program_.why_not().empty()) {
      run.ending = Ending::kNotStarted;
      run.why = program_.why_not();
      return run;
    }
    run.ending = get_ready();
    double load_cpu_s = 0;
    double wall_s = 0;
    if (run.ending == Ending::kEnded) run.ending = serve(run, wall_s, load_cpu_s);
    finish(run);
    run.trial.wall_s = wall_s;
    // To be taken off what others had.
    run.trial.stolen_s = attendance_.absent_s() - load_cpu_s;
    return run;
  }
  [[nodiscard]] Watch::Times times() const { return attendance_.times(); }

 private:
  // kEnded: go on.
  Ending look_around(double deadline) const {
    if (attendance_.stopped()) return Ending::kStopped;
    if (!program_.is_up()) return Ending::kEndedEarly;
    return attendance_.now() >= deadline ? Ending::kOutOfTime : Ending::kEnded;
  }

  bool says_ready() {
    if (service_.ready.empty()) return listens(program_.pid());
    Child& asked = attendance_.start(shell(service_.ready), {});
    const double until = attendance_.now() + kGrace_s;
    while (asked.is_up() && attendance_.now() < until && !attendance_.stopped()) attendance_.wait(until);
    const bool yes = !asked.is_up() && asked.why_not().empty() && ended_well(asked.trial());
    attendance_.forget_last();
    return yes;
  }

  Ending get_ready() {
    const double begin = attendance_.now();
    if (service_.load.empty()) return Ending::kEnded;
    for (;;) {
      if (const Ending ending = look_around(deadline_); ending != Ending::kEnded)
        return ending == Ending::kOutOfTime ? Ending::kNotReady : ending;
      if (service_.ready_after_s > 0) {
        if (attendance_.now() >= begin + service_.ready_after_s) return Ending::kEnded;
        attendance_.wait(begin + service_.ready_after_s);
      } else {
        if (says_ready()) return Ending::kEnded;
        const double until = attendance_.now() + kReadyEvery_s;
        while (attendance_.now() < until && look_around(until) == Ending::kEnded) attendance_.wait(until);
      }
    }
  }

  // The load, or just the time.
  Ending serve(Run& run, double& wall_s, double& load_cpu_s) {
    const double begin = attendance_.now();
    const double until = service_.seconds > 0 ? std::min(deadline_, begin + service_.seconds) : deadline_;
    Child* const load = service_.load.empty() ? nullptr : &attendance_.start(shell(service_.load), {});
    Ending ending = Ending::kEnded;
    while (ending == Ending::kEnded && (load == nullptr || load->is_up())) {
      attendance_.wait(until);
      ending = load == nullptr || load->is_up() ? look_around(until) : Ending::kEnded;
    }
    wall_s = attendance_.now() - begin;
    const bool time_is_up = ending == Ending::kOutOfTime && service_.seconds > 0 && until < deadline_;
    if (load != nullptr) {
      if (load->is_up()) attendance_.end(std::span<Child* const>(&load, 1), kGrace_s);
      run.output = load->out().text();
      load_cpu_s = load->trial().cpu_s();
      if (ending == Ending::kEnded && !ended_well(load->trial())) {
        ending = Ending::kLoadFailed;
        run.why = last_words_of(*load);
      }
    }
    return time_is_up ? Ending::kEnded : ending;
  }

  void finish(Run& run) {
    Child* const program = &program_;
    if (program_.is_up()) {
      attendance_.end(std::span<Child* const>(&program, 1), run.ending == Ending::kStopped ? kGraceStopped_s : kGrace_s);
      run.trial = program_.trial();
      // It ended because it was told to: only a crash on the way is its own.
      const int status = run.trial.wait_status;
      if (!WIFSIGNALED(status) || WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGKILL) run.trial.wait_status = 0;
    } else {
      run.trial = program_.trial();
    }
    run.last_words = last_words_of(program_);
    if (service_.load.empty()) run.output = program_.out().text();
    attendance_.report(run);
  }

  static Command shell(const std::string& text) {
    return {.file = "/bin/sh", .arguments = {"sh", "-c", text}, .keep_output = true};
  }

  const Service& service_;
  double deadline_;
  Attendance attendance_;
  Child& program_;
};

// Steps of the kernel's count of CPU time: less says nothing.
constexpr double kTick_s = 0.01;
constexpr double kSeenEnough = 0.5;  // of the CPU time: what waited meanwhile stands for the rest

// What others had of the CPUs, and of that, what the program would have had: no more than its threads waited for CPUs. They
// wait for each other, too, where there are more of them than CPUs; a CPU that it left idle was not taken from it.
void add_stolen(Run& run, const Busy& busy, double own_s, double count, const Watch::Times& seen) {
  Trial& trial = run.trial;
  const double absent_s = std::max(0.0, trial.stolen_s);
  trial.stolen_s = std::max(0.0, busy.all_s - own_s + trial.stolen_s) / count;
  trial.taken_s = trial.stolen_s <= kTick_s ? 0 : trial.stolen_s;
  const double coverage = own_s > 0 ? std::min(1.0, seen.ran_s / own_s) : 0;
  if (count == 1 && coverage >= kSeenEnough)
    trial.taken_s = std::min(trial.taken_s, absent_s + busy.host_s + seen.waited_s / coverage);
}

}  // namespace

Run run(const Command& command, const Surroundings& surroundings, double seconds, const Host& host) {
  return run_copies(command, std::span(&surroundings, 1), seconds, host);
}

Run run_copies(const Command& command, std::span<const Surroundings> places, double seconds, const Host& host) {
  Run run;
  Attendance attendance(host);
  const std::vector<unsigned> cpus = cpus_of(places);
  const Busy busy_before = busy_on(cpus);
  const double deadline = attendance.now() + seconds;
  for (const Surroundings& place : places) {
    const Child& child = attendance.start(command, place);
    if (child.why_not().empty()) continue;
    run.ending = Ending::kNotStarted;
    run.why = child.why_not();
    attendance.end_all();
    return run;
  }
  while (attendance.any_up() && run.ending == Ending::kEnded) {
    attendance.wait(deadline);
    if (!attendance.any_up()) break;
    if (attendance.stopped()) run.ending = Ending::kStopped;
    if (run.ending == Ending::kEnded && attendance.now() >= deadline) run.ending = Ending::kOutOfTime;
  }
  if (attendance.any_up()) attendance.end_all();
  const double count = static_cast<double>(places.size());
  run.trial = mean_of(attendance.all());
  attendance.report(run);
  run.trial.throttled_s /= count;
  run.trial.stolen_s = attendance.absent_s() * count;  // who was stopped took nothing, but cost the program its time
  add_stolen(run, busy_on(cpus) - busy_before, run.trial.cpu_s() * count, count, attendance.times());
  for (const auto& child : attendance.all()) {
    if (run.last_words.empty() || !ended_well(child->trial())) run.last_words = last_words_of(*child);
  }
  run.output = attendance.all().front()->out().text();
  return run;
}

Run run_service(const Command& command, const Surroundings& surroundings, const Service& service, double seconds,
                const Host& host) {
  const std::vector<unsigned> cpus = cpus_of(std::span(&surroundings, 1));
  const Busy busy_before = busy_on(cpus);
  Serving serving(command, surroundings, service, now_s() + seconds, host);
  Run run = serving.run();
  add_stolen(run, busy_on(cpus) - busy_before, run.trial.cpu_s(), 1, serving.times());
  return run;
}

std::string failure_of(const Run& run, double seconds) {
  switch (run.ending) {
    case Ending::kNotStarted: return "it could not be started: " + run.why;
    case Ending::kOutOfTime: {
      std::ostringstream text;
      text.precision(2);
      text << "no end after " << (seconds < 10 ? seconds : static_cast<double>(static_cast<long>(seconds))) << " s";
      return text.str();
    }
    case Ending::kNotReady: return "it did not become ready to serve";
    case Ending::kLoadFailed: return run.why.empty() ? "its load failed" : "its load failed: " + run.why;
    case Ending::kStopped: return "it was stopped";
    case Ending::kEnded:
    case Ending::kEndedEarly: break;
  }
  const int status = run.trial.wait_status;
  std::string text;
  if (WIFSIGNALED(status)) {
    const char* const name = ::sigabbrev_np(WTERMSIG(status));
    text = name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0) {
    text = "exit code " + std::to_string(WEXITSTATUS(status));
  }
  if (run.ending == Ending::kEndedEarly) return "it ended before its load" + (text.empty() ? text : ": " + text);
  return text;
}

std::vector<unsigned> cpus_in_order() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {};
  std::vector<std::pair<unsigned, unsigned>> ranked;  // which of its core's it is, and its number
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    std::ifstream in("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    unsigned rank = 0;
    unsigned sibling = 0;
    for (char separator = ','; in >> sibling && sibling < cpu; ++rank)
      if (!(in >> separator)) break;
    ranked.emplace_back(rank, cpu);
  }
  std::ranges::sort(ranked);
  std::vector<unsigned> cpus;
  for (const auto& [rank, cpu] : ranked) cpus.push_back(cpu);
  return cpus;
}

}  // namespace freehold::doctor
