// SPDX-License-Identifier: MIT
// operator new and delete: every form. New handlers are tests/linking/new_program.cpp's, against every C++ runtime.
#include <new>

#include "tests/conformance/malloc_api.hpp"
#include "tests/support/test.hpp"

namespace freehold::test {
namespace {

using malloc_api::is_aligned, malloc_api::kImpossible, malloc_api::kKiB, malloc_api::kMiB;

// Calls of the operators as functions, which no compiler may leave out.
template <class New, class Delete>
void expect_pair_works(std::size_t alignment, New&& make, Delete&& drop) {
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{24}, std::size_t{1000}, 50 * kKiB, 3 * kMiB}) {
    std::array<void*, 4> blocks;
    for (void*& p : blocks) {
      p = make(n);
      ASSERT_NE(p, nullptr);
      ASSERT_TRUE(is_aligned(p, alignment));
      ASSERT_GE(CApi::usable_size(p), n);  // from the same allocator
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) fill(blocks[i], n, n + i);
    for (std::size_t i = 0; i < blocks.size(); ++i) EXPECT_TRUE(intact(blocks[i], n, n + i));
    for (void* p : blocks) drop(p, n);
  }
}

TEST(OperatorNew, EveryForm_MatchesEveryDelete) {
  const std::nothrow_t& nothrow = std::nothrow;
  expect_pair_works(16, [](auto n) { return ::operator new(n); }, [](void* p, auto) { ::operator delete(p); });
  expect_pair_works(16, [](auto n) { return ::operator new(n); }, [](void* p, auto n) { ::operator delete(p, n); });
  expect_pair_works(16, [](auto n) { return ::operator new[](n); }, [](void* p, auto) { ::operator delete[](p); });
  expect_pair_works(16, [](auto n) { return ::operator new[](n); }, [](void* p, auto n) { ::operator delete[](p, n); });
  expect_pair_works(
      16, [&](auto n) { return ::operator new(n, nothrow); }, [&](void* p, auto) { ::operator delete(p, nothrow); });
  expect_pair_works(
      16, [&](auto n) { return ::operator new[](n, nothrow); }, [&](void* p, auto) { ::operator delete[](p, nothrow); });
  expect_pair_works(16, [](auto n) { return ::operator new(n); }, [&](void* p, auto) { ::operator delete(p, nothrow); });
  expect_pair_works(
      16, [&](auto n) { return ::operator new[](n, nothrow); }, [](void* p, auto n) { ::operator delete[](p, n); });
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{64}, std::size_t{4096}, 2 * kMiB}) {
    const std::align_val_t a{bytes};
    expect_pair_works(bytes, [=](auto n) { return ::operator new(n, a); }, [=](void* p, auto) { ::operator delete(p, a); });
    expect_pair_works(
        bytes, [=](auto n) { return ::operator new(n, a); }, [=](void* p, auto n) { ::operator delete(p, n, a); });
    expect_pair_works(
        bytes, [=](auto n) { return ::operator new[](n, a); }, [=](void* p, auto) { ::operator delete[](p, a); });
    expect_pair_works(
        bytes, [=](auto n) { return ::operator new[](n, a); }, [=](void* p, auto n) { ::operator delete[](p, n, a); });
    expect_pair_works(
        bytes, [&](auto n) { return ::operator new(n, a, nothrow); },
        [&](void* p, auto) { ::operator delete(p, a, nothrow); });
    expect_pair_works(
        bytes, [&](auto n) { return ::operator new[](n, a, nothrow); },
        [&](void* p, auto) { ::operator delete[](p, a, nothrow); });
  }
}

TEST(OperatorDelete, Null_IsIgnored) {
  ::operator delete(opaque<void*>(nullptr));
  ::operator delete[](opaque<void*>(nullptr));
  ::operator delete(opaque<void*>(nullptr), std::size_t{8});
  ::operator delete(opaque<void*>(nullptr), std::align_val_t{64});
  ::operator delete(opaque<void*>(nullptr), std::nothrow);
}

TEST(OperatorNew, ImpossibleSize_BadAlloc) {
  for (const std::size_t n : kImpossible) {
    EXPECT_THROW(opaque(::operator new(opaque(n))), std::bad_alloc);
    EXPECT_THROW(opaque(::operator new[](opaque(n))), std::bad_alloc);
    EXPECT_EQ(opaque(::operator new(opaque(n), std::nothrow)), nullptr);
    EXPECT_EQ(opaque(::operator new[](opaque(n), std::nothrow)), nullptr);
  }
}

TEST(OperatorNew, ImpossibleAlignedSize_BadAlloc) {
  for (const std::size_t n : kImpossible) {
    if (n > SIZE_MAX - 8192 && !freehold_is_expected()) continue;  // libstdc++ 12 rounds it up to 0 and grants that
    EXPECT_THROW(opaque(::operator new(opaque(n), std::align_val_t{64})), std::bad_alloc);
    EXPECT_THROW(opaque(::operator new[](opaque(n), std::align_val_t{4096})), std::bad_alloc);
    EXPECT_EQ(opaque(::operator new(opaque(n), std::align_val_t{64}, std::nothrow)), nullptr);
    EXPECT_EQ(opaque(::operator new[](opaque(n), std::align_val_t{64}, std::nothrow)), nullptr);
  }
}

}  // namespace
}  // namespace freehold::test
