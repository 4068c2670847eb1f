// SPDX-License-Identifier: MIT
// freehold heap profile [options] [--] PROGRAM ARGS…, freehold heap start, snapshot and stop PID, freehold heap show FILE,
// freehold heap diff BEFORE AFTER: what holds a program's memory. docs/heap-profile.md has examples, the formats and what
// the figures mean.
#include <fmt/format.h>

#include <sys/wait.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cli/command.hpp"
#include "cli/heap/profile.hpp"
#include "cli/heap/table.hpp"
#include "tools/launch/launch.hpp"
#include "tools/launch/program.hpp"
#include "tools/live/profile.hpp"
#include "tools/output/json.hpp"
#include "tools/support/arguments.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/library.hpp"
#include "tools/support/live_process.hpp"
#include "tools/support/output_file.hpp"

namespace freehold::cli {
namespace {
namespace fs = std::filesystem;
using heap::HeapProfile;
using heap::Moment;

enum class Format : std::uint8_t { kTable, kPprof, kJson };
struct FormatName {
  std::string_view name;
  Format format;
  std::string_view file;  // by default, of `heap profile`
};
constexpr FormatName kFormats[] = {
    {"table", Format::kTable, "heap.txt"}, {"pprof", Format::kPprof, "heap.pb.gz"}, {"json", Format::kJson, "heap.json"}};

// The subcommands share these.
struct OutputOptions {
  std::optional<std::string> format, output, top, html;
  bool peak = false, stacks = false, pins = false;

  void add_to(Command& command, const std::string& format_help, const std::string& output_help) {
    command.add_option("--format", format, format_help, "FORMAT");
    command.add_option("--output", output, output_help, "FILE");
    command.add_option("--html", html, "Write one self-contained page with flame graphs as well", "FILE");
    command.add_option("--top", top, "Sites in the table; 0: all of them [20]", "N");
    command.add_flag("--stacks", stacks, "Show the heaviest call stack of each site");
  }
  [[nodiscard]] const FormatName& format_or(std::string_view otherwise) const {
    const std::string name = format.value_or(std::string(otherwise));
    for (const FormatName& one : kFormats)
      if (one.name == name) return one;
    std::vector<std::string_view> known;
    for (const FormatName& one : kFormats) known.push_back(one.name);
    refuse_name("--format", name, known);
  }
  [[nodiscard]] heap::TableOptions table_options() const {
    constexpr std::uint32_t kMostSites = 1'000'000;
    heap::TableOptions table;
    std::uint32_t sites = 20;
    parse_into(sites, "--top", top, 0, kMostSites);
    table.top = sites;
    table.stacks = stacks;
    if (peak && pins) throw Failure(kExitRefused, "--pins: of what is in use now; not with --peak");
    table.moment = peak ? Moment::kPeak : pins ? Moment::kPinned : Moment::kNow;
    return table;
  }
  // Complains before minutes of a program's run are lost.
  void check_files(const std::string& to) const {
    if (to != "-") check_writable(to);
    if (html) check_writable(*html);
  }
};

std::string text_of(const HeapProfile& profile, Format format, const heap::TableOptions& table) {
  StackProfile stacks = profile.stacks;
  stacks.shown_first = heap::bytes_of(table.moment);
  switch (format) {
    case Format::kTable: return heap::table_of(profile, table);
    case Format::kPprof: return pprof_of(stacks);
    case Format::kJson: return tools::text_of(heap::json_of(profile));
  }
  __builtin_unreachable();
}

void write_text(const std::string& output, const std::string& text) {
  output == "-" ? print_to_stdout(text) : write_file(output, text);
}

// ---- heap profile -------------------------------------------------------------------------------------------------------

struct ProfileOptions {
  OutputOptions output;
  std::optional<std::string> distance;
  bool leaks = false, children = false;
};

// "524288", "512K", "1M".
std::uint64_t distance_of(const std::optional<std::string>& text) {
  constexpr std::uint64_t kLeast = 2, kMost = 1U << 30;  // FREEHOLD_PROFILE=1 is the default distance
  if (!text) return 0;
  std::uint64_t unit = 1, number = 0;
  if (text->ends_with('K')) unit = 1U << 10;
  if (text->ends_with('M')) unit = 1U << 20;
  const char* const end = text->data() + text->size() - (unit == 1 ? 0 : 1);
  const auto [parsed, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || parsed != end || number > kMost / unit || number * unit < kLeast) {
    throw Failure(kExitRefused,
                  fmt::format("--distance: '{}' is no mean distance of samples: at least 2 bytes, at most 1024M; "
                              "for example 65536, 512K or 4M",
                              printable(*text)));
  }
  return number * unit;
}

// The folder in which the program's processes write one file each.
class ProfileFolder {
 public:
  [[nodiscard]] std::string pattern() const { return folder_.path() / "%p.heap"; }
  // Reads the profiles, the started process's first. One that cannot be read is left out with a line that says so, if there
  // are others.
  [[nodiscard]] std::vector<HeapProfile> read(std::int64_t process) const {
    std::vector<HeapProfile> profiles;
    std::vector<std::string> refused;
    for (const auto& file : fs::directory_iterator(folder_.path())) {
      if (file.path().extension() != ".heap") continue;  // a process is at it, or died during it
      try {
        profiles.push_back(heap::read_profile(file.path()));
      } catch (const Failure& failure) {
        refused.emplace_back(failure.what());
        continue;
      }
      if (profiles.back().pid == static_cast<std::uint64_t>(process)) std::swap(profiles.front(), profiles.back());
    }
    if (profiles.empty() && !refused.empty()) throw Failure(kExitRefused, refused.front());
    for (const std::string& why : refused) say(fmt::format("freehold: left out: {}\n", why));
    return profiles;
  }

