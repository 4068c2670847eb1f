// SPDX-License-Identifier: MIT
// Files inside the command: the parts of the HTML pages, and the plot library.
// tools/CMakeLists.txt names them; tools/output/embed.cmake turns them into a source, as it does with those of
// lab/experiment/assets.hpp.
#pragma once
#include <string_view>

namespace freehold::inline tools::assets {

extern const std::string_view shell_html;
extern const std::string_view doctor_html;
extern const std::string_view doctor_js;
extern const std::string_view heap_html;
extern const std::string_view heap_js;
extern const std::string_view memory_html;
extern const std::string_view memory_js;
extern const std::string_view page_css;
extern const std::string_view plots_js;
extern const std::string_view uplot_css;
extern const std::string_view uplot_js;

}  // namespace freehold::inline tools::assets
