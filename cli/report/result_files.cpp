#include "cli/report/result_files.hpp"

#include <nlohmann/json.hpp>

#include "cli/report/json.hpp"
#include "cli/support/output_file.hpp"

namespace freehold::cli {

void ResultFiles::add_options(CLI::App& command) {
  command.add_option("--json", json, "Write everything that was measured as JSON")->type_name("FILE");
  command.add_option("--html", html, "Write one self-contained page with plots")->type_name("FILE");
}

void ResultFiles::check() const {
  for (const auto& file : {json, html}) {
    if (file) check_writable(*file);
  }
}

void ResultFiles::write(const nlohmann::ordered_json& results,
                        const std::function<std::string(const nlohmann::ordered_json&)>& page) const {
  if (json) write_file(*json, text_of(results));
  if (html) write_file(*html, page(results));
}

}  // namespace freehold::cli
