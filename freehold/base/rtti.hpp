// SPDX-License-Identifier: MIT
// Whether this program is compiled with run-time type information.
#pragma once

namespace freehold::base {

#if defined(__cpp_rtti)
inline constexpr bool kHasRtti = true;
#else
inline constexpr bool kHasRtti = false;
#endif

}  // namespace freehold::base
