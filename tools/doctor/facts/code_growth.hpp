// SPDX-License-Identifier: MIT
// Finds where the CPU time that comes with more threads is spent, by instruction: a run with few threads and one with
// many are sampled (code_sampler.hpp) and compared. Work that all threads share takes the same time in both. Work that each
// thread brings along takes as many times more as there are threads. Instructions that take still more, or that only many
// threads execute, are those that threads wait with: loops that spin, and atomic operations on a line that others write.
//
// This is told from samples of the program's own code alone: no allocation, lock or counter of the hardware is needed.
// Pure. Cost: O(places log places).
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace freehold::doctor {

// Says what a sampled instruction is about to do, or has just done.
enum class Instruction : std::uint8_t {
  kPlain,
  kSystemCall,  // the kernel works for it, or waits for one of the kernel's locks
  kAtomic,      // a read-modify-write of memory that other CPUs may not see half done
  kPause,       // a hint that a loop is spinning, or a call that gives the CPU away
};

// `code`: bytes of the program around the sampled instruction, which begins at code[at].
[[nodiscard]] Instruction instruction_in(std::span<const std::uint8_t> code, std::size_t at) noexcept;

// An instruction, wherever the file was mapped in this run.
struct CodePlace {
  std::string file;          // executable or library
  std::uint64_t offset = 0;  // offset in the file, bytes
  friend auto operator<=>(const CodePlace&, const CodePlace&) = default;
};

// Says whose code an instruction belongs to.
enum class CodeOrigin : std::uint8_t {
  kProgram,
  kTeam,         // OpenMP's runtime: its threads spin until there is work for them, or until all are there
  kRuntimeWait,  // the C library's calls that several threads may pass at once: what they wait for is recorded
  kRuntime,      // other code of the C library: its atomic operations take locks; it yields and pauses for its caller
  kLock,         // where it takes and releases a program's locks, the reading of their lines included
  kPrivateLock,  // the C library's wait for its own locks: malloc's, where that is used, else a stream's or rand()'s
  kAllocator,    // malloc's, or that of an allocator in the program's own file: threads wait in it for each other's calls
};

struct CodeTime {
  double seconds = 0;  // CPU time of all threads
  Instruction instruction = Instruction::kPlain;
  CodeOrigin origin = CodeOrigin::kProgram;
  std::uint64_t address = 0;  // address in one of the runs, which names are looked up by
};

struct CodeSamples {
  std::map<CodePlace, CodeTime> places;
  double unknown_s = 0;  // CPU time in code that no file has, as that of a just-in-time compiler
  std::size_t samples = 0;
  double lock_sleepers = 0;  // mean number of threads that slept until a lock was free
  double lock_sleeps = 0;    // share of all sleeps that were in locks, 0 to 1
  std::string maps;          // memory map of the program, as in /proc/PID/maps
};

struct CodeGrowth {
  double lock_sleepers = 0;  // CodeSamples::lock_sleepers of the run with many threads
  double lock_sleeps = 0;    // CodeSamples::lock_sleeps of that run
  bool known = false;        // whether enough samples were taken
  bool work_known = false;   // whether enough of them were where work is done
  bool work_grows = false;   // whether each thread brings its own work
  // Shares of the CPU time of the run with many threads, 0 to 1.
  double same = 0;             // instructions that take as much with few threads
  double grown = 0;            // instructions that take more in proportion to the threads
  double spinning = 0;         // beyond the work: loops that pause or yield
  double team_waiting = 0;     // beyond the work: OpenMP's threads, which wait for work and for each other
  double locking = 0;          // beyond the work: code of the C library that takes locks, its own and the program's
  double private_locking = 0;  // beyond the work: waits for the C library's own locks, malloc's among them
  double contended = 0;        // beyond the work: the program's own atomic operations
  double slowed = 0;     // beyond the work: other instructions, which wait for far memory or for lines that others write
  double allocator = 0;  // beyond the work: malloc or another allocator, at whatever instruction,
                         // private_locking included
  double in_malloc = 0;  // malloc or another allocator in all, the kernel's work for it included
  double in_malloc_error = 0;           // standard error of in_malloc
  std::uint64_t hottest_spin = 0;       // CodeTime::address of the hottest such instruction; 0: none
  std::uint64_t hottest_contended = 0;  // the same of lines that others write, atomic or not
};

// True if CPU time was seen that comes with the threads, and little of it in malloc. Then another allocator may mend it all
// the same: it changes how fast threads come back to the lines that they share, and so what that costs them.
[[nodiscard]] bool grows_outside_malloc(const CodeGrowth& growth) noexcept;

// Compares two runs. `factor`: by how many times `all` has more threads than `alone`; above 1.
[[nodiscard]] CodeGrowth growth_between(const CodeSamples& alone, const CodeSamples& all, double factor);

}  // namespace freehold::doctor
