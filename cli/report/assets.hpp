// Files that are part of the command: the page of results, and the plot library that it carries along.
// cli/CMakeLists.txt names them; cli/report/embed.cmake turns them into a source.
#pragma once
#include <string_view>

namespace freehold::cli::assets {

extern const std::string_view page_html;
extern const std::string_view page_css;
extern const std::string_view page_js;
extern const std::string_view uplot_css;
extern const std::string_view uplot_js;

}  // namespace freehold::cli::assets
