// SPDX-License-Identifier: MIT
// The cores of the pools that programs use. Code that a sanitizer has to see is compiled with the program (best_pool.hpp).
#include "freehold/pool/best_pool_core.hpp"

namespace freehold::pool {

template struct BestPoolSlow<BestPoolShape<sync::NativeAtomics, sync::IgnoreContention, false>>;
template struct BestPoolSlow<BestPoolShape<sync::UnsharedAtomics, sync::IgnoreContention, false>>;
template struct BestPoolSlow<BestPoolShape<sync::NativeAtomics, sync::CountContention<sync::NativeAtomics>, false>>;

}  // namespace freehold::pool
