// SPDX-License-Identifier: MIT
// Blocks that a library holds; the library is this program. (Of the C library: tests/cli, RunStats.LeaksOf...)
#include "freehold/check/runtime_blocks.hpp"

#include <errno.h>

#include <cstdio>

#include "freehold/check/call_stacks.hpp"
#include "freehold/os/call_stack.hpp"
#include "tests/support/test.hpp"

namespace freehold::check {
namespace {

constinit void* volatile g_variable = nullptr;
constinit void* volatile g_stream = nullptr;

TEST(RuntimeBlocks, Blocks_HeldWhereAVariableLeadsToThem) {
  if (!os::prepare_call_stacks()) GTEST_SKIP() << "no unwinder";
  keep_call_stacks(8);
  const std::uint32_t here = note_call_stack();
  os::Pages pages;
  const char* const libraries[] = {::program_invocation_short_name};
  RuntimeBlocks runtime(pages, libraries);
  void* reached[8]{};
  void* through[8]{};
  void* lost[8]{};
  void* foreign[8]{};
  char empty = 0;
  std::FILE* const file = std::fopen("/dev/null", "r");
  ASSERT_NE(file, nullptr);
  g_variable = reached + 1;  // inside
  reached[7] = through;
  through[0] = foreign;
  through[1] = lost + 8;  // behind the end
  g_stream = file;
  through[2] = &empty;
  const auto add = [&](const void* block, std::uint32_t stack, std::size_t bytes = sizeof reached) {
    runtime.add({.bytes = bytes, .alignment = 0, .family = Family::kMalloc, .offset = 0, .allocated_at = stack}, block);
  };
  for (const void* const block : {static_cast<const void*>(reached), static_cast<const void*>(through),
                                  static_cast<const void*>(lost), static_cast<const void*>(file)})
    add(block, here);
  add(&empty, here, 0);
  add(foreign, 0);  // who allocated it is not known
  runtime.find();
  EXPECT_TRUE(runtime.holds(reached));
  EXPECT_TRUE(runtime.holds(through));
  EXPECT_TRUE(runtime.holds(&empty));
  EXPECT_FALSE(runtime.holds(lost));
  EXPECT_FALSE(runtime.holds(foreign));
  EXPECT_FALSE(runtime.holds(file));  // open, and found by its list alone
  std::fclose(file);
  g_variable = nullptr;
  g_stream = nullptr;
}

}  // namespace
}  // namespace freehold::check
