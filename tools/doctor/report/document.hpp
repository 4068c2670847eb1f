// SPDX-License-Identifier: MIT
// An answer for people, written once and shown twice: on the terminal, and in Markdown on the page of a job. A document is
// a title, then lines with a label ("Answer", "Do"), then sections, which a page of a job folds away.
//
// Names come from the program and from the user: no control character of theirs reaches the terminal, and in Markdown none
// of them breaks a table or becomes markup.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace freehold::doctor::report {

// A sentence behind its label, and lines below it that can be pasted. An empty sentence is left out.
struct Line {
  std::string label, sentence, lines = {};
};
// The line that a reader must not miss.
struct Headline {
  std::string label, sentence;
};
// An exit code goes by this: the last line on a terminal. An empty one is left out.
struct Judgement {
  std::string sentence;
};
// The parts that follow belong to it, up to the next one.
struct Section {
  std::string title, lead = {};
};
// Sentences, each with a mark in front.
using List = std::vector<std::string>;

struct Column {
  enum class Kind : std::uint8_t { kNumber, kText, kCode };
  std::string title = {};
  Kind kind = Kind::kNumber;
  std::size_t widest = 0;  // characters on a terminal; 0: as many as a line has left
};
using Rows = std::vector<std::vector<std::string>>;
// Without rows nothing is shown.
struct Table {
  std::vector<Column> columns;
  Rows rows;
};

struct Document {
  std::string title, below = {};  // `below`: the line under the title
  std::vector<std::variant<Line, Headline, Judgement, Section, Table, List>> parts = {};
};

// Writes lines of at most 100 characters, and those to be pasted as they are.
[[nodiscard]] std::string text_of(const Document& document);
[[nodiscard]] std::string markdown_of(const Document& document);

// A note that every document with ranges has.
inline constexpr const char* kOfRanges = "A range is where nine of ten repetitions of all this would end.";

}  // namespace freehold::doctor::report
