// SPDX-License-Identifier: MIT
// Judges stored reports again, without the machine:
//   judge_reports FOLDER...             of each report the name, cause, doubt, suspected cause, loss, advice, disturbance and
//                                       missing fact
//   judge_reports --margins FOLDER...   of each threshold, in order: answers that change when it is a tenth lower, and higher
//   judge_reports --table               the tables of docs/verdict-table.md
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include "tests/doctor/recorded_answer.hpp"
#include "tests/doctor/table_text.hpp"
#include "tools/doctor/report/results_json.hpp"

namespace {

using namespace freehold::doctor;
using Answers = std::map<std::string, RecordedAnswer>;

Answers read(int count, char** folders) {
  Answers answers;
  for (int i = 0; i < count; ++i)
    for (const auto& file : std::filesystem::directory_iterator(folders[i])) {
      if (file.path().extension() != ".json") continue;
      try {
        answers.emplace(file.path().stem().string(), RecordedAnswer(file.path()));
      } catch (const std::exception&) {  // a report that answers another question
      }
    }
  return answers;
}

std::map<std::string, MemoryFacts> read_memory(int count, char** folders) {
  std::map<std::string, MemoryFacts> answers;
  for (int i = 0; i < count; ++i)
    for (const auto& file : std::filesystem::directory_iterator(folders[i])) {
      if (file.path().extension() != ".json") continue;
      const auto report = nlohmann::json::parse(std::ifstream(file.path()), nullptr, false);
      if (!report.is_object() || report.value("schema", "") != "freehold-doctor-memory/1") continue;
      MemoryFacts& facts = answers[file.path().stem().string()];
      for (std::size_t fact = 0; fact < kMemoryFacts; ++fact) {
        const auto of = static_cast<MemoryFact>(fact);
        const auto& known = report["verdict"]["facts"];
        if (known.contains(describe(of).name)) facts.set(of, known[std::string(describe(of).name)].get<Estimate>());
      }
    }
  return answers;
}

Verdict judged(const RecordedAnswer& answer) { return verdict_of(answer.experiment, answer.recorded.get()); }
MemoryDecision judged(const MemoryFacts& facts) { return decide(facts); }

unsigned changes(const auto& answers, const auto& before, Threshold& threshold, double factor) {
  const double value = threshold.value;
  threshold.value *= factor;
  unsigned changed = 0;
  for (const auto& [name, answer] : answers) changed += judged(answer).cause != before.at(name) ? 1 : 0;
  threshold.value = value;
  return changed;
}

void print_margins(auto& thresholds, const auto& answers) {
  std::map<std::string, decltype(judged(answers.begin()->second).cause)> before;
  for (const auto& [name, answer] : answers) before[name] = judged(answer).cause;
  for (Threshold& threshold : thresholds) {
    const unsigned lower = changes(answers, before, threshold, 0.9), higher = changes(answers, before, threshold, 1.1);
    std::cout << lower << ' ' << higher << '\t' << threshold.value << '\t' << threshold.reason << '\n';
  }
}

void print_verdicts(const Answers& answers) {
  for (const auto& [name, answer] : answers) {
    const Verdict verdict = judged(answer);
    std::cout << fmt::format("{} {} {} {} {:.4f} {} {:.4f} {}\n", name, name_of(verdict.cause), name_of(verdict.doubt),
                             name_of(verdict.suspected), verdict.lost.value, verdict.best_fix ? 1 : 0, verdict.disturbance,
                             verdict.missing ? describe(*verdict.missing).name : "-");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "--table") {
    std::cout << table_text() << "\n## Of memory\n\n" << memory_table_text();
  } else if (what == "--margins") {
    print_margins(thresholds(), read(argc - 2, argv + 2));
    print_margins(memory_thresholds(), read_memory(argc - 2, argv + 2));
  } else {
    print_verdicts(read(argc - 1, argv + 1));
  }
}
