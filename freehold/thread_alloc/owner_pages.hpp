// SPDX-License-Identifier: MIT
// OwnerPages: how every thread's own pages serve its small blocks. The design of the thread-local article.
//
// A thread becomes an owner with join() and stops with leave(). In between it allocates from its own pages without an atomic
// read-modify-write. A page (4 KiB from an upstream) serves one size class. Its header, found by masking a slot's address,
// names the owner. A thread that frees another owner's slot puts it into an outbox. When Config::kHandOver slots for one
// owner have come together, it hands the batch over through that owner's RemoteFreeList (remote_free_list.hpp).
//
// Life of a page: fresh → open (has free slots) ⇄ full → empty → upstream; each page queue keeps one empty page as a spare.
// Life of an owner: join → leave. leave() returns the empty pages and closes the list. From then on every page left behind
// belongs to the threads that hold its slots: each free counts the page's `used` down, the last one returns the page, and
// the last page recycles the owner's descriptor. Descriptors are never given back, so a late read of one is harmless.
//
// Invariants, tested by check_invariants():  used + free slots = capacity, for every page of a living owner
//   Σ used = slots the program holds + slots in outboxes or handed over and not yet drained
// Limit of the design, kept on purpose: an owner that sleeps does not drain. The waiting slots are the owner's own.
//
// This file: the types, the data and the fast paths. owner_pages_slow.hpp: refill, remote frees, pages left behind.
// owner_pages_descriptors.hpp: join, fork, statistics, checks.
// Cost: allocate and free by the owner, a few loads and stores of the owner's lines; one push per kHandOver remote frees.
// Source: K. Knizhnik's thread_alloc, with per-page lists so that an empty page can go back, and headers by masking.
#pragma once
#include <array>
#include <atomic>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/sync/atomics.hpp"
#include "freehold/sync/lock.hpp"
#include "freehold/thread_alloc/remote_free_list.hpp"

namespace freehold::thread_alloc {

// A source of pages. allocate_page: kPageBytes bytes aligned to as much, or null; contents are arbitrary. Any thread.
template <class U>
concept PageUpstream = requires(U& upstream, void* page) {
  { upstream.allocate_page() } -> std::same_as<void*>;
  upstream.free_page(page);
};

struct OwnerPagesOrders {
  // Counts down `used` of a page left behind. release: pairs with the acquire of the thread that counts it to zero; what
  // each thread did in its slot happens before the page is reused. acquire: the other half.
  static constexpr std::memory_order kPageCountDown = std::memory_order_acq_rel;
  // Counts down `pages_` of an owner that has left. release and acquire as above: the last look of others at its list, and
  // what it counted itself, happens before the descriptor's next owner resets it.
  static constexpr std::memory_order kOwnerCountDown = std::memory_order_acq_rel;
};

// The article's figures. Copy and change it for other policies; a Config also needs an Upstream.
struct OwnerPagesConfig {
  static constexpr std::size_t kPageBytes = 4096;
  static constexpr std::array<std::uint16_t, 5> kSlotBytes{16, 32, 48, 64, 128};  // multiples of 16, rising
  static constexpr std::uint32_t kHandOver = 100;   // slots gathered for an owner before they are handed over; 1: at once
  static constexpr std::uint32_t kCollectAt = 100;  // slots in a mutex list at which the owner drains before it must
  static constexpr bool kLookAlways = false;     // every allocate() looks whether so many wait; else one in a page of them
  static constexpr std::uint32_t kOutboxes = 8;  // owners for whom a thread gathers at the same time; a power of two
  static constexpr std::size_t kColours = 8;     // places of a page's header, a cache line apart; a power of two
  template <class A>
  using List = MutexPendingList<A>;
  using Orders = OwnerPagesOrders;
};

// A snapshot; figures of running threads may be some operations old. Events count since the start, finished threads
// included.
struct OwnerPagesStats {
  std::uint64_t owners;           // threads that have joined and not left
  std::uint64_t owners_left;      // owners that left pages behind
  std::uint64_t descriptors;      // owners there is room for
  std::uint64_t pages;            // held from the upstream, descriptors' pages not included
  std::uint64_t pages_left;       // pages left behind by threads that have exited
  std::uint64_t gathered;         // slots that freeing threads have not handed over yet
  std::uint64_t pending;          // slots handed over and not drained yet
  std::uint64_t remote_frees;     // slots freed by another thread than their owner
  std::uint64_t hand_overs;       // batches pushed
  std::uint64_t drains;           // times an owner took all batches that waited
  std::uint64_t abandoned_frees;  // slots freed into pages left behind
  std::uint64_t contention;       // pushes and drains that had to wait or to try again
};

template <sync::Atomics A, class Config>
class OwnerPages {
  template <class T>
  using Var = typename A::template var<T>;
  template <class T>
  using Atomic = typename A::template atomic<T>;
  using Node = FreeNode<A>;
  using Orders = typename Config::Orders;
  using List = typename Config::template List<A>;

