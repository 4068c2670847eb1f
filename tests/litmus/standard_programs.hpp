// SPDX-License-Identifier: MIT
// The litmus programs of the literature, with what it says of them. Names as there: Maranget, Sarkar, Sewell (A tutorial
// introduction to the ARM and POWER relaxed memory models); Batty et al. (Mathematizing C++ concurrency); Lahav et al.
// (Repairing sequential consistency in C/C++11); P0668. sc, ar, rel, acq, rlx: orders of accesses; with an f behind: of
// fences between the accesses.
#pragma once
#include <cstdint>

namespace freehold::litmus {

// The machine shows what is allowed and explained by one order of execution, in which every access comes after what it reads
// and overwrites. The last three are allowed, too, and it does not show them.
enum class Verdict : std::uint8_t {
  kForbidden,
  kPlain,      // sb ∪ rf ∪ mo ∪ the order of seq_cst is acyclic
  kSeqCst,     // the order of seq_cst contradicts the others, of which sb ∪ rf ∪ mo is acyclic
  kOvertaken,  // a store is overwritten by one that was executed before: sb ∪ rf is acyclic
  kBuffered,   // a load reads what is stored later
};
using enum Verdict;

struct Known {
  const char* name;
  const char* program;
  const char* outcome;  // a pattern: the one that the program is known for
  Verdict verdict;
};

// clang-format off
inline constexpr Known kStandard[] = {
    // Store buffering: do both threads miss the other's store?
    {"SB", "x=1/rlx y/rlx | y=1/rlx x/rlx", "00;11", kPlain},
    {"SB+rel+acq", "x=1/rel y/acq | y=1/rel x/acq", "00;11", kPlain},
    {"SB+3sc+acq", "x=1/sc y/sc | y=1/sc x/acq", "00;11", kPlain},
    {"SB+3sc+rel", "x=1/sc y/sc | y=1/rel x/sc", "00;11", kPlain},
    {"SB+4sc", "x=1/sc y/sc | y=1/sc x/sc", "00;11", kForbidden},
    {"SB+arf", "x=1/rlx F/ar y/rlx | y=1/rlx F/ar x/rlx", "00;11", kPlain},
    {"SB+scf", "x=1/rlx F/sc y/rlx | y=1/rlx F/sc x/rlx", "00;11", kForbidden},
    {"SB+scf+none", "x=1/rlx F/sc y/rlx | y=1/rlx x/rlx", "00;11", kPlain},
    {"SB+2sc+scf", "x=1/sc y/sc | y=1/rlx F/sc x/rlx", "00;11", kForbidden},
    {"SB+rfis", "x=1/rel x/sc y/sc | y=1/rel y/sc x/sc", "1010;11", kPlain},
    {"SB+exchange+ar", "x<1/ar y/acq | y<1/ar x/acq", "0000;11", kPlain},
    {"SB+exchange+sc", "x<1/sc y/sc | y<1/sc x/sc", "0000;11", kForbidden},
    {"SB+exchange+one", "x<1/rlx | x<2/rlx", "00;.", kForbidden},
    // Message passing: is the message old, though the flag is new?
    {"MP", "x=1/rlx y=1/rlx | y/rlx x/rlx", "10;11", kPlain},
    {"MP+rel+rlx", "x=1/rlx y=1/rel | y/rlx x/rlx", "10;11", kPlain},
    {"MP+rlx+acq", "x=1/rlx y=1/rlx | y/acq x/rlx", "10;11", kPlain},
    {"MP+rel+acq", "x=1/rlx y=1/rel | y/acq x/rlx", "10;11", kForbidden},
    {"MP+relf+acqf", "x=1/rlx F/rel y=1/rlx | y/rlx F/acq x/rlx", "10;11", kForbidden},
    {"MP+relf+acq", "x=1/rlx F/rel y=1/rlx | y/acq x/rlx", "10;11", kForbidden},
    {"MP+rel+acqf", "x=1/rlx y=1/rel | y/rlx F/acq x/rlx", "10;11", kForbidden},
    {"MP+late", "x=1/rlx y=1/rlx F/rel | y/rlx F/acq x/rlx", "10;11", kPlain},
    {"MP+acqf+relf", "x=1/rlx F/acq y=1/rlx | y/rlx F/rel x/rlx", "10;11", kPlain},
    {"MP+rels+acq", "x=1/rlx y=1/rel y=2/rlx | y/acq x/rlx", "20;12", kPlain},
    {"MPU+rel+acq", "x=1/rlx y=1/rel | y+1/rlx | y/acq x/rlx", "120;12", kForbidden},
    {"MPU2+rel+acq", "x=1/rlx y=1/rel | y?2:3/rlx/rlx | y?1:2/rlx/rlx | y/acq x/rlx", "2130;13", kForbidden},
    {"MPU+other", "x=1/rlx y=1/rel | y=2/rlx y+1/rlx | y/acq x/rlx", "230;13", kPlain},
    {"MP+failed", "x=1/rlx y=1/rel | y?0:2/rlx/acq x/rlx", "10;11", kForbidden},
    {"MP+failed+rlx", "x=1/rlx y=1/rel | y?0:2/acq/rlx x/rlx", "10;11", kPlain},
    // Load buffering: does each thread read what the other stores after its load?
    {"LB", "x/rlx y=1/rlx | y/rlx x=1/rlx", "11;11", kBuffered},
    {"LB+acq", "x/acq y=1/rlx | y/acq x=1/rlx", "11;11", kBuffered},
    {"LB+rel", "x/rlx y=1/rel | y/rlx x=1/rel", "11;11", kBuffered},
    {"LB+acq+rel", "x/acq y=1/rlx | y/rlx x=1/rel", "11;11", kForbidden},
    {"LB+rel+acq", "x/acq y=1/rel | y/acq x=1/rel", "11;11", kForbidden},
    {"LB+4sc", "x/sc y=1/sc | y/sc x=1/sc", "11;11", kForbidden},
    {"LB+scf", "x/rlx F/sc y=1/rlx | y/rlx F/sc x=1/rlx", "11;11", kForbidden},
    {"LB3", "x/rlx y=1/rlx | y/rlx z=1/rlx | z/rlx x=1/rlx", "111;111", kBuffered},
    // Independent reads of independent writes: do the readers disagree?
    {"IRIW", "x=1/rlx | y=1/rlx | x/rlx y/rlx | y/rlx x/rlx", "1010;11", kPlain},
    {"IRIW+rel+acq", "x=1/rel | y=1/rel | x/acq y/acq | y/acq x/acq", "1010;11", kPlain},
    {"IRIW+sc", "x=1/sc | y=1/sc | x/sc y/sc | y/sc x/sc", "1010;11", kForbidden},
    {"IRIW+acq+sc", "x=1/sc | y=1/sc | x/acq y/sc | y/acq x/sc", "1010;11", kSeqCst},
    {"IRIW+arf", "x=1/rlx | y=1/rlx | x/rlx F/ar y/rlx | y/rlx F/ar x/rlx", "1010;11", kPlain},
    {"IRIW+scf", "x=1/rlx | y=1/rlx | x/rlx F/sc y/rlx | y/rlx F/sc x/rlx", "1010;11", kForbidden},
    {"IRIW+rel+sc", "x=1/rel | y=1/rel | x/sc y/sc | y/sc x/sc", "1010;11", kPlain},
    // Write to read causality, read to write causality.
    {"WRC", "x=1/rlx | x/rlx y=1/rlx | y/rlx x/rlx", "110;11", kPlain},
    {"WRC+rel+acq", "x=1/rel | x/acq y=1/rel | y/acq x/rlx", "110;11", kForbidden},
    {"WRC+rlx+rel+acq", "x=1/rlx | x/rlx y=1/rel | y/acq x/rlx", "110;11", kForbidden},
    {"WRC+rel+acq+rlx", "x=1/rel | x/acq y=1/rlx | y/rlx x/rlx", "110;11", kPlain},
    {"RWC", "x=1/rlx | x/rlx y/rlx | y=1/rlx x/rlx", "100;11", kPlain},
    {"RWC+rel+acq", "x=1/rel | x/acq y/acq | y=1/rel x/acq", "100;11", kPlain},
    {"RWC+scf", "x=1/rlx | x/rlx F/sc y/rlx | y=1/rlx F/sc x/rlx", "100;11", kForbidden},
    {"RWC+sc", "x=1/sc | x/sc y/sc | y=1/sc x/sc", "100;11", kForbidden},
    {"RWC+acq+sc", "x=1/sc | x/acq y/sc | y=1/sc x/sc", "100;11", kSeqCst},
    {"W+RWC", "x=1/rlx z=1/rel | z/acq F/sc y/rlx | y=1/rlx F/sc x/rlx", "100;111", kForbidden},
    {"W+RWC+rlx", "x=1/rlx z=1/rlx | z/acq F/sc y/rlx | y=1/rlx F/sc x/rlx", "100;111", kPlain},
    {"peterZ", "x=1/rlx F/sc y/rlx | y=1/rlx z=1/rel | z/acq F/sc x/rlx", "010;111", kForbidden},
    // S, R, 2+2W: with the order of two stores.
    {"S", "x=2/rlx y=1/rlx | y/rlx x=1/rlx", "1;21", kOvertaken},
    {"S+rel+acq", "x=2/rlx y=1/rel | y/acq x=1/rlx", "1;21", kForbidden},
    {"S+scf", "x=2/rlx F/sc y=1/rlx | y/rlx F/sc x=1/rlx", "1;21", kForbidden},
    {"R", "x=1/rlx y=1/rlx | y=2/rlx x/rlx", "0;12", kPlain},
    {"R+rel+acq", "x=1/rel y=1/rel | y=2/rel x/acq", "0;12", kPlain},
    {"R+sc", "x=1/sc y=1/sc | y=2/sc x/sc", "0;12", kForbidden},
    {"R+scf", "x=1/rlx F/sc y=1/rlx | y=2/rlx F/sc x/rlx", "0;12", kForbidden},
    {"2+2W", "x=1/rlx y=2/rlx | y=1/rlx x=2/rlx", ";11", kOvertaken},
    {"2+2W+rel", "x=1/rel y=2/rel | y=1/rel x=2/rel", ";11", kOvertaken},
    {"2+2W+3sc+rel", "x=1/sc y=2/sc | y=1/rel x=2/sc", ";11", kOvertaken},
    {"2+2W+4sc", "x=1/sc y=2/sc | y=1/sc x=2/sc", ";11", kForbidden},
    {"2+2W+scf", "x=1/rlx F/sc y=2/rlx | y=1/rlx F/sc x=2/rlx", ";11", kForbidden},
    {"2+2W+2sc+scf", "x=1/sc y=2/sc | y=1/rlx F/sc x=2/rlx", ";11", kForbidden},
    // Coherence: one location, one order.
    {"CoRR", "x=1/rlx x=2/rlx | x/rlx x/rlx", "21;2", kForbidden},
    {"CoRR0", "x=1/rlx | x/rlx x/rlx", "10;1", kForbidden},
    {"CoRR2", "x=1/rlx | x=2/rlx | x/rlx x/rlx | x/rlx x/rlx", "1221;.", kForbidden},
    {"CoWW", "x=1/rlx x=2/rlx", ";1", kForbidden},
    {"CoRW", "x/rlx x=1/rlx | x=2/rlx", "2;2", kForbidden},
    {"CoRW1", "x/rlx x=1/rlx", "1;1", kForbidden},
    {"CoWR", "x=1/rlx x/rlx | x=2/rlx", "2;1", kForbidden},
    {"CoRR+handed+on", "x=1/rlx | x/rlx y=1/rel | y/acq x/rlx", "110;11", kForbidden},
    // Three locations.
    {"ISA2", "x=1/rlx y=1/rlx | y/rlx z=1/rlx | z/rlx x/rlx", "110;111", kPlain},
    {"ISA2+rel+acq", "x=1/rlx y=1/rel | y/acq z=1/rel | z/acq x/rlx", "110;111", kForbidden},
    {"ISA2+arf", "x=1/rlx F/ar y=1/rlx | y/rlx F/ar z=1/rlx | z/rlx F/ar x/rlx", "110;111", kForbidden},
    {"Z6+rel+acq", "x=1/rlx y=1/rel | y/acq z=1/rel | z=2/rel x/acq", "10;112", kPlain},
    {"Z6+acq", "x=1/rlx F/sc y=1/rlx | y/acq z=1/rlx | z=2/rlx F/sc x/rlx", "10;112", kForbidden},
    {"Z6.3", "x=1/rlx y=1/rel | y=2/rel z=1/rel | z/acq x/rlx", "10;121", kPlain},
    {"Z6.3+sc", "x=1/sc y=1/sc | y=2/sc z=1/sc | z/sc x/sc", "10;121", kForbidden},
    {"Z6.3+scf", "x=1/rlx F/sc y=1/rlx | y=2/rlx F/sc z=1/rlx | z/rlx F/sc x/rlx", "10;121", kForbidden},
    {"Z6.U", "x=1/sc y=1/rel | y+1/sc y/rlx | y=3/sc x/sc", "130;13", kSeqCst},
    // Read-modify-writes, and compare-exchanges that fail.
    {"inc+inc", "x+1/rlx | x+1/rlx", "00;1", kForbidden},
    {"cas+cas", "x?0:1/rlx/rlx | x?0:2/rlx/rlx", "00;.", kForbidden},
    {"inc+w", "x+1/rlx | x=5/rlx", "0;1", kForbidden},
    {"cas+old", "x=1/rlx y=1/rlx | y/rlx x?1:2/rlx/rlx", "10;11", kPlain},
    {"weak", "x~0:1/rlx/rlx", "0!;0", kPlain},
    {"weak+same", "x~0:3/rel/acq x=3/rel | x<3/ar", "0!3;3", kPlain},
    {"weak+old", "x=1/rlx y=1/rlx | y/rlx x~0:2/rlx/rlx", "10!;11", kPlain},
};

// clang-format on

}  // namespace freehold::litmus
