// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/code_growth.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace freehold::doctor {
namespace {

constexpr std::size_t kFewSamples = 100;   // of a run: less says nothing
constexpr double kMostUnknown = 0.3;       // share of a run's CPU time, in code of no file
constexpr double kTells = 0.15;            // share of the CPU time, at least, must lie where work is, or nothing is known
constexpr std::uint64_t kPlaceBytes = 16;  // instructions that stand together are sampled for each other
constexpr double kMixture = 0.15;   // of the CPU time: so much that does not grow with the threads is work that they share,
constexpr double kMostlyGrows = 4;  // unless so many times as much does: then one thread does it, at first
constexpr double kBeyondGrowth = 1.4;  // times the growth of the threads: no work grows like that
constexpr double kStandardErrors = 3;  // beyond chance
constexpr double kSeenToGrow = 0.1;    // share of the CPU time, beyond the work: less says nothing of where it is
constexpr double kMallocsPart = 0.33;  // share of that: malloc may be why

#if defined(__x86_64__)
constexpr std::size_t kAround = 16;  // bytes before and behind: a loop that spins is shorter

// lock xadd, lock cmpxchg, lock or ..., also with a prefix for wide registers; xchg with memory locks by itself. All of them
// name memory: bytes within another instruction, as those of the C library's `cmp $-4096, %rax` and of a far jump, do not.
bool is_atomic(std::span<const std::uint8_t> code, std::uint8_t before) {
  std::size_t i = code[0] == 0xF0 ? 1 : 0;
  const bool has_lock = i == 1;
  if (i < code.size() && (code[i] & 0xF0) == 0x40) ++i;  // REX
  if (i + 1 >= code.size()) return false;
  const bool names_memory = code[i + 1] < 0xC0;
  if (code[i] == 0x86 || code[i] == 0x87) return names_memory && before != 0x0F;
  if (!has_lock) return false;
  constexpr std::uint8_t kOperations[] = {0x01, 0x09, 0x11, 0x19, 0x21, 0x29, 0x31, 0x80, 0x81, 0x83, 0xFE, 0xFF};
  return code[i] == 0x0F || code[i] == 0x66 ||
         (names_memory && std::ranges::find(kOperations, code[i]) != std::end(kOperations));
}
bool is_pause(std::span<const std::uint8_t> code) { return code.size() >= 2 && code[0] == 0xF3 && code[1] == 0x90; }
constexpr std::size_t kSystemCallBytes = 2;
bool is_system_call(std::span<const std::uint8_t> code) { return code[0] == 0x0F && code[1] == 0x05; }
// mov $24, %eax; syscall: what the C library's sched_yield is.
bool is_yield(std::span<const std::uint8_t> code) {
  constexpr std::uint8_t kYield[] = {0xB8, 0x18, 0x00, 0x00, 0x00, 0x0F, 0x05};
  return code.size() >= sizeof kYield && std::memcmp(code.data(), kYield, sizeof kYield) == 0;
}
#elif defined(__aarch64__)
constexpr std::size_t kAround = 32;

std::uint32_t word_of(std::span<const std::uint8_t> code) {
  std::uint32_t word = 0;
  if (code.size() >= sizeof word) std::memcpy(&word, code.data(), sizeof word);
  return word;
}
bool is_atomic(std::span<const std::uint8_t> code, std::uint8_t) {
  const std::uint32_t word = word_of(code);
  return (word & 0x3F000000) == 0x08000000 ||  // ldxr, stxr, cas
         ((word & 0x3B200C00) == 0x38200000);  // ldadd, swp ...
}
constexpr std::size_t kSystemCallBytes = 4;
bool is_system_call(std::span<const std::uint8_t> code) { return word_of(code) == 0xD4000001; }  // svc #0
bool is_pause(std::span<const std::uint8_t> code) {
  const std::uint32_t word = word_of(code);
  return word == 0xD503203F || word == 0xD5033FDF || word == 0xD503205F;  // yield, isb, wfe
}
// mov x8, #124; svc #0
bool is_yield(std::span<const std::uint8_t> code) {
  return word_of(code) == 0xD2800F88 && code.size() >= 8 && word_of(code.subspan(4)) == 0xD4000001;
}
#else
#error "which instructions are atomic, and which pause?"
#endif

struct Times {
  double alone = 0, all = 0;
  Instruction instruction = Instruction::kPlain;
  CodeOrigin origin = CodeOrigin::kProgram;
  std::uint64_t address = 0;
  double hottest = 0;
};
using Merged = std::map<CodePlace, Times>;

void add(Merged& merged, const CodeSamples& samples, double Times::* to) {
  for (const auto& [place, time] : samples.places) {
    Times& times = merged[{place.file, place.offset / kPlaceBytes}];
    times.*to += time.seconds;
    times.instruction = std::max(times.instruction, time.instruction);
    times.origin = std::max(times.origin, time.origin);
    if (to == &Times::all && time.seconds > times.hottest) {
      times.hottest = time.seconds;
      times.address = time.address;
    }
  }
}

double total_of(const CodeSamples& samples) {
  double seconds = samples.unknown_s;
  for (const auto& [place, time] : samples.places) seconds += time.seconds;
  return seconds;
}

// Threads that wait for each other's lines grow like work that each brings along, where they hold a lock or write what
// others read. What takes the same time beside that may be the work that they share, or what one thread does before the
// others.
bool is_ambiguous(double same, double grown) { return grown > same && same >= kMixture && grown < kMostlyGrows * same; }

// The share of `whole` that is beyond the work, added to `share`; the greatest address is kept.
struct Excess {
  double seconds = 0;
  double greatest = 0;
  std::uint64_t address = 0;
  void add(double more, std::uint64_t at) {
    seconds += more;
    if (more <= greatest) return;
    greatest = more;
    address = at;
  }
};

}  // namespace

