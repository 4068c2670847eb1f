// SPDX-License-Identifier: MIT
// The promises that C, POSIX, C++ and glibc's manual make of the malloc family, one test per promise. The same source runs
// with Freehold linked and preloaded; without either it tests glibc's malloc, against which its expectations were checked.
#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

#include "freehold/os/pages.hpp"
#include "tests/conformance/malloc_api.hpp"
#include "tests/support/test.hpp"

namespace freehold::test {
namespace {

using malloc_api::is_aligned, malloc_api::kImpossible, malloc_api::kKiB, malloc_api::kMiB;

// Sizes around everything that could be a border: each power of two and each eighth between, up to `max`.
std::vector<std::size_t> borders(std::size_t max) {
  std::set<std::size_t> sizes;
  for (std::size_t power = 8; power <= max; power *= 2)
    for (std::size_t eighth = 0; eighth < 8; ++eighth)
      for (std::size_t n = power + power / 8 * eighth - 1, i = 0; i < 3; ++i)
        if (n + i <= max) sizes.insert(n + i);
  return {sizes.begin(), sizes.end()};
}

// ---- malloc and free --------------------------------------------------------------------------------------------------

TEST(Malloc, EverySizeUpTo40KiB_AlignedAndUsableToTheLastByte) {
  for (std::size_t n = 0; n <= 40 * kKiB; n += n < 4096 ? 1 : 7) {
    void* p = CApi::allocate(n);
    ASSERT_NE(p, nullptr) << n;
    ASSERT_TRUE(is_aligned(p, 16)) << n;
    const std::size_t usable = CApi::usable_size(p);
    ASSERT_GE(usable, n);
    std::memset(p, 0xff, usable);
    CApi::deallocate(p);
  }
}

TEST(Malloc, ZeroBytes_DistinctFreeableBlocks) {
  void* a = CApi::allocate(0);
  void* b = CApi::allocate(0);
  EXPECT_NE(a, nullptr);
  EXPECT_NE(b, nullptr);
  EXPECT_NE(a, b);
  CApi::deallocate(a);
  CApi::deallocate(b);
}

TEST(Malloc, ImpossibleSize_NullAndEnomem) {
  for (const std::size_t n : kImpossible) {
    errno = 0;
    EXPECT_EQ(CApi::allocate(n), nullptr) << n;
    EXPECT_EQ(errno, ENOMEM) << n;
  }
}

TEST(Malloc, GigabytesUntouched_AreGranted) {
  char* p = static_cast<char*>(CApi::allocate(std::size_t{8} << 30));
  if (p == nullptr) GTEST_SKIP() << "the system does not grant 8 GiB";
  p[0] = 1;
  p[(std::size_t{8} << 30) - 1] = 2;
  EXPECT_GE(CApi::usable_size(p), std::size_t{8} << 30);
  CApi::deallocate(p);
}

TEST(Free, Null_IsIgnored) { CApi::deallocate(nullptr); }

TEST(Free, EverySize_LeavesErrnoAlone) {
  for (const std::size_t n : {std::size_t{1}, std::size_t{100}, 40 * kKiB, kMiB, 64 * kMiB}) {
    std::vector<void*> blocks(n < kMiB ? 500 : 2);
    for (void*& p : blocks) p = CApi::allocate(n);
    errno = EBADMSG;
    for (void* p : blocks) CApi::deallocate(p);
    EXPECT_EQ(errno, EBADMSG) << n;
  }
}

// Memory that libc allocates inside itself and gives to the caller comes from the malloc under test too.
TEST(Free, BlocksFromInsideLibc_AreOurs) {
  char* text = nullptr;
  ASSERT_GT(::asprintf(&text, "%0500d", 1), 0);
  CApi::deallocate(text);
  CApi::deallocate(::strdup("freehold"));
  CApi::deallocate(::realpath("/tmp/..", nullptr));
  CApi::deallocate(::getcwd(nullptr, 0));
  char* buffer = nullptr;
  std::size_t size = 0;
  std::FILE* stream = ::open_memstream(&buffer, &size);
  for (int i = 0; i < 10'000; ++i) std::fputs("grows and grows ", stream);
  std::fclose(stream);
  EXPECT_EQ(size, 160'000u);
  CApi::deallocate(buffer);
}

// ---- calloc -----------------------------------------------------------------------------------------------------------

TEST(Calloc, MemoryUsedBefore_ReadsAsZero) {
  for (int round = 0; round < 2; ++round) {
    for (const std::size_t n : borders(2 * kMiB)) {
      void* dirty[3];
      for (void*& p : dirty) {
        p = CApi::allocate(n);
        std::memset(p, 0xa5, CApi::usable_size(p));
      }
      for (void* p : dirty) CApi::deallocate(p);
      void* clean[3];
      for (void*& p : clean) {
        p = CApi::allocate_zeroed(n);
        ASSERT_TRUE(all_zero(p, n)) << n;
      }
      for (void* p : clean) CApi::deallocate(p);
    }
    CApi::trim();
  }
}

TEST(Calloc, BlocksBesideItInMemory_StayAsTheyAre) {
  for (const std::size_t n : borders(128 * kKiB)) {
    void* blocks[16];
    for (void*& p : blocks) std::memset(p = CApi::allocate(n), 0xa5, n);
    for (std::size_t i = 0; i < std::size(blocks); i += 2) CApi::deallocate(blocks[i]);
    for (std::size_t i = 0; i < std::size(blocks); i += 2) blocks[i] = CApi::allocate_zeroed(n);
    for (std::size_t i = 0; i < std::size(blocks); ++i) {
      const auto* const p = static_cast<const unsigned char*>(blocks[i]);
      ASSERT_EQ(std::count(p, p + n, i % 2 == 0 ? 0 : 0xa5), n) << n;
      CApi::deallocate(blocks[i]);
    }
  }
}

// The pages of a block of which little was written are given back, those of others are cleared.
TEST(Calloc, LargeBlockWrittenHereAndThere_ReadsAsZero) {
  for (const std::size_t n : {kMiB + 1, 3 * kMiB - 1, 5 * kMiB + 4096, 17 * kMiB + 9})
    for (const std::size_t step : {n - 1, n / 3, kMiB / 7, std::size_t{4096}})
      for (int round = 0; round < 3; ++round) {
        auto* const p = static_cast<char*>(CApi::allocate_zeroed(n));
        ASSERT_TRUE(all_zero(p, n)) << n << " " << step;
        for (std::size_t at = 0; at < n; at += step) p[at] = 1;
        CApi::deallocate(p);
      }
}

TEST(Calloc, LargeBlockAfterRealloc_ReadsAsZero) {
  // A run that was grown, shrunk and freed: its tail may be known to be zero, its head is not.
  for (std::size_t n = 64 * kKiB; n <= 64 * kMiB; n *= 4) {
    void* p = CApi::allocate(n);
    std::memset(p, 0xa5, n);
    p = CApi::reallocate(p, n / 2);
    p = CApi::reallocate(p, n + n / 2);
    std::memset(static_cast<char*>(p) + n / 2, 0x5a, n);
    CApi::deallocate(p);
    p = CApi::allocate_zeroed(2 * n);
    ASSERT_TRUE(all_zero(p, 2 * n)) << n;
    CApi::deallocate(p);
  }
}

TEST(Calloc, ProductOverflows_NullAndEnomem) {
  const std::pair<std::size_t, std::size_t> products[] = {
      {SIZE_MAX, 2}, {2, SIZE_MAX}, {SIZE_MAX / 2, 3}, {std::size_t{1} << 32, std::size_t{1} << 32}, {SIZE_MAX, SIZE_MAX}};
  for (const auto& [count, bytes] : products) {
    errno = 0;
    EXPECT_EQ(opaque(&std::calloc)(count, bytes), nullptr);
    EXPECT_EQ(errno, ENOMEM);
  }
}

// ---- realloc ----------------------------------------------------------------------------------------------------------

TEST(Realloc, BetweenAnyTwoBorders_KeepsTheContents) {
  std::vector<std::size_t> sizes = borders(64 * kKiB);
  for (const std::size_t from : sizes)
    for (const std::size_t to : sizes) {
      void* p = CApi::allocate(from);
      fill(p, from, from ^ to);
      p = CApi::reallocate(p, to);
      ASSERT_NE(p, nullptr);
      ASSERT_TRUE(is_aligned(p, 16));
      ASSERT_GE(CApi::usable_size(p), to);
      ASSERT_TRUE(intact(p, std::min(from, to), from, from ^ to)) << from << " to " << to;
      CApi::deallocate(p);
    }
}

TEST(Realloc, BetweenLargeSizes_KeepsTheContents) {
  const std::size_t sizes[] = {100,      33 * kKiB,   64 * kKiB, 65 * kKiB, 256 * kKiB, 257 * kKiB,
                               kMiB - 1, kMiB + 4097, 4 * kMiB,  9 * kMiB,  33 * kMiB,  70 * kMiB};
  for (const std::size_t from : sizes)
    for (const std::size_t to : sizes) {
      if (from + to > 100 * kMiB) continue;
      void* p = CApi::allocate(from);
      fill(p, from, from ^ to);
      p = CApi::reallocate(p, to);
      ASSERT_NE(p, nullptr);
      ASSERT_TRUE(intact(p, std::min(from, to), from, from ^ to)) << from << " to " << to;
      static_cast<char*>(p)[to - 1] = 1;  // the new part is ours as well
      CApi::deallocate(p);
    }
}

TEST(Realloc, Null_Allocates) {
  void* p = CApi::reallocate(nullptr, 100);
  ASSERT_NE(p, nullptr);
  std::memset(p, 1, 100);
  CApi::deallocate(p);
  p = CApi::reallocate(nullptr, 0);  // glibc: like malloc(0)
  EXPECT_NE(p, nullptr);
  CApi::deallocate(p);
}

TEST(Realloc, ToZeroBytes_Frees) {
  // As glibc does; programs rely on it. 4 GiB would not fit twice if the first were kept.
  for (int i = 0; i < 100'000; ++i) ASSERT_EQ(CApi::reallocate(CApi::allocate(40 * kKiB), 0), nullptr);
}

TEST(Realloc, WithinTheUsableSize_StaysInPlace) {
  for (const std::size_t n : borders(4 * kMiB)) {
    void* p = CApi::allocate(n);
    void* q = CApi::reallocate(p, CApi::usable_size(p));
    EXPECT_EQ(q, p) << n;
    CApi::deallocate(q);
  }
}

TEST(Realloc, ImpossibleSize_LeavesTheBlockAlone) {
  for (const std::size_t from : {std::size_t{50}, 5 * kKiB, 50 * kKiB, 5 * kMiB, 80 * kMiB}) {
    void* p = CApi::allocate(from);
    fill(p, from, from);
    for (const std::size_t n : kImpossible) {
      errno = 0;
      EXPECT_EQ(CApi::reallocate(p, n), nullptr);
      EXPECT_EQ(errno, ENOMEM);
    }
    EXPECT_TRUE(intact(p, from, from)) << from;
    CApi::deallocate(p);
  }
}

// A part of the block has another flag: the kernel moves no two mappings in one call, so the block is copied.
TEST(Realloc, SystemRefusesToMoveTheBlock_CopiedAndErrnoLeftAlone) {
  if (!freehold_is_expected()) GTEST_SKIP() << "glibc leaves the system's error in errno";
  for (const std::size_t from : {std::size_t{2 * kMiB}, std::size_t{80 * kMiB}}) {
    void* p = CApi::allocate(from);
    ASSERT_NE(p, nullptr);
    fill(p, from, from);
    char* middle = static_cast<char*>(p) + from / 2;
    middle -= reinterpret_cast<std::uintptr_t>(middle) % 4096;
    ASSERT_EQ(::madvise(middle, 4096, MADV_DONTFORK), 0);
    errno = EBADMSG;
    p = CApi::reallocate(p, from * 2);
    EXPECT_EQ(errno, EBADMSG) << from;
    ::madvise(middle, 4096, MADV_DOFORK);  // its page may serve another block now
    ASSERT_NE(p, nullptr);
    EXPECT_TRUE(intact(p, from, from)) << from;
    CApi::deallocate(p);
  }
}

TEST(Reallocarray, ProductOverflows_LeavesTheBlockAlone) {
  void* p = opaque(&reallocarray)(nullptr, 10, 10);
  ASSERT_NE(p, nullptr);
  fill(p, 100, 1);
  errno = 0;
  EXPECT_EQ(opaque(&reallocarray)(p, SIZE_MAX / 2, 3), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_TRUE(intact(p, 100, 1));
  p = opaque(&reallocarray)(p, 1000, 100);
  EXPECT_TRUE(intact(p, 100, 1));
  CApi::deallocate(p);
}

// ---- alignment --------------------------------------------------------------------------------------------------------

TEST(Aligned, EveryAlignmentTo64MiB_EverySizeAroundIt) {
  for (std::size_t alignment = 1; alignment <= 64 * kMiB; alignment *= 2) {
    std::vector<std::pair<void*, std::size_t>> live;
    for (const std::size_t n :
         {std::size_t{0}, std::size_t{1}, alignment - 1, alignment, alignment + 1, 3 * alignment + 5}) {
      for (int copies = 0; copies < (alignment <= kMiB ? 4 : 1); ++copies) {
        void* p = CApi::allocate_aligned(alignment, n);
        ASSERT_NE(p, nullptr) << alignment << ' ' << n;
        ASSERT_TRUE(is_aligned(p, alignment)) << alignment << ' ' << n;
        ASSERT_GE(CApi::usable_size(p), n);
        fill(p, n, alignment + live.size());
        live.emplace_back(p, n);
      }
    }
    for (std::size_t i = 0; i < live.size(); ++i)
      ASSERT_TRUE(intact(live[i].first, live[i].second, alignment + i)) << alignment;
    for (std::size_t i = 0; i < live.size(); ++i) {  // an aligned block is a block like any other
      auto& [p, n] = live[i];
      p = CApi::reallocate(p, 2 * n + 1);
      ASSERT_TRUE(intact(p, n, alignment + i)) << alignment;
      CApi::deallocate(p);
    }
  }
}

TEST(Aligned, ImpossibleSize_NullAndEnomem) {
  for (const std::size_t n : kImpossible)
    for (const std::size_t alignment : {std::size_t{8}, std::size_t{64}, std::size_t{4096}, 4 * kMiB}) {
      errno = 0;
      EXPECT_EQ(CApi::allocate_aligned(alignment, n), nullptr);
      EXPECT_EQ(errno, ENOMEM);
    }
  errno = 0;
  EXPECT_EQ(CApi::allocate_aligned(std::size_t{1} << 62, 1), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

TEST(AlignedAlloc, SizeIsNoMultiple_IsGranted) {
  void* p = opaque(&aligned_alloc)(256, 100);  // C17 dropped the demand
  ASSERT_NE(p, nullptr);
  EXPECT_TRUE(is_aligned(p, 256));
  CApi::deallocate(p);
}

TEST(AlignedAlloc, AlignmentIsNoPowerOfTwo_RefusedOrRoundedUp) {
  for (const std::size_t alignment : {std::size_t{3}, std::size_t{24}, std::size_t{100}}) {
    errno = 0;
    void* p = opaque(&aligned_alloc)(alignment, 100);
    if (p == nullptr) {
      EXPECT_EQ(errno, EINVAL);
    } else {
      EXPECT_TRUE(is_aligned(p, alignment <= 4 ? 4 : alignment <= 32 ? 32 : 128));
      CApi::deallocate(p);
    }
  }
}

TEST(Memalign, AlignmentIsNoPowerOfTwo_RoundedUp) {
  for (const std::size_t alignment : {std::size_t{3}, std::size_t{24}, std::size_t{100}, std::size_t{3000}}) {
    std::array<void*, 8> blocks;  // one alone may be aligned to more than it must be
    for (void*& p : blocks) {
      p = opaque(&memalign)(alignment, 16);
      ASSERT_NE(p, nullptr);
      EXPECT_TRUE(is_aligned(p, std::bit_ceil(alignment))) << alignment;
    }
    for (void* p : blocks) CApi::deallocate(p);
  }
  errno = 0;
  EXPECT_EQ(opaque(&memalign)(SIZE_MAX / 2 + 2, 16), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST(PosixMemalign, BadAlignment_EinvalAndNothingTouched) {
  for (const std::size_t alignment : {0, 1, 2, 4, 7, 12, 24, 4097}) {
    int marker = 0;
    void* p = &marker;
    errno = EBADMSG;
    EXPECT_EQ(opaque(&posix_memalign)(&p, alignment, 64), EINVAL) << alignment;
    EXPECT_EQ(p, &marker);
    EXPECT_EQ(errno, EBADMSG);
  }
}

TEST(PosixMemalign, ImpossibleSize_EnomemAndNothingTouched) {
  for (const std::size_t n : kImpossible) {
    int marker = 0;
    void* p = &marker;
    errno = 0;
    EXPECT_EQ(opaque(&posix_memalign)(&p, 64, n), ENOMEM);
    EXPECT_EQ(p, &marker);
    EXPECT_EQ(errno, ENOMEM);  // POSIX leaves it open; programs that know glibc look there
  }
}

TEST(PosixMemalign, EveryAlignmentTo4MiB_Aligned) {
  for (std::size_t alignment = sizeof(void*); alignment <= 4 * kMiB; alignment *= 2) {
    void* p = nullptr;
    ASSERT_EQ(opaque(&posix_memalign)(&p, alignment, 10), 0);
    EXPECT_TRUE(is_aligned(p, alignment));
    CApi::deallocate(p);
  }
}

TEST(Valloc, AnySize_PageAligned) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, page, page + 1, 100 * page}) {
    void* p = opaque(&valloc)(n);
    ASSERT_NE(p, nullptr);
    EXPECT_TRUE(is_aligned(p, page));
    std::memset(p, 1, n);
    CApi::deallocate(p);
    p = opaque(&pvalloc)(n);
    ASSERT_NE(p, nullptr);
    EXPECT_TRUE(is_aligned(p, page));
    EXPECT_GE(CApi::usable_size(p), (n + page - 1) / page * page);  // whole pages
    CApi::deallocate(p);
  }
  errno = 0;
  EXPECT_EQ(opaque(&pvalloc)(SIZE_MAX - 5), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

// ---- sizes ------------------------------------------------------------------------------------------------------------

TEST(UsableSize, Null_IsZero) { EXPECT_EQ(CApi::usable_size(nullptr), 0u); }

TEST(UsableSize, Above128Bytes_AtMostAnEighthMore) {
  if (!freehold_is_expected()) GTEST_SKIP() << "a promise of Freehold, not of malloc";
  for (std::size_t n = 129; n <= 16 * kMiB; n += 1 + n / 1009) {
    void* p = CApi::allocate(n);
    const std::size_t usable = CApi::usable_size(p);
    // Above the size classes in pages, which a kernel may have made larger than an eighth.
    if (os::kLargestPageBytes > 4096 && n > 32 * 1024 && usable - n < os::kLargestPageBytes) continue;
    EXPECT_LE((usable - n) * 8, n) << n << " got " << usable;
    CApi::deallocate(p);
  }
}

// Else a line's end may lie behind the first branch, by which malloc took 1.6 times as long. A C++ runtime that is linked
// into the program brings other operators, which no line is asked of.
TEST(FastPaths, BeginAtALine) {
  if (!freehold_is_expected()) GTEST_SKIP() << "a promise of Freehold, not of malloc";
  const auto expect_line = [](const char* name, void* function) {
    Dl_info its{}, malloc_s{};
    ASSERT_TRUE(::dladdr(function, &its) != 0 && ::dladdr(reinterpret_cast<void*>(&std::malloc), &malloc_s) != 0) << name;
    const bool is_ours = its.dli_fbase == malloc_s.dli_fbase;
    EXPECT_TRUE(!is_ours || reinterpret_cast<std::uintptr_t>(function) % 64 == 0) << name;
  };
  expect_line("malloc", reinterpret_cast<void*>(&std::malloc));
  expect_line("free", reinterpret_cast<void*>(&std::free));
  expect_line("new", reinterpret_cast<void*>(static_cast<void* (*)(std::size_t)>(&::operator new)));
  expect_line("delete", reinterpret_cast<void*>(static_cast<void (*)(void*)>(&::operator delete)));
}

TEST(FreeSized, EveryKindOfBlock_IsFreed) {
  const auto free_sized = reinterpret_cast<void (*)(void*, std::size_t)>(::dlsym(RTLD_DEFAULT, "free_sized"));
  const auto free_aligned_sized =
      reinterpret_cast<void (*)(void*, std::size_t, std::size_t)>(::dlsym(RTLD_DEFAULT, "free_aligned_sized"));
  if (free_sized == nullptr || free_aligned_sized == nullptr) {
    ASSERT_FALSE(freehold_is_expected()) << "Freehold has both";
    GTEST_SKIP() << "no free_sized in this libc";
  }
  free_sized(nullptr, 0);
  free_aligned_sized(nullptr, 64, 0);
  for (int i = 0; i < 20'000; ++i)  // 20 GB, were they not freed
    for (const std::size_t n : {std::size_t{10}, std::size_t{1000}, kMiB}) {
      free_sized(CApi::allocate(n), n);
      free_aligned_sized(CApi::allocate_aligned(256, n), 256, n);
    }
}

}  // namespace
}  // namespace freehold::test
