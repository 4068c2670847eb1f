// SPDX-License-Identifier: MIT
#include "freehold/doctor/run/precedence.hpp"

#include <sys/resource.h>

#include <fstream>

namespace freehold::doctor {
namespace {

constexpr int kFirst = -20;
constexpr const char* kAutogroup = "/proc/self/autogroup";

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

}  // namespace

bool Precedence::take() {
  if (tried_) return taken_;
  tried_ = true;
  nice_before_ = ::getpriority(PRIO_PROCESS, 0);
  taken_ = ::setpriority(PRIO_PROCESS, 0, kFirst) == 0;
  const std::string group = taken_ ? group_nice() : "";
  if (!group.empty() && set_group_nice(std::to_string(kFirst))) group_nice_before_ = group;
  return taken_;
}

Precedence::~Precedence() {
  if (!taken_) return;
  ::setpriority(PRIO_PROCESS, 0, nice_before_);
  if (!group_nice_before_.empty()) set_group_nice(group_nice_before_);
}

}  // namespace freehold::doctor
