#!/usr/bin/env bash
# A new pool strategy is one file and one line: adds a toy to a copy of the tree and sees that the conformance suite asks it, and
# finds it out when it misbehaves.   toy_strategy.sh SOURCE_DIR CXX_COMPILER
set -euo pipefail

source=$1
compiler=$2
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/tests"
cp -r "$source"/{CMakeLists.txt,cmake,freehold} "$tree"
cp -r "$source"/tests/{CMakeLists.txt,conformance,support} "$tree/tests"

cat >"$tree/freehold/pool/toy.hpp" <<'TOY'
// Free slots as a stack of numbers behind a lock. With TOY_FORGETS in the environment it forgets what it handed out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "freehold/pool/concept.hpp"
#include "freehold/pool/memory.hpp"
#include "freehold/pool/pool_lock.hpp"
#include "freehold/pool/slots.hpp"

namespace freehold::pool {

template <sync::Atomics A, class Contention, PoolLockOrders O>
class ToyPool {
 public:
  explicit ToyPool(const PoolShape& shape) : slots_(shape), free_(shape.slots) {
    while (count_.load() < shape.slots) push(count_.load());
  }
  [[nodiscard]] void* acquire() noexcept {
    contention_.operated();
    typename PoolLock<A, O>::template Guard<Contention> guard(lock_, contention_);
    const std::size_t n = count_.load();
    if (n == 0) return nullptr;
    if (!forgets_) count_.store(n - 1);
    return slots_.address(free_[n - 1].load());
  }
  void release(void* slot) noexcept {
    contention_.operated();
    typename PoolLock<A, O>::template Guard<Contention> guard(lock_, contention_);
    if (!forgets_) push(slots_.number(slot));
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return slots_.count(); }
  [[nodiscard]] sync::Contention contention() const noexcept { return contention_.total(); }

 private:
  void push(std::size_t slot) noexcept {
    free_[count_.load()].store(slot);
    count_.store(count_.load() + 1);
  }
  bool forgets_ = std::getenv("TOY_FORGETS") != nullptr;
  Slots slots_;
  ZeroedArray<typename A::template var<std::size_t>> free_;
  typename A::template var<std::size_t> count_{0};
  PoolLock<A, O> lock_;
  [[no_unique_address]] Contention contention_;
};

struct Toy {
  static constexpr std::string_view kName = "toy";
  static constexpr std::string_view kSource = "a test";
  static constexpr bool kFindsLast = true;
  static constexpr PoolLockOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, PoolLockOrders O = kOrders>
  using Pool = ToyPool<A, Contention, O>;
};

}  // namespace freehold::pool
TOY
sed -i 's|^using Strategies = StrategyList<|&Toy,\n|' "$tree/freehold/pool/registry.hpp"
[[ $(diff "$source/freehold/pool/registry.hpp" "$tree/freehold/pool/registry.hpp" | grep -c '^>') -le 2 ]]

export CCACHE_BASEDIR=$tree CCACHE_NOHASHDIR=1
cmake -S "$tree" -B "$tree/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DFREEHOLD_BUILD_CLI=OFF -DFREEHOLD_BUILD_BENCH=OFF -DFREEHOLD_INSTALL=OFF >"$tree/log" ||
  { cat "$tree/log"; exit 1; }
cmake --build "$tree/build" --target conformance_pool >"$tree/log" || { cat "$tree/log"; exit 1; }

suite=$tree/build/tests/conformance/conformance_pool
rows=$("$suite" --gtest_list_tests --gtest_filter='*/toy.*' | grep -c '^  ')
echo "the toy's rows: $rows"
[[ $rows -ge 9 ]]
"$suite" --gtest_filter='*/toy.*' --gtest_brief=1
if TOY_FORGETS=1 "$suite" --gtest_filter='Pools/toy.Fresh*' --gtest_brief=1 >"$tree/log"; then
  echo "a toy that hands out a slot twice passes"
  exit 1
fi
