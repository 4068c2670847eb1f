// SPDX-License-Identifier: MIT
// The inspector of checked mode: which block is around a pointer, and whether it is sound.
//
// The raw block around a pointer comes from the source of memory, everything else from its header (block.hpp). Looks are
// from the quick one at canaries, which most blocks pass, to the one that reports what is wrong, and where. Nothing here
// changes a block or takes a lock.
//
//   Source: as CheckedBlocks has it; here class_at(), find() and the slots' sizes.
//
// Any thread that may read the block: who frees or uses it, or one that has all locks. Errors: base::fatal() for misuse.
// Cost: a hash, the bytes compared.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "freehold/base/check.hpp"
#include "freehold/check/block.hpp"
#include "freehold/check/misuse_report.hpp"
#include "freehold/check/settings.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::check {

template <sync::Atomics A, class Source>
class BlockInspector {
 public:
  using Raw = typename Source::Raw;
  using BlockHeader = Header<A>;

  // The facts about a pointer: the raw block around it, and what its header says.
  struct Found {
    const void* pointer = nullptr;
    Raw raw{};
    State state = State::kDamaged;
    Contents contents{};
    [[nodiscard]] char* start() const noexcept { return static_cast<char*>(raw.start); }
    [[nodiscard]] char* block() const noexcept { return start() + contents.offset; }
    [[nodiscard]] char* end() const noexcept { return block() + contents.bytes; }
    // Returns where the canary behind the block ends.
    [[nodiscard]] char* guarded() const noexcept { return std::min(end() + kMostCanary, start() + raw.bytes); }
  };

  constexpr BlockInspector() noexcept = default;
  // Before the first other call.
  void init(Source& source, const Settings& settings, const Secret& secret) noexcept {
    source_ = &source;
    settings_ = settings;
    secret_ = secret;
  }

  [[nodiscard]] static BlockHeader& header(void* raw) noexcept { return *static_cast<BlockHeader*>(raw); }
  // Blocks of large raw ones begin on a page of their own.
  [[nodiscard]] bool is_large(const void* raw) noexcept { return source_->class_at(raw) == 0; }
  // Returns where the canary between header and block begins.
  [[nodiscard]] static char* gap_of(char* raw, char* block) noexcept {
    char* const gap = raw + BlockHeader::bytes();
    return block - gap > static_cast<std::ptrdiff_t>(kMostCanary) ? block - kMostCanary : gap;
  }

  [[nodiscard]] Found look_up(const void* pointer) noexcept { return found_at(source_->find(pointer), pointer); }
  [[nodiscard]] Found found_at(const Raw& raw, const void* pointer) noexcept {
    Found found{pointer, raw};
    if (raw.start == nullptr || !raw.in_use) return found;
    found.state = header(raw.start).state(secret_);
    if (found.state == State::kLive || found.state == State::kFreed) found.contents = header(raw.start).contents();
    return found;
  }

  [[nodiscard]] bool is_sealed(const Found& found) noexcept {
    return found.raw.start != nullptr && is_large(found.raw.start) &&
           (found.state == State::kFreed || (found.state == State::kLive && found.contents.bytes == 0));
  }

