// SPDX-License-Identifier: MIT
#include "lab/experiment/command.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/output/json.hpp"

namespace freehold::lab {

void refuse_candidate(const std::string& option, const std::string& name) {
  throw Failure(kExitRefused,
                fmt::format("{}: there is no '{}'; see freehold {} --list", option, printable(name), option.substr(2)));
}

std::string list_line(const std::string& name, const std::string& source) {
  return fmt::format("{:<22} {}\n", name, source);
}

void ResultFiles::add_options(Command& command, bool page) {
  command.add_option("--json", json, "Write all results as JSON; - for standard output", "FILE");
  if (page) command.add_option("--html", html, "Write one self-contained page with plots", "FILE");
}

void ResultFiles::check() const {
  if (json && *json != "-") check_writable(*json);
  if (html) check_writable(*html);
  if (json && html) check_different({{"--json", *json}, {"--html", *html}});
}

void ResultFiles::write(const nlohmann::ordered_json& results, const PageParts& page, const std::string& table) const {
  if (json && *json != "-") write_file(*json, text_of(results));
  if (html) write_file(*html, page_of(page, results));
  print_to_stdout(json == "-" ? text_of(results) : table);
}

nlohmann::ordered_json head_json(const char* format, const RunRecord& record) {
  return {{"format", format},          {"version", 1},
          {"date", record.date},       {"complete", record.complete},
          {"seconds", record.seconds}, {"machine", machine_json(record.machine)}};
}

}  // namespace freehold::lab
