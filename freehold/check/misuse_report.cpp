// SPDX-License-Identifier: MIT
#include "freehold/check/misuse_report.hpp"

#include "freehold/check/call_stacks.hpp"
#include "freehold/check/report.hpp"

namespace freehold::check {
namespace {

// The byte's place, seen from the block.
void say_where(const Misuse& m) noexcept {
  const char* const begin = static_cast<const char*>(m.block);
  const char* const end = begin + m.contents.bytes;
  const void* const at = m.at;
  const auto distance = [](const char* from, const char* to) { return static_cast<std::size_t>(to - from); };
  if (m.at >= end)
    detail("first byte written: ", at, ", ", distance(end, m.at) + 1, " behind the end");
  else if (m.at < begin)
    detail("bytes written before the block, at ", at, " or near it");
  else
    detail("first byte written: ", at, ", at offset ", distance(begin, m.at));
}

[[nodiscard]] const char* freed_by(Family family) noexcept {
  switch (family) {
    case Family::kNew: return "delete";
    case Family::kNewArray: return "delete[]";
    case Family::kHeap: return "a private heap";
    default: return "free";
  }
}

void say_claim(const Misuse& m) noexcept {
  if (m.error == base::HeapError::kOtherFamily) {
    detail("freed by ", freed_by(m.claim->family));
    return;
  }
  if (m.claim->bytes != Claim::kUnsaid) detail("freed with the size ", m.claim->bytes);
  if (m.claim->alignment != Claim::kUnsaid) detail("freed with the alignment ", m.claim->alignment);
}

}  // namespace

void say_misuse(const void* context) noexcept {
  const Misuse& m = *static_cast<const Misuse*>(context);
  if (m.state != State::kLive && m.state != State::kFreed) return;
  if (m.contents.alignment != 0)
    detail("block of ", m.contents.bytes, " bytes at ", m.block, ", by ", name_of(m.contents.family), ", aligned to ",
           m.contents.alignment);
  else
    detail("block of ", m.contents.bytes, " bytes at ", m.block, ", by ", name_of(m.contents.family));
  if (m.at != nullptr) say_where(m);
  if (m.claim != nullptr) say_claim(m);
  detail_call_stack("allocated at:", m.contents.allocated_at);
  if (m.state == State::kFreed) detail_call_stack("freed at:", m.contents.freed_at);
  hint_at_lines();
}

void report_misuse(const Misuse& misuse) noexcept { base::fatal(misuse.error, misuse.pointer, say_misuse, &misuse); }

}  // namespace freehold::check
