// SPDX-License-Identifier: MIT
#include "freehold/pool/checked_slots.hpp"

#include <bit>
#include <cstring>

#include "freehold/base/check.hpp"
#include "freehold/base/poison.hpp"
#include "freehold/check/call_stacks.hpp"
#include "freehold/check/misuse_report.hpp"
#include "freehold/os/call_stack.hpp"

namespace freehold::pool {

using base::HeapError;
using check::State;

namespace {

// Slots that a quarantine has room for; a power of two, or 0.
[[nodiscard]] std::size_t quarantine_slots(const SlotRoom& room, const PoolShape& shape) noexcept {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  return std::bit_floor(
      std::min({static_cast<std::size_t>(check::settings().quarantine) / room.stride_bytes, shape.slots, kMost}));
}

[[nodiscard]] std::uint64_t random_word(const void* pool) noexcept {
  // The addresses of stack and heap are random where the system wants it; what the program writes by mistake knows neither.
  return check::mix(reinterpret_cast<std::uintptr_t>(&pool)) ^ reinterpret_cast<std::uintptr_t>(pool);
}

}  // namespace

SlotRoom SlotRoom::of(const PoolShape& shape) noexcept {
  // In every build: each pool's constructor comes here, and nothing else does.
  if (shape.slots == 0 || shape.slot_bytes == 0 || !std::has_single_bit(shape.alignment)) [[unlikely]]
    base::assertion_failed("PoolShape: slots and slot_bytes are 1 at least, and alignment is a power of two", __FILE__,
                           __LINE__);
  const std::size_t bytes = base::align_up(shape.slot_bytes, shape.alignment);
  const std::size_t front = base::align_up(check::Header<sync::NativeAtomics>::bytes(), shape.alignment);
  const bool has_room = shape.memory == nullptr || shape.memory_has_room;
  constexpr std::size_t kMostBytes =
      std::size_t{1} << (sizeof(std::size_t) == 8 ? 47 : 28);  // more are not to be had, and sums would overflow
  // AddressSanitizer looks at the slots itself.
  if (base::kAddressSanitizer || !has_room || bytes > kMostBytes || front > kMostBytes || !check::settings().on)
    return {0, bytes, bytes};
  return {front, bytes, base::align_up(front + bytes + check::kLeastSlack, shape.alignment)};
}

std::unique_ptr<CheckedSlots> CheckedSlots::make(const SlotRoom& room, const PoolShape& shape, bool keeps) {
  return room.is_checked() ? std::make_unique<CheckedSlots>(room, shape, keeps) : nullptr;
}

CheckedSlots::CheckedSlots(const SlotRoom& room, const PoolShape& shape, bool keeps)
    : room_(room),
      alignment_(shape.alignment),
      secret_(random_word(this)),
      ring_(keeps ? std::max<std::size_t>(quarantine_slots(room, shape), 1) : 1) {
  kept_.init(ring_.data(), keeps ? quarantine_slots(room, shape) : 0);
  const unsigned depth = check::settings().stacks;
  if (depth != 0 && os::prepare_call_stacks()) check::keep_call_stacks(depth);
}

void* CheckedSlots::on_allocate(void* slot) noexcept {
  const State state = state_of(slot);
  if (state == State::kLive)
    base::fatal(HeapError::kCorruption, slot);  // handed out twice
  else
    (void)look_at(slot, state);
  Header& header = header_of(slot);
  header.make_live(secret_, {room_.slot_bytes, alignment_, check::Family::kPool, static_cast<std::uint32_t>(room_.front),
                             check::note_call_stack(), 0});
  const check::Settings& settings = check::settings();
  if (settings.canary) {
    check::write_canary(secret_, gap_of(slot), static_cast<char*>(slot));
    check::write_canary(secret_, end_of(slot), guarded_end_of(slot));
  }
  if (settings.contents >= 0) std::memset(slot, settings.contents, room_.slot_bytes);
  ++live_;
  return slot;
}

bool CheckedSlots::on_free(void* slot) noexcept {
  const std::uint64_t mark = header_of(slot).mark();
  const State state = state_of(slot);
  if (state == State::kSpare || state == State::kFreed) return report(HeapError::kDoubleFree, slot, state);
  if (!look_at(slot, state)) return false;
  header_of(slot).end_alone(mark, check::note_call_stack());
  if (check::settings().fill) std::memset(slot, check::kFreedByte, room_.slot_bytes);
  --live_;
  return true;
}

void* CheckedSlots::keep(void* slot) noexcept {
  if (kept_.capacity() == 0) return slot;
  void* const leaves = kept_.full() ? kept_.pop().raw : nullptr;
  kept_.push({slot, room_.stride_bytes});
  return leaves;
}

void* CheckedSlots::take_kept() noexcept { return kept_.empty() ? nullptr : kept_.pop().raw; }

void* CheckedSlots::take_long_kept() noexcept { return kept_.size() > kept_.capacity() / 4 * 3 ? kept_.pop().raw : nullptr; }

bool CheckedSlots::look_at(void* slot, State state) noexcept {
  const check::Settings& settings = check::settings();
  auto* const begin = static_cast<char*>(slot);
  if (state == State::kDamaged) return report(HeapError::kWriteBefore, slot, state, begin - 1);
  if (state == State::kLive && settings.canary) {
    if (!header_of(slot).has_canary(secret_)) return report(HeapError::kWriteBefore, slot, state, begin - 1);
    if (const char* at = check::find_damage(secret_, gap_of(slot), begin); at != nullptr)
      return report(HeapError::kWriteBefore, slot, state, at);
    if (const char* at = check::find_damage(secret_, end_of(slot), guarded_end_of(slot)); at != nullptr)
      return report(HeapError::kWriteBehind, slot, state, at);
  }
  if (state == State::kFreed && settings.fill)
    if (const char* at = check::find_write(begin, end_of(slot)); at != nullptr)
      return report(HeapError::kWriteToFreed, slot, state, at);
  return true;
}

// Memory that was never handed out, or went back to the system, reads as zero.
State CheckedSlots::state_of(void* slot) const noexcept {
  const Header& header = header_of(slot);
  return header.is_blank() ? State::kSpare : header.state(secret_);
}

char* CheckedSlots::gap_of(void* slot) const noexcept {
  auto* const begin = static_cast<char*>(slot);
  return begin - std::min(room_.front - Header::bytes(), check::kMostCanary);
}

char* CheckedSlots::guarded_end_of(void* slot) const noexcept {
  char* const raw_end = static_cast<char*>(slot) - room_.front + room_.stride_bytes;
  return std::min(end_of(slot) + check::kMostCanary, raw_end);
}

bool CheckedSlots::report(HeapError error, void* slot, State state, const char* at) const noexcept {
  check::Contents contents;
  if (state == State::kLive || state == State::kFreed) contents = header_of(slot).contents();
  check::report_misuse({error, slot, slot, state, contents, nullptr, at});
  return false;
}

}  // namespace freehold::pool
