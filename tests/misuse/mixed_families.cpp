// SPDX-License-Identifier: MIT
// Blocks that another family of functions frees than the one that allocated them: malloc and free, new and delete, new[] and
// delete[], and the aligned forms of each.
#include <cstdlib>
#include <memory>
#include <new>

#include "tests/misuse/blocks.hpp"

namespace freehold::test {
namespace {

using std::align_val_t;

// An object whose array has no count of elements before it.
struct Plain {
  int values[25] = {};
};

constexpr Kind kKinds[] = {
    {"malloc_delete", [] { ::operator delete(block_of(kSmall)); }},
    {"malloc_delete_large", [] { ::operator delete(block_of(kLarge)); }},
    {"malloc_sized_delete", [] { ::operator delete(block_of(kSmall), kSmall); }},
    {"malloc_delete_array", [] { ::operator delete[](block_of(kSmall)); }},
    {"calloc_delete", [] { ::operator delete(another(CApi::allocate_zeroed(kSmall))); }},
    {"realloc_delete", [] { ::operator delete(another(CApi::reallocate(block_of(kSmall), kMiddle))); }},
    {"memalign_delete", [] { ::operator delete(another(CApi::allocate_aligned(64, kSmall))); }},
    {"memalign_aligned_delete", [] { ::operator delete(another(CApi::allocate_aligned(64, kSmall)), align_val_t{64}); }},
    {"strdup_delete_array", [] { ::operator delete[](another(::strdup("a string of the C library's"))); }},
    {"strdup_in_a_unique_ptr", [] { std::unique_ptr<char> owner(another(::strdup("a string of the C library's"))); }},
    {"new_free", [] { release(another(::operator new(kSmall))); }},
    {"new_free_large", [] { release(another(::operator new(kLarge))); }},
    {"new_object_free", [] { release(another(new Plain)); }},
    {"nothrow_new_free", [] { release(another(::operator new(kSmall, std::nothrow))); }},
    {"aligned_new_free", [] { release(another(::operator new(kSmall, align_val_t{64}))); }},
    {"new_realloc", [] { release(another(CApi::reallocate(another(::operator new(kSmall)), kMiddle))); }},
    {"new_delete_array", [] { ::operator delete[](another(::operator new(kSmall))); }},
    {"new_object_delete_array", [] { delete[] opaque(new Plain); }},
    {"new_array_free", [] { release(another(::operator new[](kSmall))); }},
    {"new_array_realloc", [] { release(another(CApi::reallocate(another(::operator new[](kSmall)), kMiddle))); }},
    {"new_array_delete", [] { ::operator delete(another(::operator new[](kSmall))); }},
    {"new_array_of_objects_delete", [] { delete opaque(new Plain[10]); }},
    {"new_array_in_a_unique_ptr", [] { std::unique_ptr<Plain> owner(opaque(new Plain[10])); }},
    {"new_array_delete_large", [] { ::operator delete(another(::operator new[](kLarge))); }},
    {"aligned_new_array_aligned_delete",
     [] { ::operator delete(another(::operator new[](kSmall, align_val_t{64})), align_val_t{64}); }},
};

}  // namespace

Kinds mixed_families() { return kKinds; }

}  // namespace freehold::test
