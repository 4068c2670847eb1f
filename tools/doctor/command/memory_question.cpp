// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>

#include "tools/doctor/command/questions.hpp"
#include "tools/doctor/command/refusals.hpp"
#include "tools/doctor/command/treatments.hpp"
#include "tools/doctor/facts/own_malloc.hpp"
#include "tools/doctor/run/child.hpp"
#include "tools/doctor/run/memory_examination.hpp"
#include "tools/support/interrupts.hpp"

namespace freehold::doctor::command {
namespace {
using namespace report;

// Unless it is switched off already.
std::optional<MemoryDiagnosis::OwnAllocator> own_allocator_of(const std::set<std::string>& files) {
  for (const doctor::OwnMalloc& own : doctor::own_mallocs(files)) {
    if (own.is_reached) continue;
    MemoryDiagnosis::OwnAllocator found{
        .name = own.name, .program = std::filesystem::path(own.file).filename().string(), .use_malloc = {}};
    if (own.use_malloc) {
      const auto& [variable, value] = *own.use_malloc;
      if (const char* const set = std::getenv(variable.c_str()); set != nullptr && set == value) continue;
      found.use_malloc = variable + '=' + value;
    }
    return found;
  }
  return std::nullopt;
}

std::string note_of(const MemoryDiagnosis::OwnAllocator& own) {
  return fmt::format(
      "{} has {}, which maps memory itself: what it hands out counts as mappings, and its sites are not seen{}",
      printable(own.program), own.name,
      own.use_malloc.empty() ? "." : fmt::format("; with {} in the environment they are.", own.use_malloc));
}

}  // namespace

MemoryDiagnosis ask(const MemoryRequest& request) {
  Interrupts interrupts;
  Progress progress;
  const std::string program = printable(request.settings.command.front());
  const double begin = doctor::now_s();
  MemoryDiagnosis diagnosis{.settings = request.settings,
                            .program = request.program,
                            .machine = this_machine(),
                            .date = today(),
                            .experiment = {},
                            .verdict = {},
                            .own = {},
                            .is_cut = false,
                            .notes = {}};
  const doctor::MemoryCaller caller{
      .host = {.mask = interrupts.original_mask(), .stop_fd = interrupts.fd()},
      .show =
          [&](const std::string& what, double seconds_left) {
            progress.show(seconds_left > 0 ? fmt::format("{}  ({} left)", what, duration_text(seconds_left)) : what);
          },
      .tools =
          [&](const std::set<std::string>& files) {
            diagnosis.own = own_allocator_of(files);
            if (diagnosis.own) diagnosis.notes.push_back(note_of(*diagnosis.own));
            return memory_tools_for(files, request.allocators, diagnosis.notes);
          },
      .look_at_pins = request.look_at_pins,
      .signal = [&interrupts] { return interrupts.arrived(); }};
  try {
    auto outcome = doctor::examine_memory(request.settings, request.program, caller);
    diagnosis.experiment = std::move(outcome.experiment);
    diagnosis.verdict = std::move(outcome.verdict);
    diagnosis.signal = outcome.signal;
    for (auto& cell : diagnosis.experiment.cells) cell.failure = printable(cell.failure);
    for (const std::string& note : outcome.notes) diagnosis.notes.push_back(fmt::format("Note: {}.", printable(note)));
    diagnosis.is_cut = !outcome.left_out.empty();
    if (diagnosis.is_cut)
      diagnosis.notes.push_back(fmt::format("Left out, to end within {:.0f} s: {}. A longer --budget includes them.",
                                            request.settings.budget_s, fmt::join(outcome.left_out, "; ")));
    diagnosis.seconds = doctor::now_s() - begin;
    return diagnosis;
  } catch (const Refused& refused) {
    throw failure_of(refused, program, request.settings, interrupts.arrived());
  }
}

}  // namespace freehold::doctor::command
