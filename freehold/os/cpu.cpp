// SPDX-License-Identifier: MIT
#include "freehold/os/cpu.hpp"

#include <sched.h>
#include <unistd.h>

#include "freehold/os/cgroup_files.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace freehold::os {
namespace {

unsigned cpus_of(std::uint64_t quota, std::uint64_t period) noexcept {
  return period == 0 ? 0 : static_cast<unsigned>((quota + period - 1) / period);
}

// The group's own quota; 0: none.
unsigned quota_of(const char* folder, bool is_second_version) noexcept {
  std::uint64_t quota = 0, period = 0;
  if (!is_second_version)
    return number_in_file(folder, "/cpu.cfs_quota_us", quota) && number_in_file(folder, "/cpu.cfs_period_us", period)
               ? cpus_of(quota, period)
               : 0;
  Path path(folder);
  const SmallFile content(path.add("/cpu.max").text());
  const char* s = content.text;
  return read_number(s, quota) && read_number(s, period) ? cpus_of(quota, period) : 0;
}

}  // namespace

unsigned cgroup_quota_cpus(const char* cgroup_root, const char* self_cgroup) noexcept {
  unsigned least = 0;
  for_each_cgroup(cgroup_root, self_cgroup, "cpu", [&](const char* folder, bool is_second_version) {
    const unsigned cpus = quota_of(folder, is_second_version);
    if (cpus != 0 && (least == 0 || cpus < least)) least = cpus;
  });
  return least;
}

CpuCount usable_cpus() noexcept {
  CpuCount count;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0)
    count.cpus = static_cast<unsigned>(CPU_COUNT(&mask));
  else if (const long online = ::sysconf(_SC_NPROCESSORS_ONLN); online > 0)  // more CPUs than cpu_set_t holds
    count.cpus = static_cast<unsigned>(online);
  if (const unsigned quota = cgroup_quota_cpus("/sys/fs/cgroup", "/proc/self/cgroup"); quota != 0 && quota < count.cpus)
    count = {quota, "cgroup"};
  return count;
}

unsigned possible_cpus(const char* list) noexcept {
  const SmallFile file(list);
  std::uint64_t highest = 0;
  bool any = false;
  for (const char* s = file.text; *s != '\0'; ++s) {
    std::uint64_t number = 0;
    if (!read_number(s, number)) continue;
    highest = number > highest ? number : highest;
    any = true;
    if (*s == '\0') break;
  }
  return any ? static_cast<unsigned>(highest) + 1 : 0;
}

bool has_avx2() noexcept {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0) return false;
  unsigned low = 0, high = 0;
  asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));  // does the system save the SSE and AVX state?
  if ((low & 6) != 6) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_AVX2) != 0;
#else
  return false;
#endif
}

}  // namespace freehold::os
