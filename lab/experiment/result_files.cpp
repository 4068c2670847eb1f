// SPDX-License-Identifier: MIT
#include "lab/experiment/result_files.hpp"

#include <nlohmann/json.hpp>

#include "cli/report/json.hpp"
#include "cli/support/output_file.hpp"
#include "cli/support/standard_streams.hpp"

namespace freehold::cli {

void ResultFiles::add_json(Command& command) {
  command.add_option("--json", json, "Write all results as JSON; - for standard output", "FILE");
}

void ResultFiles::add_options(Command& command) {
  add_json(command);
  command.add_option("--html", html, "Write one self-contained page with plots", "FILE");
}

void ResultFiles::check() const {
  if (json && *json != "-") check_writable(*json);
  if (html) check_writable(*html);
  if (json && html) check_different({{"--json", *json}, {"--html", *html}});
}

void ResultFiles::write(const nlohmann::ordered_json& results, const Page& page, const std::string& table) const {
  if (json && *json != "-") write_file(*json, text_of(results));
  if (html) write_file(*html, page(results));
  print_to_stdout(json == "-" ? text_of(results) : table);
}

nlohmann::ordered_json head_json(const char* format, const RunRecord& record) {
  return {{"format", format},          {"version", 1},
          {"date", record.date},       {"complete", record.complete},
          {"seconds", record.seconds}, {"machine", machine_json(record.machine)}};
}

}  // namespace freehold::cli
