// SPDX-License-Identifier: MIT
// The memory of one private heap: its slabs, their pages, and its large blocks. The heap's lock guards it.
//
//   Invariants: pages of slabs that belong to a class + bytes of large blocks == used_bytes() <= the limit;
//               a slab is in the list of open ones iff it has a free page.
//
// Externally locked. take_pages: a look at kLooks slabs; a new slab costs a call to the source. release_all: one call to the
// source for each slab and large block, however many objects they hold.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/base/poison.hpp"
#include "freehold/heap/heap_options.hpp"
#include "freehold/heap/slab.hpp"
#include "freehold/heap/slab_list.hpp"
#include "freehold/heap/slab_source.hpp"

namespace freehold::heap {

// Why there is no memory: the limit, for now; the limit, whatever else is freed; the source has none.
enum class Refusal : std::uint8_t { kNone, kLimit, kBeyondLimit, kMemory };

template <sync::Atomics A, class Geometry, SlabSource Source>
class Slabs {
 public:
  using SlabType = Slab<A, Geometry>;
  using Classes = typename Geometry::Classes;
  using Free = FreeSlot<A>;
  template <class T>
  using var = typename A::template var<T>;

  // The last bytes of a slot, which are nobody's, so that AddressSanitizer sees an overrun beside a neighbour in use.
  static constexpr std::size_t kRedZone = base::kAddressSanitizer ? 16 : 0;
  [[nodiscard]] static constexpr std::size_t usable_bytes(unsigned c) noexcept { return Classes::slot_bytes(c) - kRedZone; }
  // A slot's bytes for a block of `bytes`. A block of none has one: it has an address of its own, and a usable size that
  // tells it from what is no block.
  [[nodiscard]] static constexpr std::size_t with_red_zone(std::size_t bytes) noexcept {
    return (bytes == 0 ? 1 : bytes) + kRedZone;
  }

  // Memory for slots of one class.
  struct Run {
    std::byte* begin = nullptr;
    std::byte* end = nullptr;
  };

  Slabs(void* heap, std::size_t limit_bytes, Source source) noexcept
      : heap_(heap), limit_bytes_(limit_bytes), source_(source) {}
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;
  ~Slabs() {
    release_all();
    while (SlabType* const slab = slabs_.first()) give_back(slab);  // those with the heap's own data
  }

  // The first slab, with `bytes` at its beginning for the heap's own data, which lives until the heap's end. Null: no
  // memory; may be called again. No limit counts it.
  [[nodiscard]] void* start(std::size_t bytes) noexcept {
    SlabType* const slab = take_slab(bytes);
    if (slab == nullptr) return refuse(Refusal::kMemory).begin;
    first_.store(slab);
    return slab->start() + SlabType::kHeaderBytes;
  }

  // Up to `pages` pages for slots of class c, at least enough for one. Begin is null: refused, see refusal().
  [[nodiscard]] Run take_pages(unsigned c, unsigned pages) noexcept {
    const unsigned least = kLeastPages[c];
    if (pages < least) pages = least;
    if (const std::size_t bytes = least * SlabType::kPageBytes; !allows(bytes)) return refuse_limited(bytes);
    const std::size_t room = (limit_bytes_ - used_bytes_.load()) >> Geometry::kPageShift;
    if (pages > room) pages = static_cast<unsigned>(room);
    PageRange range = best_range(c, pages, least);
    if (range.slab == nullptr) {
      SlabType* const slab = take_slab(0);
      if (slab == nullptr) return refuse(Refusal::kMemory);
      range = {slab, slab->free_range(c, pages)};
    }
    mark(range, static_cast<std::uint8_t>(c + 1));
    const unsigned first = range.pages.first;
    std::byte* const begin = range.slab->run_begin(first);
    return {begin, begin + range.slab->run_slots(first) * Classes::slot_bytes(c)};
  }

  // Whole pages for the heap's own data, beyond any limit. Null: no memory.
  [[nodiscard]] void* take_internal(std::size_t bytes) noexcept {
    const auto pages = static_cast<unsigned>(base::ceil_div(bytes, SlabType::kPageBytes));
    FREEHOLD_ASSERT(pages < SlabType::kPages);
    for (SlabType* slab = open_.first(); slab != nullptr; slab = open_.after(*slab)) {
      if (void* const taken = internal_pages(*slab, pages); taken != nullptr) return taken;
    }
    SlabType* const slab = take_slab(0);
    return slab == nullptr ? nullptr : internal_pages(*slab, pages);
  }

