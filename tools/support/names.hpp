// SPDX-License-Identifier: MIT
// The names of an enumeration's values 0, 1, 2 …, in this order, for tables, JSON, options and jobs. It is a range of the
// values. names_of(E) returns the one of E, in E's namespace, which says `using tools::name_of;` so that all find that, too.
#pragma once
#include <array>
#include <cstddef>
#include <string_view>

namespace freehold::inline tools {

template <class E, std::size_t N>
struct Names {
  std::array<std::string_view, N> names;

  [[nodiscard]] constexpr std::string_view operator[](E value) const { return names[static_cast<std::size_t>(value)]; }
  [[nodiscard]] static constexpr std::size_t size() { return N; }
  [[nodiscard]] constexpr const E* begin() const { return kValues.data(); }
  [[nodiscard]] constexpr const E* end() const { return kValues.data() + N; }

 private:
  static constexpr std::array<E, N> kValues = [] {
    std::array<E, N> values{};
    for (std::size_t i = 0; i < N; ++i) values[i] = static_cast<E>(i);
    return values;
  }();
};

template <class E>
  requires requires(E value) { names_of(value); }
[[nodiscard]] constexpr std::string_view name_of(E value) {
  return names_of(value)[value];
}

}  // namespace freehold::inline tools
