// SPDX-License-Identifier: MIT
#include "tools/output/page.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "tools/output/assets.hpp"

namespace freehold::inline tools {
namespace {
using nlohmann::ordered_json;

// The page with each mark replaced once. Replaced text is not searched again.
std::string fill(std::string_view page, std::span<const std::pair<std::string_view, std::string_view>> parts) {
  std::string out;
  for (const auto& [mark, text] : parts) {
    const std::size_t at = page.find(mark);
    out.append(page.substr(0, at)).append(text);
    page.remove_prefix(at + mark.size());
  }
  return out.append(page);
}

}  // namespace

std::string json_for_script(const ordered_json& json) {
  std::string out;
  for (const char c : json.dump(-1, ' ', false, ordered_json::error_handler_t::replace)) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

std::string page_of(const PageParts& own, const ordered_json& json) {
  const std::string data = json_for_script(json);
  // In the order of the shell.
  const std::array<std::pair<std::string_view, std::string_view>, 10> parts{{
      {"{title}", own.title},
      {"/*{uplot.css}*/", assets::uplot_css},
      {"/*{page.css}*/", assets::page_css},
      {"{brand}", own.brand},
      {"{question}", own.question},
      {"{sections}", own.sections},
      {"{data}", data},
      {"/*{uplot.js}*/", assets::uplot_js},
      {"/*{plots.js}*/", assets::plots_js},
      {"/*{page.js}*/", own.script},
  }};
  return fill(assets::shell_html, parts);
}

}  // namespace freehold::inline tools
