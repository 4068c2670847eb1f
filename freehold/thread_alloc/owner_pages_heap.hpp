// SPDX-License-Identifier: MIT
// OwnerPages as a process-wide allocator: static allocate, deallocate and reallocate, for any size and any thread.
// Small requests go to the calling thread's pages, larger ones to the upstream. A page map tells a slot from a large block,
// so nothing depends on how the upstream aligns its blocks or what it writes before them. A thread joins at its first call;
// a pthread key makes it leave. Destructors that run later use the late owner, which all such threads share under a lock.
// All state is static, constant initialised and never destroyed; nothing here needs libstdc++.so.
// Over an upstream in checked mode no thread ever becomes an owner: every call takes the slow path, and the upstream's
// blocks. Any thread, not in signal handlers. Cost: OwnerPages, a thread-local load, and two loads of the map for a free.
//
//   OwnerPagesHeap<>                                     the article's: a mutex, a pending list and a threshold per owner
//   OwnerPagesHeap<ArticlePages<>>                       the same to the letter: freed slots go one by one
//   OwnerPagesHeap<LockFreePages<>>                      the same with the lock-free list
//   OwnerPagesHeap<MutexPages<SystemUpstream>>           over malloc instead of Freehold's engine
//   struct Mine : MutexPages<> { static constexpr std::uint32_t kHandOver = 1; };   any other policy
#pragma once
#include <malloc.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "freehold/alloc/engine.hpp"
#include "freehold/alloc/observe/checked.hpp"
#include "freehold/sync/atomics.hpp"
#include "freehold/sync/lock.hpp"
#include "freehold/thread_alloc/owner_pages.hpp"
#include "freehold/thread_alloc/page_map.hpp"

namespace freehold::thread_alloc {

// Pages, and blocks of any size. The block calls behave as those of malloc with the same meaning.
template <class U>
concept BlockUpstream = PageUpstream<U> && requires(U& upstream, void* block, std::size_t bytes) {
  { upstream.allocate(bytes) } -> std::same_as<void*>;
  { upstream.allocate_aligned(bytes, bytes) } -> std::same_as<void*>;
  { upstream.reallocate(block, bytes) } -> std::same_as<void*>;
  upstream.deallocate(block);
  { upstream.usable_size(block) } -> std::same_as<std::size_t>;
};

// Freehold's engine. In checked mode (FREEHOLD_CHECK=1), which is decided by its first call, it looks at every block, so
// that all blocks come from it.
struct EngineUpstream {
  static void* allocate_page() noexcept { return allocate_aligned(4096, 4096); }
  static void free_page(void* page) noexcept { alloc::deallocate(page); }
  static void* allocate(std::size_t bytes) noexcept { return alloc::allocate(bytes); }
  static void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
    return alloc::allocate_aligned(alignment, bytes);
  }
  static void* reallocate(void* block, std::size_t bytes) noexcept { return alloc::reallocate(block, bytes); }
  static void deallocate(void* block) noexcept { alloc::deallocate(block); }
  static std::size_t usable_size(void* block) noexcept { return alloc::usable_size(block); }
  static bool is_checked() noexcept { return alloc::is_checked(); }
};

// The malloc that the process has. Not for use inside a malloc.
struct SystemUpstream {
  static void* allocate_page() noexcept { return allocate_aligned(4096, 4096); }
  static void free_page(void* page) noexcept { std::free(page); }
  static void* allocate(std::size_t bytes) noexcept { return std::malloc(bytes); }
  static void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept { return ::memalign(alignment, bytes); }
  static void* reallocate(void* block, std::size_t bytes) noexcept { return std::realloc(block, bytes); }
  static void deallocate(void* block) noexcept { std::free(block); }
  static std::size_t usable_size(void* block) noexcept { return ::malloc_usable_size(block); }
};

// Policies: the article's figures with either list. Upstreams are empty or constant-initialisable.
template <class U = EngineUpstream>
struct MutexPages : OwnerPagesConfig {
  using Upstream = U;
  static constexpr const char* kName = "mutex";
};
template <class U = EngineUpstream>
struct LockFreePages : MutexPages<U> {
  static constexpr const char* kName = "lock-free";
  template <class A>
  using List = LockFreeList<A>;
};

// The article to the letter: a slot of another thread is handed over at once, and every allocation looks at the owner's
// list, which is drained when more than the threshold wait. The policies above gather the slots for one owner, and look once
// a page.
template <class U = EngineUpstream>
struct ArticlePages : MutexPages<U> {
  static constexpr const char* kName = "article";
  static constexpr std::uint32_t kHandOver = 1;
  static constexpr bool kLookAlways = true;
};

// One process-wide allocator per Policy. Calls of different instantiations must not be mixed.
template <class Policy = MutexPages<>>
class OwnerPagesHeap {
  using A = sync::NativeAtomics;
  using Map = PageMap<A>;

  // The policy's upstream, with every page of slots entered in the map.
  struct MappedPages {
    typename Policy::Upstream blocks;

    void* allocate_page() noexcept {
      void* const page = blocks.allocate_page();
      if (page == nullptr || map_.insert(page)) return page;
      blocks.free_page(page);
      return nullptr;
    }
    void free_page(void* page) noexcept {
      map_.erase(page);
      blocks.free_page(page);
    }
  };
  struct Config : Policy {
    using Upstream = MappedPages;
  };
  using Pages = OwnerPages<A, Config>;
  using Owner = typename Pages::Owner;
  static_assert(BlockUpstream<typename Policy::Upstream> && Policy::kPageBytes == Map::kPageBytes);

