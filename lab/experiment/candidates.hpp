// SPDX-License-Identifier: MIT
// The candidates of an experiment: everything that it can compare, by name. A Candidate has a `name` and a `source`, which
// says in a few words what it is; all candidates lie in one vector, in the order of the tables.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cli/support/arguments.hpp"
#include "cli/support/standard_streams.hpp"

namespace freehold::cli {

[[noreturn]] void refuse_candidate(const std::string& option, const std::string& subcommand, const std::string& name);
[[nodiscard]] std::string list_line(const std::string& name, const std::string& source);

// Null if no candidate has this name.
template <class Candidate>
[[nodiscard]] const Candidate* find_by_name(const std::vector<Candidate>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Candidate::name);
  return found == all.end() ? nullptr : &*found;
}

template <class Candidate>
[[nodiscard]] std::vector<const Candidate*> pointers_to(const std::vector<Candidate>& all) {
  std::vector<const Candidate*> pointers;
  for (const Candidate& candidate : all) pointers.push_back(&candidate);
  return pointers;
}

// The candidates named in `text`, "best,boost-pool", in the order of the tables, each once. Throws Failure, which names
// `option` and the subcommand whose --list has the names.
template <class Candidate>
[[nodiscard]] std::vector<const Candidate*> parse_candidates(const std::vector<Candidate>& all, const std::string& option,
                                                             const std::string& subcommand, const std::string& text) {
  std::vector<const Candidate*> chosen;
  for (const std::string& name : split_list(option, text)) {
    const Candidate* const candidate = find_by_name(all, name);
    if (candidate == nullptr) refuse_candidate(option, subcommand, name);
    chosen.push_back(candidate);
  }
  std::ranges::sort(chosen);  // all lie in one array
  chosen.erase(std::ranges::unique(chosen).begin(), chosen.end());
  return chosen;
}

// --list. Returns the exit code.
int print_list(const auto& all) {
  std::string out;
  for (const auto& candidate : all) out += list_line(candidate.name, candidate.source);
  print_to_stdout(out);
  return 0;
}

}  // namespace freehold::cli
