// SPDX-License-Identifier: MIT
// Checked mode: every allocation and every free of a program, looked at. block.hpp shows a block's layout.
//
// A free looks for the raw block around the pointer, at the header there, at family, size and canaries; then it marks the
// block as freed, fills it, or makes its pages inaccessible if it is large, and puts it into a quarantine. Where that is
// full, the oldest block becomes a spare one of its class; spare ones are handed out in random order, and what was written
// to them since they were freed is found then. There are kShards of spare blocks and quarantines, each with a lock; a thread
// uses the one of its number.
//
//   Source: where raw blocks come from, a class, 0 for large ones, and a size each.
//     Raw        {void* start; std::size_t bytes; bool in_use;}, as alloc::BlockPlace; none if start is null
//     class_of(bytes, alignment), slot_bytes(c), kClasses
//     take(c, slots, n) -> how many, give(c, slots, n)
//     allocate_large(bytes, alignment, zero), free_large(raw), resize_large(raw, bytes) -> raw or null, large_bytes(raw)
//     kPageBytes, seal(pages, bytes), unseal(pages, bytes): inaccessible and without content, and not any more
//     find(address) -> Raw around it, for_each(f): f(Raw) for all in use
//
// Locks: one shard's at a time, a second one only where nobody holds it, all of them in order for a look at all blocks. The
// caller keeps forks out. Errors: null where memory is exhausted, after the quarantine was emptied; base::fatal() for
// misuse. Any thread. Cost: a lock, a hash or two, the bytes filled and compared.
#pragma once
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/check/block.hpp"
#include "freehold/check/misuse_report.hpp"
#include "freehold/check/quarantine.hpp"
#include "freehold/check/settings.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::check {

template <sync::Atomics A, class Source>
class CheckedBlocks {
 public:
  using Raw = typename Source::Raw;
  using BlockHeader = Header<A>;
  static constexpr unsigned kShards = 16;

  constexpr CheckedBlocks() noexcept = default;

  // Bytes of zeroed memory that init() needs.
  [[nodiscard]] static std::size_t memory_bytes(const Settings& settings) noexcept {
    return kShards * (sizeof(Shard) + ring_entries(settings) * sizeof(Quarantine::Entry));
  }
  // Before the first other call. `random`: anything that an attacker does not know.
  void init(Source& source, const Settings& settings, void* memory, std::uint64_t random) noexcept {
    source_ = &source;
    settings_ = settings;
    secret_ = Secret(random);
    shards_ = static_cast<Shard*>(memory);
    auto* ring = reinterpret_cast<Quarantine::Entry*>(shards_ + kShards);
    for (unsigned i = 0; i < kShards; ++i, ring += ring_entries(settings)) {
      new (&shards_[i]) Shard;
      shards_[i].random = mix(random + i);
      shards_[i].quarantine.init(ring, ring_entries(settings));
    }
  }

  // A block as asked for; null: no memory. `zeroed`: it reads as zero, else it is filled as the settings say.
  [[nodiscard]] void* allocate(const Request& request, bool zeroed, std::uint32_t stack) noexcept {
    Shard& shard = own_shard();
    const sync::Guard guard(shard.lock);
    const Placed placed = place(shard, request);
    if (placed.raw == nullptr) return nullptr;
    write_header(placed, request, stack);
    char* const block = placed.raw + placed.offset;
    if (zeroed && !placed.zero)
      std::memset(block, 0, request.bytes);
    else if (!zeroed && settings_.contents >= 0)
      std::memset(block, settings_.contents, request.bytes);
    return block;
  }

  // Returns whether the block was freed; false after a report.
  bool deallocate(void* block, const Claim& claim, std::uint32_t stack) noexcept {
    Shard& shard = own_shard();
    const sync::Guard guard(shard.lock);
    const Found found = look_up(block);
    if (!admit(found, claim)) return false;
    end(shard, found, stack);
    return true;
  }

