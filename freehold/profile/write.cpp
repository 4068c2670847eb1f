// SPDX-License-Identifier: MIT
// The profile as text, one thing a line, for `freehold heap show` (docs/heap-profile.md describes it). The thread that
// writes it may be inside malloc, so the buffer is on the stack and the copy of the samples in fresh pages.
#include <cerrno>
#include <cstring>
#include <ctime>

#include "freehold/base/bits.hpp"
#include "freehold/check/call_stacks.hpp"
#include "freehold/os/call_stack.hpp"
#include "freehold/os/libc.hpp"
#include "freehold/os/system_call.hpp"
#include "freehold/profile/profiler.hpp"

namespace freehold::profile {
namespace {

class TextFile {
 public:
  explicit TextFile(int fd) noexcept : fd_(fd) {}

  void add(const char* text) noexcept { add(text, std::strlen(text)); }
  void add(const char* text, std::size_t bytes) noexcept {
    while (bytes != 0 && ok_) {
      if (length_ == sizeof text_) (void)flush();
      const std::size_t room = sizeof text_ - length_, take = bytes < room ? bytes : room;
      std::memcpy(text_ + length_, text, take);
      length_ += take;
      text += take;
      bytes -= take;
    }
  }
  void add(std::uint64_t value, unsigned radix = 10) noexcept {
    char digits[20];
    std::size_t at = sizeof digits;
    do digits[--at] = "0123456789abcdef"[value % radix];
    while ((value /= radix) != 0);
    add(digits + at, sizeof digits - at);
  }
  // Writes a newline as the memory map does: a line is a line.
  void add_name(const char* name, std::size_t bytes) noexcept {
    for (std::size_t i = 0; i < bytes; ++i) name[i] == '\n' ? add("\\012") : add(name + i, 1);
  }
  void line(const char* name, std::uint64_t value) noexcept {
    add(name);
    add(" ");
    add(value);
    add("\n");
  }
  // False: the system refused some of it.
  [[nodiscard]] bool flush() noexcept {
    std::size_t done = 0;
    while (ok_ && done != length_) {
      const ssize_t written = os::kernel::write(fd_, text_ + done, length_ - done);
      if (written < 0 && errno == EINTR) continue;
      ok_ = written > 0;
      if (ok_) done += static_cast<std::size_t>(written);
    }
    length_ = 0;
    return ok_;
  }

 private:
  int fd_;
  bool ok_ = true;
  std::size_t length_ = 0;
  char text_[4096];
};

// Which stacks were written: a bit for each word of the depot.
class StackSet {
 public:
  explicit StackSet(std::uint64_t* bits) noexcept : bits_(bits) {}
  [[nodiscard]] static constexpr std::size_t memory_bytes() noexcept { return check::kMostStackNumbers / 8; }
  // False: it was there.
  [[nodiscard]] bool insert(std::uint32_t stack) noexcept {
    if (stack >= check::kMostStackNumbers) return false;
    std::uint64_t& word = bits_[stack / 64];
    const std::uint64_t bit = std::uint64_t{1} << stack % 64;
    const bool is_new = (word & bit) == 0;
    word |= bit;
    return is_new;
  }

 private:
  std::uint64_t* bits_;
};

struct Kept {
  Sample sample;
  bool is_in_use, was_at_peak;
};

void write_stack(TextFile& file, std::uint32_t stack) noexcept {
  void* addresses[os::kMostFrames];
  const unsigned depth = check::read_call_stack(stack, addresses, os::kMostFrames);
  file.add("stack ");
  file.add(stack);
  for (unsigned i = 0; i < depth; ++i) {
    file.add(" ");
    file.add(reinterpret_cast<std::uintptr_t>(addresses[i]), 16);
  }
  file.add("\n");
}

void write_sample(TextFile& file, const Kept& kept) noexcept {
  file.add(kept.is_in_use ? (kept.was_at_peak ? "both" : "now") : "peak");
  for (const std::uint64_t value : {kept.sample.bytes, kept.sample.size, kept.sample.mean}) {
    file.add(" ");
    file.add(value);
  }
  file.add(" ");
  file.add(stack_of(kept.sample.origin));
  if (const std::uint32_t heap = heap_of(kept.sample.origin); heap != 0) {
    file.add(" heap ");
    file.add_name(heap_name(heap), std::strlen(heap_name(heap)));
  }
  file.add("\n");
}

void write_mappings(TextFile& file) noexcept {
  file.add("maps\n");
  const int maps = os::kernel::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return;
  char text[4096];
  for (ssize_t n = 0; (n = os::kernel::read(maps, text, sizeof text)) > 0;) file.add(text, static_cast<std::size_t>(n));
  os::kernel::close(maps);
}

void write_head(TextFile& file) noexcept {
  const auto figures = profiler::g_table.figures();
  timespec now{};
  os::Libc::clock_gettime(CLOCK_REALTIME, &now);
  char program[1024];
  const ssize_t length = os::kernel::readlink("/proc/self/exe", program, sizeof program);
  file.add("freehold heap profile 1\n");
  file.line("pid", static_cast<std::uint64_t>(os::kernel::getpid()));
  file.line("time_ns", static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec));
  file.line("mean", mean());
  file.line("sampled", figures.sampled);
  file.line("lost", figures.lost);
  file.add("program ");
  file.add_name(program, length > 0 ? static_cast<std::size_t>(length) : 0);
  file.add("\n");
}

}  // namespace

bool write(os::Pages& pages, int fd) noexcept {
  if (!was_started()) {
    errno = EINVAL;
    return false;
  }
  // Room for all that the table and its log can hold, of which what is used becomes resident.
  const std::size_t bytes = base::align_up(StackSet::memory_bytes() + 2 * kPlaces * sizeof(Kept), os::kLargestPageBytes);
  void* const memory = pages.map(bytes);
  if (memory == nullptr) return false;
  StackSet stacks(static_cast<std::uint64_t*>(memory));
  auto* const kept = reinterpret_cast<Kept*>(static_cast<std::byte*>(memory) + StackSet::memory_bytes());
  std::size_t count = 0;
  profiler::g_table.for_each(
      [&](const Sample& sample, bool is_in_use, bool was_at_peak) { kept[count++] = {sample, is_in_use, was_at_peak}; });
  TextFile file(fd);
  write_head(file);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t stack = stack_of(kept[i].sample.origin);
    if (stacks.insert(stack)) write_stack(file, stack);
    write_sample(file, kept[i]);
  }
  write_mappings(file);
  file.add("end\n");
  const bool ok = file.flush();
  const int error = errno;
  (void)pages.unmap(memory, bytes);
  errno = error;
  return ok;
}

}  // namespace freehold::profile
