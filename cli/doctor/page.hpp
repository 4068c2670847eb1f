// SPDX-License-Identifier: MIT
// A diagnosis as one HTML page that needs nothing else.
#pragma once
#include <string>

#include "cli/doctor/diagnosis.hpp"

namespace freehold::cli::doctor {

// At most kPageLimits of a recording, so that the page stays small; it says what is left out.
[[nodiscard]] std::string page_of(const Diagnosis& diagnosis);

}  // namespace freehold::cli::doctor
