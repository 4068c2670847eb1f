// SPDX-License-Identifier: MIT
// freehold workers: a pool of worker processes for the shell. Every line of a file is a task; with --serve, other
// processes bring the tasks. docs/workers.md explains the framing and the exit codes, docs/process.md the pool.
#include <fmt/format.h>

#include <array>
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
  std::optional<std::string> idle_timeout;
  std::optional<std::string> max_tasks;
  std::optional<std::string> max_rss;
  std::optional<std::string> max_age;
  std::optional<std::string> kill_rss;
  std::optional<std::string> max_input;
  std::optional<std::string> max_output;
  std::optional<std::string> json;
  std::optional<std::string> retries;
  std::optional<std::string> retry_delay;
  std::optional<std::string> retry_codes;
  bool priorities = false;
  std::optional<std::string> serve;
  std::optional<std::string> memory_cgroup;
  bool no_network = false;
  std::vector<std::string> readable;
  std::vector<std::string> writable;
  bool length_prefixed = false;
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
  const auto milliseconds = [](const auto& text, const char* option, std::uint32_t least,
                               std::optional<process::Nanoseconds>& value) {
    if (text) value = std::chrono::milliseconds(parse_number(option, *text, least, kMost));
  };
  const auto mebibytes = [](const auto& text, const char* option, std::optional<std::uint64_t>& value) {
    if (text) value = std::uint64_t{parse_number(option, *text, 1, 1u << 24)} << 20;
  };
  number(options.workers, "--workers", 1, kMostWorkers, pool.max_workers);
  number(options.max_open_tasks, "--max-open-tasks", 1, kMostOpenTasks, pool.max_open_tasks);
  number(options.max_attempts, "--max-attempts", 1, kMostAttempts, pool.max_attempts);
  number(options.max_tasks, "--max-tasks", 1, kMost, pool.max_tasks);
  number(options.max_input, "--max-input", 1, kMostBytes, pool.max_input_bytes);
  number(options.max_output, "--max-output", 1, kMostBytes, pool.max_output_bytes);
  milliseconds(options.run_timeout, "--run-timeout", 1, pool.run_timeout);
  milliseconds(options.idle_timeout, "--idle-timeout", 0, pool.idle_timeout);
  if (pool.idle_timeout == process::Nanoseconds(0)) pool.idle_timeout.reset();
  milliseconds(options.max_age, "--max-age", 1, pool.max_age);
  mebibytes(options.max_rss, "--max-rss", pool.max_rss_bytes);
  mebibytes(options.kill_rss, "--kill-rss", pool.kill_rss_bytes);
  pool.memory_cgroup = options.memory_cgroup.value_or("");
  pool.confinement = {.no_network = options.no_network,
                      .files = !options.readable.empty() || !options.writable.empty(),
                      .readable = options.readable,
                      .writable = options.writable};
}

// The codes for which a task runs again: "7,9".
std::array<int, process::kMaxRetryCodes> parse_codes(const std::string& text) {
  std::array<int, process::kMaxRetryCodes> codes{};
  std::istringstream list(text);
  std::size_t n = 0;
  for (std::string one; std::getline(list, one, ',');) {
    if (n == codes.size()) throw Failure(kExitRefused, fmt::format("--retry-codes: {} at most", codes.size()));
    codes[n++] = static_cast<int>(parse_number("--retry-codes", one, 1, std::numeric_limits<int>::max()));
  }
  return codes;
}

void add_retries(const WorkersOptions& options, process::RetryOptions& retry) {
  if (!options.retries && (options.retry_codes || options.retry_delay))
    throw Failure(kExitRefused, "--retry-codes and --retry-delay go with --retries N");
  if (!options.retries) return;
  retry.max_attempts = parse_number("--retries", *options.retries, 1, kMostAttempts);
  if (options.retry_codes) retry.codes = parse_codes(*options.retry_codes);
  if (options.retry_delay)
    retry.delay = std::chrono::milliseconds(parse_number("--retry-delay", *options.retry_delay, 0, kMost));
}

