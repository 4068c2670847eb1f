// SPDX-License-Identifier: MIT
// The slabs of one private heap: hands their pages out in runs, to the size classes and to the heap itself, and takes them
// back; and says of an address which block it is. The heap's lock guards it.
//
//   Run run = slabs.take_pages(c, pages);               // begin is null: refused, see refusal()
//   void* block = slabs.take_large(bytes, alignment);   // above the largest class: large_blocks.hpp
//   unsigned c = Slabs::class_in(*slabs.find(block), block);
//
//   Invariants: pages of slabs that belong to a class + bytes of large blocks == used_bytes() <= the limit;
//               a slab is in the list of open ones iff it has a free page.
//
// Externally locked, except what it says of one block. take_pages: a look at kLooks slabs; a new slab costs a call to the
// source. release_all: one call to the source for each slab and large block, however many objects they hold.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "freehold/alloc/scope/scope.hpp"
#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/base/poison.hpp"
#include "freehold/check/claim.hpp"
#include "freehold/heap/checked_heap.hpp"
#include "freehold/heap/heap_memory.hpp"
#include "freehold/heap/heap_options.hpp"
#include "freehold/heap/large_blocks.hpp"
#include "freehold/heap/slab.hpp"
#include "freehold/heap/slab_list.hpp"
#include "freehold/heap/slab_source.hpp"

namespace freehold::heap {

template <sync::Atomics A, class Geometry, SlabSource Source>
class Slabs {
 public:
  using SlabType = Slab<A, Geometry>;
  using Classes = typename Geometry::Classes;
  using Free = FreeSlot<A>;
  template <class T>
  using var = typename A::template var<T>;

  // The last bytes of a slot belong to no block, so that AddressSanitizer sees an overrun beside a neighbour in use.
  static constexpr std::size_t kRedZone = base::kAddressSanitizer ? 16 : 0;
  [[nodiscard]] static constexpr std::size_t usable_bytes(unsigned c) noexcept { return Classes::slot_bytes(c) - kRedZone; }
  // Returns a slot's bytes for a block of `bytes`. A block of no bytes has one, so that its address is unique and its usable
  // size tells it from a pointer to no block.
  [[nodiscard]] static constexpr std::size_t with_red_zone(std::size_t bytes) noexcept {
    return (bytes == 0 ? 1 : bytes) + kRedZone;
  }

  // Memory for slots of one class.
  struct Run {
    std::byte* begin = nullptr;
    std::byte* end = nullptr;
  };

  Slabs(void* heap, std::size_t limit_bytes, Source source) noexcept
      : memory_(heap, limit_bytes, source), checked_(memory_) {}
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
    if (slab == nullptr) return memory_.refuse(Refusal::kMemory);
    first_.store(slab);
    return slab->start() + SlabType::kHeaderBytes;
  }

