// SPDX-License-Identifier: MIT
// Reports, tuning calls and private names that no other libc than glibc has.
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

#include "tests/conformance/malloc_api.hpp"
#include "tests/support/test.hpp"

#ifdef __GLIBC__
// No header of glibc declares these.
extern "C" {
void* __libc_malloc(std::size_t);
void __libc_free(void*);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* __libc_valloc(std::size_t);
void* __libc_pvalloc(std::size_t);
}
#endif

namespace freehold::test {
namespace {

#ifdef __GLIBC__
using malloc_api::kKiB, malloc_api::kMiB;

TEST(Mallinfo2, MemoryInUse_IsCounted) {
  for (const std::size_t n : {std::size_t{64}, 4 * kKiB, 100 * kKiB, 40 * kMiB}) {
    const auto in_use = [] {
      const struct mallinfo2 m = opaque(&mallinfo2)();
      return m.uordblks + m.hblkhd;  // glibc counts mapped blocks apart
    };
    const std::size_t before = in_use();
    std::vector<void*> blocks(std::max<std::size_t>(2, 32 * kMiB / n));
    for (void*& p : blocks) p = CApi::allocate(n);
    const std::size_t during = in_use();
    const std::size_t asked = blocks.size() * n;
    EXPECT_GE(during - before, asked / 100 * 95) << n;
    for (void* p : blocks) CApi::deallocate(p);
    EXPECT_LE(in_use(), before + asked / 4) << n;
  }
}

// glibc's equation, also while free memory is kept.
TEST(Mallinfo2, Totals_AddUp) {
  for (const std::size_t n : {std::size_t{64}, 4 * kKiB, kMiB}) {
    std::vector<void*> blocks(10);
    for (void*& p : blocks) std::memset(p = CApi::allocate(n), 1, n);
    for (const bool freed : {false, true}) {
      if (freed)
        for (void* p : blocks) CApi::deallocate(p);
      const struct mallinfo2 m = opaque(&mallinfo2)();
      EXPECT_EQ(m.arena, m.uordblks + m.fordblks) << n << " freed " << freed;
      EXPECT_GE(m.fordblks, m.keepcost);
    }
  }
}

// Old programs turn these knobs and print these tables; nothing may break.
TEST(OldKnobs, AllOfThem_DoNoHarm) {
  EXPECT_GE(mallopt(M_MMAP_THRESHOLD, 1 << 20), 0);
  EXPECT_GE(mallopt(M_MXFAST, 64), 0);
  EXPECT_GE(mallopt(M_ARENA_MAX, 2), 0);
  EXPECT_GE(mallopt(M_TRIM_THRESHOLD, 1 << 20), 0);
  if (freehold_is_expected()) {
    EXPECT_EQ(mallopt(M_ARENA_TEST, 8), 1);
    EXPECT_EQ(mallopt(12345, 1), 0) << "there is no such parameter";
  }
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* stream = ::open_memstream(&text, &size);
  malloc_info(0, stream);
  std::fclose(stream);
  CApi::deallocate(text);
}

// M_PERTURB: new blocks hold the complement of the byte, except zeroed ones. The test sets it in a separate thread, and
// unsets it again.
TEST(Perturb, OnAndOff_FillsNewBlocks) {
  std::thread([] {
    CApi::deallocate(CApi::allocate(100));  // the thread has a cache by now
    ASSERT_EQ(mallopt(M_PERTURB, 0xa5), 1);
    for (int round = 0; round < 3; ++round)
      for (const std::size_t n : {std::size_t{1}, std::size_t{100}, 5 * kKiB, 50 * kKiB, 3 * kMiB}) {
        auto* const fresh = static_cast<unsigned char*>(CApi::allocate(n));
        auto* const aligned = static_cast<unsigned char*>(CApi::allocate_aligned(64, n));
        auto* const zeroed = static_cast<unsigned char*>(CApi::allocate_zeroed(n));
        EXPECT_EQ(std::count(fresh, fresh + n, 0x5a), static_cast<std::ptrdiff_t>(n));
        EXPECT_EQ(std::count(aligned, aligned + n, 0x5a), static_cast<std::ptrdiff_t>(n));
        EXPECT_EQ(std::count(zeroed, zeroed + n, 0), static_cast<std::ptrdiff_t>(n));
        for (void* p : {fresh, aligned, zeroed}) CApi::deallocate(p);
      }
    EXPECT_EQ(mallopt(M_PERTURB, 0), 1);
    auto* const kept = static_cast<unsigned char*>(CApi::allocate(64));
    std::fill(kept, kept + 64, 7);
    CApi::deallocate(kept);
    auto* const again = static_cast<unsigned char*>(CApi::allocate(64));
    EXPECT_NE(again[63], 0x5a);
    CApi::deallocate(again);
  }).join();
}

// glibc prints its own whole, whether the thread is to be cancelled or not.
TEST(MallocStats, CancelledThread_PrintsAllTheSame) {
  const int file = ::memfd_create("stderr", 0);
  const int saved = ::dup(STDERR_FILENO);
  std::fflush(stderr);
  ::dup2(file, STDERR_FILENO);
  std::thread([] {
    ::pthread_cancel(::pthread_self());
    opaque (&malloc_stats)();
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  }).join();
  std::fflush(stderr);
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  EXPECT_GT(::lseek(file, 0, SEEK_END), 20);
  ::close(file);
}

TEST(MallocStats, ThreadThatForbidsCancellation_StaysSo) {
  std::FILE* const nowhere = std::fopen("/dev/null", "w");
  ASSERT_NE(nowhere, nullptr);
  for (const int state : {PTHREAD_CANCEL_DISABLE, PTHREAD_CANCEL_ENABLE}) {
    int former = -1, after = -1;
    ASSERT_EQ(::pthread_setcancelstate(state, &former), 0);
    EXPECT_EQ(opaque(&malloc_info)(0, nowhere), 0);
    ASSERT_EQ(::pthread_setcancelstate(former, &after), 0);
    EXPECT_EQ(after, state);
  }
  std::fclose(nowhere);
}

// The elements of malloc_info(3), whose totals programs read at the end; one of large live blocks, one of freed small ones.
TEST(MallocInfo, Document_HasTheElementsOfGlibcsWithRightFigures) {
  constexpr std::size_t kLarge = 6, kLargeBytes = 8 * kMiB, kSmall = 1 << 18, kSmallBytes = 64;
  const auto document = [] {
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* const stream = ::open_memstream(&text, &size);
    EXPECT_EQ(opaque(&malloc_info)(0, stream), 0);
    std::fclose(stream);
    std::string copy(text, size);
    CApi::deallocate(text);
    return copy;
  };
  const auto figure = [](const std::string& text, const std::string& element, const std::string& attribute) {
    const std::size_t at = text.rfind("<" + element), key = text.find(attribute + "=\"", at);
    EXPECT_TRUE(at != std::string::npos && key < text.find('>', at)) << element << ' ' << attribute;
    return key == std::string::npos ? 0 : std::stoull(text.substr(key + attribute.size() + 2));
  };
  (void)::malloc_trim(0);  // a mapping that an earlier test left may be larger than what it is taken for
  std::vector<void*> large(kLarge), small(kSmall);
  const std::string before = document();
  const std::size_t blocks_before = opaque(&mallinfo2)().hblks;
  for (void*& p : large) std::memset(p = CApi::allocate(kLargeBytes), 1, kLargeBytes);
  for (void*& p : small) p = CApi::allocate(kSmallBytes);
  for (std::size_t i = 0; i < kSmall; i += 4) CApi::deallocate(std::exchange(small[i], nullptr));
  const std::string during = document();
  const auto grown = [&](const char* element, const char* attribute) {
    return figure(during, element, attribute) - figure(before, element, attribute);
  };
  EXPECT_EQ(grown("total type=\"mmap\"", "count"), kLarge);
  EXPECT_EQ(grown("total type=\"mmap\"", "size"), kLarge * kLargeBytes);
  EXPECT_EQ(opaque(&mallinfo2)().hblks - blocks_before, kLarge);
  EXPECT_GE(figure(during, "total type=\"rest\"", "size"), kSmall / 4 * kSmallBytes / 2);
  EXPECT_GE(figure(during, "total type=\"rest\"", "count"), kSmall / 8);
  EXPECT_EQ(figure(during, "total type=\"fast\"", "size"), 0U);
  EXPECT_GE(figure(during, "system type=\"current\"", "size"), kSmall * kSmallBytes);
  EXPECT_GE(figure(during, "system type=\"max\"", "size"), figure(during, "system type=\"current\"", "size"));
  EXPECT_GE(figure(during, "aspace type=\"total\"", "size"), figure(during, "system type=\"current\"", "size"));
  for (const char* element : {"<heap nr=\"0\">", "<sizes>", "<size from=", "</sizes>", "</heap>"})
    EXPECT_NE(during.find(element), std::string::npos) << element;
  for (void* p : large) CApi::deallocate(p);
  for (void* p : small) CApi::deallocate(p);
}

TEST(MallocInfo, UnknownOptions_EinvalIsReturnedAndNotSet) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  errno = 0;
  EXPECT_EQ(opaque(&malloc_info)(1, file), EINVAL);
  EXPECT_EQ(errno, 0);
  EXPECT_EQ(std::ftell(file), 0) << "nothing is written";
  std::fclose(file);
}

TEST(MallocInfo, CancelledThread_WritesAllTheSame) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  std::setvbuf(file, nullptr, _IONBF, 0);  // every piece is a write, where a thread may be cancelled
  std::thread([file] {
    ::pthread_cancel(::pthread_self());
    auto* const info = opaque(&malloc_info);
    (void)info(0, file);
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  }).join();
  std::rewind(file);
  std::string text(1 << 16, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  EXPECT_TRUE(text.starts_with("<malloc")) << text.substr(0, 100);
  EXPECT_TRUE(text.ends_with("</malloc>\n"))
      << "it ends with " << text.substr(text.size() - std::min<std::size_t>(text.size(), 100));
  std::fclose(file);
}

// ---- glibc's private names ----------------------------------------------------------------------------------------------

TEST(LibcNames, Blocks_CrossBothWays) {
  for (const std::size_t n : {std::size_t{1}, std::size_t{1000}, 50 * kKiB, 3 * kMiB}) {
    for (void* p : {opaque(&__libc_malloc)(n), opaque(&__libc_calloc)(1, n), opaque(&__libc_memalign)(64, n),
                    opaque(&__libc_valloc)(n), opaque(&__libc_pvalloc)(n)}) {
      ASSERT_NE(p, nullptr);
      EXPECT_GE(CApi::usable_size(p), n);
      fill(p, n, n);
      p = CApi::reallocate(p, n + 100);
      EXPECT_TRUE(intact(p, n, n));
      CApi::deallocate(p);
    }
    void* const ours = opaque(&__libc_realloc)(CApi::allocate(n), n * 2);
    EXPECT_GE(CApi::usable_size(ours), n * 2);
    opaque (&__libc_free)(ours);
  }
}
#endif

}  // namespace
}  // namespace freehold::test
