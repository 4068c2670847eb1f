// freehold articles: every claim of the five articles that this project began with, and what a run on this machine says
// about it. The experiments are those of freehold pools, timers and scale. docs/articles.md is written from a stored run.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/articles/experiment.hpp"
#include "cli/articles/findings.hpp"
#include "cli/articles/page.hpp"
#include "cli/articles/results_json.hpp"
#include "cli/articles/table.hpp"
#include "cli/command.hpp"
#include "cli/report/result_files.hpp"
#include "cli/support/arguments.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/interrupts.hpp"
#include "cli/support/progress.hpp"
#include "cli/support/standard_streams.hpp"

namespace freehold::cli {
namespace {
using namespace articles;

struct ArticlesOptions {
  std::optional<std::string> articles;
  std::optional<std::string> repeat;
  ResultFiles files;
  bool quick = false;
};

Choice choice_of(const ArticlesOptions& options) {
  Choice choice;
  choice.quick = options.quick;
  if (options.quick) choice.repeat = 1;
  if (options.articles) choice.articles = parse_numbers("--articles", *options.articles, kFirstArticle, kLastArticle);
  if (options.repeat) choice.repeat = parse_number("--repeat", *options.repeat, 1, 1000);
  return choice;
}

int run_articles(const ArticlesOptions& options) {
  open_standard_files();
  const Plan plan = plan_of(choice_of(options));
  options.files.check();
  int signal = 0;
  Results results;
  {
    Interrupts interrupts;
    Progress progress;
    results = run_experiment(plan, interrupts, progress);
    signal = interrupts.arrived();
  }
  const Findings findings = findings_of(results);
  options.files.write(results_json(results, findings), page_of, table_of(results, findings));
  if (signal != 0) return 128 + signal;
  return failures_of(results).empty() ? 0 : kExitPartial;
}

}  // namespace

void add_articles(CLI::App& app, Invocation& invocation) {
  static ArticlesOptions options;
  CLI::App* command = app.add_subcommand("articles", "Put the claims of the five articles to the test");
  command->add_option("--articles", options.articles, "Which of them, by number [1,2,3,4,5]")->type_name("LIST");
  command->add_option("--repeat", options.repeat, "Sets of measurements, for medians and verdicts [5]")->type_name("N");
  command->add_flag("--quick", options.quick, "A glance: one set, a tenth of the work");
  options.files.add_options(*command);
  command->footer("Ctrl-C ends it early and keeps what was finished. docs/articles.md has the claims and a stored run.");
  command->callback([&invocation] { invocation.exit_code = run_articles(options); });
}

}  // namespace freehold::cli
