// SPDX-License-Identifier: MIT
#include "tools/doctor/report/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ranges>
#include <utility>

#include "tools/output/text.hpp"
#include "tools/support/failure.hpp"

namespace freehold::doctor::report {
namespace {

constexpr std::size_t kLabelWidth = 9;

// ---- the terminal

std::string first_line(const std::string& text) { return printable(text.substr(0, text.find('\n'))); }

// In characters, not bytes.
std::size_t length_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string clipped(const std::string& text, std::size_t width) {
  if (length_of(text) <= width) return text;
  std::size_t bytes = 0;
  for (std::size_t seen = 0; bytes < text.size(); ++bytes) {
    if ((text[bytes] & 0xC0) != 0x80 && seen++ == width - 1) break;
  }
  return text.substr(0, bytes) + "…";
}

std::string lines_text(const std::string& lines, std::string_view indent) {
  std::string out;
  for (const auto line : std::views::split(lines, '\n'))
    out += fmt::format("{}{}\n", indent, printable(std::string_view(line.begin(), line.end())));
  return out;
}

// Sentences without a label stand below the last one's, or in a section at the margin.
std::string labelled_text(std::string_view label, const std::string& sentence, bool in_section = false) {
  std::string text = wrap(printable(sentence), kWidth, std::string(in_section ? 0 : kLabelWidth, ' '));
  return text.replace(0, label.size(), label);
}

std::string table_text(const std::vector<Column>& columns, const Rows& rows) {
  std::vector<std::vector<std::string>> cells(1);
  for (const Column& column : columns) cells.front().push_back(column.title);
  for (const auto& row : rows) {
    cells.emplace_back();
    for (const std::string& cell : row) cells.back().push_back(printable(cell));
  }
  std::vector<std::size_t> widths(columns.size());
  std::size_t left = kWidth;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    for (const auto& row : cells) widths[i] = std::max(widths[i], length_of(row[i]));
    if (columns[i].widest != 0) widths[i] = std::min(widths[i], columns[i].widest);
    widths[i] = std::min(widths[i], left);
    left -= std::min(left, widths[i] + 2);
  }
  const bool has_titles = std::ranges::any_of(columns, [](const Column& column) { return !column.title.empty(); });
  std::string out;
  for (const auto& row : cells | std::views::drop(has_titles ? 0 : 1)) {
    std::string line;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string cell = clipped(row[i], std::max<std::size_t>(widths[i], 1));
      const std::string space(widths[i] - std::min(widths[i], length_of(cell)), ' ');
      line += (i == 0 ? "" : "  ") + (columns[i].kind == Column::Kind::kNumber ? space + cell : cell + space);
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return out;
}

// ---- Markdown

// Escapes what HTML would take for its own, and the characters of `special` as `escape` writes them.
template <class Escape>
std::string escaped(std::string_view text, std::string_view special, Escape escape) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (special.find(c) != std::string_view::npos)
      out += escape(c);
    else
      out += c;
  }
  return out;
}

// Text that Markdown shows as it is, within a table, too.
std::string markdown_text(std::string_view text) {
  return escaped(text, "\\`*_[]|#~", [](char c) { return std::string{'\\', c}; });
}

// The same as code.
std::string markdown_code(std::string_view text) {
  // HTML rather than backticks: a name may have backticks, and a table would still split at its bars.
  return "<code>" + escaped(text, "\\`*_[]|~", [](char c) { return fmt::format("&#{};", int{c}); }) + "</code>";
}

std::string table_markdown(const std::vector<Column>& columns, const Rows& rows) {
  std::string head = "|", rule = "|", out;
  for (const Column& column : columns) {
    head += fmt::format(" {} |", column.title);
    rule += column.kind == Column::Kind::kNumber ? "--:|" : "---|";
  }
  for (const auto& row : rows) {
    out += '|';
    for (std::size_t i = 0; i < columns.size(); ++i)
      out += fmt::format(" {} |", columns[i].kind == Column::Kind::kCode ? markdown_code(row[i]) : markdown_text(row[i]));
    out += '\n';
  }
  return head + '\n' + rule + '\n' + out + '\n';
}

