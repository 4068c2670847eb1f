// SPDX-License-Identifier: MIT
#include "tools/output/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "tools/support/failure.hpp"

namespace freehold::inline tools {

std::string bars(std::span<const std::optional<double>> values, double greatest) {
  static constexpr std::array kBars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string text;
  for (const auto& value : values) {
    if (!value) {
      text += ' ';
      continue;
    }
    const double height = std::clamp(*value / greatest, 0.0, 1.0) * (kBars.size() - 1);
    text += kBars[static_cast<std::size_t>(std::lround(height))];
  }
  return text;
}

std::string three_digits(double value) { return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0); }

std::string wrap(const std::string& text, std::size_t width, const std::string& indent) {
  std::string out;
  std::string line;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    if (!line.empty() && indent.size() + line.size() + 1 + word.size() > width) {
      out += indent + line + '\n';
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return line.empty() ? out : out + indent + line + '\n';
}

std::string list_of(const std::vector<std::string>& notes, std::size_t width) {
  std::string out;
  for (const std::string& note : notes) out += wrap("* " + printable(note), width, "  ");
  return out;
}

std::string machine_line(const Machine& machine) {
  return fmt::format("{} · {} CPU{} ({}) · {} · {}{}{}\n", printable(machine.cpu_model), machine.cpus,
                     machine.cpus == 1 ? "" : "s", machine.cpus_source, machine.system, machine.libc,
                     machine.huge_pages.empty() ? "" : " · huge pages: ", printable(machine.huge_pages));
}

}  // namespace freehold::inline tools