 public:
  static constexpr const char* kName = Policy::kName;              // "mutex", "lock-free", "article": for tables
  static constexpr std::size_t kMaxSmallBytes = Pages::kMaxBytes;  // the largest request that is served from pages
  static constexpr std::size_t kSlotAlignment = 16;                // bytes

  OwnerPagesHeap() = delete;

  // At least `bytes` bytes, aligned to 16; null with errno ENOMEM when the upstream has none. 0 bytes are the least block.
  [[nodiscard]] static void* allocate(std::size_t bytes) noexcept {
    if (bytes > kMaxSmallBytes) return blocks().allocate(bytes);
    Owner* const self = self_;
    if (self == nullptr) [[unlikely]]
      return allocate_without_owner(bytes);
    return pages_.allocate(*self, bytes);
  }

  // The same with an alignment that is a power of two.
  [[nodiscard]] static void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
    return alignment <= kSlotAlignment ? allocate(bytes) : blocks().allocate_aligned(alignment, bytes);
  }

  // Frees a block. Null is ignored; a pointer that is in no page of slots goes to the upstream, which reports misuse.
  static void deallocate(void* block) noexcept {
    if (!map_.contains(block)) return blocks().deallocate(block);
    Owner* self = self_;
    if (self == nullptr) [[unlikely]]
      self = join();
    pages_.deallocate(self, block);
  }

  // A block of at least `bytes` bytes with the old contents, as far as they fit; null acts as allocate. A small block stays
  // where it is while `bytes` fit, 0 included; a large one is the upstream's to grow and to shrink, but stays large.
  // On failure: null, errno ENOMEM, and the block is untouched.
  [[nodiscard]] static void* reallocate(void* block, std::size_t bytes) noexcept {
    if (block == nullptr) return allocate(bytes);
    if (!map_.contains(block)) return blocks().reallocate(block, bytes > 0 ? bytes : 1);
    const std::size_t held = Pages::usable_size(block);
    if (bytes <= held) return block;
    void* const moved = allocate(bytes);
    if (moved == nullptr) return nullptr;
    std::memcpy(moved, block, held);
    deallocate(block);
    return moved;
  }

  // The bytes of the block that the program may use; 0 for null.
  [[nodiscard]] static std::size_t usable_size(void* block) noexcept {
    if (block == nullptr) return 0;
    return map_.contains(block) ? Pages::usable_size(block) : blocks().usable_size(block);
  }

  // Drains the calling thread's list and returns its empty pages to the upstream. Returns the pages returned.
  static std::size_t trim() noexcept { return self_ == nullptr ? 0 : pages_.trim(*self_); }
  static void stats(OwnerPagesStats& out) noexcept { pages_.stats(out); }

 private:
  static typename Policy::Upstream& blocks() noexcept { return pages_.upstream().blocks; }

  // The calling thread's owner: made now; null if its thread has left already, or if there is no memory for it.
  [[gnu::noinline]] static Owner* join() noexcept {
    if (left_) return nullptr;
    pthread_once(&prepared_, prepare);
    if (!prepared_well_ || is_checked()) return nullptr;
    Owner* const self = pages_.join();
    if (self == nullptr) return nullptr;
    if (pthread_setspecific(key_, self) != 0) {  // without the key the thread would never leave
      pages_.leave(*self);
      return nullptr;
    }
    return self_ = self;
  }

  [[gnu::noinline]] static void* allocate_without_owner(std::size_t bytes) noexcept {
    if (Owner* const self = join()) return pages_.allocate(*self, bytes);
    if (is_checked()) return blocks().allocate(bytes);
    // A thread that has left, or could not join: the owner shared by all such threads. Others free into it remotely.
    const sync::Guard guard(late_lock_);
    if (late_ == nullptr) late_ = pages_.join();
    if (late_ == nullptr) return nullptr;
    return pages_.allocate(*late_, bytes);
  }

  // Returns whether the upstream looks at every block. Pre: it was called before.
  [[nodiscard]] static bool is_checked() noexcept {
    if constexpr (requires { blocks().is_checked(); })
      return blocks().is_checked();
    else
      return false;
  }

  // Before the first join. The upstream is called first, so that its own fork handlers, if it registers any at its first
  // call, come earlier: prepare handlers run in reverse order, and our locks are taken before the upstream's.
  static void prepare() noexcept {
    blocks().deallocate(blocks().allocate(kMaxSmallBytes + 1));
    prepared_well_ = pthread_key_create(&key_, leave) == 0 && pthread_atfork(before_fork, after_fork, after_fork) == 0;
  }
  static void leave(void* self) noexcept {
    self_ = nullptr;
    left_ = true;
    pages_.leave(*static_cast<Owner*>(self));
  }
  static void before_fork() noexcept {
    late_lock_.lock();
    pages_.before_fork();
  }
  static void after_fork() noexcept {
    pages_.after_fork();
    late_lock_.unlock();
  }

  // No destructors: threads free in the last moments of a process.
  static inline constinit Pages pages_{};
  static inline constinit Map map_{};
  static_assert(std::is_trivially_destructible_v<Pages> && std::is_trivially_destructible_v<Map>);

  [[gnu::tls_model("initial-exec")]] static inline thread_local constinit Owner* self_ = nullptr;
  [[gnu::tls_model("initial-exec")]] static inline thread_local constinit bool left_ = false;

  static inline constinit sync::Mutex<A> late_lock_{};  // taken before the locks of pages_
  static inline constinit Owner* late_ = nullptr;       // under late_lock_

  static inline constinit pthread_once_t prepared_ = PTHREAD_ONCE_INIT;
  static inline constinit pthread_key_t key_ = 0;
  static inline constinit bool prepared_well_ = false;
};

}  // namespace freehold::thread_alloc
