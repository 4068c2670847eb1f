#include "freehold/doctor/verdict.hpp"

#include <algorithm>
#include <array>

namespace freehold::doctor {
namespace {

constexpr std::array<std::string_view, kCauses> kNames{
    "none",     "allocator-lock", "remote-frees",    "allocator-false-sharing", "page-faults", "arena-bloat",
    "own-lock", "own-sharing",    "own-page-faults", "memory-bandwidth",        "cpu-quota",   "serial",
    "mixed",    "undecided"};

}  // namespace

std::string_view name_of(Cause cause) noexcept { return kNames[static_cast<std::size_t>(cause)]; }

std::optional<Cause> cause_of(std::string_view name) noexcept {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Cause>(found - kNames.begin());
}

bool blames_allocator(Cause cause) noexcept {
  switch (cause) {
    case Cause::kAllocatorLock:
    case Cause::kRemoteFrees:
    case Cause::kAllocatorFalseSharing:
    case Cause::kPageFaults:
    case Cause::kArenaBloat:
    case Cause::kMixed: return true;
    default: return false;
  }
}

Verdict verdict_of(const Experiment&, const Attribution*, const Attribution*) { return {}; }

}  // namespace freehold::doctor
