// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/perf_map.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <utility>
#include <vector>

#include "tools/live/maps_words.hpp"

namespace freehold::doctor {
namespace {
namespace fs = std::filesystem;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

// "0x7f00", as Java writes it, is "7f00".
std::string_view without_prefix(std::string_view digits) {
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
  return digits;
}

// The process's number where it lives itself: the last of "NSpid: 4711 12".
std::uint64_t innermost_number(const fs::path& process, std::uint64_t pid) {
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("NSpid:")) continue;
    const std::size_t last = line.find_last_not_of("0123456789");
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(line.data() + last + 1, line.data() + line.size(), number);
    return parsed.ec == std::errc() ? number : pid;
  }
  return pid;
}

std::optional<std::uint64_t> owner_of(const fs::path& file) {
  struct stat found{};
  return ::lstat(file.c_str(), &found) == 0 ? std::optional<std::uint64_t>(found.st_uid) : std::nullopt;
}

std::string map_name(std::uint64_t pid) { return "perf-" + std::to_string(pid) + ".map"; }

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Takes ":12" off the end. 0: it has no such end.
unsigned take_number(std::string_view& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || !is_number(text.substr(colon + 1))) return 0;
  unsigned number = 0;
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), number);
  text = text.substr(0, colon);
  return number;
}

// CPython: "py::build:/home/me/work.py".
std::optional<Frame> python_frame(std::string_view name) {
  constexpr std::string_view kMark = "py::";
  if (!name.starts_with(kMark)) return std::nullopt;
  name.remove_prefix(kMark.size());
  const std::size_t colon = name.find(':');
  Frame frame;
  frame.function = name.substr(0, colon);
  if (colon != std::string_view::npos) frame.module = name.substr(colon + 1);
  // Code that starts a program, "<frozen importlib._bootstrap>", is the interpreter's.
  frame.is_runtime_code = !frame.module.starts_with("<frozen ");
  return frame;
}

// V8: "JS:*build /home/me/work.js:2:15", where the sign tells how it was compiled.
std::optional<Frame> script_frame(std::string_view name) {
  constexpr auto kKinds = std::to_array<std::string_view>({"JS:", "LazyCompile:", "Function:", "Eval:", "Script:"});
  const auto kind = std::ranges::find_if(kKinds, [&](std::string_view one) { return name.starts_with(one); });
  if (kind == kKinds.end()) return std::nullopt;
  name.remove_prefix(kind->size());
  if (!name.empty() && std::string_view("~^+*").find(name.front()) != std::string_view::npos) name.remove_prefix(1);
  const std::size_t space = name.find(' ');
  std::string_view place = space == std::string_view::npos ? std::string_view() : name.substr(space + 1);
  Frame frame;
  frame.function = name.substr(0, space);
  if (frame.function.empty()) frame.function = "(anonymous)";
  const unsigned last = take_number(place), before = take_number(place);  // line and column, or the line alone
  frame.line = before != 0 ? before : last;
  frame.file = place;
  frame.is_runtime_code = !place.starts_with("node:");
  return frame;
}

// Code of the interpreters themselves, and of Java's library: what V8 and HotSpot have beside the program's functions.
bool is_interpreters_own(std::string_view name) {
  constexpr auto kBegin = std::to_array<std::string_view>({"Builtin:", "BytecodeHandler:", "Stub:", "RegExp:", "Interpreter",
                                                           "StubRoutines", "I2C/C2I", "MethodHandles adapters",
                                                           "native signature handlers", "vtable ", "itable "});
  constexpr auto kEnd = std::to_array<std::string_view>({" Runtime1 stub", "Blob", "_Java"});
  constexpr auto kPackages = std::to_array<std::string_view>({"java.", "javax.", "jdk.", "sun.", "com.sun."});
  if (std::ranges::any_of(kBegin, [&](std::string_view one) { return name.starts_with(one); })) return true;
  if (std::ranges::any_of(kEnd, [&](std::string_view one) { return name.ends_with(one); })) return true;
  // "void java.nio.DirectByteBuffer.<init>(int)"
  std::string_view method = name.substr(0, name.find('('));
  if (const std::size_t space = method.rfind(' '); space != std::string_view::npos) method.remove_prefix(space + 1);
  return method.size() != name.size() &&
         std::ranges::any_of(kPackages, [&](std::string_view one) { return method.starts_with(one); });
}

// Reads whole lines up to `most` bytes. One that is longer than the buffer is left out.
template <class Take>
void each_line(int file, std::size_t most, const Take& take) {
  std::vector<char> buffer(std::size_t{64} << 10);
  std::size_t have = 0, all = 0;
  bool is_rest = false;  // of a line that was too long
  while (all < most) {
    const ssize_t got = ::read(file, buffer.data() + have, std::min(buffer.size() - have, most - all));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;  // a last line without an end is not finished yet
    all += static_cast<std::size_t>(got);
    have += static_cast<std::size_t>(got);
    std::string_view text(buffer.data(), have);
    for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
      if (!std::exchange(is_rest, false)) take(text.substr(0, end));
    }
    if (text.size() == buffer.size()) {
      is_rest = true;
      text = {};
    }
    std::ranges::copy(text, buffer.begin());
    have = text.size();
  }
}

}  // namespace

Frame frame_of_runtime_name(std::string_view name) {
  if (auto frame = python_frame(name)) return *frame;
  if (auto frame = script_frame(name)) return *frame;
  Frame frame;
  frame.function = name;
  frame.is_runtime_code = !is_interpreters_own(name);
  return frame;
}

PerfMap PerfMap::of_process(std::uint64_t pid) {
  const std::uint64_t user = ::geteuid();
  if (PerfMap here = of_file(fs::path("/tmp") / map_name(pid), user); here.size() != 0) return here;
  const fs::path process = fs::path("/proc") / std::to_string(pid);
  return of_file(process / "root/tmp" / map_name(innermost_number(process, pid)), owner_of(process).value_or(user));
}

PerfMap PerfMap::of_file(const fs::path& file, std::uint64_t user) {
  PerfMap map;
  // Nothing that waits, and nothing that another name leads to.
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat found{};
  if (opened.number() < 0 || ::fstat(opened.number(), &found) != 0 || !S_ISREG(found.st_mode)) return map;
  if (found.st_uid != user && found.st_uid != ::geteuid() && found.st_uid != 0) return map;
  each_line(opened.number(), kMostBytes, [&map](std::string_view line) { map.add(line); });
  return map;
}

bool PerfMap::add(std::string_view line) {
  std::uint64_t begin = 0, bytes = 0;
  if (!live::parse_hex(without_prefix(live::next_word(line)), begin) ||
      !live::parse_hex(without_prefix(live::next_word(line)), bytes))
    return false;
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
  if (begin == 0 || bytes == 0 || bytes > UINT64_MAX - begin || line.empty()) return false;
  const std::uint64_t end = begin + bytes;
  auto next = code_.lower_bound(begin);
  if (next != code_.begin()) {
    Piece& before = std::prev(next)->second;
    before.end = std::min(before.end, begin);
  }
  while (next != code_.end() && next->first < end) next = code_.erase(next);
  std::string name(line.substr(0, kMostNameBytes));
  std::ranges::replace_if(name, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  code_.insert_or_assign(next, begin, Piece{end, std::move(name)});
  return true;
}

std::optional<Frame> PerfMap::frame(std::uint64_t address) const {
  const auto after = code_.upper_bound(address);
  if (after == code_.begin() || address >= std::prev(after)->second.end) return std::nullopt;
  return frame_of_runtime_name(std::prev(after)->second.name);
}

}  // namespace freehold::doctor
