// SPDX-License-Identifier: MIT
// Checked mode: every allocation and every free of a program, looked at. block.hpp shows a block's layout.
//
// A free looks for the raw block around the pointer, at the header there, at family, size and canaries; then it marks the
// block as freed, fills it, or makes its pages inaccessible if it is large, and puts it into a quarantine. Where that is
// full, the oldest block becomes a spare one of its class; spare ones are handed out in turn or at random, and what was
// written to them since they were freed is found then. There are kShards of spare blocks and quarantines, each with a lock;
// a thread uses the one of its number.
//
//   Source: where raw blocks come from, a class, 0 for large ones, and a size each.
//     Raw        {void* start; std::size_t bytes; bool in_use;}, as alloc::BlockPlace; none if start is null
//     class_of(bytes, alignment), slot_bytes(c), kClasses, class_at(address): of the slots there, whose memory can be read
//     take(c, slots, n) -> how many, give(c, slots, n)
//     allocate_large(bytes, alignment, zero), free_large(raw), resize_large(raw, bytes) -> raw or null, large_bytes(raw)
//     kPageBytes, seal(pages, bytes), unseal(pages, bytes): inaccessible and without content, and not any more
//     find(address) -> Raw around it, for_each(f): f(Raw) for all in use
//
// Locks: one shard's at a time, a second one only if no thread holds it, all of them in order for a look at all blocks. The
// caller keeps forks out. Errors: null where memory is exhausted, after the quarantine was emptied; base::fatal() for
// misuse. Any thread. Cost: a lock, a hash or two, the bytes filled and compared.
#pragma once
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/check/block.hpp"
#include "freehold/check/block_inspector.hpp"
#include "freehold/check/misuse_report.hpp"
#include "freehold/check/quarantine.hpp"
#include "freehold/check/settings.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::check {