// ---- the two writers: a part each

class TextOf {
 public:
  explicit TextOf(const Document& document)
      : out_(printable(document.title) + '\n' + wrap(first_line(document.below), kWidth, "") + '\n') {}

  void operator()(const Line& line) {
    if (line.sentence.empty()) return;
    out_ += labelled_text(line.label, line.sentence, in_section_);
    if (!line.lines.empty()) out_ += lines_text(line.lines, in_section_ ? "    " : std::string(kLabelWidth + 2, ' '));
  }
  void operator()(const Headline& line) { out_ += labelled_text(line.label, line.sentence); }
  void operator()(const Judgement& judgement) {
    if (!judgement.sentence.empty()) last_ = '\n' + printable(judgement.sentence) + '\n';
  }
  void operator()(const Section& section) {
    if (!std::exchange(in_section_, true)) {
      out_ += '\n';
      for (std::size_t i = 0; i < kWidth; ++i) out_ += "─";
      out_ += '\n';
    }
    std::string title = section.title;
    std::ranges::transform(title, title.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    out_ += '\n' + wrap(title + (section.lead.empty() ? "" : ": " + printable(section.lead)), kWidth, "");
  }
  void operator()(const Table& table) {
    if (!table.rows.empty()) out_ += (in_section_ ? "" : "\n") + table_text(table.columns, table.rows);
  }
  void operator()(const List& list) { out_ += list_of(list, kWidth); }

  std::string take() && { return out_ + last_; }

 private:
  std::string out_, last_;
  bool in_section_ = false;
};

class MarkdownOf {
 public:
  explicit MarkdownOf(const Document& document)
      : out_(fmt::format("## {}\n\n", markdown_text(document.title))), below_(first_line(document.below)) {}

  void operator()(const Line& line) {
    if (line.sentence.empty()) return;
    out_ += fmt::format("{}{}{}\n\n", line.label, line.label.empty() ? "" : ": ", markdown_text(line.sentence));
    if (line.lines.empty()) return;
    out_ += "<pre>";  // within this element nothing is markup but tags
    for (const auto one : std::views::split(line.lines, '\n'))
      out_ += escaped(std::string_view(one.begin(), one.end()), "", [](char c) { return std::string{c}; }) + '\n';
    out_ += "</pre>\n\n";
  }
  void operator()(const Headline& line) { out_ += fmt::format("**{}**\n\n", markdown_text(line.sentence)); }
  void operator()(const Judgement& judgement) {
    if (!judgement.sentence.empty()) out_ += fmt::format("**{}**\n\n", markdown_text(judgement.sentence));
  }
  void operator()(const Section& section) {
    out_ += fmt::format("{}<details><summary>{}{}{}</summary>\n\n", end_, markdown_text(section.title),
                        section.lead.empty() ? "" : ": ", markdown_text(section.lead));
    end_ = "</details>\n\n";
  }
  void operator()(const Table& table) {
    if (!table.rows.empty()) out_ += table_markdown(table.columns, table.rows);
  }
  void operator()(const List& list) {
    for (const std::string& sentence : list) out_ += fmt::format("* {}\n", markdown_text(sentence));
    out_ += '\n';
  }

  std::string take() && { return out_ + std::string(end_) + markdown_text(below_) + '\n'; }

 private:
  std::string out_, below_;
  std::string_view end_;  // of the section that is open
};

template <class Writer>
std::string written(const Document& document) {
  Writer writer(document);
  for (const auto& part : document.parts) std::visit(writer, part);
  return std::move(writer).take();
}

}  // namespace

std::string text_of(const Document& document) { return written<TextOf>(document); }
std::string markdown_of(const Document& document) { return written<MarkdownOf>(document); }

}  // namespace freehold::doctor::report
