// SPDX-License-Identifier: MIT
// Looks at a page as a user's browser does: headless Chromium, a fresh profile, no way to the network.
#pragma once
#include <string>
#include <vector>

namespace freehold::tests {

struct Seen {
  std::string dom;                     // after the page's scripts have run
  std::vector<std::string> console;    // errors and messages of the page
  std::vector<std::string> requested;  // addresses that the page itself asked for, its own file not included
};

struct View {
  unsigned width = 800;
  unsigned height = 600;
  bool dark = false;
};

[[nodiscard]] bool has_browser();
// Throws std::runtime_error if the browser does not come to an end.
[[nodiscard]] Seen look_at(const std::string& page, const View& view = {});

}  // namespace freehold::tests