template <sync::Atomics A, class Source>
class CheckedBlocks {
 public:
  using Raw = typename Source::Raw;
  using Inspector = BlockInspector<A, Source>;
  using Found = typename Inspector::Found;
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
    inspector_.init(source, settings, secret_);
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
    look_at_last(shard);
    Placed placed = place_quickly(shard, request);
    if (placed.raw == nullptr) placed = place(shard, request);
    if (placed.raw == nullptr) return nullptr;
    write_header(shard, placed, request, stack);
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
    if (end_quickly(shard, static_cast<char*>(block), claim, stack)) [[likely]]
      return true;
    const Found found = inspector_.look_up(block);
    if (!inspector_.admit(found, claim)) return false;
    end(shard, found, stack);
    return true;
  }

  // True if a live block of another kind, which begins with its raw one, may be freed by the claim; reports why not.
  [[nodiscard]] bool admit_elsewhere(void* block, const Contents& contents, const Claim& claim) noexcept {
    return inspector_.admit_claim({block, {block, contents.bytes, true}, State::kLive, contents}, claim);
  }
  // Does what the next allocation would do: for one that is served by another kind of block.
  void look_at_last() noexcept {
    Shard& shard = own_shard();
    const sync::Guard guard(shard.lock);
    look_at_last(shard);
  }

  // Another block with the content of the old one, as far as both reach, unless it is to be as large as it is; null: no
  // memory, the old one stays.
  [[nodiscard]] void* reallocate(void* block, std::size_t bytes, std::uint32_t stack) noexcept {
    Shard& shard = own_shard();
    const sync::Guard guard(shard.lock);
    const Found found = inspector_.look_up(block);
    if (!inspector_.admit(found, Claim{})) return errno = EINVAL, nullptr;
    // A block that realloc() returns is no aligned block any more.
    if (bytes == found.contents.bytes && found.contents.alignment == 0) return block;
    const Request request{bytes, 0, Family::kMalloc};
    if (void* const resized = resize_in_place(shard, found, request, stack); resized != nullptr) return resized;
    const Placed placed = place(shard, request);
    if (placed.raw == nullptr) return nullptr;
    write_header(shard, placed, request, stack);
    char* const fresh = placed.raw + placed.offset;
    const std::size_t kept = std::min(bytes, found.contents.bytes);
    std::memcpy(fresh, block, kept);
    if (settings_.contents >= 0) std::memset(fresh + kept, settings_.contents, bytes - kept);
    end(shard, found, stack);
    return fresh;
  }

  // Exactly what was asked for; 0, and a report, if that is no live block.
  [[nodiscard]] std::size_t usable_size(const void* block) noexcept {
    const Found found = inspector_.look_up(block);
    return inspector_.admit(found, Claim{Family::kAny, Claim::kUnsaid, Claim::kUnsaid}) ? found.contents.bytes : 0;
  }

  // For a handler of faults: whether the address lies in a large block that was freed, or in one of no bytes, and the report
  // of an access to it, unless the block is there no more: false.
  [[nodiscard]] bool is_sealed(const void* address) noexcept { return inspector_.is_sealed(inspector_.look_up(address)); }
  [[nodiscard]] bool report_access(const void* address) noexcept {
    const Found found = inspector_.look_up(address);
    if (!inspector_.is_sealed(found)) return false;
    const auto error = found.state == State::kLive ? base::HeapError::kAccessBehind : base::HeapError::kUseOfFreed;
    const Misuse misuse{error, address, found.block(), found.state, found.contents, nullptr, nullptr};
    (void)base::report(misuse.error, address, say_misuse, &misuse);
    return true;
  }

  // Looks at all blocks, reports those that are damaged. Returns how many. Other threads wait until it returns.
  std::size_t check_all() noexcept {
    std::size_t damaged = 0;
    with_all_locks(
        [&] { source_->for_each([&](const Raw& raw) { damaged += inspector_.look_at(raw.start, raw.bytes) ? 0 : 1; }); });
    return damaged;
  }
  // False while another thread holds one of the locks: one that was stopped there holds it for ever.
  [[nodiscard]] bool locks_are_free() noexcept {
    for (unsigned i = 0; i < kShards; ++i) {
      if (!shards_[i].lock.try_lock()) return false;
      shards_[i].lock.unlock();
    }
    return true;
  }
  // Calls f(contents, address) for each live block, then end(). Other threads wait for both; they allocate nothing.
  template <class F, class End>
  void for_each_live(F&& f, End&& end) noexcept {
    with_all_locks([&] {
      source_->for_each([&](const Raw& raw) {
        const Found found = inspector_.found_at(raw, nullptr);
        if (found.state == State::kLive) f(found.contents, found.block());
      });
      end();
    });
  }
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }

  // Runs in a fork's child, where no other thread is inside.
  void after_fork_in_child() noexcept {
    for (unsigned i = 0; i < kShards; ++i) shards_[i].lock.reset();
  }

 private:
  static constexpr unsigned kMostSpare = 32;                        // spare blocks of a class, in a shard
  static constexpr std::size_t kMostSpareBytes = 64 * 1024;         // the same
  static constexpr unsigned kMostEmpty = 4096;                      // blocks of no bytes that have pages of their own
  static constexpr std::size_t kLookBytes = 8;                      // bytes of the block that was freed last
  static constexpr std::size_t kMovedBytes = std::size_t{1} << 20;  // from here on pages are moved, not copied

  struct Spare {
    unsigned count = 0;
    unsigned most = 0;  // may be in it; 0: not known yet
    std::size_t bytes = 0;
    void* slots[kMostSpare];
  };
  struct alignas(base::kCacheLine) Shard {
    sync::Mutex<A> lock;
    std::uint64_t random = 0;
    Quarantine quarantine;
    typename A::template atomic<std::size_t> held_bytes{0};  // in it; changed under the lock
    // The raw block that the last call freed, of whose block the next one looks at the first bytes; null: no such block.
    const void* freed = nullptr;
    const char* freed_block = nullptr;
    // The raw block that the last call gave the program, and that was not looked at since; plus 1 while it is. Set under
    // the lock; who frees the block takes it away, and waits for a look to end.
    typename A::template atomic<std::uintptr_t> last{0};
    std::uint64_t last_mark = 0;                              // 0: more is to be looked at
    const char *last_end = nullptr, *last_guarded = nullptr;  // the bytes behind it
    Spare spare[Source::kClasses];
  };
  static constexpr std::uintptr_t kLooking = 1;
  struct Placed {
    char* raw = nullptr;
    std::size_t bytes = 0;
    std::uint32_t offset = 0;
    bool zero = false;
  };
  [[nodiscard]] static std::size_t ring_entries(const Settings& settings) noexcept {
    constexpr std::size_t kLeastRawBytes = 64, kLeast = 64, kMost = std::size_t{1} << 20;
    return std::clamp(std::bit_ceil(settings.quarantine / kLeastRawBytes), kLeast, kMost);
  }
  [[nodiscard]] Shard& own_shard() const noexcept { return shards_[A::thread_number() % kShards]; }

  template <class F>
  void with_all_locks(F&& f) noexcept {
    for (unsigned i = 0; i < kShards; ++i) shards_[i].lock.lock();
    f();
    for (unsigned i = kShards; i-- > 0;) shards_[i].lock.unlock();
  }

  // ---- raw blocks -----------------------------------------------------------------------------------------------------

  // A spare slot for what most requests are; none: place() knows more.
  [[nodiscard, gnu::always_inline]] inline Placed place_quickly(Shard& shard, const Request& request) noexcept {
    Placed placed;
    constexpr std::size_t kMost = 1024, kMostAlignment = 16;  // which every slot has
    if (request.bytes - 1 >= kMost || request.alignment > kMostAlignment) return placed;
    Spare& spare = shard.spare[Source::class_of(BlockHeader::bytes() + request.bytes + kLeastSlack, 1)];
    if (spare.count <= spare.most / 2) return placed;
    placed.raw = static_cast<char*>(take_one(shard, spare));
    placed.bytes = spare.bytes;
    placed.offset = BlockHeader::bytes();
    return placed;
  }
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
    if (request.bytes == 0 && empties_.load(std::memory_order_relaxed) < kMostEmpty) {  // relaxed, both: a bound
      placed = place_empty(alignment);
      if (placed.raw != nullptr) return placed;
      placed.offset = offset_behind(BlockHeader::bytes());
    }
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
  // A block of no bytes, at the beginning of separate pages, so that they can be sealed. None: no memory.
  [[nodiscard]] Placed place_empty(std::size_t alignment) noexcept {
    Placed placed;
    placed.offset = static_cast<std::uint32_t>(base::align_up(Source::kPageBytes, alignment));
    placed.raw = static_cast<char*>(source_->allocate_large(placed.offset + kLeastSlack, alignment, placed.zero));
    if (placed.raw == nullptr) return placed;
    placed.bytes = source_->large_bytes(placed.raw);
    empties_.fetch_add(1, std::memory_order_relaxed);
    return placed;
  }
  [[nodiscard]] void* take_spare(Shard& shard, unsigned c) noexcept {
    Spare& spare = shard.spare[c];
    if (spare.most == 0) [[unlikely]]
      begin(spare, c);
    if (spare.count <= spare.most / 2) {
      const std::size_t taken = source_->take(c, spare.slots + spare.count, spare.most - spare.count);
      for (std::size_t i = 0; i < taken; ++i) Inspector::header(spare.slots[spare.count + i]).make_spare(secret_);
      spare.count += static_cast<unsigned>(taken);
    }
    return spare.count == 0 ? nullptr : take_one(shard, spare);
  }
  // Pre: there is one.
  [[nodiscard]] void* take_one(Shard& shard, Spare& spare) noexcept {
    const unsigned i = settings_.random ? random_below(shard, spare.count) : spare.count - 1;
    void* const raw = spare.slots[i];
    spare.slots[i] = spare.slots[--spare.count];
    inspector_.look_at(raw, spare.bytes);
    return raw;
  }
  [[gnu::noinline]] static void begin(Spare& spare, unsigned c) noexcept {
    spare.bytes = Source::slot_bytes(c);
    spare.most = static_cast<unsigned>(std::clamp<std::size_t>(kMostSpareBytes / spare.bytes, 1, kMostSpare));
  }
  void give_back(Shard& shard, const Quarantine::Entry& entry) noexcept {
    if (const unsigned c = source_->class_at(entry.raw); c != 0) {
      Spare& spare = shard.spare[c];
      if (spare.most == 0) begin(spare, c);
      if (spare.count >= spare.most) give_half(spare, c);
      spare.slots[spare.count++] = entry.raw;
      return;
    }
    const std::size_t bytes = source_->large_bytes(entry.raw) - Source::kPageBytes;
    source_->unseal(static_cast<char*>(entry.raw) + Source::kPageBytes, bytes);
    (void)inspector_.look_closely({entry.raw, entry.bytes, true});
    Inspector::header(entry.raw).make_spare(secret_);  // the source may take pages back from now on
    source_->free_large(entry.raw);
  }
  // The first ones if the program has not had them, else the last: an old address that is freed again is known while it
  // stays.
  void give_half(Spare& spare, unsigned c) noexcept {
    const unsigned n = (spare.count + 1) / 2;
    spare.count -= n;
    if (Inspector::header(spare.slots[0]).state(secret_) == State::kSpare)
      std::rotate(spare.slots, spare.slots + n, spare.slots + spare.count + n);
    void** const given = spare.slots + spare.count;
    for (unsigned i = 0; i < n; ++i) {
      inspector_.look_at(given[i], spare.bytes);
      Inspector::header(given[i]).make_spare(secret_);
    }
    source_->give(c, given, n);
  }
  // Returns whether there was something in it.
  bool empty_quarantine(Shard& shard) noexcept {
    const bool had = !shard.quarantine.empty();
    while (!shard.quarantine.empty()) give_back(shard, take_oldest(shard));
    return had;
  }
  // The caller has locked the shard.
  void put_in_quarantine(Shard& shard, const Quarantine::Entry& entry) noexcept {
    shard.quarantine.push(entry);
    add_to_held(shard, entry.bytes);
  }
  [[nodiscard]] Quarantine::Entry take_oldest(Shard& shard) noexcept {
    const Quarantine::Entry entry = shard.quarantine.pop();
    add_to_held(shard, 0 - entry.bytes);
    return entry;
  }
  void add_to_held(Shard& shard, std::size_t bytes) noexcept {  // relaxed, all of it: a bound
    shard.held_bytes.store(shard.held_bytes.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    held_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  // True if a shard has half of what all have, and so the most.
  [[nodiscard]] bool is_most_held(const Shard& shard) const noexcept {
    return shard.held_bytes.load(std::memory_order_relaxed) >= held_bytes_.load(std::memory_order_relaxed) / 2;
  }
  // Ends the stay of a block, of the shard that holds most: threads that ended, or free little, must not keep it all.
  void shorten_quarantine(Shard& own) noexcept {
    const auto held = [](const Shard& s) { return s.held_bytes.load(std::memory_order_relaxed); };
    Shard* most = &own;
    for (unsigned i = 0; !is_most_held(own) && i < kShards; ++i)
      if (held(shards_[i]) > held(*most)) most = &shards_[i];
    if (most == &own || !most->lock.try_lock()) return give_back(own, take_oldest(own));
    const bool had = !most->quarantine.empty();
    const Quarantine::Entry entry = had ? take_oldest(*most) : Quarantine::Entry{};
    most->lock.unlock();
    if (had) give_back(own, entry);
  }
  // Less than `n`. The next of a linear congruence (Knuth's MMIX), by its higher half.
  [[nodiscard]] static unsigned random_below(Shard& shard, unsigned n) noexcept {
    shard.random = shard.random * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;
    return static_cast<unsigned>((shard.random >> 32) * n >> 32);
  }

  void write_header(Shard& shard, const Placed& placed, const Request& request, std::uint32_t stack) noexcept {
    char* const block = placed.raw + placed.offset;
    char* const end = block + request.bytes;
    const auto number = static_cast<std::uint8_t>(&shard - shards_);
    Inspector::header(placed.raw)
        .make_live(secret_, {request.bytes, request.alignment, request.family, placed.offset, stack, 0, number});
    const bool is_empty = request.bytes == 0 && inspector_.is_large(placed.raw);
    char* const guarded = is_empty ? end : std::min(end + kMostCanary, placed.raw + placed.bytes);
    if (settings_.canary) {
      const bool has_gap = placed.offset != BlockHeader::bytes();
      if (has_gap) write_canary(secret_, Inspector::gap_of(placed.raw, block), block);
      write_canary(secret_, end, guarded);
      shard.last_mark = has_gap ? 0 : Inspector::header(placed.raw).mark();
      shard.last_end = end;
      shard.last_guarded = guarded;
      // Release: pairs with the acquire in forget().
      shard.last.store(reinterpret_cast<std::uintptr_t>(placed.raw), std::memory_order_release);
    }
    if (is_empty) source_->seal(block, placed.bytes - placed.offset);
  }
  // ---- looking --------------------------------------------------------------------------------------------------------

  // The block that was allocated last, and the one that was freed last, are looked at by the next allocation: what was
  // written beside the one, or to the other, is reported near the place. Under the shard's lock. Where the program goes on
  // after a report, the free of the block or a look at all reports it, so that it is reported once.
  void look_at_last(Shard& shard) noexcept {
    if (!settings_.abort) return;
    // If another thread has taken it out of the quarantine, that thread looks.
    if (const void* const freed = std::exchange(shard.freed, nullptr);
        freed != nullptr && !shard.quarantine.empty() && shard.quarantine.newest().raw == freed)
      if (std::memcmp(shard.freed_block, kFreedBytes.data(), kLookBytes) != 0) [[unlikely]]
        (void)inspector_.look_closely({shard.quarantine.newest().raw, shard.quarantine.newest().bytes, true});
    std::uintptr_t last = shard.last.load(std::memory_order_relaxed);  // relaxed: the exchange decides
    if (last == 0) return;
    // Relaxed: what the last allocation wrote, the lock has published.
    if (!shard.last.compare_exchange_strong(last, last | kLooking, std::memory_order_relaxed, std::memory_order_relaxed))
      return;
    void* const start = reinterpret_cast<void*>(last);
    if (Inspector::header(start).mark() != shard.last_mark || !Inspector::header(start).has_canary(secret_) ||
        find_damage(secret_, shard.last_end, shard.last_guarded) != nullptr) [[unlikely]] {
      const unsigned c = source_->class_at(start);
      (void)inspector_.look_closely({start, c != 0 ? Source::slot_bytes(c) : source_->large_bytes(start), true});
    }
    shard.last.store(0, std::memory_order_release);  // pairs with the acquire in forget()
  }
  // Ends the looks at a block before its state changes. Waits for a look to end, and not for the lock that it is under: a
  // thread that takes all locks may have it next, and wait for the caller's. A thread that looks waits for no lock.
  void forget(void* raw, std::uint8_t number) noexcept {
    Shard& shard = shards_[number];
    auto seen = reinterpret_cast<std::uintptr_t>(raw);
    // Acquire: pairs with the release in look_at_last(), whose reads came before what we write. Mostly it is another's turn.
    if ((shard.last.load(std::memory_order_acquire) & ~kLooking) != seen) return;
    // Relaxed: no thread has looked.
    if (shard.last.compare_exchange_strong(seen, 0, std::memory_order_relaxed, std::memory_order_acquire)) return;
    const std::uintptr_t looking = reinterpret_cast<std::uintptr_t>(raw) | kLooking;
    sync::wait_until<A>([&] { return shard.last.load(std::memory_order_acquire) != looking; });
  }

  // ---- ending ---------------------------------------------------------------------------------------------------------

  // Ends a live block that lies right behind its header, as most do. False: it is another, or something is wrong. A header
  // that a mark fits is one of a live block, wherever the pointer came from.
  [[nodiscard, gnu::always_inline]] inline bool end_quickly(Shard& shard, char* block, const Claim& claim,
                                                            std::uint32_t stack) noexcept {
    char* const raw = block - BlockHeader::bytes();
    const unsigned c = source_->class_at(raw);
    if (c == 0 || reinterpret_cast<std::uintptr_t>(block) % 16 != 0) return false;
    BlockHeader& h = Inspector::header(raw);
    const std::uint64_t mark = h.mark();
    const Outline outline = h.outline();
    if (h.state(secret_) != State::kLive || outline.offset != BlockHeader::bytes()) return false;
    if (!inspector_.is_of_family(claim, outline.family)) return false;
    if ((claim.bytes != Claim::kUnsaid || claim.alignment != Claim::kUnsaid) && settings_.sizes &&
        !Inspector::fits(claim, h.contents()))
      return false;
    const std::size_t bytes = Source::slot_bytes(c);
    if (settings_.canary &&
        (!h.has_canary(secret_) ||
         find_damage(secret_, block + outline.bytes, std::min(block + outline.bytes + kMostCanary, raw + bytes)) != nullptr))
      return false;
    forget(raw, outline.shard);
    if (!h.end(mark, stack)) return false;
    if (settings_.fill) fill(shard, raw, block, outline.bytes);
    keep(shard, {raw, bytes});
    return true;
  }
  void end(Shard& shard, const Found& found, std::uint32_t stack) noexcept {
    forget(found.raw.start, found.contents.shard);
    if (!Inspector::header(found.raw.start).end(secret_, stack))
      return (void)inspector_.refuse(base::HeapError::kDoubleFree, found);
    Quarantine::Entry entry{found.raw.start, found.raw.bytes};
    if (inspector_.is_large(found.raw.start)) {
      source_->seal(found.start() + Source::kPageBytes, found.raw.bytes - Source::kPageBytes);
      // The part of it that is left in memory, and something for the addresses.
      constexpr std::size_t kPartForAddresses = 64;
      entry.bytes = Source::kPageBytes + found.raw.bytes / kPartForAddresses;
    } else if (settings_.fill) {
      fill(shard, found.raw.start, found.block(), found.contents.bytes);
    }
    keep(shard, entry);
  }
  void fill(Shard& shard, const void* raw, char* block, std::size_t bytes) noexcept {
    std::memset(block, kFreedByte, bytes);
    if (bytes >= kLookBytes) shard.freed = raw;
    shard.freed_block = block;
  }
  // A block that has ended goes to the quarantine.
  void keep(Shard& shard, const Quarantine::Entry& entry) noexcept {
    if (entry.bytes > settings_.quarantine) {
      shard.freed = nullptr;
      return give_back(shard, entry);
    }
    if (shard.quarantine.full()) give_back(shard, take_oldest(shard));
    // One of the same size leaves it where there is no room: the common figure stays as it is.
    if (!shard.quarantine.empty() && shard.quarantine.oldest().bytes == entry.bytes && is_most_held(shard) &&
        held_bytes_.load(std::memory_order_relaxed) + entry.bytes > settings_.quarantine) {
      const Quarantine::Entry oldest = shard.quarantine.pop();
      shard.quarantine.push(entry);
      return give_back(shard, oldest);
    }
    put_in_quarantine(shard, entry);
    while (held_bytes_.load(std::memory_order_relaxed) > settings_.quarantine && !shard.quarantine.empty())
      shorten_quarantine(shard);
  }

  // A large block keeps its place, or its pages are moved to another.
  [[nodiscard]] void* resize_in_place(Shard& shard, const Found& found, const Request& request,
                                      std::uint32_t stack) noexcept {
    const std::size_t offset = found.contents.offset;
    if (found.raw.bytes < kMovedBytes || request.bytes < kMovedBytes || request.bytes > PTRDIFF_MAX - offset - kLeastSlack ||
        offset != Source::kPageBytes)
      return nullptr;
    forget(found.raw.start, found.contents.shard);
    void* const raw = source_->resize_large(found.raw.start, offset + request.bytes + kLeastSlack);
    if (raw == nullptr) return nullptr;
    const Placed placed{static_cast<char*>(raw), source_->large_bytes(raw), static_cast<std::uint32_t>(offset), false};
    write_header(shard, placed, request, stack);
    char* const block = placed.raw + placed.offset;
    const std::size_t old = found.contents.bytes;
    if (settings_.contents >= 0 && request.bytes > old) std::memset(block + old, settings_.contents, request.bytes - old);
    return block;
  }

  Inspector inspector_;
  Source* source_ = nullptr;
  Shard* shards_ = nullptr;
  Settings settings_{};
  Secret secret_{};
  typename A::template atomic<std::size_t> held_bytes_{0};  // in all quarantines
  typename A::template atomic<unsigned> empties_{0};        // blocks of no bytes that got pages of their own
};

}  // namespace freehold::check
