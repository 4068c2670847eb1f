// SPDX-License-Identifier: MIT
// Where a program calls something, in its own words: stacks of a recording with names, cut at their sites.
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
  double share = 0;  // of what its site does
};

// Where something is called, in the program's own words.
struct Place {
  std::vector<SiteStack> stacks;  // the heaviest first, at most kStacksOfASite; never empty
  std::size_t all_stacks = 0;
  std::string via;  // what the program called there: "std::vector<int>::push_back(int&&)", "malloc"; empty: unknown

  [[nodiscard]] const Frame& frame() const { return stacks.front().frames.front(); }
  [[nodiscard]] std::string text() const { return frame().text(); }
};
inline constexpr std::size_t kStacksOfASite = 8;

// One process's recording and its names: `frames` as Symbols::frames().
struct Evidence {
  const Recording& recording;
  std::function<const std::vector<Frame>&(std::uint64_t address)> frames;
};

// The site that a stack of the process belongs to.
[[nodiscard]] Frame site_of(const Evidence& process, StackId stack);
[[nodiscard]] bool is_same_site(const Frame& one, const Frame& other);

// The number of the site among a stack's frames, innermost first. If there is none, the outermost that is at least not of a
// system library.
[[nodiscard]] std::size_t site_among(std::span<const Frame> frames);

// Whether the frame is of an allocator, the C library, the C++ library or container code, and so never a site.
[[nodiscard]] bool is_library_frame(const Frame& frame);

using StackIndex = std::size_t;  // of Stacks

// The stacks of all processes, by what they say rather than by address, cut at their sites.
class Stacks {
 public:
  struct Known {
    std::size_t place = 0;
    std::vector<Frame> frames;  // the site first
    std::string via;
  };

  explicit Stacks(std::span<const Evidence> processes) : processes_(processes), seen_(processes.size()) {}

  [[nodiscard]] StackIndex of(std::size_t process, StackId stack);
  [[nodiscard]] std::size_t place(StackIndex stack) const { return known_[stack].place; }
  [[nodiscard]] const Known& operator[](StackIndex stack) const { return known_[stack]; }

 private:
  [[nodiscard]] StackIndex add(std::vector<Frame> frames);

  std::span<const Evidence> processes_;
  std::vector<std::map<StackId, StackIndex>> seen_;  // of each process
  std::vector<Known> known_;
  std::map<std::string, StackIndex> by_text_;
  std::map<std::string, std::size_t> places_;
};

// How much of something comes through which stack.
using StackTally = std::map<StackIndex, double>;

// Where that happens. Pre: `tally` is not empty.
[[nodiscard]] Place place_of(const Stacks& stacks, const StackTally& tally);

}  // namespace freehold::doctor
