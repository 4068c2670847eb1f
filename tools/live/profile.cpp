// SPDX-License-Identifier: MIT
#include "tools/live/profile.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "freehold/alloc/observe/live_figures.hpp"
#include "freehold/profile/live_profile.hpp"
#include "freehold/sync/change_count.hpp"
#include "tools/live/figures.hpp"
#include "tools/live/memory.hpp"
#include "tools/live/proc_folder.hpp"
#include "tools/live/process.hpp"

namespace freehold::live {
namespace {
using profile::LivePlace;
using profile::LiveProfile;
using profile::LiveSample;
using profile::LiveSums;
using profile::ProfileAnswer;
using profile::ProfileCommand;
using profile::ProfileRequest;
using Counter = sync::ChangeCount<sync::NativeAtomics>;
using Clock = std::chrono::steady_clock;

// A damaged process must not make us allocate or loop without end.
constexpr std::uint64_t kMostPlaces = std::uint64_t{1} << 19;  // twice as many as this version has
constexpr std::uint32_t kMostStackWords = std::uint32_t{1} << 23;

class ProfileReader {
 public:
  ProfileReader(LiveMemory& memory, std::uint64_t changes, const LiveProfile& layout, std::chrono::milliseconds patience)
      : memory_(memory), changes_(changes), layout_(layout), patience_(patience) {}

  // False: it cannot be read, or changed all the time.
  bool read(LiveHeapProfile& to) {
    std::vector<LivePlace> places(layout_.place_count);
    if (!read_places(places) || !read_log() || !memory_.read(layout_.heap_names, heap_names_) ||
        !memory_.read(layout_.mean, to.mean))
      return false;
    to.sampled = sums_.births;
    to.lost = sums_.lost;
    std::set<std::uint64_t> now;  // blocks of the peak that are still in use
    for (const LivePlace& place : places) {
      if (place.block <= 1) continue;
      const bool was_at_peak = place.birth <= sums_.peak_birth;
      if (was_at_peak) now.insert(place.block);
      to.blocks.push_back(block_of(place, true, was_at_peak));
      to.blocks.back().pins = {.home = place.home, .size = place.size};
    }
    // One that was freed after its part of the table had been copied is in both.
    for (const LiveSample& one : log_)
      if (!now.contains(one.block)) to.blocks.push_back(block_of(one, false, true));
    return read_stacks(to);
  }

 private:
  enum class Copy : std::uint8_t { kWhole, kAmid, kChanged, kUnreadable };

  // Copies so many bytes as they were between two changes. The fences order the copies that the kernel makes for us, before
  // and behind them on this CPU.
  Copy copy(std::uint64_t address, void* to, std::size_t bytes) {
    std::uint64_t seen = 0, now = 0;
    if (!memory_.read(changes_, seen)) return Copy::kUnreadable;
    if (Counter::is_amid(seen)) return Copy::kAmid;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (!memory_.read(address, to, bytes)) return Copy::kUnreadable;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (!memory_.read(changes_, now)) return Copy::kUnreadable;
    return seen == now ? Copy::kWhole : Copy::kChanged;
  }
  // A thread that was interrupted during a change goes on in its time.
  [[nodiscard]] bool wait() const {
    constexpr std::chrono::microseconds kNap{20};
    if (Clock::now() - began_ > patience_) return false;
    std::this_thread::sleep_for(kNap);
    return true;
  }

  // All at once; else those in use once more, in parts that are copied within a microsecond. An empty place is one word, and
  // as it was when that was copied.
  bool read_places(std::vector<LivePlace>& to) {
    constexpr std::size_t kPart = 64;
    const auto copy_places = [&](std::size_t first, std::size_t n) {
      return copy(layout_.places + first * sizeof(LivePlace), to.data() + first, n * sizeof(LivePlace));
    };
    Copy all = Copy::kAmid;
    while ((all = copy_places(0, to.size())) == Copy::kAmid)
      if (!wait()) return false;
    if (all != Copy::kChanged) return all == Copy::kWhole;
    for (std::size_t done = 0; done < to.size();) {
      if (to[done].block <= 1) {
        ++done;
        continue;
      }
      const std::size_t n = std::min(kPart, to.size() - done);
      switch (copy_places(done, n)) {
        case Copy::kWhole: done += n; break;
        case Copy::kUnreadable: return false;
        case Copy::kChanged:
          if (Clock::now() - began_ > patience_) return false;
          break;
        case Copy::kAmid:
          if (!wait()) return false;
          break;
      }
    }
    return true;
  }

