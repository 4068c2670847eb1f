// The thread-local article's allocator: every thread owns pages of its own, and only a free by another thread pays a toll.
//
// A thread has a chain of pages for each size class. A page (4 KiB from an upstream) has a header that masking a slot's
// address leads to; it names the owner. The owner allocates and frees without an atomic read-modify-write. Any other thread
// gathers what it frees for that owner, and hands the chain over through the owner's RemoteFreeList (remote_free_list.hpp)
// when Config::kHandOver slots have come together.
//
// Life of a page: fresh → open (has free slots) ⇄ full → empty → upstream; each chain keeps one empty page as a spare.
// Life of an owner: join → leave. leave() returns the empty pages and closes the list; from then on every page left behind
// belongs to those who hold its slots: each free counts the page's `used` down, the last one returns the page, and the last
// page recycles the owner's descriptor. Descriptors are never given back, so a late glance at one is harmless.
//
// Invariants, tested by check_invariants():  used + free slots = capacity, for every page of a living owner
//   Σ used = slots the program holds + slots gathered or handed over and not yet drained
// Limit of the design, kept on purpose: an owner that sleeps does not drain. What waits for it was its own memory once.
//
// Cost: allocate and free by the owner, a few loads and stores of its own lines; one push per kHandOver remote frees.
// Source: K. Knizhnik's thread_alloc, with per-page lists so that an empty page can go back, and headers by masking.
#pragma once
#include <array>
#include <atomic>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>

#include "freehold/alloc/remote_free_list.hpp"
#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/sync/atomics.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::alloc {

// Where pages come from. allocate_page: kPageBytes bytes aligned to as much, or null; contents are arbitrary. Any thread.
template <class U>
concept PageUpstream = requires(U& upstream, void* page) {
  { upstream.allocate_page() } -> std::same_as<void*>;
  upstream.free_page(page);
};

struct OwnerPagesOrders {
  // Of a page left behind, `used`. release: pairs with the acquire of the thread that counts it to zero; what each thread
  // did in its slot happens before the page is reused. acquire: the other half.
  static constexpr std::memory_order kPageCountDown = std::memory_order_acq_rel;
  // Of an owner that has left, `pages_`. release and acquire as above: the last look of others at its list, and what it
  // counted itself, happens before the descriptor's next owner resets it.
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
  std::uint64_t owners_left;      // of those that left: owners with pages left behind
  std::uint64_t descriptors;      // owners there is room for
  std::uint64_t pages;            // held from the upstream, descriptors' pages not included
  std::uint64_t pages_left;       // of them, left behind by threads that have exited
  std::uint64_t gathered;         // slots that freeing threads have not handed over yet
  std::uint64_t pending;          // slots handed over and not drained yet
  std::uint64_t remote_frees;     // slots freed by another thread than their owner
  std::uint64_t hand_overs;       // chains pushed
  std::uint64_t drains;           // chains of chains taken by owners
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
  // Ends it: hands over what it gathered, returns its empty pages, leaves the others to those who free into them.
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
    Page* const page = self.chains_[c].current.load();
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

  // Drains what waits for `self`, hands over what it gathered, and returns every empty page of its own, spares included.
  // Returns the pages returned. Threads: the owner.
  std::size_t trim(Owner& self) noexcept;

  void stats(OwnerPagesStats& out) noexcept;

  // Around fork: after hold() no other thread is inside one of our locks. Order: the registry, then the lists in the order
  // of their creation; the upstream is never called under either. In the child, slots of threads that are gone stay lists'.
  void hold() noexcept;
  void let_go() noexcept;

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

  // A ring of pages through a member; the list's head is a Links of its own.
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

  // used + length(free) + length(given) = capacity.  full ⇔ in its chain's ring `full`, and then no slot is free.
  // A page is in exactly one place: its chain's ring `open` (`current` is one of these), ring `full`, or `spare`.
  struct Page : Links {
    // Written when the page is made, read by whoever holds a slot.
    Var<Owner*> owner;
    Var<std::uint32_t> size_class;
    // Slots not in free or given. Written by the owner; once it has left, counted down by those who free into the page.
    Atomic<std::uint32_t> used{0};
    // The owner's. Frees go to `given`; when `free` is used up it takes over `given`. So a thread that frees what it
    // allocates still comes through allocate_slow once a page, where it looks at its pending list.
    Var<Node*> free{nullptr};
    Var<Node*> given{nullptr};
    Var<bool> full{false};
  };

