// SPDX-License-Identifier: MIT
// The code of this process's own malloc, found from outside as that of another process would be.
#include "tools/doctor/facts/allocator_code.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "tools/doctor/facts/elf_symbols.hpp"
#include "tools/doctor/run/sampler.hpp"
#include "tools/live/process.hpp"

// If it is linked with OpenMP, this process has a lock of it.
extern "C" [[gnu::weak]] void omp_set_lock(void*);

// Begins like one of tcmalloc's, and is none.
extern "C" [[gnu::noinline]] int tc_unrelated(int n) { return n + 1; }

namespace freehold::doctor {
namespace {

std::string own_maps() { return live::maps_of(::getpid()); }
std::uint64_t address_of(const char* name) { return reinterpret_cast<std::uint64_t>(::dlsym(RTLD_DEFAULT, name)); }

TEST(AllocatorCode, OwnProcess_FunctionsAreTold) {
  const AllocatorCode code(live::code_mappings(own_maps()), "");
  for (const char* const name : {"malloc", "free", "calloc", "realloc", "malloc_trim"})
    EXPECT_EQ(code.kind_of(address_of(name) + 2), CodeKind::kMalloc) << name;
  for (const char* const name : {"munmap", "madvise", "mprotect"})
    EXPECT_EQ(code.kind_of(address_of(name) + 2), CodeKind::kMemoryCall) << name;
  for (const char* const name : {"pthread_mutex_lock", "pthread_mutex_unlock"})
    EXPECT_EQ(code.kind_of(address_of(name) + 2), CodeKind::kLock) << name;
  for (const char* const name : {"pthread_rwlock_rdlock", "pthread_rwlock_unlock", "sem_post"})
    EXPECT_EQ(code.kind_of(address_of(name) + 2), CodeKind::kWait) << name;
  for (const char* const name : {"rand", "printf", "strtol", "qsort", "pthread_create", "obstack_free"})
    EXPECT_EQ(code.kind_of(address_of(name) + 2), CodeKind::kOther) << name;
  EXPECT_EQ(code.kind_of(reinterpret_cast<std::uint64_t>(&tc_unrelated)), CodeKind::kOther);
  EXPECT_EQ(code.kind_of(0), CodeKind::kOther);
  EXPECT_EQ(code.kind_of(~std::uint64_t{0}), CodeKind::kOther);
  EXPECT_EQ(code.kind_of(reinterpret_cast<std::uint64_t>(&own_maps)), CodeKind::kOther);
  EXPECT_NE(code.malloc_file().find("libc.so"), std::string::npos);
}

// All of a library that is there for its malloc, tbbmalloc's too, which has malloc in a library beside it.
TEST(AllocatorCode, LibrariesOfAllocators_AreMalloc) {
  for (const char* const name : {"libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2", "libtbbmalloc.so.2"}) {
    const std::string file = std::string("/usr/lib/x86_64-linux-gnu/") + name;
    if (!std::filesystem::exists(file)) continue;
    const AllocatorCode code({{.begin = 0x10000, .end = 0x20000, .offset = 0x1000, .file = file}}, "");
    EXPECT_EQ(code.kind_of(0x10004), CodeKind::kMalloc) << name;
    EXPECT_EQ(code.kind_of(0x1fff0), CodeKind::kMalloc) << name;
    EXPECT_EQ(code.kind_of(0x20000), CodeKind::kOther) << name;
  }
}

// A program that calls OpenMP's locks, as this one does, may wait for them.
TEST(AllocatorCode, RuntimeOfOpenMp_TeamButBesideLocks) {
  const std::string file = "/usr/lib/x86_64-linux-gnu/libgomp.so.1";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there";
  std::vector<live::CodeMapping> mappings{{.begin = 0x10000, .end = 0x20000, .offset = 0x1000, .file = file}};
  EXPECT_EQ(AllocatorCode(mappings, "").kind_of(0x10004), CodeKind::kTeam);
  mappings.push_back({.begin = 0x30000, .end = 0x40000, .offset = 0x1000, .file = "/proc/self/exe"});
  EXPECT_EQ(AllocatorCode(mappings, "").kind_of(0x10004), CodeKind::kOther);
  if (&omp_set_lock != nullptr) omp_set_lock(nullptr);
}

// The kinds of a program's functions whose mangled name begins like this.
std::map<CodeKind, int> kinds_of(const std::string& program, std::string_view prefix) {
  const AllocatorCode code({{.begin = 1, .end = std::filesystem::file_size(program), .offset = 1, .file = program}}, "");
  const auto elf = ElfFile::open(program);
  std::map<CodeKind, int> kinds;
  elf->each_symbol([&](const ElfSymbol& symbol) {
    if (symbol.offset != 0 && symbol.bytes > 2 && symbol.name.starts_with(prefix)) ++kinds[code.kind_of(symbol.offset + 1)];
  });
  return kinds;
}

// Code of an allocator in the program's own file belongs to malloc, above all the waiting.
TEST(AllocatorCode, LinkedIn_ItsLocksAreItsOwn) {
  const struct {
    const char* program;
    const char* function;
  } cases[] = {{FREEHOLD_WITH_TCMALLOC, "_ZN8SpinLock"},
               {FREEHOLD_WITH_TCMALLOC, "_ZN8tcmalloc"},
               {FREEHOLD_WITH_JEMALLOC, "je_malloc_mutex_lock_slow"},
               {FREEHOLD_SPINNING_MALLOC, "malloc"},
               {FREEHOLD_SPINNING_MALLOC, "free"}};
  for (const auto& [program, function] : cases) {
    auto kinds = kinds_of(program, function);
    EXPECT_EQ(kinds[CodeKind::kOther], 0) << function;
    EXPECT_GT(kinds[CodeKind::kOwnAllocator] + kinds[CodeKind::kMalloc], 0) << function;
  }
  EXPECT_EQ(kinds_of(FREEHOLD_SPINNING_MALLOC, "main").count(CodeKind::kOther), 1u);
}

TEST(CodeMappings, Lines_CodeOfFilesIsLeft) {
  const auto mappings = live::code_mappings(
      "55a0-55b0 r--p 00000000 fd:00 1    /bin/x\n"
      "55b0-55c8 r-xp 00010000 fd:00 1    /bin/with a blank (deleted)\n"
      "7000-7010 r-xp 00000000 00:00 0    [vdso]\n"
      "7010-7020 rwxp 00000000 00:00 0 \n"
      "7f00000000-7f00001000 rwxp 00000abc 00:00 0 /lib/libc.so.6");
  ASSERT_EQ(mappings.size(), 2u);
  EXPECT_EQ(mappings[0].begin, 0x55b0u);
  EXPECT_EQ(mappings[0].end, 0x55c8u);
  EXPECT_EQ(mappings[0].offset, 0x10000u);
  EXPECT_EQ(mappings[0].file, "/bin/with a blank (deleted)");
  EXPECT_EQ(mappings[1].begin, 0x7f00000000u);
  EXPECT_EQ(mappings[1].offset, 0xabcu);
  EXPECT_EQ(live::files_of(mappings), (std::set<std::string>{"/bin/with a blank (deleted)", "/lib/libc.so.6"}));
}

// A process that only allocates is seen in malloc, one that only computes is not.
TEST(Sampler, ChildrenOfKnownWork_AreToldApart) {
  const auto share_in_malloc = [](void (*work)()) -> double {
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) work();
    }
    const AllocatorCode code(live::code_mappings(own_maps()), "");  // the child has the same
    Sampler sampler;
    double in_malloc = 0, all = 0;
    for (int i = 0; i < 600 && all < 150 && sampler.why().empty(); ++i) {
      sampler.look({child});
      ::usleep(10'000);
      sampler.drain([&](std::uint64_t address) {
        ++all;
        if (code.kind_of(address) == CodeKind::kMalloc) ++in_malloc;
      });
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return sampler.why().empty() && all > 50 ? in_malloc / all : -1;
  };
  const double allocating = share_in_malloc([] {
    void* volatile block = std::malloc(100'000);
    std::free(block);
    block = std::malloc(2000);
    std::free(block);
  });
  if (allocating < 0) GTEST_SKIP() << "nothing could be sampled";
  EXPECT_GT(allocating, 0.5);
  const double computing = share_in_malloc([] {
    volatile double sum = 0;
    for (int i = 0; i < 1000; ++i) sum = sum + i;
  });
  EXPECT_LT(computing, 0.05);
}

TEST(Sampler, ProcessThatHasEnded_NoSamples) {
  Sampler sampler;
  sampler.look({999'999'999});
  sampler.drain([](std::uint64_t) { ADD_FAILURE(); });
  EXPECT_EQ(sampler.why(), "");
}

}  // namespace
}  // namespace freehold::doctor
