// SPDX-License-Identifier: MIT
// The findings of `freehold doctor --memory`, and their views: sentences and tables for people, JSON, and a page.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/doctor/facts/settings.hpp"
#include "tools/doctor/report/document.hpp"
#include "tools/doctor/report/gate.hpp"
#include "tools/doctor/verdict/memory_verdict.hpp"
#include "tools/support/machine.hpp"

namespace freehold::doctor::report {

struct MemoryDiagnosis {
  doctor::Settings settings;
  std::string program;
  Machine machine;
  std::string date;    // UTC, ISO 8601
  double seconds = 0;  // that it all took
  int signal = 0;      // that ended it early, or 0
  doctor::MemoryExperiment experiment;
  doctor::MemoryVerdict verdict;
  struct OwnAllocator {
    std::string name, program, use_malloc;  // "CPython's allocator", the file that has it, "PYTHONMALLOC=malloc" or nothing
  };
  std::optional<OwnAllocator> own;  // that the program brings along: no preload sees what it hands out
  bool is_cut = false;              // treatments were left out for want of time
  std::vector<std::string> notes;   // sentences: what could not be done, and why
};

// The verdict as a sentence, and what to do as another, with the effect as far as it was measured.
[[nodiscard]] std::string headline_of(const MemoryDiagnosis& diagnosis);
[[nodiscard]] std::string advice_of(const MemoryDiagnosis& diagnosis);
// Why there is no verdict; empty: there is one.
[[nodiscard]] std::string doubt_text(const MemoryDiagnosis& diagnosis);
// "live data", as a row of a table has it.
[[nodiscard]] std::string text_of(doctor::MemoryPart part);
// "62 MiB", "0.4 MiB"
[[nodiscard]] std::string mebibytes_text(double bytes);
// "20 MiB less (18 to 22)", "no clear difference"
[[nodiscard]] std::string effect_text(const doctor::MemoryFix& fix);
// The same, or what became of it instead: "failed: SIGSEGV", "not run"
[[nodiscard]] std::string effect_text(const MemoryDiagnosis& diagnosis, const doctor::MemoryFix& fix);

[[nodiscard]] Document document_of(const MemoryDiagnosis& diagnosis, const Gate& gate);
[[nodiscard]] nlohmann::ordered_json json_of(const MemoryDiagnosis& diagnosis);

}  // namespace freehold::doctor::report