  struct Chain {
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
    std::array<Chain, kClasses> chains_;
    Page none_;  // never has a free slot: spares the fast path the question whether there is a page
    Counters counters_;
    std::array<Outbox, Config::kOutboxes> outboxes_;

    alignas(base::kCacheLine) List remote_;

    // Pages of this owner, written by it alone; from leave() on those left behind, plus one while leave() runs: who counts
    // it to zero recycles the descriptor.
    alignas(base::kCacheLine) Atomic<std::uint32_t> pages_{0};
    Atomic<std::uint32_t> state_{kUnused};  // for stats
    Var<Owner*> next_unused_;               // under registry_
  };

 private:
  static constexpr std::size_t kHeaderBytes = base::align_up(sizeof(Page), kGranule);

  // Descriptors come by the page and stay: see "Life of an owner".
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

  // Where a page's header lies in it: headers at the same offset of every page would share a few sets of each cache, and
  // a free in random order would miss them all.
  static constexpr std::size_t colour(std::uintptr_t page) noexcept {
    return page / Config::kPageBytes % Config::kColours * base::kCacheLine;
  }
  static Page* page_of(const void* slot) noexcept {
    const std::uintptr_t page = base::align_down(reinterpret_cast<std::uintptr_t>(slot), Config::kPageBytes);
    return reinterpret_cast<Page*>(page + colour(page));
  }
  // What the upstream gave for it.
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
  Page* next_page(Owner& self, Chain& chain) noexcept;
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
  static bool check_page(const Owner& self, const Chain& chain, const Page& page, unsigned c) noexcept;

  // Under registry_: the list of batches and the list of unused descriptors.
  sync::Mutex<A> registry_;
  Var<OwnerBatch*> batches_{nullptr};
  Var<OwnerBatch*> last_batch_{nullptr};
  Var<Owner*> unused_{nullptr};
  Counters ownerless_;  // of threads that free without being owners
  [[no_unique_address]] Upstream upstream_{};
};

// ---- allocate ----

template <sync::Atomics A, class Config>
void* OwnerPages<A, Config>::allocate_slow(Owner& self, unsigned c) noexcept {
  Chain& chain = self.chains_[c];
  if (self.remote_.ready(A::decide(Config::kCollectAt, std::uint32_t{1}))) collect(self);
  Page* page = next_page(self, chain);
  if (page == nullptr && collect(self)) page = next_page(self, chain);
  if (page == nullptr) {
    send_outboxes(self);  // who asks for memory gives back what it keeps of others'
    page = new_page(self, c);
  }
  return page == nullptr ? nullptr : pop(page, page->free.load());
}

// Makes a page with a free slot current: the current one, the next open one, or the spare; else null.
template <sync::Atomics A, class Config>
auto OwnerPages<A, Config>::next_page(Owner& self, Chain& chain) noexcept -> Page* {
  for (Page* page = chain.current.load(); page != &self.none_; page = chain.current.load()) {
    if (page->free.load() != nullptr) return page;
    if (Node* const given = page->given.load()) {
      page->free.store(given);
      page->given.store(nullptr);
      return page;
    }
    page->remove();
    page->full.store(true);
    page->insert_before(chain.full);
    Links* const next = chain.open.next.load();
    chain.current.store(next == &chain.open ? &self.none_ : static_cast<Page*>(next));
  }
  // Pages may have opened while there was no current one, and nobody looked.
  Page* page = chain.spare.load();
  if (chain.open.next.load() != &chain.open) {
    page = static_cast<Page*>(chain.open.next.load());
  } else if (page != nullptr) {
    chain.spare.store(nullptr);
    page->insert_before(chain.open);
  } else {
    return nullptr;
  }
  chain.current.store(page);
  return next_page(self, chain);
}

