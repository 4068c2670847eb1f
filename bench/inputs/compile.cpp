// SPDX-License-Identifier: MIT
// Input of the "clang" row: enough templates and inlining to keep a compiler allocating for half a second.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

template <int N>
struct Step {
  std::map<std::string, std::vector<int>> entries;
  int run(int x) {
    entries[std::to_string(x)].push_back(N);
    std::vector<int> sorted{x, N, x ^ N};
    std::sort(sorted.begin(), sorted.end(), [](int a, int b) { return a * N < b * N; });
    return sorted[1] + static_cast<int>(entries.size()) + Step<N - 1>{}.run(x + 1);
  }
};
template <>
struct Step<0> {
  int run(int x) { return x; }
};

int compile_me(int x) { return Step<4>{}.run(x); }
