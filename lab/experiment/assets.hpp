// SPDX-License-Identifier: MIT
// Files inside freehold-lab: the experiments' parts of the HTML pages. lab/CMakeLists.txt names them.
#pragma once
#include <string_view>

namespace freehold::lab::assets {

extern const std::string_view scale_html;
extern const std::string_view scale_js;
extern const std::string_view pools_html;
extern const std::string_view pools_js;
extern const std::string_view timers_html;
extern const std::string_view timers_js;
extern const std::string_view articles_html;
extern const std::string_view articles_js;

}  // namespace freehold::lab::assets
