// SPDX-License-Identifier: MIT
#include "freehold/alloc/checked.hpp"
#include "freehold/alloc/engine.hpp"
#include "freehold/heap/slab_source.hpp"

namespace freehold::heap {

constinit const BlockChecks kEngineChecks{&alloc::allocate_as, &alloc::deallocate_looked_at, &alloc::usable_size};

}  // namespace freehold::heap
