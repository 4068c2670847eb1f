// SPDX-License-Identifier: MIT
#include "tools/doctor/run/precedence.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "tools/doctor/run/child.hpp"
#include "tools/doctor/run/cpu_group.hpp"
#include "tools/live/proc_folder.hpp"
#include "tools/live/process.hpp"

namespace freehold::doctor {
namespace {

constexpr double kWeight = 0.81;        // of an ordinary thread on each CPU: others keep 5/9, or more
constexpr double kWeightOfStep = 1.25;  // how many times the weight one nice value less has
constexpr int kNiceSteps = 19;
constexpr const char* kAutogroup = "/proc/self/autogroup";
constexpr int kPriority = 1;  // among real-time threads: the lowest
constexpr int kOwnPriority = 2;
// A process that the program starts is ordinary until the next look, and for ever if none follows.
constexpr int kRealTime = SCHED_RR | SCHED_RESET_ON_FORK;

// "/autogroup-17 nice 0"; empty where the kernel has no such groups.
std::string group_nice() {
  std::ifstream in(kAutogroup);
  std::string name, word, nice;
  in >> name >> word >> nice;
  return nice;
}
bool set_group_nice(const std::string& nice) {
  std::ofstream out(kAutogroup);
  return bool(out << nice << std::flush);
}

// Ctrl-Z, fg and bg are told to the whole process group, so to this process, too. Pre: all signals are blocked.
[[noreturn]] void keep_group(pid_t parent, const std::string& nice_before, const sigset_t& all) {
  ::prctl(PR_SET_PDEATHSIG, SIGUSR1);
  ::close_range(0, ~0U, 0);
  while (::getppid() == parent) {
    int signal = 0;
    ::sigwait(&all, &signal);
    if (signal == SIGTSTP) set_group_nice(nice_before);
    if (signal == SIGCONT) set_group_nice(std::to_string(kNiceBeforeOthers));
  }
  set_group_nice(nice_before);
  ::_exit(0);
}

bool set_policy(pid_t thread, int policy, int priority) {
  const sched_param param{priority};
  return ::sched_setscheduler(thread, policy, &param) == 0;
}

// Not as sleeping_call_of() says it: of a thread that spins in wait4() the kernel answers that when it has left its CPU.
bool is_ready(pid_t pid, pid_t thread) {
  const auto fields = live::stat_fields(live::proc_folder(pid) / "task" / std::to_string(thread));
  return !fields.empty() && fields[live::StatField::kState] == "R";
}

// Freehold's own thread sleeps, and would take the priority from the program that another malloc leaves it.
bool is_purger(pid_t thread) { return live::short_name_of(thread) == "freehold-purge"; }

}  // namespace

bool others_run() {
  std::ifstream in("/proc/loadavg");
  std::string one, five, fifteen;
  unsigned running = 0;
  return in >> one >> five >> fifteen >> running && running > 1;
}

int Courtesy::nice_for(unsigned ready, unsigned cpus) noexcept {
  double weight = static_cast<double>(ready) / std::max(1U, cpus);  // on each CPU, of one ordinary thread
  int nice = 0;
  for (; weight > kWeight && nice < kNiceSteps; ++nice) weight /= kWeightOfStep;
  return nice;
}

void Courtesy::look(std::span<const pid_t> roots) {
  std::vector<pid_t> threads;
  unsigned ready = 0;
  cpu_set_t usable;
  CPU_ZERO(&usable);
  for (const pid_t root : roots)
    for (const pid_t pid : live::family_of(root))
      for (const pid_t thread : live::threads_of(pid)) {
        threads.push_back(thread);
        cpu_set_t cpus;
        if (!is_ready(pid, thread) || ::sched_getaffinity(thread, sizeof cpus, &cpus) != 0) continue;
        CPU_OR(&usable, &usable, &cpus);
        ++ready;
      }
  most_ = std::max(most_, nice_for(ready, static_cast<unsigned>(CPU_COUNT(&usable))));
  const int nice = ::getpriority(PRIO_PROCESS, 0) + most_;
  for (const pid_t thread : threads)
    if (const auto id = static_cast<id_t>(thread); ::getpriority(PRIO_PROCESS, id) < nice)
      ::setpriority(PRIO_PROCESS, id, nice);
}

bool Precedence::take() {
  if (tried_) return taken_;
  tried_ = true;
  nice_before_ = ::getpriority(PRIO_PROCESS, 0);
  taken_ = ::setpriority(PRIO_PROCESS, 0, kNiceBeforeOthers) == 0;
  // A session's weight says nothing of a member of a control group: it would only let others of the session go before it.
  const bool has_session_weight = taken_ && !CpuGroup(membership_of(::getpid())).is_weighed();
  const std::string group = has_session_weight ? group_nice() : "", ours = std::to_string(kNiceBeforeOthers);
  // If it is taken already, by another examination in the session, that one gives it back.
  if (!group.empty() && group != ours && set_group_nice(ours)) {
    group_nice_before_ = group;
    const pid_t parent = ::getpid();
    sigset_t all, before;
    ::sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, &before);
    keeper_ = ::fork();
    if (keeper_ == 0) keep_group(parent, group, all);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
  }
  return taken_;
}

