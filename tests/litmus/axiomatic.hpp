// SPDX-License-Identifier: MIT
// The outcomes of a litmus program by the axioms of the C++20 memory model: an oracle for the simulated machine, which
// shares no code and no idea with it. The machine executes; this file knows no time. It tries every candidate: a store for
// each read (rf), an order of the stores of each location (mo), and keeps those that the axioms allow. Small programs only:
// the candidates are tried one by one.
//
// The axioms are those of RC11 (Lahav, Vafeiadis, Kang, Hur, Dreyer: Repairing Sequential Consistency in C/C++11, PLDI
// 2017), in which C++20's changes come from (P0668), with the release sequences of C++20 (P0982: a head and the
// read-modify-writes after it):
//   hb is irreflexive, and so is hb;eco        eco = (rf ∪ mo ∪ fr)+: coherence
//   nothing between a read-modify-write and the store that it reads: atomicity
//   psc is acyclic                             the order of the seq_cst accesses and fences
//
// RC11 also forbids cycles of sb ∪ rf (load buffering), C++20 does not. Outcomes that need one are kept, and marked. So are
// those that no single order of execution explains, in which every access comes after what it reads and overwrites.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "tests/litmus/program.hpp"

namespace freehold::litmus {

// What a machine must be able to do to show an outcome, beside reading old values.
enum class Needs : std::uint8_t {
  kNothing,            // one order of execution explains all: sb ∪ rf ∪ mo ∪ the order of seq_cst is acyclic
  kOrderOfSeqCst,      // the order of seq_cst contradicts the others, of which sb ∪ rf ∪ mo is acyclic
  kModificationOrder,  // a store is overwritten by one that was executed before: sb ∪ rf is acyclic
  kLoadBuffering,      // a load reads what is stored later
};

struct Allowed {
  std::map<std::string, Needs> outcomes;  // the least that any execution needs
};

Allowed allowed_by_axioms(const Program& program);

// An upper bound of the candidates that allowed_by_axioms() tries.
std::uint64_t candidates(const Program& program) noexcept;

}  // namespace freehold::litmus
