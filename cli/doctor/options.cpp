// SPDX-License-Identifier: MIT
#include "cli/doctor/options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "cli/support/failure.hpp"
#include "cli/support/output_file.hpp"

namespace freehold::cli::doctor {

double parse_seconds(const std::string& option, const std::string& text) {
  constexpr double kLongest_s = 1e6;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, text.data() + text.size());
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (error != std::errc() || !std::isfinite(value) || value * factor <= 0 || value * factor > kLongest_s)
    throw Failure(kExitRefused, fmt::format("{}: '{}' is not a time: 10, 2.5s, 300ms, 2m", option, printable(text)));
  return value * factor;
}

void GateOptions::add_to(cli::Command& command, const std::string& example) {
  command.add_repeatable("--fail-if", fail_if,
                         fmt::format("Exit with 1 if this holds, 3 if it cannot be told: '{}'; may be repeated", example),
                         "CONDITION");
  command.add_option("--summary", summary, "Write the answer in Markdown, for the page of a job", "FILE");
}

void GateOptions::check() const {
  if (summary) check_writable(*summary);
}

}  // namespace freehold::cli::doctor
