// SPDX-License-Identifier: MIT
// freehold mcp: the doctor, heap profiles and statistics for agents, by the Model Context Protocol. docs/mcp.md
#include "cli/command.hpp"
#include "cli/mcp/server.hpp"
#include "cli/support/interrupts.hpp"
#include "cli/support/output_file.hpp"

namespace freehold::cli {

void add_mcp(CLI::App& app, Invocation& invocation) {
  Command command(app, "mcp", "Serve the doctor, heap profiles and statistics to agents, by the Model Context Protocol");
  command.footer(
      "Reads requests from standard input, and answers on standard output. It runs what its client asks it to run. "
      "docs/mcp.md");
  command.on_use([&invocation] {
    open_standard_files();
    Interrupts interrupts;
    invocation.exit_code = mcp::Server(interrupts).serve();
  });
}

}  // namespace freehold::cli
