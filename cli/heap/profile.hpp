// SPDX-License-Identifier: MIT
// A heap profile with names: which call stacks hold how many blocks and bytes, now and at the peak. Read from what a process
// wrote (freehold/profile/write.cpp), or from JSON that was made of it.
#pragma once
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/live/profile.hpp"
#include "tools/live/refusal.hpp"
#include "tools/output/stack_profile.hpp"

namespace freehold::cli::heap {

// The moments that a profile has; each has two of the stacks' measures, blocks and bytes. And two views of what is in use,
// if a process that runs was asked for them: the free bytes that the blocks keep on their pages, and in their spans, where
// the blocks are the others that keep the same pages.
enum class Moment : std::uint8_t { kNow, kPeak, kPinned, kSpanPinned };
inline constexpr std::array kMoments = {Moment::kNow, Moment::kPeak, Moment::kPinned, Moment::kSpanPinned};
[[nodiscard]] constexpr std::size_t blocks_of(Moment moment) { return 2 * static_cast<std::size_t>(moment); }
[[nodiscard]] constexpr std::size_t bytes_of(Moment moment) { return blocks_of(moment) + 1; }

struct HeapProfile {
  std::string program;  // its file
  std::uint64_t pid = 0;
  std::uint64_t processes = 1;          // added here, each at its moments; `pid` is the first one's
  std::uint64_t mean = 0;               // distance of samples, bytes; 0: sampling was off by then
  std::uint64_t sampled = 0, lost = 0;  // blocks since the beginning; those that found no place
  StackProfile stacks;
  bool has_pins = false;
  std::uint64_t free_bytes = 0;                                     // then: in slots on pages that have not gone back
  std::vector<std::array<std::uint64_t, kMoments.size()>> samples;  // that each of the stacks' rows stands on, by moment
  std::vector<std::array<double, kMoments.size()>> variances;       // of the rows' bytes, by moment

  [[nodiscard]] double sum(std::size_t measure) const;
  [[nodiscard]] std::uint64_t sample_count(Moment moment) const;
};

// Says so in one line, with the way out.
[[nodiscard]] std::string why_no_profile_read(freehold::live::LiveRefusal refusal, pid_t pid, std::uint32_t version);
// Takes the profile of a running process, which does not notice. Throws Failure(kExitRefused), with one line and the way
// out.
[[nodiscard]] HeapProfile snapshot_of(pid_t pid, bool pins = false);

// Keeps that look at a process under Freehold, whose profile is on, at which most was pinned.
class MostPinned {
 public:
  void look(pid_t pid);
  // Returns pins_advice_of(); empty: nothing was pinned, or nothing could be read.
  [[nodiscard]] std::string advice() const;

 private:
  freehold::live::LiveHeapProfile said_;
  pid_t pid_ = 0;
  double most_ = 0;  // bytes
};

// Throws Failure(kExitRefused), with one line: no such file, another kind of file, one that was cut.
[[nodiscard]] HeapProfile read_profile(const std::filesystem::path& file);
// `text` as a process wrote it; `name` is for complaints.
[[nodiscard]] HeapProfile profile_of_recording(std::string_view text, const std::string& name);
// Adds the profiles of several processes. Pre: not empty.
[[nodiscard]] HeapProfile merged(std::span<const HeapProfile> profiles);

[[nodiscard]] nlohmann::ordered_json json_of(const HeapProfile& profile);
[[nodiscard]] HeapProfile profile_of_json(const nlohmann::json& json);

// Returns the growth from one profile to the next: one moment whose values may be negative. The rest is the later one's.
[[nodiscard]] HeapProfile growth(const HeapProfile& before, const HeapProfile& after);

}  // namespace freehold::cli::heap
