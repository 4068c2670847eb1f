// SPDX-License-Identifier: MIT
// The list of named pools, as a reader outside the process walks it.
#include "freehold/pool/named_pools.hpp"

#include <link.h>

#include "freehold/sync/live_list.hpp"
#include "tests/support/test.hpp"

namespace freehold::pool {
namespace {

using sync::LiveListDirectory;

// Finds the program's own directory of pools, by its mark; null: it has none.
const LiveListDirectory* find_directory() {
  const LiveListDirectory* found = nullptr;
  ::dl_iterate_phdr(
      [](dl_phdr_info* program, std::size_t, void* result) {
        for (unsigned i = 0; i < program->dlpi_phnum; ++i) {
          const auto& segment = program->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0) continue;
          const std::uintptr_t begin = program->dlpi_addr + segment.p_vaddr, end = begin + segment.p_memsz;
          for (std::uintptr_t at = (begin + sync::kLiveListAlignment - 1) & ~(sync::kLiveListAlignment - 1);
               at + sizeof(LiveListDirectory) <= end; at += sync::kLiveListAlignment) {
            const auto& directory = *reinterpret_cast<const LiveListDirectory*>(at);
            if (directory.mark[0] == sync::live_list_mark(0, at) && directory.mark[1] == sync::live_list_mark(1, at) &&
                directory.kind == sync::LiveList::kPools)
              *static_cast<const LiveListDirectory**>(result) = &directory;
          }
        }
        return 1;  // the first is the program
      },
      &found);
  return found;
}

template <class T>
T read(std::uintptr_t at) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(at), sizeof value);
  return value;
}

// The youngest first.
std::vector<std::string> listed() {
  std::vector<std::string> names;
  const LiveListDirectory* const directory = find_directory();
  if (directory == nullptr) return names;
  for (auto at = read<std::uintptr_t>(directory->first); at != 0; at = read<std::uintptr_t>(at + directory->next))
    names.emplace_back(reinterpret_cast<const char*>(read<LivePool>(at + directory->data).name));
  return names;
}

TEST(NamedPools, EndInAnyOrder_TheOthersStayListed) {
#if defined(FREEHOLD_TEST_SANITIZED)
  GTEST_SKIP() << "a sanitizer forbids the search for the directory";
#endif
  const std::vector<const char*> names{"a", "b", "c", "d"};
  std::vector<std::size_t> order{0, 1, 2, 3};
  do {
    std::vector<std::unique_ptr<PoolRegistration>> pools;
    for (const char* name : names) pools.push_back(std::make_unique<PoolRegistration>(name, LivePool{}));
    std::vector<std::string> expected{"d", "c", "b", "a"};
    ASSERT_EQ(listed(), expected);
    for (const std::size_t ends : order) {
      pools[ends].reset();
      std::erase(expected, names[ends]);
      ASSERT_EQ(listed(), expected) << "after the end of " << names[ends];
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(NamedPools, WithoutAName_NotListed) {
#if defined(FREEHOLD_TEST_SANITIZED)
  GTEST_SKIP() << "a sanitizer forbids the search for the directory";
#endif
  const PoolRegistration named("named", LivePool{}), empty("", LivePool{}), none(nullptr, LivePool{});
  EXPECT_EQ(listed(), std::vector<std::string>{"named"});
}

}  // namespace
}  // namespace freehold::pool
