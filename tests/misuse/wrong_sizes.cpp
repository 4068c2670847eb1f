// SPDX-License-Identifier: MIT
// Sizes and alignments at the end of a block that are not those of its allocation.
#include <memory>
#include <new>

#include "tests/misuse/blocks.hpp"

namespace freehold::test {
namespace {

using std::align_val_t;

void free_sized(void* p, std::size_t n) { needed<void(void*, std::size_t)>("free_sized")(p, n); }
void free_aligned_sized(void* p, std::size_t alignment, std::size_t n) {
  needed<void(void*, std::size_t, std::size_t)>("free_aligned_sized")(p, alignment, n);
}

void* new_of(std::size_t n) { return opaque(::operator new(n)); }
void* new_of(std::size_t n, std::size_t alignment) { return opaque(::operator new(n, align_val_t{alignment})); }

struct Base {
  int a = 1;
};
struct Derived : Base {
  int more[100] = {};
};

// The size that is passed is the base's, for there is no virtual destructor.
void delete_through_the_base() { std::unique_ptr<Base> owner(opaque(static_cast<Base*>(new Derived))); }

constexpr Kind kKinds[] = {
    {"sized_delete_too_small", [] { ::operator delete(new_of(1000), 100); }},
    {"sized_delete_too_large", [] { ::operator delete(new_of(100), 1000); }},
    {"sized_delete_off_by_one", [] { ::operator delete(new_of(100), 101); }},
    {"sized_delete_of_nothing", [] { ::operator delete(new_of(100), std::size_t{0}); }},
    {"sized_delete_large_as_small", [] { ::operator delete(new_of(kLarge), 100); }},
    {"sized_delete_small_as_large", [] { ::operator delete(new_of(100), kLarge); }},
    {"sized_delete_of_a_large_block", [] { ::operator delete(new_of(kLarge), kLarge + 8 * kKiB); }},
    {"sized_delete_of_an_array", [] { ::operator delete[](opaque(::operator new[](1000)), 500); }},
    {"sized_delete_through_a_base", delete_through_the_base},
    {"free_sized_too_small", [] { free_sized(block_of(1000), 100); }},
    {"free_sized_too_large", [] { free_sized(block_of(100), 1000); }},
    {"free_sized_off_by_one", [] { free_sized(block_of(100), 99); }},
    {"free_sized_of_a_grown_block", [] { free_sized(another(CApi::reallocate(block_of(100), 5000)), 100); }},
    {"free_sized_of_an_aligned_block", [] { free_sized(another(CApi::allocate_aligned(64, 640)), 640); }},
    {"free_aligned_sized_of_a_block_of_malloc", [] { free_aligned_sized(block_of(640), 64, 640); }},
    {"free_aligned_sized_wrong_size", [] { free_aligned_sized(another(CApi::allocate_aligned(64, 640)), 64, 128); }},
    {"free_aligned_sized_wrong_alignment", [] { free_aligned_sized(another(CApi::allocate_aligned(64, 640)), 4096, 640); }},
    {"aligned_delete_wrong_alignment", [] { ::operator delete(new_of(640, 64), align_val_t{4096}); }},
    {"aligned_delete_of_an_unaligned_new", [] { ::operator delete(new_of(640), align_val_t{64}); }},
    {"delete_of_an_aligned_new", [] { ::operator delete(new_of(640, 64)); }},
    {"aligned_sized_delete_wrong_size", [] { ::operator delete(new_of(640, 64), 128, align_val_t{64}); }},
};

}  // namespace

Kinds wrong_sizes() { return kKinds; }

}  // namespace freehold::test
