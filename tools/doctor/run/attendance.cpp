// SPDX-License-Identifier: MIT
#include "tools/doctor/run/attendance.hpp"
#include "tools/live/process.hpp"

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

namespace freehold::doctor {
namespace {

constexpr double kBusyLook_s = 0.1;
constexpr double kBusyShare = 0.3;  // share of the CPUs: what wakes for a moment takes less
constexpr double kFirstLook_s = 0.005;
constexpr double kLooksEvery_s = 0.05;
constexpr double kLookShare = 0.01;   // share of a CPU, that looking may cost
constexpr double kOverslept_s = 0.5;  // a sleep longer by that was no sleep: the whole session was stopped
constexpr double kParting_s = 0.05;   // in which what a program's end takes along may end, too
constexpr double kSeenEnough = 0.5;   // of the CPU time: the waits seen in it stand for the rest

// The children of this process, adopted ones included.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::ifstream in("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  for (pid_t child = 0; in >> child;) found.push_back(child);
  return found;
}

std::uint64_t own_peak_rss_bytes() {
  struct rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

// Returns whether a child that is still to be waited for has ended.
bool has_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

}  // namespace

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

bool is_machine_busy(const std::vector<unsigned>& cpus) {
  const double begin = now_s();
  const Busy before = busy_on(cpus);
  ::usleep(static_cast<useconds_t>(1e6 * kBusyLook_s));
  return (busy_on(cpus) - before).all_s > kBusyShare * (now_s() - begin) * static_cast<double>(cpus.size());
}

bool ended_well(const Trial& trial) { return WIFEXITED(trial.wait_status) && WEXITSTATUS(trial.wait_status) == 0; }

std::string last_words_of(Child& child) {
  std::string text = child.err().text();
  if (text.size() > 2048) text.erase(0, text.find('\n', text.size() - 2048) + 1);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::vector<unsigned> cpus_of(std::span<const LaunchOptions> copies) {
  std::vector<unsigned> cpus;
  for (const LaunchOptions& each : copies) cpus.insert(cpus.end(), each.cpus.begin(), each.cpus.end());
  return cpus.empty() ? cpus_in_order() : cpus;
}

Suspension::Suspension() {
  sigset_t blocked;
  ::sigprocmask(SIG_BLOCK, nullptr, &blocked);
  if (::sigismember(&blocked, SIGTSTP) == 1) return;
  ::sigemptyset(&signal_);
  ::sigaddset(&signal_, SIGTSTP);
  fd_ = ::signalfd(-1, &signal_, SFD_CLOEXEC);
  if (fd_ >= 0) ::sigprocmask(SIG_BLOCK, &signal_, nullptr);
}
Suspension::~Suspension() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::sigprocmask(SIG_UNBLOCK, &signal_, nullptr);
}
void Suspension::stop() {
  ::sigprocmask(SIG_UNBLOCK, &signal_, nullptr);  // it stops here
  ::sigprocmask(SIG_BLOCK, &signal_, nullptr);
}

Adoption::Adoption() : own_(children()) {
  ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}
Adoption::~Adoption() {
  // Their own children are adopted in turn when they die.
  for (bool any = true; any;) {
    any = false;
    for (const pid_t child : new_children()) {
      ::kill(child, SIGKILL);
      any = ::waitpid(child, nullptr, 0) == child || any;
    }
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, before_);
}
std::vector<pid_t> Adoption::new_children() const {
  std::vector<pid_t> found = children();
  std::erase_if(found, [this](pid_t child) { return std::ranges::find(own_, child) != own_.end(); });
  return found;
}

Throttling::Throttling(const std::string& membership, std::filesystem::path root) : root_(std::move(root)) {
  begin(membership);
}
void Throttling::look(const std::string& membership) {
  if (membership.empty() || membership == membership_) return;
  earlier_s_ += group_->throttled_s() - began_s_;
  begin(membership);
}
void Throttling::begin(const std::string& membership) {
  membership_ = membership;
  group_.emplace(membership, root_);
  began_s_ = group_->throttled_s();
}

Attendance::Attendance(const Host& host)
    : host_(host), throttling_(membership_of(::getpid())), pause_s_(kFirstLook_s), next_look_s_(now_s() + kFirstLook_s) {}

Child& Attendance::start(const Command& command, const LaunchOptions& options) {
  // The kernel's first event of a thread waits for kernel threads, which those of a program with real-time priority starve.
  if (command.sample_code && children_.empty()) first_event_.begin(0, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
  children_.push_back(std::make_unique<Child>(command, options, host_));
  if (children_.back()->is_up()) started_.push_back(children_.back()->pid());
  if (children_.size() == 1 && children_[0]->is_up()) {
    watch_.emplace(children_[0]->pid());
    if (!command.before_others) courtesy_.emplace();
    if (command.real_time) {
      real_time_.emplace(children_[0]->pid());
      look_at_priorities();
    }
    if (command.sample_code) sampler_.emplace(children_[0]->pid());
    if (command.watch_memory) memory_.emplace(children_[0]->pid(), command.look);
  }
  return *children_.back();
}

bool Attendance::stopped() const {
  pollfd file{host_.stop_fd, POLLIN, 0};
  return host_.stop_fd >= 0 && ::poll(&file, 1, 0) > 0;
}

void Attendance::wait(double until) {
  std::vector<pollfd> files{{host_.stop_fd, POLLIN, 0}, {suspension_.fd(), POLLIN, 0}};
  bool blind = false;  // somebody's end cannot be polled
  for (const auto& child : children_) {
    if (!child->is_up()) continue;
    for (const int fd : {child->end_fd(), child->out().fd(), child->err().fd()}) files.push_back({fd, POLLIN, 0});
    blind = blind || child->end_fd() < 0;
  }
  double left = std::max(0.0, until - now());
  if (watch_) left = std::clamp(next_look_s_ - now(), 0.0, left);
  left = std::min(left, std::max(0.0, next_real_time_s_ - now_s()));
  if (sampler_) left = std::min(left, CodeSampler::kLooksEvery_s);
  if (memory_ && children_[0]->is_up()) left = std::min(left, std::max(0.0, memory_->next_s() - now_s()));
  if (blind) left = std::min(left, 0.001);
  const timespec timeout{static_cast<time_t>(left),
                         static_cast<long>((left - static_cast<double>(static_cast<time_t>(left))) * 1e9)};
  const double before = now();
  ::ppoll(files.data(), files.size(), &timeout, nullptr);
  if (const double overslept = now() - before - left; overslept > kOverslept_s) absent_s_ += overslept;
  if (files[1].revents != 0) stop_with_children();
  if (watch_ && children_[0]->is_up()) watch_->look_at_times_of_root();  // gone, once it has been waited for
  if (now_s() >= next_real_time_s_) look_at_priorities();
  if (sampler_ && children_[0]->is_up()) sampler_->look();
  if (memory_ && children_[0]->is_up()) memory_->look(adopted());
  if (memory_ && !is_ending_ && children_[0]->is_up() && has_ended(children_[0]->pid())) left_processes_ = left_processes();
  if (real_time_ && children_[0]->is_up() && has_ended(children_[0]->pid())) {
    // The kernel spins in wait4() until a thread that ends has removed its own entry in /proc, and this one would keep that
    // thread from its CPU.
    real_time_.reset();
    next_real_time_s_ = HUGE_VAL;
  }
  for (const auto& child : children_) child->attend();
  look();
}

void Attendance::end(std::span<Child* const> ending, double grace_s) {
  is_ending_ = is_ending_ || std::ranges::find(ending, children_[0].get()) != ending.end();
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
void Attendance::end_all() {
  std::vector<Child*> all;
  for (const auto& child : children_) all.push_back(child.get());
  end(all, kGraceStopped_s);
}

bool Attendance::any_up() const {
  return std::ranges::any_of(children_, [](const auto& child) { return child->is_up(); });
}

void Attendance::report(Run& run) {
  if (sampler_) run.code = sampler_->samples();
  if (memory_) {
    run.memory = memory_->snapshots();
    run.hidden_share = memory_->hidden_share();
    run.hidden_child_share = memory_->hidden_child_share();
    run.left_processes = left_processes_;
  }
  if (watch_) {
    if (const unsigned cpus = watch_->own_cpus(); cpus > 0) run.trial.own_cpus = cpus;
    run.most_threads = watch_->most_threads();
    run.files = watch_->files();
    if (children_.size() == 1) run.trial.ready_share = watch_->ready_share();
    run.trial.apart_share = watch_->apart_share();
    // A process begins with what its parent holds, and the kernel counts that in its peak. Below this one's own, looks say
    // it.
    if (run.trial.peak_rss_bytes <= own_peak_rss_bytes() && watch_->peak_rss_bytes() > 0)
      run.trial.peak_rss_bytes = watch_->peak_rss_bytes();
  }
  run.quota_cpus = throttling_.quota_cpus();
  run.trial.throttled_s = throttling_.seconds();
}

void Attendance::look() {
  if (!watch_ || now() < next_look_s_ || !children_[0]->is_up()) {
    if (watch_ && !children_[0]->is_up()) next_look_s_ = now() + kLooksEvery_s;
    return;
  }
  const double begin = now();
  watch_->look();
  if (courtesy_) {
    std::vector<pid_t> roots;
    for (const auto& child : children_)
      if (child->is_up()) roots.push_back(child->pid());
    courtesy_->look(roots);
  }
  throttling_.look(membership_of(children_[0]->pid()));
  const double taken = now() - begin;
  pause_s_ = std::min(2 * pause_s_, kLooksEvery_s);
  next_look_s_ = now() + std::max(pause_s_, taken / kLookShare);
}

void Attendance::look_at_priorities() {
  const double begin = now_s();
  if (children_[0]->is_up()) real_time_->look();
  next_real_time_s_ = now_s() + std::max(RealTime::kLooksEvery_s, (now_s() - begin) / kLookShare);
}

void Attendance::stop_with_children() {
  const double begin = now_s();
  const auto signal_all = [this](int signal) {
    for (const auto& child : children_)
      if (child->is_up()) child->signal_group(signal);
  };
  signal_all(SIGSTOP);
  suspension_.stop();
  signal_all(SIGCONT);
  absent_s_ += now_s() - begin;
}

std::vector<pid_t> Attendance::adopted() const {
  std::vector<pid_t> found = adoption_.new_children();
  std::erase_if(found, [this](pid_t child) {
    // The group of each child has its number. The load's descendants are nothing of the program's.
    const auto is_of = [&](pid_t started) {
      return child == started || (started != started_[0] && (::getpgid(child) == started || ::getsid(child) == started));
    };
    return std::ranges::any_of(started_, is_of);
  });
  return found;
}

unsigned Attendance::left_processes() const {
  const auto runs = [](pid_t pid) { return !live::maps_of(pid).empty(); };  // as against one that was never waited for
  unsigned left = 0;
  // Some were told to end just before.
  for (const double until = now_s() + kParting_s;;) {
    left = static_cast<unsigned>(std::ranges::count_if(adopted(), runs));
    if (left == 0 || now_s() >= until) return left;
    const timespec moment{0, 5'000'000};
    ::nanosleep(&moment, nullptr);
  }
}

void add_stolen(Run& run, const Busy& busy, double own_s, double count, const Watch::Times& seen) {
  constexpr double kBetweenLooks = 0.1;  // share of the time: a program may be ready for so much more than looks found
  Trial& trial = run.trial;
  const double absent_s = std::max(0.0, trial.stolen_s);
  trial.stolen_s = std::max(0.0, busy.all_s - own_s + trial.stolen_s) / count;
  trial.taken_s = trial.stolen_s <= kTick_s ? 0 : trial.stolen_s;
  const double coverage = own_s > 0 ? std::min(1.0, seen.ran_s * count / own_s) : 0;
  if (coverage >= kSeenEnough) trial.run_delay_s = seen.waited_s / coverage;
  if (count == 1 && coverage >= kSeenEnough)
    trial.taken_s = std::min(trial.taken_s, absent_s + busy.host_s + seen.waited_s / coverage);
  else if (trial.ready_share)
    trial.taken_s = std::min({trial.taken_s, absent_s + std::min(1.0, *trial.ready_share + kBetweenLooks) * trial.stolen_s,
                              absent_s + std::max(0.0, (seen.ready + kBetweenLooks) * trial.wall_s - own_s)});
  // Threads that the quota holds back are ready to run as well. Others did not take CPU time that it would not have allowed.
  if (run.quota_cpus > 0)
    trial.taken_s = std::min(trial.taken_s, std::max(0.0, run.quota_cpus * trial.wall_s - own_s) / count);
}

void hold_taken_to(Trial& trial, unsigned width) {
  const unsigned most = std::min(width, trial.own_cpus.value_or(width));
  trial.taken_s = std::min(trial.taken_s, std::max(0.0, most * trial.wall_s - trial.cpu_s()));
}

}  // namespace freehold::doctor