 private:
  TemporaryFolder folder_{"heap"};
};

void print_no_profile(const std::string& program, int status) {
  say(fmt::format("freehold: {} left no heap profile: {}\n", printable(program),
                  WIFSIGNALED(status) ? fmt::format("it was killed by signal {}", WTERMSIG(status))
                                      : "it did not load libfreehold.so, checks its blocks, or did not end by exit()"));
}

// One process's, unless all are asked for.
HeapProfile chosen(const std::vector<HeapProfile>& profiles, bool children) {
  if (children) return heap::merged(profiles);
  if (profiles.size() > 1)
    say(fmt::format("freehold: {} other processes left profiles as well: --children adds them\n", profiles.size() - 1));
  return profiles.front();
}

void print_tables(const HeapProfile& profile, const ProfileOptions& options) {
  heap::TableOptions table = options.output.table_options();
  table.stacks = table.stacks || options.leaks;
  const char* const of_each = profile.processes > 1 ? " of each process" : "";
  say(fmt::format("freehold: {}", heap::headline_of(profile)));
  if (!options.leaks) {
    table.moment = Moment::kPeak;
    say(fmt::format("\nWhen most was in use{}:\n{}", of_each, heap::table_of(profile, table)));
  }
  table.moment = Moment::kNow;
  say(fmt::format("\nStill in use at the end{}:\n{}", of_each, heap::table_of(profile, table)));
}

// It would ignore the profile, and leave none.
void refuse_checked_mode() {
  const char* const check = std::getenv("FREEHOLD_CHECK");
  if (check == nullptr || std::string_view(check) != "1") return;
  throw Failure(kExitRefused, "heap profile: FREEHOLD_CHECK=1 and a heap profile exclude each other: unset FREEHOLD_CHECK");
}

void run_profile(const ProfileOptions& options, const std::vector<std::string>& program) {
  if (program.empty())
    throw Failure(kExitRefused, "heap profile: no program given: freehold heap profile [options] -- PROGRAM ARGS...");
  const FormatName& format = options.output.format_or("pprof");
  const std::string file = options.output.output.value_or(std::string(format.file));
  if (file == "-") throw Failure(kExitRefused, "--output: standard output belongs to the program; name a file");
  heap::TableOptions table = options.output.table_options();
  table.moment = options.leaks ? Moment::kNow : Moment::kPeak;
  const std::uint64_t distance = distance_of(options.distance);
  refuse_checked_mode();
  const ProfileFolder folder;
  Launch launch{.program = {}, .arguments = program, .library = find_freehold_library()};
  launch.settings = {{"FREEHOLD_PROFILE", std::to_string(distance == 0 ? 1 : distance)},
                     {"FREEHOLD_PROFILE_FILE", folder.pattern()}};
  launch.program = find_program(program.front());
  check_program(launch.program, launch.library);
  options.output.check_files(file);
  const Outcome outcome = supervise(launch);
  {
    const std::vector<HeapProfile> profiles = folder.read(outcome.process);
    if (profiles.empty()) {
      print_no_profile(program.front(), outcome.wait_status);
    } else {
      const HeapProfile profile = chosen(profiles, options.children);
      print_tables(profile, options);  // first: a full disk leaves them, at least
      write_file(file, text_of(profile, format.format, table));
      if (options.output.html) write_file(*options.output.html, heap::page_of(profile));
      say(fmt::format("\nwrote {} ({})\n", printable(file), format.name));
    }
  }
  std::error_code ignored;
  fs::remove_all(fs::path(folder.pattern()).parent_path(), ignored);  // end_like() runs no destructors
  end_like(outcome.wait_status);
}

// ---- heap snapshot, heap show, heap diff -------------------------------------------------------------------------------

struct ShowOptions {
  OutputOptions output;
  std::vector<std::string> files;
};

// Returns what `read` returns, once the options are known to be right.
template <class Read>
int show(const OutputOptions& options, Read read) {
  const Format format = options.format_or("table").format;
  const heap::TableOptions table = options.table_options();
  const std::string to = options.output.value_or("-");
  options.check_files(to);
  const HeapProfile profile = read();
  const std::string text = text_of(profile, format, table);
  if (options.html) write_file(*options.html, heap::page_of(profile));
  if (format != Format::kTable) return write_text(to, text), 0;
  write_text(to, heap::headline_of(profile) + '\n' + text + (options.pins ? '\n' + heap::pins_advice_of(profile) : ""));
  return 0;
}

int run_show(const ShowOptions& options) {
  return show(options.output, [&options] {
    if (options.files.empty())
      throw Failure(kExitRefused, "heap show: which file? FREEHOLD_PROFILE_FILE names where they go");
    std::vector<HeapProfile> profiles;
    for (const std::string& file : options.files) profiles.push_back(heap::read_profile(file));
    return heap::merged(profiles);
  });
}

struct SnapshotOptions {
  OutputOptions output;
  std::optional<std::string> pid;
};

int run_snapshot(const SnapshotOptions& options) {
  open_standard_files();
  const pid_t pid = process_number("heap snapshot", options.pid);
  return show(options.output, [&] { return heap::snapshot_of(pid, options.output.pins); });
}

struct SwitchOptions {
  std::optional<std::string> pid, distance;
};

// Why a process that was asked for its profile has none.
std::string why_no_profile(profile::ProfileAnswer answer, pid_t pid) {
  const char* why = "it has no memory for one";
  switch (answer) {
    case profile::ProfileAnswer::kNone:
    case profile::ProfileAnswer::kDone:
    case profile::ProfileAnswer::kNoMemory: break;
    case profile::ProfileAnswer::kChecked:
      why = "it checks its blocks (FREEHOLD_CHECK=1), which excludes a heap profile";
      break;
    case profile::ProfileAnswer::kConfined:
      why =
          "it has put itself under a filter of system calls (seccomp), and could load no unwinder; start it with "
          "FREEHOLD_PROFILE=1";
      break;
    case profile::ProfileAnswer::kNoThreads:
      why =
          "it may have no thread of Freehold's (FREEHOLD_BACKGROUND_THREAD=off, or setuid), which begins one; start it "
          "with FREEHOLD_PROFILE=1";
      break;
    case profile::ProfileAnswer::kNoThread: why = "the system gives it no thread to begin one"; break;
  }
  return fmt::format("process {} begins no heap profile: {}", pid, why);
}

void switch_from_outside(const char* command, const SwitchOptions& options, std::uint64_t distance) {
  open_standard_files();
  const pid_t pid = process_number(command, options.pid);
  const auto answer = freehold::live::switch_profile(pid, distance);
  using freehold::live::SwitchResult;
  switch (answer.result) {
    case SwitchResult::kRefused:
      throw Failure(kExitRefused,
                    answer.refusal == freehold::live::LiveRefusal::kNoProfile
                        ? fmt::format("the Freehold of process {} cannot be asked for a heap profile; start it with "
                                      "FREEHOLD_PROFILE=1",
                                      pid)
                        : heap::why_no_profile_read(answer.refusal, pid, answer.version));
    case SwitchResult::kAnswered: throw Failure(kExitRefused, why_no_profile(answer.answer, pid));
    case SwitchResult::kNotOn:
      throw Failure(kExitRefused, fmt::format("the heap profile of process {0} is not on: freehold heap start {0}", pid));
    case SwitchResult::kMayNotClone:
      throw Failure(kExitRefused,
                    fmt::format("process {} has one thread and is under a filter of system calls (seccomp), which may end "
                                "it when another thread begins the profile; start it with FREEHOLD_PROFILE=1",
                                pid));
    case SwitchResult::kAsked:
      return say(
          fmt::format("freehold: process {} takes no fresh memory at the moment; its heap profile {} as soon as it "
                      "does\n",
                      pid, distance != 0 ? "begins" : "ends"));
    case SwitchResult::kDone: break;
  }
  say(distance == 0 ? fmt::format("freehold: the heap profile of process {} is off; blocks sampled so far stay in it\n", pid)
                    : fmt::format("freehold: the heap profile of process {0} is on: freehold heap snapshot {0}\n", pid));
}

int run_diff(const ShowOptions& options) {
  const Format format = options.output.format_or("table").format;
  heap::TableOptions table = options.output.table_options();
  table.is_growth = true;
  const std::string to = options.output.output.value_or("-");
  options.output.check_files(to);
  if (options.files.size() != 2) throw Failure(kExitRefused, "heap diff: two files, the earlier one first: BEFORE AFTER");
  const HeapProfile before = heap::read_profile(options.files[0]), after = heap::read_profile(options.files[1]);
  const std::string text = text_of(heap::growth(before, after), format, table);
  if (options.output.html) write_file(*options.output.html, heap::growth_page_of(before, after, table.moment));
  write_text(to, format == Format::kTable ? heap::headline_of(before) + heap::headline_of(after) + '\n' + text : text);
  return 0;
}

constexpr const char* kFormatHelp = "table, pprof or json";
constexpr const char* kDistanceHelp = "Mean distance of samples in bytes; K and M may follow [512K]";

void add_profile(Command& heap, Invocation& invocation) {
  static ProfileOptions options;
  Command command = heap.add_subcommand(
      "profile", "Run a program and see what holds its memory: freehold heap profile -- PROGRAM ARGS...");
  command.add_option("--distance", options.distance, kDistanceHelp, "BYTES");
  options.output.add_to(command, fmt::format("Format of the file: {} [pprof]", kFormatHelp),
                        "File for the profile [heap.pb.gz, and such by the format]");
  command.add_flag("--leaks", options.leaks, "Only what is still in use at the end, each site with its call stack");
  command.add_flag("--children", options.children,
                   "Add the profiles of other processes that the program started, of each its own peak");
  command.footer("The exit status is the program's. docs/heap-profile.md explains the figures.");
  command.on_use([&invocation] { run_profile(options, invocation.program); });
}

void add_show(Command& heap, Invocation& invocation) {
  static ShowOptions options;
  Command command = heap.add_subcommand("show", "What a heap profile says: in a table, or in another format");
  command.add_words("profiles", options.files, "What a process wrote, or JSON of this command; several are added", "FILE");
  options.output.add_to(command, fmt::format("{} [table]", kFormatHelp), "File to write to [-: standard output]");
  command.add_flag("--peak", options.output.peak, "What was in use when it was most, instead of what is in use");
  command.footer("docs/heap-profile.md explains the figures.");
  command.on_use([&invocation] { invocation.exit_code = run_show(options); });
}

void add_snapshot(Command& heap, Invocation& invocation) {
  static SnapshotOptions options;
  Command command =
      heap.add_subcommand("snapshot", "What holds the memory of a process that runs, which it does not notice");
  command.add_option("pid", options.pid, "Number of the process", "PID");
  options.output.add_to(command, fmt::format("{} [table]", kFormatHelp), "File to write to [-: standard output]");
  command.add_flag("--peak", options.output.peak, "What was in use when it was most, instead of what is in use");
  command.add_flag("--pins", options.output.pins, "What keeps free memory: blocks whose pages are not full");
  command.footer(
      "Its heap profile must be on: FREEHOLD_PROFILE=1 freehold run -- PROGRAM. The process is neither stopped nor "
      "signalled. The same user or root may read it; where kernel.yama.ptrace_scope is 1, the same user may if the program "
      "was started by freehold run --live. docs/heap-profile.md explains the figures.");
  command.on_use([&invocation] { invocation.exit_code = run_snapshot(options); });
}

void add_start_and_stop(Command& heap) {
  static SwitchOptions options;
  Command start = heap.add_subcommand("start", "Switch the heap profile of a process on while it runs");
  start.add_option("pid", options.pid, "Number of the process", "PID");
  start.add_option("--distance", options.distance, kDistanceHelp, "BYTES");
  start.footer(
      "The process is neither stopped nor signalled; a busy one begins within a second. What it allocated before is not in "
      "the profile. Whose processes: as of freehold heap snapshot. docs/heap-profile.md explains the figures.");
  start.on_use([] {
    switch_from_outside("heap start", options, options.distance ? distance_of(options.distance) : profile::kDefaultMean);
  });
  Command stop = heap.add_subcommand("stop", "Switch the heap profile of a process off while it runs");
  stop.add_option("pid", options.pid, "Number of the process", "PID");
  stop.footer("No further block is sampled. freehold heap snapshot still shows those that were, until they are freed.");
  stop.on_use([] { switch_from_outside("heap stop", options, 0); });
}

void add_diff(Command& heap, Invocation& invocation) {
  static ShowOptions options;
  Command command = heap.add_subcommand("diff", "What grew between two heap profiles of a program");
  command.add_words("profiles", options.files, "The earlier profile, then the later one", "FILE", 2);
  options.output.add_to(command, fmt::format("{} [table]", kFormatHelp), "File to write to [-: standard output]");
  command.add_flag("--peak", options.output.peak, "Compare what was in use when it was most");
  command.footer("docs/heap-profile.md explains the figures.");
  command.on_use([&invocation] { invocation.exit_code = run_diff(options); });
}

}  // namespace

void add_heap(CLI::App& app, Invocation& invocation) {
  Command command(app, "heap", "What holds a program's memory: a sampled heap profile, by call stack");
  command.footer("docs/heap-profile.md explains the figures.");
  command.on_use([] {
    throw Failure(
        kExitRefused,
        "heap: what about it? freehold heap profile -- PROGRAM ARGS..., heap start PID, heap snapshot PID, heap stop PID, "
        "heap show FILE, heap diff FILE FILE");
  });
  add_profile(command, invocation);
  add_snapshot(command, invocation);
  add_start_and_stop(command);
  add_show(command, invocation);
  add_diff(command, invocation);
}

}  // namespace freehold::cli