  bool read_sums(LiveSums& to) {
    for (;;) {
      const Copy made = copy(layout_.sums, &to, sizeof to);
      if (made == Copy::kUnreadable) return false;
      if (made == Copy::kWhole) return to.logged <= layout_.place_count;
      if (!wait()) return false;
    }
  }
  // Reads the log with the sums that it belongs to.
  bool read_log() {
    for (;;) {
      LiveSums now{};
      if (!read_sums(sums_)) return false;
      log_.resize(sums_.logged);
      if (!memory_.read(layout_.log, log_)) return false;
      std::atomic_thread_fence(std::memory_order_acquire);
      if (!read_sums(now)) return false;
      if (now.peak_bytes == sums_.peak_bytes) return true;  // entries were only appended
      if (Clock::now() - began_ > patience_) return false;
    }
  }

  // A LivePlace or LiveSample has it.
  template <class T>
  [[nodiscard]] LiveSampledBlock block_of(const T& of, bool is_in_use, bool was_at_peak) const {
    const auto& name = heap_names_[profile::heap_of(of.origin)].text;
    std::string heap = profile::heap_of(of.origin) == 0 ? "" : heap_text({name, ::strnlen(name, sizeof name)});
    return {of.bytes, of.size, of.mean, profile::stack_of(of.origin), std::move(heap), is_in_use, was_at_peak};
  }

  bool read_stacks(LiveHeapProfile& to) {
    if (layout_.stack_words == 0) return true;
    std::uint32_t used = 0;
    if (!memory_.read(layout_.used_stack_words, used) || used > kMostStackWords) return false;
    std::vector<std::uint64_t> words(used);
    if (!memory_.read(layout_.stack_words, words)) return false;
    constexpr std::uint64_t kDepthMask = 0xff;
    std::uint64_t words_left = used;
    for (const LiveSampledBlock& block : to.blocks) {
      if (block.stack == 0 || block.stack >= used) continue;
      const auto [stack, is_new] = to.stacks.try_emplace(block.stack);
      if (!is_new) continue;
      const std::uint64_t depth = std::min<std::uint64_t>(words[block.stack] & kDepthMask, used - block.stack - 1);
      if (depth > words_left) return false;  // stacks do not overlap
      words_left -= depth;
      const auto first = words.begin() + block.stack + 1;
      stack->second.assign(first, first + static_cast<std::ptrdiff_t>(depth));
    }
    return true;
  }

