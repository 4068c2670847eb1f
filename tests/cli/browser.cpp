// SPDX-License-Identifier: MIT
#include "tests/cli/browser.hpp"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>

#include "tests/cli/command.hpp"

namespace freehold::tests {
namespace {
using nlohmann::json;

constexpr const char* kBrowser = "/usr/bin/chromium";

std::vector<std::string> console_lines(const std::string& log) {
  std::vector<std::string> lines;
  std::istringstream in(log);
  for (std::string line; std::getline(in, line);) {
    if (line.find(":CONSOLE") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

// The browser asks for its own things, too; a request of the page has an origin, that of a file being "null".
std::vector<std::string> requests_of_the_page(const json& log) {
  std::set<std::string> addresses;
  for (const json& event : log.at("events")) {
    const json parameters = event.value("params", json::object());
    if (parameters.value("initiator", "not an origin") == "not an origin") continue;
    addresses.insert(parameters.at("url").get<std::string>());
  }
  return {addresses.begin(), addresses.end()};
}

}  // namespace

bool has_browser() { return ::access(kBrowser, X_OK) == 0; }

Seen look_at(const std::string& page, const View& view) {
  const Folder folder;
  std::vector<std::string> words{kBrowser,
                                 "--headless",
                                 "--no-sandbox",
                                 "--disable-gpu",
                                 "--no-first-run",
                                 "--disable-background-networking",
                                 "--disable-component-update",
                                 "--disable-sync",
                                 "--disable-extensions",
                                 "--host-resolver-rules=MAP * ~NOTFOUND",
                                 "--user-data-dir=" + (folder / "profile"),
                                 "--virtual-time-budget=3000",
                                 "--enable-logging=stderr",
                                 "--log-net-log=" + (folder / "net.json"),
                                 "--dump-dom",
                                 "--window-size=" + std::to_string(view.width) + ',' + std::to_string(view.height)};
  if (view.dark) words.insert(words.end(), {"--blink-settings=preferredColorScheme=0"});
  words.push_back("file://" + page);
  Process browser(words);
  const Ended ended = browser.wait(std::chrono::seconds(60));
  if (!ended.exited_with(0)) throw std::runtime_error("the browser failed: " + ended.err);
  return {ended.out, console_lines(ended.err), requests_of_the_page(json::parse(content_of(folder / "net.json")))};
}

}  // namespace freehold::tests