template <sync::Atomics A, class Config>
auto OwnerPages<A, Config>::new_page(Owner& self, unsigned c) noexcept -> Page* {
  void* const memory = upstream_.allocate_page();
  if (memory == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  char* const base = static_cast<char*>(memory);
  const Layout layout = layout_of(memory, c);
  Page* const page = ::new (base + layout.header) Page;
  page->owner.store(&self);
  page->size_class.store(c);
  Node* node = ::new (base + layout.offset(0)) Node;
  page->free.store(node);
  for (std::uint32_t i = 1; i < layout.capacity(); ++i) {
    Node* const next = ::new (base + layout.offset(i)) Node;
    node->next.store(next);
    node = next;
  }
  node->next.store(nullptr);
  Chain& chain = self.chains_[c];
  page->insert_before(chain.open);
  chain.current.store(page);
  add(self.pages_, std::uint32_t{1});
  return page;
}

// ---- free by the owner ----

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::release_slow(Owner& self, Page* page, void* slot, std::uint32_t used) noexcept {
  // The double frees that are seen for nothing: into an empty page, and of the slot freed last.
  if (used == 0 || page->given.load() == slot) return base::fatal(base::Crime::kDoubleFree, slot);
  Chain& chain = self.chains_[page->size_class.load()];
  give(page, slot, used);
  if (page->full.load()) {
    page->full.store(false);
    page->remove();
    page->insert_before(chain.open);
  }
  if (used > 1 || page == chain.current.load()) return;
  page->remove();
  if (chain.spare.load() == nullptr)
    chain.spare.store(page);
  else
    return_page(self, page);
}

// Pre: the page is empty and in no ring.
template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::return_page(Owner& self, Page* page) noexcept {
  page->~Page();
  upstream_.free_page(memory_of(page));
  add(self.pages_, ~std::uint32_t{0});
}

// ---- free by another thread ----

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::release_remote(Owner* self, Owner* owner, Node* node) noexcept {
  if (self == nullptr || Config::kHandOver == 1) return hand_over(self, owner, node, node, 1);
  // Neighbouring descriptors differ in these bits: a batch's lie sizeof(Owner) apart.
  const std::uintptr_t hash = reinterpret_cast<std::uintptr_t>(owner) / sizeof(Owner);
  Outbox& box = self->outboxes_[hash & (Config::kOutboxes - 1)];
  std::uint32_t n = box.count.load(std::memory_order_relaxed);  // relaxed: our own
  if (n > 0 && box.target.load() != owner) {
    send_outbox(*self, box);
    n = 0;
  }
  if (n == 0) {
    box.target.store(owner);
    box.last.store(node);
  } else {
    node->next.store(box.first.load());
  }
  box.first.store(node);
  box.count.store(n + 1, std::memory_order_relaxed);  // relaxed: for stats
  if (n + 1 >= Config::kHandOver) send_outbox(*self, box);
}

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::send_outbox(Owner& self, Outbox& box) noexcept {
  const std::uint32_t n = box.count.load(std::memory_order_relaxed);  // relaxed: our own
  if (n == 0) return;
  box.count.store(0, std::memory_order_relaxed);
  hand_over(&self, box.target.load(), box.first.load(), box.last.load(), n);
}

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::send_outboxes(Owner& self) noexcept {
  for (Outbox& box : self.outboxes_) send_outbox(self, box);
}

// Until the push, the slots of the chain keep their pages, and these the descriptor of `owner`.
template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::hand_over(Owner* self, Owner* owner, Node* first, Node* last, std::uint32_t n) noexcept {
  if (owner->remote_.push(first, last, n)) {
    count(self, &Counters::handed_over, n);
    count(self, &Counters::hand_overs, 1);
    return;
  }
  count(self, &Counters::abandoned_frees, n);
  for (std::uint32_t i = 0; i < n; ++i) {
    Node* const node = first;
    if (node != last) first = node->next.load();
    release_abandoned(node);
  }
}

// Takes back what other threads freed; false if there was nothing.
template <sync::Atomics A, class Config>
bool OwnerPages<A, Config>::collect(Owner& self) noexcept {
  Node* node = self.remote_.drain();
  if (node == nullptr) return false;
  std::uint64_t n = 0;
  for (; node != nullptr; ++n) {
    Node* const next = node->next.load();
    release(self, page_of(node), node);
    node = next;
  }
  add(self.counters_.drained, n);
  add(self.counters_.drains, std::uint64_t{1});
  return true;
}

// ---- pages left behind ----

// Pre: the owner's list is closed, and the calling thread saw that.
template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::release_abandoned(Node* node) noexcept {
  Page* const page = page_of(node);
  Owner* const owner = page->owner.load();
  node->~Node();
  const std::uint32_t used = page->used.fetch_sub(1, Orders::kPageCountDown);
  if (used == 0) return base::fatal(base::Crime::kDoubleFree, node);
  if (used > 1) return;
  page->~Page();
  upstream_.free_page(memory_of(page));
  count_down(*owner);
}

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::count_down(Owner& owner) noexcept {
  if (owner.pages_.fetch_sub(1, Orders::kOwnerCountDown) != 1) return;
  owner.state_.store(kUnused, std::memory_order_relaxed);  // relaxed: for stats
  const sync::Guard guard(registry_);
  owner.next_unused_.store(unused_.load());
  unused_.store(&owner);
}

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::leave(Owner& self) noexcept {
  trim(self);
  // Every page that is left has used > 0, and what its slots' holders need is complete: owner and used.
  self.state_.store(kLeft, std::memory_order_relaxed);  // relaxed: for stats
  add(self.pages_, std::uint32_t{1});
  Node* node = self.remote_.close();
  std::uint64_t n = 0;
  for (; node != nullptr; ++n) {
    Node* const next = node->next.load();
    release_abandoned(node);
    node = next;
  }
  add(self.counters_.drained, n);
  count_down(self);
}

template <sync::Atomics A, class Config>
std::size_t OwnerPages<A, Config>::trim(Owner& self) noexcept {
  const std::uint32_t before = self.pages_.load(std::memory_order_relaxed);  // relaxed: our own
  send_outboxes(self);
  collect(self);
  for (Chain& chain : self.chains_) {
    if (Page* const spare = chain.spare.load()) return_page(self, spare);
    chain.spare.store(nullptr);
    Page* const current = chain.current.load();
    // Of the open pages only the current one can be empty: the others become spares or go back at once.
    if (current == &self.none_ || current->used.load(std::memory_order_relaxed) != 0) continue;
    current->remove();
    chain.current.store(&self.none_);
    return_page(self, current);
  }
  return before - self.pages_.load(std::memory_order_relaxed);
}

// ---- descriptors ----

template <sync::Atomics A, class Config>
auto OwnerPages<A, Config>::join() noexcept -> Owner* {
  Owner* owner = take_unused();
  if (owner == nullptr) {
    void* const memory = upstream_.allocate_page();  // not under the lock: see hold()
    if (memory == nullptr) {
      errno = ENOMEM;
      return nullptr;
    }
    OwnerBatch* const batch = ::new (memory) OwnerBatch;
    batch->next.store(nullptr);
    const sync::Guard guard(registry_);
    if (OwnerBatch* const last = last_batch_.load())
      last->next.store(batch);
    else
      batches_.store(batch);
    last_batch_.store(batch);
    owner = &batch->owners[0];
    for (std::size_t i = 1; i < OwnerBatch::kOwners; ++i) {
      batch->owners[i].next_unused_.store(unused_.load());
      unused_.store(&batch->owners[i]);
    }
  }
  reset(*owner);
  return owner;
}

template <sync::Atomics A, class Config>
auto OwnerPages<A, Config>::take_unused() noexcept -> Owner* {
  const sync::Guard guard(registry_);
  Owner* const owner = unused_.load();
  if (owner != nullptr) unused_.store(owner->next_unused_.load());
  return owner;
}

// The rings of a recycled descriptor still lead to pages that are gone; its counters go on counting.
template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::reset(Owner& owner) noexcept {
  for (Chain& chain : owner.chains_) {
    chain.current.store(&owner.none_);
    chain.spare.store(nullptr);
    chain.open.make_ring();
    chain.full.make_ring();
  }
  owner.remote_.reopen();
  owner.state_.store(kJoined, std::memory_order_relaxed);  // relaxed: for stats
}

// Visits every descriptor, in the order of their creation. Pre: registry_ is held.
template <sync::Atomics A, class Config>
template <class F>
void OwnerPages<A, Config>::for_each_owner(F visit) noexcept {
  for (OwnerBatch* batch = batches_.load(); batch != nullptr; batch = batch->next.load())
    for (Owner& owner : batch->owners) visit(owner);
}

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::release_descriptors() noexcept {
  OwnerBatch* batch = batches_.load();
  batches_.store(nullptr);
  last_batch_.store(nullptr);
  unused_.store(nullptr);
  while (batch != nullptr) {
    OwnerBatch* const next = batch->next.load();
    batch->~OwnerBatch();
    upstream_.free_page(batch);
    batch = next;
  }
}

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::hold() noexcept {
  registry_.lock();
  for_each_owner([](Owner& owner) { owner.remote_.hold(); });
}

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::let_go() noexcept {
  for_each_owner([](Owner& owner) { owner.remote_.let_go(); });
  registry_.unlock();
}

// ---- what it holds, and whether it is right ----

template <sync::Atomics A, class Config>
void OwnerPages<A, Config>::stats(OwnerPagesStats& out) noexcept {
  out = {};
  std::uint64_t handed_over = 0, drained = 0;
  // relaxed throughout: a snapshot of statistics.
  const auto sum = [&](const Counters& c) {
    handed_over += c.handed_over.load(std::memory_order_relaxed);
    drained += c.drained.load(std::memory_order_relaxed);
    out.hand_overs += c.hand_overs.load(std::memory_order_relaxed);
    out.drains += c.drains.load(std::memory_order_relaxed);
    out.abandoned_frees += c.abandoned_frees.load(std::memory_order_relaxed);
  };
  const sync::Guard guard(registry_);
  sum(ownerless_);
  for_each_owner([&](Owner& owner) {
    sum(owner.counters_);
    const std::uint32_t state = owner.state_.load(std::memory_order_relaxed);
    const std::uint32_t pages = owner.pages_.load(std::memory_order_relaxed);
    out.descriptors += 1;
    out.owners += state == kJoined ? 1 : 0;
    out.owners_left += state == kLeft ? 1 : 0;
    out.pages += pages;
    out.pages_left += state == kLeft ? pages : 0;
    out.contention += owner.remote_.contention();
    for (const Outbox& box : owner.outboxes_) out.gathered += box.count.load(std::memory_order_relaxed);
  });
  out.pending = handed_over > drained ? handed_over - drained : 0;
  out.remote_frees = handed_over + out.abandoned_frees + out.gathered;
}

template <sync::Atomics A, class Config>
template <class F>
bool OwnerPages<A, Config>::all_pages(const Owner& self, F holds) noexcept {
  for (unsigned c = 0; c < kClasses; ++c) {
    const Chain& chain = self.chains_[c];
    for (const Links* ring : {&chain.open, &chain.full})
      for (const Links* link = ring->next.load(); link != ring; link = link->next.load())
        if (!holds(chain, static_cast<const Page&>(*link), c)) return false;
    if (const Page* const spare = chain.spare.load())
      if (!holds(chain, *spare, c)) return false;
  }
  return true;
}

template <sync::Atomics A, class Config>
bool OwnerPages<A, Config>::check_invariants(const Owner& self) const noexcept {
  std::uint32_t pages = 0;
  const bool good = all_pages(self, [&](const Chain& chain, const Page& page, unsigned c) {
    ++pages;
    return check_page(self, chain, page, c);
  });
  return good && pages == self.pages_.load(std::memory_order_relaxed);  // relaxed: our own
}

template <sync::Atomics A, class Config>
bool OwnerPages<A, Config>::check_page(const Owner& self, const Chain& chain, const Page& page, unsigned c) noexcept {
  const std::uint32_t used = page.used.load(std::memory_order_relaxed);  // relaxed: our own
  if (page.owner.load() != &self || page.size_class.load() != c) return false;
  const Layout layout = layout_of(&page, c);
  std::array<bool, Config::kPageBytes / kGranule> to_see{};  // by offset: free slots not met yet
  for (std::uint32_t i = 0; i < layout.capacity(); ++i) to_see[layout.offset(i) / kGranule] = true;
  std::uint32_t free_slots = 0;
  for (const Var<Node*>* list : {&page.free, &page.given}) {
    for (const Node* node = list->load(); node != nullptr; node = node->next.load(), ++free_slots) {
      const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(node);
      bool& expected = to_see[address % Config::kPageBytes / kGranule];
      if (page_of(node) != &page || address % kGranule != 0 || !expected) return false;
      expected = false;
    }
  }
  if (used + free_slots != layout.capacity()) return false;
  if (page.full.load() && free_slots != 0) return false;
  // Empty pages: the current one and the spare, no other.
  return used > 0 || &page == chain.current.load() || &page == chain.spare.load();
}

template <sync::Atomics A, class Config>
std::size_t OwnerPages<A, Config>::slots_in_use(const Owner& self) const noexcept {
  std::size_t sum = 0;
  all_pages(self, [&](const Chain&, const Page& page, unsigned) {
    sum += page.used.load(std::memory_order_relaxed);  // relaxed: our own
    return true;
  });
  return sum;
}

}  // namespace freehold::alloc
