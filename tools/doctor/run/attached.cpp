// SPDX-License-Identifier: MIT
#include "tools/doctor/run/attached.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "tools/doctor/facts/allocator_code.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/facts/own_malloc.hpp"
#include "tools/doctor/facts/symbols.hpp"
#include "tools/doctor/run/call_counter.hpp"
#include "tools/doctor/run/child.hpp"
#include "tools/doctor/run/sampler.hpp"
#include "tools/live/memory_map.hpp"
#include "tools/live/proc_folder.hpp"
#include "tools/live/process.hpp"

namespace freehold::doctor {
namespace {
namespace fs = std::filesystem;

constexpr int kLook_ms = 20;
constexpr std::size_t kMostLooked = 200;  // threads that are asked for what they sleep in
constexpr std::size_t kFunctions = 12;
constexpr double kCountingCalls_s = 0.3;
constexpr std::uint64_t kFewSamples = 20;
constexpr double kFirstMap_s = 0.02;  // then after twice the time: a program loads what it needs early

// The kernel's counts so far, of all threads that there are.
constexpr double kTotalsEvery_s = 0.1;  // what is left of a process that ends while it is watched

struct Totals {
  double user_s = 0, system_s = 0, waited_s = 0;
  std::uint64_t faults = 0, voluntary = 0, involuntary = 0;
  unsigned threads = 0;
};

Totals totals_of(pid_t pid) {
  Totals totals;
  if (live::thread_with_memory(pid) == 0) return totals;  // it has ended, and its parent may not have asked yet
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  if (const auto fields = live::stat_fields(live::proc_folder(pid)); fields.size() > live::StatField::kSystemTime) {
    totals.user_s = std::stod(fields[live::StatField::kUserTime]) / ticks;
    totals.system_s = std::stod(fields[live::StatField::kSystemTime]) / ticks;
    totals.faults = std::stoull(fields[live::StatField::kMinorFaults]);
  }
  for (const pid_t thread : live::threads_of(pid)) {
    const fs::path folder = live::proc_folder(pid) / "task" / std::to_string(thread);
    double ran_ns = 0, waited_ns = 0;
    std::ifstream(folder / "schedstat") >> ran_ns >> waited_ns;
    totals.waited_s += 1e-9 * waited_ns;
    const std::string status = live::text_of_proc_file(folder / "status");
    totals.voluntary += live::number_in(status, "voluntary_ctxt_switches:");
    totals.involuntary += live::number_in(status, "nonvoluntary_ctxt_switches:");
    ++totals.threads;
  }
  return totals;
}

Estimate share_of(std::uint64_t part, std::uint64_t all) {
  const double share = static_cast<double>(part) / static_cast<double>(all);
  const double error =
      kNineOfTen * std::sqrt(std::max(share * (1 - share), 1.0 / static_cast<double>(all)) / static_cast<double>(all));
  return {std::max(0.0, share - error), share, std::min(1.0, share + error)};
}

// The map with the files as this process can open them: a process in another container has others by the same names.
std::string with_root(const std::string& maps, const std::string& root) {
  std::istringstream in(maps);
  std::string out;
  for (std::string line; std::getline(in, line);) {
    if (const std::size_t slash = line.find('/'); slash != std::string::npos) {
      const std::string here = line.substr(slash);
      std::error_code none;
      if (fs::exists(root + here, none) && !fs::equivalent(here, root + here, none)) line.insert(slash, root);
    }
    out += line + '\n';
  }
  return out;
}

class Watcher {
 public:
  Watcher(const AttachSettings& settings, const AttachCaller& caller)
      : pid_(settings.pid),
        caller_(caller),
        shown_(live::thread_with_memory(pid_)),
        root_((live::proc_folder(shown_) / "root").string()) {
    attached_.settings = settings;
    read_map();
  }

  Attached watch() {
    describe();
    const Totals before = totals_of(pid_);
    const double begin = now_s();
    watch_threads(begin);
    attached_.seconds = now_s() - begin;
    read_map();
    name_allocators();
    const Totals after = totals_of(pid_);
    attached_.has_ended = after.threads == 0;
    attached_.signal = caller_.signal();
    // Nothing can be read any more of a process that has ended: what was read last counts, for the time until then.
    if (attached_.has_ended && last_.threads > 0) {
      attached_.seconds = last_s_ - begin;
      add_totals(before, last_);
    }
    if (!attached_.has_ended) {
      add_totals(before, after);
      if (live::LiveAnswer answer = live::read_live_stats(pid_); answer.refusal == live::LiveRefusal::kNone)
        attached_.held = std::move(answer.stats);
      attached_.is_freehold = attached_.is_freehold || attached_.held.has_value();
    }
    if (attached_.settings.count_calls && attached_.signal == 0 && !attached_.has_ended) count_calls();
    add_shares();
    return std::move(attached_);
  }