  // Up to `pages` pages for slots of class c, at least enough for one. Begin is null: refused, see refusal().
  [[nodiscard]] Run take_pages(unsigned c, unsigned pages) noexcept {
    const unsigned least = kLeastPages[c];
    if (pages < least) pages = least;
    if (const std::size_t bytes = least * SlabType::kPageBytes; !memory_.allows(bytes)) {
      memory_.refuse_limited(bytes);
      return {};
    }
    const std::size_t room = memory_.allowed_bytes() >> Geometry::kPageShift;
    if (pages > room) pages = static_cast<unsigned>(room);
    PageRange range = best_range(c, pages, least);
    if (range.slab == nullptr) {
      SlabType* const slab = take_slab(0);
      if (slab == nullptr) return {memory_.refuse(Refusal::kMemory)};
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
    return larges_.take(memory_, bytes, alignment);
  }
  // Pre: what take_large() returned. Misuse ends in fatal().
  void give_large(void* block) noexcept {
    if (SlabType* const header = find(block); header != nullptr) larges_.give(memory_, header, block);
  }

  // ---- checked mode: each block is apart; no slab is taken

  [[nodiscard]] bool is_checked() const noexcept { return memory_.checks() != nullptr; }
  // Null: refused.
  [[nodiscard]] void* take_checked(std::size_t bytes, std::size_t alignment) noexcept {
    return checked_.take(memory_, bytes, alignment);
  }
  // Misuse ends in fatal().
  void give_checked(void* block, const check::Claim& claim) noexcept { checked_.give(memory_, block, claim); }
  void orphan_checked() noexcept { checked_.orphan(memory_); }
  void report_checked() const noexcept { checked_.report(memory_); }
  [[nodiscard]] bool allows(std::size_t bytes) const noexcept { return memory_.allows(bytes); }

  // ---- one block

  // The slab or large block that `block` lies in. Null if it does not belong to this heap and the handler of fatal()
  // returned.
  [[nodiscard]] SlabType* find(const void* block) const noexcept {
    SlabType* const slab = SlabType::of(block);
    if (memory_.is_mine(slab)) [[likely]]
      return slab;
    base::fatal(base::HeapError::kForeignPointer, block);
    return nullptr;
  }
  // The heap of a block of any heap of this type.
  [[nodiscard]] static void* heap_of(const void* block) noexcept {
    if (OwnedBlocks::any()) [[unlikely]]
      if (void* const heap = OwnedBlocks::heap_of(block); heap != nullptr) return heap;
    return SlabType::of(block)->heap.load(std::memory_order_relaxed);
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
  // Returns whether no class has the page: if `block` ever was one, it has ended, and the last of its page with it.
  [[nodiscard]] static bool is_free_page(const SlabType& slab, const void* block) noexcept {
    return slab.page_class[slab.page_of(block)].load() == SlabType::kFree;
  }
  // The bytes that a block may use; 0 after a misuse.
  [[nodiscard]] std::size_t usable_size(const void* block) const noexcept {
    if (is_checked()) return checked_.usable_size(memory_, block);
    SlabType* const slab = find(block);
    if (slab == nullptr) return 0;
    if (slab->kind.load() == SlabKind::kLarge) return slab->large_bytes.load();
    const unsigned c = class_in(*slab, block);
    return c == kNoClass ? 0 : usable_bytes(c);
  }
  // Returns whether the block could have been allocated as one of class c (kNoClass: a large one) and of `bytes`, so that it
  // can be given back as such. Pre: a block of this heap.
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
    poison().on_allocate(block, usable_bytes(c));
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
    poison().on_free(block, Classes::slot_bytes(c));
    return true;
  }

  // A block that is free already comes back. AddressSanitizer's report knows more than our line.
  static void report_double_free(const void* block) noexcept {
    if constexpr (base::kAddressSanitizer && !base::kChecked) base::asan_report_use(const_cast<void*>(block));
    base::fatal(base::HeapError::kDoubleFree, block);
  }

  // Makes at least `bytes` of free pages, up to what slabs keep for themselves. False: the limit does not allow them, or
  // there is no memory; what was found stays.
  [[nodiscard]] bool reserve(std::size_t bytes) noexcept {
    if (!memory_.allows(bytes)) return false;
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
    count_free_slots(list, bumps);
    for (unsigned c = 0; c < Classes::kCount; ++c) drop_free_runs(list(c));
    bumps(
        [](unsigned, std::byte* begin, std::byte* end) noexcept { return begin != end && SlabType::is_in_free_run(begin); });
    return give_free_runs_back();
  }

  // ---- scopes: see HeapMemory

  // All that the heap has or gets is `scoped`'s from now on. False: no memory for that, which it needs once, and it is not.
  [[nodiscard]] bool begin_scopes(alloc::ScopedHeap& scoped) noexcept {
    bool all = true;
    for_each_header([&](SlabType* header) { all = all && memory_.put(header, scoped); });
    if (all)
      memory_.begin_scopes(scoped);
    else
      for_each_header([&](SlabType* header) { scoped.engine->remove(header->start() + SlabType::kHeaderBytes); });
    return all;
  }
  // Hands all slabs and large blocks with blocks in use to `ended`; the others go back, but that of `ended`. Pre: the caller
  // is alone, and reclaimed; `list` and `bumps` as there.
  template <class Ended, class Lists, class Bumps>
  void hand_over(Ended& ended, const HeapStats& last, const Lists& list, const Bumps& bumps) noexcept {
    std::size_t parts = 0;
    for_each_header([&](SlabType*) { ++parts; });
    count_free_slots(list, bumps);
    ended.begin(parts, last);
    for_each_header([&](SlabType* header) {
      const std::uint32_t blocks = header->kind.load() == SlabKind::kLarge ? 1 : header->used_slots();
      ended.adopt(*header, blocks);
    });
    slabs_.clear();
    larges_.clear();
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
    poison().on_free_all();
    if (is_checked()) checked_.release_all(memory_);
    larges_.release_all(memory_);
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
    if (!poison().watched()) [[likely]]
      return slot->next.load();
    poison().unpoison_link(slot, sizeof(Free));
    Free* const following = slot->next.load();
    poison().poison_link(slot, sizeof(Free));
    return following;
  }
  void set_next(Free* slot, Free* following) const noexcept {
    if (!poison().watched()) [[likely]]
      return slot->next.store(following);
    poison().unpoison_link(slot, sizeof(Free));
    slot->next.store(following);
    poison().poison_link(slot, sizeof(Free));
  }
  [[nodiscard]] const base::HeapPoison& poison() const noexcept { return memory_.poison(); }

  [[nodiscard]] Refusal refusal() const noexcept { return memory_.refusal(); }
  [[nodiscard]] const Source& source() const noexcept { return memory_.source(); }
  [[nodiscard]] std::size_t held_bytes() const noexcept { return memory_.held_bytes(); }
  [[nodiscard]] std::size_t used_bytes() const noexcept { return memory_.used_bytes(); }
  [[nodiscard]] bool is_near_limit() const noexcept { return memory_.is_near_limit(); }
  void add_to(HeapStats& stats) const noexcept {
    memory_.add_to(stats);
    stats.slabs += slabs_count_.load();
    larges_.add_to(stats);
    checked_.add_to(stats);
  }
  // Adds the places of all that, except checked mode's, from `heap` on.
  void add_to(LiveHeapLayout& layout, const void* heap) const noexcept {
    memory_.add_to(layout, heap);
    layout.slabs = base::distance(heap, &slabs_count_);
    larges_.add_to(layout, heap);
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
    std::size_t used = larges_.used_bytes() + checked_.used_bytes(), slabs = 0, open = 0;
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
    FREEHOLD_ASSERT(used == used_bytes() && used <= held_bytes());
    static_cast<void>(used);
  }

 private:
  // f(header) for each slab and each large block, and may end it.
  template <class F>
  void for_each_header(const F& f) noexcept {
    for (SlabType *slab = slabs_.first(), *following; slab != nullptr; slab = following) {
      following = slabs_.after(*slab);
      f(slab);
    }
    larges_.for_each(f);
  }
  template <class Lists, class Bumps>
  void count_free_slots(const Lists& list, const Bumps& bumps) noexcept {
    for (unsigned c = 0; c < Classes::kCount; ++c) {
      for (Free* slot = list(c).load(); slot != nullptr; slot = next(slot)) SlabType::count_free(slot, 1);
    }
    bumps([](unsigned c, std::byte* begin, std::byte* end) noexcept {
      if (begin != end)
        SlabType::count_free(begin,
                             static_cast<std::uint16_t>(static_cast<std::size_t>(end - begin) / Classes::slot_bytes(c)));
      return false;
    });
  }

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
  [[nodiscard]] SlabType* take_slab(std::size_t internal_bytes) noexcept {
    void* const memory = memory_.take(SlabType::kBytes, SlabType::kBytes);
    if (memory == nullptr) return nullptr;
    SlabType* const slab = memory_.new_header(memory, memory, SlabType::kBytes, SlabType::kBytes, SlabKind::kPages);
    const std::size_t begin = base::align_up(SlabType::kHeaderBytes + internal_bytes, Classes::kMaxAlignment);
    FREEHOLD_ASSERT(begin < SlabType::kBytes);
    slab->slots_begin.store(static_cast<std::uint32_t>(begin));
    const auto internal = static_cast<unsigned>(begin >> Geometry::kPageShift);
    for (unsigned page = 0; page < internal; ++page) slab->page_class[page].store(SlabType::kInternal);
    slab->open.store(static_cast<std::uint16_t>(SlabType::kAllPages << internal));
    poison().poison(slab->start() + begin, SlabType::kBytes - begin);
    if (!memory_.put(slab)) {
      memory_.give_back(slab, SlabType::kBytes);
      return nullptr;
    }
    slabs_.push(*slab);
    open_.push(*slab);
    slabs_count_.store(slabs_count_.load() + 1);
    return slab;
  }
  // Pre: nothing of it is used but what release_all() leaves.
  void give_back(SlabType* slab) noexcept {
    slabs_.remove(*slab);
    if (slab->open.load() != 0) open_.remove(*slab);
    slabs_count_.store(slabs_count_.load() - 1);
    memory_.give_back(slab, SlabType::kBytes);
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
    if (page_class != SlabType::kInternal) memory_.add_used(range.pages.pages * SlabType::kPageBytes);
  }
  [[nodiscard]] void* internal_pages(SlabType& slab, unsigned pages) noexcept {
    const auto fits = static_cast<std::uint16_t>(base::low_bits(pages));
    // The pages with the slab's header, and with what start() gave, may be open for slots behind these.
    auto first = static_cast<unsigned>(base::ceil_div(slab.slots_begin.load(), SlabType::kPageBytes));
    for (; first + pages <= SlabType::kPages; ++first) {
      if ((slab.open.load() >> first & fits) != fits) continue;
      mark({&slab, {first, pages}}, SlabType::kInternal);
      std::byte* const begin = slab.start() + first * SlabType::kPageBytes;
      poison().unpoison(begin, pages * SlabType::kPageBytes);
      return begin;
    }
    return nullptr;
  }
  void free_page(SlabType& slab, unsigned page) noexcept {
    if (slab.open.load() == 0) open_.push(slab);
    slab.mark_free(page);
    memory_.subtract_used(SlabType::kPageBytes);
  }
  void free_pages_of(SlabType& slab) noexcept {
    for (unsigned page = 0; page < SlabType::kPages; ++page) {
      const std::uint8_t c = slab.page_class[page].load();
      if (c == SlabType::kFree || c == SlabType::kInternal) continue;
      free_page(slab, page);
      poison().poison(slab.run_begin(page), SlabType::kPageBytes - offset_in_page(slab.run_begin(page)));
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

  HeapMemory<A, Geometry, Source> memory_;
  var<SlabType*> first_{nullptr};  // holds the heap's own data
  SlabList<SlabType, &SlabType::next, &SlabType::previous> slabs_;
  SlabList<SlabType, &SlabType::next_open, &SlabType::previous_open> open_;
  var<std::size_t> slabs_count_{0};
  LargeBlocks<A, Geometry, Source> larges_;
  CheckedHeap<A, Geometry, Source> checked_;
};

}  // namespace freehold::heap
