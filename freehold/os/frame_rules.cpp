// SPDX-License-Identifier: MIT
// The unwind information is that of the Linux Standard Base 5.0 (10.6, .eh_frame and .eh_frame_hdr) and of DWARF 5 (6.4).
// This reads the part of it that compilers use for most functions; anything else has no rule.
#include "freehold/os/frame_rules.hpp"

#include <dlfcn.h>

#if defined(__x86_64__) && defined(DLFO_STRUCT_HAS_EH_DBASE)
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>

namespace freehold::os {
namespace {

using Bytes = const unsigned char*;

template <class T>
[[nodiscard]] T load(Bytes at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// ---- CIE and FDE: a length of 4 bytes, then so many bytes --------------------------------------------------------------

constexpr std::uint32_t kMostEntryBytes = 4096;  // its sum is made at each frame; CPython's largest has 1,100

[[nodiscard]] Bytes cie_of(Bytes fde) noexcept { return fde + 4 - load<std::uint32_t>(fde + 4); }
[[nodiscard]] bool is_of_usual_size(Bytes entry) noexcept {
  const auto length = load<std::uint32_t>(entry);
  return length >= 12 && length <= kMostEntryBytes;
}
[[nodiscard]] std::uintptr_t first_code(Bytes fde) noexcept {
  return reinterpret_cast<std::uintptr_t>(fde + 8) + static_cast<std::uintptr_t>(std::intptr_t{load<std::int32_t>(fde + 8)});
}
[[nodiscard]] std::uint32_t code_bytes(Bytes fde) noexcept { return load<std::uint32_t>(fde + 12); }

constexpr std::uint64_t kGolden = 0x9E37'79B9'7F4A'7C15;  // Knuth's multiplicative hash

// One to one in each of the two. Without the rotation, differences in the words' highest bits would cancel out.
[[nodiscard]] std::uint64_t mixed(std::uint64_t sum, std::uint64_t word) noexcept {
  return std::rotl(sum ^ word, 29) * kGolden;
}
// Entries are padded to 4 bytes, the length included.
[[nodiscard]] std::uint64_t mixed_entry(std::uint64_t sum, Bytes entry) noexcept {
  const Bytes end = entry + 4 + load<std::uint32_t>(entry);
  for (; end - entry >= 8; entry += 8) sum = mixed(sum, load<std::uint64_t>(entry));
  return mixed(sum, end - entry >= 4 ? load<std::uint32_t>(entry) : 0);
}

// A part of an entry. What lies behind its end is 0, and makes it bad.
class Reader {
 public:
  Reader(Bytes at, Bytes end) noexcept : at_(at), end_(end) {}
  [[nodiscard]] bool is_at_end() const noexcept { return at_ == end_; }
  [[nodiscard]] bool is_good() const noexcept { return is_good_; }
  template <class T>
  T take() noexcept {
    if (static_cast<std::size_t>(end_ - at_) < sizeof(T)) {
      is_good_ = false;
      at_ = end_;
      return 0;
    }
    const T value = load<T>(at_);
    at_ += sizeof(T);
    return value;
  }
  std::uint64_t uleb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
      const auto byte = take<std::uint8_t>();
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    is_good_ = false;
    return value;
  }
  Reader part(std::uint64_t bytes) noexcept {
    if (static_cast<std::uint64_t>(end_ - at_) < bytes) {
      is_good_ = false;
      bytes = 0;
    }
    at_ += bytes;
    return {at_ - bytes, at_};
  }

 private:
  Bytes at_, end_;
  bool is_good_ = true;
};

// ---- The rows of an FDE's table ----------------------------------------------------------------------------------------

constexpr unsigned kRbx = 3, kRbp = 6, kRsp = 7, kR12 = 12, kRa = 16, kColumns = 17;  // by the ABI's numbers

struct Row {
  static constexpr std::uint8_t kSame = 0, kOdd = 255, kUndefined = 254;  // else words below the canonical frame address