Instruction instruction_in(std::span<const std::uint8_t> code, std::size_t at) noexcept {
  const std::size_t begin = at > kAround ? at - kAround : 0;
  const std::size_t end = std::min(code.size(), at + kAround);
  const bool calls = at >= kSystemCallBytes && at <= code.size() && is_system_call(code.subspan(at - kSystemCallBytes));
  Instruction found = calls ? Instruction::kSystemCall : Instruction::kPlain;
  for (std::size_t i = begin; i < end; ++i) {
    const auto rest = code.subspan(i, end - i);
    if (is_pause(rest) || is_yield(rest)) return Instruction::kPause;
    // A CPU waits for the instruction before the one that it was found at.
    if (i < at && is_atomic(rest, i == 0 ? 0 : code[i - 1])) found = Instruction::kAtomic;
  }
  return found;
}

bool grows_outside_malloc(const CodeGrowth& growth) noexcept {
  const double elsewhere = growth.spinning + growth.locking + growth.contended + growth.slowed;
  const double seen = elsewhere + growth.allocator;
  return growth.known && seen >= kSeenToGrow && growth.allocator < kMallocsPart * seen;
}

CodeGrowth growth_between(const CodeSamples& alone, const CodeSamples& all, double factor) {
  CodeGrowth growth;
  growth.lock_sleepers = all.lock_sleepers;
  growth.lock_sleeps = all.lock_sleeps;
  const double whole = total_of(all), whole_alone = total_of(alone);
  if (alone.samples < kFewSamples || all.samples < kFewSamples || factor <= 1) return growth;
  if (all.unknown_s > kMostUnknown * whole || alone.unknown_s > kMostUnknown * whole_alone) return growth;
  const double a_sample = whole / static_cast<double>(all.samples);
  Merged merged;
  add(merged, alone, &Times::alone);
  add(merged, all, &Times::all);
  const double half_way = std::sqrt(factor);
  for (const auto& [place, times] : merged) {
    if (times.all <= half_way * times.alone)
      growth.same += times.all / whole;
    else if (times.instruction == Instruction::kPlain && times.all <= kBeyondGrowth * factor * times.alone)
      growth.grown += times.all / whole;  // where threads may wait, in the kernel too, more time is not always more work
  }
  growth.known = true;
  growth.work_known = growth.same + growth.grown >= kTells && !is_ambiguous(growth.same, growth.grown);
  growth.work_grows = growth.work_known && growth.grown > growth.same;
  const double work = growth.work_grows || !growth.work_known ? factor : 1;
  Excess allocator, private_locking, spinning, locking, contended, slowed, team_waiting;
  for (const auto& [place, times] : merged) {
    if (times.origin >= CodeOrigin::kPrivateLock) growth.in_malloc += times.all / whole;
    const double expected = work * times.alone, more = times.all - expected;
    if (more <= kStandardErrors * std::sqrt(a_sample * (times.all + work * expected))) continue;
    if (times.origin >= CodeOrigin::kPrivateLock) {
      allocator.add(more, times.address);
      if (times.origin == CodeOrigin::kPrivateLock) private_locking.add(more, times.address);
    } else if (times.instruction == Instruction::kPause)
      (times.origin == CodeOrigin::kTeam ? team_waiting : spinning).add(more, times.address);
    else if (times.origin == CodeOrigin::kLock ||
             (times.origin == CodeOrigin::kRuntime && times.instruction == Instruction::kAtomic))
      locking.add(more, times.address);
    else if (times.origin == CodeOrigin::kRuntime || times.origin == CodeOrigin::kRuntimeWait)
      continue;
    else if (times.instruction == Instruction::kAtomic)
      contended.add(more, times.address);
    else if (times.all > kBeyondGrowth * expected)
      slowed.add(more, times.address);
  }
  growth.allocator = allocator.seconds / whole;
  growth.in_malloc_error = std::sqrt(growth.in_malloc * (1 - growth.in_malloc) / static_cast<double>(all.samples));
  growth.team_waiting = team_waiting.seconds / whole;
  growth.spinning = spinning.seconds / whole;
  growth.private_locking = private_locking.seconds / whole;
  growth.locking = locking.seconds / whole;
  growth.contended = contended.seconds / whole;
  growth.slowed = slowed.seconds / whole;
  growth.hottest_spin = spinning.address;
  growth.hottest_contended = contended.seconds >= slowed.seconds ? contended.address : slowed.address;
  return growth;
}

}  // namespace freehold::doctor
