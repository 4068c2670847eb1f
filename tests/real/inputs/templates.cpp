// SPDX-License-Identifier: MIT
// Something for a compiler to chew on.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

template <int N>
struct Fold {
  template <class... T>
  static auto make(T... values) {
    return Fold<N - 1>::make(values..., N);
  }
};
template <>
struct Fold<0> {
  template <class... T>
  static auto make(T... values) {
    return std::make_tuple(values...);
  }
};

using Value = std::variant<int, std::string, std::vector<int>, std::map<std::string, int>>;

int visit(const std::vector<Value>& values) {
  int total = 0;
  for (const auto& value : values)
    total += std::visit(
        [](const auto& v) -> int {
          if constexpr (requires { v.size(); })
            return static_cast<int>(v.size());
          else
            return v;
        },
        value);
  return total + static_cast<int>(std::tuple_size_v<decltype(Fold<40>::make())>);
}

std::unique_ptr<std::map<std::string, std::vector<int>>> sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  auto result = std::make_unique<std::map<std::string, std::vector<int>>>();
  for (auto& name : names) (*result)[name].push_back(static_cast<int>(name.size()));
  return result;
}