  // Another block with the content of the old one, as far as both reach, unless it is to be as large as it is; null: no
  // memory, the old one stays.
  [[nodiscard]] void* reallocate(void* block, std::size_t bytes, std::uint32_t stack) noexcept {
    Shard& shard = own_shard();
    const sync::Guard guard(shard.lock);
    const Found found = look_up(block);
    if (!admit(found, Claim{})) return errno = EINVAL, nullptr;
    // What realloc() returns is no aligned block any more.
    if (bytes == found.contents.bytes && found.contents.alignment == 0) return block;
    const Request request{bytes, 0, Family::kMalloc};
    if (void* const resized = resize_in_place(found, request, stack); resized != nullptr) return resized;
    const Placed placed = place(shard, request);
    if (placed.raw == nullptr) return nullptr;
    write_header(placed, request, stack);
    char* const fresh = placed.raw + placed.offset;
    const std::size_t kept = std::min(bytes, found.contents.bytes);
    std::memcpy(fresh, block, kept);
    if (settings_.contents >= 0) std::memset(fresh + kept, settings_.contents, bytes - kept);
    end(shard, found, stack);
    return fresh;
  }

  // Exactly what was asked for; 0, and a report, if that is no live block.
  [[nodiscard]] std::size_t usable_size(const void* block) noexcept {
    const Found found = look_up(block);
    return admit(found, Claim{Family::kAny, Claim::kUnsaid, Claim::kUnsaid}) ? found.contents.bytes : 0;
  }

  // For a handler of faults: whether the address lies in a large block that was freed, and the report of an access to it,
  // unless the block is there no more: false.
  [[nodiscard]] bool is_sealed(const void* address) noexcept { return is_sealed(look_up(address)); }
  [[nodiscard]] bool report_access(const void* address) noexcept {
    const Found found = look_up(address);
    if (!is_sealed(found)) return false;
    const Misuse misuse{base::HeapError::kUseOfFreed, address, found.block(), found.state, found.contents, nullptr, nullptr};
    (void)base::report(misuse.error, address, say_misuse, &misuse);
    return true;
  }

