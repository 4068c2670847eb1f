// SPDX-License-Identifier: MIT
// Of what kind the parts of a loss are: what the allocator does that costs scaling, and what the program does itself.
#pragma once
#include <optional>

#include "tools/doctor/facts/loss.hpp"
#include "tools/doctor/verdict/verdict.hpp"

namespace freehold::doctor {

inline constexpr double kPaddingExplains = 0.6;  // share of the allocator's part: lines that blocks share
inline constexpr double kInMalloc = 0.05;        // share of the time: what happens there can be the cause
inline constexpr double kSomeLockWaits = 0.1;    // share of the threads' lives: the kernel's new work is that of waking them

// True if the program was seen to spend so little in malloc that no user would be advised to change it for another: neither
// CPU time nor sleep, nor page faults but those that fetch its memory once, nor much memory that is not live. Where blocks
// lie may matter all the same.
[[nodiscard]] bool no_malloc_can_help(const Attribution& recorded, const Cell& on_all);

class Causes {
 public:
  explicit Causes(const Losses& losses) : of_(losses) {}

  // Of what kind the allocator's part is.
  [[nodiscard]] Cause allocator_cause(const Verdict& verdict) const;
  // Whether the recording bears out what the trials say. Another allocator puts everything elsewhere, also what the program
  // shares by itself, and can be faster by that, or by chance.
  [[nodiscard]] bool is_credible(Cause kind) const;
  // Of what kind the rest is: seen with the allocator out of the way. A CPU is idle when no thread of the program's is ready
  // to run on it; what others took meanwhile may have been wanted, or not.
  [[nodiscard]] Cause own_cause(const Verdict& verdict) const;
  [[nodiscard]] bool was_copied() const;
  // Or was not wanted.
  [[nodiscard]] bool padding_was_tried() const;
  // Returns whether the program was seen to spend next to nothing in malloc, with the variant's as with its own: neither CPU
  // time nor waits nor page faults.
  [[nodiscard]] bool malloc_is_idle(std::size_t variant) const;
  // Whether it may matter where blocks lie: threads were seen to share a part of the lines, or padding helps.
  [[nodiscard]] bool placement_matters(const Verdict& verdict) const;
  // The share of the time on all CPUs that goes, surely and at once, with half of malloc's page faults; 0: too little to
  // be worth a verdict.
  [[nodiscard]] double time_of_faults(const Verdict& verdict) const;
  // Then they are the cause, whether or not the program scales.
  [[nodiscard]] bool faults_take_more_than_is_lost(const Verdict& verdict) const {
    const double of_faults = time_of_faults(verdict);
    return of_faults > 0 && of_faults >= verdict.lost.high;
  }
  // Whether arenas hold much more than the program needs: few of them, or another allocator, do with much less.
  [[nodiscard]] bool is_bloated(const Verdict& verdict) const;

 private:
  // Shares of the CPUs: threads wait for locks of the program's that the probe saw, the kernel's work for that included.
  [[nodiscard]] double lock_time() const;
  // Why CPUs idle: threads sleep in locks, also those that no call told the probe of, or too little runs at the same time.
  [[nodiscard]] Cause cause_of_idleness(double idle) const;
  // What the program's instructions say: it spins in loops of its own, or writes lines that other threads write. CPUs idle
  // beside that when some threads are served before others.
  [[nodiscard]] std::optional<Cause> cause_in_code(double lost, double idle) const;
  // Whether the kernel's time goes to page faults. Threads that wait for locks need the kernel too, and may have many faults
  // beside, but not on one CPU; a page costs about the same there.
  [[nodiscard]] bool is_faulting(const Cell& on_all) const;
  // True if most of the time is the kernel's work in calls of malloc, on one CPU as on all: it fetches memory and gives it
  // back. Another allocator may have as many faults and be faster.
  [[nodiscard]] bool kernel_works_for_malloc() const;
  // Whether the pages were mapped by calls of the program's own. malloc maps memory as well, and a program that has all of
  // its memory from there has page faults with most mallocs.
  [[nodiscard]] bool maps_itself() const;
  // Whether the faults go with the arenas, and so does the memory.
  [[nodiscard]] bool faults_go_with_arenas(const Verdict& verdict) const;
  [[nodiscard]] bool padding_explains() const;
  // CPU seconds that the program needs on all CPUs beyond those that it needs alone. Pre: the variant has both.
  [[nodiscard]] double more_work(std::size_t variant) const;
  // True if the CPU time that comes with the threads is work: they need it on one CPU, too, where no line is fetched from
  // another. False: it is not, or that was not tried, or it is not clear.
  [[nodiscard]] bool does_more_work() const;
  // True if the CPU time that comes with the threads is more than memory that they all wait for can cost: then it need not
  // be told from what they share by processes. Not said of a program whose instructions were not sampled.
  [[nodiscard]] bool is_beyond_bandwidth() const;
  // True if the CPU time that comes with the threads was seen in malloc, and no other one was tried, as with a program that
  // brings its own: then it is no data of the program's that threads share.
  [[nodiscard]] bool grows_in_built_in_malloc() const;
  // CPU seconds that the best other allocator saves on all CPUs, idle ones included.
  [[nodiscard]] double saved_capacity() const;
  // Whether the work that comes with the CPUs goes with another allocator. Work that stays is the program's own: it may
  // spin, or write shared lines, beside a malloc that is as slow on one CPU.
  [[nodiscard]] bool work_grows_away() const;
  // True if the best other allocator saves most of what is lost, so that without other evidence it is why.
  [[nodiscard]] bool saves_most() const;
  // Whether what another allocator saves is the kernel's time.
  [[nodiscard]] bool is_kernel_time(const Cell& best) const;

  const Losses& of_;
};

}  // namespace freehold::doctor