  // A block above the largest class, or aligned beyond what classes are. Null: refused.
  [[nodiscard]] void* take_large(std::size_t bytes, std::size_t alignment) noexcept {
    const bool apart = alignment >= SlabType::kBytes;
    const std::size_t before = base::align_up(SlabType::kHeaderBytes, alignment);
    const std::size_t at = apart ? alignment : SlabType::kBytes;
    if (before > kMaxLargeAlignment || bytes > ~std::size_t{0} / 2 - before) return refuse(Refusal::kMemory).begin;
    if (!allows(bytes + before)) return refuse_limited(bytes + before).begin;
    auto* const memory = static_cast<std::byte*>(source_.take(bytes + before, at));
    if (memory == nullptr) return refuse(Refusal::kMemory).begin;
    auto* const header = new_header(memory + (apart ? before - SlabType::kHeaderBytes : 0), memory, at, SlabKind::kLarge);
    header->large_bytes.store(bytes);
    header->slots_begin.store(static_cast<std::uint32_t>(before));
    larges_.push(*header);
    larges_count_.store(larges_count_.load() + 1);
    add_used(bytes + before);
    add_held(bytes + before);
    poison_.on_allocate(memory + before, bytes);
    return memory + before;
  }
  // Pre: what take_large() returned. Misuse ends in fatal().
  void give_large(void* block) noexcept {
    SlabType* const header = find(block);
    if (header == nullptr) return;
    if (header->kind.load() != SlabKind::kLarge || large_block(*header) != block)
      return base::fatal(base::HeapError::kInteriorPointer, block);
    larges_.remove(*header);
    larges_count_.store(larges_count_.load() - 1);
    poison_.on_free(block, header->large_bytes.load());
    drop_large(header);
  }

  // The slab or large block that `block` lies in. Null: it is none of this heap's, and the handler of fatal() returned.
  // A checked build looks before it believes; otherwise a pointer that is nobody's may end the process in another way.
  [[nodiscard]] SlabType* find(const void* block) const noexcept {
    SlabType* const slab = SlabType::of(block);
    const bool mine = (!base::kChecked || looks_like_ours(slab)) && slab->heap.load() == heap_;
    if (mine) [[likely]]
      return slab;
    base::fatal(base::HeapError::kForeignPointer, block);
    return nullptr;
  }
  static constexpr unsigned kNoClass = ~0U;
  // The class of a slot of `slab`. kNoClass: there is no slot, and the handler of fatal() returned.
  [[nodiscard]] static unsigned class_in(const SlabType& slab, const void* block) noexcept {
    const unsigned c = slab.page_class[slab.page_of(block)].load() - 1U;
    if (c < Classes::kCount) [[likely]]
      return c;
    is_free_page(slab, block) ? report_double_free(block) : base::fatal(base::HeapError::kForeignPointer, block);
    return kNoClass;
  }
  // Whether no class has the page: if `block` ever was one, it has ended, and the last of its page with it.
  [[nodiscard]] static bool is_free_page(const SlabType& slab, const void* block) noexcept {
    return slab.page_class[slab.page_of(block)].load() == SlabType::kFree;
  }
  // The bytes that a block may use; 0 after a misuse.
  [[nodiscard]] std::size_t usable_size(const void* block) const noexcept {
    SlabType* const slab = find(block);
    if (slab == nullptr) return 0;
    if (slab->kind.load() == SlabKind::kLarge) return slab->large_bytes.load();
    const unsigned c = class_in(*slab, block);
    return c == kNoClass ? 0 : usable_bytes(c);
  }
  // Whether the block could have been allocated as one of class c (kNoClass: a large one) and of `bytes`, so that it can be
  // given back as such. Pre: a block of this heap.
  [[nodiscard]] static bool serves_as(const void* block, unsigned c, std::size_t bytes) noexcept {
    const SlabType* const slab = SlabType::of(block);
    if (slab->kind.load() == SlabKind::kPages) return class_in(*slab, block) == c;
    const std::size_t has = slab->large_bytes.load();
    return c == kNoClass && bytes <= has && bytes >= has / 2;
  }
  // A block is allocated, or freed: for checked builds and memory checkers. False: misuse, and the handler of fatal()
  // returned.
  void on_allocate(unsigned c, void* block) const noexcept {
    if constexpr (kSeesMisuse) {
      SlabType* const slab = SlabType::of(block);
      if (slab->allocated.on_allocate(SlabType::place_of(block))) base::fatal(base::HeapError::kCorruption, block);
    }
    poison_.on_allocate(block, usable_bytes(c));
  }
  [[nodiscard]] bool on_free(unsigned c, void* block) const noexcept {
    if constexpr (kSeesMisuse) {
      SlabType* const slab = find(block);
      if (slab == nullptr) return false;
      if (slab->kind.load() != SlabKind::kPages || !slab->is_slot(block, c)) {
        const bool was_slot = slab->kind.load() == SlabKind::kPages && is_free_page(*slab, block);
        was_slot ? report_double_free(block) : base::fatal(base::HeapError::kInteriorPointer, block);
        return false;
      }
      if (!slab->allocated.on_free(SlabType::place_of(block))) {
        report_double_free(block);
        return false;
      }
    }
    poison_.on_free(block, Classes::slot_bytes(c));
    return true;
  }

