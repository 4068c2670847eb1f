// SPDX-License-Identifier: MIT
// Random damage in the files that the command reads: a recording, a heap profile as a process and as JSON has it, a
// doctor's report, a perf map and an ELF file. Others may have written them. A reader must refuse the file or read what is
// whole of it, and takes little memory and time for that.
//
//   file_fuzz [ROUNDS [SEED]]
//
// Each round damages one valid file of each kind and reads it with a bound on the address space and on the time.
#include <elf.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "cli/heap/profile.hpp"
#include "freehold/alloc/engine.hpp"
#include "freehold/alloc/observe/profile.hpp"
#include "tests/unit/cli/doctor_support.hpp"
#include "tools/doctor/facts/elf_symbols.hpp"
#include "tools/doctor/facts/perf_map.hpp"
#include "tools/doctor/facts/recording.hpp"
#include "tools/doctor/probe/trace_format.hpp"
#include "tools/doctor/report/compare_answer.hpp"
#include "tools/doctor/report/results_json.hpp"
#include "tools/launch/program.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/output_file.hpp"

namespace freehold::fuzz {
namespace {
namespace fs = std::filesystem;
using Random = std::mt19937_64;

constexpr std::size_t kMostBytes = std::size_t{512} << 20;  // that a reader may take
constexpr unsigned kMostSeconds = 20;

char g_now[128];  // what is read, for the last words
void say_which(int signal) {
  (void)!::write(2, g_now, std::strlen(g_now));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void store(const fs::path& file, std::string_view content) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
}

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

doctor::FileHeader header_of(std::uint64_t extents) {
  doctor::FileHeader header{};
  header.magic = doctor::kTraceMagic;
  header.pid = 7;
  header.begin = {1'000, 1'000};
  header.last = {100'000, 100'000};
  header.extents = extents;
  return header;
}

// Three threads that allocate, free and wait.
std::string made_recording() {
  using namespace doctor;
  std::string bytes;
  append(bytes, header_of(4));
  for (std::uint32_t thread = 1; thread <= 3; ++thread) {
    bytes.resize(thread * kExtentBytes);
    std::string records;
    const auto add = [&](RecordKind kind, const auto& body) {
      append(records, RecordHeader{kind, 2, static_cast<std::uint32_t>(sizeof(RecordHeader) + sizeof body + 16)});
      append(records, body);
      append(records, std::uint64_t{0x401000} + 16 * thread);
      append(records, std::uint64_t{0x402000});
    };
    for (std::uint64_t i = 0; i < 100; ++i) {
      const std::uint64_t ticks = 1'000 + 900 * i, block = 0x10000 + 48 * (i % 20) + 1024 * thread;
      add(RecordKind::kAllocate, Sample{ticks, block, 40, 10, 50, 0, 0, 1});
      add(RecordKind::kPageAllocate, PageEvent{ticks, block, 40, i / 50});
      add(RecordKind::kPageFree, PageEvent{ticks + 400, block, 0, i / 50});
      add(i % 2 == 0 ? RecordKind::kFree : RecordKind::kTimedFree, Sample{ticks + 500, block, 0, 10, 50, 0, 0, 0});
      add(RecordKind::kWait, Wait{ticks, 0x5000, 90, 1, i % kWaitKinds});
    }
    add(RecordKind::kThread, ThreadTotals{99'000, 1'000, 900, 5'000, 100, 1});
    append(bytes, ExtentHeader{thread, static_cast<std::uint32_t>(records.size())});
    bytes += records;
  }
  return bytes;
}

// Bytes, words and whole parts: changed, cut off, left out, repeated. Numbers in a text become the greatest and negative
// ones.
void damage(std::string& file, Random& random) {
  for (std::uint64_t n = 1 + random() % 6; n > 0 && !file.empty(); --n) {
    const std::size_t at = random() % file.size(), length = std::min<std::size_t>(1 + random() % 64, file.size() - at);
    switch (random() % 10) {
      case 0: file[at] = static_cast<char>(random()); break;
      case 1: file[at] = static_cast<char>(file[at] ^ (1 << random() % 8)); break;
      case 2: file.resize(at); break;
      case 3: file.erase(at, length); break;
      case 4: file.insert(random() % file.size(), file.substr(at, length)); break;
      case 5: {  // a part that is repeated many times
        std::string parts;
        for (std::uint64_t i = 0; i < 1'000; ++i) parts += file.substr(at, length);
        file.insert(at, parts);
        break;
      }
      case 6: file.insert(at, std::string(random() % 100'000, "[{\"1 "[random() % 5])); break;
      case 7: {
        static constexpr const char* kNumbers[] = {"-1", "18446744073709551615", "1e308", "4294967296", "null", "\"\"", "[]",
                                                   "{}"};
        const std::size_t digit = file.find_first_of("0123456789", at);
        if (digit == std::string::npos) break;
        const std::size_t end = file.find_first_not_of("0123456789.", digit);
        file.replace(digit, end == std::string::npos ? end : end - digit, kNumbers[random() % std::size(kNumbers)]);
        break;
      }
      default: {  // a word of a binary file
        const std::size_t word = at / 8 * 8;
        if (word + 8 > file.size()) break;
        const std::uint64_t shift = random() % 64, value = random() % 3 == 0 ? random() : ~std::uint64_t{0} >> shift;
        std::memcpy(file.data() + word, &value, random() % 2 == 0 ? 4 : 8);
      }
    }
  }
}

void read_recording(const fs::path& file) {
  doctor::NoRecording no;
  (void)doctor::read_recording(file, no);
}
void read_profile(const fs::path& file) {
  const cli::heap::HeapProfile profiles[2] = {cli::heap::read_profile(file), cli::heap::read_profile(file)};
  (void)cli::heap::json_of(cli::heap::merged(profiles));
  (void)cli::heap::growth(profiles[0], profiles[1]);
}
void read_report(const fs::path& file) {
  const doctor::report::NamedSide side = doctor::report::read_side(file.string());
  (void)doctor::report::compare(side, side);
}
void read_perf_map(const fs::path& file) {
  const doctor::PerfMap map = doctor::PerfMap::of_file(file, ::geteuid());
  for (std::uint64_t address = 0x1000; address < 0x9000; address += 0x100) (void)map.frame(address);
}
void read_elf(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  (void)tools::machine_text(tools::read_elf(fd));
  (void)tools::exports_function(fd, "malloc");
  ::close(fd);
  const auto elf = doctor::ElfFile::open(file.string());
  if (!elf) throw tools::Failure(tools::kExitRefused, "no ELF file");
  std::size_t bytes = elf->section(".note.gnu.build-id").size() + (elf->is_program() ? 1 : 0);
  elf->each_symbol([&](const doctor::ElfSymbol& symbol) { bytes += symbol.name.size(); });
}

struct Kind {
  const char* name;
  std::string valid;
  void (*read)(const fs::path&);
  std::uint64_t whole = 0, refused = 0;
};

std::vector<Kind> kinds(const fs::path& folder) {
  (void)alloc::start_profile(4096);
  for (int i = 0; i < 500; ++i) static_cast<void>(alloc::allocate(500));
  const fs::path profile = folder / "profile";
  if (!alloc::write_profile(profile.c_str())) std::abort();
  std::string perf;
  for (unsigned i = 0; i < 100; ++i)
    perf += std::to_string(1000 + 40 * i) + " 20 py::work" + std::to_string(i) + ":/work.py\n";
  return {{"recording", made_recording(), read_recording},
          {"heap profile", content_of(profile), read_profile},
          {"heap profile as JSON", cli::heap::json_of(cli::heap::read_profile(profile)).dump(), read_profile},
          {"report", doctor::report::report_of(doctor::report::diagnosis_with(doctor::Cause::kAllocatorLock)).dump(),
           read_report},
          {"perf map", perf, read_perf_map},
          {"ELF file", content_of(FREEHOLD_SMALL_LIBRARY), read_elf}};
}

// These cases were found by hand and by rounds: each took minutes or more.
std::string blocks_to_the_end_of_memory() {
  using namespace doctor;
  std::string bytes;
  append(bytes, header_of(200));
  for (std::uint32_t thread = 1; thread < 200; ++thread) {
    bytes.resize(thread * kExtentBytes);
    std::string records;
    while (records.size() + 40 < kExtentBytes - sizeof(ExtentHeader)) {
      append(records, RecordHeader{RecordKind::kPageAllocate, 0, sizeof(RecordHeader) + sizeof(PageEvent)});
      append(records, PageEvent{2'000, 0x10000, ~std::uint64_t{0}, 0});
    }
    append(bytes, ExtentHeader{thread, static_cast<std::uint32_t>(records.size())});
    bytes += records;
  }
  return bytes;
}
std::string symbol_tables_beyond_the_file() {
  constexpr std::uint16_t kTables = 65'535;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_phnum = 1;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phoff = sizeof header;
  header.e_shnum = kTables;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shoff = sizeof header + sizeof(Elf64_Phdr);
  std::string bytes;
  append(bytes, header);
  append(bytes, Elf64_Phdr{});
  Elf64_Shdr table{};
  table.sh_type = SHT_DYNSYM;
  table.sh_size = std::size_t{1} << 28;
  for (unsigned i = 0; i < kTables; ++i) append(bytes, table);
  return bytes;
}

void bound_memory() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit most{pages * static_cast<std::size_t>(::getpagesize()) + kMostBytes, RLIM_INFINITY};
  ::setrlimit(RLIMIT_AS, &most);
}

int fuzz(std::uint64_t rounds, std::uint64_t first) {
  const tools::TemporaryFolder folder("fuzz");
  std::vector<Kind> all = kinds(folder.path());
  const fs::path file = folder.path() / "damaged";
  for (Kind& kind : all) {
    store(file, kind.valid);
    kind.read(file);  // throws if it is not valid
  }
  bound_memory();
  const Kind cases[] = {{"BlocksToTheEndOfMemory_Quick", blocks_to_the_end_of_memory(), read_recording},
                        {"SymbolTablesBeyondTheFile_Quick", symbol_tables_beyond_the_file(), read_elf}};
  for (const Kind& one : cases) {
    store(file, one.valid);
    std::snprintf(g_now, sizeof g_now, "file_fuzz: %s\n", one.name);
    ::alarm(kMostSeconds);
    try {
      one.read(file);
    } catch (const tools::Failure&) {
      // Refused, as it may be.
    }
  }
  std::chrono::nanoseconds longest{0};
  for (std::uint64_t seed = first; seed < first + rounds; ++seed) {
    for (Kind& kind : all) {
      Random random(seed);
      std::string damaged = kind.valid;
      damage(damaged, random);
      store(file, damaged);
      std::snprintf(g_now, sizeof g_now, "file_fuzz: %s, file_fuzz 1 %llu\n", kind.name,
                    static_cast<unsigned long long>(seed));
      ::alarm(kMostSeconds);
      const auto begin = std::chrono::steady_clock::now();
      try {
        kind.read(file);
        ++kind.whole;
      } catch (const tools::Failure&) {
        ++kind.refused;
      } catch (const std::exception& other) {
        std::fprintf(stderr, "%s  %s\n", g_now, other.what());
        return 1;
      }
      longest = std::max(longest, std::chrono::steady_clock::now() - begin);
    }
  }
  ::alarm(0);
  bool both = true;
  for (const Kind& kind : all) {
    std::printf("%s: %llu read, %llu refused\n", kind.name, static_cast<unsigned long long>(kind.whole),
                static_cast<unsigned long long>(kind.refused));
    both = both && kind.whole > 0;
  }
  std::printf("longest %.2f s\n", std::chrono::duration<double>(longest).count());
  return both || rounds < 100 ? 0 : 1;  // a reader that refuses everything was not tried
}

}  // namespace
}  // namespace freehold::fuzz

int main(int argc, char** argv) {
  for (const int fatal : {SIGALRM, SIGSEGV, SIGABRT, SIGBUS, SIGFPE}) std::signal(fatal, freehold::fuzz::say_which);
  const std::uint64_t rounds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 300;
  return freehold::fuzz::fuzz(rounds, argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
}