  LiveMemory& memory_;
  std::uint64_t changes_;
  const LiveProfile& layout_;
  const std::chrono::milliseconds patience_;
  Clock::time_point began_ = Clock::now();
  LiveSums sums_{};
  std::vector<LiveSample> log_;
  std::vector<profile::LiveHeapName> heap_names_ = std::vector<profile::LiveHeapName>(profile::kHeapNames);
};

struct Found {
  std::uint64_t changes = 0;
  LiveProfile layout{};
};

// Finds the profile that has most samples, if the process has several engines: one serves malloc, and others at most their
// library.
std::optional<Found> find_profile(LiveMemory& memory, const std::vector<LiveMemory::Mark>& marks,
                                  std::uint32_t& other_version) {
  std::optional<Found> best;
  std::uint64_t most = 0;
  for (const LiveMemory::Mark& mark : marks) {
    LiveListHead head{};
    std::uint32_t version = 0;
    if (mark.kind != LiveMemory::Kind::kList || !memory.read(mark.address, head)) continue;
    if (head.version != sync::kLiveListVersion || head.kind != sync::LiveList::kProfile) continue;
    if (!memory.read(head.layout, version)) continue;
    if (version != profile::kLiveProfileVersion) {
      other_version = version;
      continue;
    }
    Found found{.changes = head.changes};
    LiveSums sums{};
    if (!memory.read(head.layout, found.layout) || !memory.read(found.layout.sums, sums)) continue;
    if (found.layout.place_count > kMostPlaces || (best && sums.births <= most)) continue;
    best = found;
    most = sums.births;
  }
  return best;
}

bool has_engine(LiveMemory& memory, const std::vector<LiveMemory::Mark>& marks, std::uint32_t& other_version) {
  for (const LiveMemory::Mark& mark : marks) {
    std::uint32_t version = 0;
    if (mark.kind != LiveMemory::Kind::kEngine) continue;
    if (!memory.read(mark.address + offsetof(alloc::LiveDirectory, version), version)) continue;
    if (version == alloc::kLiveVersion) return true;
    other_version = version;
  }
  return false;
}

LiveRefusal why_not_found(LiveMemory& memory, const std::vector<LiveMemory::Mark>& marks, const std::string& maps,
                          std::uint32_t& other_version) {
  if (marks.empty() && (memory.error() == EPERM || memory.error() == ENOSYS)) return LiveRefusal::kMemoryNotToBeRead;
  if (other_version != 0) return LiveRefusal::kOtherVersion;
  if (has_engine(memory, marks, other_version)) return LiveRefusal::kNoProfile;
  if (other_version != 0) return LiveRefusal::kOtherVersion;
  return maps.find("/libfreehold.so") != std::string::npos ? LiveRefusal::kNotBegun : LiveRefusal::kNoFreehold;
}

// Returns that engine of the process that holds most, since others serve at most their own library; 0: it has no engine.
std::uint64_t find_engine(LiveMemory& memory, const std::vector<LiveMemory::Mark>& marks, LiveFigures* its = nullptr) {
  std::uint64_t best = 0, most = 0;
  for (const LiveMemory::Mark& mark : marks) {
    if (mark.kind != LiveMemory::Kind::kEngine) continue;
    const auto figures = read_live_figures(memory, mark.address);
    if (!figures || 1 + held_bytes(*figures) <= most) continue;
    most = 1 + held_bytes(*figures);
    best = mark.address;
    if (its != nullptr) *its = *figures;
  }
  return best;
}

// Blocks whose home is not known keep what others of their stack and size do on the average.
bool add_pins(LiveMemory& memory, const std::vector<LiveMemory::Mark>& marks, LiveHeapProfile& to) {
  LiveFigures figures;
  const std::uint64_t engine = find_engine(memory, marks, &figures);
  std::vector<PinningBlock> blocks;
  for (const LiveSampledBlock& block : to.blocks) blocks.push_back(block.pins);
  if (engine == 0 || !find_pinned(memory, engine, blocks)) return false;
  const auto figure = [&](LiveFigure which) { return figures[which].value_or(0); };
  const std::uint64_t used = figure(LiveFigure::kSlotBytes) + figure(LiveFigure::kReturnedBytes);
  to.free_bytes = figure(LiveFigure::kClassSpanBytes) - std::min(used, figure(LiveFigure::kClassSpanBytes));
  struct Mean {
    double page = 0, span = 0, others = 0, count = 0;
  };
  std::map<std::pair<std::uint64_t, std::uint64_t>, Mean> means;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    to.blocks[i].pins = blocks[i];
    if (!blocks[i].is_known) continue;
    Mean& mean = means[{to.blocks[i].stack, blocks[i].size}];
    mean.page += blocks[i].page.part;
    mean.span += blocks[i].span.part;
    mean.others += blocks[i].page.others;
    ++mean.count;
  }
  for (LiveSampledBlock& block : to.blocks) {
    const auto mean = means.find({block.stack, block.size});
    if (block.pins.is_known || !block.heap.empty() || mean == means.end()) continue;
    block.pins.page.part = mean->second.page / mean->second.count;
    block.pins.span.part = mean->second.span / mean->second.count;
    block.pins.page.others = static_cast<std::uint32_t>(mean->second.others / mean->second.count + 0.5);
  }
  return true;
}

// ---- switched from outside -----------------------------------------------------------------------------------------

// Addresses in the process.
struct Switch {
  std::uint64_t request = 0, distance = 0, until_look = 0;
  [[nodiscard]] bool is_whole() const { return request != 0 && distance != 0 && until_look != 0; }
};

Switch find_switch(LiveMemory& memory, const std::vector<LiveMemory::Mark>& marks) {
  const std::uint64_t engine = find_engine(memory, marks);
  if (engine == 0) return {};
  const auto address = [&](LiveFigure figure) { return address_of_figure(memory, engine, figure); };
  return {address(LiveFigure::kProfileRequest), address(LiveFigure::kProfileDistance), address(LiveFigure::kUntilLook)};
}

// Returns whether the kernel runs a filter of system calls on the process, which has no second thread. Its first profile
// needs one.
bool may_not_clone(pid_t pid) {
  constexpr std::uint64_t kFilter = 2;
  const std::string status = text_of_proc_file(proc_folder(pid) / "status");
  return number_in(status, "Seccomp:") == kFilter && number_in(status, "Threads:") == 1;
}

}  // namespace

