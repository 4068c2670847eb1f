// SPDX-License-Identifier: MIT
#include "cli/mcp/tools.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "cli/support/failure.hpp"

namespace freehold::cli::mcp {
namespace {
using nlohmann::json;
using nlohmann::ordered_json;

enum class Kind : std::uint8_t { kText, kInteger, kSeconds, kTexts };
struct Parameter {
  const char* name;
  Kind kind;
  const char* option;  // of the command line; empty: the value itself is a word; "--": the value is the program
  const char* help;
  bool required = false;
};
struct Tool {
  const char* name;
  const char* help;
  std::vector<std::string> words;
  std::vector<Parameter> parameters;
};

const Parameter kProgram{"command", Kind::kTexts, "--", "The program and its arguments, one word each; no shell reads them",
                         true};
const Parameter kBudget{"budget_s", Kind::kSeconds, "--budget", "Time limit of all runs together, in seconds"};
const Parameter kInput{"stdin", Kind::kText, "--stdin", "File for the program's standard input"};
const Parameter kAllocators{
    "allocators", Kind::kText, "--allocators",
    "Comma-separated: freehold, arenas, thresholds, padded, jemalloc, tcmalloc, tbbmalloc, mimalloc or NAME=PATH"};

const std::vector<Tool>& tools() {
  static const std::vector<Tool> all{
      {"examine",
       "Is the allocator why this program does not get faster with more CPUs, where in its source, and what helps? Runs the "
       "unchanged program several times (100 s unless budget_s says otherwise) and returns the doctor's report.",
       {"doctor", "--json", "-"},
       {kProgram,
        kBudget,
        {"threads", Kind::kText, "--threads", "Numbers of threads to try, comma-separated; needs env or arg"},
        {"env", Kind::kText, "--env", "Environment variable that tells the program how many threads: OMP_NUM_THREADS"},
        {"arg", Kind::kText, "--arg", "Arguments that tell it, with {n} for the number: -t {n}"},
        {"work", Kind::kText, "--work", "fixed: threads share the work; per-thread: each brings its own; auto"},
        kInput,
        kAllocators}},
      {"examine_memory",
       "Why does this program take so much memory? Runs it under several allocators (60 s unless budget_s says otherwise) "
       "and returns the report.",
       {"doctor", "--memory", "--json", "-"},
       {kProgram, kBudget, kInput, kAllocators}},
      {"explain_cause",
       "What a verdict's cause means, and what helps against it.",
       {},
       {{"cause", Kind::kText, "", "As the report's verdict.cause names it: allocator-lock, remote-frees, own-lock …",
         true}}},
      {"compare_commands",
       "Did a change make a program faster or smaller? Runs two commands in turns and returns the ratios with their limits.",
       {"doctor", "compare", "--json", "-"},
       {{"before", Kind::kText, "--before", "Command to compare with; words as in a shell, nothing is expanded", true},
        {"after", Kind::kText, "--after", "Command to compare", true},
        kBudget}},
      {"compare_reports",
       "What changed between two reports that freehold doctor --json wrote.",
       {"doctor", "compare", "--json", "-"},
       {{"before", Kind::kText, "", "File of the earlier report", true},
        {"after", Kind::kText, "", "File of the later report", true}}},
      {"heap_profile",
       "What holds a program's memory: runs it once to its end, and returns bytes and objects by call site, at the peak and "
       "at the end.",
       {"heap", "profile", "--format", "json", "--output", std::string(kResultFile)},
       {kProgram, {"distance_bytes", Kind::kInteger, "--distance", "Mean distance of samples in bytes; 524288 by default"}}},
      {"stats",
       "Memory and allocations of a running process that uses Freehold. The process is neither stopped nor signalled.",
       {"stats", "--json", "-"},
       {{"pid", Kind::kInteger, "", "Number of the process", true}}}};
  return all;
}

struct Explanation {
  std::string_view cause, means, helps;
};
constexpr Explanation kExplanations[] = {
    {"none", "The program gets faster with more CPUs as it should, within the report's limits.", "Nothing needs to change."},
    {"allocator-lock", "Threads wait for each other inside malloc and free.",
     "Another malloc: freehold run -- PROGRAM; or fewer allocations at the call sites that the report lists."},
    {"remote-frees", "Threads free blocks that other threads allocated, and this malloc makes them pay for it.",
     "A malloc whose free needs no owner: freehold run -- PROGRAM; or free blocks in the thread that allocated them."},
    {"allocator-false-sharing", "Blocks of different threads share a cache line, because malloc put them side by side.",
     "Give the type at the reported call site a cache line: struct alignas(64) Item { … }."},
    {"page-faults", "malloc returns memory to the system and faults it in again and again.",
     "Another malloc, or glibc's M_TRIM_THRESHOLD and M_MMAP_THRESHOLD set higher; reuse large buffers."},
    {"arena-bloat", "malloc keeps an arena for each thread, and fills each of them with fresh pages.",
     "MALLOC_ARENA_MAX=2, or a malloc whose free memory belongs to no thread: freehold run -- PROGRAM."},
    {"own-lock", "Threads wait for a lock of the program, not of malloc.",
     "Hold the lock for a shorter time, or split it; another malloc does not help."},
    {"own-sharing", "Threads write to the same cache lines, or spin: data of the program, not of malloc.",
     "Give each thread's data separate cache lines, and sum up at the end; another malloc does not help."},
    {"own-page-faults", "The program itself maps and unmaps memory.",
     "Keep mappings and use them again; another malloc does not help."},
    {"memory-bandwidth", "All CPUs together want more memory bandwidth, or more cache, than the machine has.",
     "Smaller data, better locality; copies of the program in separate processes would be as slow."},
    {"cpu-quota", "The program may not use the CPUs: an affinity mask or a control group's quota limits it.",
     "Raise the quota, or use as many threads as CPUs may be used."},
    {"serial", "A part of the work runs in one thread while the other CPUs have nothing to do.",
     "Divide that part; another malloc speeds it up at most as it speeds up one thread."},
    {"mixed", "The allocator and the program itself lose comparable parts.",
     "Change the malloc first: it is the cheap part. Then ask again."},
    {"undecided", "The trials do not decide. verdict.doubt says why.",
     "A larger budget_s, a quieter machine, or what the report recommends."},
};

std::string explanation_of(const std::string& cause) {
  const auto* const found = std::ranges::find(kExplanations, cause, &Explanation::cause);
  if (found != std::end(kExplanations))
    return fmt::format("{}: {}\nWhat helps: {}\n", found->cause, found->means, found->helps);
  std::vector<std::string_view> known;
  for (const Explanation& one : kExplanations) known.push_back(one.cause);
  throw Failure(kExitRefused, fmt::format("there is no cause '{}': {}", printable(cause), fmt::join(known, ", ")));
}

ordered_json schema_of(const Parameter& parameter) {
  ordered_json schema;
  switch (parameter.kind) {
    case Kind::kText: schema["type"] = "string"; break;
    case Kind::kInteger: schema = {{"type", "integer"}, {"minimum", 1}}; break;
    case Kind::kSeconds: schema = {{"type", "number"}, {"exclusiveMinimum", 0}}; break;
    case Kind::kTexts: schema = {{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 1}}; break;
  }
  schema["description"] = parameter.help;
  return schema;
}

// Whether it can be a word of a command line, which ends at a zero byte.
bool is_word(const json& value) {
  return value.is_string() && value.get_ref<const std::string&>().find('\0') == std::string::npos;
}

// The words of one argument's value; nothing if it is of another type.
std::optional<std::vector<std::string>> words_of(const Parameter& parameter, const json& value) {
  switch (parameter.kind) {
    case Kind::kText: return is_word(value) ? std::optional(std::vector{value.get<std::string>()}) : std::nullopt;
    case Kind::kInteger:
      return value.is_number_integer() && value > 0 ? std::optional(std::vector{value.dump()}) : std::nullopt;
    case Kind::kSeconds:
      return value.is_number() && value > 0 ? std::optional(std::vector{fmt::format("{}", value.get<double>())})
                                            : std::nullopt;
    case Kind::kTexts:
      if (!value.is_array() || value.empty() || !std::ranges::all_of(value, is_word)) return std::nullopt;
      return value.get<std::vector<std::string>>();
  }
  return std::nullopt;
}

void check_names(const Tool& tool, const json& arguments) {
  for (const auto& [name, value] : arguments.items()) {
    if (std::ranges::none_of(tool.parameters, [&](const Parameter& one) { return one.name == name; }))
      throw Failure(kExitRefused, fmt::format("{} has no argument '{}'", tool.name, printable(name)));
  }
}

}  // namespace

ordered_json tools_list() {
  ordered_json list = ordered_json::array();
  for (const Tool& tool : tools()) {
    ordered_json properties = ordered_json::object(), required = ordered_json::array();
    for (const Parameter& parameter : tool.parameters) {
      properties[parameter.name] = schema_of(parameter);
      if (parameter.required) required.push_back(parameter.name);
    }
    list.push_back(
        {{"name", tool.name},
         {"description", tool.help},
         {"inputSchema",
          {{"type", "object"}, {"properties", properties}, {"required", required}, {"additionalProperties", false}}}});
  }
  return list;
}

Call call_of(const std::string& name, const json& arguments) {
  const auto tool = std::ranges::find_if(tools(), [&](const Tool& one) { return one.name == name; });
  if (tool == tools().end()) throw Failure(kExitRefused, fmt::format("there is no tool '{}'", printable(name)));
  check_names(*tool, arguments);
  Call call{.words = tool->words, .text = {}};
  std::vector<std::string> behind;
  for (const Parameter& parameter : tool->parameters) {
    const auto value = arguments.find(parameter.name);
    if (value == arguments.end()) {
      if (parameter.required) throw Failure(kExitRefused, fmt::format("{} needs the argument '{}'", name, parameter.name));
      continue;
    }
    const auto words = words_of(parameter, *value);
    if (!words)
      throw Failure(kExitRefused, fmt::format("the argument '{}' of {} does not fit its schema", parameter.name, name));
    const std::string_view option = parameter.option;
    std::vector<std::string>& to = option.starts_with("--") && option != "--" ? call.words : behind;
    if (!option.empty()) to.emplace_back(option);
    if (option.empty() && words->front().starts_with('-'))
      to.emplace_back("./" + words->front());  // a file, not an option
    else
      to.insert(to.end(), words->begin(), words->end());
  }
  if (call.words.empty()) return {.words = {}, .text = explanation_of(behind.front())};
  call.words.insert(call.words.end(), behind.begin(), behind.end());
  return call;
}

}  // namespace freehold::cli::mcp
