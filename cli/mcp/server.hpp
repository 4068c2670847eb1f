// SPDX-License-Identifier: MIT
// A server of the Model Context Protocol on standard input and output: JSON-RPC 2.0, one message on each line. Each call of
// a tool runs `freehold` once, one call after the other; other messages are answered meanwhile. docs/mcp.md
#pragma once
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/mcp/tools.hpp"
#include "cli/support/interrupts.hpp"

namespace freehold::cli::mcp {

class Server {
 public:
  explicit Server(Interrupts& interrupts) : interrupts_(interrupts) {}
  // Serves until standard input ends or a signal arrives; then the running call is ended. Returns the exit code.
  [[nodiscard]] int serve();

 private:
  struct Waiting {
    nlohmann::json id;
    nlohmann::json progress_token;  // null: the client does not want to hear of progress
    Call call;
  };
  class Running;

  void take_lines(std::string& input);
  void take(const std::string& line);
  void take_request(const nlohmann::json& id, const std::string& method, const nlohmann::json& parameters);
  void take_call(const nlohmann::json& id, const nlohmann::json& parameters);
  void cancel(const nlohmann::json& id);
  [[nodiscard]] bool read_input(std::string& input);

  Interrupts& interrupts_;
  std::deque<Waiting> waiting_;
  Running* running_ = nullptr;
};

}  // namespace freehold::cli::mcp