  std::uint64_t base = 0, bytes = 0;  // the canonical frame address: a register, and so many bytes
  std::uint8_t below[kColumns] = {};
};

class RowProgram {
 public:
  // The row that holds right before `code`. False: it has what a rule cannot say.
  [[nodiscard]] bool run(Reader initial, Reader program, std::uintptr_t begin, std::uintptr_t code) noexcept {
    at_ = begin;
    before_ = code;
    if (!run(initial)) return false;
    initial_ = row_;
    at_ = begin;
    return run(program);
  }
  [[nodiscard]] const Row& row() const noexcept { return row_; }

 private:
  static constexpr unsigned kMostKept = 4;

  // -8 is the factor of offsets, 1 that of code.
  [[nodiscard]] bool run(Reader from) noexcept {
    while (!from.is_at_end() && at_ < before_) {
      const auto byte = from.take<std::uint8_t>();
      const unsigned low = byte & 0x3FU;
      switch (byte >> 6) {
        case 1: at_ += low; break;             // DW_CFA_advance_loc
        case 2: set(low, from.uleb()); break;  // DW_CFA_offset
        case 3: restore(low); break;           // DW_CFA_restore
        default:
          if (!run_one(byte, from)) return false;
      }
    }
    return from.is_good();
  }
  [[nodiscard]] bool run_one(std::uint8_t byte, Reader& from) noexcept {
    switch (byte) {
      case 0x00: return true;  // DW_CFA_nop
      case 0x02: at_ += from.take<std::uint8_t>(); return true;
      case 0x03: at_ += from.take<std::uint16_t>(); return true;
      case 0x04: at_ += from.take<std::uint32_t>(); return true;
      case 0x05: {  // DW_CFA_offset_extended
        const std::uint64_t column = from.uleb();
        set(column, from.uleb());
        return true;
      }
      case 0x06: restore(from.uleb()); return true;
      case 0x07: put(from.uleb(), Row::kUndefined); return true;
      case 0x08: put(from.uleb(), Row::kSame); return true;
      case 0x0A:  // DW_CFA_remember_state
        if (kept_ == kMostKept) return false;
        stack_[kept_++] = row_;
        return true;
      case 0x0B:  // DW_CFA_restore_state
        if (kept_ == 0) return false;
        row_ = stack_[--kept_];
        return true;
      case 0x0C:  // DW_CFA_def_cfa
        row_.base = from.uleb();
        row_.bytes = from.uleb();
        return true;
      case 0x0D: row_.base = from.uleb(); return true;
      case 0x0E: row_.bytes = from.uleb(); return true;
      case 0x2E: (void)from.uleb(); return true;  // DW_CFA_GNU_args_size: for landing pads
      default: return false;
    }
  }
  void put(std::uint64_t column, std::uint8_t what) noexcept {
    if (column < kColumns) row_.below[column] = what;  // no rule needs the others
  }
  void set(std::uint64_t column, std::uint64_t words) noexcept {
    put(column, words == 0 || words >= Row::kUndefined ? Row::kOdd : static_cast<std::uint8_t>(words));
  }
  void restore(std::uint64_t column) noexcept {
    if (column < kColumns) row_.below[column] = initial_.below[column];
  }

