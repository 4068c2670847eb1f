// SPDX-License-Identifier: MIT
// Reads and writes traces as files. docs/replay.md has the schema.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/replay/advice.hpp"
#include "freehold/doctor/analysis/site_trace.hpp"

namespace freehold::cli::replay {

[[nodiscard]] nlohmann::ordered_json json_of(const std::vector<freehold::doctor::SiteTrace>& traces);
// Throws Failure(kExitRefused) with one line if the file cannot be read, is no trace, or holds a trace with a fault.
[[nodiscard]] std::vector<freehold::doctor::SiteTrace> read_traces(const std::string& path);
// From the recordings in a folder and the folders in it, as `freehold doctor --keep-recording` leaves them. Throws Failure.
[[nodiscard]] std::vector<freehold::doctor::SiteTrace> traces_of_recordings(const std::filesystem::path& folder);

// The advice in the doctor's JSON and in replay's.
[[nodiscard]] nlohmann::ordered_json json_of(const Advice& advice);

}  // namespace freehold::cli::replay