  // Returns whether a block may be freed, or used; reports why not.
  [[nodiscard]] bool admit(const Found& found, const Claim& claim) noexcept {
    using base::HeapError;
    if (found.raw.start == nullptr) return refuse(HeapError::kForeignPointer, found);
    if (!found.raw.in_use || found.state == State::kSpare) return refuse(HeapError::kDoubleFree, found);
    if (found.state == State::kDamaged) return refuse(HeapError::kWriteBefore, found);
    if (found.pointer != found.block()) return refuse(HeapError::kInteriorPointer, found);
    if (found.state == State::kFreed) return refuse(HeapError::kDoubleFree, found);
    return admit_claim(found, claim) && is_sound(found);
  }
  [[nodiscard]] bool admit_claim(const Found& found, const Claim& claim) noexcept {
    using base::HeapError;
    if (!is_of_family(claim, found.contents.family)) return refuse(HeapError::kOtherFamily, found, &claim);
    return !settings_.sizes || fits(claim, found.contents) || refuse(HeapError::kWrongSize, found, &claim);
  }
  [[nodiscard]] bool is_of_family(const Claim& claim, Family family) const noexcept {
    return !settings_.family || claim.family == family || claim.family == Family::kAny || family == Family::kAny;
  }
  [[nodiscard]] static bool fits(const Claim& claim, const Contents& block) noexcept {
    if (claim.bytes != Claim::kUnsaid && claim.bytes != block.bytes) return false;
    if (claim.alignment == Claim::kUnsaid || claim.alignment == block.alignment) return true;
    // aligned_alloc() with an alignment that every block has is malloc().
    constexpr std::size_t kOfEveryBlock = 16;
    return block.family == Family::kMalloc && block.alignment == 0 && claim.alignment <= kOfEveryBlock;
  }
  [[nodiscard]] bool refuse(base::HeapError error, const Found& found, const Claim* claim = nullptr) noexcept {
    report_misuse({error, found.pointer, found.block(), found.state, found.contents, claim, nullptr});
    return false;
  }
  // Returns whether canaries, or the filling of a freed block, are as they were; reports what is not.
  [[nodiscard]] bool is_sound(const Found& found) noexcept {
    using base::HeapError;
    if (!found.raw.in_use) return true;
    if (found.state == State::kDamaged) return damaged(HeapError::kWriteBefore, found, found.start() + BlockHeader::bytes());
    if (found.state == State::kLive && settings_.canary) {
      if (!header(found.raw.start).has_canary(secret_)) return damaged(HeapError::kWriteBefore, found, found.block() - 8);
      if (const char* at = find_damage(secret_, gap_of(found.start(), found.block()), found.block()); at != nullptr)
        return damaged(HeapError::kWriteBefore, found, at);
      if (is_sealed(found)) return true;
      if (const char* at = find_damage(secret_, found.end(), found.guarded()); at != nullptr)
        return damaged(HeapError::kWriteBehind, found, at);
    }
    if (found.state == State::kFreed && settings_.fill && !is_large(found.raw.start))
      if (const char* at = find_write(found.block(), found.end()); at != nullptr)
        return damaged(HeapError::kWriteToFreed, found, at);
    return true;
  }
  // The same for any raw block in use, whatever its state.
  bool look_at(void* raw, std::size_t bytes) noexcept { return looks_sound(raw, bytes) || look_closely({raw, bytes, true}); }
  bool look_closely(const Raw& raw) noexcept { return is_sound(found_at(raw, nullptr)); }

 private:
  // The quick half of is_sound(): for most blocks, whether all is as it was.
  [[nodiscard]] bool looks_sound(void* raw, std::size_t bytes) noexcept {
    const BlockHeader& h = header(raw);
    const State state = h.state(secret_);
    if (state == State::kSpare) return true;
    const Outline outline = h.outline();
    const char *const block = static_cast<const char*>(raw) + outline.offset, *const end = block + outline.bytes;
    if (state == State::kFreed) return !settings_.fill || is_large(raw) || find_write(block, end) == nullptr;
    if (state != State::kLive || outline.offset != BlockHeader::bytes()) return false;
    return !settings_.canary ||
           (h.has_canary(secret_) &&
            find_damage(secret_, end, std::min(end + kMostCanary, static_cast<const char*>(raw) + bytes)) == nullptr);
  }
  [[nodiscard]] bool damaged(base::HeapError error, const Found& found, const char* at) noexcept {
    const char* const block = found.state == State::kDamaged ? found.start() + BlockHeader::bytes() : found.block();
    report_misuse(
        {error, found.pointer != nullptr ? found.pointer : block, block, found.state, found.contents, nullptr, at});
    return false;
  }

  Source* source_ = nullptr;
  Settings settings_{};
  Secret secret_{};
};

}  // namespace freehold::check
