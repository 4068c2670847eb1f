// SPDX-License-Identifier: MIT
#include "freehold/os/cpu.hpp"

#include <algorithm>
#include <bit>

#include "freehold/os/cgroup_files.hpp"
#include "freehold/os/system_call.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace freehold::os {
namespace {

unsigned cpus_of(std::uint64_t quota, std::uint64_t period) noexcept {
  return period == 0 ? 0 : static_cast<unsigned>((quota + period - 1) / period);
}

// The group's own quota; 0: none.
unsigned quota_of(Path& folder, bool is_second_version) noexcept {
  std::uint64_t quota = 0, period = 0;
  if (!is_second_version)
    return number_in_file(folder, "/cpu.cfs_quota_us", quota) && number_in_file(folder, "/cpu.cfs_period_us", period)
               ? cpus_of(quota, period)
               : 0;
  const std::size_t length = folder.length();
  NumberLines lines(folder.add("/cpu.max").text());
  folder.cut(length);
  const char* line = lines.next();
  return line != nullptr && read_number(line, quota) && read_number(line, period) ? cpus_of(quota, period) : 0;
}

// Counts the affinity mask's CPUs; 0: the system does not tell. A separate function: the mask does not stay on the stack.
[[gnu::noinline]] unsigned cpus_of_mask() noexcept {
  unsigned long mask[8192 / (8 * sizeof(unsigned long))];  // the kernel's greatest number of CPUs
  const long bytes = system_call(SYS_sched_getaffinity, 0, sizeof mask, &mask[0]);
  unsigned cpus = 0;
  for (long i = 0; i < bytes / static_cast<long>(sizeof mask[0]); ++i) cpus += static_cast<unsigned>(std::popcount(mask[i]));
  return cpus;
}

}  // namespace

unsigned cgroup_quota_cpus(const char* cgroup_root, const char* self_cgroup) noexcept {
  unsigned least = 0;
  for_each_cgroup(cgroup_root, self_cgroup, "cpu", [&](Path& folder, bool is_second_version) {
    const unsigned cpus = quota_of(folder, is_second_version);
    if (cpus != 0 && (least == 0 || cpus < least)) least = cpus;
  });
  return least;
}

CpuCount usable_cpus() noexcept {
  CpuCount count;
  count.cpus = std::max(cpus_of_mask(), 1U);
  if (const unsigned quota = cgroup_quota_cpus("/sys/fs/cgroup", "/proc/self/cgroup"); quota != 0 && quota < count.cpus)
    count = {quota, "cgroup"};
  return count;
}

unsigned possible_cpus(const char* list) noexcept {
  FileLines<1, 64> text(list);
  unsigned highest = 0, number = 0;
  bool any = false;
  for (char c = 0; text.read_char(c);) {
    const bool is_digit = c >= '0' && c <= '9';
    number = is_digit ? number * 10 + static_cast<unsigned>(c - '0') : 0;
    highest = std::max(highest, number);
    any |= is_digit;
  }
  return any ? highest + 1 : 0;
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