Precedence::~Precedence() {
  if (!taken_) return;
  ::setpriority(PRIO_PROCESS, 0, nice_before_);
  if (keeper_ > 0 && ::kill(keeper_, SIGKILL) == 0) ::waitpid(keeper_, nullptr, 0);
  if (!group_nice_before_.empty()) set_group_nice(group_nice_before_);
}

RealTime::RealTime(pid_t root) : root_(root), others_had_turn_s_(now_s()) {
  is_left_alone_ = !set_policy(0, SCHED_FIFO | SCHED_RESET_ON_FORK, kOwnPriority);
}

RealTime::~RealTime() {
  // To clear the flag takes CAP_SYS_NICE, not only a limit (RLIMIT_RTPRIO) that allows the priority.
  if (!set_policy(0, SCHED_OTHER, 0)) set_policy(0, SCHED_OTHER | SCHED_RESET_ON_FORK, 0);
}

void RealTime::look() {
  if (is_left_alone_) return;
  std::vector<pid_t> own, real_time;  // the program's first process's threads, and those of them with the priority
  cpu_set_t usable;
  CPU_ZERO(&usable);
  std::size_t at_once = 0;  // without first threads that sleep: most of them only wait for the others
  const std::vector<pid_t> family = live::family_of(root_);
  for (const pid_t pid : family)
    for (const pid_t id : live::threads_of(pid)) {
      cpu_set_t cpus;
      sched_param param{};
      const int policy = ::sched_getscheduler(id);
      if (policy < 0 || ::sched_getaffinity(id, sizeof cpus, &cpus) != 0 || ::sched_getparam(id, &param) != 0) continue;
      CPU_OR(&usable, &usable, &cpus);
      at_once += (id == pid ? is_ready(pid, pid) : !is_purger(id)) ? 1 : 0;
      if (policy == kRealTime && param.sched_priority == kPriority) {
        real_time.push_back(id);
      } else {
        const int nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(id));
        is_left_alone_ =
            is_left_alone_ || (policy & ~SCHED_RESET_ON_FORK) != SCHED_OTHER || (nice != 0 && nice != kNiceBeforeOthers);
        if (!is_left_alone_ && nice == 0) ::setpriority(PRIO_PROCESS, static_cast<id_t>(id), kNiceBeforeOthers);
        if (pid == root_) own.push_back(id);
      }
    }
  const bool is_others_turn = now_s() >= others_had_turn_s_ + kOthersTurnEvery_s;
  if (is_others_turn) others_had_turn_s_ = now_s();
  if (!is_left_alone_ && !is_others_turn && family.size() == 1 && at_once <= static_cast<std::size_t>(CPU_COUNT(&usable))) {
    for (const pid_t id : own) set_policy(id, kRealTime, kPriority);
    return;
  }
  for (const pid_t id : real_time) set_policy(id, SCHED_OTHER, 0);  // at the nice value that it has
}

}  // namespace freehold::doctor
