// SPDX-License-Identifier: MIT
// The file and offset of an address. The oracles: dladdr, and what nm prints of this program.
#include "freehold/os/modules.hpp"

#include <dlfcn.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

#include "freehold/os/pages.hpp"
#include "tests/support/test.hpp"

namespace freehold::os {
namespace {

[[gnu::noinline]] int function_of_this_program() { return ::getpid(); }

TEST(FindModule, AFunctionOfALibrary_ItsFileAndTheOffsetThatDladdrHas) {
  Dl_info info{};
  auto* const function = reinterpret_cast<void*>(&::getauxval);
  ASSERT_NE(::dladdr(function, &info), 0);
  Module module{};
  ASSERT_TRUE(find_module(function, module));
  EXPECT_NE(std::strstr(module.path, "libc"), nullptr) << module.path;
  EXPECT_EQ(module.offset, reinterpret_cast<std::uintptr_t>(function) - reinterpret_cast<std::uintptr_t>(info.dli_fbase));
}

TEST(FindModule, ThisProgram_TheSymbolsValue) {
  Module module{};
  ASSERT_TRUE(find_module(reinterpret_cast<void*>(&function_of_this_program), module));
  char path[512] = {};
  ASSERT_GT(::readlink("/proc/self/exe", path, sizeof path - 1), 0);
  EXPECT_STREQ(module.path, path);
  const std::string command = "nm -C '" + std::string(path) + "' 2>/dev/null | grep ' [tT] .*function_of_this_program()'";
  std::FILE* const nm = ::popen(command.c_str(), "r");
  ASSERT_NE(nm, nullptr);
  char line[256] = {};
  const bool has_nm = std::fgets(line, sizeof line, nm) != nullptr;
  ::pclose(nm);
  if (!has_nm) GTEST_SKIP() << "no nm";
  EXPECT_EQ(module.offset, std::strtoull(line, nullptr, 16));
}

// Two files of a page side by side: the end of one is the beginning of the other.
TEST(FindModule, NeighbouringMappings_EachHasItsOwnFile) {
  constexpr std::size_t kPage = kLargestPageBytes;
  auto* const room = static_cast<char*>(::mmap(nullptr, 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(room, MAP_FAILED);
  std::string paths[2];
  for (int i = 0; i < 2; ++i) {
    paths[i] = testing::TempDir() + "freehold_modules_test_XXXXXX";
    const int fd = ::mkstemp(paths[i].data());
    ASSERT_GE(fd, 0);
    ASSERT_EQ(::ftruncate(fd, kPage), 0);
    ASSERT_NE(::mmap(room + i * kPage, kPage, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0), MAP_FAILED);
    ::close(fd);
  }
  for (int i = 0; i < 2; ++i)
    for (const std::uintptr_t offset : {std::uintptr_t{0}, std::uintptr_t{kPage - 1}}) {
      Module module{};
      EXPECT_TRUE(find_module(room + i * kPage + offset, module));
      EXPECT_EQ(module.path, paths[i]);
      EXPECT_EQ(module.offset, offset);
    }
  for (const std::string& path : paths) ::unlink(path.c_str());
  ::munmap(room, 2 * kPage);
}

TEST(FindModule, MemoryWithoutAFile_False) {
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  Module module{};
  errno = 17;
  EXPECT_FALSE(find_module(page, module));
  Pages::name(page, 4096, "with a name");
  EXPECT_FALSE(find_module(page, module));
  ::munmap(page, 4096);
  EXPECT_FALSE(find_module(page, module));
  EXPECT_FALSE(find_module(nullptr, module));
  EXPECT_EQ(errno, 17);
}

}  // namespace
}  // namespace freehold::os
