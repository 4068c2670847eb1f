// SPDX-License-Identifier: MIT
#include "lab/experiment/candidates.hpp"

#include <fmt/format.h>

#include "cli/support/failure.hpp"

namespace freehold::cli {

void refuse_candidate(const std::string& option, const std::string& subcommand, const std::string& name) {
  throw Failure(kExitRefused,
                fmt::format("{}: there is no '{}'; see freehold {} --list", option, printable(name), subcommand));
}

std::string list_line(const std::string& name, const std::string& source) {
  return fmt::format("{:<22} {}\n", name, source);
}

}  // namespace freehold::cli
