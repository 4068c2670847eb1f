// SPDX-License-Identifier: MIT
#include "tools/doctor/run/call_counter.hpp"

#include <linux/perf_event.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "freehold/os/perf_event.hpp"
#include "tools/live/process.hpp"

namespace freehold::doctor {
namespace {

// The kernel numbers its sources of events again at each start. 0: it has no uprobes.
unsigned uprobe_type() {
  unsigned type = 0;
  std::ifstream("/sys/bus/event_source/devices/uprobe/type") >> type;
  return type;
}

}  // namespace

CallCounter::~CallCounter() {
  for (const auto& group : events_) {
    for (const int event : group) ::close(event);
  }
}

void CallCounter::look(const std::vector<pid_t>& processes) {
  for (const pid_t process : processes) {
    for (const pid_t thread : live::threads_of(process)) {
      if (!why_.empty() || opened_ >= kMostEvents) return;
      if (!threads_.contains(thread) && open(thread)) threads_.insert(thread);
    }
  }
}

bool CallCounter::open(pid_t thread) {
  const unsigned type = uprobe_type();
  if (type == 0) why_ = "the kernel has no uprobes";
  for (std::size_t i = 0; i < groups_.size() && why_.empty(); ++i) {
    for (const FunctionPlace& function : groups_[i]) {
      perf_event_attr attributes{};
      attributes.size = sizeof attributes;
      attributes.type = type;
      attributes.uprobe_path = reinterpret_cast<std::uint64_t>(function.file.c_str());
      attributes.probe_offset = function.offset;
      const int event = os::open_perf_event(attributes, thread);
      if (event >= 0) {
        events_[i].push_back(event);
        ++opened_;
      } else if (errno == ESRCH) {
        return false;  // it has ended
      } else {
        why_ = errno == EACCES || errno == EPERM ? "the kernel does not permit it (kernel.perf_event_paranoid)"
                                                 : std::string("the kernel refuses it: ") + std::strerror(errno);
        return false;
      }
    }
  }
  return why_.empty();
}

std::vector<std::uint64_t> CallCounter::calls() const {
  std::vector<std::uint64_t> sums;
  for (const auto& group : events_) {
    std::uint64_t& sum = sums.emplace_back(0);
    for (const int event : group) {
      std::uint64_t count = 0;
      if (::read(event, &count, sizeof count) == sizeof count) sum += count;
    }
  }
  return sums;
}

}  // namespace freehold::doctor
