#include "cli/articles/results_json.hpp"

#include <nlohmann/json.hpp>

#include "cli/report/json.hpp"

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

}  // namespace

ordered_json results_json(const Results& results, const Findings& findings) {
  ordered_json claims = ordered_json::array(), tables = ordered_json::array();
  for (const Claim& claim : findings.claims) claims.push_back(claim_json(claim));
  for (const Table& table : findings.tables)
    tables.push_back({{"article", table.article}, {"title", table.title}, {"columns", table.columns}, {"rows", table.rows}});
  const Choice& choice = results.plan.choice;
  ordered_json json = head_json("freehold-articles", results);
  json.update({{"settings", {{"articles", choice.articles}, {"repeat", choice.repeat}, {"quick", choice.quick}}},
               {"claims", std::move(claims)},
               {"tables", std::move(tables)},
               {"notes", findings.notes}});
  return json;
}

}  // namespace freehold::cli::articles
