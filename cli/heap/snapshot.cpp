// SPDX-License-Identifier: MIT
#include "cli/heap/profile.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/live_process.hpp"
#include "freehold/live/profile.hpp"

namespace freehold::cli::heap {

HeapProfile snapshot_of(pid_t pid) {
  const freehold::live::LiveProfileAnswer answer = freehold::live::read_live_profile(pid);
  constexpr LiveSubject kSubject{"heap profile", profile::kLiveProfileVersion};
  if (answer.refusal != freehold::live::LiveRefusal::kNone)
    throw Failure(kExitRefused, why_refused(answer.refusal, pid, kSubject, answer.version));
  const freehold::live::LiveHeapProfile& from = answer.profile;
  Recording recording;
  recording.head.program = from.program;
  recording.head.pid = static_cast<std::uint64_t>(pid);
  recording.head.mean = from.mean;
  recording.head.sampled = from.sampled;
  recording.head.lost = from.lost;
  recording.head.stacks.time_ns = from.time_ns;
  recording.maps = from.maps;
  for (const auto& [number, addresses] : from.stacks) recording.stacks.emplace(number, addresses);
  for (const freehold::live::LiveSampledBlock& block : from.blocks)
    recording.samples.push_back({{block.is_in_use, block.was_at_peak}, block.bytes, block.size, block.mean, block.stack});
  return profile_of(recording);
}

}  // namespace freehold::cli::heap