 private:
  void describe() {
    std::string command = live::text_of_proc_file(live::proc_folder(shown_) / "cmdline");
    std::ranges::replace(command, '\0', ' ');
    while (command.ends_with(' ')) command.pop_back();
    attached_.command = command;
    add_memory();
  }

  // A process that has just begun, or execs, or loads libraries has another map soon; one that has ended has none, or shows
  // a part of it.
  void read_map() {
    std::string maps = live::maps_of(pid_);
    if (live::maps_of(pid_).empty()) return;
    std::vector<live::CodeMapping> mappings = live::code_mappings(maps);
    if (mappings == mappings_) return;
    maps_ = std::move(maps);
    mappings_ = std::move(mappings);
    files_ = live::files_of(mappings_);
    code_ = AllocatorCode(mappings_, root_);
  }

  void name_allocators() {
    attached_.malloc_file = code_.malloc_file();
    attached_.is_freehold = attached_.is_freehold || attached_.malloc_file.find("libfreehold") != std::string::npos;
    for (const auto& own : own_mallocs(files_)) {
      if (!own.is_reached) attached_.own_allocators.push_back(own.name);
    }
  }

  void add_memory() {
    const std::string sums = live::text_of_proc_file(live::proc_folder(shown_) / "smaps_rollup");
    attached_.resident_bytes = live::number_in(sums, "Rss:") << 10;
    attached_.anonymous_bytes = live::number_in(sums, "Anonymous:") << 10;
    attached_.huge_bytes = live::number_in(sums, "AnonHugePages:") << 10;
    attached_.swapped_bytes = live::number_in(sums, "Swap:") << 10;
    // Freehold names its mappings, where the kernel can.
    std::ifstream lines(live::proc_folder(shown_) / "smaps");
    bool is_ours = false;
    for (std::string line; std::getline(lines, line);) {
      const bool is_head = !line.empty() && (std::isdigit(line[0]) != 0 || (line[0] >= 'a' && line[0] <= 'f'));
      if (is_head) is_ours = line.find("[anon:freehold") != std::string::npos;
      if (is_ours && line.starts_with("Rss:")) attached_.freehold_bytes += live::number_in("\n" + line, "Rss:") << 10;
    }
    attached_.is_freehold = attached_.is_freehold || attached_.freehold_bytes > 0;
  }

  void watch_threads(double begin) {
    last_s_ = begin;
    caller_.show_watching();
    double next_map_s = kFirstMap_s;
    for (double now = begin; now - begin < attached_.settings.seconds; now = now_s()) {
      sampler_.look({pid_});
      pollfd stop{.fd = caller_.stop_fd, .events = POLLIN, .revents = 0};
      if (::poll(&stop, 1, kLook_ms) > 0) break;
      if (now - begin >= next_map_s) read_map(), next_map_s *= 2;
      look_at_sleepers();
      if (now - last_s_ >= kTotalsEvery_s) {
        if (const Totals totals = totals_of(pid_); totals.threads > 0) last_ = totals, last_s_ = now;
      }
      sampler_.drain([this](std::uint64_t address) {
        ++attached_.samples;
        ++addresses_[address];
      });
      if (live::thread_with_memory(pid_) == 0) break;
    }
  }

  void look_at_sleepers() {
    std::size_t looked = 0;
    for (const pid_t thread : live::threads_of(pid_)) {
      if (++looked > kMostLooked) break;
      const std::string call = live::sleeping_call_of(pid_, thread);
      if (call.empty()) continue;
      ++looks_;
      const std::size_t last = call.rfind(' ');
      if (last == std::string::npos) continue;
      const std::uint64_t address = std::strtoull(call.c_str() + last, nullptr, 16);
      if (code_.kind_of(address) == CodeKind::kMallocLock) ++looks_in_malloc_lock_;
    }
  }

  void add_totals(const Totals& before, const Totals& after) {
    attached_.is_counted = true;
    attached_.threads = after.threads;
    attached_.user_s = after.user_s - before.user_s;
    attached_.system_s = after.system_s - before.system_s;
    // Nothing is known any more of threads that have ended since.
    const auto grown = [](auto now, auto then) { return now > then ? now - then : decltype(now){}; };
    if (fs::exists(live::proc_folder(pid_) / "schedstat"))
      attached_.waited_for_cpu_s = grown(after.waited_s, before.waited_s);
    attached_.voluntary_switches = grown(after.voluntary, before.voluntary);
    attached_.involuntary_switches = grown(after.involuntary, before.involuntary);
    attached_.page_faults = grown(after.faults, before.faults);
  }

