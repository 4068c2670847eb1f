// SPDX-License-Identifier: MIT
// freehold doctor [options] -- PROGRAM ARGS…: is the allocator why the program does not scale, where, and what mends it?
// Runs the program under several allocators on one CPU and on all, records it, and says what that means. docs/doctor.md.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "cli/command.hpp"
#include "cli/heap/profile.hpp"
#include "tools/doctor/command/questions.hpp"
#include "tools/doctor/facts/own_malloc.hpp"
#include "tools/doctor/facts/profile.hpp"
#include "tools/doctor/report/results_json.hpp"
#include "tools/doctor/report/time_answer.hpp"
#include "tools/doctor/run/program.hpp"
#include "tools/doctor/run/throughput.hpp"
#include "tools/launch/program.hpp"
#include "tools/output/json.hpp"
#include "tools/output/stack_profile.hpp"
#include "tools/support/arguments.hpp"
#include "tools/support/carried.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/library.hpp"
#include "tools/support/output_file.hpp"
#include "tools/support/quantities.hpp"

namespace freehold::cli {
namespace {
using namespace doctor::command;
using namespace doctor::report;
using freehold::doctor::ParallelismControl;

constexpr unsigned kMostThreads = 4096, kMostRepetitions = 1000;
constexpr double kBudget_s = 100;
constexpr double kExampleBudget_s = 40;
constexpr double kMemoryBudget_s = 60, kAgedBudget_s = 60;
constexpr const char* kMadeUp = "made-up";  // --aged without a file
constexpr const char* kExample = "freehold-doctor-example";

struct DoctorOptions {
  std::optional<std::string> threads, env, work, allocators;
  std::optional<std::string> budget, repeat;
  std::optional<std::string> serve_for, load, ready, throughput;
  std::optional<std::string> json, html, pprof;
  std::optional<std::string> fail_on, summary;
  std::optional<std::string> aged;
  bool memory = false;
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

void set_parallelism(Settings& settings, const DoctorOptions& options) {
  const auto cpus = static_cast<unsigned>(freehold::doctor::cpus_in_order().size());
  const bool marked = has_number_mark(settings.command);
  if (options.env && marked)
    throw Failure(kExitRefused, "--env and {n} in an argument: the program is told its threads by one of them");
  if (options.env) {
    if (options.env->empty() || options.env->find('=') != std::string::npos)
      throw Failure(kExitRefused, fmt::format("--env: '{}' is not a variable's name", printable(*options.env)));
    settings.parallelism = ParallelismControl::kEnvironment;
    settings.parallelism_text = *options.env;
  } else if (marked) {
    settings.parallelism = ParallelismControl::kArgument;
    settings.parallelism_text = "{n}";
  } else if (options.threads) {
    throw Failure(kExitRefused, "--threads: how is the program told? --env NAME, or {n} in an argument");
  } else if (cpus < 2) {
    throw Failure(kExitRefused,
                  "one CPU is all that this process may use, so that nothing can be seen of scaling; --threads 1,2 with "
                  "--env NAME or {n} in an argument goes without");
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
  server.throughput = options.throughput.value_or("");
  if (options.throughput) check_throughput(server.throughput);
  if ((options.load && server.load.empty()) || (options.ready && server.ready.empty()))
    throw Failure(kExitRefused, "--load and --ready: the command is empty");
  if (server.load.empty() && !server.ready.empty()) throw Failure(kExitRefused, "--ready: for which load? --load 'COMMAND'");
  if (server.seconds > 0 && server.throughput.empty())
    throw Failure(kExitRefused,
                  "--for: where all runs take the same time, what is measured? --throughput 'rate: ([0-9.]+)'");
}

void set_effort(Settings& settings, const DoctorOptions& options) {
  settings.budget_s = kBudget_s;
  if (options.budget) settings.budget_s = parse_seconds("--budget", *options.budget);
  if (!options.repeat) return;
  if (options.budget) throw Failure(kExitRefused, "--repeat is instead of --budget: how often, not how long");
  settings.rounds = parse_number("--repeat", *options.repeat, 1, kMostRepetitions);
  settings.budget_s = 0;
}

// A file that is the command's standard input is the program's, too, from its beginning in each run.
std::string input_file() {
  struct stat status{};
  if (::fstat(STDIN_FILENO, &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/fd/0", ignored).string();
}

void set_surroundings(Settings& settings, const DoctorOptions& options) {
  settings.input = input_file();
  settings.allow_failure = options.allow_failure;
  settings.ahead_of_others = options.ahead_of_others;
}

// Refuses now what would otherwise fail after the runs.
void check_program_and_files(const std::string& program, const DoctorOptions& options) {
  std::string library = "/proc/self/exe";
  try {
    library = find_freehold_library();
  } catch (const Failure&) {
    // A note will say so; the command itself is for the same machine.
  }
  check_program(program, library);
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

TimeRequest request_of(const DoctorOptions& options, const std::vector<std::string>& program) {
  copy_carried_files();
  TimeRequest asked;
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
  if (asked.example && settings.rounds == 0 && !options.budget) settings.budget_s = kExampleBudget_s;
  set_surroundings(settings, options);
  if (!asked.example) asked.program.program = find_program(program.front());
  check_program_and_files(asked.program.program, options);
  return asked;
}

// Writes the answer. Files first: a terminal that went away must not cost them. `page`: makes the HTML page of a report,
// for the questions that have --html.
void write_answer(const DoctorOptions& options, const Document& answer, const nlohmann::ordered_json& report,
                  std::string (*page)(nlohmann::ordered_json)) {
  write_each({[&] {
                if (options.html) write_file(*options.html, page(report));
              },
              [&] {
                if (options.summary) write_file(*options.summary, markdown_of(answer));
              },
              [&] { write_report(options.json, options.json ? text_of(report) : "", text_of(answer), text_of(answer)); }});
}

int exit_code_of(const auto& diagnosis, const Gate& gate) {
  if (diagnosis.signal != 0) return 128 + diagnosis.signal;
  if (!gate.asked.empty()) return gate.exit_code();
  const auto& cells = diagnosis.experiment.cells;
  return std::ranges::any_of(cells, [](const auto& cell) { return !cell.failure.empty(); }) ? kExitPartial : 0;
}

// For `question`, "--memory", the options about threads, CPUs and time mean nothing, and the example neither.
void refuse_options_of_time(std::string_view question, const DoctorOptions& options,
                            const std::vector<std::string>& program) {
  const std::pair<const char*, bool> others[] = {{"--threads", options.threads.has_value()},
                                                 {"--env", options.env.has_value()},
                                                 {"--work", options.work.has_value()},
                                                 {"--throughput", options.throughput.has_value()},
                                                 {"--pprof", options.pprof.has_value()}};
  for (const auto& [name, is_given] : others)
    if (is_given)
      throw Failure(kExitRefused, fmt::format("{}: {} is for the question of time; leave it out", question, name));
  if (program.empty())
    throw Failure(kExitRefused, fmt::format("{0}: which program? freehold doctor {0} -- PROGRAM ARGS…", question));
}

int ask_about_memory(const DoctorOptions& options, const std::vector<std::string>& program) {
  refuse_options_of_time("--memory", options, program);
  const FailOn fail_on(Question::kMemory, options.fail_on);
  MemoryRequest request{.settings = {}, .program = {}, .allocators = options.allocators};
  Settings& settings = request.settings;
  settings.command = program;
  DoctorOptions with_time = options;  // a server may be ended after a time without a figure of its load
  with_time.serve_for.reset();
  set_server(settings, with_time);
  if (options.serve_for) settings.server.seconds = parse_seconds("--for", *options.serve_for);
  set_effort(settings, options);
  if (!options.budget && !options.repeat) settings.budget_s = kMemoryBudget_s;
  settings.keeps_budget = options.budget.has_value();
  set_surroundings(settings, options);
  request.program = find_program(program.front());
  check_program_and_files(request.program, options);
  heap::MostPinned pins;
  request.look_at_pins = [&pins](pid_t pid) { pins.look(pid); };
  MemoryDiagnosis diagnosis = ask(request);
  std::istringstream advice(pins.advice());
  for (std::string line; std::getline(advice, line);) diagnosis.notes.push_back(line + '.');
  const Gate gate = fail_on.judge(name_of(diagnosis.verdict.cause));
  write_answer(options, document_of(diagnosis, gate), json_of(diagnosis), memory_page_of);
  return exit_code_of(diagnosis, gate);
}

int ask_about_age(const DoctorOptions& options, const std::vector<std::string>& program) {
  refuse_options_of_time("--aged", options, program);
  const std::pair<const char*, bool> others[] = {{"--memory", options.memory},
                                                 {"--for", options.serve_for.has_value()},
                                                 {"--load", options.load.has_value()},
                                                 {"--ready", options.ready.has_value()},
                                                 {"--html", options.html.has_value()},
                                                 {"--fail-on", options.fail_on.has_value()},
                                                 {"--allow-failure", options.allow_failure},
                                                 {"--ahead-of-others", options.ahead_of_others}};
  for (const auto& [name, is_given] : others)
    if (is_given) throw Failure(kExitRefused, fmt::format("--aged: {} is for other questions; leave it out", name));
  AgedRequest request{.settings = {},
                      .program = {},
                      .allocators = options.allocators,
                      .recording = *options.aged == kMadeUp ? "" : *options.aged};
  request.settings.command = program;
  request.settings.input = input_file();
  set_effort(request.settings, options);
  if (!options.budget && !options.repeat) request.settings.budget_s = kAgedBudget_s;
  request.program = find_program(program.front());
  check_program_and_files(request.program, options);
  const AgedDiagnosis diagnosis = ask(request);
  write_answer(options, document_of(diagnosis), json_of(diagnosis), nullptr);
  if (diagnosis.signal != 0) return 128 + diagnosis.signal;
  const bool failed = std::ranges::any_of(diagnosis.mallocs, [](const auto& malloc) { return !malloc.failure.empty(); });
  return failed ? kExitPartial : 0;
}

StackProfile stacks_of(const freehold::doctor::Profile& profile) {
  StackProfile stacks;
  for (std::size_t i = 0; i < freehold::doctor::kMeasures; ++i) {
    const auto measure = static_cast<freehold::doctor::Measure>(i);
    stacks.measures.push_back({std::string(name_of(measure)), std::string(unit_of(measure))});
  }
  stacks.shown_first = static_cast<std::size_t>(freehold::doctor::Measure::kTime);
  stacks.frames = profile.frames;
  for (const auto& row : profile.rows) stacks.rows.push_back({row.frames, {row.values.begin(), row.values.end()}});
  stacks.seconds = profile.seconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  stacks.time_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  return stacks;
}

int run_doctor(const DoctorOptions& options, const std::vector<std::string>& program) {
  open_standard_files();
  if (options.aged) return ask_about_age(options, program);
  if (options.memory) return ask_about_memory(options, program);
  const FailOn fail_on(Question::kTime, options.fail_on);
  const TimeRequest asked = request_of(options, program);
  const Diagnosis diagnosis = ask(asked);
  const Gate gate = fail_on.judge(name_of(diagnosis.verdict.cause));
  const Words words = words_of(diagnosis);
  write_each({[&] {
                if (!options.pprof) return;
                if (diagnosis.profile == nullptr)
                  throw Failure(kExitRefused, "--pprof: nothing was recorded; the notes of the report say why");
                write_file(*options.pprof, pprof_of(stacks_of(*diagnosis.profile)));
              },
              [&] {
                write_answer(options, document_of(diagnosis, words, gate, options.html.value_or("")),
                             results_json(diagnosis, words), page_of);
              }});
  return exit_code_of(diagnosis, gate);
}

void add_options_of_experiment(Command& command, DoctorOptions& options) {
  command.add_option("--threads", options.threads,
                     "Numbers of threads to try; {n} in an argument is the number, or --env tells it [1,2,4… CPUs]", "LIST");
  command.add_option("--env", options.env, "Environment variable that says how many threads: OMP_NUM_THREADS", "NAME");
  command.add_option("--work", options.work, "fixed: threads share the work; per-thread: each brings its own; auto [auto]",
                     "KIND");
  command.add_option(
      "--allocators", options.allocators,
      "freehold, arenas, thresholds, padded, jemalloc, tcmalloc, tbbmalloc, mimalloc, /path/to/lib.so or NAME=PATH [all]",
      "LIST");
  command.add_option("--budget", options.budget,
                     "Total time limit of all runs [100s; with --memory 60s, but two runs of each; with --aged 60s]",
                     "TIME");
  command.add_option("--repeat", options.repeat, "Run every trial N times, without a time limit", "N");
  command.add_flag("--allow-failure", options.allow_failure,
                   "Accept a program that exits with an error; every run must then exit as the first one did");
}

void add_options_of_servers(Command& command, DoctorOptions& options) {
  command.add_option("--for", options.serve_for,
                     "End the program after this time: it is a server that does not end by itself", "TIME");
  command.add_option("--load", options.load, "Shell command that uses the program while it serves", "COMMAND");
  command.add_option("--ready", options.ready,
                     "Shell command that succeeds once the program is ready: 'sleep 3' [it listens]", "COMMAND");
  command.add_option("--throughput", options.throughput,
                     "Regular expression for the load's output, with a group around units a second [the load's time counts]",
                     "REGEX");
}

}  // namespace

void add_doctor(CLI::App& app, Invocation& invocation) {
  static DoctorOptions options;
  Command command(app, "doctor", "Say whether the allocator is why a program does not scale: freehold doctor -- PROGRAM");
  command.add_flag("--memory", options.memory, "Ask another question: why does the program take so much memory?");
  command.add_option_or_flag("--aged", options.aged,
                             "Ask a third: how much slower is it on a heap that a history of mallocs and frees has aged? "
                             "--aged=FILE: one that was recorded",
                             "FILE", kMadeUp);
  add_options_of_experiment(command, options);
  add_options_of_servers(command, options);
  command.add_flag("--ahead-of-others", options.ahead_of_others,
                   "Run the program before others that take its CPUs: they get little of them");
  command.add_option("--pprof", options.pprof, "Write what was recorded for pprof and speedscope", "FILE");
  command.add_option("--json", options.json, "Write everything as JSON; - for standard output", "FILE");
  command.add_option("--html", options.html, "Write one self-contained page", "FILE");
  command.add_option(
      "--fail-on", options.fail_on,
      "Exit with 1 if the verdict is one of these causes (allocator: all that blame it), with 3 if it is undecided",
      "CAUSES");
  command.add_option("--summary", options.summary, "Write the answer in Markdown, for the page of a job", "FILE");
  add_doctor_attach(command, invocation);
  add_doctor_compare(command, invocation);
  command.footer(
      "Without a program it examines a bundled example. Ctrl-C ends it early and keeps what was finished. docs/doctor.md "
      "explains the method and the exit codes.");
  command.on_use([&invocation] { invocation.exit_code = run_doctor(options, invocation.program); });
}

}  // namespace freehold::cli
