// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "cli/report/json.hpp"
#include "cli/report/page.hpp"
#include "lab/articles/findings.hpp"
#include "lab/experiment/assets.hpp"

namespace freehold::cli::articles {
namespace {
using nlohmann::ordered_json;

ordered_json claim_json(const Claim& claim) {
  return {{"article", claim.article},
          {"id", claim.id},
          {"claim", claim.statement},
          {"verdict", name_of(claim.verdict)},
          {"figure", text_or_null(claim.figure)},
          {"limits", text_or_null(claim.limits)},
          {"ratio", or_null(claim.ratio)},
          {"least_ratio", or_null(claim.least)},
          {"greatest_ratio", or_null(claim.greatest)},
          {"threshold", claim.ratio ? ordered_json(claim.threshold) : ordered_json(nullptr)},
          {"at_least", claim.at_least}};
}

ordered_json plot_json(const Plot& plot) {
  const auto numbers = [](const std::vector<std::optional<double>>& values) {
    return list_json(values, [](const auto& value) -> ordered_json { return or_null(value); });
  };
  return {{"article", plot.article},
          {"title", plot.title},
          {"x_name", plot.x_name},
          {"y_name", plot.y_name},
          {"x", plot.x},
          {"lines", list_json(plot.lines, [&](const Plot::Line& line) -> ordered_json {
             return {{"label", line.label},
                     {"values", numbers(line.values)},
                     {"least", numbers(line.least)},
                     {"greatest", numbers(line.greatest)}};
           })}};
}

}  // namespace

ordered_json results_json(const Results& results, const Findings& findings) {
  ordered_json tables = list_json(findings.tables, [](const Table& table) -> ordered_json {
    return {{"article", table.article}, {"title", table.title}, {"columns", table.columns}, {"rows", table.rows}};
  });
  const Choice& choice = results.plan.choice;
  ordered_json json = head_json("freehold-articles", results);
  json.update({{"settings", {{"articles", choice.articles}, {"repeat", choice.repeat}, {"quick", choice.quick}}},
               {"claims", list_json(findings.claims, claim_json)},
               {"tables", std::move(tables)},
               {"plots", list_json(findings.plots, plot_json)},
               {"notes", findings.notes}});
  return json;
}

std::string page_of(const ordered_json& results) {
  return cli::page_of({.title = "Freehold: the articles",
                       .brand = "Freehold · five articles, claim by claim",
                       .question = "Which claims of the articles hold on this machine?",
                       .sections = assets::articles_html,
                       .script = assets::articles_js},
                      results);
}

bool write_results(const ResultFiles& files, const Results& results) {
  const Findings findings = findings_of(results);
  files.write(results_json(results, findings), page_of, table_of(results, findings));
  return failures_of(results).empty();
}

}  // namespace freehold::cli::articles
