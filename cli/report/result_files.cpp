#include "cli/report/result_files.hpp"

#include <nlohmann/json.hpp>

#include "cli/report/json.hpp"
#include "cli/support/output_file.hpp"
#include "cli/support/standard_streams.hpp"

namespace freehold::cli {

void ResultFiles::add_options(CLI::App& command) {
  command.add_option("--json", json, "Write everything that was measured as JSON; - for standard output")->type_name("FILE");
  command.add_option("--html", html, "Write one self-contained page with plots")->type_name("FILE");
}

void ResultFiles::check() const {
  if (json && *json != "-") check_writable(*json);
  if (html) check_writable(*html);
}

void ResultFiles::write(const nlohmann::ordered_json& results,
                        const std::function<std::string(const nlohmann::ordered_json&)>& page,
                        const std::string& table) const {
  if (json && *json != "-") write_file(*json, text_of(results));
  if (html) write_file(*html, page(results));
  print_to_stdout(json == "-" ? text_of(results) : table);
}

}  // namespace freehold::cli