  // A block that is free already comes back. AddressSanitizer's report knows more than our line.
  static void report_double_free(const void* block) noexcept {
    if constexpr (base::kAddressSanitizer && !base::kChecked) base::asan_report_use(const_cast<void*>(block));
    base::fatal(base::HeapError::kDoubleFree, block);
  }

  // The block behind the header of a large one.
  [[nodiscard]] static void* large_block(const SlabType& header) noexcept {
    return static_cast<std::byte*>(header.memory.load()) + header.slots_begin.load();
  }

  // Makes at least `bytes` of free pages, up to what slabs keep for themselves. False: the limit does not allow them, or
  // there is no memory; what was found stays.
  [[nodiscard]] bool reserve(std::size_t bytes) noexcept {
    if (!allows(bytes)) return false;
    for (std::size_t open = open_bytes(); open < bytes; open += SlabType::kBytes) {
      if (take_slab(0) == nullptr) return false;
    }
    return true;
  }

  // Takes back the pages of runs whose slots are all free, and gives wholly free slabs back to the source. `list(c)` is the
  // list of class c's free slots; `bumps(f)` calls f(c, begin, end) for each run that is handed out from its beginning on:
  // f's result tells that the run was taken back, and nothing of it may be handed out any more.
  // Returns the bytes of the slabs that went back. Cost: three passes over the free slots.
  template <class Lists, class Bumps>
  std::size_t reclaim(const Lists& list, const Bumps& bumps) noexcept {
    for (unsigned c = 0; c < Classes::kCount; ++c) {
      for (Free* slot = list(c).load(); slot != nullptr; slot = next(slot)) SlabType::count_free(slot, 1);
    }
    bumps([](unsigned c, std::byte* begin, std::byte* end) noexcept {
      if (begin != end) SlabType::count_free(begin, static_cast<std::uint16_t>((end - begin) / Classes::slot_bytes(c)));
      return false;
    });
    for (unsigned c = 0; c < Classes::kCount; ++c) drop_free_runs(list(c));
    bumps(
        [](unsigned, std::byte* begin, std::byte* end) noexcept { return begin != end && SlabType::is_in_free_run(begin); });
    return give_free_runs_back();
  }

  // Makes all pages of class c free ones. Pre: none of its slots is out. Cost: a pass over the slabs.
  void take_runs_back(unsigned c) noexcept {
    for (SlabType* slab = slabs_.first(); slab != nullptr; slab = slabs_.after(*slab)) {
      for (unsigned page = 0; page < SlabType::kPages; ++page)
        if (slab->page_class[page].load() == c + 1) free_page(*slab, page);
    }
  }

  // Gives everything back but the heap's own data. Ends every block.
  void release_all() noexcept {
    poison_.on_free_all();
    for (SlabType* large = larges_.first(); large != nullptr;) {
      SlabType* const following = larges_.after(*large);
      drop_large(large);
      large = following;
    }
    larges_.clear();
    larges_count_.store(0);
    for (SlabType* slab = slabs_.first(); slab != nullptr;) {
      SlabType* const following = slabs_.after(*slab);
      free_pages_of(*slab);
      slab->allocated.clear();
      if (is_wholly_free(*slab)) give_back(slab);
      slab = following;
    }
  }

