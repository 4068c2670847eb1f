// SPDX-License-Identifier: MIT
// The gate of `freehold doctor --memory`: what --fail-if may name, and what a report says of it. docs/memory.md says what
// each figure is.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "cli/doctor/gate.hpp"

namespace freehold::cli::doctor {

[[nodiscard]] std::span<const Word> memory_words() noexcept;
// Pre: what json_of() made of a diagnosis.
[[nodiscard]] Facts memory_facts_of(const nlohmann::ordered_json& report);
// "glibc, 1 arena" is "arenas" in --allocators, and here.
[[nodiscard]] std::string memory_treatment_name(std::string_view name);

}  // namespace freehold::cli::doctor
