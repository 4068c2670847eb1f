// SPDX-License-Identifier: MIT
// freehold-lab-32: `freehold pools` in a program of 32 bits. Its results have the form of the 64-bit program's.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "lab/experiment/run.hpp"
#include "lab/pools/experiment.hpp"
#include "lab/pools/simulate.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/output_file.hpp"

namespace freehold::lab {

std::vector<pools::Simulated> pools::simulate(const std::vector<const Candidate*>&, Interrupts&, Progress&) {
  throw Failure(kExitRefused, "--simulate counts the same in 32 bits: use freehold pools");
}

}  // namespace freehold::lab

int main(int argc, char** argv) {
  using namespace freehold::lab;
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == pools::Job::kWorker)
    return worker_main<pools::Job>({words.begin() + 1, words.end()});
  CLI::App app("Article 1's and 2's pools, compiled for 32 bits");
  app.require_subcommand(1);
  int exit_code = 0;
  Command command(app, "pools", "Compare pools of fixed-size slots: the experiments of two articles");
  pools::add_options(command);
  command.on_use([&] {
    open_standard_files();
    exit_code = pools::run_command();
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    std::cerr << "freehold-lab-32: " << error.what() << '\n';
    return 1;
  }
  return exit_code;
}
