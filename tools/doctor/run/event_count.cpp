// SPDX-License-Identifier: MIT
#include "tools/doctor/run/event_count.hpp"

#include <linux/perf_event.h>
#include <unistd.h>

#include "freehold/os/perf_event.hpp"

namespace freehold::doctor {

EventCount::~EventCount() {
  if (fd_ >= 0) ::close(fd_);
}

void EventCount::begin(pid_t process, std::uint32_t type, std::uint64_t config) noexcept {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = type;
  attributes.config = config;
  attributes.disabled = 1;
  attributes.enable_on_exec = 1;
  attributes.inherit = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  fd_ = os::open_perf_event(attributes, process);
}

void EventCount::begin_instructions(pid_t process) noexcept {
  begin(process, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
}

std::optional<double> EventCount::read() const noexcept {
  struct {
    std::uint64_t value, enabled_ns, running_ns;
  } count{};
  if (fd_ < 0 || ::read(fd_, &count, sizeof count) != static_cast<ssize_t>(sizeof count) || count.running_ns == 0)
    return std::nullopt;
  return static_cast<double>(count.value) * static_cast<double>(count.enabled_ns) / static_cast<double>(count.running_ns);
}

}  // namespace freehold::doctor
