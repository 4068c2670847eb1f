// SPDX-License-Identifier: MIT
#include "lab/experiment/command.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/report/json.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/output_file.hpp"

namespace freehold::cli {

void ExperimentOptions::add_to(Command& command, const Help& help) {
  command.add_option("--repeat", repeat, fmt::format("Number of sets of measurements, for medians [{}]", help.sets), "N");
  if (help.time != nullptr) command.add_option("--time", milliseconds, help.time, "MS");
  command.add_flag("--quick", quick, help.quick);
  files.add_options(command);
  command.footer(fmt::format("Ctrl-C ends the experiment early and keeps the finished measurements. {}", help.page));
}

void refuse_candidate(const std::string& option, const std::string& subcommand, const std::string& name) {
  throw Failure(kExitRefused,
                fmt::format("{}: there is no '{}'; see freehold {} --list", option, printable(name), subcommand));
}

std::string list_line(const std::string& name, const std::string& source) {
  return fmt::format("{:<22} {}\n", name, source);
}

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
