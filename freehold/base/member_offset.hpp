// SPDX-License-Identifier: MIT
// Where a member lies in its class, in bytes: offsetof for classes that offsetof does not promise to work for, such as those
// with members in a base class. For readers outside the process, which know a layout by numbers only.
//
//   const std::size_t at = member_offset<Shard>(&Shard::bins);
//
// Any thread. Cost: none, the compiler knows it. Pre: the member is not that of a virtual base class.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace freehold::base {

// `T`: the class, or one derived from the member's.
template <class T, class Class, class Member>
[[nodiscard]] std::size_t member_offset(Member Class::* member) noexcept {
  union Room {
    Room() noexcept {}
    ~Room() {}
    T object;  // not made: only addresses are compared
  };
  const Room room;
  const Class& object = room.object;
  return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(std::addressof(object.*member)) -
                                  reinterpret_cast<const std::byte*>(&room));
}

// Returns the distance from the begin of an object to something in it.
[[nodiscard]] inline std::uint32_t distance(const void* begin, const void* place) noexcept {
  return static_cast<std::uint32_t>(static_cast<const std::byte*>(place) - static_cast<const std::byte*>(begin));
}

}  // namespace freehold::base
