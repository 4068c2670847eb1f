// SPDX-License-Identifier: MIT
// freehold doctor [options] -- PROGRAM ARGS…: is the allocator why the program does not scale, where, and what mends it?
// Runs the program under several allocators on one CPU and on all, records it, and says what that means. docs/doctor.md.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.hpp"
#include "tools/doctor/facts/own_malloc.hpp"
#include "tools/doctor/facts/profile.hpp"
#include "tools/doctor/report/examine.hpp"
#include "tools/doctor/report/gate.hpp"
#include "tools/doctor/report/memory.hpp"
#include "tools/doctor/report/results_json.hpp"
#include "tools/doctor/report/variants.hpp"
#include "tools/doctor/report/verdict_text.hpp"
#include "tools/doctor/run/program.hpp"
#include "tools/doctor/run/throughput.hpp"
#include "tools/launch/program.hpp"
#include "tools/output/json.hpp"
#include "tools/output/stack_profile.hpp"
#include "tools/support/arguments.hpp"
#include "tools/support/carried.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/interrupts.hpp"
#include "tools/support/library.hpp"
#include "tools/support/output_file.hpp"
#include "tools/support/shell.hpp"

namespace freehold::cli {
namespace {
using namespace doctor::report;
using freehold::doctor::ParallelismControl;

constexpr unsigned kMostThreads = 4096;
constexpr double kBudget_s = 100;
constexpr double kQuickBudget_s = 20;
constexpr double kExampleBudget_s = 40;
constexpr double kMemoryBudget_s = 60;
constexpr std::size_t kSitesOfSummary = 20;
constexpr const char* kExample = "freehold-doctor-example";

struct DoctorOptions {
  std::optional<std::string> threads, env, arg, work, allocators;
  std::optional<std::string> budget, repeat;
  std::optional<std::string> input, output;
  std::optional<std::string> serve_for, load, ready, ready_after, throughput;
  std::optional<std::string> keep_recording, json, html, from, pprof;
  std::optional<std::string> fail_on, summary;
  bool memory = false;
  bool quick = false;
  bool allow_failure = false;
  bool ahead_of_others = false;
};

Work parse_work(const std::string& text) {
  if (text == "auto") return Work::kAuto;
  if (text == "fixed") return Work::kFixed;
  if (text == "per-thread") return Work::kPerThread;
  throw Failure(kExitRefused, fmt::format("--work must be fixed, per-thread or auto, not '{}'", printable(text)));
}

// 1, 2, 4… up to `most`, which is always among them.
std::vector<unsigned> doubling(unsigned most) {
  std::vector<unsigned> widths;
  for (unsigned width = 1; width < most; width *= 2) widths.push_back(width);
  widths.push_back(most);
  return widths;
}

bool has_number_mark(const std::vector<std::string>& words) {
  return std::ranges::any_of(words, [](const std::string& word) { return word.find("{n}") != std::string::npos; });
}

void set_argument(Settings& settings, const std::string& text) {
  const auto words = split_words(text);
  if (!words) throw Failure(kExitRefused, fmt::format("--arg: a quote in '{}' does not end", printable(text)));
  if (!has_number_mark(*words))
    throw Failure(kExitRefused,
                  fmt::format("--arg: '{}' has no {{n}} where the number of threads belongs", printable(text)));
  settings.parallelism = ParallelismControl::kArgument;
  settings.parallelism_text = text;
  // Before the program's other arguments: options end where operands begin.
  settings.command.insert(settings.command.begin() + 1, words->begin(), words->end());
}

void set_parallelism(Settings& settings, const DoctorOptions& options) {
  const auto cpus = static_cast<unsigned>(doctor::cpus_in_order().size());
  const bool marked = has_number_mark(settings.command);
  if (options.env && (options.arg || marked))
    throw Failure(kExitRefused, "--env and {n} in an argument: the program is told its threads by one of them");
  if (options.env) {
    if (options.env->empty() || options.env->find('=') != std::string::npos)
      throw Failure(kExitRefused, fmt::format("--env: '{}' is not a variable's name", printable(*options.env)));
    settings.parallelism = ParallelismControl::kEnvironment;
    settings.parallelism_text = *options.env;
  } else if (options.arg) {
    set_argument(settings, *options.arg);
  } else if (marked && options.threads) {
    settings.parallelism = ParallelismControl::kArgument;
    settings.parallelism_text = "{n}";
  } else if (options.threads) {
    throw Failure(kExitRefused, "--threads needs --env NAME or --arg '-t {n}'");
  } else if (cpus < 2) {
    throw Failure(kExitRefused,
                  "one CPU is all that this process may use, so that nothing can be seen of scaling; --threads 1,2 with "
                  "--env NAME or --arg '-t {n}' goes without");
  }
  settings.widths = doubling(cpus);
  if (options.threads) settings.widths = parse_numbers("--threads", *options.threads, 1, kMostThreads);
  if (settings.widths.size() < 2) throw Failure(kExitRefused, "--threads: two numbers are needed to see scaling: 1,2");
}

void check_throughput(const std::string& expression) {
  using freehold::doctor::Throughput;
  switch (Throughput::fault_of(expression)) {
    case Throughput::Fault::kNone: return;
    case Throughput::Fault::kNoExpression:
      throw Failure(kExitRefused, fmt::format("--throughput: '{}' is not a regular expression", printable(expression)));
    case Throughput::Fault::kNoGroup:
      throw Failure(kExitRefused, fmt::format("--throughput: '{}' has no group around the number: 'rate: ([0-9.]+)'",
                                              printable(expression)));
  }
}

void set_server(Settings& settings, const DoctorOptions& options) {
  Server& server = settings.server;
  if (options.serve_for) server.seconds = parse_seconds("--for", *options.serve_for);
  server.load = options.load.value_or("");
  server.ready = options.ready.value_or("");
  if (options.ready_after) server.ready_after_s = parse_seconds("--ready-after", *options.ready_after);
  server.throughput = options.throughput.value_or("");
  if (options.throughput) check_throughput(server.throughput);
  if ((options.load && server.load.empty()) || (options.ready && server.ready.empty()))
    throw Failure(kExitRefused, "--load and --ready: the command is empty");
  if (server.load.empty() && (!server.ready.empty() || server.ready_after_s > 0))
    throw Failure(kExitRefused, "--ready and --ready-after: for which load? --load 'COMMAND'");
  if (server.seconds > 0 && server.throughput.empty())
    throw Failure(kExitRefused,
                  "--for: where all runs take the same time, what is measured? --throughput 'rate: ([0-9.]+)'");
}

void set_effort(Settings& settings, const DoctorOptions& options) {
  settings.budget_s = options.quick ? kQuickBudget_s : kBudget_s;
  if (options.budget) settings.budget_s = parse_seconds("--budget", *options.budget);
  if (!options.repeat) return;
  if (options.budget || options.quick)
    throw Failure(kExitRefused, "--repeat is instead of --budget and --quick: how often, not how long");
  settings.rounds = parse_number("--repeat", *options.repeat, 1, kMostRounds);
  settings.budget_s = 0;
}

void set_files(Settings& settings, const DoctorOptions& options) {
  if (options.input) {
    settings.input = *options.input;
    if (::access(settings.input.c_str(), R_OK) != 0)
      throw Failure(kExitRefused, fmt::format("cannot read {}: {}", printable(settings.input), error_text(errno)));
  }
  if (options.output && *options.output != "show" && *options.output != "hide")
    throw Failure(kExitRefused, fmt::format("--output must be show or hide, not '{}'", printable(*options.output)));
  settings.show_output = options.output == "show";
  settings.ahead_of_others = options.ahead_of_others;
  settings.keep_recording = options.keep_recording.value_or("");
  if (options.keep_recording && settings.keep_recording.empty())
    throw Failure(kExitRefused, "--keep-recording: the folder's name is empty");
}

// Refuses now what would otherwise fail after the runs.
void check_program_and_files(const DoctorRequest& asked, const DoctorOptions& options) {
  std::string library = "/proc/self/exe";
  try {
    library = find_freehold_library();
  } catch (const Failure&) {
    // A note will say so; the command itself is for the same machine.
  }
  check_program(asked.program.program, library);
  for (const auto& file : {options.json, options.html, options.pprof}) check_report(file);
  if (options.summary) check_writable(*options.summary);
  std::vector<std::pair<std::string, std::string>> outputs;
  for (const auto& [option, file] : {std::pair("--json", options.json),
                                     {"--html", options.html},
                                     {"--summary", options.summary},
                                     {"--pprof", options.pprof}}) {
    if (file) outputs.emplace_back(option, *file);
  }
  check_different(outputs);
  if (options.html == "-") throw Failure(kExitRefused, "--html: the page goes to a file");
  if (options.pprof == "-") throw Failure(kExitRefused, "--pprof: the profile goes to a file");
}

DoctorRequest request_of(const DoctorOptions& options, const std::vector<std::string>& program) {
  copy_carried_files();
  DoctorRequest asked;
  asked.allocators = options.allocators;
  Settings& settings = asked.program.settings;
  settings.command = program;
  if (program.empty()) {
    asked.example = true;
    asked.program.program = find_own_program(kExample);
    settings.command = {asked.program.program};
  }
  set_parallelism(settings, options);
  if (options.work) settings.work = parse_work(*options.work);
  set_server(settings, options);
  set_effort(settings, options);
  if (asked.example && settings.rounds == 0 && !options.budget && !options.quick) settings.budget_s = kExampleBudget_s;
  settings.allow_failure = options.allow_failure;
  set_files(settings, options);
  if (!asked.example) asked.program.program = find_program(program.front());
  check_program_and_files(asked, options);
  return asked;
}

bool has_failure(const auto& experiment) {
  return std::ranges::any_of(experiment.cells, [](const auto& cell) { return !cell.failure.empty(); });
}

// Examines the program and writes what was found. Files first: a terminal that went away must not cost them.
int answer_about_memory(const MemoryRequest& request, const DoctorOptions& options, const FailOn& fail_on) {
  MemoryDiagnosis diagnosis;
  {
    Interrupts interrupts;
    Progress progress;
    diagnosis = examine_memory(request, interrupts, progress);
  }
  const nlohmann::ordered_json report = json_of(diagnosis);
  const Gate gate = fail_on.judge(name_of(diagnosis.verdict.cause));
  const std::string answer = text_of(gate);
  const std::string summary = summary_of(diagnosis) + (answer.empty() ? "" : '\n' + answer);
  if (options.html) write_file(*options.html, page_of(diagnosis));
  if (options.summary) write_file(*options.summary, markdown_of(diagnosis) + '\n' + markdown_of(gate));
  write_report(options.json, text_of(report), summary, summary);
  if (diagnosis.signal != 0) return 128 + diagnosis.signal;
  if (fail_on.is_asked()) return gate.exit_code();
  return has_failure(diagnosis.experiment) ? kExitPartial : 0;
}

// --memory: another question, of which the options about threads, CPUs and time mean nothing.
int ask_about_memory(const DoctorOptions& options, const std::vector<std::string>& program) {
  const std::pair<const char*, bool> others[] = {{"--threads", options.threads.has_value()},
                                                 {"--env", options.env.has_value()},
                                                 {"--arg", options.arg.has_value()},
                                                 {"--work", options.work.has_value()},
                                                 {"--throughput", options.throughput.has_value()},
                                                 {"--pprof", options.pprof.has_value()},
                                                 {"--from", options.from.has_value()}};
  for (const auto& [name, is_given] : others)
    if (is_given) throw Failure(kExitRefused, fmt::format("--memory: {} is for the question of time; leave it out", name));
  if (program.empty()) throw Failure(kExitRefused, "--memory: which program? freehold doctor --memory -- PROGRAM ARGS…");
  const FailOn fail_on(Question::kMemory, options.fail_on);
  MemoryRequest request{.settings = {}, .program = {}, .allocators = options.allocators};
  Settings& settings = request.settings;
  settings.command = program;
  DoctorOptions with_time = options;  // a server may be ended after a time without a figure of its load
  with_time.serve_for.reset();
  set_server(settings, with_time);
  if (options.serve_for) settings.server.seconds = parse_seconds("--for", *options.serve_for);
  set_effort(settings, options);
  if (!options.budget && !options.quick && !options.repeat) settings.budget_s = kMemoryBudget_s;
  settings.keeps_budget = options.budget || options.quick;
  settings.allow_failure = options.allow_failure;
  set_files(settings, options);
  request.program = find_program(program.front());
  DoctorRequest checked;
  checked.program.program = request.program;
  check_program_and_files(checked, options);
  return answer_about_memory(request, options, fail_on);
}

// --from: a stored report instead of runs.
int judge_report(const DoctorOptions& options, const std::vector<std::string>& program) {
  if (!program.empty()) throw Failure(kExitRefused, "--from: the report is there already; leave the program out");
  if (options.summary) check_writable(*options.summary);
  const FailOn fail_on(Question::kTime, options.fail_on);
  const nlohmann::ordered_json report = read_report(*options.from);
  const Gate gate = fail_on.judge(report["verdict"]["cause"].get<std::string>());
  if (options.summary) write_file(*options.summary, markdown_of(report, gate));
  print_to_stdout(fmt::format("{}\n{}", printable(report["verdict"]["headline"].get<std::string>()), text_of(gate)));
  return gate.exit_code();
}

StackProfile stacks_of(const doctor::Profile& profile) {
  StackProfile stacks;
  for (std::size_t i = 0; i < doctor::kMeasures; ++i) {
    const auto measure = static_cast<doctor::Measure>(i);
    stacks.measures.push_back({std::string(name_of(measure)), std::string(unit_of(measure))});
  }
  stacks.shown_first = static_cast<std::size_t>(doctor::Measure::kTime);
  stacks.frames = profile.frames;
  for (const auto& row : profile.rows) stacks.rows.push_back({row.frames, {row.values.begin(), row.values.end()}});
  stacks.seconds = profile.seconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  stacks.time_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  return stacks;
}

int run_doctor(const DoctorOptions& options, const std::vector<std::string>& program) {
  open_standard_files();
  if (options.memory) return ask_about_memory(options, program);
  if (options.from) return judge_report(options, program);
  const DoctorRequest asked = request_of(options, program);
  const FailOn fail_on(Question::kTime, options.fail_on);
  Diagnosis diagnosis;
  {
    Interrupts interrupts;
    Progress progress;
    diagnosis = examine(asked, interrupts, progress);
  }
  // Files first: a terminal that went away must not cost them.
  if (options.html) write_file(*options.html, page_of(diagnosis));
  if (options.pprof && diagnosis.profile != nullptr) write_file(*options.pprof, pprof_of(stacks_of(*diagnosis.profile)));
  const nlohmann::ordered_json report = results_json(diagnosis, {.sites = kSitesOfSummary, .alone = false});
  const Gate gate = fail_on.judge(name_of(diagnosis.verdict.cause));
  if (options.summary) write_file(*options.summary, markdown_of(report, gate));
  std::string summary = summary_of(diagnosis, options.html.value_or(""));
  if (const std::string answer = text_of(gate); !answer.empty()) summary += '\n' + answer;
  write_report(options.json, options.json ? text_of(results_json(diagnosis)) : "", summary, summary);
  if (diagnosis.signal != 0) return 128 + diagnosis.signal;
  if (options.pprof && diagnosis.profile == nullptr)
    throw Failure(kExitRefused, "--pprof: nothing was recorded; the notes of the report say why");
  if (fail_on.is_asked()) return gate.exit_code();
  return has_failure(diagnosis.experiment) ? kExitPartial : 0;
}

void add_options_of_experiment(Command& command, DoctorOptions& options) {
  command.add_option("--threads", options.threads, "Numbers of threads to try, as --env or --arg tells them [1,2,4… CPUs]",
                     "LIST");
  command.add_option("--env", options.env, "Environment variable that says how many threads: OMP_NUM_THREADS", "NAME");
  command.add_option("--arg", options.arg, "Arguments that say how many threads, with {n} for the number: '-t {n}'", "TEXT");
  command.add_option("--work", options.work, "fixed: threads share the work; per-thread: each brings its own; auto [auto]",
                     "KIND");
  command.add_option(
      "--allocators", options.allocators,
      "freehold, arenas, thresholds, padded, jemalloc, tcmalloc, tbbmalloc, mimalloc, /path/to/lib.so or NAME=PATH [all]",
      "LIST");
  command.add_option("--budget", options.budget,
                     "Total time limit of all runs [100s; with --memory 60s, but two runs of each]", "TIME");
  command.add_option("--repeat", options.repeat, "Run every trial N times, without a time limit", "N");
  command.add_flag("--quick", options.quick, "Short for --budget 20s");
  command.add_option("--stdin", options.input, "File for the program's standard input [/dev/null]", "FILE");
  command.add_option("--output", options.output, "show: write the program's output to standard error; hide [hide]", "WHAT");
  command.add_flag("--allow-failure", options.allow_failure,
                   "Accept a program that exits with an error; every run must then exit as the first one did");
}

void add_options_of_servers(Command& command, DoctorOptions& options) {
  command.add_option("--for", options.serve_for,
                     "End the program after this time: it is a server that does not end by itself", "TIME");
  command.add_option("--load", options.load, "Shell command that uses the program while it serves", "COMMAND");
  command.add_option("--ready", options.ready, "Shell command that succeeds once the program is ready [it listens]",
                     "COMMAND");
  command.add_option("--ready-after", options.ready_after, "Time to wait before the server counts as ready", "TIME");
  command.add_option("--throughput", options.throughput,
                     "Regular expression for the load's output, with a group around units a second [the load's time counts]",
                     "REGEX");
}

}  // namespace

void add_doctor(CLI::App& app, Invocation& invocation) {
  static DoctorOptions options;
  Command command(app, "doctor", "Say whether the allocator is why a program does not scale: freehold doctor -- PROGRAM");
  command.add_flag("--memory", options.memory, "Ask another question: why does the program take so much memory?");
  add_options_of_experiment(command, options);
  add_options_of_servers(command, options);
  command.add_flag("--ahead-of-others", options.ahead_of_others,
                   "Run the program before others that take its CPUs: they get little of them");
  command.add_option("--keep-recording", options.keep_recording, "Keep what the probe recorded in this folder", "FOLDER");
  command.add_option("--pprof", options.pprof, "Write what was recorded for pprof and speedscope", "FILE");
  command.add_option("--json", options.json, "Write everything as JSON; - for standard output", "FILE");
  command.add_option("--html", options.html, "Write one self-contained page", "FILE");
  command.add_option("--from", options.from, "Apply --fail-on and --summary to a report that --json wrote; nothing is run",
                     "FILE");
  command.add_option(
      "--fail-on", options.fail_on,
      "Exit with 1 if the verdict is one of these causes (allocator: all that blame it), with 3 if it is undecided",
      "CAUSES");
  add_summary(command, options.summary);
  add_doctor_attach(command, invocation);
  add_doctor_compare(command, invocation);
  command.footer(
      "Without a program it examines a bundled example. Ctrl-C ends it early and keeps what was finished. docs/doctor.md "
      "explains the method and the exit codes.");
  command.on_use([&invocation] { invocation.exit_code = run_doctor(options, invocation.program); });
}

}  // namespace freehold::cli
