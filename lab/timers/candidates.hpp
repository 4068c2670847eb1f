// SPDX-License-Identifier: MIT
// The candidates of `freehold timers`: the article's queue on several heaps, its successors, timers of other libraries, and
// the baseline, which has the memory of the timers but no timers.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "lab/timers/job.hpp"

namespace freehold::cli::timers {

enum class Kind : std::uint8_t {
  kOurs,
  kLibrary,   // of another library
  kBaseline,  // no timers, only the cost of the memory that any structure has for each; in rearm only
};
inline constexpr Names<Kind, 3> kKinds{{"ours", "library", "baseline"}};
[[nodiscard]] constexpr const auto& names_of(Kind) { return kKinds; }

struct Candidate {
  std::string name;
  std::string source;
  Kind kind = Kind::kOurs;
  bool preloads_freehold = false;              // Freehold is the program's heap
  Report (*run)(const Job&) = nullptr;         // one thread uses it; null: only for several
  Report (*run_shared)(const Job&) = nullptr;  // any thread may use it; null: it cannot be shared
};

// The article's two structures, on the system's heap and on a private one.
inline constexpr std::string_view kArticlesQueue = "article";
inline constexpr std::string_view kArticlesContainers = "article-containers";
inline constexpr std::string_view kArticlesContainersWheel = "article-wheel-containers";
inline constexpr std::string_view kArticlesPrivate = "article-private";
inline constexpr std::string_view kArticlesWheel = "article-wheel";
inline constexpr std::string_view kArticlesPrivateWheel = "article-wheel-private";
// The reference of the ratios: the article's order in two containers, on the system's heap.
inline constexpr std::string_view kReference = "container";
inline constexpr std::string_view kPrivate = "container-private";
inline constexpr std::string_view kQueue = "queue";
inline constexpr std::string_view kWheel = "wheel";
inline constexpr std::string_view kBaseline = "baseline";

// In the order of the tables.
[[nodiscard]] const std::vector<Candidate>& candidates();
// Whether it takes part in a test.
[[nodiscard]] bool runs(const Candidate& candidate, Trial test);

}  // namespace freehold::cli::timers
