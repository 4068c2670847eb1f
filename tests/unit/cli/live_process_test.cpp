// SPDX-License-Identifier: MIT
#include "tools/support/live_process.hpp"
#include "tests/support/test.hpp"

namespace freehold::cli {
namespace {

bool says(const std::string& line, const std::string& words) { return line.find(words) != std::string::npos; }

TEST(LiveProcess, MemoryClosedByYama_WayOutThatWorks) {
  EXPECT_TRUE(says(why_memory_is_closed(4711, 1), "start the program by freehold run --live"));
  EXPECT_TRUE(says(why_memory_is_closed(4711, std::nullopt), "a filter of system calls"));
  const std::string root_only = why_memory_is_closed(4711, 2), nobody = why_memory_is_closed(4711, 3);
  EXPECT_TRUE(says(root_only, "ptrace_scope is 2") && says(root_only, "run freehold as root"));
  EXPECT_FALSE(says(root_only, "--live")) << "which helps at 1 alone";
  EXPECT_TRUE(says(nobody, "ptrace_scope is 3") && says(nobody, "a smaller one"));
  EXPECT_FALSE(says(nobody, "as root"));
  for (const auto& line : {root_only, nobody}) EXPECT_TRUE(says(line, "process 4711")) << line;
}

TEST(LiveProcess, Hidden_SaysWhoMay) {
  EXPECT_EQ(why_hidden(4711, 33, 1000), "process 4711 belongs to user 33; run freehold as that user, or as root");
  EXPECT_TRUE(says(why_hidden(4711, 1000, 1000), "does not let itself be looked at"));
  EXPECT_TRUE(says(why_hidden(4711, 1000, 1000), "run freehold as root"));
  EXPECT_TRUE(says(why_hidden(4711, 33, 0), "with the right CAP_SYS_PTRACE"));
  EXPECT_TRUE(says(why_hidden(4711, 0, 0), "with the right CAP_SYS_PTRACE"));
}

}  // namespace
}  // namespace freehold::cli
