// SPDX-License-Identifier: MIT
#include "freehold/os/memory_limit.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "freehold/os/program_options.hpp"

namespace freehold::os {

// Away from the numbers that programs expect for their own first files.
void MemoryLimit::File::open(const char* folder, const char* name) noexcept {
  constexpr int kFirstNumber = 100;
  Path path(folder);
  const int opened = ::open(path.add(name).text(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) return;
  fd = ::fcntl(opened, F_DUPFD_CLOEXEC, kFirstNumber);
  ::close(opened);
  identity = FileIdentity::of(fd);
}

// No limit: version 1 says so by a number beyond every machine's memory. RLIM_INFINITY is greater, and "max" is no number.
static constexpr std::uint64_t kNone = std::uint64_t{1} << 60;

void MemoryLimit::look_at(const char* folder, bool is_second_version) noexcept {
  static constexpr const char* kFiles[][2] = {{"/memory.limit_in_bytes", nullptr}, {"/memory.max", "/memory.high"}};
  for (const char* const file : kFiles[is_second_version ? 1 : 0]) {
    std::uint64_t bytes = 0;
    if (file == nullptr || !number_in_file(folder, file, bytes) || bytes >= kNone || (bytes_ != 0 && bytes >= bytes_))
      continue;
    bytes_ = std::max<std::uint64_t>(bytes, 1);
    source_ = Path(folder);
    is_group_ = true;
    is_second_version_ = is_second_version;
  }
}

void MemoryLimit::look_at_process() noexcept {
  struct Limit {
    decltype(RLIMIT_AS) resource;
    const char* name;
  };
  for (const Limit& limit : {Limit{RLIMIT_AS, "RLIMIT_AS"}, Limit{RLIMIT_DATA, "RLIMIT_DATA"}}) {
    rlimit r{};
    if (::getrlimit(limit.resource, &r) != 0 || r.rlim_cur >= kNone || (bytes_ != 0 && r.rlim_cur >= bytes_)) continue;
    bytes_ = std::max<std::uint64_t>(r.rlim_cur, 1);
    source_ = Path(limit.name);
    is_group_ = false;
  }
}

void MemoryLimit::find(const char* folder, const char* cgroup_root, const char* self_cgroup) noexcept {
  if (*folder == '\0') {
    for_each_cgroup(cgroup_root, self_cgroup, "memory", [this](const char* f, bool v2) { look_at(f, v2); });
  } else if (std::strcmp(folder, "off") != 0) {
    for (const bool is_second_version : {true, false}) look_at(folder, is_second_version);
    const auto has = [folder](const char* file) { return ::access(Path(folder).add(file).text(), R_OK) == 0; };
    if (!is_group_ && !has("/memory.max") && !has("/memory.limit_in_bytes"))
      complain_of_option("FREEHOLD_CGROUP", "a folder with memory.max or memory.limit_in_bytes, or off");
  }
  look_at_process();
  if (!is_group_) return;
  current_.open(source_.text(), is_second_version_ ? "/memory.current" : "/memory.usage_in_bytes");
  details_.open(source_.text(), "/memory.stat");
  pressure_.open(source_.text(), "/memory.pressure");
}

std::optional<MemoryLimit::Use> MemoryLimit::use() const noexcept {
  if (!current_.is_there()) return std::nullopt;
  Use use;
  const SmallFile current(current_.fd);
  const char* s = current.text;
  if (!read_number(s, use.bytes)) return std::nullopt;
  constexpr std::uint64_t kNear = 2;  // below a half nothing else is asked
  if (use.bytes < bytes_ / kNear) return use;
  if (details_.is_there()) {
    const SmallFile details(details_.fd);
    static constexpr const char* kKeys[][2] = {{"total_inactive_file ", "total_active_file "},
                                               {"inactive_file ", "active_file "}};
    for (const char* const key : kKeys[is_second_version_ ? 1 : 0]) {
      std::uint64_t bytes = 0;
      if (number_in(details.text, key, bytes)) use.bytes -= std::min(use.bytes, bytes);
    }
  }
  if (pressure_.is_there()) {
    const SmallFile pressure(pressure_.fd);
    std::uint64_t percent = 0;
    use.is_stalling = number_in(pressure.text, "full avg10=", percent) && percent >= 1;
  }
  return use;
}

}  // namespace freehold::os