  // The next free slot; and what links it. Under a memory checker the slot may not be touched otherwise.
  [[nodiscard]] Free* next(Free* slot) const noexcept {
    if (!poison_.watched()) [[likely]]
      return slot->next.load();
    poison_.unpoison_link(slot, sizeof(Free));
    Free* const following = slot->next.load();
    poison_.poison_link(slot, sizeof(Free));
    return following;
  }
  void set_next(Free* slot, Free* following) const noexcept {
    if (!poison_.watched()) [[likely]]
      return slot->next.store(following);
    poison_.unpoison_link(slot, sizeof(Free));
    slot->next.store(following);
    poison_.poison_link(slot, sizeof(Free));
  }
  [[nodiscard]] const base::HeapPoison& poison() const noexcept { return poison_; }

  [[nodiscard]] Refusal refusal() const noexcept { return refusal_.load(); }
  [[nodiscard]] std::size_t held_bytes() const noexcept { return held_bytes_.load(); }
  [[nodiscard]] std::size_t used_bytes() const noexcept { return used_bytes_.load(); }
  void add_to(HeapStats& stats) const noexcept {
    stats.used_bytes += used_bytes_.load();
    stats.held_bytes += held_bytes_.load();
    stats.limit_bytes = limit_bytes_;
    stats.slabs += slabs_count_.load();
    stats.large_blocks += larges_count_.load();
    stats.live_objects += larges_count_.load();
    for (const SlabType* large = larges_.first(); large != nullptr; large = larges_.after(*large))
      stats.live_bytes += large->large_bytes.load();
  }
  // Slots of the runs that belong to class c. Cost: a pass over all slabs; for tests.
  [[nodiscard]] std::size_t slots_of(unsigned c) noexcept {
    std::size_t slots = 0;
    for (SlabType* slab = slabs_.first(); slab != nullptr; slab = slabs_.after(*slab))
      for (unsigned page = 0; page < SlabType::kPages; ++page)
        if (slab->page_class[page].load() == c + 1 && slab->run_of[page].load() == page) slots += slab->run_slots(page);
    return slots;
  }

  void check_invariants() noexcept {
    std::size_t used = 0, slabs = 0, open = 0;
    for (SlabType* slab = slabs_.first(); slab != nullptr; slab = slabs_.after(*slab), ++slabs) {
      open += slab->open.load() != 0;
      for (unsigned page = 0; page < SlabType::kPages; ++page) {
        const bool is_free = slab->page_class[page].load() == SlabType::kFree;
        FREEHOLD_ASSERT(is_free == ((slab->open.load() >> page & 1) != 0));
        if (!is_free && slab->page_class[page].load() != SlabType::kInternal) used += SlabType::kPageBytes;
        FREEHOLD_ASSERT(slab->free_slots[page].load() == 0);
      }
    }
    for (SlabType* slab = open_.first(); slab != nullptr; slab = open_.after(*slab)) {
      FREEHOLD_ASSERT(slab->open.load() != 0);
      --open;
    }
    FREEHOLD_ASSERT(open == 0 && slabs == slabs_count_.load());
    for (SlabType* large = larges_.first(); large != nullptr; large = larges_.after(*large)) used += large_extent(*large);
    FREEHOLD_ASSERT(used == used_bytes_.load() && used <= held_bytes_.load());
    static_cast<void>(used);
  }

 private:
  // Slabs that are looked at for a run of pages before another one is taken.
  static constexpr unsigned kLooks = 8;

  struct PageRange {
    SlabType* slab = nullptr;
    typename SlabType::Range pages{};
  };

  // The fewest pages whose slots leave at most an eighth of them unused.
  static constexpr std::array<std::uint8_t, Classes::kCount> kLeastPages = [] {
    std::array<std::uint8_t, Classes::kCount> least{};
    for (unsigned c = 0; c < Classes::kCount; ++c) {
      unsigned pages = 1;
      const auto wasted = [&] {
        const std::size_t bytes = pages * SlabType::kPageBytes;
        return bytes < Classes::slot_bytes(c) ? bytes : bytes % Classes::slot_bytes(c);
      };
      while (wasted() * 8 > pages * SlabType::kPageBytes && pages < SlabType::kPages / 2) ++pages;
      least[c] = static_cast<std::uint8_t>(pages);
    }
    return least;
  }();

