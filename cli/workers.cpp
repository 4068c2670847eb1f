// SPDX-License-Identifier: MIT
// freehold workers: a pool of worker processes for the shell. Every line of a file is a task; with --serve, other
// processes bring the tasks. docs/workers.md explains the framing and the exit codes, docs/process.md the pool.
#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <vector>

#include "cli/command.hpp"
#include "cli/workers/run.hpp"
#include "tools/output/json.hpp"
#include "tools/support/arguments.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/output_file.hpp"

namespace freehold::cli {
namespace {
using namespace workers;

struct WorkersOptions {
  std::optional<std::string> component;
  std::optional<std::string> command;
  std::optional<std::string> tasks;
  std::optional<std::string> workers;
  std::optional<std::string> max_open_tasks;
  std::optional<std::string> run_timeout;
  std::optional<std::string> max_attempts;
  std::optional<std::string> max_tasks;
  std::optional<std::string> max_rss;
  std::optional<std::string> kill_rss;
  std::optional<std::string> max_bytes;
  std::optional<std::string> json;
  std::optional<std::string> retries;
  std::optional<std::string> serve;
  bool no_network = false;
  std::vector<std::string> readable;
  std::vector<std::string> writable;
  bool null = false;
  bool quiet = false;
};

constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kMostWorkers = process::TaskWord::kMaxWorkers;
constexpr std::uint32_t kMostAttempts = process::TaskWord::kMaxAttempts;
constexpr std::uint32_t kMostOpenTasks = 65'536;
constexpr std::uint32_t kMostBytes = 1u << 30;

void add_numbers(const WorkersOptions& options, ProcessPoolOptions& pool) {
  const auto number = [](const auto& text, const char* option, std::uint32_t least, std::uint32_t most, auto& value) {
    if (text) value = parse_number(option, *text, least, most);
  };
  const auto mebibytes = [](const auto& text, const char* option, std::optional<std::uint64_t>& value) {
    if (text) value = std::uint64_t{parse_number(option, *text, 1, 1u << 24)} << 20;
  };
  number(options.workers, "--workers", 1, kMostWorkers, pool.max_workers);
  number(options.max_open_tasks, "--max-open-tasks", 1, kMostOpenTasks, pool.max_open_tasks);
  number(options.max_attempts, "--max-attempts", 1, kMostAttempts, pool.max_attempts);
  number(options.max_tasks, "--max-tasks", 1, kMost, pool.max_tasks);
  number(options.max_bytes, "--max-bytes", 1, kMostBytes, pool.max_input_bytes);
  number(options.max_bytes, "--max-bytes", 1, kMostBytes, pool.max_output_bytes);
  if (options.run_timeout)
    pool.run_timeout = std::chrono::milliseconds(parse_number("--run-timeout", *options.run_timeout, 1, kMost));
  mebibytes(options.max_rss, "--max-rss", pool.max_rss_bytes);
  mebibytes(options.kill_rss, "--kill-rss", pool.kill_rss_bytes);
  pool.confinement = {.no_network = options.no_network,
                      .files = !options.readable.empty() || !options.writable.empty(),
                      .readable = options.readable,
                      .writable = options.writable};
}

ProcessPoolOptions pool_of(const WorkersOptions& options) {
  ProcessPoolOptions pool;
  if (options.component.has_value() == options.command.has_value())
    throw Failure(kExitRefused, "name what the workers run: --component FILE or --command WORDS");
  add_numbers(options, pool);
  if (options.retries) pool.retry.max_attempts = parse_number("--retries", *options.retries, 1, kMostAttempts);
  if (options.command) {
    std::istringstream words(*options.command);
    for (std::string word; words >> word;) pool.command.push_back(word);
    if (pool.command.empty()) throw Failure(kExitRefused, "--command: it is empty");
  } else {
    // A name with a folder is not looked up among the libraries.
    pool.component = std::filesystem::absolute(*options.component).string();
  }
  return pool;
}

ServeSettings serve_settings_of(const WorkersOptions& options) {
  if (options.tasks || options.null || options.json)
    throw Failure(kExitRefused, "--serve takes its tasks from other processes: leave out --tasks and --json");
  return {.pool = pool_of(options), .name = *options.serve, .quiet = options.quiet};
}

Settings settings_of(const WorkersOptions& options) {
  Settings settings;
  settings.pool = pool_of(options);
  if (!options.tasks) throw Failure(kExitRefused, "--tasks FILE is missing, or --tasks - for standard input");
  settings.tasks = *options.tasks;
  if (options.null) settings.end = '\0';
  return settings;
}

int exit_code_of(const Settings& settings, const Results& results) {
  if (results.signal != 0) return 128 + results.signal;
  if (!results.broken.empty()) throw Failure(kExitRefused, fmt::format("no worker can be started: {}", results.broken));
  if (!results.input_error.empty())
    throw Failure(kExitRefused, fmt::format("{}: {}", printable(settings.tasks), results.input_error));
  return results.failed > 0 ? kExitPartial : 0;
}

int run_workers(const WorkersOptions& options) {
  open_standard_files();
  if (options.serve) {
    ServeSettings settings = serve_settings_of(options);
    if (options.component) check_component(settings.pool.component);
    return serve(std::move(settings));
  }
  const Settings settings = settings_of(options);
  if (options.json) check_writable(*options.json);
  if (options.component) check_component(settings.pool.component);
  const Results results = run(settings);
  if (options.json) write_file(*options.json, text_of(results_json(settings, results)));
  if (!options.quiet && results.broken.empty()) say(summary_of(results));
  return exit_code_of(settings, results);
}

void add_worker_options(Command& command, WorkersOptions& options) {
  command.add_option("--workers", options.workers, "Maximum number of worker processes [two for each CPU]", "N");
  command.add_option("--max-open-tasks", options.max_open_tasks,
                     "Maximum number of tasks at a time, waiting and running [256]", "N");
  command.add_option("--run-timeout", options.run_timeout, "Time limit of one run of a task [none]", "MS");
  command.add_option("--max-attempts", options.max_attempts, "Runs of a task whose workers die [3]", "N");
  command.add_option("--max-tasks", options.max_tasks, "Replace a worker after this many tasks [never]", "N");
  command.add_option("--max-rss", options.max_rss, "Replace a worker that holds this much memory after a task [never]",
                     "MIB");
  command.add_option("--kill-rss", options.kill_rss, "Kill a worker, even in a task, that holds this much memory [never]",
                     "MIB");
  command.add_flag("--no-network", options.no_network, "Workers cannot make sockets");
  command.add_repeatable("--readable", options.readable,
                         "Workers can open only these files and folders, and those of --writable", "PATH");
  command.add_repeatable("--writable", options.writable, "Files and folders that workers can write to", "PATH");
  command.add_option("--max-bytes", options.max_bytes, "Maximum length of a task, and of an output [1048576]", "BYTES");
}

}  // namespace

void add_workers(CLI::App& app, Invocation& invocation) {
  static WorkersOptions options;
  Command command(app, "workers", "Run tasks in a pool of supervised worker processes");
  command.add_option("--component", options.component, "Shared object that runs the tasks; it exports freehold_run", "FILE");
  command.add_option("--command", options.command, "Or a worker program and its arguments, separated by blanks", "WORDS");
  command.add_option("--tasks", options.tasks, "File with one task on each line; - for standard input", "FILE");
  command.add_flag("--null", options.null, "A zero byte, not a newline, ends each task and output, as of find -print0");
  add_worker_options(command, options);
  command.add_option("--serve", options.serve,
                     "Take the tasks from other processes of this user, which attach to the pool by this name", "NAME");
  command.add_option("--json", options.json, "Write the statistics as JSON to this file", "FILE");
  command.add_option("--retries", options.retries, "Runs of a task that its component rejects, until one succeeds [1]", "N");
  command.add_flag("--quiet", options.quiet, "Print no summary at the end");
  command.footer(
      "Outputs come in the order of the tasks. The output of a failed task is empty, and standard error says why it failed. "
      "docs/workers.md explains more.");
  command.on_use([&invocation] { invocation.exit_code = run_workers(options); });
}

}  // namespace freehold::cli