 public:
  using Upstream = typename Config::Upstream;
  static constexpr std::size_t kMaxBytes = Config::kSlotBytes.back();  // larger requests are not for this class
  class Owner;

  constexpr OwnerPages() noexcept = default;
  constexpr explicit OwnerPages(Upstream upstream) noexcept : upstream_(upstream) {}
  OwnerPages(const OwnerPages&) = delete;
  OwnerPages& operator=(const OwnerPages&) = delete;

  // Makes the calling thread an owner. Returns null if the upstream has no page for its descriptor. Cost: a mutex.
  [[nodiscard]] Owner* join() noexcept;
  // Ends it: hands its outboxes over, returns its empty pages, leaves the others to the threads that free into them.
  // Pre: the calling thread joined as `self`; `self` is not used again.
  void leave(Owner& self) noexcept;

  // A slot of at least `bytes` bytes, aligned to 16; null with errno ENOMEM if the upstream has no page.
  // Pre: bytes <= kMaxBytes. Threads: the owner.
  [[nodiscard]] void* allocate(Owner& self, std::size_t bytes) noexcept {
    FREEHOLD_ASSERT(bytes <= kMaxBytes);
    if constexpr (Config::kLookAlways) {
      if (self.remote_.ready(Config::kCollectAt)) [[unlikely]]
        collect(self);
    }
    const unsigned c = kClassOf[(bytes + kGranule - 1) / kGranule];
    Page* const page = self.queues_[c].current.load();
    Node* const node = page->free.load();
    if (node == nullptr) [[unlikely]]
      return allocate_slow(self, c);
    return pop(page, node);
  }

  // Gives a slot back. Threads: any; `self` is the calling thread's owner, or null if it has none (yet, or any more).
  void deallocate(Owner* self, void* slot) noexcept {
    Page* const page = page_of(slot);
    Owner* const owner = page->owner.load();
    if (owner == self) [[likely]]
      release(*self, page, slot);
    else
      release_remote(self, owner, ::new (slot) Node);
  }

  // The bytes of the slot's class. Threads: any.
  [[nodiscard]] static std::size_t usable_size(const void* slot) noexcept {
    return Config::kSlotBytes[page_of(slot)->size_class.load()];
  }

  // Drains what waits for `self`, hands its outboxes over, and returns every empty page of `self`, spares included. Returns
  // the pages returned. Threads: the owner.
  std::size_t trim(Owner& self) noexcept;

  void stats(OwnerPagesStats& out) noexcept;

  // Around fork: after before_fork() no other thread is inside one of our locks. Order: the registry, then the lists in the
  // order of their creation; the upstream is never called under either. In the child, the slots that wait for threads that
  // are gone stay in these threads' lists.
  void before_fork() noexcept;
  void after_fork() noexcept;

  // Tests the equation of every page of `self`, its lists and its counts. Threads: the owner.
  [[nodiscard]] bool check_invariants(const Owner& self) const noexcept;
  // Σ used over the pages of `self`. Threads: the owner.
  [[nodiscard]] std::size_t slots_in_use(const Owner& self) const noexcept;
  // Returns the pages of the descriptors. Pre: every owner has left and every slot was freed.
  void release_descriptors() noexcept;

  [[nodiscard]] Upstream& upstream() noexcept { return upstream_; }

 private:
  static constexpr std::size_t kGranule = 16;  // bytes: the least slot and every slot's alignment
  static constexpr unsigned kClasses = Config::kSlotBytes.size();

  // A ring of pages through a member; the list's head is a Links, too.
  struct Links {
    Var<Links*> next, prev;
    void make_ring() noexcept {
      next.store(this);
      prev.store(this);
    }
    void insert_before(Links& place) noexcept {
      Links* const before = place.prev.load();
      prev.store(before);
      next.store(&place);
      before->next.store(this);
      place.prev.store(this);
    }
    void remove() noexcept {
      prev.load()->next.store(next.load());
      next.load()->prev.store(prev.load());
    }
  };