  [[nodiscard]] std::size_t open_bytes() const noexcept {
    std::size_t pages = 0;
    for (SlabType* slab = open_.first(); slab != nullptr; slab = open_.after(*slab))
      pages += static_cast<std::size_t>(std::popcount(slab->open.load()));
    return pages * SlabType::kPageBytes;
  }
  [[nodiscard]] bool allows(std::size_t bytes) const noexcept {
    return bytes <= limit_bytes_ && used_bytes_.load() <= limit_bytes_ - bytes;
  }
  Run refuse(Refusal why) noexcept {
    refusal_.store(why);
    return {};
  }
  Run refuse_limited(std::size_t bytes) noexcept {
    return refuse(bytes > limit_bytes_ ? Refusal::kBeyondLimit : Refusal::kLimit);
  }
  void add_used(std::size_t bytes) noexcept { used_bytes_.store(used_bytes_.load() + bytes); }
  void add_held(std::size_t bytes) noexcept { held_bytes_.store(held_bytes_.load() + bytes); }

  [[nodiscard]] SlabType* new_header(void* at, void* memory, std::size_t alignment, SlabKind kind) noexcept {
    auto* const header = ::new (at) SlabType;
    header->heap.store(heap_);
    header->memory.store(memory);
    header->alignment.store(alignment);
    header->kind.store(kind);
    return header;
  }

  [[nodiscard]] SlabType* take_slab(std::size_t internal_bytes) noexcept {
    void* const memory = source_.take(SlabType::kBytes, SlabType::kBytes);
    if (memory == nullptr) return nullptr;
    SlabType* const slab = new_header(memory, memory, SlabType::kBytes, SlabKind::kPages);
    const std::size_t begin = base::align_up(SlabType::kHeaderBytes + internal_bytes, Classes::kMaxAlignment);
    FREEHOLD_ASSERT(begin < SlabType::kBytes);
    slab->slots_begin.store(static_cast<std::uint32_t>(begin));
    const auto internal = static_cast<unsigned>(begin >> Geometry::kPageShift);
    for (unsigned page = 0; page < internal; ++page) slab->page_class[page].store(SlabType::kInternal);
    slab->open.store(static_cast<std::uint16_t>(SlabType::kAllPages << internal));
    poison_.poison(slab->start() + begin, SlabType::kBytes - begin);
    slabs_.push(*slab);
    open_.push(*slab);
    slabs_count_.store(slabs_count_.load() + 1);
    add_held(SlabType::kBytes);
    return slab;
  }
  // Pre: nothing of it is used but what release_all() leaves.
  void give_back(SlabType* slab) noexcept {
    slabs_.remove(*slab);
    if (slab->open.load() != 0) open_.remove(*slab);
    slabs_count_.store(slabs_count_.load() - 1);
    held_bytes_.store(held_bytes_.load() - SlabType::kBytes);
    give_memory_back(slab, SlabType::kBytes);
  }

  [[nodiscard]] static std::size_t large_extent(const SlabType& header) noexcept {
    return header.large_bytes.load() + header.slots_begin.load();
  }
  // Whether the header may be read. (Before a block that is aligned as slabs are, one is taken on trust.)
  [[nodiscard]] bool looks_like_ours(const SlabType* slab) const noexcept {
    return !base::is_aligned(reinterpret_cast<std::uintptr_t>(slab), SlabType::kBytes) || source_.is_from(slab);
  }
  void drop_large(SlabType* header) noexcept {
    const std::size_t extent = large_extent(*header);
    used_bytes_.store(used_bytes_.load() - extent);
    held_bytes_.store(held_bytes_.load() - extent);
    give_memory_back(header, extent);
  }
  void give_memory_back(SlabType* header, std::size_t bytes) noexcept {
    void* const memory = header->memory.load();
    const std::size_t alignment = header->alignment.load();
    poison_.unpoison(memory, bytes);
    source_.give_back(memory, alignment);
  }

  // ---- pages ----