  // Looks at all blocks, reports those that are damaged. Returns how many. Other threads wait meanwhile.
  std::size_t check_all() noexcept {
    std::size_t damaged = 0;
    with_all_locks([&] { source_->for_each([&](const Raw& raw) { damaged += is_sound(found_at(raw, nullptr)) ? 0 : 1; }); });
    return damaged;
  }
  // Calls f(contents, address) for each live block. Other threads wait meanwhile; f allocates nothing.
  template <class F>
  void for_each_live(F&& f) noexcept {
    with_all_locks([&] {
      source_->for_each([&](const Raw& raw) {
        const Found found = found_at(raw, nullptr);
        if (found.state == State::kLive) f(found.contents, found.block());
      });
    });
  }
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }

  // In a fork's child, where nobody else is inside.
  void after_fork_in_child() noexcept {
    for (unsigned i = 0; i < kShards; ++i) shards_[i].lock.reset();
  }

 private:
  static constexpr unsigned kMostSpare = 16;                        // of a class, in a shard
  static constexpr std::size_t kMostSpareBytes = 64 * 1024;         // of those, taken at once
  static constexpr std::size_t kMovedBytes = std::size_t{1} << 20;  // from here on pages are moved, not copied

  struct Spare {
    unsigned count = 0;
    void* slots[kMostSpare];
  };
  struct alignas(base::kCacheLine) Shard {
    sync::Mutex<A> lock;
    std::uint64_t random = 0;
    Quarantine quarantine;
    typename A::template atomic<std::size_t> held_bytes{0};  // in it; changed under the lock
    Spare spare[Source::kClasses];
  };
  struct Placed {
    char* raw = nullptr;
    std::size_t bytes = 0;
    std::uint32_t offset = 0;
    bool zero = false;
  };
  // What is known of a pointer: the raw block around it, and what its header says.
  struct Found {
    const void* pointer = nullptr;
    Raw raw{};
    State state = State::kDamaged;
    Contents contents{};
    [[nodiscard]] char* start() const noexcept { return static_cast<char*>(raw.start); }
    [[nodiscard]] char* block() const noexcept { return start() + contents.offset; }
    [[nodiscard]] char* end() const noexcept { return block() + contents.bytes; }
    // Where the canary behind the block ends.
    [[nodiscard]] char* guarded() const noexcept { return std::min(end() + kMostCanary, start() + raw.bytes); }
  };

  [[nodiscard]] static std::size_t ring_entries(const Settings& settings) noexcept {
    constexpr std::size_t kLeastRawBytes = 64, kLeast = 64, kMost = std::size_t{1} << 20;
    return std::clamp(std::bit_ceil(settings.quarantine_bytes / kLeastRawBytes), kLeast, kMost);
  }
  [[nodiscard]] Shard& own_shard() const noexcept { return shards_[A::thread_number() % kShards]; }
  [[nodiscard]] static BlockHeader& header(void* raw) noexcept { return *static_cast<BlockHeader*>(raw); }

  template <class F>
  void with_all_locks(F&& f) noexcept {
    for (unsigned i = 0; i < kShards; ++i) shards_[i].lock.lock();
    f();
    for (unsigned i = kShards; i-- > 0;) shards_[i].lock.unlock();
  }

  // ---- raw blocks -----------------------------------------------------------------------------------------------------

  [[nodiscard]] Placed place(Shard& shard, const Request& request) noexcept {
    const std::size_t alignment = std::max<std::size_t>(request.alignment, 1);
    Placed placed;
    if (alignment > (std::size_t{1} << 31) || request.bytes > PTRDIFF_MAX - 2 * alignment - 2 * Source::kPageBytes)
      return placed;
    const auto offset_behind = [&](std::size_t front) {
      return static_cast<std::uint32_t>(base::align_up(front, alignment));
    };
    placed.offset = offset_behind(BlockHeader::bytes());
    const unsigned c = Source::class_of(placed.offset + request.bytes + kLeastSlack, alignment);
    if (c == 0) placed.offset = offset_behind(Source::kPageBytes);  // so that all of the block can be sealed
    placed.bytes = placed.offset + request.bytes + kLeastSlack;
    for (bool again = true; again; again = empty_quarantine(shard)) {
      placed.raw =
          static_cast<char*>(c != 0 ? take_spare(shard, c) : source_->allocate_large(placed.bytes, alignment, placed.zero));
      if (placed.raw != nullptr) break;
    }
    if (placed.raw != nullptr) placed.bytes = c != 0 ? Source::slot_bytes(c) : source_->large_bytes(placed.raw);
    return placed;
  }
  [[nodiscard]] void* take_spare(Shard& shard, unsigned c) noexcept {
    Spare& spare = shard.spare[c];
    if (spare.count <= kMostSpare / 2) {
      const std::size_t most = std::clamp<std::size_t>(kMostSpareBytes / Source::slot_bytes(c), 1, kMostSpare);
      if (spare.count < most) {
        const std::size_t taken = source_->take(c, spare.slots + spare.count, most - spare.count);
        for (std::size_t i = 0; i < taken; ++i) header(spare.slots[spare.count + i]).make_spare(secret_);
        spare.count += static_cast<unsigned>(taken);
      }
    }
    if (spare.count == 0) return nullptr;
    const unsigned i = settings_.random ? static_cast<unsigned>(next_random(shard) % spare.count) : spare.count - 1;
    void* const raw = spare.slots[i];
    spare.slots[i] = spare.slots[--spare.count];
    (void)is_sound(found_at({raw, Source::slot_bytes(c), true}, nullptr));
    return raw;
  }
  void give_back(Shard& shard, const Quarantine::Entry& entry) noexcept {
    const unsigned c = source_->class_at(entry.raw);
    if (is_large(entry.raw)) {
      const std::size_t bytes = source_->large_bytes(entry.raw) - Source::kPageBytes;
      source_->unseal(static_cast<char*>(entry.raw) + Source::kPageBytes, bytes);
    }
    if (c != 0 && shard.spare[c].count < kMostSpare) {
      Spare& spare = shard.spare[c];
      spare.slots[spare.count++] = entry.raw;
      return;
    }
    (void)is_sound(found_at({entry.raw, entry.bytes, true}, nullptr));
    header(entry.raw).make_spare(secret_);  // the source may take pages back from now on
    if (c != 0)
      source_->give(c, &entry.raw, 1);
    else
      source_->free_large(entry.raw);
  }
  // Returns whether there was something in it.
  bool empty_quarantine(Shard& shard) noexcept {
    const bool had = !shard.quarantine.empty();
    while (!shard.quarantine.empty()) give_back(shard, take_oldest(shard));
    return had;
  }
  // Of a shard that the caller has locked.
  void put_in_quarantine(Shard& shard, const Quarantine::Entry& entry) noexcept {
    shard.quarantine.push(entry);
    shard.held_bytes.fetch_add(entry.bytes, std::memory_order_relaxed);  // relaxed, all of it: a bound
    held_bytes_.fetch_add(entry.bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] Quarantine::Entry take_oldest(Shard& shard) noexcept {
    const Quarantine::Entry entry = shard.quarantine.pop();
    shard.held_bytes.fetch_sub(entry.bytes, std::memory_order_relaxed);
    held_bytes_.fetch_sub(entry.bytes, std::memory_order_relaxed);
    return entry;
  }
  // Ends the stay of a block, of the shard that holds most: threads that ended, or free little, must not keep it all.
  void shorten_quarantine(Shard& own) noexcept {
    const auto held = [](const Shard& s) { return s.held_bytes.load(std::memory_order_relaxed); };
    Shard* most = &own;
    for (unsigned i = 0; i < kShards; ++i)
      if (held(shards_[i]) > held(*most)) most = &shards_[i];
    if (most == &own || !most->lock.try_lock()) return give_back(own, take_oldest(own));
    const bool had = !most->quarantine.empty();
    const Quarantine::Entry entry = had ? take_oldest(*most) : Quarantine::Entry{};
    most->lock.unlock();
    if (had) give_back(own, entry);
  }
  [[nodiscard]] static std::uint64_t next_random(Shard& shard) noexcept {
    shard.random += 0x9e37'79b9'7f4a'7c15;
    return mix(shard.random);
  }

  void write_header(const Placed& placed, const Request& request, std::uint32_t stack) noexcept {
    char* const block = placed.raw + placed.offset;
    char* const end = block + request.bytes;
    header(placed.raw).make_live(secret_, {request.bytes, request.alignment, request.family, placed.offset, stack, 0});
    if (!settings_.canary) return;
    write_canary(secret_, gap_of(placed.raw, block), block);
    write_canary(secret_, end, std::min(end + kMostCanary, placed.raw + placed.bytes));
  }
  // Blocks of large raw ones begin on a page of their own.
  [[nodiscard]] bool is_large(const void* raw) noexcept { return source_->class_at(raw) == 0; }
  // Where the canary between header and block begins.
  [[nodiscard]] static char* gap_of(char* raw, char* block) noexcept {
    char* const gap = raw + BlockHeader::bytes();
    return block - gap > static_cast<std::ptrdiff_t>(kMostCanary) ? block - kMostCanary : gap;
  }

  // ---- looking --------------------------------------------------------------------------------------------------------

  [[nodiscard]] Found look_up(const void* pointer) noexcept { return found_at(source_->find(pointer), pointer); }
  [[nodiscard]] Found found_at(const Raw& raw, const void* pointer) noexcept {
    Found found{pointer, raw};
    if (raw.start == nullptr || !raw.in_use) return found;
    found.state = header(raw.start).state(secret_);
    if (found.state == State::kLive || found.state == State::kFreed) found.contents = header(raw.start).contents();
    return found;
  }

  [[nodiscard]] bool is_sealed(const Found& found) noexcept {
    return found.raw.start != nullptr && is_large(found.raw.start) && found.state == State::kFreed;
  }

  // Whether a block may be freed, or used; reports why not.
  [[nodiscard]] bool admit(const Found& found, const Claim& claim) noexcept {
    using base::HeapError;
    if (found.raw.start == nullptr) return refuse(HeapError::kForeignPointer, found);
    if (!found.raw.in_use || found.state == State::kSpare) return refuse(HeapError::kDoubleFree, found);
    if (found.state == State::kDamaged) return refuse(HeapError::kWriteBefore, found);
    if (found.pointer != found.block()) return refuse(HeapError::kInteriorPointer, found);
    if (found.state == State::kFreed) return refuse(HeapError::kDoubleFree, found);
    if (settings_.family && claim.family != Family::kAny && found.contents.family != Family::kAny &&
        claim.family != found.contents.family)
      return refuse(HeapError::kOtherFamily, found, &claim);
    if (settings_.sizes && !fits(claim, found.contents)) return refuse(HeapError::kWrongSize, found, &claim);
    return is_sound(found);
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
  // Whether canaries, or the filling of a freed block, are as they were; reports what is not.
  [[nodiscard]] bool is_sound(const Found& found) noexcept {
    using base::HeapError;
    if (!found.raw.in_use) return true;
    if (found.state == State::kDamaged) return damaged(HeapError::kWriteBefore, found, found.start() + BlockHeader::bytes());
    if (found.state == State::kLive && settings_.canary) {
      if (!header(found.raw.start).has_canary(secret_)) return damaged(HeapError::kWriteBefore, found, found.block() - 8);
      if (const char* at = find_damage(secret_, gap_of(found.start(), found.block()), found.block()); at != nullptr)
        return damaged(HeapError::kWriteBefore, found, at);
      if (const char* at = find_damage(secret_, found.end(), found.guarded()); at != nullptr)
        return damaged(HeapError::kWriteBehind, found, at);
    }
    if (found.state == State::kFreed && settings_.fill && !is_large(found.raw.start))
      if (const char* at = find_write(found.block(), found.end()); at != nullptr)
        return damaged(HeapError::kWriteToFreed, found, at);
    return true;
  }
  [[nodiscard]] bool damaged(base::HeapError error, const Found& found, const char* at) noexcept {
    const char* const block = found.state == State::kDamaged ? found.start() + BlockHeader::bytes() : found.block();
    report_misuse(
        {error, found.pointer != nullptr ? found.pointer : block, block, found.state, found.contents, nullptr, at});
    return false;
  }

  // ---- ending ---------------------------------------------------------------------------------------------------------

  void end(Shard& shard, const Found& found, std::uint32_t stack) noexcept {
    if (!header(found.raw.start).end(secret_, stack)) {
      (void)refuse(base::HeapError::kDoubleFree, found);
      return;
    }
    Quarantine::Entry entry{found.raw.start, found.raw.bytes};
    if (is_large(found.raw.start)) {
      source_->seal(found.start() + Source::kPageBytes, found.raw.bytes - Source::kPageBytes);
      // What is left of it in memory, and something for the addresses.
      constexpr std::size_t kPartForAddresses = 64;
      entry.bytes = Source::kPageBytes + found.raw.bytes / kPartForAddresses;
    } else if (settings_.fill) {
      std::memset(found.block(), kFreedByte, found.contents.bytes);
    }
    if (entry.bytes > settings_.quarantine_bytes) return give_back(shard, entry);
    if (shard.quarantine.full()) give_back(shard, take_oldest(shard));
    put_in_quarantine(shard, entry);
    while (held_bytes_.load(std::memory_order_relaxed) > settings_.quarantine_bytes && !shard.quarantine.empty())
      shorten_quarantine(shard);
  }

  // A large block keeps its place, or its pages are moved to another.
  [[nodiscard]] void* resize_in_place(const Found& found, const Request& request, std::uint32_t stack) noexcept {
    const std::size_t offset = found.contents.offset;
    if (found.raw.bytes < kMovedBytes || request.bytes < kMovedBytes || offset != Source::kPageBytes) return nullptr;
    void* const raw = source_->resize_large(found.raw.start, offset + request.bytes + kLeastSlack);
    if (raw == nullptr) return nullptr;
    const Placed placed{static_cast<char*>(raw), source_->large_bytes(raw), static_cast<std::uint32_t>(offset), false};
    write_header(placed, request, stack);
    char* const block = placed.raw + placed.offset;
    const std::size_t old = found.contents.bytes;
    if (settings_.contents >= 0 && request.bytes > old) std::memset(block + old, settings_.contents, request.bytes - old);
    return block;
  }

  Source* source_ = nullptr;
  Shard* shards_ = nullptr;
  Settings settings_{};
  Secret secret_{};
  typename A::template atomic<std::size_t> held_bytes_{0};  // in all quarantines
};

}  // namespace freehold::check