  Row row_, initial_, stack_[kMostKept];
  unsigned kept_ = 0;
  std::uintptr_t at_ = 0, before_ = 0;
};

[[nodiscard]] FrameRule rule_of(const Row& row) noexcept {
  if (row.below[kRa] == Row::kUndefined) return FrameRule::end();
  const bool is_simple = (row.base == kRsp || row.base == kRbp) && row.below[kRa] == 1 && row.below[kRsp] == Row::kSame &&
                         row.bytes % 8 == 0 && row.bytes != 0 && row.bytes / 8 <= FrameRule::kMostFrameWords;
  if (!is_simple) return {};
  unsigned below[FrameRule::kRegisters];
  constexpr unsigned kKept[] = {kRbp, kRbx, kR12, kR12 + 1, kR12 + 2, kR12 + 3};
  for (unsigned i = 0; i < FrameRule::kRegisters; ++i) {
    below[i] = row.below[kKept[i]];
    if (below[i] > FrameRule::kMostWordsBelow) return {};
  }
  return FrameRule::of(row.base == kRbp, static_cast<unsigned>(row.bytes / 8), below);
}

constexpr std::uint8_t kSigned4 = 0x0B, kBySelf = 0x10, kByHeader = 0x30, kUnsigned4 = 0x03;  // DW_EH_PE_...

// Finds a CIE's instructions, if it is of the usual kind.
[[nodiscard]] bool read_cie(Bytes cie, Reader& instructions) noexcept {
  Reader from(cie + 4, cie + 4 + load<std::uint32_t>(cie));
  if (from.take<std::uint32_t>() != 0 || from.take<std::uint8_t>() != 1) return false;  // not version 1
  if (from.take<char>() != 'z') return false;
  char kinds[4];
  unsigned count = 0;
  while (const char kind = from.take<char>()) {
    if (count == sizeof kinds) return false;
    kinds[count++] = kind;
  }
  constexpr std::uint8_t kMinus8 = 0x78;
  if (from.uleb() != 1 || from.take<std::uint8_t>() != kMinus8 || from.take<std::uint8_t>() != kRa) return false;
  Reader data = from.part(from.uleb());
  bool has_usual_code = false;
  for (unsigned i = 0; i < count; ++i) {
    const auto encoding = data.take<std::uint8_t>();
    if (kinds[i] == 'R') {
      has_usual_code = encoding == (kBySelf | kSigned4);
    } else if (kinds[i] == 'P') {
      const unsigned size = (encoding & 0x07U) == 3 ? 4 : (encoding & 0x07U) == 4 || encoding == 0 ? 8 : 0;
      if (size == 0) return false;
      (void)data.part(size);
    } else if (kinds[i] != 'L') {
      return false;  // 'S': a signal's frame
    }
  }
  instructions = from;
  return has_usual_code && from.is_good() && data.is_good();
}

// ---- What is kept ------------------------------------------------------------------------------------------------------

// Relaxed, all: a slot publishes nothing. Whoever reads it checks its sum, against the unwind information as well.
struct Slot {
  std::atomic<std::uint64_t> code{0}, rule{0}, sum{0};
};
constexpr std::size_t kSets = 1024, kWays = 4;
struct Set {
  Slot slots[kWays];
};
constinit Set g_sets[kSets];  // 96 KiB, untouched before the first walk

[[nodiscard]] Set& set_of(std::uintptr_t code) noexcept { return g_sets[code * kGolden >> 54]; }
static_assert(kSets == std::size_t{1} << (64 - 54));

}  // namespace

std::uintptr_t FrameRule::stack_after(const FrameState& state) const noexcept {
  const std::uintptr_t base = (bits_ >> kPlaceBits & 1) != 0 ? state.frame : state.stack;
  return base + (bits_ >> (kPlaceBits + 1) & kMostFrameWords) * 8;
}

void FrameRule::step(FrameState& state) const noexcept {
  const std::uintptr_t stack = stack_after(state);
  const auto restore = [stack, below = bits_ >> kFirstRegister](unsigned i, std::uintptr_t& to) {
    if (const std::uint64_t words = below >> 4 * i & kMostWordsBelow; words != 0) to = stack_word(stack - words * 8);
  };
  restore(0, state.frame);
  restore(1, state.rbx);
  restore(2, state.r12);
  restore(3, state.r13);
  restore(4, state.r14);
  restore(5, state.r15);
  state.code = stack_word(stack - 8);
  state.stack = stack;
}

bool FrameRules::look_up(std::uintptr_t code) noexcept {
  if (code - begin_ < end_ - begin_) return header_ != nullptr;
  header_ = nullptr;
  begin_ = end_ = 0;
  struct dl_find_object found;
  if (find_object_ == nullptr || find_object_(reinterpret_cast<void*>(code), &found) != 0) return false;
  begin_ = reinterpret_cast<std::uintptr_t>(found.dlfo_map_start);
  end_ = reinterpret_cast<std::uintptr_t>(found.dlfo_map_end);
  const auto header = static_cast<Bytes>(found.dlfo_eh_frame);
  constexpr unsigned char kUsual[] = {1, kBySelf | kSigned4, kUnsigned4, kByHeader | kSigned4};
  if (header == nullptr || std::memcmp(header, kUsual, sizeof kUsual) != 0) return false;
  header_ = header;
  count_ = load<std::uint32_t>(header + 8);
  return true;
}

const unsigned char* FrameRules::fde_at(std::uint32_t place, std::uintptr_t code) const noexcept {
  if (place >= count_) return nullptr;
  const Bytes fde = header_ + load<std::int32_t>(header_ + 12 + std::size_t{8} * place + 4);
  return code - first_code(fde) < code_bytes(fde) && is_of_usual_size(fde) && is_of_usual_size(cie_of(fde)) ? fde : nullptr;
}

std::uint64_t FrameRules::check_sum(std::uintptr_t code, FrameRule rule, const unsigned char* fde) noexcept {
  const Bytes cie = cie_of(fde);
  if (cie != cie_) {
    cie_ = cie;
    cie_sum_ = mixed_entry(0, cie);
  }
  return mixed_entry(mixed(mixed(mixed(cie_sum_, rule.bits()), code), reinterpret_cast<std::uintptr_t>(fde)), fde);
}

FrameRule FrameRules::find(std::uintptr_t code) noexcept {
  if (!look_up(code - 1)) return {};
  Slot* chosen = nullptr;
  for (Slot& slot : set_of(code).slots) {
    const std::uint64_t there = slot.code.load(std::memory_order_relaxed);
    if (there == code) {
      const FrameRule rule(slot.rule.load(std::memory_order_relaxed));
      const Bytes fde = fde_at(rule.place(), code - 1);
      if (fde != nullptr && slot.sum.load(std::memory_order_relaxed) == check_sum(code, rule, fde)) return rule;
      chosen = &slot;
      break;
    }
    if (there == 0 && chosen == nullptr) chosen = &slot;
  }
  const FrameRule rule = read(code);
  if (!rule.is_known()) return {};
  const std::uint64_t sum = check_sum(code, rule, fde_at(rule.place(), code - 1));
  if (chosen == nullptr) chosen = &set_of(code).slots[sum % kWays];  // any
  chosen->code.store(code, std::memory_order_relaxed);
  chosen->rule.store(rule.bits(), std::memory_order_relaxed);
  chosen->sum.store(sum, std::memory_order_relaxed);
  return rule;
}

FrameRule FrameRules::read(std::uintptr_t code) const noexcept {
  // The last FDE that begins at or before the call.
  std::uint32_t low = 0, high = count_;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    const std::intptr_t begin = load<std::int32_t>(header_ + 12 + std::size_t{8} * middle);
    if (reinterpret_cast<std::uintptr_t>(header_) + static_cast<std::uintptr_t>(begin) <= code - 1)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0 || low > 1U << FrameRule::kPlaceBits) return {};
  const std::uint32_t place = low - 1;
  const Bytes fde = fde_at(place, code - 1);
  Reader initial(nullptr, nullptr);
  if (fde == nullptr || !read_cie(cie_of(fde), initial)) return {};
  constexpr std::size_t kFirst = 16;  // length, CIE, first code, bytes of code; then the augmentation's data
  Reader program(fde + kFirst, fde + 4 + load<std::uint32_t>(fde));
  (void)program.part(program.uleb());
  RowProgram rows;
  if (!program.is_good() || !rows.run(initial, program, first_code(fde), code)) return {};
  const FrameRule rule = rule_of(rows.row());
  return rule.is_known() ? rule.at(place) : FrameRule();
}

}  // namespace freehold::os

#else

namespace freehold::os {

std::uintptr_t FrameRule::stack_after(const FrameState&) const noexcept { return 0; }
void FrameRule::step(FrameState&) const noexcept {}
FrameRule FrameRules::find(std::uintptr_t) noexcept { return {}; }

}  // namespace freehold::os
#endif
