// SPDX-License-Identifier: MIT
// Sentences about the allocators that a program brings along.
#pragma once
#include <string>

#include "cli/doctor/diagnosis.hpp"

namespace freehold::cli::doctor {

// A sentence or two. Needs what was recorded, where nothing could be counted.
[[nodiscard]] std::string text_of(const OwnAllocator& own, const Diagnosis& diagnosis);

}  // namespace freehold::cli::doctor
