// SPDX-License-Identifier: MIT
#include "tools/launch/preload_check.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <vector>

#include "tools/launch/program.hpp"
#include "tools/live/figures.hpp"
#include "tools/live/proc_folder.hpp"
#include "tools/live/process.hpp"
#include "tools/live/refusal.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/file_descriptor.hpp"
#include "tools/support/live_process.hpp"

namespace freehold::inline tools {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kLinkIt = "link it with freehold::malloc";

bool is_freehold(std::string_view file) {
  const std::string_view name = file.substr(file.rfind('/') + 1);
  return name.starts_with("libfreehold.so");
}

// Files that the process has mapped, each once, in the order of addresses.
std::vector<std::string> mapped_files(pid_t process) {
  std::istringstream maps(freehold::live::maps_of(process));
  std::vector<std::string> files;
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find(" /");
    if (path == std::string::npos) continue;
    constexpr std::string_view kDeleted = " (deleted)";
    std::string file = line.substr(path + 1);
    if (file.ends_with(kDeleted)) file.resize(file.size() - kDeleted.size());
    if (std::ranges::find(files, file) == files.end()) files.push_back(std::move(file));
  }
  return files;
}

// The value of a variable in the environment that the process was started with.
std::optional<std::string> variable_of(pid_t process, std::string_view name) {
  const std::string text = freehold::live::text_of_proc_file(freehold::live::proc_folder(process) / "environ");
  for (std::size_t at = 0; at < text.size(); at = text.find('\0', at) + 1) {
    const std::string_view one = text.c_str() + at;
    if (one.starts_with(name) && one.substr(name.size()).starts_with('=')) return std::string(one.substr(name.size() + 1));
    if (text.find('\0', at) == std::string::npos) break;
  }
  return std::nullopt;
}

std::vector<std::string> preloaded(const std::string& value) {
  std::vector<std::string> files(1);
  for (const char letter : value) {
    if (letter != ':' && letter != ' ')
      files.back() += letter;
    else if (!files.back().empty())
      files.emplace_back();
  }
  if (files.back().empty()) files.pop_back();
  return files;
}

bool is_secure(pid_t process) {  // AT_SECURE of its auxiliary vector
  const std::string text = freehold::live::text_of_proc_file(freehold::live::proc_folder(process) / "auxv");
  unsigned long pair[2];
  for (std::size_t at = 0; at + sizeof pair <= text.size(); at += sizeof pair) {
    std::memcpy(pair, text.data() + at, sizeof pair);
    if (pair[0] == AT_SECURE) return pair[1] != 0;
  }
  return false;
}

bool promises_rights(int program) {
  struct stat info{};
  if (::geteuid() == 0 || ::fstat(program, &info) != 0) return false;
  return ((info.st_mode & S_ISUID) != 0 && info.st_uid != ::getuid()) ||
         ((info.st_mode & S_ISGID) != 0 && info.st_gid != ::getgid()) ||
         ::fgetxattr(program, "security.capability", nullptr, 0) > 0;
}

class Check {
 public:
  Check(pid_t process, std::string library, bool is_traced)
      : library_(std::move(library)), is_traced_(is_traced), root_(freehold::live::proc_folder(process) / "root") {
    made_.process = process;
    std::error_code none;
    made_.program = fs::read_symlink(freehold::live::proc_folder(process) / "exe", none).string();
    files_ = mapped_files(process);
  }

  PreloadCheck run() && {
    const FileDescriptor program = open_program();
    if (!program || files_.empty()) {
      say_unknown();
    } else if (const Elf elf = read_elf(program.get()); elf.interpreter.find("/ld-musl-") != std::string::npos) {
      say(Preload::kMusl, "a program for the musl C library; libfreehold.so needs glibc",
          fmt::format("{}, built for musl", kLinkIt));  // its linker may have loaded the library in vain
    } else if (!find_malloc(program.get())) {
      say_why_not(program.get(), elf);
    }
    return std::move(made_);
  }