  // used + length(free) + length(given) = capacity.  full ⇔ in its queue's ring `full`, and then no slot is free.
  // A page is in exactly one place: its queue's ring `open` (`current` is one of these), ring `full`, or `spare`.
  struct Page : Links {
    // Written when the page is made, read by every thread that holds a slot.
    Var<Owner*> owner;
    Var<std::uint32_t> size_class;
    // Slots not in free or given. Written by the owner; once it has left, counted down by the threads that free into the
    // page.
    Atomic<std::uint32_t> used{0};
    // The owner's. Frees go to `given`; when `free` is used up, `given` becomes `free`. So a thread that frees what it
    // allocates still comes through allocate_slow once a page, where it looks at its pending list.
    Var<Node*> free{nullptr};
    Var<Node*> given{nullptr};
    Var<bool> full{false};
  };

  // The pages of one size class.
  struct PageQueue {
    Var<Page*> current;  // an open page, or the owner's `none_`
    Var<Page*> spare;    // an empty page kept back, or null
    Links open, full;
  };

  // Slots freed for one other owner, linked, not handed over yet; target is valid while count > 0.
  struct Outbox {
    Var<Owner*> target;
    Var<Node*> first, last;
    Atomic<std::uint32_t> count{0};  // written by the gathering thread, read by stats
  };

  // Written by one thread, read by stats.
  struct Counters {
    Atomic<std::uint64_t> handed_over{0}, hand_overs{0}, drained{0}, drains{0}, abandoned_frees{0};
  };

  enum State : std::uint32_t { kUnused, kJoined, kLeft };

 public:
  // A thread's descriptor. Grouped by who writes: the owner; any thread; the registry.
  class alignas(base::kCacheLine) Owner {
    friend class OwnerPages;
    std::array<PageQueue, kClasses> queues_;
    Page none_;  // never has a free slot, so the fast path need not test whether there is a page
    Counters counters_;
    std::array<Outbox, Config::kOutboxes> outboxes_;

    alignas(base::kCacheLine) List remote_;

    // Pages of this owner, written by it alone; from leave() on those left behind, plus one while leave() runs. The thread
    // that counts it to zero recycles the descriptor.
    alignas(base::kCacheLine) Atomic<std::uint32_t> pages_{0};
    Atomic<std::uint32_t> state_{kUnused};  // for stats
    Var<Owner*> next_unused_;               // under registry_
  };

 private:
  static constexpr std::size_t kHeaderBytes = base::align_up(sizeof(Page), kGranule);

  // Descriptors are made by the page and are never freed: see "Life of an owner".
  struct OwnerBatch {
    static constexpr std::size_t kOwners = (Config::kPageBytes - base::kCacheLine) / sizeof(Owner);
    Var<OwnerBatch*> next;
    std::array<Owner, kOwners> owners;
  };
  static_assert(OwnerBatch::kOwners > 0 && sizeof(OwnerBatch) <= Config::kPageBytes);
  static_assert(std::has_single_bit(Config::kPageBytes) && std::has_single_bit(Config::kOutboxes));
  static_assert(PageUpstream<Upstream> && RemoteFreeList<List>);

  static constexpr auto kClassOf = [] {
    std::array<std::uint8_t, kMaxBytes / kGranule + 1> class_of{};
    for (std::size_t granules = 0; granules < class_of.size(); ++granules)
      while (Config::kSlotBytes[class_of[granules]] < granules * kGranule) ++class_of[granules];
    return class_of;
  }();
  static_assert(Config::kSlotBytes.front() >= sizeof(Node));
  static_assert(sizeof(Page) <= base::kCacheLine && alignof(Owner) == base::kCacheLine);
  static_assert(kHeaderBytes + (Config::kColours - 1) * base::kCacheLine + kMaxBytes <= Config::kPageBytes);