  // The first run of `pages` free pages among kLooks slabs, else the longest one that holds a slot, from `least` pages on.
  [[nodiscard]] PageRange best_range(unsigned c, unsigned pages, unsigned least) noexcept {
    PageRange best;
    unsigned looks = kLooks;
    for (SlabType* slab = open_.first(); slab != nullptr && looks > 0; slab = open_.after(*slab), --looks) {
      const typename SlabType::Range range = slab->free_range(c, pages);
      if (range.pages > best.pages.pages) best = {slab, range};
      if (best.pages.pages == pages) break;
    }
    return best.pages.pages < least ? PageRange{} : best;
  }
  void mark(const PageRange& range, std::uint8_t page_class) noexcept {
    range.slab->mark_run(range.pages, page_class);
    if (range.slab->open.load() == 0) open_.remove(*range.slab);
    if (page_class != SlabType::kInternal) add_used(range.pages.pages * SlabType::kPageBytes);
  }
  [[nodiscard]] void* internal_pages(SlabType& slab, unsigned pages) noexcept {
    const auto fits = static_cast<std::uint16_t>(base::low_bits(pages));
    // The pages with the slab's header, and with what start() gave, may be open for slots behind these.
    auto first = static_cast<unsigned>(base::ceil_div(slab.slots_begin.load(), SlabType::kPageBytes));
    for (; first + pages <= SlabType::kPages; ++first) {
      if ((slab.open.load() >> first & fits) != fits) continue;
      mark({&slab, {first, pages}}, SlabType::kInternal);
      std::byte* const begin = slab.start() + first * SlabType::kPageBytes;
      poison_.unpoison(begin, pages * SlabType::kPageBytes);
      return begin;
    }
    return nullptr;
  }
  void free_page(SlabType& slab, unsigned page) noexcept {
    if (slab.open.load() == 0) open_.push(slab);
    slab.mark_free(page);
    used_bytes_.store(used_bytes_.load() - SlabType::kPageBytes);
  }
  void free_pages_of(SlabType& slab) noexcept {
    for (unsigned page = 0; page < SlabType::kPages; ++page) {
      const std::uint8_t c = slab.page_class[page].load();
      if (c == SlabType::kFree || c == SlabType::kInternal) continue;
      free_page(slab, page);
      poison_.poison(slab.run_begin(page), SlabType::kPageBytes - offset_in_page(slab.run_begin(page)));
    }
  }
  [[nodiscard]] static std::size_t offset_in_page(const void* at) noexcept {
    return reinterpret_cast<std::uintptr_t>(at) & (SlabType::kPageBytes - 1);
  }
  [[nodiscard]] bool is_wholly_free(const SlabType& slab) const noexcept {
    return slab.open.load() == SlabType::kAllPages && &slab != first_.load();
  }

  // ---- reclaim ----

  void drop_free_runs(var<Free*>& list) noexcept {
    Free* kept = nullptr;
    Free* slot = list.load();
    list.store(nullptr);
    for (Free* following; slot != nullptr; slot = following) {
      following = next(slot);
      if (SlabType::is_in_free_run(slot)) continue;
      if (kept == nullptr)
        list.store(slot);
      else
        set_next(kept, slot);
      kept = slot;
    }
    if (kept != nullptr) set_next(kept, nullptr);
  }
  std::size_t give_free_runs_back() noexcept {
    std::size_t bytes = 0;
    for (SlabType* slab = slabs_.first(); slab != nullptr;) {
      SlabType* const following = slabs_.after(*slab);
      for (unsigned first = 0; first < SlabType::kPages; ++first) {
        if (slab->free_slots[first].load() == 0) continue;
        const bool is_free = slab->is_free_run(first);
        slab->free_slots[first].store(0);
        if (!is_free) continue;
        const unsigned end = slab->run_end_page(first);
        for (unsigned page = first; page < end; ++page) free_page(*slab, page);
      }
      if (is_wholly_free(*slab)) {
        give_back(slab);
        bytes += SlabType::kBytes;
      }
      slab = following;
    }
    return bytes;
  }

  static constexpr std::size_t kMaxLargeAlignment = std::size_t{1} << 31;

  void* heap_;
  std::size_t limit_bytes_;
  [[no_unique_address]] Source source_;
  [[no_unique_address]] base::HeapPoison poison_;
  alignas(base::kCacheLine) var<SlabType*> first_{nullptr};  // holds the heap's own data
  SlabList<SlabType, &SlabType::next, &SlabType::previous> slabs_;
  SlabList<SlabType, &SlabType::next_open, &SlabType::previous_open> open_;
  SlabList<SlabType, &SlabType::next, &SlabType::previous> larges_;
  var<std::size_t> slabs_count_{0};
  var<std::size_t> larges_count_{0};
  var<std::size_t> used_bytes_{0};
  var<std::size_t> held_bytes_{0};
  var<Refusal> refusal_{Refusal::kNone};
};

}  // namespace freehold::heap
