// SPDX-License-Identifier: MIT
// A gate for continuous integration: --fail-on asks for the cause of a verdict, --worse-than for the time of a comparison.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace freehold::doctor::report {

inline constexpr int kExitHolds = 0;
inline constexpr int kExitFails = 1;
inline constexpr int kExitUndecided = 3;

enum class Answer : std::uint8_t { kNo, kUndecided, kYes };

struct Gate {
  std::string asked;  // "--fail-on own-lock"; empty: nothing was
  Answer fails = Answer::kNo;
  std::string because;  // "the cause is own-lock"

  [[nodiscard]] int exit_code() const noexcept;
};
// "✅ passes: --fail-on own-lock: the cause is none". Empty: nothing was asked.
[[nodiscard]] std::string text_of(const Gate& gate);

enum class Question : std::uint8_t { kTime, kMemory };

// The causes that --fail-on names, as the report names them; "allocator" is every one that blames it.
class FailOn {
 public:
  // Throws Failure, one line that lists the causes, for a name that is none of them.
  FailOn(Question question, const std::optional<std::string>& list);
  // `cause`: that of the verdict. An undecided verdict is no answer, unless "undecided" is among the names.
  [[nodiscard]] Gate judge(std::string_view cause) const;

 private:
  std::string list_;
  std::vector<std::string_view> causes_;
};

}  // namespace freehold::doctor::report