LiveProfileAnswer read_live_profile(pid_t pid, bool pins, std::chrono::milliseconds patience) {
  LiveProfileAnswer answer;
  answer.refusal = refusal_of(pid);
  if (answer.refusal != LiveRefusal::kNone) return answer;
  LiveHeapProfile& to = answer.profile;
  to.maps = maps_of(pid);
  std::error_code no_link;
  to.program = std::filesystem::read_symlink(
      std::filesystem::path("/proc") / std::to_string(thread_with_memory(pid)) / "exe", no_link);
  LiveMemory memory(pid, kMostScannedBytes);
  const std::vector<LiveMemory::Mark> marks = memory.marks(to.maps);
  const auto refuse = [&](LiveRefusal why) {
    answer.refusal = refusal_meanwhile(pid, memory.error(), why);
    return answer;
  };
  const auto found = find_profile(memory, marks, answer.version);
  if (!found) return refuse(why_not_found(memory, marks, to.maps, answer.version));
  if (!ProfileReader(memory, found->changes, found->layout, patience).read(to)) return refuse(LiveRefusal::kChanging);
  if (pins && !add_pins(memory, marks, to)) return refuse(LiveRefusal::kChanging);
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  to.time_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(since_1970).count();
  // The new map has the libraries that came since.
  if (std::string now = maps_of(pid); !now.empty()) to.maps = std::move(now);
  return answer;
}

SwitchAnswer switch_profile(pid_t pid, std::uint64_t distance, std::chrono::milliseconds patience) {
  SwitchAnswer to;
  to.refusal = refusal_of(pid);
  if (to.refusal != LiveRefusal::kNone) return to;
  const std::string maps = maps_of(pid);
  LiveMemory memory(pid, kMostScannedBytes);
  const std::vector<LiveMemory::Mark> marks = memory.marks(maps);
  const auto refuse = [&](LiveRefusal why) {
    to.result = SwitchResult::kRefused;
    to.refusal = refusal_meanwhile(pid, memory.error(), why);
    return to;
  };
  const Switch at = find_switch(memory, marks);
  if (!at.is_whole()) return refuse(why_not_found(memory, marks, maps, to.version));
  const std::uint64_t command_at = at.request + offsetof(ProfileRequest, command);
  const auto command = static_cast<std::uint64_t>(distance != 0 ? ProfileCommand::kStart : ProfileCommand::kStop);
  const std::uint64_t answer_at = at.request + offsetof(ProfileRequest, answer);
  std::uint64_t now = 0, pending = 0;
  if (!memory.read(at.distance, now) || !memory.read(command_at, pending) || !memory.read(answer_at, to.answer))
    return refuse(LiveRefusal::kChanging);
  if (distance == 0 && now == 0) {  // a start that it has not come to is withdrawn
    to.result = pending == 0 ? SwitchResult::kNotOn : SwitchResult::kDone;
    if (pending != 0 && !memory.write(command_at, 0)) return refuse(LiveRefusal::kMemoryNotToBeRead);
    return to;
  }
  if (to.answer == ProfileAnswer::kChecked) {
    to.result = SwitchResult::kAnswered;
    return to;
  }
  if (distance != 0 && !find_profile(memory, marks, to.version) && may_not_clone(pid)) {
    to.result = SwitchResult::kMayNotClone;
    return to;
  }
  const auto ask = [&] { return memory.write(at.until_look, 0); };
  if (!memory.write(at.request + offsetof(ProfileRequest, distance), distance) || !memory.write(command_at, command) ||
      !ask())
    return refuse(LiveRefusal::kMemoryNotToBeRead);
  // A look at the kernel's limit of memory, which the process made since, hides that one was asked for.
  constexpr std::chrono::milliseconds kNap{10};
  for (const auto end = Clock::now() + patience; Clock::now() < end;) {
    std::this_thread::sleep_for(kNap);
    if (!memory.read(command_at, pending)) return refuse(LiveRefusal::kEnded);
    if (!ask()) return refuse(LiveRefusal::kEnded);  // also after the answer: then the process ends its helping thread
    if (pending != 0) continue;
    if (!memory.read(answer_at, to.answer)) return refuse(LiveRefusal::kEnded);
    to.result = to.answer == ProfileAnswer::kDone ? SwitchResult::kDone : SwitchResult::kAnswered;
    return to;
  }
  to.result = SwitchResult::kAsked;
  return to;
}

}  // namespace freehold::live
