// SPDX-License-Identifier: MIT
#include "freehold/doctor/run/precedence.hpp"

#include <sched.h>
#include <sys/resource.h>

#include <fstream>
#include <vector>

#include "freehold/live/process.hpp"

namespace freehold::doctor {
namespace {

constexpr const char* kAutogroup = "/proc/self/autogroup";
constexpr int kPriority = 1;  // among real-time threads: the lowest
constexpr int kOwnPriority = 2;

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

bool set_policy(pid_t thread, int policy, int priority) {
  const sched_param param{priority};
  return ::sched_setscheduler(thread, policy, &param) == 0;
}

struct Thread {
  pid_t id;
  int policy;
};

}  // namespace

bool Precedence::take() {
  if (tried_) return taken_;
  tried_ = true;
  nice_before_ = ::getpriority(PRIO_PROCESS, 0);
  taken_ = ::setpriority(PRIO_PROCESS, 0, kNiceBeforeOthers) == 0;
  const std::string group = taken_ ? group_nice() : "";
  if (!group.empty() && set_group_nice(std::to_string(kNiceBeforeOthers))) group_nice_before_ = group;
  return taken_;
}

Precedence::~Precedence() {
  if (!taken_) return;
  ::setpriority(PRIO_PROCESS, 0, nice_before_);
  if (!group_nice_before_.empty()) set_group_nice(group_nice_before_);
}

RealTime::RealTime(pid_t root) : root_(root) {
  is_left_alone_ = !set_policy(0, SCHED_FIFO | SCHED_RESET_ON_FORK, kOwnPriority);
}

RealTime::~RealTime() { set_policy(0, SCHED_OTHER, 0); }

void RealTime::look() {
  if (is_left_alone_) return;
  std::vector<Thread> threads;
  cpu_set_t usable;
  CPU_ZERO(&usable);
  std::size_t at_once = 0;  // without first threads that sleep: most of them only wait for the others
  for (const pid_t pid : live::family_of(root_))
    for (const pid_t id : live::threads_of(pid)) {
      cpu_set_t cpus;
      const int policy = ::sched_getscheduler(id);
      if (policy < 0 || ::sched_getaffinity(id, sizeof cpus, &cpus) != 0) continue;
      is_left_alone_ = is_left_alone_ || (policy != SCHED_OTHER && policy != SCHED_RR);
      CPU_OR(&usable, &usable, &cpus);
      threads.push_back({id, policy});
      at_once += id != pid || live::sleeping_call_of(pid, id) == "running" ? 1 : 0;
    }
  const bool fits = !is_left_alone_ && at_once <= static_cast<std::size_t>(CPU_COUNT(&usable));
  for (const Thread& thread : threads)
    if (fits != (thread.policy == SCHED_RR))
      fits ? set_policy(thread.id, SCHED_RR, kPriority) : set_policy(thread.id, SCHED_OTHER, 0);
}

}  // namespace freehold::doctor
