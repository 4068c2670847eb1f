// SPDX-License-Identifier: MIT
#include "freehold/process/gearman_wire.hpp"

#include <cstdlib>

namespace freehold::process::gearman {

std::optional<std::vector<Server>> parse_servers(const std::vector<std::string>& texts, std::string& error) {
  constexpr unsigned kDefaultPort = 4730;
  std::vector<Server> servers;
  for (const std::string& text : texts) {
    const std::size_t bracket = text.rfind(']'), colon = text.rfind(':');
    const bool has_port = colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
    std::string host = text.substr(0, has_port ? colon : std::string::npos);
    if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    char* end = nullptr;
    const unsigned long port = has_port ? std::strtoul(text.c_str() + colon + 1, &end, 10) : kDefaultPort;
    if (host.empty() || port == 0 || port > 65535 || (has_port && *end != '\0')) {
      error = "not a server: " + text;
      return std::nullopt;
    }
    servers.push_back({host, static_cast<in_port_t>(port)});
  }
  if (servers.empty()) {
    error = "no server";
    return std::nullopt;
  }
  return servers;
}

}  // namespace freehold::process::gearman
