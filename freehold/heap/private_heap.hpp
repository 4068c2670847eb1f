// A private heap that any thread uses: contention is limited to the heap's users, and among them to those who meet on one
// CPU.
//
// A *shard* holds free slots of every class and a flag that a thread takes for a few instructions. The thread that took it
// many times in a row becomes its owner, and enters by plain stores from then on; any other thread that wants the shard
// first revokes that, by a heavy fence, as BestPool's thieves do (biased locking with one side's fence). Threads spread over
// the shards by their number, and there are more shards than CPUs: a thread that is preempted in the middle holds up nobody
// but those of the same shard, who try the next shards, and at last the centre, which has a lock that can sleep: so nobody
// ever spins on a thread that does not run. Free slots have no home: they stay in the shard of the thread that gave them
// back, and travel as whole chains of one length, in a constant time each way. The chains that a shard sets aside are
// everybody's, under the centre's lock, but come back to the same shard first: their lines are in that CPU's cache.
//
//   Invariants: a bin's free list is shorter than kChain(c) slots or exactly a chain, its spare is null or a chain of
//               kChain(c), and so is each chain in its depot;
//               slots of class c: live (summed over all shards and the centre) + free ones + uncut ones == those of its
//               runs; the centre counts the chains in all depots;
//               a shard has an owner only if nobody but it has been inside since it became one.
//
// Locks, in this order: the shards' flags by number, the centre, then the engine's. A thread that holds a flag asks for no
// other one.
// Threads: any, for all but construction and destruction; release_all() and the destructor may be called by any thread,
// while no other uses blocks of this heap. allocate, deallocate: two stores and two loads on the shard's line, without an
// owner one atomic exchange and one store; to take a shard from its owner a system call; the centre once in kChain(c)
// operations. Held beyond what is in use: at most two chains (16 KiB) and a run for each class and shard that used it.
// Source: "Practical testing 30: reducing contention"; chains through a depot from Bonwick and Adams, "Magazines and Vmem".
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/heap/bins.hpp"
#include "freehold/heap/concept.hpp"
#include "freehold/heap/heap_options.hpp"
#include "freehold/heap/owner_locked_heap.hpp"
#include "freehold/heap/registry.hpp"
#include "freehold/heap/slabs.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::heap {

struct PrivateHeapOrders {
  // acquire: pairs with kGive; the former holder's changes of the shard are visible.
  static constexpr std::memory_order kTake = std::memory_order_acquire;
  // release: pairs with kTake.
  static constexpr std::memory_order kGive = std::memory_order_release;
  // release: pairs with kLook; the owner's changes of the shard are visible. Also where it turns back at once: a store that
  // is not one would end what the last one released.
  static constexpr std::memory_order kLeave = std::memory_order_release;
  // acquire: pairs with kLeave.
  static constexpr std::memory_order kLook = std::memory_order_acquire;
  // Whether each owner of a shard has a word of its own. (false: for a mutant.)
  static constexpr bool kWordForEach = true;
  // release: publishes a shard, or the core, to who loads the pointer with kFind.
  static constexpr std::memory_order kPublish = std::memory_order_release;
  static constexpr std::memory_order kFind = std::memory_order_acquire;
};

template <sync::Atomics A, class Geometry, SlabSource Source, class Registration, class Orders = PrivateHeapOrders>
class BasicPrivateHeap {
 public:
  using Classes = typename Geometry::Classes;
  static constexpr std::size_t kDefaultAlignment = alignof(std::max_align_t);

  explicit BasicPrivateHeap(const HeapOptions& options = {}, Source source = {}) noexcept
      : slabs_(this, options.limit_bytes, placed(source, options)), options_(options), registration_(*this) {}
  BasicPrivateHeap(const BasicPrivateHeap&) = delete;
  BasicPrivateHeap& operator=(const BasicPrivateHeap&) = delete;
  // Ends every block.
  ~BasicPrivateHeap() { registration_.end(); }

