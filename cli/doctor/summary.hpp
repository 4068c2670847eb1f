// SPDX-License-Identifier: MIT
// A diagnosis for the terminal: the verdict in words, then the figures behind it as short tables.
#pragma once
#include <string>

#include "cli/doctor/diagnosis.hpp"

namespace freehold::cli::doctor {

// Lines of at most 100 characters, but for what is to be pasted. `page`: the file with the report as HTML; empty: none.
// Names come from the program and from the user: no control character of theirs reaches the terminal.
[[nodiscard]] std::string summary_of(const Diagnosis& diagnosis, const std::string& page);

}  // namespace freehold::cli::doctor
