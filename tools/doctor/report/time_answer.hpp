// SPDX-License-Identifier: MIT
// The answer to the question of time, as a person reads it: what was asked, the answer, how sure it is, what to do and what
// that brings; then the figures behind it.
#pragma once
#include <string>

#include "tools/doctor/report/document.hpp"
#include "tools/doctor/report/gate.hpp"
#include "tools/doctor/report/words.hpp"

namespace freehold::doctor::report {

// `page`: the file with the report as HTML; empty: none.
[[nodiscard]] Document document_of(const Diagnosis& diagnosis, const Words& words, const Gate& gate,
                                   const std::string& page);

}  // namespace freehold::doctor::report
