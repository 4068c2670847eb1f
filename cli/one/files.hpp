// SPDX-License-Identifier: MIT
// The files that the static command carries: files.cpp.in lists those of this build.
#pragma once
#include <span>

#include "tools/support/carried.hpp"

namespace freehold::cli::one {

[[nodiscard]] std::span<const CarriedFile> files() noexcept;

}  // namespace freehold::cli::one
