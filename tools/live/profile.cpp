// SPDX-License-Identifier: MIT
#include "tools/live/profile.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
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
#include "tools/live/process.hpp"

namespace freehold::live {
namespace {
using profile::LivePlace;
using profile::LiveProfile;
using profile::LiveSample;
using profile::LiveSums;
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
    if (!read_places(places) || !read_log() || !memory_.read(layout_.mean, to.mean)) return false;
    to.sampled = sums_.births;
    to.lost = sums_.lost;
    std::set<std::uint64_t> now;  // blocks of the peak that are still in use
    for (const LivePlace& place : places) {
      if (place.block <= 1) continue;
      const bool was_at_peak = place.birth <= sums_.peak_birth;
      if (was_at_peak) now.insert(place.block);
      to.blocks.push_back({place.bytes, place.size, place.mean, place.stack, true, was_at_peak});
    }
    // One that was freed after its part of the table had been copied is in both.
    for (const LiveSample& one : log_)
      if (!now.contains(one.block)) to.blocks.push_back({one.bytes, one.size, one.mean, one.stack, false, true});
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

  // All at once; else in smaller parts, down to some that are copied within a microsecond.
  bool read_places(std::vector<LivePlace>& to) {
    constexpr std::size_t kLeast = 64;
    std::size_t part = std::max(to.size(), kLeast);
    for (std::size_t done = 0; done < to.size();) {
      const std::size_t n = std::min(part, to.size() - done);
      switch (copy(layout_.places + done * sizeof(LivePlace), to.data() + done, n * sizeof(LivePlace))) {
        case Copy::kWhole: done += n; break;
        case Copy::kUnreadable: return false;
        case Copy::kChanged:
          part = std::max(part / 2, kLeast);
          if (part == kLeast && Clock::now() - began_ > patience_) return false;
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

}  // namespace

LiveProfileAnswer read_live_profile(pid_t pid, std::chrono::milliseconds patience) {
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
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  to.time_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(since_1970).count();
  // The new map has the libraries that came since.
  if (std::string now = maps_of(pid); !now.empty()) to.maps = std::move(now);
  return answer;
}

}  // namespace freehold::live