ProcessPoolOptions pool_of(const WorkersOptions& options) {
  ProcessPoolOptions pool;
  if (options.component.has_value() == options.command.has_value())
    throw Failure(kExitRefused, "name what the workers run: --component FILE or --command WORDS");
  add_numbers(options, pool);
  add_retries(options, pool.retry);
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
  if (options.tasks || options.length_prefixed || options.priorities || options.json)
    throw Failure(kExitRefused, "--serve takes its tasks from other processes: leave out --tasks, --priorities and --json");
  return {.pool = pool_of(options), .name = *options.serve, .quiet = options.quiet};
}

Settings settings_of(const WorkersOptions& options) {
  Settings settings;
  settings.pool = pool_of(options);
  if (!options.tasks) throw Failure(kExitRefused, "--tasks FILE is missing, or --tasks - for standard input");
  settings.tasks = *options.tasks;
  settings.framing = options.length_prefixed ? Framing::kNetstrings : Framing::kLines;
  settings.has_priorities = options.priorities;
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
  command.add_option("--idle-timeout", options.idle_timeout,
                     "End a worker that has had no task for this long; 0: never [10000]", "MS");
  command.add_option("--max-tasks", options.max_tasks, "Replace a worker after this many tasks [never]", "N");
  command.add_option("--max-rss", options.max_rss, "Replace a worker that holds this much memory after a task [never]",
                     "MIB");
  command.add_option("--max-age", options.max_age, "Replace a worker that has lived this long [never]", "MS");
  command.add_option("--kill-rss", options.kill_rss, "Kill a worker, even in a task, that holds this much memory [never]",
                     "MIB");
  command.add_option("--memory-cgroup", options.memory_cgroup,
                     "With --kill-rss: the kernel enforces it, for workers and their children, in groups below this one",
                     "FOLDER");
  command.add_flag("--no-network", options.no_network, "Workers cannot make sockets");
  command.add_repeatable("--readable", options.readable,
                         "Workers can open only these files and folders, and those of --writable", "PATH");
  command.add_repeatable("--writable", options.writable, "Files and folders that workers can write to", "PATH");
  command.add_option("--max-input", options.max_input, "Maximum length of a task [1048576]", "BYTES");
  command.add_option("--max-output", options.max_output, "Maximum length of an output [1048576]", "BYTES");
}

}  // namespace

void add_workers(CLI::App& app, Invocation& invocation) {
  static WorkersOptions options;
  Command command(app, "workers", "Run tasks in a pool of supervised worker processes");
  command.add_option("--component", options.component, "Shared object that runs the tasks; it exports freehold_run", "FILE");
  command.add_option("--command", options.command, "Or a worker program and its arguments, separated by blanks", "WORDS");
  command.add_option("--tasks", options.tasks, "File with one task on each line; - for standard input", "FILE");
  command.add_flag("--length-prefixed", options.length_prefixed,
                   "Tasks and outputs are netstrings (5:hello,), which take any bytes");
  add_worker_options(command, options);
  command.add_option("--serve", options.serve,
                     "Take the tasks from other processes of this user, which attach to the pool by this name", "NAME");
  command.add_option("--json", options.json, "Write the statistics as JSON to this file", "FILE");
  command.add_option("--retries", options.retries, "Runs of a task that its component rejects, until one succeeds [1]", "N");
  command.add_option("--retry-delay", options.retry_delay, "Time between two of these runs [0]", "MS");
  command.add_option("--retry-codes", options.retry_codes,
                     "Retry only for these numbers that a component returns, such as 7,9 [all]", "LIST");
  command.add_flag("--priorities", options.priorities,
                   "Each task starts with its priority and a blank: high, normal or low");
  command.add_flag("--quiet", options.quiet, "Print no summary at the end");
  command.footer(
      "Outputs come in the order of the tasks. The output of a failed task is empty, and standard error says why it failed. "
      "docs/workers.md explains more.");
  command.on_use([&invocation] { invocation.exit_code = run_workers(options); });
}

}  // namespace freehold::cli