  // A page's header has an offset that depends on the page: at the same offset of every page headers would share a few sets
  // of each cache, and a free in random order would miss them all.
  static constexpr std::size_t colour(std::uintptr_t page) noexcept {
    return page / Config::kPageBytes % Config::kColours * base::kCacheLine;
  }
  static Page* page_of(const void* slot) noexcept {
    const std::uintptr_t page = base::align_down(reinterpret_cast<std::uintptr_t>(slot), Config::kPageBytes);
    return reinterpret_cast<Page*>(page + colour(page));
  }
  // The page that the upstream gave for it.
  static void* memory_of(Page* page) noexcept {
    return reinterpret_cast<void*>(base::align_down(reinterpret_cast<std::uintptr_t>(page), Config::kPageBytes));
  }
  // Slots lie from the page's beginning up to the header, and from the header to the page's end.
  struct Layout {
    std::size_t header, slot_bytes;  // offset; size
    [[nodiscard]] std::uint32_t before() const noexcept { return static_cast<std::uint32_t>(header / slot_bytes); }
    [[nodiscard]] std::uint32_t capacity() const noexcept {
      return before() + static_cast<std::uint32_t>((Config::kPageBytes - header - kHeaderBytes) / slot_bytes);
    }
    [[nodiscard]] std::size_t offset(std::uint32_t i) const noexcept {
      return i < before() ? i * slot_bytes : header + kHeaderBytes + (i - before()) * slot_bytes;
    }
  };
  static Layout layout_of(const void* page, unsigned c) noexcept {
    return {colour(reinterpret_cast<std::uintptr_t>(page)), Config::kSlotBytes[c]};
  }

  // relaxed throughout: these words have one writer, or publish nothing.
  template <class T>
  static void add(Atomic<T>& own, T n) noexcept {
    own.store(own.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void count(Owner* self, Atomic<std::uint64_t> Counters::* event, std::uint64_t n) noexcept {
    if (self != nullptr)
      add(self->counters_.*event, n);
    else
      (ownerless_.*event).fetch_add(n, std::memory_order_relaxed);
  }

  static void* pop(Page* page, Node* node) noexcept {
    page->free.store(node->next.load());
    add(page->used, std::uint32_t{1});
    node->~Node();
    return node;
  }

  void release(Owner& self, Page* page, void* slot) noexcept {
    // relaxed: only the owner writes it while it lives.
    const std::uint32_t used = page->used.load(std::memory_order_relaxed);
    if (used <= 1 || page->full.load() || page->given.load() == slot) [[unlikely]]
      return release_slow(self, page, slot, used);
    give(page, slot, used);
  }
  static void give(Page* page, void* slot, std::uint32_t used) noexcept {
    Node* const node = ::new (slot) Node;
    node->next.store(page->given.load());
    page->given.store(node);
    page->used.store(used - 1, std::memory_order_relaxed);  // relaxed: as above
  }

  [[gnu::noinline]] void* allocate_slow(Owner& self, unsigned c) noexcept;
  [[gnu::noinline]] void release_slow(Owner& self, Page* page, void* slot, std::uint32_t used) noexcept;
  [[gnu::noinline]] void release_remote(Owner* self, Owner* owner, Node* node) noexcept;
  Page* next_page(Owner& self, PageQueue& queue) noexcept;
  Page* new_page(Owner& self, unsigned c) noexcept;
  void return_page(Owner& self, Page* page) noexcept;
  bool collect(Owner& self) noexcept;
  void hand_over(Owner* self, Owner* owner, Node* first, Node* last, std::uint32_t n) noexcept;
  void send_outbox(Owner& self, Outbox& box) noexcept;
  void send_outboxes(Owner& self) noexcept;
  void release_abandoned(Node* node) noexcept;
  void count_down(Owner& owner) noexcept;
  Owner* take_unused() noexcept;
  void reset(Owner& owner) noexcept;
  template <class F>
  void for_each_owner(F visit) noexcept;
  template <class F>
  static bool all_pages(const Owner& self, F holds) noexcept;
  static bool check_page(const Owner& self, const PageQueue& queue, const Page& page, unsigned c) noexcept;

  // Under registry_: the list of batches and the list of unused descriptors.
  sync::Mutex<A> registry_;
  Var<OwnerBatch*> batches_{nullptr};
  Var<OwnerBatch*> last_batch_{nullptr};
  Var<Owner*> unused_{nullptr};
  Counters ownerless_;  // counts by threads that free without being owners
  [[no_unique_address]] Upstream upstream_{};
};

}  // namespace freehold::thread_alloc

#include "freehold/thread_alloc/owner_pages_descriptors.hpp"
#include "freehold/thread_alloc/owner_pages_slow.hpp"
