// SPDX-License-Identifier: MIT
// The memory of a small program where all that is mapped counts. Other mallocs, in MiB: locked glibc 6, jemalloc 16,
// mimalloc 38; private writable mappings 1, 10, 33; after malloc_trim and six seconds 10 (10 before), 326 (326), 325 (325).
#include <fstream>

#include "tests/memory_return/memory_return.hpp"

namespace freehold::test {
namespace {

TEST(SmallProgram, Mlockall_PinsLittle) {
  const Outcome outcome = run_and_print({"small_program_locked"});
  if (outcome.figures().contains("not_allowed")) GTEST_SKIP() << "mlockall is not allowed here";
  EXPECT_LE(figure_of(outcome, "resident_mib"), 24);
  EXPECT_LE(figure_of(outcome, "left_of_the_spike_mib"), 8) << "of " << figure_of(outcome, "spike_mib");
}
TEST(SmallProgram, StrictOvercommit_WouldAccountLittle) {
  EXPECT_LE(figure_of(run_and_print({"small_program_accounted"}), "private_writable_mib"), 64);
}
TEST(SmallProgram, SomeBlocksOfManySizes_NoHugePages) {
  EXPECT_LE(figure_of(run_and_print({"small_program_many_sizes"}), "peak_mib"), 7);
}

// The kernel's collector of huge pages looks every ten seconds; for this test it does not wait. As it was, in the end.
class Setting {
 public:
  Setting(const std::string& name, const std::string& value)
      : file_("/sys/kernel/mm/transparent_hugepage/khugepaged/" + name) {
    std::ifstream(file_) >> before_;
    changed_ = !before_.empty() && write(value);
  }
  ~Setting() {
    if (changed_) write(before_);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  [[nodiscard]] bool changed() const { return changed_; }

 private:
  bool write(const std::string& value) const {
    std::ofstream out(file_);
    out << value << std::flush;
    return out.good();
  }
  std::string file_, before_;
  bool changed_ = false;
};

TEST(SmallProgram, AfterMallocTrim_MemoryStaysAway) {
  const Setting soon("scan_sleep_millisecs", "10"), again("alloc_sleep_millisecs", "10");
  if (!soon.changed()) GTEST_SKIP() << "needs root: sets khugepaged's pace";
  const Outcome outcome = run_and_print({"small_program_trimmed_stays_away", "6"});
  EXPECT_LE(figure_of(outcome, "later_mib"), 1.05 * figure_of(outcome, "trimmed_mib") + 4);
}

}  // namespace
}  // namespace freehold::test
