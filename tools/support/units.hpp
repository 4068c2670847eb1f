// SPDX-License-Identifier: MIT
// Amounts as people read them.
#pragma once
#include <cstdint>
#include <string>

namespace freehold::inline tools {

// "1.5 MiB", "96 KiB", "12 B": at most three digits before the point.
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);

}  // namespace freehold::inline tools
