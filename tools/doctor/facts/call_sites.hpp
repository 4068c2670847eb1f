// SPDX-License-Identifier: MIT
// The places at which a program calls something, in its own words: stacks of a recording with names, cut at their sites.
//
// A *site* is the first frame of the program's own code: frames of the C and C++ libraries, of allocators and of container
// code from headers are folded away. Where code that was made at run time has names, the site is the first such function of
// the program's own, and an interpreter's frames are folded away as well. Stacks with one site are one row; where they come
// from stays with it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tools/doctor/facts/recording.hpp"
#include "tools/doctor/facts/symbols.hpp"

namespace freehold::doctor {

// A stack of a site: frames from the site outwards.
struct SiteStack {
  std::vector<Frame> frames;
  double share = 0;  // share of what its site does
};

// A place at which something is called, in the program's own words.
struct Place {
  std::vector<SiteStack> stacks;  // sorted: the heaviest first; at most kStacksOfASite, never empty
  std::size_t all_stacks = 0;
  std::string via;  // function that the program called there: "std::vector<int>::push_back(int&&)", "malloc"; empty: unknown

  [[nodiscard]] const Frame& frame() const { return stacks.front().frames.front(); }
  [[nodiscard]] std::string text() const { return frame().text(); }
};
inline constexpr std::size_t kStacksOfASite = 8;

// One process's recording and its names: `frames` as Symbols::frames().
struct Evidence {
  const Recording& recording;
  std::function<const std::vector<Frame>&(std::uint64_t address)> frames;
};

[[nodiscard]] bool is_same_site(const Frame& one, const Frame& other);

// Returns the index of the site among a stack's frames, innermost first. Without one, it is the outermost that is at least
// not of a system library.
[[nodiscard]] std::size_t site_among(std::span<const Frame> frames);

// Says whether the frame is of an allocator, the C library, the C++ library or container code, and so never a site.
[[nodiscard]] bool is_library_frame(const Frame& frame);

using StackIndex = std::size_t;  // a stack's number in Stacks

// The stacks of all processes, by what they say rather than by address, cut at their sites.
class Stacks {
 public:
  struct Known {
    std::size_t place = 0;
    std::vector<Frame> frames;  // frames from the site outwards
    std::string via;
  };

  explicit Stacks(std::span<const Evidence> processes) : processes_(processes), seen_(processes.size()) {}

  [[nodiscard]] StackIndex of(std::size_t process, StackId stack);
  [[nodiscard]] std::size_t place(StackIndex stack) const { return known_[stack].place; }
  [[nodiscard]] const Known& operator[](StackIndex stack) const { return known_[stack]; }

 private:
  [[nodiscard]] StackIndex add(std::vector<Frame> frames);

  std::span<const Evidence> processes_;
  std::vector<std::map<StackId, StackIndex>> seen_;  // one map for each process
  std::vector<Known> known_;
  std::map<std::string, StackIndex> by_text_;
  std::map<std::string, std::size_t> places_;
};

// The amount of something that comes through each stack.
using StackTally = std::map<StackIndex, double>;

// Returns the place where that happens. Pre: `tally` is not empty.
[[nodiscard]] Place place_of(const Stacks& stacks, const StackTally& tally);

}  // namespace freehold::doctor
