// SPDX-License-Identifier: MIT
// freehold articles: tests every claim of the five articles that this project began with on this machine. The experiments
// are those of freehold pools, timers and scale. docs/articles.md and docs/articles-threads.md are written from a stored
// run.
#include <optional>

#include "cli/experiments.hpp"
#include "cli/support/output_file.hpp"
#include "lab/articles/findings.hpp"
#include "lab/experiment/command.hpp"
#include "lab/laboratory.hpp"

namespace freehold::cli {
namespace {
using namespace articles;

struct ArticlesOptions {
  std::optional<std::string> articles;
  ExperimentOptions experiment;
};

Choice choice_of(const ArticlesOptions& options) {
  Choice choice;
  choice.quick = options.experiment.quick;
  options.experiment.apply_repeat(choice);
  if (options.articles) choice.articles = parse_numbers("--articles", *options.articles, kFirstArticle, kLastArticle);
  return choice;
}

int run_articles(const ArticlesOptions& options) {
  open_standard_files();
  return run_command(options.experiment.files, plan_of(choice_of(options)), run_experiment, write_results);
}

}  // namespace

void add_articles(CLI::App& app, Invocation& invocation) {
  static ArticlesOptions options;
  Command command(app, "articles", find_experiment("articles")->summary);
  command.add_option("--articles", options.articles, "Numbers of the articles to test [1,2,3,4,5]", "LIST");
  options.experiment.add_to(command, {.sets = "5",
                                      .time = nullptr,
                                      .quick = "Short run: one set, a tenth of the work",
                                      .page = "docs/articles.md has the claims and a stored run."});
  command.on_use([&invocation] { invocation.exit_code = run_articles(options); });
}

}  // namespace freehold::cli
