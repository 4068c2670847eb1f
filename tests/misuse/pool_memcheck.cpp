// SPDX-License-Identifier: MIT
// Under valgrind: for every strategy of the registry, a use of a slot before its release that memcheck must not mind, and
// one after it that it must. Says which it misjudged; code 0: none. 77: not under valgrind.
#include <cstdio>

#include "lab/strategies/registry.hpp"
#include "tests/misuse/memcheck.hpp"

namespace freehold::test {
namespace {

template <class S>
int misjudged() {
  pool::NativePool<S> pool({.slots = 10, .slot_bytes = 24});
  auto* const kept = static_cast<char*>(pool.acquire());
  auto* slot = static_cast<char*>(pool.acquire());
  kept[0] = slot[0] = slot[23] = 1;
  const bool false_report = is_reported(slot) || is_reported(slot + 23);
  pool.release(another(slot));
  const bool reported = is_reported(slot) && is_reported(slot + 23);
  const bool other = is_reported(kept);
  pool.release(kept);
  if (false_report) std::printf("%s: a use of a slot in use is reported\n", S::kName.data());
  if (!reported) std::printf("%s: a use after release is not reported\n", S::kName.data());
  if (other) std::printf("%s: the release of one slot poisons another\n", S::kName.data());
  return false_report || !reported || other;
}

}  // namespace
}  // namespace freehold::test

int main() {
  if (RUNNING_ON_VALGRIND == 0) return 77;
  int wrong = 0;
  freehold::pool::for_each_strategy([&]<class S>() { wrong += freehold::test::misjudged<S>(); });
  return wrong == 0 ? 0 : 1;
}