  // A block of at least `bytes` bytes, aligned to `alignment`, a power of two. Null: the limit (after on_limit and waiting,
  // as the options say) or memory stands against it.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = kDefaultAlignment) noexcept {
    FREEHOLD_ASSERT(std::has_single_bit(alignment));
    if (!is_small(bytes, alignment)) [[unlikely]]
      return allocate_large(bytes, alignment);
    const unsigned c = class_of(bytes, alignment);
    if (const Entry entry = take_shard(); entry.shard != nullptr) [[likely]] {
      void* const slot = pop(entry.shard->bins[c], c);
      if (slot != nullptr) [[likely]] {
        leave(entry);
        return handed_out(c, slot);
      }
      return allocate_refilling(entry, c);
    }
    return allocate_centrally(c);
  }

  // Gives a block back. Pre: `bytes` and `alignment` are those that it was allocated with, or the block is null.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment = kDefaultAlignment) noexcept {
    if (block == nullptr) return;
    if (!is_small(bytes, alignment)) [[unlikely]]
      return deallocate_large(block);
    push(class_of(bytes, alignment), block);
  }
  // The same without the size, which the block's slab knows: one more cache line.
  void deallocate(void* block) noexcept {
    if (block == nullptr) return;
    SlabType* const slab = slabs_.find(block);
    if (slab == nullptr) return;
    if (slab->kind.load() == SlabKind::kLarge) [[unlikely]]
      return deallocate_large(block);
    if (const unsigned c = slabs_.class_in(*slab, block); c != SlabsType::kNoClass) push(c, block);
  }

  // Grows or shrinks a block, which stays where it is if it may_stay(). Null: the block is untouched. A null block acts as
  // allocate. The result is one of `bytes` bytes and of kDefaultAlignment, whatever the block was.
  [[nodiscard]] void* reallocate(void* block, std::size_t bytes) noexcept { return reallocate_in(*this, block, bytes); }
  // Whether reallocate() leaves the block where it is: in the class of its new size, or large, with at least half of it in
  // use.
  [[nodiscard]] bool may_stay(const void* block, std::size_t bytes) const noexcept {
    const unsigned c = is_small(bytes, kDefaultAlignment) ? class_of(bytes, kDefaultAlignment) : SlabsType::kNoClass;
    return base::is_aligned(reinterpret_cast<std::uintptr_t>(block), kDefaultAlignment) &&
           SlabsType::serves_as(block, c, bytes);
  }
  // The bytes of a block that may be used: at least what was asked for.
  [[nodiscard]] std::size_t usable_size(const void* block) const noexcept { return slabs_.usable_size(block); }
  // The heap that a block of a PrivateHeap belongs to.
  [[nodiscard]] static BasicPrivateHeap& heap_of(const void* block) noexcept {
    return *static_cast<BasicPrivateHeap*>(SlabType::of(block)->heap.load());
  }

  // Ends every block; destructors do not run. Memory goes back to the engine, but for slabs with data of the heap's own.
  void release_all() noexcept {
    bool awaited = false;
    {
      const All all(*this);
      slabs_.release_all();
      if (Core* const core = core_.load(std::memory_order_relaxed); core != nullptr) {  // relaxed: under the lock
        core->centre.clear();
        for (auto& chains : core->chains) chains.store(0);
        for_each_shard([](Shard& shard) { shard.clear(); });
      }
      reclaim_from_bytes_.store(kReclaimBytes);
      awaited = waiters_.load(std::memory_order_relaxed) != 0;  // relaxed: the flags order it, see push()
    }
    if (awaited) tell_waiters();
  }

  // Gives wholly free slabs back. Returns bytes. Cost: O(free slots), with the heap locked.
  std::size_t trim() noexcept {
    const All all(*this);
    return core_.load(std::memory_order_relaxed) == nullptr ? 0 : reclaim();
  }

  // Takes slabs for `bytes` more in advance. False: there is no memory, or the limit does not allow so much.
  [[nodiscard]] bool reserve(std::size_t bytes) noexcept {
    const sync::Guard guard(lock_);
    return start() && slabs_.reserve(bytes);
  }

  // A snapshot of the whole heap at one instant. Cost: O(shards), with the heap locked.
  [[nodiscard]] HeapStats stats() noexcept {
    const All all(*this);
    HeapStats stats;
    stats.name = options_.name;
    if (Core* const core = core_.load(std::memory_order_relaxed); core != nullptr) {
      core->centre.add_live(stats);
      for_each_shard([&](Shard& shard) { shard.add_live(stats); });
    }
    slabs_.add_to(stats);
    stats.conflicts = conflicts();
    return stats;
  }
  // Operations that found a shard taken by another thread. Cost: one load.
  [[nodiscard]] std::uint64_t conflicts() const noexcept { return conflicts_.load(std::memory_order_relaxed); }
  [[nodiscard]] const char* name() const noexcept { return options_.name; }

  // Holds everybody off, for a child of fork to find the heap whole; and lets them go on.
  void hold() noexcept { held_.store(take_all()); }
  // In the child, too, whose other threads are gone: one that was about to find out that it is the owner no more may have
  // left its word behind. Where it still runs it clears that itself, now or later.
  void let_go() noexcept {
    const std::uint64_t taken = held_.load();
    for (std::uint64_t each = taken; each != 0; each &= each - 1)
      for (auto& inside : shard_at(*core_.load(std::memory_order_relaxed), base::lowest_bit(each)).inside)
        inside.store(0, Orders::kLeave);
    give_all(taken);
  }

  void check_invariants() noexcept {
    const All all(*this);
    slabs_.check_invariants();
    Core* const core = core_.load(std::memory_order_relaxed);
    for (unsigned c = 0; core != nullptr && c < Classes::kCount; ++c) {
      std::int64_t slots = core->centre.bins[c].live.load() + static_cast<std::int64_t>(core->centre.free_slots(c, slabs_));
      std::uint32_t chains = 0;
      for_each_shard([&](Shard& shard) {
        slots += check_bin(shard.bins[c], c);
        for (Free* chain = shard.bins[c].depot.load(); chain != nullptr; chain = next_chain(chain), ++chains)
          slots += check_chain(chain, c);
      });
      FREEHOLD_ASSERT(chains == core->chains[c].load());
      FREEHOLD_ASSERT(static_cast<std::size_t>(slots) == slabs_.slots_of(c));
    }
  }

 private:
  using SlabsType = Slabs<A, Geometry, Source>;
  using SlabType = typename SlabsType::SlabType;
  using Free = FreeSlot<A>;
  template <class T>
  using var = typename A::template var<T>;
  template <class T>
  using atomic = typename A::template atomic<T>;

  static constexpr unsigned kMaxShards = 64;  // a bit each
  // Shards that are tried before the centre.
  static constexpr unsigned kTries = 3;
  // Free slots are looked through for whole pages when the heap has grown beyond this, and by a half since the last look.
  static constexpr std::size_t kReclaimBytes = std::size_t{1} << 20;
  // Two words of a slot link it: to the next one, and a chain's first one to the next chain.
  static constexpr std::size_t kLeastBytes = 2 * sizeof(void*);

  // The slots of a chain: 8 KiB, at least 4 and at most 64 of them.
  [[nodiscard]] static constexpr std::uint32_t chain_slots(unsigned c) noexcept {
    return static_cast<std::uint32_t>(
        std::clamp(Geometry::kChainBytes / Classes::slot_bytes(c), Geometry::kLeastChain, Geometry::kMostChain));
  }

  struct Bin : Bins<A, Geometry>::Bin {
    var<std::uint32_t> count{0};  // in the free list
    var<std::uint32_t> pages{1};  // of the next run
    var<Free*> spare{nullptr};
    var<Free*> depot{nullptr};  // a list of chains; under the centre's lock
  };
  static constexpr unsigned kOwners = Geometry::kOwners;
  // Its address says which thread it is, to all shared objects and in a child of fork. A new thread may have that of one
  // that has ended: then it is its heir.
  struct alignas(kOwners) ThreadMark {
    std::byte room[kOwners];
  };
  // Takes in a row that make an owner after the last one was revoked, at most; at first Geometry::kTakesToOwn.
  static constexpr std::uint32_t kMostTakesToOwn = 4096;
  struct Shard {
    alignas(base::kCacheLine) atomic<std::uint32_t> taken{0};
    atomic<std::uint8_t> inside[kOwners]{};
    atomic<std::uintptr_t> owner{0};  // a thread, and the number of its word; 0: none. Changed by who has taken the shard
    // Of who has taken the shard:
    var<std::uintptr_t> owners[kOwners]{};  // threads, whose word each is
    var<std::uintptr_t> last{0};            // the thread that took it last; how often in a row
    var<std::uint32_t> in_a_row{0};
    var<std::uint32_t> takes_to_own{Geometry::kTakesToOwn};
    Bin bins[Classes::kCount];

    void clear() noexcept {
      for (Bin& bin : bins) {
        bin.clear();
        bin.count.store(0);
        bin.pages.store(1);
        bin.spare.store(nullptr);
        bin.depot.store(nullptr);
      }
    }
    void add_live(HeapStats& stats) const noexcept {
      for (unsigned c = 0; c < Classes::kCount; ++c) bins[c].add_live(stats, Classes::slot_bytes(c));
    }
  };
  // Made with the first block, at the beginning of the first slab.
  struct Core {
    const unsigned shard_count = Geometry::shards();  // a power of two
    atomic<Shard*> shards[kMaxShards]{};
    alignas(base::kCacheLine) Bins<A, Geometry> centre;
    var<std::uint32_t> chains[Classes::kCount]{};  // in the shards' depots
  };

  // Holds every lock of the heap.
  class [[nodiscard]] All {
   public:
    explicit All(BasicPrivateHeap& heap) noexcept : heap_(heap), shards_(heap.take_all()) {}
    ~All() { heap_.give_all(shards_); }
    All(const All&) = delete;
    All& operator=(const All&) = delete;

   private:
    BasicPrivateHeap& heap_;
    std::uint64_t shards_;
  };

  [[nodiscard]] static constexpr bool is_small(std::size_t bytes, std::size_t alignment) noexcept {
    return bytes <= Classes::kMaxBytes - SlabsType::kRedZone && alignment <= Classes::kMaxAlignment;
  }
  [[nodiscard]] static constexpr unsigned class_of(std::size_t bytes, std::size_t alignment) noexcept {
    bytes = SlabsType::with_red_zone(bytes);
    return Classes::class_of(bytes < kLeastBytes ? kLeastBytes : bytes, alignment);
  }

  // ---- shards ----

  // A shard that nobody else works on until leave(). Null: none is there, or those that were tried are taken.
  struct Entry {
    Shard* shard = nullptr;
    atomic<std::uint8_t>* inside = nullptr;  // the owner's word; null: the shard was taken
  };
  static void leave(const Entry& entry) noexcept {
    if (entry.inside != nullptr) [[likely]]
      entry.inside->store(0, Orders::kLeave);
    else
      give_shard(*entry.shard);
  }

  [[nodiscard]] Entry take_shard() noexcept {
    Core* core = core_.load(Orders::kFind);
    if (core == nullptr) [[unlikely]] {
      core = make_core();
      if (core == nullptr) return {};
    }
    const unsigned i = Geometry::template spread<A>() & (core->shard_count - 1);
    Shard* shard = core->shards[i].load(Orders::kFind);
    if (shard == nullptr) [[unlikely]] {
      shard = make_shard(i);
      if (shard == nullptr) return {};
    }
    const std::uintptr_t owner = shard->owner.load(std::memory_order_relaxed);  // relaxed: only ours counts
    if (is_of(owner, this_thread())) [[likely]] {
      auto& inside = shard->inside[Orders::kWordForEach ? owner % kOwners : 0];
      (void)inside.load(Orders::kLook);            // what the thread whose heir we are did
      inside.store(1, std::memory_order_relaxed);  // relaxed, both: the fences order them against disown()
      A::light_fence();
      if (shard->owner.load(std::memory_order_relaxed) == owner) [[likely]]
        return {shard, &inside};
      inside.store(0, Orders::kLeave);
    }
    return take_home_shard(*core, i, *shard);
  }
  [[nodiscard]] static std::uintptr_t this_thread() noexcept {
    return reinterpret_cast<std::uintptr_t>(&A::template per_thread<ThreadMark>());
  }
  [[nodiscard]] static bool is_of(std::uintptr_t owner, std::uintptr_t thread) noexcept { return owner - thread < kOwners; }

  [[gnu::noinline]] Entry take_home_shard(Core& core, unsigned i, Shard& shard) noexcept {
    if (!try_take(shard)) return take_other_shard(core, i, core.shard_count);
    const std::uintptr_t me = this_thread();
    if (shard.last.load() != me) {
      shard.last.store(me);
      shard.in_a_row.store(0);
    }
    shard.in_a_row.store(shard.in_a_row.load() + 1);
    if (shard.in_a_row.load() >= shard.takes_to_own.load()) own(shard, me);
    return {&shard, nullptr};
  }
  // Makes the caller the owner of a shard that it has taken, if there is a word for it and the system has the fence.
  static void own(Shard& shard, std::uintptr_t me) noexcept {
    shard.in_a_row.store(0);  // if it cannot be: so many takes until it is looked at again
    for (unsigned word = 0; word < kOwners; ++word) {
      if (const std::uintptr_t thread = shard.owners[word].load(); thread != 0 && thread != me) continue;
      if (!A::may_fence_heavily()) return;
      shard.owners[word].store(me);
      shard.owner.store(me + word, std::memory_order_relaxed);  // relaxed: others see it through `taken`
      return;
    }
  }
  [[nodiscard]] Entry take_other_shard(Core& core, unsigned i, unsigned shards) noexcept {
    conflicts_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a statistic, it publishes nothing
    for (unsigned tries = 1; tries < kTries && tries < shards; ++tries) {
      if (++i == shards) i = 0;
      Shard* const shard = core.shards[i].load(Orders::kFind);
      if (shard != nullptr && try_take(*shard)) return {shard, nullptr};
    }
    return {};
  }
  // False: somebody is in it, or on the way in.
  [[nodiscard]] static bool try_take(Shard& shard) noexcept {
    if (!mark(shard)) return false;
    if (disown(shard)) A::heavy_fence();
    if (!is_entered(shard)) [[likely]]
      return true;
    give_shard(shard);
    return false;
  }
  static void give_shard(Shard& shard) noexcept { shard.taken.store(0, Orders::kGive); }

  // The steps of a take: keeps all others but the owner off; makes another thread that owns the shard its owner no more, and
  // says whether there was one; after a heavy fence then, whether one is still inside. The fence is one side of Dekker's
  // protocol: an owner that comes after it sees that it is none, and one that came before is seen inside.
  [[nodiscard]] static bool mark(Shard& shard) noexcept {
    // relaxed: a glance, which spares the exchange where it would fail.
    return shard.taken.load(std::memory_order_relaxed) == 0 && shard.taken.exchange(1, Orders::kTake) == 0;
  }
  [[nodiscard]] static bool disown(Shard& shard) noexcept {
    const std::uintptr_t owner = shard.owner.load(std::memory_order_relaxed);  // relaxed: written by who has the shard
    if (owner == 0 || is_of(owner, this_thread())) return false;
    shard.owner.store(0, std::memory_order_relaxed);  // relaxed: fenced
    shard.in_a_row.store(0);
    shard.takes_to_own.store(std::min(2 * shard.takes_to_own.load(), kMostTakesToOwn));
    return true;
  }
  [[nodiscard]] static bool is_entered(const Shard& shard) noexcept {
    bool entered = false;
    for (const auto& inside : shard.inside) entered |= inside.load(Orders::kLook) != 0;
    return entered;
  }

  [[gnu::noinline]] Shard* make_shard(unsigned i) noexcept {
    const sync::Guard guard(lock_);
    auto& place = core_.load(std::memory_order_relaxed)->shards[i];  // relaxed: under the lock that it is written under
    if (Shard* const made = place.load(std::memory_order_relaxed); made != nullptr) return made;
    void* const room = slabs_.take_internal(sizeof(Shard));
    if (room == nullptr) return nullptr;
    auto* const shard = ::new (room) Shard;
    place.store(shard, Orders::kPublish);
    return shard;
  }
  [[gnu::noinline]] Core* make_core() noexcept {
    const sync::Guard guard(lock_);
    return start() ? core_.load(std::memory_order_relaxed) : nullptr;
  }
  // Pre: the heap's lock is held.
  [[nodiscard]] bool start() noexcept {
    if (core_.load(std::memory_order_relaxed) != nullptr) return true;
    void* const room = slabs_.start(sizeof(Core));
    if (room == nullptr) return false;
    core_.store(::new (room) Core{}, Orders::kPublish);
    return true;
  }

  // Takes every shard and the lock; returns which shards.
  [[nodiscard]] std::uint64_t take_all() noexcept {
    for (;;) {
      const std::uint64_t taken = take_shards();
      lock_.lock();
      if (taken == made_shards()) return taken;
      give_all(taken);  // one was made meanwhile
    }
  }
  [[nodiscard]] std::uint64_t take_shards() noexcept {
    Core* const core = core_.load(Orders::kFind);
    std::uint64_t taken = 0;
    bool had_owner = false;
    for (unsigned i = 0; core != nullptr && i < core->shard_count; ++i) {
      Shard* const shard = core->shards[i].load(Orders::kFind);
      if (shard == nullptr) continue;
      while (!mark(*shard)) A::yield();
      had_owner |= disown(*shard);
      taken |= base::bit(i);
    }
    if (had_owner) A::heavy_fence();
    for (std::uint64_t each = taken; each != 0; each &= each - 1)
      while (is_entered(shard_at(*core, base::lowest_bit(each)))) A::yield();
    return taken;
  }
  [[nodiscard]] static Shard& shard_at(Core& core, unsigned i) noexcept {
    return *core.shards[i].load(std::memory_order_relaxed);  // relaxed: found before
  }
  void give_all(std::uint64_t taken) noexcept {
    lock_.unlock();
    Core* const core = core_.load(std::memory_order_relaxed);  // relaxed: read under the lock before
    for (; taken != 0; taken &= taken - 1)
      give_shard(*core->shards[base::lowest_bit(taken)].load(std::memory_order_relaxed));
  }
  // Looks for free pages, unless a shard is taken: its holder may not run, and all others would wait for it.
  void reclaim_if_quiet() noexcept {
    Core* const core = core_.load(std::memory_order_relaxed);  // relaxed: we had a shard
    std::uint64_t taken = 0;
    bool quiet = true, had_owner = false;
    for (unsigned i = 0; quiet && i < core->shard_count; ++i) {
      Shard* const shard = core->shards[i].load(Orders::kFind);
      if (shard == nullptr) continue;
      quiet = mark(*shard);
      if (!quiet) continue;
      had_owner |= disown(*shard);
      taken |= base::bit(i);
    }
    if (had_owner) A::heavy_fence();
    for (std::uint64_t each = taken; each != 0; each &= each - 1)
      quiet = !is_entered(shard_at(*core, base::lowest_bit(each))) && quiet;
    lock_.lock();
    if (quiet && taken == made_shards()) reclaim();
    give_all(taken);
  }
  // Pre: the heap's lock is held.
  [[nodiscard]] std::uint64_t made_shards() const noexcept {
    Core* const core = core_.load(std::memory_order_relaxed);
    std::uint64_t made = 0;
    for (unsigned i = 0; core != nullptr && i < core->shard_count; ++i)
      if (core->shards[i].load(std::memory_order_relaxed) != nullptr) made |= base::bit(i);
    return made;
  }
  // Pre: everything is locked.
  template <class F>
  void for_each_shard(const F& f) noexcept {
    for (std::uint64_t made = made_shards(); made != 0; made &= made - 1)
      f(*core_.load(std::memory_order_relaxed)->shards[base::lowest_bit(made)].load(std::memory_order_relaxed));
  }

  // ---- allocate ----

  // From the free list, or never used before; null if there is neither. Pre: the bin is the caller's.
  [[nodiscard]] void* pop(Bin& bin, unsigned c) noexcept {
    Free* const slot = bin.free.load();
    if (slot == nullptr) return bin.cut(Classes::slot_bytes(c));
    bin.free.store(slabs_.next(slot));
    bin.count.store(bin.count.load() - 1);
    bin.live.store(bin.live.load() + 1);
    return slot;
  }
  [[gnu::noinline]] void* allocate_refilling(const Entry entry, unsigned c) noexcept {
    Bin& bin = entry.shard->bins[c];
    bool due = false;
    void* slot = nullptr;
    if (refill(bin, c, due)) slot = pop(bin, c);
    leave(entry);
    if (slot == nullptr) return allocate_scarce([this, c] { return find_slot(c); }, Classes::slot_bytes(c));
    if (due) reclaim_if_quiet();
    return handed_out(c, slot);
  }
  // A chain, loose slots, or a run. `due`: so much is in use that it is time to look for pages that are wholly free.
  [[nodiscard]] bool refill(Bin& bin, unsigned c, bool& due) noexcept {
    if (Free* const spare = bin.spare.load(); spare != nullptr) {
      bin.spare.store(nullptr);
      bin.free.store(spare);
      bin.count.store(chain_slots(c));
      return true;
    }
    const sync::Guard guard(lock_);
    Core& core = *core_.load(std::memory_order_relaxed);
    if (Free* const chain = take_chain(core, &bin, c); chain != nullptr) {
      bin.free.store(chain);
      bin.count.store(chain_slots(c));
      return true;
    }
    if (take_loose(core.centre.bins[c], bin, c)) return true;
    due = slabs_.used_bytes() >= reclaim_from_bytes_.load();
    if (due) reclaim_from_bytes_.store(slabs_.used_bytes() + slabs_.used_bytes() / 8);  // unless a reclaim says otherwise
    if (!take_run(bin, c, bin.pages.load())) return false;
    bin.pages.store(std::min(2 * bin.pages.load(), SlabType::kPages));  // the more it takes, the more it gets
    return true;
  }
  // A chain out of the depot of `own`, which may be null, or of another shard's; null: there is none. Pre: the heap's lock
  // is held.
  [[nodiscard]] Free* take_chain(Core& core, Bin* own, unsigned c) noexcept {
    if (core.chains[c].load() == 0) return nullptr;
    Bin* from = own;
    for (std::uint64_t made = made_shards(); from == nullptr || from->depot.load() == nullptr; made &= made - 1)
      from = &core.shards[base::lowest_bit(made)].load(std::memory_order_relaxed)->bins[c];  // relaxed: under the lock
    Free* const chain = from->depot.load();
    from->depot.store(next_chain(chain));
    core.chains[c].store(core.chains[c].load() - 1);
    return chain;
  }
  [[nodiscard]] bool take_loose(typename Bins<A, Geometry>::Bin& loose, Bin& bin, unsigned c) noexcept {
    Free* const first = loose.free.load();
    if (first == nullptr) return false;
    Free* last = first;
    std::uint32_t n = 1;
    for (; n < chain_slots(c) && slabs_.next(last) != nullptr; ++n) last = slabs_.next(last);
    loose.free.store(slabs_.next(last));
    slabs_.set_next(last, nullptr);
    bin.free.store(first);
    bin.count.store(n);
    return true;
  }
  // A run for class c, of at most so many pages. Pre: the heap's lock is held.
  [[nodiscard]] bool take_run(typename Bins<A, Geometry>::Bin& bin, unsigned c, unsigned pages) noexcept {
    const auto chunk = slabs_.take_pages(c, pages);
    if (chunk.begin == nullptr) return false;
    bin.next.store(chunk.begin);
    bin.end.store(chunk.end);
    return true;
  }
  // Where no shard is to be had.
  [[gnu::noinline]] void* allocate_centrally(unsigned c) noexcept {
    void* slot = nullptr;
    {
      const sync::Guard guard(lock_);
      if (!start()) return nullptr;
      Core& core = *core_.load(std::memory_order_relaxed);
      auto& bin = core.centre.bins[c];
      if (bin.free.load() == nullptr) bin.free.store(take_chain(core, nullptr, c));
      slot = core.centre.pop_watched(c, slabs_);
      if (slot == nullptr && take_run(bin, c, 1)) slot = bin.cut(Classes::slot_bytes(c));
    }
    if (slot == nullptr) return allocate_scarce([this, c] { return find_slot(c); }, Classes::slot_bytes(c));
    return handed_out(c, slot);
  }

  // ---- the end of memory ----

  // Tries `find` with everything locked, until it succeeds or nobody can make room. Pre: no lock is held.
  template <class Find>
  [[gnu::noinline]] void* allocate_scarce(const Find& find, std::size_t bytes) noexcept {
    bool waits = false;
    void* block = nullptr;
    for (;;) {
      const std::uint32_t given = given_.load(std::memory_order_relaxed);  // relaxed: compared by the kernel, see push()
      bool limited = false;
      {
        const All all(*this);
        block = find();
        limited = slabs_.refusal() == Refusal::kLimit;
      }
      if (block != nullptr || !limited) break;
      if (options_.on_limit != nullptr && options_.on_limit(options_.on_limit_context, bytes)) continue;
      if (options_.when_limited != WhenLimited::kWait) break;
      if (waits)
        A::wait(given_, given);
      else
        waiters_.fetch_add(1, std::memory_order_relaxed);  // relaxed: the shards' flags order it, see push()
      waits = true;
    }
    if (waits) waiters_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: who sees it late wakes nobody
    return block;
  }
  // Pre: everything is locked.
  [[nodiscard]] void* find_slot(unsigned c) noexcept {
    if (!start()) return nullptr;
    collect();
    Core& core = *core_.load(std::memory_order_relaxed);
    void* slot = core.centre.pop_watched(c, slabs_);
    for_each_shard([&](Shard& shard) {
      if (slot == nullptr) slot = shard.bins[c].cut(Classes::slot_bytes(c));
    });
    if (slot == nullptr) {
      reclaim();
      if (take_run(core.centre.bins[c], c, 1)) slot = core.centre.cut(c);
    }
    return slot == nullptr ? nullptr : handed_out(c, slot);
  }
  // Makes all free slots loose. Pre: everything is locked.
  void collect() noexcept {
    Core& core = *core_.load(std::memory_order_relaxed);
    for (unsigned c = 0; c < Classes::kCount; ++c) {
      auto& loose = core.centre.bins[c].free;
      core.chains[c].store(0);
      for_each_shard([&](Shard& shard) {
        Bin& bin = shard.bins[c];
        for (Free* chain = bin.depot.load(); chain != nullptr;) {
          Free* const following = next_chain(chain);
          prepend(loose, chain);
          chain = following;
        }
        bin.depot.store(nullptr);
        prepend(loose, bin.free.load());
        prepend(loose, bin.spare.load());
        bin.free.store(nullptr);
        bin.spare.store(nullptr);
        bin.count.store(0);
      });
    }
  }
  void prepend(var<Free*>& list, Free* first) noexcept {
    if (first == nullptr) return;
    Free* last = first;
    while (Free* const following = slabs_.next(last)) last = following;
    slabs_.set_next(last, list.load());
    list.store(first);
  }
  // Pre: everything is locked, and there is a core.
  std::size_t reclaim() noexcept {
    collect();
    Core& core = *core_.load(std::memory_order_relaxed);
    const std::size_t bytes = slabs_.reclaim([&core](unsigned c) -> auto& { return core.centre.bins[c].free; },
                                             [&](const auto& visit) {
                                               const auto each = [&visit](auto& bin, unsigned c) {
                                                 if (visit(c, bin.next.load(), bin.end.load()))
                                                   bin.next.store(bin.end.load());
                                               };
                                               for (unsigned c = 0; c < Classes::kCount; ++c) {
                                                 each(core.centre.bins[c], c);
                                                 for_each_shard([&](Shard& shard) { each(shard.bins[c], c); });
                                               }
                                             });
    reclaim_from_bytes_.store(std::max(kReclaimBytes, slabs_.used_bytes() + slabs_.used_bytes() / 2));
    return bytes;
  }

  // ---- deallocate ----

  // Who waits for room has counted himself among the waiters before he looked into the shards, each under its flag. If he
  // did not see what is given back here, his look came before, and the flag (or the lock) that he gave back shows him to us:
  // then given_ changes after he read it, and he does not sleep, or is woken.
  void push(unsigned c, void* block) noexcept {
    if (!slabs_.ends(c, block)) return;
    bool awaited = false;
    if (const Entry entry = take_shard(); entry.shard != nullptr) [[likely]] {
      push_into(entry.shard->bins[c], c, static_cast<Free*>(block));
      awaited = waiters_.load(std::memory_order_relaxed) != 0;
      leave(entry);
    } else {
      const sync::Guard guard(lock_);
      core_.load(std::memory_order_relaxed)->centre.push_watched(c, block, slabs_);
      awaited = waiters_.load(std::memory_order_relaxed) != 0;
    }
    if (awaited) [[unlikely]]
      tell_waiters();
  }
  void push_into(Bin& bin, unsigned c, Free* slot) noexcept {
    if (bin.count.load() == chain_slots(c)) [[unlikely]]
      set_chain_aside(bin, c);
    slabs_.set_next(slot, bin.free.load());
    bin.free.store(slot);
    bin.count.store(bin.count.load() + 1);
    bin.live.store(bin.live.load() - 1);
  }
  [[gnu::noinline]] void set_chain_aside(Bin& bin, unsigned c) noexcept {
    if (Free* const spare = bin.spare.load(); spare != nullptr) {
      const sync::Guard guard(lock_);
      auto& chains = core_.load(std::memory_order_relaxed)->chains[c];  // relaxed: we have a shard
      set_next_chain(spare, bin.depot.load());
      bin.depot.store(spare);
      chains.store(chains.load() + 1);
    }
    bin.spare.store(bin.free.load());
    bin.free.store(nullptr);
    bin.count.store(0);
  }
  [[gnu::noinline]] void tell_waiters() noexcept {
    given_.fetch_add(1, std::memory_order_relaxed);  // relaxed: the flag under which the waiter looks again publishes
    A::notify_all(given_);
  }

  // ---- chains ----

  [[nodiscard]] Free* next_chain(Free* chain) const noexcept { return slabs_.next(chain + 1); }
  void set_next_chain(Free* chain, Free* following) const noexcept { slabs_.set_next(chain + 1, following); }

  [[nodiscard]] std::int64_t check_chain(Free* chain, unsigned c) noexcept {
    std::uint32_t n = 0;
    for (Free* slot = chain; slot != nullptr; slot = slabs_.next(slot)) ++n;
    FREEHOLD_ASSERT(n == chain_slots(c));
    return n;
  }
  [[nodiscard]] std::int64_t check_bin(Bin& bin, unsigned c) noexcept {
    std::int64_t slots = bin.live.load();
    std::uint32_t n = 0;
    for (Free* slot = bin.free.load(); slot != nullptr; slot = slabs_.next(slot)) ++n;
    FREEHOLD_ASSERT(n == bin.count.load() && n <= chain_slots(c));
    slots += n + bin.uncut(Classes::slot_bytes(c));
    if (Free* const spare = bin.spare.load(); spare != nullptr) slots += check_chain(spare, c);
    return slots;
  }

  // ---- large blocks ----

  [[nodiscard]] void* handed_out(unsigned c, void* slot) noexcept {
    slabs_.begins(c, slot);
    return slot;
  }
  [[gnu::noinline]] void* allocate_large(std::size_t bytes, std::size_t alignment) noexcept {
    {
      const sync::Guard guard(lock_);
      if (void* const block = slabs_.take_large(bytes, alignment); block != nullptr) return block;
    }
    return allocate_scarce(
        [=, this]() -> void* {
          if (!start()) return nullptr;
          reclaim();
          return slabs_.take_large(bytes, alignment);
        },
        bytes);
  }
  [[gnu::noinline]] void deallocate_large(void* block) noexcept {
    bool awaited = false;
    {
      const sync::Guard guard(lock_);
      slabs_.give_large(block);
      awaited = waiters_.load(std::memory_order_relaxed) != 0;
    }
    if (awaited) tell_waiters();
  }

  // Written seldom.
  atomic<Core*> core_{nullptr};
  atomic<std::uint32_t> waiters_{0};
  SlabsType slabs_;  // under lock_ but for what it says of one block; begins with what never changes
  // Written by whoever enters the centre.
  sync::Mutex<A> lock_;
  atomic<std::uint32_t> given_{0};  // counts what was given back while somebody waited
  atomic<std::uint64_t> conflicts_{0};
  var<std::size_t> reclaim_from_bytes_{kReclaimBytes};
  var<std::uint64_t> held_{0};  // the shards that hold() took
  HeapOptions options_;
  [[no_unique_address]] Registration registration_;
};

using PrivateHeap = BasicPrivateHeap<sync::NativeAtomics, HeapGeometry, NodeSlabs<EngineSlabs>, Registered>;
static_assert(sizeof(PrivateHeap) <= 512);
static_assert(PrivateHeapLike<PrivateHeap> && PrivateHeapLike<OwnerLockedHeap>);

}  // namespace freehold::heap

namespace freehold {
using heap::PrivateHeap;
}  // namespace freehold
