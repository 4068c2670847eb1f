// SPDX-License-Identifier: MIT
// A client's connection to Gearman job servers: to one server at a time, which runs one task at a time.
//
//   Connection connection(servers, function, first, host_check);
//   switch (connection.run(unique, workload, unwanted)) { ... }   // kAnswered: connection.answer() has the answer
//   connection.next_server();                                     // after kLost
//
// run() gives the task to the server, and waits. It ends when the server has answered or failed the task, when `unwanted`
// says that no client waits for it any more, or when the server is lost: its connection broke, it did not accept the task in
// time, or its host has vanished. An idle connection does not show that, so run() probes the host from time to time.
//
// Threads: one at a time. While it waits, it wakes every 50 ms.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "freehold/process/gearman/gearman_wire.hpp"
#include "freehold/process/table/task.hpp"

// libgearman's, which only gearman_connection.cpp includes.
struct gearman_client_st;
struct gearman_task_st;

namespace freehold::process::gearman {

// How a task ended at one server.
enum class Outcome : std::uint8_t {
  kNone,
  kAnswered,  // with an answer
  kFailed,    // by the server: the workers' connections were lost as often as the server allows
  kLost,      // the server is lost
  kDropped,   // its client has dropped it
};

class Connection {
 public:
  // Begins with server number `first`, counted round. `host_check`: how often the host is probed; 0: never.
  // Pre: `servers` and `function` outlive it.
  Connection(const std::vector<Server>& servers, const std::string& function, std::size_t first, Nanoseconds host_check)
      : servers_(servers), function_(function), host_check_(host_check), server_(first % servers.size()) {}
  ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Runs it at this server. `unwanted` is asked every tick.
  Outcome run(const std::string& unique, const std::string& workload, const std::function<bool()>& unwanted);
  // After kAnswered.
  [[nodiscard]] std::string& answer() { return answer_; }
  // Returns whether the server had the task before it was lost.
  [[nodiscard]] bool accepted() const { return accepted_; }
  // The next run is at the next server.
  void next_server();

 private:
  void open();
  void close();
  Outcome lost();
  static Connection& of(gearman_task_st* job);

  const std::vector<Server>& servers_;
  const std::string& function_;
  const Nanoseconds host_check_;
  std::size_t server_;
  gearman_client_st* client_ = nullptr;
  // Belongs to the task that runs; written by libgearman's calls within run().
  std::string answer_;
  Outcome outcome_ = Outcome::kNone;
  bool accepted_ = false;
};

}  // namespace freehold::process::gearman