 private:
  void say(Preload preload, std::string why, std::string way_out = {}) {
    made_.preload = preload;
    made_.why = std::move(why);
    made_.way_out = std::move(way_out);
  }
  [[nodiscard]] FileDescriptor open_program() const {
    return FileDescriptor(::open((freehold::live::proc_folder(made_.process) / "exe").c_str(), O_RDONLY | O_CLOEXEC));
  }
  // In the process's own file system.
  [[nodiscard]] FileDescriptor open_file(const std::string& path) const {
    FileDescriptor file(::open((root_.string() + path).c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat facts{};
    // The process names the path, and may have put a pipe there.
    return file && ::fstat(file.get(), &facts) == 0 && S_ISREG(facts.st_mode) ? std::move(file) : FileDescriptor();
  }
  [[nodiscard]] bool has_malloc(const std::string& path) const {
    const FileDescriptor file = open_file(path);
    return file && exports_function(file.get(), "malloc");
  }
  // The name may be a link, or have no folder.
  [[nodiscard]] bool same_file(const std::string& mapped, const std::string& name) const {
    if (name.find('/') == std::string::npos) return mapped.ends_with('/' + name);
    std::error_code none;
    return mapped == name || fs::equivalent(root_.string() + mapped, root_.string() + name, none);
  }

  void say_unknown() {
    using freehold::live::LiveRefusal;
    const LiveRefusal refusal = freehold::live::refusal_of(made_.process);
    if (refusal == LiveRefusal::kNotAllowed || refusal == LiveRefusal::kNone)
      say(Preload::kUnknown, why_hidden(made_.process, freehold::live::user_of(made_.process), ::geteuid()));
    else
      say(Preload::kUnknown, refusal == LiveRefusal::kKernelThread ? "it is a thread of the kernel's, which has no malloc"
                                                                   : "it ended before it could be looked at");
  }

  // Finds where the library is loaded: whose malloc comes first. False: it is not loaded.
  bool find_malloc(int program) {
    const auto own = std::ranges::find_if(files_, is_freehold);
    const bool is_linked_in = own == files_.end() && freehold_in_program();
    if (own == files_.end() && !is_linked_in) return false;
    if (is_linked_in) {
      say(Preload::kServed, "linked into the program");
    } else if (exports_function(program, "malloc")) {
      say_other(made_.program);
    } else if (const std::string other = first_of_preloaded(); !other.empty()) {
      say_other(other);
    } else {
      say(Preload::kServed, *own);
    }
    return true;
  }
  [[nodiscard]] bool freehold_in_program() const {
    const std::string maps = freehold::live::maps_of(made_.process);
    return freehold::live::read_live_figures(made_.process, maps).has_value();
  }
  void say_other(const std::string& file) {
    say(Preload::kOtherMalloc, fmt::format("the malloc of {} comes first", file),
        file == made_.program ? "build it without that malloc, or link it with freehold::malloc"
                              : "name libfreehold.so before that library in LD_PRELOAD");
  }
  // A library with a malloc that is preloaded before Freehold's.
  [[nodiscard]] std::string first_of_preloaded() const {
    for (const std::string& name : preloaded(variable_of(made_.process, "LD_PRELOAD").value_or("")))
      for (const std::string& file : files_) {
        if (!same_file(file, name)) continue;
        if (is_freehold(file)) return {};
        if (has_malloc(file)) return file;
      }
    return {};
  }

  void say_why_not(int program, const Elf& elf) {
    const FileDescriptor library(::open(library_.c_str(), O_RDONLY | O_CLOEXEC));
    const Elf ours = read_elf(library.get());
    if (!elf.same_machine(ours))
      say(Preload::kArchitecture,
          fmt::format("a program for {}; the library is for {}", machine_text(elf), machine_text(ours)),
          "build Freehold for it and set FREEHOLD_LIBRARY");
    else if (elf.interpreter.empty() && !elf.is_library)
      say(Preload::kStatic, "a static program has no dynamic linker that would load the library",
          fmt::format("{}, or build it dynamically", kLinkIt));
    else if (is_secure(made_.process) || (is_traced_ && promises_rights(program)))
      say(Preload::kPrivileges, "setuid, setgid or file capabilities: the dynamic linker ignores LD_PRELOAD",
          fmt::format("run an ordinary copy of it, or {}", kLinkIt));
    else
      say_environment();
  }

  void say_environment() {
    const std::optional<std::string> value = variable_of(made_.process, "LD_PRELOAD");
    const auto names = preloaded(value.value_or(""));
    const auto named = std::ranges::find_if(names, is_freehold);
    if (named == names.end()) {
      say(Preload::kEnvironment,
          value ? fmt::format("LD_PRELOAD is '{}' there, without libfreehold.so", *value)
                : "LD_PRELOAD is not in its environment",
          "start it by 'freehold run', or set LD_PRELOAD=" + library_ +
              " where it is started; env -i, sudo, su, and service managers clear the environment");
      return;
    }
    if (named->starts_with('/') && !open_file(*named))
      say(Preload::kPath, fmt::format("LD_PRELOAD names {}, which is not there or cannot be read", *named),
          "name a file that is there, where the process runs: LD_PRELOAD=" + library_);
    else
      say(Preload::kPath, fmt::format("the dynamic linker did not load {}, which LD_PRELOAD names", *named),
          "name the library by its whole path; LD_DEBUG=libs says what the dynamic linker tried");
  }

  std::string library_;
  bool is_traced_;
  fs::path root_;
  std::vector<std::string> files_;
  PreloadCheck made_;
};

}  // namespace

const char* name_of(Preload preload) {
  switch (preload) {
    case Preload::kServed: return "served";
    case Preload::kEnvironment: return "environment";
    case Preload::kPath: return "path";
    case Preload::kPrivileges: return "privileges";
    case Preload::kStatic: return "static";
    case Preload::kOtherMalloc: return "other-malloc";
    case Preload::kMusl: return "musl";
    case Preload::kArchitecture: return "architecture";
    case Preload::kUnknown: break;
  }
  return "unknown";
}

PreloadCheck check_preload(pid_t process, const std::string& library, bool is_traced) {
  return Check(process, library, is_traced).run();
}

}  // namespace freehold::inline tools