  void count_calls() {
    std::set<FunctionPlace> own, malloc = malloc_functions(files_);
    for (const auto& one : own_mallocs(files_)) own.insert(one.functions.begin(), one.functions.end());
    CallCounter counter({malloc, own});
    counter.look({pid_});
    const auto first = counter.calls();
    const double begin = now_s();
    pollfd stop{.fd = caller_.stop_fd, .events = POLLIN, .revents = 0};
    static_cast<void>(::poll(&stop, 1, static_cast<int>(1000 * kCountingCalls_s)));
    const auto last = counter.calls();
    const double seconds = now_s() - begin;
    if (!counter.why().empty()) {
      note({.kind = AttachNote::Kind::kCallsNotCounted, .why = counter.why()});
      return;
    }
    attached_.malloc_calls_per_s = static_cast<double>(last[0] - first[0]) / seconds;
    if (!own.empty()) attached_.own_calls_per_s = static_cast<double>(last[1] - first[1]) / seconds;
  }

  void add_shares() {
    if (!sampler_.why().empty())
      note({.kind = AttachNote::Kind::kNotSampled, .why = sampler_.why()});
    else if (attached_.samples < kFewSamples)
      note({.kind = AttachNote::Kind::kHardlyRan, .children = children()});
    else if (!sampler_.sees_kernel())
      note({.kind = AttachNote::Kind::kKernelNotSampled});
    if (sampler_.lost() > 0) note({.kind = AttachNote::Kind::kSamplesLost, .count = sampler_.lost()});
    if (looks_ >= kFewSamples)
      attached_.asleep_in_malloc = share_of(looks_in_malloc_lock_, looks_);
    else if (!attached_.has_ended)
      note({.kind = AttachNote::Kind::kSleepersNotSeen});
    if (attached_.samples < kFewSamples) return;
    std::map<CodeKind, std::uint64_t> kinds;
    for (const auto& [address, count] : addresses_) kinds[code_.kind_of(address)] += count;
    attached_.in_malloc = share_of(kinds[CodeKind::kMalloc] + kinds[CodeKind::kMallocLock], attached_.samples);
    attached_.in_memory_calls = share_of(kinds[CodeKind::kMemoryCall], attached_.samples);
    if (!attached_.own_allocators.empty())
      attached_.in_own_allocators = share_of(kinds[CodeKind::kOwnAllocator], attached_.samples);
    add_functions();
  }

  void note(AttachNote note) { attached_.notes.push_back(std::move(note)); }
  // A shell or a launcher does little itself: its children do.
  [[nodiscard]] std::vector<pid_t> children() const {
    std::vector<pid_t> family = live::family_of(pid_);
    family.erase(family.begin());
    if (family.size() > kFunctions) family.resize(kFunctions);
    return family;
  }

  void add_functions() {
    caller_.show_naming();
    // A copy: the process may have ended.
    std::error_code none;
    std::string file = fs::temp_directory_path(none) / "freehold-doctor-maps-XXXXXX";
    const int fd = ::mkstemp(file.data());
    if (fd < 0) return;
    ::close(fd);
    std::ofstream(file) << with_root(maps_, root_);
    std::map<std::pair<std::string, std::string>, std::uint64_t> functions;
    {
      Symbols symbols(file);
      for (const auto& [address, count] : addresses_) {
        const CodeKind kind = code_.kind_of(address);
        // Symbols takes return addresses, which lie behind their call.
        const auto& frames = symbols.frames(address + 1);
        Frame frame = frames.back();
        frame.file.clear();  // of a function, not of each line
        std::string text = kind == CodeKind::kMalloc
                               ? "malloc and free in " + frame.module.substr(frame.module.rfind('/') + 1)
                               : frame.text();
        functions[{std::move(text), std::string(name_of(kind))}] += count;
      }
    }
    ::unlink(file.c_str());
    for (const auto& [key, count] : functions)
      attached_.functions.push_back(
          {key.first, key.second, static_cast<double>(count) / static_cast<double>(attached_.samples)});
    std::ranges::sort(attached_.functions, std::ranges::greater{}, &HotFunction::share);
    if (attached_.functions.size() > kFunctions) attached_.functions.resize(kFunctions);
  }

  pid_t pid_;
  const AttachCaller& caller_;
  pid_t shown_;       // under which the kernel shows its memory
  std::string root_;  // of its files
  std::string maps_;
  std::vector<live::CodeMapping> mappings_;
  std::set<std::string> files_;
  AllocatorCode code_{{}, root_};
  Sampler sampler_;
  std::map<std::uint64_t, std::uint64_t> addresses_;
  std::uint64_t looks_ = 0, looks_in_malloc_lock_ = 0;
  Totals last_;        // while it was watched; no threads: none yet
  double last_s_ = 0;  // when
  Attached attached_;
};

}  // namespace

Attached attach(const AttachSettings& settings, const AttachCaller& caller) { return Watcher(settings, caller).watch(); }

}  // namespace freehold::doctor
