// SPDX-License-Identifier: MIT
#include "freehold/os/memory_limit.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "freehold/os/program_options.hpp"
#include "freehold/os/system_call.hpp"

namespace freehold::os {

// Away from the numbers that programs expect for their own first files.
void MemoryLimit::File::open(const char* folder, const char* name) noexcept {
  constexpr int kFirstNumber = 100;
  Path path(folder);
  const int opened = kernel::open(path.add(name).text(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) return;
  fd = kernel::fcntl(opened, F_DUPFD_CLOEXEC, kFirstNumber);
  kernel::close(opened);
  identity = FileIdentity::of(fd);
}

// Notes a limit. Returns whether it is the smallest so far.
bool MemoryLimit::is_smallest(std::uint64_t bytes) noexcept {
  if (bytes >= kNone) return false;
  bytes = std::max<std::uint64_t>(bytes, 1);
  const std::uint64_t former = this->bytes() == 0 ? kNone : this->bytes();
  next_bytes_ = std::min(next_bytes_, std::max(former, bytes));
  if (bytes >= former) return false;
  bytes_.store(bytes, std::memory_order_relaxed);
  return true;
}

void MemoryLimit::look_at(Path& folder, bool is_second_version) noexcept {
  static constexpr const char* kFiles[][2] = {{"/memory.limit_in_bytes", nullptr}, {"/memory.max", "/memory.high"}};
  for (const char* const file : kFiles[is_second_version ? 1 : 0]) {
    std::uint64_t bytes = 0;
    if (file == nullptr || !number_in_file(folder, file, bytes) || !is_smallest(bytes)) continue;
    source_ = folder;
    file_ = file;
    is_second_version_ = is_second_version;
  }
}

void MemoryLimit::look_at_process() noexcept {
  struct Limit {
    int resource;
    const char* name;
  };
  for (const Limit& limit : {Limit{RLIMIT_AS, "RLIMIT_AS"}, Limit{RLIMIT_DATA, "RLIMIT_DATA"}}) {
    rlimit r{};
    if (kernel::getrlimit(limit.resource, &r) != 0 || !is_smallest(r.rlim_cur)) continue;
    source_ = Path(limit.name);
    file_ = nullptr;
  }
}

void MemoryLimit::find(const char* folder, const char* cgroup_root, const char* self_cgroup) noexcept {
  if (*folder == '\0') {
    for_each_cgroup(cgroup_root, self_cgroup, "memory", [this](Path& f, bool v2) { look_at(f, v2); });
  } else if (std::strcmp(folder, "off") != 0) {
    Path given(folder);
    for (const bool is_second_version : {true, false}) look_at(given, is_second_version);
    const auto has = [folder](const char* file) { return kernel::is_accessible(Path(folder).add(file).text(), R_OK); };
    if (file_ == nullptr && !has("/memory.max") && !has("/memory.limit_in_bytes"))
      complain_of_option("FREEHOLD_CGROUP", "a folder with memory.max or memory.limit_in_bytes, or off");
  }
  look_at_process();
  if (file_ == nullptr) return;
  limit_.open(source_.text(), file_);
  current_.open(source_.text(), is_second_version_ ? "/memory.current" : "/memory.usage_in_bytes");
  details_.open(source_.text(), "/memory.stat");
  pressure_.open(source_.text(), "/memory.pressure");
}

void MemoryLimit::read_again() noexcept {
  if (!limit_.is_there()) return;
  NumberLines lines(limit_.fd);
  const char* line = lines.next();
  std::uint64_t bytes = 0;
  if (line == nullptr) return;
  if (!read_number(line, bytes)) bytes = kNone;
  bytes_.store(std::clamp<std::uint64_t>(bytes, 1, next_bytes_), std::memory_order_relaxed);
}

std::optional<MemoryLimit::Use> MemoryLimit::use() const noexcept {
  if (!current_.is_there()) return std::nullopt;
  Use use;
  {
    NumberLines current(current_.fd);
    const char* line = current.next();
    if (line == nullptr || !read_number(line, use.bytes)) return std::nullopt;
  }
  constexpr std::uint64_t kNear = 2;  // below a half nothing else is asked
  if (use.bytes < bytes() / kNear) return use;
  if (details_.is_there()) {
    static constexpr const char* kKeys[][2] = {{"total_inactive_file ", "total_active_file "},
                                               {"inactive_file ", "active_file "}};
    // A large buffer: the kernel sums the group's figures up at the first read.
    for (FileLines<64, 1024> details(details_.fd); const char* line = details.next();)
      for (const char* const key : kKeys[is_second_version_ ? 1 : 0]) {
        const char* number = line + std::strlen(key);
        std::uint64_t bytes = 0;
        if (std::strncmp(line, key, std::strlen(key)) == 0 && read_number(number, bytes))
          use.bytes -= std::min(use.bytes, bytes);
      }
  }
  if (pressure_.is_there()) {
    static constexpr char kKey[] = "full avg10=";
    for (NumberLines pressure(pressure_.fd); const char* line = pressure.next();) {
      std::uint64_t percent = 0;
      const char* number = line + sizeof kKey - 1;
      if (std::strncmp(line, kKey, sizeof kKey - 1) == 0) use.is_stalling = read_number(number, percent) && percent >= 1;
    }
  }
  return use;
}

}  // namespace freehold::os
