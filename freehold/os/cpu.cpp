// SPDX-License-Identifier: MIT
#include "freehold/os/cpu.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <initializer_list>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace freehold::os {
namespace {

// A small file's text in a fixed buffer; stdio may allocate. Empty if it cannot be read. /proc/self/cgroup has a line for
// each of a dozen hierarchies of version 1, each with a path of up to 150 characters under Kubernetes.
struct SmallFile {
  char text[4096];

  explicit SmallFile(const char* path) noexcept {
    std::size_t n = 0;
    if (const int fd = ::open(path, O_RDONLY | O_CLOEXEC); fd >= 0) {
      for (ssize_t got = 1; got > 0 && n < sizeof text - 1; n += got > 0 ? static_cast<std::size_t>(got) : 0)
        got = ::read(fd, text + n, sizeof text - 1 - n);
      ::close(fd);
    }
    text[n] = '\0';
  }
};

class Path {
 public:
  explicit Path(const char* s) noexcept { add(s, std::strlen(s)); }
  Path& add(const char* s, std::size_t n) noexcept {
    if (length_ + n < sizeof text_) {
      std::memcpy(text_ + length_, s, n);
      length_ += n;
    }
    text_[length_] = '\0';
    return *this;
  }
  Path& add(const char* s) noexcept { return add(s, std::strlen(s)); }
  // Cuts the last component off; false if there is none below `root_length`.
  bool up(std::size_t root_length) noexcept {
    while (length_ > root_length && text_[length_ - 1] != '/') --length_;
    if (length_ <= root_length) return false;
    text_[--length_] = '\0';
    return true;
  }
  [[nodiscard]] const char* text() const noexcept { return text_; }
  [[nodiscard]] std::size_t length() const noexcept { return length_; }

 private:
  char text_[512];
  std::size_t length_ = 0;
};

bool read_number(const char*& s, std::uint64_t& out) noexcept {
  while (*s == ' ') ++s;
  if (*s < '0' || *s > '9') return false;
  for (out = 0; *s >= '0' && *s <= '9'; ++s) out = out * 10 + static_cast<std::uint64_t>(*s - '0');
  return true;
}

unsigned cpus_of(std::uint64_t quota, std::uint64_t period) noexcept {
  return period == 0 ? 0 : static_cast<unsigned>((quota + period - 1) / period);
}

// The smallest quota of a version 2 cgroup and its ancestors.
unsigned quota_v2(const char* root, const char* group, std::size_t group_length) noexcept {
  Path path(root);
  const std::size_t root_length = path.length();
  if (group_length > 1) path.add(group, group_length);
  unsigned least = 0;
  do {
    Path file(path.text());
    const SmallFile content(file.add("/cpu.max").text());
    const char* s = content.text;
    std::uint64_t quota = 0, period = 0;
    if (read_number(s, quota) && read_number(s, period)) {
      const unsigned cpus = cpus_of(quota, period);
      if (cpus != 0 && (least == 0 || cpus < least)) least = cpus;
    }
  } while (path.up(root_length));
  return least;
}

unsigned quota_v1(const char* root, const char* group, std::size_t group_length) noexcept {
  for (const bool own : {true, false}) {  // inside a container the own group is mounted as the root
    Path path(root);
    path.add("/cpu");
    if (own) path.add(group, group_length);
    Path quota_file(path.text()), period_file(path.text());
    const SmallFile quota_text(quota_file.add("/cpu.cfs_quota_us").text());
    const SmallFile period_text(period_file.add("/cpu.cfs_period_us").text());
    const char* q = quota_text.text;
    const char* p = period_text.text;
    std::uint64_t quota = 0, period = 0;
    if (read_number(q, quota) && read_number(p, period)) return cpus_of(quota, period);
  }
  return 0;
}

// Whether the comma-separated list has the controller "cpu".
bool has_cpu(const char* list, std::size_t length) noexcept {
  const char* const end = list + length;
  while (list < end) {
    const auto* comma = static_cast<const char*>(std::memchr(list, ',', static_cast<std::size_t>(end - list)));
    const char* const stop = comma == nullptr ? end : comma;
    if (stop - list == 3 && std::memcmp(list, "cpu", 3) == 0) return true;
    list = stop + 1;
  }
  return false;
}

}  // namespace

unsigned cgroup_quota_cpus(const char* cgroup_root, const char* self_cgroup) noexcept {
  const SmallFile groups(self_cgroup);
  for (const char* line = groups.text; *line != '\0';) {
    const char* end = std::strchr(line, '\n');
    if (end == nullptr) end = line + std::strlen(line);
    // hierarchy:controllers:path
    const char* controllers = static_cast<const char*>(std::memchr(line, ':', static_cast<std::size_t>(end - line)));
    const char* path =
        controllers == nullptr
            ? nullptr
            : static_cast<const char*>(std::memchr(controllers + 1, ':', static_cast<std::size_t>(end - controllers - 1)));
    if (path != nullptr) {
      const std::size_t controllers_length = static_cast<std::size_t>(path - controllers - 1);
      const std::size_t path_length = static_cast<std::size_t>(end - path - 1);
      if (controllers_length == 0) {
        if (const unsigned cpus = quota_v2(cgroup_root, path + 1, path_length); cpus != 0) return cpus;
      } else if (has_cpu(controllers + 1, controllers_length)) {
        if (const unsigned cpus = quota_v1(cgroup_root, path + 1, path_length); cpus != 0) return cpus;
      }
    }
    line = *end == '\0' ? end : end + 1;
  }
  return 0;
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
